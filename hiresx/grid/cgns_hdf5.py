"""CGNS files in the HDF5 format (CGNS file mapping for HDF5).

A node is a group with the attributes name, label and type, its data the dataset " data", dimensions reversed; a link
(type LK) leads to a group of this or of another file by the HDF5 link " link"."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.base.shell import quote
from hiresx.errors import HiresxError
from hiresx.grid.cgns_tree import HINT, Node, plain
from hiresx.grid.stored_coordinates import CoordinateSource, Hdf5Dataset


class Hdf5Node(Node):
    """A node of a CGNS file that is a group of an HDF5 file. `place`: the path of names that leads to it."""

    def __init__(self, path: Path, group: Any, place: str = ""):
        super().__init__(path, place, plain(group.attrs.get("label", b"")))
        self.group = group

    @property
    def form(self) -> str:
        """Name of the file format, "HDF5"."""
        return "HDF5"

    def _data_shape(self) -> tuple[tuple[int, ...], np.dtype] | None:
        import h5py

        data = self.group.get(" data")
        if not isinstance(data, h5py.Dataset) or data.shape is None:
            return None
        return data.shape, data.dtype

    def _array(self) -> np.ndarray:
        return np.asarray(self.group[" data"][()])

    def _source(self, shape: tuple[int, int, int]) -> CoordinateSource:
        data = self.group[" data"]
        return Hdf5Dataset(Path(data.file.filename), data.name, shape)

    def _all(self) -> Iterator[Node]:
        import h5py

        for name in _names(self.group):
            child = None if name.startswith(" ") else self.group.get(name)
            if isinstance(child, h5py.Group):
                place = f"{self.place}/{name}"
                if plain(child.attrs.get("type", b"")) == "LK":
                    child = self._follow_link(child, place)
                yield Hdf5Node(self.path, child, place)

    def _follow_link(self, group: Any, place: str) -> Any:
        import h5py

        target = group.get(" link")
        if not isinstance(target, h5py.Group):
            raise HiresxError(
                f"{self.path}: {place}: the target of the link does not exist", "restore the file that it names"
            )
        return target


@contextmanager
def open_root(path: Path) -> Iterator[Node]:
    """Return a context manager that opens a CGNS file in the HDF5 format and gives the root node of its tree. Raises
    HiresxError if h5py is missing, and with h5py's message for a damaged file."""
    h5py = optional.import_required(
        "h5py", f"{path}: CGNS files in the form of HDF5 are read by h5py", "pip install h5py"
    )
    try:
        with h5py.File(path, "r", locking=False) as file:
            if " version" in file and " hdf5version" not in file:
                raise HiresxError(
                    f"{path}: written by a version of the CGNS library before 3.1, in another order of dimensions",
                    f"bring it up to date with the tools of CGNS: cgnsconvert -f -h {quote(path)} NEW.cgns",
                )
            yield Hdf5Node(path, file)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
        words = " ".join(str(error.args[0] if error.args else error).split())[:200]
        raise HiresxError(f"{path}: cannot be read as HDF5: {words}", HINT) from error


def _names(group: Any) -> list[str]:
    names = list(group)  # in the order of creation, if the group stores it
    if group.id.get_create_plist().get_link_creation_order():
        return names
    return sorted(names, key=lambda name: [(len(p), p) if p.isdigit() else (0, p) for p in re.split(r"(\d+)", name)])
