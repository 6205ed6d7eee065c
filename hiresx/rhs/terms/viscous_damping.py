"""Damping of the node-to-node oscillations that the viscous terms do not damp (kernels/terms/viscous_damping.h). It is
used by runs with an implicit integrator, and in all runs for variables of turbulence models that need it."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case import Case
from hiresx.case.implicit_table import viscous_damping
from hiresx.decomposition import Decomposition
from hiresx.decomposition.oblique_walls import edges_at_no_slip_walls, groups, inward_rows
from hiresx.decomposition.patches import Patch
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.grid.blocks import FACES, Block, Range, direction, intersection, layer, side, slices
from hiresx.rhs.terms import HALOS, RATES, Term

FIELD = "damping_reach"
OF_TRANSPORTED = "transported_reach"
# The kernel of conditions that prescribe only the momentum through the face. Where no-slip walls meet such a face, its
# nodes are damped along directions in which cells are thinner than normal to the face, for at least this fraction of
# the cells. Along other directions the neighbours before the face damp the oscillations.
COMPUTED, THIN = "reflect", 0.1
# The damping acts like the second difference of neighbours.
_OF_TRANSPORTED = 1.0


def fill(backend: Backend, state: BlockState, whole: Decomposition, crossed: Collection[int], at_walls: bool) -> None:
    """Fill the fields `damping_reach` and `transported_reach` of the block `state`, if it has them. Each is (3, nk, nj,
    ni): how many nodes the damping of oscillations from node to node may use at a node along i, j and k.

    In the interior this is the half-width of the differences. Near a boundary patch of the blocks `whole` it is the
    distance from the patch in nodes, with a negative sign at the upper end of a grid line. On a patch it is 0, with two
    exceptions. The planes of symmetry `crossed`, numbers of patches whose ghosts are mirror images of nodes, are no
    ends. Slip walls and other planes of symmetry that a no-slip wall meets, and patches that continue these, are damped
    along the directions in which their cells are thin.

    `damping_reach` is also 0 along grid lines that end at a no-slip wall, in all blocks through which they pass,
    unless `at_walls` is true. The damping would act on the curvature of the velocity in the boundary layer, and change
    the friction.
    """
    for name, left_alone in ((FIELD, None if at_walls else "no_slip"), (OF_TRANSPORTED, None)):
        field = state.array(name)
        if field is not None:
            values = np.zeros(field.shape, state.storage.work)
            state.interior(values)[...] = _reaches(state, whole, crossed, 3 if max(state.halo) < 4 else 4, left_alone)
            backend.copy(field, backend.to_device(values))


def _reaches(
    state: BlockState, whole: Decomposition, crossed: Collection[int], half: int, left_alone: str | None
) -> np.ndarray:
    """Return (3, nk, nj, ni), the number of nodes that the damping may use. `crossed`: the planes of symmetry that are
    no ends. `left_alone`: the kernel of conditions at the ends of lines on which nothing is damped."""
    shape = tuple(reversed(state.size))
    found, on_faces = np.zeros((DIRECTIONS, *shape)), np.zeros((DIRECTIONS, *shape), dtype=bool)
    layered = _layered(whole)
    for d in state.active:
        found[d] = half
    ends = (n for n, p in enumerate(whole.patches) if p.block == state.part.whole and n not in crossed)
    for place, patch in ((n, whole.patches[n]) for n in ends):
        d = direction(patch.face)
        lines = _lines(state, patch.range, d)
        nodes = state.first[d] + np.arange(state.size[d])
        upper = side(patch.face) > 0
        distance = whole.blocks[patch.block].size[d] - 1 - nodes if upper else nodes
        axes = [1, 1, 1]
        axes[DIRECTIONS - 1 - d] = -1
        thin = _thin(whole.blocks[patch.block], patch) if place in layered else ()
        for e in (e for e in range(DIRECTIONS) if e not in thin):
            on_faces[e][lines] |= (distance == 0).reshape(axes)
        near = (-distance if upper else distance).reshape(axes)
        found[d][lines] = np.where(abs(near) < np.minimum(half, found[d][lines]), near, found[d][lines])
    for block, face, nodes in _ends(whole, left_alone):
        if block == state.part.whole:
            found[direction(face)][_lines(state, nodes, direction(face))] = 0.0
    found[on_faces] = 0.0
    return found


def _lines(state: BlockState, nodes: Range, d: int) -> tuple[slice, slice, slice]:
    """Return the part of a block that consists of the grid lines along direction `d` through `nodes` of its whole
    block."""
    own = [(0, n) if e == d else range_of(nodes[e], state.first[e], n) for e, n in enumerate(state.size)]
    return slices(triple(own))


def _ends(whole: Decomposition, kernel: str | None) -> list[tuple[int, str, Range]]:
    """Return where grid lines that end at a patch whose condition has the kernel `kernel` enter each block, as (block,
    face, nodes): the patch itself, and connected faces of the blocks through which the lines pass. The range of nodes
    normal to the face has no meaning."""
    behind = defaultdict(list)
    for one in whole.connections:
        behind[one.block, one.face].append(one)
    found: dict[tuple[int, str, Range], None] = {}
    left = [(p.block, p.face, p.range) for p in whole.patches if p.condition.kernel == kernel]
    while left:
        end = block, face, nodes = left.pop()
        if end in found:
            continue
        found[end] = None
        d, size = direction(face), whole.blocks[block].size
        opposite = FACES[2 * d + (side(face) < 0)]
        last = triple(layer(opposite, size) if e == d else r for e, r in enumerate(nodes))
        for one in behind[block, opposite]:
            if (shared := intersection(one.range, last)) is not None:
                there = one.donors(np.array([[lo, hi - 1] for lo, hi in shared]))
                entered = triple((int(n.min()), int(n.max()) + 1) for n in there)
                left.append((one.donor, one.donor_face, entered))
    return list(found)


def _layered(whole: Decomposition) -> set[int]:
    """Return the numbers of the patches of `COMPUTED` that no-slip walls meet, and of those that continue them."""
    places = [n for n, patch in enumerate(whole.patches) if patch.condition.kernel == COMPUTED]
    together = groups(whole, places)
    return {
        n for group in together if any(edges_at_no_slip_walls(whole, whole.patches[m]) for m in group) for n in group
    }


def _thin(block: Block, patch: Patch) -> list[int]:
    """Return the directions along a patch in which its cells are thinner than normal to it."""
    d, rows = direction(patch.face), inward_rows(block, patch.face, patch.range, 2)
    across = np.linalg.norm(rows[1] - rows[0], axis=0)
    along = {e: DIRECTIONS - 1 - e for e in block.active if e != d and rows.shape[-1 - e] > 1}
    spacing = {e: np.linalg.norm(np.gradient(rows[0], axis=1 + axis), axis=0) for e, axis in along.items()}
    return [e for e, h in spacing.items() if (h < across).mean() >= THIN]


def range_of(nodes: tuple[int, int], first: int, count: int) -> tuple[int, int]:
    """Return the part of the half-open index range `nodes` that lies among the `count` nodes from number `first` on, as
    indexes relative to `first`."""
    lo, hi = (min(max(n - first, 0), count) for n in nodes)
    return lo, hi


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the terms of the right-hand side that damp oscillations from node to node in the flow and in the variables
    of a turbulence model, in all blocks `states`, if `case` needs them (`hiresx.case.implicit_table.viscous_damping`,
    `hiresx.case.turbulence_table.Turbulence.is_damped`). `program`: the compiled kernels."""
    strengths = {"viscous_damping": (viscous_damping(case), FIELD, slice(None))}
    if case.turbulence.is_damped:
        rows = slice(-case.turbulence.transported, None)
        strengths["transported_damping"] = (_OF_TRANSPORTED, OF_TRANSPORTED, rows)
    for kernel, (strength, field, rows) in strengths.items():
        if not strength:
            continue
        assert case.gas.reynolds is not None
        calls = [
            program.call(
                kernel, s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, q=s.q, m=s.metrics,
                jacobian=s.jacobian, reach=s.array(field), inverse_reynolds=1 / case.gas.reynolds,
                strength=strength, r=s.r[rows],
            )
            for s in states
        ]  # fmt: skip
        yield Term("viscous", calls, needs=(HALOS, RATES))
