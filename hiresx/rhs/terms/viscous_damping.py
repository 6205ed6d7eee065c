"""The damping of what viscous terms do not see, in runs by an implicit integrator (kernels/terms/viscous_damping.h)."""

from collections.abc import Iterator, Sequence

import numpy as np

from hiresx.case import Case
from hiresx.case.implicit import viscous_damping
from hiresx.decomposition import Decomposition
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.grid.blocks import direction, side, slices
from hiresx.rhs.terms import HALOS, RATES, Term

FIELD = "damping_reach"


def fill(backend: Backend, state: BlockState, whole: Decomposition) -> None:
    """Fill the field `damping_reach` of a part: for each node and direction the distance in nodes from the patches of
    the `whole` blocks at which its grid line ends, negative from the upper end. In general it is the half-width of the
    differences, and on a patch 0. It is 0 along the lines of a block that end at a wall with friction: the layer there
    is seldom resolved so finely that its curvature is no part of what is damped, and its friction would suffer."""
    field = state.array(FIELD)
    values = np.zeros(field.shape, state.storage.work)
    state.interior(values)[...] = _reaches(state, whole, 3 if max(state.halo) < 4 else 4)
    backend.copy(field, backend.to_device(values))


def _reaches(state: BlockState, whole: Decomposition, half: int) -> np.ndarray:
    """(3, nk, nj, ni)"""
    shape = tuple(reversed(state.size))
    found, on_faces = np.zeros((DIRECTIONS, *shape)), np.zeros(shape, dtype=bool)
    for d in state.active:
        found[d] = half
    for patch in (p for p in whole.patches if p.block == state.part.whole):
        d = direction(patch.face)
        own = [range_of(patch.range[e], state.first[e], n) for e, n in enumerate(state.size)]
        own[d] = (0, state.size[d])
        lines = slices((own[0], own[1], own[2]))
        nodes = state.first[d] + np.arange(state.size[d])
        upper = side(patch.face) > 0
        distance = whole.blocks[patch.block].size[d] - 1 - nodes if upper else nodes
        axes = [1, 1, 1]
        axes[DIRECTIONS - 1 - d] = -1
        on_faces[lines] |= (distance == 0).reshape(axes)
        if patch.condition.kernel == "no_slip":
            found[d][lines] = 0.0
        else:
            near = (-distance if upper else distance).reshape(axes)
            found[d][lines] = np.where(abs(near) < np.minimum(half, found[d][lines]), near, found[d][lines])
    found[:, on_faces] = 0.0
    return found


def range_of(nodes: tuple[int, int], first: int, count: int) -> tuple[int, int]:
    """Return which of the `count` nodes from `first` on are among `nodes`, counted from the first of them."""
    lo, hi = (min(max(n - first, 0), count) for n in nodes)
    return lo, hi


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term that damps what alternates from node to node, after the other rates, where the case has it
    (`hiresx.case.implicit.viscous_damping`)."""
    strength = viscous_damping(case)
    if not strength:
        return
    assert case.gas.reynolds is not None
    calls = [
        program.call(
            "viscous_damping", s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, q=s.q, m=s.metrics,
            jacobian=s.jacobian, reach=s.array(FIELD), inverse_reynolds=1 / case.gas.reynolds,
            strength=strength, r=s.r,
        )
        for s in states
    ]  # fmt: skip
    yield Term("viscous", calls, needs=(HALOS, RATES))
