"""The damping of what viscous terms do not see, in runs by an implicit integrator (kernels/terms/viscous_damping.h)."""

from collections.abc import Iterator, Sequence

import numpy as np

from hiresx.case import Case
from hiresx.case.implicit import damps_viscous_terms
from hiresx.decomposition import Patch
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.rhs.spatial_filter import reaches
from hiresx.rhs.terms import HALOS, RATES, Term

FIELD = "damping_reach"


def fill(backend: Backend, state: BlockState, patches: Sequence[Patch]) -> None:
    """Fill the field `damping_reach` of a part with the distance of each node from the `patches` of the grid, as
    `hiresx.rhs.spatial_filter.reaches`."""
    field = state.array(FIELD)
    values = np.zeros(field.shape, state.storage.work)
    state.interior(values)[...] = reaches(state, patches, 3 if max(state.halo) < 4 else 4)
    backend.copy(field, backend.to_device(values))


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term that damps what alternates from node to node, after the other rates. Nothing without an implicit
    integrator, viscosity or `implicit.viscous_damping`."""
    if not damps_viscous_terms(case):
        return
    assert case.gas.reynolds is not None
    calls = [
        program.call(
            "viscous_damping", s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, q=s.q, m=s.metrics,
            jacobian=s.jacobian, reach=s.array(FIELD), inverse_reynolds=1 / case.gas.reynolds,
            strength=case.implicit.viscous_damping, r=s.r,
        )
        for s in states
    ]  # fmt: skip
    yield Term("viscous", calls, needs=(HALOS, RATES))
