"""The coordinates of a series of field files, kept once: a netCDF file of their own, to which the others link.

The links are HDF5's external ones, by the name of the file alone: any library that reads HDF5 or netCDF-4 follows them
in the folder of the file that has them, so that a run directory may move as a whole.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hiresx import optional
from hiresx.output.fields.selection import NodeBlock, Piece
from hiresx.output.saved import files

AXES = ("x", "y", "z")
# Attribute of the file of the coordinates: SHA-256 of them.
DIGEST = "coordinates_sha256"


def h5py() -> ModuleType | None:
    """What makes links; None where it is missing: then each file has its coordinates."""
    return optional.imported("h5py")


def digest(pieces: Sequence[Piece], blocks: Sequence[Any]) -> str:
    """SHA-256 of names, shapes and coordinates of the `pieces` of the `blocks` of a grid."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(f"{piece.name} {piece.shape};".encode())
        for axis in AXES:
            if isinstance(piece, NodeBlock):
                values = getattr(blocks[piece.block], axis)
                for plane in values[tuple(slice(*nodes) for nodes in piece.ranges)]:
                    found.update(plane.tobytes())
                continue
            for n in np.unique(piece.blocks):
                here = piece.blocks == n
                values = np.ravel(getattr(blocks[n], axis))[piece.nodes[:, here]]
                found.update(values.tobytes())
                found.update(piece.weights[:, here].tobytes())
    return found.hexdigest()


def place(directory: Path, name: str, wanted: str) -> tuple[Path, bool]:
    """The file for the coordinates with the digest `wanted` of the series `name` in `directory`, and whether it is
    there. One of other coordinates stays: files from before a restart may link to it."""
    for path in (directory / f"{name}_grid.nc", directory / f"{name}_grid_{wanted[:8]}.nc"):
        if not path.exists():
            return path, False
        if _digest_of(path) == wanted:
            return path, True
    return path, False


def clear(directory: str | Path, name: str) -> None:
    """Remove the coordinates of the series `name`, whose files are gone. Raises HiresxError if one cannot go."""
    files.remove(Path(directory).glob(f"{name}_grid.nc"))
    files.remove(Path(directory).glob(f"{name}_grid_{'[0-9a-f]' * 8}.nc"))


def link(path: Path, groups: Iterable[str], target: str) -> None:
    """Give the `groups` of the file `path` the coordinates of the groups of these names in the file `target` beside it.
    Raises OSError."""
    library = h5py()
    assert library is not None
    with library.File(path, "a") as file:
        for group in groups:
            for axis in AXES:
                file[group][axis] = library.ExternalLink(target, f"/{group}/{axis}")


def missing(path: Path) -> str:
    """The name of the file that `path` links to and that is not beside it; "" where all is there, or it cannot be
    found out."""
    library = h5py()
    if library is None:
        return ""
    try:
        with library.File(path, "r") as file:
            for group in file.values():
                found = group.get("x", getlink=True) if hasattr(group, "get") else None
                if isinstance(found, library.ExternalLink) and not path.with_name(found.filename).is_file():
                    return str(found.filename)
    except (AttributeError, OSError, KeyError, RuntimeError, TypeError):
        pass
    return ""


def _digest_of(path: Path) -> str:
    library = h5py()
    if library is None:
        return ""
    try:
        with library.File(path, "r") as file:
            found = file.attrs.get(DIGEST, "")
            return found.decode() if isinstance(found, bytes) else str(found)
    except (AttributeError, OSError):
        return ""
