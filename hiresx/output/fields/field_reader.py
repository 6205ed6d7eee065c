"""Access to field files with h5py, which only reads the headers of the blocks that are used. (The netCDF library reads
the headers of all blocks when it opens a file, which takes 10 s for 1,025 blocks.)"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.saved import files
from hiresx.output.saved.netcdf_library import LOCK, h5py

AXES = ("x", "y", "z")
_DIMENSIONS = ("k", "j", "i")
# Exceptions of h5py for invalid files.
FAULTS = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)


class FieldReader(Sequence[Any]):
    """The blocks of an open field file: a sequence of HDF5 groups (h5py) in the order in which the blocks were written.
    `path`: of the file. `file`: the h5py file."""

    def __init__(self, path: Path, file: Any):
        self.path, self.file = path, file

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the blocks in the file, in the order in which they were written."""
        about = self.path.stat()
        return _names(self.path, about.st_mtime_ns, about.st_size)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, n: Any) -> Any:
        return self.file[self.names[n]]

    @property
    def time(self) -> float:
        """Time of the fields, in units of L / c_ref (length scale over sound speed)."""
        return float(self.file["time"][()])

    @property
    def step(self) -> int:
        """Number of time steps that the run had made when the fields were stored."""
        return int(self.file["step"][()])

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Number of nodes (nk, nj, ni) of each block, by the block's name."""
        return {name: tuple(len(self.file[name][n]) for n in _DIMENSIONS) for name in self.names}


@contextmanager
def open_file(path: str | Path) -> Iterator[FieldReader]:
    """Open the field file `path` for reading, as a context whose value is a `FieldReader`. A lock of another process on
    the file is ignored. Raises HiresxError, which names the path, if the file is missing, damaged or not a field file,
    or if its coordinate file is missing. An error that is found while the file is read in the context is raised in the
    same way."""
    path = Path(path)
    try:
        with open_hdf5(path) as file:
            if (link := _link_target(file)) and not path.with_name(link).is_file():
                raise HiresxError(
                    f"it has its coordinates in {link}, which is not beside it", "keep the two in one folder"
                )
            yield FieldReader(path, file)
    except HiresxError as error:
        raise HiresxError(f"{path}: {error.message}", error.hint) from None
    except FileNotFoundError as error:
        raise files.io_error(path, error, "read") from None
    except FAULTS as error:
        raise HiresxError(
            f"{path} is not a whole field file ({files.describe_path(path) or error})",
            "give one that hiresx run wrote; if it was cut off or changed, copy it again",
        ) from None


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open the HDF5 file `path` for reading, as a context whose value is the h5py file. Raises OSError if it cannot be
    opened."""
    with LOCK, h5py().File(path, "r", locking=False) as file:
        yield file


def link_target(path: Path) -> str:
    """Return the name of the coordinate file to which the field file `path` links; "" if the field file contains the
    coordinates, or cannot be read."""
    with suppress(*FAULTS), open_hdf5(path) as file:
        return _link_target(file)
    return ""


def _link_target(file: Any) -> str:
    for group in file.values():  # that of any block, since all are alike
        if hasattr(group, "keys"):
            found = group.get("x", getlink=True)
            return str(found.filename) if isinstance(found, h5py().ExternalLink) else ""
    return ""


def in_order(file: Any) -> list[Any]:
    """Return the HDF5 groups of the blocks of an open field file (h5py), in the order in which the blocks were
    written."""
    found = (entry for entry in file.values() if hasattr(entry, "keys"))
    return sorted(found, key=lambda group: int(np.ravel(group.attrs["index"])[0]))


@lru_cache(maxsize=64)
def _names(path: Path, changed: int, size: int) -> tuple[str, ...]:
    """Return the names of the blocks of a file in their order; a file that was written anew is read anew."""
    with open_hdf5(path) as file:
        return tuple(group.name.lstrip("/") for group in in_order(file))


def variables(group: Any) -> list[str]:
    """Return the names of the variables in the HDF5 group of a block, without coordinates, in the order in which they
    were written."""
    library = h5py()
    found: list[str] = []
    group.id.links.iterate(lambda name: found.append(name.decode()), idx_type=library.h5.INDEX_CRT_ORDER)
    return [name for name in found if name not in (*AXES, *_DIMENSIONS)
            and group.get(name, getclass=True) is library.Dataset]  # fmt: skip


def attribute(entry: Any, name: str) -> str:
    """Return the attribute `name` of `entry`, an HDF5 file, group or dataset, as text; "" if it does not exist."""
    value = entry.attrs.get(name, "")
    value = np.ravel(value)[0] if isinstance(value, np.ndarray) else value
    return value.decode() if isinstance(value, bytes) else str(value)
