"""The blocks of the implicit integrator as its sweeps keep them, read on the host."""

import numpy as np

from hiresx.base.arrays import Reals
from hiresx.equations.storage import BLOCK_BITS, BlockStorage, neighbour_words, packed_reals
from hiresx.equations.system import transported_units
from hiresx.solver.coloured_arrays import in_grid_order


def diagonal_blocks(blocks: Reals, variables: int) -> Reals:
    """Return the diagonal blocks (row, column, k, j, i) from the field `implicit_blocks`, before it is factored."""
    found = in_grid_order(blocks[: variables**2])
    return found.reshape(variables, variables, *found.shape[1:])


def neighbour_blocks(blocks: Reals, storage: BlockStorage, variables: int, model: str = "none") -> Reals:
    """Return the blocks that couple a node with its six neighbours, (side, row, column, k, j, i), from the field
    `implicit_blocks`. `variables`: how many a block has; the last ones are those of the turbulence model `model`."""
    return _numbers(in_grid_order(blocks[variables**2 :]), 6, storage, variables, model)


def line_blocks(factors: Reals, storage: BlockStorage, variables: int, model: str) -> Reals:
    """Return the inverse of the pivot times the blocks before and behind a node, (2, row, column, k, j, i), from the
    `factors` of lines of sweeps in FP32, in the order of the grid (hiresx.solver.coloured_arrays.of_lines)."""
    own: BlockStorage = storage if storage == "fp16" else "fp32"
    return _numbers(factors[packed_reals(variables**2, "fp32") :], 2, own, variables, model)


def _numbers(kept: Reals, blocks: int, storage: BlockStorage, variables: int, model: str) -> Reals:
    """The numbers of so many blocks of each node, of the words (words, k, j, i) in the order of the grid."""
    bits, shape = BLOCK_BITS[storage], kept.shape[1:]
    kept = kept.reshape(blocks, neighbour_words(storage, variables), -1)
    of_node = np.ascontiguousarray(kept.transpose(0, 2, 1)).view(np.uint8)  # side, node, byte
    entries = variables**2 * bits // 8
    kind = {32: np.float32, 16: np.float16, 8: np.int8}[bits]
    numbers = np.ascontiguousarray(of_node[..., :entries]).view(kind).astype(float)
    found: Reals = numbers.reshape(blocks, -1, variables, variables)
    if bits < 32:
        exponents = of_node[..., entries : entries + variables].astype(int)
        found *= (2.0 ** (exponents - 127))[..., None]
        units = transported_units(model)
        found[..., variables - len(units) :] /= units
    return np.moveaxis(found, 1, -1).reshape(blocks, variables, variables, *shape)
