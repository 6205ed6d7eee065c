"""Blocks of nodes, their connections, and the generators and files from which they come."""

import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from hiresx.case.grid_file import GridFile
from hiresx.case.grids import GridTable
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block
from hiresx.grid.connections import Connection, Grid, periodic_connections
from hiresx.grid.connectivity import read_connectivity, write_connectivity
from hiresx.grid.connectivity_check import ConnectionCheck, check_connections
from hiresx.grid.from_file import read, read_grid
from hiresx.grid.matching import matched_connections
from hiresx.grid.motions import Motion
from hiresx.grid.plot3d import read_plot3d, write_plot3d
from hiresx.grid.quality import check_jacobian, quality
from hiresx.grid.size import refuse

__all__ = [
    "Block",
    "Connection",
    "Grid",
    "Motion",
    "build",
    "check_connections",
    "check_jacobian",
    "matched_connections",
    "periodic_connections",
    "prove",
    "quality",
    "read_connectivity",
    "read_grid",
    "read_plot3d",
    "write_connectivity",
    "write_plot3d",
]


def prove(blocks: Sequence[Block], connections: Sequence[Connection]) -> list[ConnectionCheck]:
    """Return the result of `check_connections`. `prove` is the former name of that function, which is kept for one
    version."""
    warnings.warn("hiresx.grid.prove is check_connections now", FutureWarning, stacklevel=2)
    return check_connections(blocks, connections)


def build(spec: GridTable, directory: Path | None = None) -> Grid:
    """Return the grid that the table [grid] of a case file describes. The grid is generated, or read from a Plot3D or
    CGNS file. `spec`: the table as one of the models of `hiresx.case.grids`. `directory`: the folder to which a file
    name in the table is relative, by default the current one. Raises HiresxError for grids that cannot be made or read,
    or are too large for the memory of this machine."""
    if isinstance(spec, GridFile):
        return read(spec, directory)
    name = spec.generator.replace("-", "_")
    refuse(spec.nodes)
    try:
        made: Grid = import_module(f"hiresx.grid.generators.{name}").generate(spec)
        return made
    except (MemoryError, OverflowError, ValueError) as error:
        if isinstance(error, ValueError) and "Maximum allowed" not in str(error):
            raise  # NumPy raises this for more nodes than the address space holds
        raise HiresxError(
            f"grid: {error}", "ask for fewer nodes: this machine's memory does not hold the grid"
        ) from None
