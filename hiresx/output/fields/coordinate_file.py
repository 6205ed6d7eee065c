"""The coordinates of a series of field files, stored once in a separate netCDF file, to which the field files link.

The links are external links of HDF5 that contain only the name of the file. Every library that reads HDF5 or netCDF-4
follows them within the folder of the field file, so a run directory can be moved as a whole.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.arrays import weighted_mean
from hiresx.errors import HiresxError
from hiresx.output.fields.field_reader import AXES, FAULTS, attribute, in_order, link_target, open_hdf5
from hiresx.output.fields.selection import NodeBlock, Piece
from hiresx.output.saved import files
from hiresx.output.saved.netcdf_library import LOCK, h5py

# Attribute of the coordinate file: the SHA-256 digest of the coordinates.
DIGEST = "xyz_sha256"


def digest(pieces: Sequence[Piece], blocks: Sequence[Any]) -> str:
    """Return the SHA-256 digest, in hexadecimal, of the names, shapes and coordinates (in double precision) of the
    blocks that an output writes. `pieces`: the blocks of the output, each a range of nodes or points between nodes
    (`NodeBlock`, `SampledBlock`). `blocks`: the blocks of the grid from which they are taken, objects with name, x, y,
    z."""
    return _digest((piece.name, piece.shape, _coordinates(piece, blocks)) for piece in pieces)


def _digest(held: Iterable[tuple[str, tuple[int, ...], Iterable[np.ndarray]]]) -> str:
    found = hashlib.sha256()
    for name, shape, arrays in held:
        found.update(f"{name} {tuple(map(int, shape))};".encode())
        for values in arrays:
            found.update(np.ascontiguousarray(values, np.float64).data)
    return found.hexdigest()


def _coordinates(piece: Piece, blocks: Sequence[Any]) -> Iterator[np.ndarray]:
    """Yield x, y and z of the points as they are written, each in one or several pieces."""
    for axis in AXES:
        if isinstance(piece, NodeBlock):
            yield from getattr(blocks[piece.block], axis)[tuple(slice(*nodes) for nodes in piece.ranges)]
            continue
        found = np.empty(piece.blocks.size)
        for n in np.unique(piece.blocks):
            here = piece.blocks == n
            found[here] = weighted_mean(
                np.ravel(getattr(blocks[n], axis)), piece.nodes[:, here], piece.weights[:, here]
            )
        found[piece.missing] = np.nan
        yield found


def place(directory: Path, name: str, wanted: str) -> tuple[Path, bool]:
    """Return the path of the file with the coordinates of a series of field files, and whether this file already exists
    with the wanted coordinates. `directory`: the run directory. `name`: "fields" for the whole fields, or the name of
    an `[[output.subset]]`. `wanted`: the digest of the coordinates (`digest`). If there is a file with other
    coordinates, the path is a new one, since field files from before a restart may link to the old one."""
    for path in (directory / f"{name}_grid.nc", directory / f"{name}_grid_{wanted[:8]}.nc"):
        if not path.exists():
            return path, False
        about = path.stat()
        if _digest_of(path) == wanted and _whole(path, about.st_mtime_ns, about.st_size):
            return path, True
    return path, False


def clear(directory: str | Path, name: str) -> None:
    """Remove the coordinate files of one output. `directory`: the run directory. `name`: "fields" for the whole fields,
    or the name of an `[[output.subset]]`. The caller must have removed the field files that link to these coordinate
    files. Raises HiresxError if a file cannot be removed."""
    files.remove(Path(directory).glob(f"{name}_grid.nc"))
    files.remove(Path(directory).glob(f"{name}_grid_{'[0-9a-f]' * 8}.nc"))


def link(path: Path, groups: Iterable[str], target: str) -> None:
    """Store links to coordinates in a field file, instead of the coordinates themselves. `path`: the field file.
    `groups`: the names of its blocks. `target`: name of the coordinate file in the same folder, which has the same
    blocks. Raises OSError if the field file cannot be written."""
    library = h5py()
    # No other process writes it, and a process that was just forked may still hold the lock under which it was made.
    with LOCK, library.File(path, "a", locking=False) as file:
        for group in groups:
            for axis in AXES:
                file[group][axis] = library.ExternalLink(target, f"/{group}/{axis}")


def check(path: Path) -> None:
    """Raise HiresxError if the coordinate file to which the field file `path` links was changed after it was written.
    Each version of a coordinate file is read and compared with its digest once in a process."""
    name = link_target(path)
    if not name:
        return
    place = path.with_name(name)
    try:
        about = place.stat()
    except OSError:
        return  # the reader reports it
    if not _whole(place, about.st_mtime_ns, about.st_size):
        raise HiresxError(
            f"its coordinates, in {name}, are not those that were written: the file was changed or damaged",
            "put the file back; a run of the same grid writes the same one",
        )


@cache
def _whole(path: Path, changed: int, size: int) -> bool:
    """True if the coordinate file has the coordinates of its digest, or has no digest."""
    wanted = _digest_of(path)
    with suppress(*FAULTS), open_hdf5(path) as file:
        return not wanted or wanted == _digest((g.name[1:], g["x"].shape, _planes(g)) for g in in_order(file))
    return not wanted


def _planes(group: Any) -> Iterator[np.ndarray]:
    for axis in AXES:
        for k in range(group[axis].shape[0]):
            yield group[axis][k]


def _digest_of(path: Path) -> str:
    with suppress(*FAULTS), open_hdf5(path) as file:
        return attribute(file, DIGEST)
    return ""
