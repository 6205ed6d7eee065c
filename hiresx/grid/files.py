"""Grid of a case that names a file: Plot3D, alone or with a connectivity file, or CGNS."""

from pathlib import Path

from hiresx.case.faults import shown
from hiresx.errors import HiresxError
from hiresx.grid.connections import Grid
from hiresx.grid.connectivity import motion_of, read_connectivity
from hiresx.grid.matching import matched_connections
from hiresx.grid.plot3d import read_plot3d
from hiresx.grid.proof import prove
from hiresx.shell import word

# How the files that are read otherwise than as Plot3D begin: HDF5, and the older form of CGNS.
HDF5, ADF = b"\x89HDF\r\n\x1a\n", b"@(#)ADF Database"


def read(spec, directory: Path | None = None) -> Grid:
    """Grid of a [grid] table with `file`, `connectivity` and `period` (`hiresx.case.grids.GridFile`), its connections
    proved node by node (`hiresx.grid.proof`).

    Without a connectivity file the blocks of a Plot3D file are connected where their faces hold the same nodes.
    `period` is offered to every block; a periodic condition checks it against the nodes.
    """
    path = Path(directory or "") / spec.file
    connectivity = None if spec.connectivity is None else Path(directory or "") / spec.connectivity
    grid = read_grid(path, connectivity)
    period = {axis: motion_of(given) if hasattr(given, "axis") else tuple(given) for axis, given in spec.period.items()}
    try:
        prove(grid.blocks, grid.connections)
    except HiresxError as error:
        guessed = connectivity is None and form(path) == "Plot3D"
        mend = "what is connected was found from nodes that coincide: say it in a connectivity file" if guessed else ""
        raise HiresxError(f"{path}: {error.message}", mend or error.mend) from None
    return Grid(grid.blocks, grid.connections, tuple({**known, **period} for known in grid.period))


def read_grid(path: Path, connectivity: Path | None = None) -> Grid:
    """The grid of a file; its form is found out from the file. Raises HiresxError naming the place of what is wrong."""
    kind = form(path)
    if kind == "CGNS":
        from hiresx.grid.cgns import read_cgns

        if connectivity is not None:
            raise HiresxError(
                f"{path}: a CGNS file says itself how its blocks are connected", "leave grid.connectivity out"
            )
        return read_cgns(path)
    blocks = read_plot3d(path)
    if connectivity is not None:
        return read_connectivity(connectivity, blocks)
    return Grid(tuple(blocks), tuple(matched_connections(blocks)))


def form(path: Path) -> str:
    """ "CGNS" or "Plot3D", by how the file begins. Raises HiresxError for the old form of CGNS."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(64)
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise HiresxError(f"{shown(str(path))}: cannot be read: {why}", "check grid.file") from error
    if ADF in start:
        raise HiresxError(
            f"{path}: a CGNS file of the old form, ADF",
            f"convert it to HDF5 with the tools of CGNS: cgnsconvert -h {word(path)} NEW.cgns, "
            f"or adf2hdf {word(path)} NEW.cgns",
        )
    return "CGNS" if start.startswith(HDF5) else "Plot3D"
