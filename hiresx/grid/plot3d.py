"""Plot3D grid files: text, Fortran unformatted or a C stream, one block or many, 2-D or 3-D, single or double.

Layout: [number of blocks], the sizes ni nj (nk) of all blocks, then per block all x, all y, (all z), i fastest, and
with blanking an integer per node, which must be positive everywhere.
"""

import os
from pathlib import Path
from typing import IO, Literal

import numpy as np

from hiresx.base.argument_types import check_types
from hiresx.base.arrays import triple
from hiresx.base.whole_files import writing
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, RawBlock
from hiresx.grid.connections import Grid
from hiresx.grid.plot3d_binary import read_binary
from hiresx.grid.plot3d_layout import EXPORT, UNREADABLE
from hiresx.grid.plot3d_text import read_ascii
from hiresx.grid.stored_coordinates import Nodes

# Longest subrecord that gfortran and ifort write.
SUBRECORD = 2**31 - 9


@check_types
def read_plot3d(path: str | os.PathLike[str]) -> list[Block]:
    """Read the blocks of a Plot3D file, which get the names "block-1", "block-2", ... Coordinates are float64 and not
    scaled; z is 0 for a 2-D file. Text or binary form, byte order, precision, number of blocks, dimensions and blanking
    are detected. Sizes are compared with the length of the file before memory is allocated. Raises HiresxError, with
    the line (ASCII) or byte (binary), for a file that is not Plot3D, and for blanked nodes."""
    return [Block(block.name, *block.coordinates, rounding=block.rounding) for block in raw_blocks(path)]


def raw_blocks(path: str | os.PathLike[str]) -> list[RawBlock]:
    """Read the blocks of a Plot3D file, with any number of nodes in each direction. (`hiresx.grid.plane` may convert
    them to blocks that the solver accepts.) Raises HiresxError for a file that cannot be read or is not Plot3D."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            arrays: list[list[Nodes]]
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise HiresxError(f"{path}: the file is empty", EXPORT)
            start = file.read(64)
            file.seek(0)
            # Integers below 2^24 have a zero byte, text has none.
            if b"\0" in start:
                arrays = read_binary(path, file, size)
            else:
                arrays = [list(block) for block in read_ascii(path, file.read())]
    except OSError as error:
        raise HiresxError(
            f"{path}: cannot be read: {error.strerror or error}",
            UNREADABLE,
        ) from error
    try:
        return [
            RawBlock(f"block-{n}", *triple([*nodes, *[np.broadcast_to(0.0, nodes[0].shape)] * (3 - len(nodes))]))
            for n, nodes in enumerate(arrays, 1)
        ]
    except HiresxError as error:
        raise HiresxError(f"{path}: {error.message}", error.hint) from None


@check_types
def write_plot3d(
    path: str | os.PathLike[str],
    grid: Grid,
    *,
    ascii: bool = False,
    precision: str = "fp64",
    big_endian: bool = False,
    planar: bool = False,
    single: bool = False,
) -> None:
    """Write the blocks of a grid to the Plot3D file `path`, which is replaced only when everything is written. `ascii`:
    text instead of unformatted records. `precision`: "fp64" or "fp32". `big_endian`: whether the bytes of a number are
    in the big-endian order. `planar`: the 2-D layout, without z and nk, for grids with nk = 1. `single`: the layout
    without the number of blocks, for a grid of one block. Raises HiresxError if the layout does not fit the grid or the
    file cannot be written."""
    path = Path(path)
    if planar and any(block.size[2] > 1 for block in grid.blocks):
        raise HiresxError(f"{path}: a grid with nk > 1 has no 2-D layout", "write it without `planar`")
    if single and len(grid.blocks) != 1:
        raise HiresxError(f"{path}: {len(grid.blocks)} blocks have no single-block layout", "write without `single`")
    dimensions = 2 if planar else 3
    sizes = [block.size[:dimensions] for block in grid.blocks]
    real = np.dtype({"fp64": "f8", "fp32": "f4"}[precision])
    put = _put_ascii if ascii else _put_record
    order: Literal["<", ">"] = ">" if big_endian else "<"
    with writing(path) as temporary, temporary.open("wb") as file:
        if not single:
            put(file, np.array([len(sizes)], order + "i4"))
        put(file, np.array(sizes, order + "i4").ravel())
        for block in grid.blocks:
            nodes = np.stack([block.x, block.y, block.z][:dimensions]).ravel()
            put(file, nodes.astype(real.newbyteorder(order)))


def _put_ascii(file: IO[bytes], values: np.ndarray) -> None:
    if values.dtype.kind == "i":
        file.write((" ".join(map(str, values)) + "\n").encode())
        return
    # Shortest text that reads back as the same number in the array's precision.
    for n in range(0, len(values), 6):
        file.write((" ".join(map(str, values[n : n + 6])) + "\n").encode())


def _put_record(file: IO[bytes], values: np.ndarray) -> None:
    data = values.view("u1")
    marker = np.dtype("i4") if values.dtype.isnative else np.dtype("i4").newbyteorder("S")
    for n in range(0, len(data), SUBRECORD):
        part = data[n : n + SUBRECORD]
        more, less = n + SUBRECORD < len(data), n > 0
        file.write(np.array(-len(part) if more else len(part), marker).tobytes())
        file.write(part.data)
        file.write(np.array(-len(part) if less else len(part), marker).tobytes())
