"""Where in an array of a file the values of one process belong, and how they get there beside those of others.

An array (nk, nj, ni) lies in a file in C order. A process has the nodes of a box of it, or nodes here and there; what
lies in one run in both is written at once. Nothing is mapped or locked: that works on any file system.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.arrays import triple

# Bytes that are prepared for writing at a time.
_SLAB = 1 << 24


@dataclass(frozen=True)
class IndexBox:
    """The nodes `ends` ((first, last + 1) along k, j, i) of an array of the shape `whole` (nk, nj, ni)."""

    whole: tuple[int, int, int]
    ends: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]

    @classmethod
    def all(cls, whole: tuple[int, int, int]) -> "IndexBox":
        """Every node of the array."""
        return cls(triple(whole), triple((0, n) for n in whole))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the values."""
        return triple(last - first for first, last in self.ends)

    def fits(self, whole: tuple[int, ...]) -> bool:
        """Whether it is a place in an array of this shape."""
        return self.whole == tuple(whole)

    def runs(self, first: int, last: int) -> tuple[np.ndarray, int]:
        """Where the layers first..last-1 of the values begin in the array, run by run, and how long a run is; both
        count nodes."""
        (_, nj, ni), (mk, mj, mi) = self.whole, (last - first, *self.shape[1:])
        k, j, i = (low for low, _ in self.ends)
        layers = (np.arange(mk) + k + first)[:, None] * nj
        if mi < ni:
            return ((layers + np.arange(mj) + j) * ni + i).ravel(), mi
        if mj < nj:
            return ((layers[:, 0] + j) * ni), mj * ni
        return layers[:1, 0] * ni, mk * nj * ni


@dataclass(frozen=True, eq=False)
class IndexPoints:
    """The nodes `index` (n,), rising, of an array counted through."""

    index: np.ndarray

    @property
    def shape(self) -> tuple[int]:
        """Of the values."""
        return self.index.shape

    def fits(self, whole: tuple[int, ...]) -> bool:
        """Whether it is a place in an array of this shape."""
        return not self.index.size or 0 <= self.index[0] <= self.index[-1] < math.prod(whole)


Place = IndexBox | IndexPoints


@dataclass(eq=False)
class IndexPortion:
    """The points `place` of a block of what is written: coordinates and variables by name, all of the shape of `place`.

    Where `missing` there is no such point, and the numbers are those of another.
    """

    place: Place
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    values: dict[str, np.ndarray]
    missing: np.ndarray | None = None


def put(file: int, offset: int, dtype: np.dtype, place: Place, parts: Sequence[np.ndarray]) -> None:
    """Write values, as `dtype`, to the array that begins at `offset` of the open `file`. `parts`: arrays of the shape
    of `place`, which lie side by side at every node of the file: one for numbers, three for vectors. Raises OSError."""
    width = dtype.itemsize * len(parts)
    for first, last, starts, length in _slabs(place, width):
        slab = [np.asarray(part)[first:last] for part in parts]
        values = np.ascontiguousarray(slab[0] if len(slab) == 1 else np.stack(slab, axis=-1), dtype)
        _scatter(file, values.reshape(-1).data.cast("B"), (offset + starts * width).tolist(), length, width)


def _slabs(place: Place, width: int) -> Iterator[tuple[int, int, np.ndarray, int | np.ndarray]]:
    """The values in slabs along their first axis: (first, last + 1, starts of runs, their length or lengths)."""
    if isinstance(place, IndexPoints):
        index = place.index
        if index.size:
            begin = np.flatnonzero(np.diff(index, prepend=index[0] - 2) != 1)
            yield 0, index.size, index[begin], np.diff(begin, append=index.size)
        return
    mk, mj, mi = place.shape
    rows = max(1, _SLAB // max(mj * mi * width, 1))
    for first in range(0, mk, rows):
        last = min(first + rows, mk)
        yield first, last, *place.runs(first, last)


def _scatter(file: int, content: memoryview, offsets: list[int], length: int | np.ndarray, width: int) -> None:
    lengths = [length * width] * len(offsets) if isinstance(length, int) else (length * width).tolist()
    at = 0
    for offset, size in zip(offsets, lengths, strict=True):
        written = os.pwrite(file, content[at : at + size], offset)
        while written < size:  # a signal, or a disk that is about to be full
            written += os.pwrite(file, content[at + written : at + size], offset + written)
        at += size
