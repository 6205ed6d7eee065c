"""The tree of nodes in a CGNS file, in either file format: HDF5 (`cgns_hdf5.py`) or ADF (`cgns_adf.py`).

Arrays are shown with the dimensions of Fortran reversed: coordinates as [k, j, i]."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.grid import adf
from hiresx.grid.stored_coordinates import CoordinateSource, Nodes, StoredCoordinates, is_large

HDF5 = b"\x89HDF\r\n\x1a\n"
HINT = "write the file again: structured zones, 1-to-1 connections"
# Largest size of texts and short lists of numbers; a longer entry is not valid.
SHORT = 10_000
# Largest depth of a tree; the deepest node that is read lies at level 8.
DEEPEST = 12


class Node:
    """One node of a CGNS file: `name`, `label`, its data and its children. `place`: the path of names that leads to it.

    A subclass for each file format (HDF5, ADF) reads the children (`_all`), the shape and type of the data
    (`_described`) and the data (`_array`).
    """

    def __init__(self, path: Path, place: str, label: str):
        self.path, self.place, self.label = path, place, label
        self.name = place.rsplit("/", 1)[-1]

    @property
    def form(self) -> str:
        """Name of the file format, such as "HDF5", for messages."""
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """Type of the node's data as a NumPy name, such as "float64"; "" if the node has no data."""
        found = self._data_shape()
        return "" if found is None else found[1].name

    def _all(self) -> "Iterator[Node]":
        raise NotImplementedError

    def _data_shape(self) -> tuple[tuple[int, ...], np.dtype] | None:
        raise NotImplementedError

    def _array(self) -> np.ndarray:
        raise NotImplementedError

    def _source(self, shape: tuple[int, int, int]) -> CoordinateSource:
        raise NotImplementedError

    def error(self, what: str, hint: str = HINT) -> HiresxError:
        """Return a HiresxError whose message names the file and the path of this node. `what`: the description of the
        error. `hint`: the advice to the user."""
        return HiresxError(f"{self.path}: {self.place or '/'}: {what}", hint)

    def children(self, label: str) -> "list[Node]":
        """Return the child nodes with the CGNS label `label`, such as "Zone_t", in the order of their creation if the
        file records this order, otherwise in the order of their names."""
        return [node for node in self._below() if node.label == label]

    def child(self, name: str) -> "Node | None":
        """Return the first child node called `name`; None if there is none."""
        return next((node for node in self._below() if node.name == name), None)

    def require_child(self, name: str) -> "Node":
        """Return the first child node called `name`. Raises HiresxError if there is none."""
        node = self.child(name)
        if node is None:
            raise self.error(f"has no {name}")
        return node

    @property
    def has_data(self) -> bool:
        """Whether the node has an array of data."""
        return self._data_shape() is not None

    def numbers(self, shape: tuple[int, ...], real: bool = False) -> np.ndarray:
        """Return the data of the node as an array of numbers: int64, or float64 if `real`. Raises HiresxError if the
        data are not numbers of the given `shape`."""
        found, kind = self._of_kind("iuf" if real else "iu")
        if found != shape:
            raise self.error(f"holds {kind} of shape {found} instead of {shape}")
        return self._cast(real)

    def integer_rows(self, width: int) -> np.ndarray:
        """Return the data of the node as an integer array (n, `width`). Raises HiresxError for data of another type or
        shape."""
        found, kind = self._of_kind("iu")
        if len(found) != 2 or found[1] != width or not found[0]:
            raise self.error(f"holds {kind} of shape {found} instead of rows of {width}")
        return self._cast(False)

    def nodes(self, shape: tuple[int, int, int]) -> Nodes:
        """Return the data of the node as one coordinate (x, y or z) of all grid points of a block: an array (nk, nj,
        ni) or, for a large file, a `StoredCoordinates`, which reads the data later. `shape`: the expected shape (nk,
        nj, ni). Raises HiresxError for data of another type or shape."""
        found, kind = self._of_kind("iuf")
        if (1,) * (3 - len(found)) + found != shape:
            raise self.error(f"holds {kind} of shape {found} instead of {shape}")
        return StoredCoordinates.of(self._source(shape)) if is_large(self.path) else self._cast(True).reshape(shape)

    def vector(self, most: int) -> np.ndarray:
        """Return the data of the node as an array (n,) of finite real numbers. Raises HiresxError for more than `most`
        numbers, and for numbers that are not finite."""
        shape, _ = self._of_kind("iuf")
        if np.prod(shape) > most:
            raise self.error(f"holds {plural(int(np.prod(shape)), 'number')} instead of {most}")
        values = self._cast(True).ravel()
        if not np.isfinite(values).all():
            raise self.error("is not finite")
        return values

    def text(self) -> str:
        """Return the data of the node as one string. Raises HiresxError if the data are not text."""
        shape, kind = self._of_kind("iuS")
        if np.prod(shape) * kind.itemsize > SHORT or (kind.kind != "S" and kind.itemsize != 1):
            raise self.error("holds no text")
        return plain(self._array())

    def rows(self, width: int) -> list[str]:
        """Return the data of the node as a list of strings, which the file stores as rows of `width` characters. Raises
        HiresxError if the data are not text."""
        shape, kind = self._of_kind("iuS")
        if np.prod(shape) * kind.itemsize > SHORT or (kind.kind != "S" and kind.itemsize != 1):
            raise self.error("holds no text")
        data = self._array().tobytes()
        return [plain(data[at : at + width]) for at in range(0, len(data), width)]

    def _of_kind(self, kinds: str) -> tuple[tuple[int, ...], np.dtype]:
        found = self._data_shape()
        if found is None or found[1].kind not in kinds:
            raise self.error("has no data of the expected type")
        return found

    def _below(self) -> "Iterator[Node]":
        if self.place.count("/") > DEEPEST:
            raise self.error("the tree is too deep: its links form a cycle")
        return self._all()

    def _cast(self, real: bool) -> np.ndarray:
        with np.errstate(invalid="ignore", over="ignore"):  # `Block` reports a nan with its node
            return self._array().astype(np.float64 if real else np.int64)


def is_cgns(start: bytes) -> bool:
    """Return whether a file begins like a CGNS file (HDF5 or ADF). `start`: the first bytes of the file, 32 or more."""
    return start.startswith((HDF5, *adf.STARTS))


def plain(value: Any) -> str:
    """Return `value`, an array of characters or bytes, as a string up to the first zero byte, without surrounding
    blanks."""
    if isinstance(value, np.ndarray):
        value = value.tobytes()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return str(value).split("\0")[0].strip()
