"""Grid of a case that names a Plot3D file."""

from pathlib import Path

from hiresx.grid.connections import Grid
from hiresx.grid.matching import matched_connections
from hiresx.grid.plot3d import read_plot3d


def read(spec, directory: Path | None = None) -> Grid:
    """Grid of a [grid] table with `file` and `period` (`hiresx.case.grids.GridFile`).

    Blocks are connected where their faces hold the same nodes. `period` is offered to every block; a periodic condition
    checks it against the nodes.
    """
    path = Path(spec.file) if directory is None else Path(directory) / spec.file
    blocks = read_plot3d(path)
    period = {axis: tuple(vector) for axis, vector in spec.period.items()}
    return Grid(tuple(blocks), tuple(matched_connections(blocks)), tuple(dict(period) for _ in blocks))
