"""Arrays of the implicit integrator, read on the host from the storage order of the sweeps, in which the nodes of a row
with even i come before those with odd i (kernels/implicit/coloured.h, neighbours.h, inverses.h)."""

from collections.abc import Sequence

import numpy as np

from hiresx.base.arrays import Reals
from hiresx.equations.storage import SweepPrecision, packed_reals

_KINDS = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float32}


def in_grid_order(array: np.ndarray) -> np.ndarray:
    """Return an array of the sweeps of the implicit integrator in the order of the grid. `array` (..., k, j, i): the
    stored array, in which the even columns of every row along i come first, then the odd ones."""
    row = array.shape[-1]
    column = np.arange(row)
    found: np.ndarray = array[..., column // 2 + column % 2 * ((row + 1) // 2)]
    return found


def of_lines(kept: np.ndarray, size: Sequence[int], direction: int) -> np.ndarray:
    """Return the stored factors of the block-tridiagonal matrices of grid lines (kernels/implicit/lines.h) as an array
    (words, k, j, i) of 8-byte words in the order of the grid, without ghost layers. `kept`: the array with ghost layers
    in which the sweeps of the implicit integrator store the factors. `size`: the numbers of nodes along i, j, k.
    `direction`: the index direction of the lines, 0, 1 or 2."""
    length, (across, others) = size[direction], (n for d, n in enumerate(size) if d != direction)
    lines = across * others
    b, a = np.indices((others, across))
    place = (b * across + a) // 2 + (a + b) % 2 * ((lines + 1) // 2)
    found = kept.reshape(len(kept), -1)[:, : length * lines].reshape(len(kept), length, lines)[..., place]
    return np.moveaxis(found, 1, 3 - direction)


def in_precision(kept: Reals, numbers: int, precision: SweepPrecision, chunk_bytes: int = 0) -> np.ndarray:
    """Return stored numbers of the implicit integrator as an array (numbers, k, j, i) of float64, or of float32 if
    `precision` says so, in the order of the grid. `kept` (reals, k, j, i): the stored array, with the nodes in the
    order in which the Gauss-Seidel sweeps store them (see the module); with float32, each float64 contains two numbers.
    If `chunk_bytes` is not 0, numbers of a node that fill so many bytes are adjacent in memory
    (kernels/implicit/chunks.h)."""
    nodes = kept[0].size
    values = kept.reshape(-1).view(_KINDS[precision])[: numbers * nodes]
    size = max(chunk_bytes // values.itemsize, 1)
    whole = numbers // size * size
    chunks, rows = np.split(values, [whole * nodes])
    ordered = np.concatenate(
        [chunks.reshape(-1, nodes, size).swapaxes(1, 2).reshape(whole, nodes), rows.reshape(-1, nodes)]
    )
    return in_grid_order(ordered.reshape(numbers, *kept.shape[1:]))


def inverse_blocks(kept: Reals, variables: int, precision: SweepPrecision) -> np.ndarray:
    """Return the inverses (row, column, k, j, i) of the diagonal matrix blocks of the implicit integrator, as float64
    or float32. `kept` (reals, k, j, i): the stored array, with the nodes in the order in which the sweeps store them;
    with float32, each float64 contains two numbers. Its first `packed_reals(variables**2, precision)` reals are used.
    The result has the nodes of `kept` in the order of the grid. `variables`: the number of rows and columns of a block.
    `precision`: the number format of the sweeps."""
    return unpacked_inverses(in_grid_order(kept), variables, precision)


def unpacked_inverses(kept: Reals, variables: int, precision: SweepPrecision) -> np.ndarray:
    """Return the inverses (row, column, k, j, i) of the diagonal matrix blocks of the implicit integrator from an array
    in the order of the grid. `kept` (words, k, j, i): the stored array, whose first 8-byte words contain the inverses.
    `variables`: the number of rows and columns of a block. `precision`: the number format of the sweeps."""
    own = kept[: packed_reals(variables**2, precision)]
    numbers = np.ascontiguousarray(np.moveaxis(own, 0, -1)).view(_KINDS[precision])[..., : variables**2]
    return np.moveaxis(numbers, -1, 0).reshape(variables, variables, *kept.shape[1:])
