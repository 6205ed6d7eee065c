"""Coordinates that remain in their file and are read box by box, so that no process needs memory for all of them.

A `StoredCoordinates` object replaces an array (nk, nj, ni) of float64. Indexing it returns an array. NumPy functions
that use it as a whole read all of it."""

import ctypes
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hiresx.base.arrays import triple
from hiresx.errors import HiresxError

# Least number of nodes of a file whose coordinates stay in it. Smaller files are read at once, which is faster.
LARGE = 4_000_000
# Number of nodes processed at a time.
SLAB = 500_000

# Number of layers beside the faces that are kept in memory after the first pass through the nodes.
RIM = 4
RIMS = (np.s_[:, :RIM], np.s_[:, -RIM:], np.s_[:, :, :RIM], np.s_[:, :, -RIM:])

Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def is_large(path: Path) -> bool:
    """Return whether a file may have so many nodes that their coordinates should be read only when they are needed.
    This is estimated from the size of the file, as if the coordinates were stored in single precision."""
    return path.stat().st_size >= 12 * LARGE


def give_back() -> None:
    """Return free memory to the operating system, if the C library supports this (glibc). Otherwise the memory of the
    many small arrays of a face search would not be available for the nodes that are read afterwards."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class CoordinateSource(Protocol):
    """One coordinate of a block in a file; `shape` (nk, nj, ni)."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of nodes (nk, nj, ni)."""

    def read(self, box: Box) -> np.ndarray:
        """Read a box of nodes. `box`: half-open index ranges (k, j, i). Returns an array [k, j, i] of the stored
        type."""


@dataclass(frozen=True)
class Bytes:
    """Numbers in an unstructured binary file, with the index i running fastest. `kind`: the NumPy type of the numbers.
    `shape`: (nk, nj, ni). `parts`: ranges of the file, each as (first byte, number of bytes). Together they are one
    sequence of bytes, in which the numbers begin at byte `start`."""

    path: Path
    kind: str
    shape: tuple[int, int, int]
    parts: tuple[tuple[int, int], ...]
    start: int = 0

    def read(self, box: Box) -> np.ndarray:
        """Read the box ((k0, k1), (j0, j1), (i0, i1)) of half-open index ranges, and return it as an array [k, j, i] of
        the stored type. Raises HiresxError if the file cannot be read."""
        kind = np.dtype(self.kind)
        (k0, k1), (j0, j1), (i0, i1) = box
        _, nj, ni = self.shape
        rows, whole_planes = (j1 - j0) * ni, (j0, j1) == (0, nj)
        result = np.empty((k1 - k0, j1 - j0, i1 - i0), kind)
        # Consecutive planes are read together, but not more than a slab at once.
        step = max(SLAB // max(rows, 1), 1) if whole_planes else 1
        with self.path.open("rb", buffering=0) as file:
            for k in range(k0, k1, step):
                last = min(k + step, k1)
                data = self._bytes(file.fileno(), ((k * nj) + j0) * ni * kind.itemsize,
                                   (last - k) * rows * kind.itemsize)  # fmt: skip
                planes = np.frombuffer(data, kind).reshape(last - k, j1 - j0, ni)
                result[k - k0 : last - k0] = planes[:, :, i0:i1]
        return result

    def _bytes(self, file: int, first: int, count: int) -> bytearray:
        data, filled = bytearray(count), 0
        view, begin = memoryview(data), self.start + first
        for at, length in self.parts:
            if begin >= length:
                begin -= length
                continue
            while filled < count and begin < length:
                got = os.preadv(file, [view[filled : filled + min(length - begin, count - filled)]], at + begin)
                if not got:
                    raise HiresxError(
                        f"{self.path}: the file has become shorter while it was read",
                        "do not change the grid file while a run reads it",
                    )
                filled, begin = filled + got, begin + got
            begin = 0
            if filled == count:
                break
        return data


@dataclass(frozen=True)
class Hdf5Dataset:
    """The coordinate stored in the dataset `name` of the HDF5 file `path`. `shape`: (nk, nj, ni)."""

    path: Path
    name: str
    shape: tuple[int, int, int]

    def read(self, box: Box) -> np.ndarray:
        """Read the box ((k0, k1), (j0, j1), (i0, i1)) of half-open index ranges, and return it as an array [k, j, i] of
        the stored type. Raises HiresxError if the file cannot be read."""
        import h5py

        try:
            with h5py.File(self.path, "r", locking=False) as file:
                data = file[self.name]
                return np.asarray(data[tuple(slice(*ends) for ends in box)[3 - data.ndim :]]).reshape(
                    [hi - lo for lo, hi in box]
                )
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            words = " ".join(str(error).split())[:200]
            raise HiresxError(f"{self.path}: {self.name} cannot be read: {words}", "write the file again") from error


@dataclass(frozen=True, eq=False)
class StoredCoordinates:
    """One coordinate of a block that is read from its file when it is needed. `source`: the stored array. `window`: the
    half-open box of the stored array that belongs to the block. `factor`: the factor by which stored values are
    multiplied. `reverse`: the directions (k, j, i) in which the order of the nodes is reversed."""

    source: CoordinateSource
    window: Box
    factor: float = 1.0
    reverse: tuple[bool, bool, bool] = (False, False, False)

    dtype = np.dtype(np.float64)
    ndim = 3

    @classmethod
    def of(cls, source: CoordinateSource) -> "StoredCoordinates":
        """Return an object for all values of the stored array `source`; nothing is read."""
        return cls(source, triple((0, n) for n in source.shape))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of nodes (nk, nj, ni)."""
        return triple(hi - lo for lo, hi in self.window)

    @property
    def stored_type(self) -> np.dtype[Any]:
        """NumPy type of the numbers in the file."""
        return self.source.read(((0, 1), (0, 1), (0, 1))).dtype

    @property
    def size(self) -> int:
        """Number of nodes."""
        return math.prod(self.shape)

    def part(self, slices: tuple[slice, slice, slice]) -> "StoredCoordinates":
        """Return the coordinates in a box of the array, without reading them. `slices`: the NumPy index [k, j, i] of
        the box."""
        made = replace(self, window=self._there([s.indices(n)[:2] for s, n in zip(slices, self.shape, strict=True)]))
        if "_extremes" in self.__dict__ or "largest_of_whole" in self.__dict__:
            made.__dict__["largest_of_whole"] = self.largest
        return made

    @property
    def largest(self) -> float:
        """Largest absolute value of these coordinates; nan if any value is nan. For a part of a stored array it is the
        largest value of the whole array if that is known, so that the part is not read again."""
        found: float | None = self.__dict__.get("largest_of_whole")
        # the result is nan if any value is nan
        return float(np.abs(self._extremes).max()) if found is None else found

    def reverse_axes(self, axes: tuple[bool, bool, bool]) -> "StoredCoordinates":
        """Return these coordinates with the order of the nodes reversed along each axis (k, j, i) for which `axes` is
        true."""
        return replace(self, reverse=triple(a != b for a, b in zip(self.reverse, axes, strict=True)))

    def __mul__(self, factor: float) -> "StoredCoordinates":
        return replace(self, factor=self.factor * factor)

    def slabs(self, overlap: int = 0) -> Iterator[np.ndarray]:
        """Return an iterator over slabs of consecutive planes k, as arrays [k, j, i]. Each slab also has the first
        `overlap` planes of the next slab."""
        return _slabs(self, overlap)

    def __getitem__(self, index: Any) -> np.ndarray:
        given = list(index if isinstance(index, tuple) else (index,))
        if Ellipsis in [n for n in given if not isinstance(n, np.ndarray)]:
            at = given.index(Ellipsis)
            given[at : at + 1] = [slice(None)] * (4 - len(given))
        given += [slice(None)] * (3 - len(given))
        box, inner = [], []
        for n, size in zip(given, self.shape, strict=True):
            low, high, local = _within(n, size)
            box.append((low, high))
            inner.append(local)
        return self._read(box)[tuple(inner)]

    def take(self, indices: Any, axis: int, out: None = None, mode: str = "raise") -> np.ndarray:
        """Return the values at `indices` along `axis`, as `numpy.take` does. `mode` and `out` are ignored."""
        indices = list(indices) if isinstance(indices, range) else indices
        index: list[Any] = [slice(None)] * 3
        index[axis] = indices if np.ndim(indices) == 0 else np.asarray(indices)
        return self[tuple(index)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        """Return the least and the greatest value. The same pass through the file reads the rims of its planes, which
        are used repeatedly."""
        found: list[tuple[float, float]] = []
        rims: list[list[np.ndarray]] = [[], [], [], []]
        for slab in self.slabs():
            found.append((float(slab.min()), float(slab.max())))
            for rim, place in zip(rims, RIMS, strict=True):
                rim.append(slab[place].copy())
        self.__dict__["_rims"] = [np.concatenate(rim) for rim in rims]
        return float(np.min(found)), float(np.max(found))

    def forget(self) -> None:
        """Free the memory of those layers of nodes beside the block's faces that are kept after the first reading. They
        are read from the file again if they are needed."""
        self.__dict__.pop("_rims", None)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_rims"}

    def min(self, axis: None = None, out: None = None) -> float:
        """Return the smallest coordinate, in reference lengths. The arguments, which `numpy.min` passes, are
        ignored."""
        return self._extremes[0]

    def max(self, axis: None = None, out: None = None) -> float:
        """Return the largest coordinate, in reference lengths. The arguments, which `numpy.max` passes, are ignored."""
        return self._extremes[1]

    def _there(self, box: Any) -> Box:
        """Convert a box of the indexes of the block to those of the source."""
        found = []
        for (lo, hi), (first, last), turned in zip(box, self.window, self.reverse, strict=True):
            found.append((last - hi, last - lo) if turned else (first + lo, first + hi))
        return triple(found)

    def _read(self, box: Any) -> np.ndarray:
        for rim, (axis, last) in zip(self.__dict__.get("_rims", ()), ((1, 0), (1, 1), (2, 0), (2, 1)), strict=False):
            away = last * (self.shape[axis] - rim.shape[axis])
            if away <= box[axis][0] and box[axis][1] <= away + rim.shape[axis]:
                there = [(lo - away * (e == axis), hi - away * (e == axis)) for e, (lo, hi) in enumerate(box)]
                return rim[tuple(slice(*ends) for ends in there)].copy()
        with np.errstate(invalid="ignore"):  # `Block` reports a nan with its node; the cast must not warn
            values = self.source.read(self._there(box)).astype(np.float64)
        values = values[tuple(slice(None, None, -1 if turned else 1) for turned in self.reverse)]
        return np.ascontiguousarray(values if self.factor == 1 else self.factor * values)


def _within(n: Any, size: int) -> tuple[int, int, Any]:
    """Return (first, last + 1, the same index counted from the first) of an index into a direction of `size` nodes."""
    if isinstance(n, slice):
        run = range(*n.indices(size))
        return (min(run), max(run) + 1, slice(None, None, run.step)) if run else (0, 0, slice(None))
    chosen = np.asarray(n)
    if not chosen.size:
        return 0, 0, chosen
    chosen = np.where(chosen < 0, chosen + size, chosen)
    if chosen.min() < 0 or chosen.max() >= size:
        raise IndexError(f"index {n} is out of bounds for {size} nodes")
    low = int(chosen.min())
    return low, int(chosen.max()) + 1, chosen - low if chosen.ndim else int(chosen) - low


Nodes = np.ndarray | StoredCoordinates


def part_of(values: Nodes, slices: tuple[slice, slice, slice]) -> Nodes:
    """Return the coordinates in a box of `values`: a view if this is an array, or a `StoredCoordinates` of which
    nothing is read yet. `slices`: the NumPy index [k, j, i] of the box."""
    return values.part(slices) if isinstance(values, StoredCoordinates) else values[slices]


def slabs(*coordinates: Nodes, overlap: int = 0) -> Iterator[list[np.ndarray]]:
    """Yield several coordinate arrays of one shape [k, j, i] together, in slabs of consecutive planes k, so that a
    large file is not read as a whole. Each slab also has the first `overlap` planes of the next slab. If all
    coordinates are in memory, there is a single slab."""
    if not any(isinstance(c, StoredCoordinates) for c in coordinates):
        yield [np.asarray(c) for c in coordinates]
        return
    yield from map(list, zip(*(_slabs(c, overlap) for c in coordinates), strict=True))


def _slabs(values: Nodes, overlap: int) -> Iterator[np.ndarray]:
    step = max(SLAB // max(math.prod(values.shape[1:]), 1), 1)
    for k in range(0, max(values.shape[0] - overlap, 1), step):
        yield values[k : k + step + overlap]
