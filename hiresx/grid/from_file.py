"""Grid of a case that names a file: Plot3D, alone or with a connectivity file, or CGNS."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hiresx.base.argument_types import check_types
from hiresx.base.whole_files import describe_path
from hiresx.case.error_messages import format_value
from hiresx.case.grid_file import GridFile, Rotation
from hiresx.errors import HiresxError
from hiresx.grid.blocks import read_whole
from hiresx.grid.cgns_tree import is_cgns
from hiresx.grid.connections import Grid
from hiresx.grid.connectivity import motion_of, read_connectivity
from hiresx.grid.connectivity_check import OverlapError, check_connections
from hiresx.grid.doubled import refuse_doubled
from hiresx.grid.matching import matched_connections, outside_regions
from hiresx.grid.motions import Motion, Vector
from hiresx.grid.plane import checked_grid, flatten, make_right_handed, move_grid, reverse_i
from hiresx.grid.plot3d import raw_blocks
from hiresx.grid.plot3d_binary import find_layout
from hiresx.grid.plot3d_layout import UNREADABLE
from hiresx.grid.shaping import shape_grid
from hiresx.grid.touching import drop_chance_contacts, touching

log = logging.getLogger(__name__)


def read(spec: GridFile, directory: Path | None = None) -> Grid:
    """Read a grid file and return its grid with the changes that `spec`, the table [grid] of a case file, asks for. All
    connections are checked node by node (`hiresx.grid.connectivity_check`). The key `period` of the table applies to
    every block; whether the nodes have this period is checked later, with the periodic boundary conditions.
    `directory`: the folder to which the paths in the table are relative, by default the current one. Raises
    HiresxError, with the path and the location, for a file that cannot be read and for a connection whose nodes do not
    match."""
    path = Path(directory or "") / spec.file
    connectivity = None if spec.connectivity is None else Path(directory or "") / spec.connectivity
    grid, words = load_grid(spec, path, connectivity)
    for line in words:
        log.info("%s: %s", path, line)
    period: dict[str, Vector | Motion] = {
        axis: motion_of(given) if isinstance(given, Rotation) else given for axis, given in spec.period.items()
    }
    try:
        check_connections(grid.blocks, grid.connections)
    except HiresxError as error:
        guessed = connectivity is None and file_kind(path) == "Plot3D" and not isinstance(error, OverlapError)
        hint = "what is connected was found from nodes that coincide: say it in a connectivity file" if guessed else ""
        raise HiresxError(f"{path}: {error.message}", hint or error.hint) from None
    return replace(grid, period=tuple({**known, **period} for known in grid.period))


@check_types
def read_grid(path: Path, connectivity: Path | None = None) -> Grid:
    """Read a grid file (Plot3D or CGNS) and return the grid in the form that the solver accepts: plane grids in the x-y
    plane, right-handed blocks. `connectivity`: the connectivity file of a Plot3D grid, or None. The format of the file
    is detected. Raises HiresxError for a file that contains no valid grid; the message names the location of the
    error."""
    return load_grid(GridFile(file=str(path)), path, connectivity)[0]


def load_grid(spec: GridFile, path: Path, connectivity: Path | None) -> tuple[Grid, list[str]]:
    """Return (the grid of the file `path`, sentences on the changes made to it). `spec`: the table [grid] of a case
    file, which says which parts of the file are read and how the grid is changed. `connectivity`: the connectivity file
    of a Plot3D grid, or None. Raises HiresxError, which names the path, for a file that contains no valid grid."""
    grid, joined, read = read_raw(path, connectivity, spec.drop)
    try:
        grid, words = _prepare(grid, spec, joined)
        return grid, read + words
    except HiresxError as error:
        raise HiresxError(f"{path}: {error.message}", error.hint) from None


def read_raw(
    path: Path, connectivity: Path | None, drop: Sequence[str] = (), broken: dict[str, str] | None = None
) -> tuple[Grid, bool, list[str]]:
    """Return the unchanged grid of a Plot3D or CGNS file, whether connections are given (by a CGNS file, or by
    `connectivity`), and sentences on the conversion of coordinates to metres. `connectivity`: the connectivity file of
    a Plot3D grid, or None. `drop`: names of CGNS boundary patches and connections to leave out. `broken`: a dictionary
    that is filled with the CGNS patches whose nodes cannot be found, as ZONE/PATCH, and the reasons; without it they
    are errors. Raises HiresxError for a file that contains no valid grid; the message names the location of the
    error."""
    if file_kind(path) == "CGNS":
        from hiresx.grid.cgns import read_cgns

        if connectivity is not None:
            raise HiresxError(
                f"{path}: a CGNS file says itself how its blocks are connected", "leave grid.connectivity out"
            )
        return read_cgns(path, drop, broken)
    if drop:
        raise HiresxError(f"{path}: grid.drop: a Plot3D file has no patches", "leave grid.drop out")
    blocks = raw_blocks(path)
    if connectivity is None:
        return Grid(tuple(blocks)), False, []
    return read_connectivity(connectivity, blocks), True, []


def _prepare(grid: Grid, spec: GridFile, joined: bool) -> tuple[Grid, list[str]]:
    words = []
    if spec.plane == "auto":
        grid, notes = flatten(grid)
        words += notes
    if spec.reverse != "keep":
        grid, notes = make_right_handed(grid) if spec.reverse == "auto" else reverse_i(grid, spec.reverse)
        words += notes
    grid, notes = _in_memory(grid, spec)
    words += notes
    grid = checked_grid(grid)
    by = motion_of(spec.rotate, spec.translate) if spec.rotate else Motion(None, spec.translate)
    if spec.scale != 1 or not by.still:
        grid = move_grid(grid, by, spec.scale)
    if not joined:
        matched = outside_regions(grid.blocks, matched_connections(grid.blocks))
        grid, notes = drop_chance_contacts(replace(grid, connections=tuple(matched)))
        words += notes
    grid, notes = shape_grid(grid, spec)
    grid = checked_grid(grid)
    if not any(block.is_stored for block in grid.blocks):  # `hiresx check` examines these grids
        refuse_doubled(grid)
    return replace(grid, touching=tuple(touching(grid))), words + notes


def _in_memory(grid: Grid, spec: GridFile) -> tuple[Grid, list[str]]:
    """Return (a grid in memory, notes). Nodes are read if a later operation needs all of them at once."""
    if not any(block.is_stored for block in grid.blocks):
        return grid, []
    keys = [key for key in ("rotate", "translate", "coarsen", "mirror", "extrude", "revolve") if _is_set(spec, key)]
    if not keys and all(len(block.active) == 3 for block in grid.blocks):
        return grid, []
    why = f"for grid.{keys[0]}" if keys else "for a grid that is not three-dimensional"
    return replace(grid, blocks=read_whole(grid.blocks)), [f"read whole by the first rank of every host {why}"]


def _is_set(spec: GridFile, key: str) -> bool:
    value = getattr(spec, key)
    return any(value) if key == "translate" else bool(value)


def describe_form(path: Path) -> str:
    """Return a description of a grid file for the user: format, byte order and precision. Raises HiresxError for a file
    that is not a readable grid."""
    if file_kind(path) == "CGNS":
        from hiresx.grid.cgns import describe_cgns

        return describe_cgns(path)
    with path.open("rb") as file:
        if b"\0" not in file.read(64):
            return "text"
        return find_layout(path, file, file.seek(0, 2)).describe


def file_kind(path: Path) -> str:
    """Return "CGNS" or "Plot3D", the kind of the grid file `path` according to its first bytes. Raises HiresxError for
    a file that cannot be read."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe without a writer would block for ever
            raise ValueError(f"it {describe_path(path)}")
        with Path(path).open("rb") as file:
            start = file.read(64)
    except (OSError, ValueError) as error:  # a ValueError is raised for an invalid file name
        why = getattr(error, "strerror", None) or error
        raise HiresxError(
            f"{format_value(str(path))}: cannot be read: {why}",
            UNREADABLE,
        ) from error
    return "CGNS" if is_cgns(start) else "Plot3D"
