"""Which ghosts behind a plane of symmetry take the flow in their own layer before a wall, not at their mirror images.

Grid lines that meet a plane obliquely go on straight behind it, where the mirror image of a swept or inclined wall
has a kink. The images of ghosts in thin layers thus lie in the body, or far outside of these layers.
"""

from collections.abc import Callable

import numpy as np

from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.decomposition.wall_seams import same_face
from hiresx.grid.blocks import direction, side

# Walls before which layers are thin.
FRICTION = ("no_slip", "modelled_wall")
# Let a be the distance of the wall from the image of the ghost that continues it. Ghosts take the flow in their own
# layer up to the height NEAR a, and at their images from FAR a on. They take it at their images everywhere if a is at
# most NEAR first cells for each layer of ghosts, and from FAR first cells on as said. Where cells are as long as wide
# and lines lean by 45 degrees it is 2.
NEAR, FAR = 2.0, 4.0

Points = Callable[[np.ndarray], np.ndarray]


def shares_in_layers(
    whole: Decomposition,
    patch: Patch,
    index: np.ndarray,
    nodes: Points,
    off_wall: Callable[[int, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return, for each direction, the share (n, 3) to which the ghosts `index` (3, n) of a plane `patch` take the flow
    in their own layer, 0 for the mirror image.

    `nodes` returns the coordinates (m, 3) of nodes (3, m) of the block and its ghosts, `off_wall` the distances (m,) of
    the images of ghosts (3, m) that continue a wall from it, with the direction normal to the wall.
    """
    d, block = direction(patch.face), whole.blocks[patch.block]
    shares = np.zeros((index.shape[1], 3))
    for face in sorted(face for b, face in _layered(whole) if b == patch.block and direction(face) != d):
        e = direction(face)
        roots = index.copy()
        roots[e] = 0 if side(face) < 0 else block.size[e] - 1
        roots, column = np.unique(roots, axis=1, return_inverse=True)
        column = column.reshape(-1)
        above = roots.copy()
        above[e] -= side(face)
        apart = off_wall(e, roots)
        first = np.linalg.norm(nodes(above) - nodes(roots), axis=1) * np.abs(roots[d] - patch.range[d][0])
        height = np.linalg.norm(nodes(index) - nodes(roots)[column], axis=1)
        share = _share(height, apart[column]) * (1 - _share(apart, first))[column]
        shares[:, e] = np.maximum(shares[:, e], share)
    return shares


def _share(length: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """1 up to NEAR units, 0 from FAR units on."""
    ratio = np.divide(length, unit, out=np.full_like(length, FAR), where=unit > 0)
    return np.asarray(np.clip((FAR - ratio) / (FAR - NEAR), 0, 1))


def _layered(whole: Decomposition) -> set[tuple[int, str]]:
    """Blocks and faces that are walls with friction, or go on from such a face in the same or another block."""
    found = {(patch.block, patch.face) for patch in whole.patches if patch.condition.kernel in FRICTION}
    while True:
        more = {
            (c.donor, same_face(face, c, np.array([[low] for low, _ in c.range])))
            for c in whole.connections
            for b, face in found
            if c.block == b and direction(c.face) != direction(face) and not c.over_a_pole
        }
        if more <= found:
            return found
        found |= more
