"""Open faces: faces through which gas enters or leaves freely. Grid lines continue behind them on polynomials, where
these are safe."""

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from hiresx.decomposition.oblique_walls import groups, inward_rows
from hiresx.grid.blocks import Block, Range, direction
from hiresx.grid.patched import HIGHEST, STEEPEST, continues_forward, extrapolate

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Decomposition

# The kernels of inflows, outflows and the far field.
OPEN = frozenset({"prescribe", "precursor", "extrapolate", "characteristic", "total_inflow", "outflow"})
# Fraction of a step or volume below which changes of high order may be larger than the linear one.
NOISE = 0.1


def open_degrees(whole: "Decomposition") -> dict[int, int]:
    """Return the degree of the polynomials by which grid lines are extrapolated behind each open boundary patch
    (inflow, outflow, far field), as a dictionary from the number of the patch. The degree is at most 4. It is 1 where
    point reflection is as good, or no polynomial is safe. Open patches that continue each other have one degree,
    whatever their conditions are, so that neither cuts of the grid nor the borders of conditions bend the lines of
    ghosts. `whole`: the blocks, not divided among ranks."""
    places = [n for n, patch in enumerate(whole.patches) if patch.condition.kernel in OPEN]
    found: dict[int, int] = {}
    for members in groups(whole, places, lambda condition: "open"):
        patches = [whole.patches[n] for n in members]
        lines = [lines_of(whole.blocks[p.block], p.face, p.range, whole.stencil.halo) for p in patches]
        degree = min(degree for degree, _ in lines) if any(stretched for _, stretched in lines) else 1
        found.update(dict.fromkeys(members, degree))
    return found


def lines_of(block: Block, face: str, range_: Range, layers: int) -> tuple[int, bool]:
    """Return two properties of the grid lines that end at a part of a face of `block`: the highest degree, at most 4,
    of polynomials that safely extrapolate all of them over `layers` ghost layers (1 if there is none), and whether the
    lines are stretched or bent at the face. `range_`: half-open index ranges of the nodes on `face`.

    A polynomial is safe if the lines continue forwards, with steps that neither grow nor shrink too fast, and if the
    cells behind the face have volumes between a third and three times those before it. The steps and volumes of each
    line must also change smoothly: in the last ghost the changes of higher order are at most as large as the linear
    one, or small.

    Lines are neither stretched nor bent at the face if the largest linear change of their steps is at most as large as
    the largest one of higher order. The linear change is then zero, or not known, and reflected lines are as smooth."""
    rows = inward_rows(block, face, range_, HIGHEST + 1)
    along = [e for e in block.active if e != direction(face)]
    volumes = _volumes(rows, along)
    changes = [_changes(rows[:-1] - rows[1:], layers), _changes(volumes[:, None], layers)]
    stretched = bool(changes[0][0].max() > changes[0][1:].max())
    for degree in range(HIGHEST, 1, -1):
        ghosts = extrapolate(rows, degree, layers)
        behind, before = _volumes(np.concatenate([ghosts[::-1], rows[:1]]), along), abs(volumes[0])
        behind *= np.sign(volumes[0])
        if (
            continues_forward(rows, degree, layers)
            and (behind <= STEEPEST * before).all()
            and (STEEPEST * behind >= before).all()
            # polynomials of degree 2 have no quadratic change of the volume, but their validity is not known if it is
            # large
            and all((found[1 : max(degree - 1, 2)] <= np.maximum(found[0], NOISE)).all() for found in changes)
        ):
            return degree, stretched
    return 1, stretched


def _changes(values: np.ndarray, layers: int) -> np.ndarray:
    """Return the changes of values (n, components, ...) of the cells from a face inwards, by polynomials through them,
    from the first cell to the last ghost cell. The result is (n - 1, ...): the linear change, the quadratic one and so
    on, divided by the magnitude of the first value."""
    size = np.linalg.norm(values[0], axis=0)
    found = [
        comb(layers + order - 1, order) * np.linalg.norm(np.diff(values, order, axis=0)[0], axis=0)
        for order in range(1, len(values))
    ]
    return np.stack(found) / np.where(size > 0, size, 1)


def _volumes(rows: np.ndarray, along: list[int]) -> np.ndarray:
    """Return the volumes (n - 1, ...) of the cells between the rows of nodes (n, 3, nk, nj, ni) of a face (areas in the
    plane, lengths on a line), with the sign of their orientation. `along`: the directions along the face that have more
    than one node."""

    def mean(values: np.ndarray, e: int) -> np.ndarray:
        axis = values.ndim - 1 - e
        return (values.take(range(1, values.shape[axis]), axis) + values.take(range(values.shape[axis] - 1), axis)) / 2

    between, steps = (rows[1:] + rows[:-1]) / 2, rows[:-1] - rows[1:]
    for e in along:
        steps = mean(steps, e)
    edges = [np.diff(between, axis=between.ndim - 1 - e) for e in along]
    if len(edges) == 2:
        first, second = mean(edges[0], along[1]), mean(edges[1], along[0])
        return np.asarray(np.sum(np.cross(first, second, axis=1) * steps, axis=1))
    if len(edges) == 1:
        return np.asarray(steps[:, 0] * edges[0][:, 1] - steps[:, 1] * edges[0][:, 0])
    return np.linalg.norm(steps, axis=1)
