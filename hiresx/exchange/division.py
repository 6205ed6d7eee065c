"""How memory for messages is divided among quantities and turns: the same way by the rank that packs and by those that
read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Bytes: buffers begin on cache lines of their own.
ALIGNMENT = 64


class Division:
    """`widths`: reals of `dtype` per point of each quantity. Each has two buffers, one per turn."""

    def __init__(self, dtype: Any, widths: Sequence[int]):
        self.dtype, self.widths = np.dtype(dtype), tuple(widths)

    def size(self, points: int) -> int:
        """Bytes of the buffers for so many points."""
        return sum(2 * self._room(points, width) for width in self.widths)

    def _room(self, points: int, width: int) -> int:
        return -(-points * width * self.dtype.itemsize // ALIGNMENT) * ALIGNMENT

    def buffers(self, memory: Any, points: int) -> list[list[Any]]:
        """`memory` of `size(points)` bytes as arrays of reals, by quantity and turn."""
        sizes = [points * width for width in self.widths]
        return [
            [both[first : first + size] for first in (0, apart)]
            for size, (both, apart) in zip(sizes, self.both_turns(memory, points), strict=True)
        ]

    def both_turns(self, memory: Any, points: int) -> list[tuple[Any, int]]:
        """The same, by quantity the buffers of both turns as one array, and how many reals they are apart."""
        start, found = 0, []
        for width in self.widths:
            room = self._room(points, width)
            found.append((memory[start : start + 2 * room].view(self.dtype), room // self.dtype.itemsize))
            start += 2 * room
        return found

    def messages(
        self, memory: Mapping[int, Any], points: Mapping[int, int], spans: Mapping[int, tuple[int, int]]
    ) -> list[list[dict[int, Any]]]:
        """By quantity, turn and rank, what lies in the `memory` of a rank, which has room for `points`, between the
        points `spans`."""
        found: list[list[dict[int, Any]]] = [[{}, {}] for _ in self.widths]
        for rank, its in memory.items():
            first, last = spans[rank]
            for into, width, buffers in zip(found, self.widths, self.buffers(its, points[rank]), strict=True):
                for turn in (0, 1):
                    into[turn][rank] = buffers[turn][width * first : width * last]
        return found
