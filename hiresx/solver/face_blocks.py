"""Stored matrix blocks of neighbours at nodes on faces with boundary conditions, for sweeps that store no other matrix
blocks of neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.equations import DIRECTIONS
from hiresx.equations.storage import MATRIX_FREE, neighbour_words
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.sweep_colours import Colours


@dataclass(frozen=True)
class FaceBlocks:
    """Matrices of the nodes of a block that lie on faces with boundary conditions; all arrays are on the device.
    `nodes`: the flat indexes of these nodes in a padded array, int32. `numbers`: an array of the padded shape with the
    number of each of these nodes, and -1 at all others. `colours`: for each of the two colours (of nodes or of lines)
    the numbers of its nodes. `blocks`: the matrices that belong to their neighbours (kernels/implicit/neighbours.h),
    reals of shape (words, node)."""

    nodes: Any
    numbers: Any
    colours: tuple[Any, Any]
    blocks: Any

    @property
    def arguments(self) -> dict[str, Any]:
        """Values for the parameters, by name, of kernels that compute or change the matrices of this object: those that
        couple a node on a face with its neighbours."""
        return {"numbers": self.numbers, "of_faces": self.blocks, "faces": self.blocks.shape[1]}


def face_blocks(case: Case, blocks: LocalBlocks, sides: Sequence[np.ndarray], colours: Colours) -> list[FaceBlocks]:
    """Return, for each block of this rank, device storage (filled with 0) for the matrices that couple nodes on faces
    with a boundary condition to their neighbours. The list is empty if the implicit integrator stores the matrices of
    all nodes. `sides`: for each block an array [k, j, i] with ghost layers, nonzero at the nodes on such faces.
    `colours`: the colours of nodes and grid lines in the Gauss-Seidel sweeps."""
    if case.implicit.storage != MATRIX_FREE:
        return []
    device, found = blocks.backend.to_device, []
    for s, behind in zip(blocks.states, sides, strict=True):
        nodes = np.flatnonzero(behind).astype(np.int32)
        numbers = np.full(behind.size, -1, np.int32)
        numbers[nodes] = np.arange(len(nodes), dtype=np.int32)
        place = np.unravel_index(nodes, s.shape)
        index = [n - h for n, h in zip(reversed(place), s.halo, strict=True)]
        along = case.implicit.direction
        first = colours.of_first(s, along)
        colour = sum((n for d, n in enumerate(index) if d != along), first + 0 * nodes) % 2
        variables = s.equations.variables
        words = 2 * DIRECTIONS * neighbour_words(MATRIX_FREE, variables)
        found.append(
            FaceBlocks(
                device(nodes),
                device(numbers.reshape(s.shape)),
                (device(np.flatnonzero(colour == 0).astype(np.int32)), device(np.flatnonzero(colour).astype(np.int32))),
                blocks.backend.zeros((words, max(len(nodes), 1)), s.real),
            )
        )
    return found
