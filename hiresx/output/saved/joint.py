"""Files that several processes write together, each its values in their places, and that are complete or not there.

Nothing in the threads that write depends on the order of the processes, or has one wait for another: all open one
temporary file, whose name all know, and none cuts off what another has written. Rank 0 adds what lies between the
arrays. When all have written (their main threads can tell: `writer.JointWriter`), it gives the file its name.
"""

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from hiresx.output.saved import files
from hiresx.output.saved.file_layout import FileLayout, Key
from hiresx.output.saved.places import Place


class JointFile:
    """The file `path`, of a known `layout`. `tag`: a number that all who write it have in common, and no other process
    that may write here. `root`: whether this process adds what is no array.

    A context, for one thread at a time: on leaving what was put is synced to disk. OSErrors are raised as HiresxError
    that names the path.
    """

    def __init__(self, path: Path, layout: FileLayout, tag: int, root: bool):
        self.path, self._layout, self._root = path, layout, root
        self._temporary = files.temporary_path(path, tag)
        self._file = -1  # nothing is open

    def __enter__(self) -> "JointFile":
        try:
            self._file = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            # A network file system that knows of no end within a page writes no zeros over what others put there.
            os.ftruncate(self._file, self._layout.size)
        except OSError as error:
            self._leave()
            raise files.fault(self.path, error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                os.fsync(self._file)
        except OSError as error:
            raise files.fault(self.path, error) from None
        finally:
            self._leave()

    def _leave(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # what was synced is there
                os.close(file)

    def frame(self, numbers: Mapping[Key, float] | None = None) -> None:
        """Everything but arrays, and the `numbers`, which are arrays of one item; nothing where this is not rank 0."""
        if not self._root:
            return
        try:
            # Others may have begun.
            there = 512 * os.fstat(self._file).st_blocks
            if shutil.disk_usage(self.path.parent).free + there < self._layout.size:
                raise OSError(errno.ENOSPC, "")
            self._layout.frame(self._file)
            for key, number in (numbers or {}).items():
                self._layout.put_number(self._file, key, number)
        except OSError as error:
            raise files.fault(self.path, error) from None

    def holds(self, key: Key) -> bool:
        """Whether there is such an array."""
        return key in self._layout.arrays

    def put(self, key: Key, place: Place, parts: Sequence[np.ndarray]) -> None:
        """Values of the array `key`; see `places.put`."""
        try:
            self._layout.put(self._file, key, place, parts)
        except OSError as error:
            raise files.fault(self.path, error) from None

    def publish(self, sync: bool = True) -> None:
        """Give the file its name: on rank 0, once all processes have left it. `sync`: and have that on disk."""
        try:
            os.replace(self._temporary, self.path)
            if sync:
                files.sync(self.path.parent)
        except OSError as error:
            raise files.fault(self.path, error) from None

    def discard(self) -> None:
        """Remove what was written: on rank 0, once no process writes to it."""
        with suppress(OSError):
            self._temporary.unlink()
