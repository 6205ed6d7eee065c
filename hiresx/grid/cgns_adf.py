"""CGNS files in the older format, ADF. No other library is needed to read them (`adf.py`)."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid import adf
from hiresx.grid.cgns_tree import Node
from hiresx.grid.stored_coordinates import Bytes, CoordinateSource

# Largest number of links that follow each other.
LONGEST_CHAIN = 100


class AdfNode(Node):
    """A node at byte `at` of an ADF file. `place`: the path of names that leads to it. `others`: opens the files to
    which links refer."""

    def __init__(self, file: adf.File, at: int, place: str, others: "_Others"):
        self._header = file.node(at)
        super().__init__(file.path, place, self._header.label)
        self._file, self._others = file, others

    @property
    def form(self) -> str:
        """Name of the file format with the version of ADF and the byte order."""
        return self._file.form

    def _data_shape(self) -> tuple[tuple[int, ...], np.dtype] | None:
        header = self._header
        if header.kind in adf.EMPTY or not header.pieces:
            return None
        if header.kind not in adf.TYPES:
            raise self.error(f"holds data of the type {header.kind!r}")
        return header.dimensions[::-1], np.dtype(adf.TYPES[header.kind])

    def _kind_of_data(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return (shape, type) of the data of a node that has data."""
        found = self._data_shape()
        assert found is not None
        return found

    def _array(self) -> np.ndarray:
        shape, kind = self._kind_of_data()
        return np.frombuffer(self._file.data(self._header), kind.newbyteorder(self._file.order)).reshape(shape)

    def _source(self, shape: tuple[int, int, int]) -> CoordinateSource:
        _, kind = self._kind_of_data()
        parts = tuple(self._file.stretches(self._header))
        return Bytes(self._file.path, kind.newbyteorder(self._file.order).str, shape, parts)

    def _all(self) -> Iterator[Node]:
        for name, at in self._file.children(self._header):
            place, file = f"{self.place}/{name}", self._file
            for _ in range(LONGEST_CHAIN):
                header = file.node(at)
                if header.kind != "LK":
                    break
                file, at = self._others.follow_link(file, header, place)
            else:
                raise self.error(f"the link {name} is part of a cycle of links")
            yield AdfNode(file, at, place, self._others)


class _Others:
    """The files of a tree, opened once each and closed with it."""

    def __init__(self, stack: ExitStack):
        self._stack = stack
        self._files: dict[Path, adf.File] = {}

    def file(self, path: Path) -> adf.File:
        path = path.resolve()
        if path not in self._files:
            self._files[path] = self._stack.enter_context(adf.File(path))
        return self._files[path]

    def follow_link(self, file: adf.File, header: adf.AdfHeader, place: str) -> tuple[adf.File, int]:
        """File and byte of the node that a link leads to."""
        name, _, path = bytes(file.data(header)).split(b"\0")[0].partition(file.separator)
        try:
            target: adf.File | None = (
                self.file(file.path.parent / name.decode(errors="surrogateescape")) if name else file
            )
        except (OSError, ValueError):
            target = None
        at = None if target is None else target.root
        for part in path.decode("utf-8", "replace").strip().strip("/").split("/"):
            if target is not None and at is not None:
                at = dict(target.children(target.node(at))).get(part)
        if target is None or at is None:
            raise HiresxError(
                f"{file.path}: {place}: the target of the link does not exist", "restore the file that it names"
            )
        return target, at


@contextmanager
def open_root(path: Path) -> Iterator[Node]:
    """Return a context manager that opens a CGNS file in the older format ADF and gives the root node of its tree.
    Raises HiresxError, with the position of the byte, for a file that is damaged."""
    with ExitStack() as stack:
        others = _Others(stack)
        try:
            file = others.file(path)
        except ValueError as error:  # an empty file cannot be mapped to memory
            raise HiresxError(f"{path}: {error}", adf.HINT) from None
        yield AdfNode(file, file.root, "", others)
