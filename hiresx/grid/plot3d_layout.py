"""The common part of all forms of Plot3D files: blanking, shapes, and error messages."""

import math
from pathlib import Path

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid.blocks import format_size

EXPORT = "export the grid again as Plot3D: ASCII, unformatted or binary, nodes only, no IBLANK values behind them"

# The hint for a grid file that cannot be read.
UNREADABLE = "name a grid file that exists; a relative path in a case begins at the folder of the case"
CUT_SHORT = f"copy the file again if it was cut short, or {EXPORT}"


def block_arrays(values: np.ndarray, size: list[int]) -> list[np.ndarray]:
    """Return the coordinates x, y and, in 3-D, z of one Plot3D block as arrays (nk, nj, ni) in the native byte order.
    `values`: all numbers of the block in the order of the file. `size`: (ni, nj) or (ni, nj, nk)."""
    ni, nj, nk = [*size, 1][:3]
    return [c.reshape(nk, nj, ni).astype(values.dtype.newbyteorder("=")) for c in values.reshape(len(size), -1)]


def check_size(path: Path, where: str, n: int, size: list[int]) -> None:
    """Raise HiresxError if block number `n` of a Plot3D file has fewer than one node along a direction. `where`: the
    line or byte of the file `path`, for the message. `size`: (ni, nj) or (ni, nj, nk)."""
    if min(size) < 1:
        raise HiresxError(f"{path}, {where}: block {n} has the size {format_size(size)}", EXPORT)


def check_blanking(path: Path, n: int, size: list[int], blanking: np.ndarray) -> None:
    """Raise HiresxError, with the first such node, if block number `n` of the Plot3D file `path` has blanked nodes.
    `size`: (ni, nj) or (ni, nj, nk). `blanking` (nodes,): the IBLANK integers of all nodes of the block in the order of
    the file. A value of 0 marks a hole, a negative value a node that is interpolated from another block."""
    blanked = np.flatnonzero(~(blanking > 0))
    if blanked.size:
        i, j, k = np.unravel_index(int(blanked[0]), ([*size, 1])[:3], order="F")
        raise HiresxError(
            f"{path}: block {n} of {format_size(size)} nodes has {blanked.size} blanked nodes, first (i, j, k) = "
            f"({i}, {j}, {k})",
            "HiResX computes at every node: cut the blocks there, or export all nodes without IBLANK",
        )


def points(sizes: list[list[int]]) -> int:
    """Return the total number of nodes of blocks with the given `sizes`, each (ni, nj) or (ni, nj, nk)."""
    return sum(map(math.prod, sizes))
