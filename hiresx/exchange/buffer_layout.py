"""The layout of message buffers: the offsets of the messages of each quantity. The sender and the receivers compute the
same layout."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Alignment in bytes: every buffer begins on a cache line of its own.
ALIGNMENT = 64


class BufferLayout:
    """The layout of the buffers of all quantities in one allocation. `widths`: for each quantity the number of values
    per point. `dtype`: their type, or a list with one type for each quantity. Every quantity has two buffers, which
    consecutive exchanges use alternately; "turn" is the number of the buffer, 0 or 1."""

    def __init__(self, dtype: Any, widths: Sequence[int]):
        self.widths = tuple(widths)
        kinds = dtype if isinstance(dtype, list) else [dtype] * len(self.widths)
        self.dtypes = tuple(map(np.dtype, kinds))

    def size(self, points: int) -> int:
        """Return the total number of bytes of the message buffers of a rank: two for each quantity, each for the
        messages to (or from) all peers. `points`: the number of grid points of these messages together."""
        return sum(2 * self._room(points, bytes_) for bytes_ in self.bytes_per_point)

    @property
    def bytes_per_point(self) -> list[int]:
        """Bytes per grid point in a message, for each quantity."""
        return [width * dtype.itemsize for width, dtype in zip(self.widths, self.dtypes, strict=True)]

    def _room(self, points: int, bytes_: int) -> int:
        return -(-points * bytes_ // ALIGNMENT) * ALIGNMENT

    def buffers(self, memory: Any, points: int) -> list[list[Any]]:
        """Return the message buffers in one allocation as arrays of reals: for each quantity the two buffers that
        consecutive exchanges use alternately. `memory`: an array of `size(points)` bytes. `points`: the number of grid
        points for which each buffer has space."""
        sizes = [points * width for width in self.widths]
        return [
            [both[first : first + size] for first in (0, apart)]
            for size, (both, apart) in zip(sizes, self.both_turns(memory, points), strict=True)
        ]

    def both_turns(self, memory: Any, points: int) -> list[tuple[Any, int]]:
        """Return, for each quantity, one array of reals that contains both message buffers of the quantity, and the
        offset of the second buffer in it, in reals. `memory`: an array of `size(points)` bytes. `points`: the number of
        grid points for which each buffer has space."""
        start, found = 0, []
        for bytes_, dtype in zip(self.bytes_per_point, self.dtypes, strict=True):
            room = self._room(points, bytes_)
            found.append((memory[start : start + 2 * room].view(dtype), room // dtype.itemsize))
            start += 2 * room
        return found

    def messages(
        self, memory: Mapping[int, Any], points: Mapping[int, int], spans: Mapping[int, tuple[int, int]]
    ) -> list[list[dict[int, Any]]]:
        """Return the messages to this rank in the buffers of other ranks, as views: for each quantity and each of its
        two buffers a dictionary from the rank to an array of reals. All arguments are dictionaries from the rank.
        `memory`: the buffers of the rank, as bytes. `points`: the number of grid points for which they have space.
        `spans`: the half-open range of these grid points that the message occupies."""
        found: list[list[dict[int, Any]]] = [[{}, {}] for _ in self.widths]
        for rank, its in memory.items():
            first, last = spans[rank]
            for into, width, buffers in zip(found, self.widths, self.buffers(its, points[rank]), strict=True):
                for turn in (0, 1):
                    into[turn][rank] = buffers[turn][width * first : width * last]
        return found
