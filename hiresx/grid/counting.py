"""The number of nodes of a grid file, from its header only."""

from math import prod
from pathlib import Path

from hiresx.case.grid_file import GridFile
from hiresx.errors import HiresxError
from hiresx.grid.cgns_file import open_tree
from hiresx.grid.from_file import file_kind
from hiresx.grid.plot3d_binary import find_layout


def file_nodes(spec: GridFile, directory: Path | None) -> int | None:
    """Return the number of nodes of the grid file that `spec` names, from the sizes in the file's headers, without
    reading coordinates. `directory`: the folder to which the file name is relative; None: the current one. The result
    is None for a grid that is coarsened, for a text file, and for a file that cannot be read (reading it later raises
    the error)."""
    if spec.coarsen:
        return None
    path = Path(directory or "") / spec.file
    try:
        if file_kind(path) == "CGNS":
            with open_tree(path) as root:
                (base,) = root.children("CGNSBase_t")
                cells = int(base.numbers((2,))[0])
                return sum(prod(map(int, z.numbers((3, cells))[0])) for z in base.children("Zone_t"))
        with path.open("rb") as file:
            if b"\0" not in file.read(64):
                return None
            return sum(prod(size) for size, _ in find_layout(path, file, file.seek(0, 2)).blocks)
    except (HiresxError, OSError, ValueError):
        return None
