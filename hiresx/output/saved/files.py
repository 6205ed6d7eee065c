"""Files that many processes write together, each the values that it has; a file is either complete or absent
(`hiresx.base.whole_files`). Errors name the path. A function that takes a communicator is called by all its ranks."""

import errno
import math
import os
import shutil
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hiresx.base.whole_files import ABSENT as ABSENT
from hiresx.base.whole_files import describe_path as describe_path
from hiresx.base.whole_files import io_error as io_error
from hiresx.base.whole_files import naming_errors as naming_errors
from hiresx.base.whole_files import replacing as replacing
from hiresx.base.whole_files import sync as sync
from hiresx.base.whole_files import temporary_path
from hiresx.base.whole_files import write_text as write_text
from hiresx.base.whole_files import writing as writing
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved.places import Place

Thing = TypeVar("Thing")
Key = Hashable
# Number of bytes that are prepared for writing at a time.
_SLAB = 1 << 24


def on_root(comm: Communicator | None, function: Callable[[], Thing]) -> Thing:
    """Call `function` on rank 0 of `comm` and return its result on all ranks; if `comm` is None, call it in this
    process. An error on rank 0 is raised on all ranks. All ranks must call this function."""
    if comm is None or comm.size == 1:
        return function()
    found = None
    with comm.together():
        if comm.root:
            try:
                found = function()
            except HiresxError as error:
                error.placed = True  # the number of the rank is not informative
                raise
    return comm.bcast(found)


def remove(paths: Iterable[Path]) -> None:
    """Remove the files `paths`. A file that does not exist is ignored. Raises HiresxError for the first file that
    cannot be removed."""
    for path in paths:
        with naming_errors(path, "remove"):
            path.unlink(missing_ok=True)


class FileLayout:
    """The layout of a file with arrays. `size`: its number of bytes. `between`: the bytes between the arrays, as
    (offset, bytes). `arrays`: for each array by key (offset in bytes, type, shape)."""

    def __init__(
        self, size: int, between: list[tuple[int, bytes]], arrays: Mapping[Any, tuple[int, np.dtype, tuple[int, ...]]]
    ):
        self.size, self._between, self.arrays = size, between, arrays

    @property
    def places(self) -> "FileLayout":
        """This layout without the bytes between the arrays, for processes that write only values of arrays."""
        return FileLayout(self.size, [], self.arrays)

    def frame(self, file: int) -> None:
        """Write the bytes between the arrays, such as the header, to an open file. `file`: the descriptor of the file.
        Raises OSError."""
        for offset, content in self._between:
            write_at(file, content, offset)

    def put_number(self, file: int, key: Key, value: float) -> None:
        """Write one number to an open file, as the value of the array `key`, which has one item. `file`: the descriptor
        of the file. Raises OSError."""
        offset, dtype, _ = self.arrays[key]
        write_at(file, np.array(value, dtype).tobytes(), offset)

    def put(self, file: int, key: Key, place: Place, parts: Sequence[np.ndarray]) -> None:
        """Write values of an array to an open file. `file`: the descriptor of the file. `key`: the key of the array.
        `place`: the nodes of the array to which the values belong, as a box of indexes or a list of points. `parts`:
        the values, one array of the shape of `place` for numbers, or three for the components of vectors, which are
        interleaved in the file. This method uses neither memory maps nor locks, so that it works on any file system.
        Raises OSError, and ValueError if `place` lies outside the array."""
        offset, dtype, shape = self.arrays[key]
        runs, nodes, width = place.runs, math.prod(shape[:3]), dtype.itemsize * len(parts)
        ends = runs.starts[:1], nodes - runs.starts[-1:] - runs.lengths[-1:]
        if place.whole not in (None, shape[:3]) or any((end < 0).any() for end in ends):
            raise ValueError(f"{key}: {place} is no place in an array of the shape {shape}")
        if not runs.layers:
            return
        rows, count = place.shape[0] // runs.layers, len(runs.starts) // runs.layers
        layers = max(1, _SLAB // max(math.prod(place.shape) // runs.layers * width, 1))
        for first in range(0, runs.layers, layers):
            last = min(first + layers, runs.layers)
            slab = [np.asarray(part)[first * rows : last * rows] for part in parts]
            values = np.ascontiguousarray(slab[0] if len(slab) == 1 else np.stack(slab, axis=-1), dtype)
            content, chosen = values.reshape(-1).data.cast("B"), slice(first * count, last * count)
            starts = (offset + runs.starts[chosen] * width).tolist()
            if runs.joined:
                write_at(file, content, starts[0])
                continue
            at = 0
            for start, length in zip(starts, (runs.lengths[chosen] * width).tolist(), strict=True):
                write_at(file, content[at : at + length], start)
                at += length


def write_at(file: int, content: bytes | memoryview, offset: int) -> None:
    """Write all bytes of `content` to an open file, beginning at the byte `offset`. `file`: the descriptor of the file.
    Raises OSError."""
    written = os.pwrite(file, content, offset)
    while written < len(content):  # a signal, or a disk that is nearly full
        written += os.pwrite(file, content[written:], offset + written)


class JointFile:
    """A file `path` of a known `layout` that several processes write together, each the values that it has.

    All processes open one temporary file, whose name all of them know, and none truncates it. They need no order and do
    not wait for one another. Rank 0 adds the bytes between the arrays. When all have written, which their main threads
    detect (`background.JointWriter`), rank 0 renames the file to `path`. `tag`: a number that all writers of the file
    share, and that no other process uses in this directory. `root`: whether this process writes the bytes between the
    arrays. It is a context manager, for one thread at a time; at the end of the context the written data are flushed to
    the disk. An OSError becomes a HiresxError with the path."""

    def __init__(self, path: Path, layout: FileLayout, tag: int, root: bool):
        self.path, self._layout, self._root = path, layout, root
        self._temporary = temporary_path(path, tag)
        self._file = -1  # no file is open

    def __enter__(self) -> "JointFile":
        try:
            self._file = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            # A network file system that knows the full size writes no zeros over the data of other processes.
            os.ftruncate(self._file, self._layout.size)
        except OSError as error:
            self._leave()
            raise io_error(self.path, error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                os.fsync(self._file)
        except OSError as error:
            raise io_error(self.path, error) from None
        finally:
            self._leave()

    def _leave(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # the data that were flushed are in the file
                os.close(file)

    def frame(self, numbers: Mapping[Key, float] | None = None) -> None:
        """Write on rank 0 the parts of the file that do not belong to arrays, such as its header; nothing is done on
        other ranks. `numbers`: values of arrays with one item, by the keys of these arrays; they are written, too.
        Raises HiresxError, with the path, if the disk is full."""
        if not self._root:
            return
        with naming_errors(self.path):
            # Other processes may have begun to write.
            there = 512 * os.fstat(self._file).st_blocks
            if shutil.disk_usage(self.path.parent).free + there < self._layout.size:
                raise OSError(errno.ENOSPC, "")
            self._layout.frame(self._file)
            for key, number in (numbers or {}).items():
                self._layout.put_number(self._file, key, number)

    def holds(self, key: Key) -> bool:
        """Return whether the file has an array with the key `key`."""
        return key in self._layout.arrays

    def put(self, key: Key, place: Place, parts: Sequence[np.ndarray]) -> None:
        """Write values of the array with the key `key` at the nodes `place`, a box of indexes or a list of points.
        `parts`: the values, one array of the shape of `place` for numbers, or three for the components of vectors,
        which are interleaved in the file. Raises HiresxError, with the path, if the file cannot be written."""
        with naming_errors(self.path):
            self._layout.put(self._file, key, place, parts)

    def publish(self, synced: bool = True) -> None:
        """Rename the temporary file to its final name. Called on rank 0 after all processes have left the `with` block
        of this object. `synced`: whether the new name is flushed to the disk. Raises HiresxError, with the path, if
        this fails."""
        with naming_errors(self.path):
            os.replace(self._temporary, self.path)
            if synced:
                sync(self.path.parent)

    def discard(self) -> None:
        """Remove the temporary file. Called on rank 0, when no process writes to it any more."""
        with suppress(OSError):
            self._temporary.unlink()
