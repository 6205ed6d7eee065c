"""The tree of nodes that a CGNS file is, in its HDF5 form.

A node is a group with the attributes name, label and type, its data the dataset " data", dimensions reversed; a link
(type LK) leads to a group of this or of another file by the HDF5 link " link" (CGNS file mapping for HDF5).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hiresx import optional
from hiresx.errors import HiresxError
from hiresx.shell import word

MEND = "write the file again: structured zones, 1-to-1 connections, HDF5"
# Texts and short lists of numbers; what claims to be longer is none.
SHORT = 10_000
# Levels of a tree: the deepest node that is looked at lies at the eighth.
DEEPEST = 12


class Node:
    """One node: `name`, `label`, its data and its children. `place`: the path of names that leads to it."""

    def __init__(self, path: Path, group: Any, place: str = ""):
        self.path, self.group, self.place = path, group, place
        self.name = place.rsplit("/", 1)[-1]
        self.label = _plain(group.attrs.get("label", b""))

    def fault(self, what: str, mend: str = MEND) -> HiresxError:
        """The error that says `what` of this node."""
        return HiresxError(f"{self.path}: {self.place or '/'}: {what}", mend)

    def children(self, label: str) -> "list[Node]":
        """Children with a label, in the order in which they were made where the file knows it, else by name."""
        return [node for node in self._all() if node.label == label]

    def child(self, name: str) -> "Node | None":
        return next((node for node in self._all() if node.name == name), None)

    def needed(self, name: str) -> "Node":
        node = self.child(name)
        if node is None:
            raise self.fault(f"has no {name}")
        return node

    @property
    def has_data(self) -> bool:
        return " data" in self.group

    def numbers(self, shape: tuple[int, ...], real: bool = False) -> np.ndarray:
        """Its numbers, which must have `shape` as h5py shows it: int64, or float64 if `real`."""
        data = self._dataset("iuf" if real else "iu")
        if data.shape != shape:
            raise self.fault(f"holds {data.dtype} of shape {data.shape} instead of {shape}")
        return _cast(data, real)

    def vector(self, most: int) -> np.ndarray:
        """Its `most` finite real numbers, or less."""
        data = self._dataset("iuf")
        if data.size > most:
            raise self.fault(f"holds {data.size} numbers instead of {most}")
        values = _cast(data, True).ravel()
        if not np.isfinite(values).all():
            raise self.fault("is not finite")
        return values

    def text(self) -> str:
        """Its characters."""
        data = self._dataset("iuS")
        if data.size * data.dtype.itemsize > SHORT or (data.dtype.kind != "S" and data.dtype.itemsize != 1):
            raise self.fault("holds no text")
        return _plain(np.asarray(data[()]))

    def _dataset(self, kinds: str) -> Any:
        import h5py

        data = self.group.get(" data")
        if not isinstance(data, h5py.Dataset) or data.shape is None or data.dtype.kind not in kinds:
            raise self.fault("has no data of the kind that is wanted")
        return data

    def _all(self) -> "Iterator[Node]":
        import h5py

        if self.place.count("/") > DEEPEST:
            raise self.fault("the tree is too deep: a link leads in a circle")
        for name in _names(self.group):
            child = None if name.startswith(" ") else self.group.get(name)
            if isinstance(child, h5py.Group):
                place = f"{self.place}/{name}"
                if _plain(child.attrs.get("type", b"")) == "LK":
                    child = self._linked(child, place)
                yield Node(self.path, child, place)

    def _linked(self, group: Any, place: str) -> Any:
        import h5py

        target = group.get(" link")
        if not isinstance(target, h5py.Group):
            raise HiresxError(
                f"{self.path}: {place}: the link leads nowhere", "put the file that it leads to back where it was"
            )
        return target


@contextmanager
def opened(path: Path) -> Iterator[Node]:
    """The root of a file. Raises HiresxError when h5py is missing and for what it has to say of a damaged file."""
    h5py = optional.needed("h5py", f"{path}: CGNS files are read by h5py", "pip install 'hiresx[cgns]'")
    try:
        with h5py.File(path, "r", locking=False) as file:
            if " version" in file and " hdf5version" not in file:
                raise HiresxError(
                    f"{path}: written by a version of the CGNS library before 3.1, in another order of dimensions",
                    f"bring it up to date with the tools of CGNS: cgnsconvert -f -h {word(path)} NEW.cgns",
                )
            yield Node(path, file)
    except MemoryError as error:
        raise HiresxError(f"{path}: {error}", "this machine's memory does not hold the grid") from None
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
        words = " ".join(str(error.args[0] if error.args else error).split())[:200]
        raise HiresxError(f"{path}: cannot be read as HDF5: {words}", MEND) from error


def _names(group: Any) -> list[str]:
    names = list(group)  # in the order in which they were made where the group keeps it
    if group.id.get_create_plist().get_link_creation_order():
        return names
    return sorted(names, key=lambda name: [(len(p), p) if p.isdigit() else (0, p) for p in re.split(r"(\d+)", name)])


def _plain(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.tobytes()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return str(value).split("\0")[0].strip()


def _cast(data: Any, real: bool) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):  # a block refuses a nan, naming its node
        return np.asarray(data[()]).astype(np.float64 if real else np.int64)
