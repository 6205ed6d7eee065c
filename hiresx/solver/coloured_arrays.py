"""Arrays of the implicit integrator, read on the host from the storage order of the sweeps
(kernels/implicit/coloured.h, neighbours.h, inverses.h)."""

from collections.abc import Sequence

import numpy as np

from hiresx.base.arrays import Reals
from hiresx.equations.storage import SweepPrecision, packed_reals

_KINDS = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float32}


def in_grid_order(array: np.ndarray) -> np.ndarray:
    """Convert an array (..., k, j, i) from the order of the sweeps, in which the even columns of every row come first,
    to the order of the grid."""
    row = array.shape[-1]
    column = np.arange(row)
    found: np.ndarray = array[..., column // 2 + column % 2 * ((row + 1) // 2)]
    return found


def of_lines(kept: np.ndarray, size: Sequence[int], direction: int) -> np.ndarray:
    """Return an array (words, k, j, i), without ghosts, of factors of lines along `direction`
    (kernels/implicit/lines.h). `kept`: the words as the sweeps keep them, in an array with ghosts. `size`: the nodes
    along i, j, k."""
    length, (across, others) = size[direction], (n for d, n in enumerate(size) if d != direction)
    lines = across * others
    b, a = np.indices((others, across))
    place = (b * across + a) // 2 + (a + b) % 2 * ((lines + 1) // 2)
    found = kept.reshape(len(kept), -1)[:, : length * lines].reshape(len(kept), length, lines)[..., place]
    return np.moveaxis(found, 1, 3 - direction)


def in_precision(kept: Reals, numbers: int, precision: SweepPrecision, chunk_bytes: int = 0) -> np.ndarray:
    """Convert stored numbers to an array (numbers, k, j, i) of float64, or of float32 if `precision` says so, in the
    order of the grid. `kept` (reals, k, j, i): the stored array in the order of the sweeps, with two float32 in each
    float64. If `chunk_bytes` is not 0, numbers of a node that fill so many bytes are adjacent in memory
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


def in_halves(kept: Reals, variables: int) -> np.ndarray:
    """Convert the stored inverses of a GPU in FP16 (kernels/implicit/halves.h) to an array (row, column, k, j, i) of
    float32, in the order of the grid. `kept`: the stored array, as in `in_precision`, of `variables` conservative
    variables."""
    entries, numbers = variables**2, variables**2 // 2 + 1
    nodes, whole = kept[0].size, numbers // 4 * 4
    values = kept.reshape(-1).view(np.uint32)
    chunks = values[: whole * nodes].reshape(-1, nodes, 4).swapaxes(1, 2).reshape(whole, nodes)
    node, filled = np.arange(nodes), entries // 4 * 4
    words = [*chunks]
    for n in range(entries - 1, entries - 1 - (numbers - whole), -1):
        words.append(values[n * nodes + node if n >= filled else (n // 4 * nodes + node) * 4 + n % 4])
    halves = np.stack(words, axis=1).astype("<u4").view("<f2")[:, :entries].T.astype(np.float32)
    scale = (words[-1] & np.uint32(0xFFFF0000)).view(np.float32)
    return in_grid_order((halves * scale).reshape(variables, variables, *kept.shape[1:]))


def inverse_blocks(kept: Reals, variables: int, precision: SweepPrecision) -> np.ndarray:
    """Return the inverses (row, column, k, j, i) of the matrix blocks of nodes, as float64 or float32. `kept`: the
    stored array; with float32, each float64 contains two numbers. `variables`: the number of rows and columns of a
    block. `precision`: the number format of the sweeps."""
    return unpacked_inverses(in_grid_order(kept), variables, precision)


def unpacked_inverses(kept: Reals, variables: int, precision: SweepPrecision) -> np.ndarray:
    """Return the same as `inverse_blocks` from an array in the order of the grid, whose first words are those of the
    inverses."""
    own = kept[: packed_reals(variables**2, precision)]
    numbers = np.ascontiguousarray(np.moveaxis(own, 0, -1)).view(_KINDS[precision])[..., : variables**2]
    return np.moveaxis(numbers, -1, 0).reshape(variables, variables, *kept.shape[1:])
