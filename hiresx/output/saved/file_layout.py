"""Many netCDF-4 files of one layout: the library makes one of them, whose bytes then serve for all.

In a file without compression an array lies in one piece, and nothing else in the file depends on its values. So a
series of files that differ in values only needs the library once: to find out where the arrays lie and what is around
them. Every further file is that, and the arrays in their places. It takes a fifth of the processor time of the library
(measured: the quick jet, 4 blocks of 8 arrays of 100 kB), holds no lock meanwhile, and names the fault when the disk is
full, which the library does not. And several processes can write one file: each its arrays, or its parts of them.
"""

import errno
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.output.saved.files import FileLayout
from hiresx.output.saved.netcdf import LOCK, library

# Bytes that are read at a time.
_SLAB = 1 << 24
# Values that mark an array, where it has as many; of long marks so many bytes, the first, are the same: what is looked
# for is then one thing, not as many as there are arrays.
_MARKS, _HEAD = 8, 8


def learn(
    path: Path, define: Callable[[Any], Mapping[Any, Any]], finish: Callable[[Path], None] = lambda path: None
) -> FileLayout | None:
    """The layout of the file that `define` describes: it is given a new netCDF4.Dataset and returns its variables
    by key; `finish` gets the closed file. `path`: a file to try it on, which becomes as large as the real one, but
    takes little room on disk.
    None when the arrays cannot be found again, which then is no way to write files.

    Raises OSError and RuntimeError as the library does.
    """
    netCDF4 = library()

    chance = random.Random(0)
    marks: list[bytes] = []
    with LOCK:
        file = netCDF4.Dataset(path, "w", format="NETCDF4")
        try:
            variables = define(file)
            arrays = {key: (np.dtype(v.dtype), tuple(v.shape)) for key, v in variables.items()}
            for variable, (dtype, shape) in zip(variables.values(), arrays.values(), strict=True):
                count = min(shape[-1], _MARKS) if shape else 1
                written = _mark(chance, dtype, count)
                # In the shape of what it is written to: netCDF4 would set that of the array, which NumPy deprecates.
                at = (*(slice(0, 1) for _ in shape[:-1]), slice(0, count)) if shape else ...
                variable[at] = written.reshape(*(1 for _ in shape[:-1]), count) if shape else written[0]
                marks.append(written.tobytes())
        except BaseException:
            with suppress(RuntimeError):
                file.close()
            raise
        file.close()
    finish(path)
    with path.open("rb") as file:
        places = _find(file.fileno(), marks)
        size = os.fstat(file.fileno()).st_size
        found = {}
        for (key, (dtype, shape)), mark in zip(arrays.items(), marks, strict=True):
            if len(places[mark]) != 1:
                return None
            found[key] = places[mark][0], dtype, shape
        return _between_arrays(file, size, found)


def _between_arrays(
    file: Any, size: int, arrays: Mapping[Any, tuple[int, np.dtype, tuple[int, ...]]]
) -> FileLayout | None:
    between, end = [], 0
    ranges = sorted((offset, _bytes(dtype, shape)) for offset, dtype, shape in arrays.values())
    for offset, length in [*ranges, (size, 0)]:
        if offset < end:
            return None  # a mark was found inside another array
        if offset > end:
            file.seek(end)
            between.append((end, file.read(offset - end)))
        end = offset + length
    return FileLayout(size, between, arrays) if end == size else None


def _bytes(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    return dtype.itemsize * int(np.prod(shape, dtype=np.int64))


def _mark(chance: random.Random, dtype: np.dtype, count: int) -> np.ndarray:
    """`count` numbers as no other array has them. Where there is room the first bytes are those of all marks."""
    mark = np.frombuffer(chance.randbytes(count * dtype.itemsize), dtype)
    # Numbers that are finite and not tiny: others may lose bits on their way.
    mark = (mark.view(f"u{dtype.itemsize}") % 1_000_003 + 1).astype(dtype) * dtype.type(1.7)
    head = _HEAD // dtype.itemsize
    if count > 2 * head:
        mark[:head] = 1.7
    return mark


def _find(file: int, marks: list[bytes]) -> dict[bytes, list[int]]:
    """Where in an open file each of `marks` lies."""
    places: dict[bytes, list[int]] = {mark: [] for mark in marks}
    kinds: dict[bytes, set[int]] = {}
    for mark in marks:
        kinds.setdefault(mark[:_HEAD], set()).add(len(mark))
    overlap = max(map(len, marks)) - 1
    for start, stop in _written(file):
        for first in range(start, stop, _SLAB):
            chunk = os.pread(file, min(_SLAB + overlap, stop - first), first)
            for head, lengths in kinds.items():
                at = chunk.find(head)
                while 0 <= at < _SLAB:
                    for length in lengths:
                        found = places.get(chunk[at : at + length])
                        if found is not None:
                            found.append(first + at)
                    at = chunk.find(head, at + 1)
    return places


def _written(file: int) -> Iterator[tuple[int, int]]:
    """The parts of an open file that are no holes, which most of it is; all of it where the system knows of none."""
    size, start = os.fstat(file).st_size, 0
    while start < size:
        try:
            start = os.lseek(file, start, os.SEEK_DATA)
            stop = os.lseek(file, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which says: nothing but a hole up to the end
                yield start, size
            return
        yield start, stop
        start = stop
