"""Opening of CGNS files in either format, HDF5 or ADF."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hiresx.errors import HiresxError
from hiresx.grid import adf, cgns_adf, cgns_hdf5
from hiresx.grid.cgns_tree import Node


@contextmanager
def open_tree(path: Path) -> Iterator[Node]:
    """Return a context manager that opens a CGNS file in either format, HDF5 or ADF, and gives the root node of its
    tree. Raises HiresxError for a damaged file, and if h5py is needed and missing."""
    with path.open("rb") as file:
        start = file.read(32)
    form = cgns_adf if start.startswith(adf.STARTS) else cgns_hdf5
    try:
        with form.open_root(path) as node:
            yield node
    except MemoryError as error:
        raise HiresxError(f"{path}: {error}", "this machine's memory does not hold the grid") from None
