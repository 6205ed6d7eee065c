"""The sources of the transport equations of turbulence models (kernels/terms/transported.h). The viscous fluxes, where
gradients are known, store them in a field."""

from collections.abc import Iterator, Sequence

from hiresx.case import Case
from hiresx.case.implicit_table import NAME
from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import FLUXES, RATES, SOURCES, VISCOUS, Term

# The largest fraction by which sources may reduce a variable that must stay positive, in a stage of an explicit step.
LARGEST_LOSS = 0.5


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term of the right-hand side that adds, in all blocks `states`, the sources of the variables that the
    turbulence model of `case` transports. For steady flow with a model that needs it, yield a second term, which limits
    the decrease of variables that must stay positive. Yield nothing without such a model. `program`: the compiled
    kernels."""
    if not case.turbulence.transported:
        return
    rows = slice(-case.turbulence.transported, None)
    calls = [
        program.call(
            "transported_source", s.size, **s.place, sv=s.variable_stride, jacobian=s.jacobian, q=s.q,
            source=s.array("transported_source"), dt=s.dt, dt_stride=s.dt_stride, r=s.r[rows],
            largest_loss=0.0 if s.layout.has("implicit_blocks") else LARGEST_LOSS,
        )
        for s in states
    ]  # fmt: skip
    yield Term("turbulence", calls, needs=(RATES, FLUXES))
    if not case.turbulence.is_bounded or case.time.integrator != NAME:
        return
    assert case.gas.reynolds is not None
    calls = [
        program.call(
            "transported_bound", s.size, **s.place, active=sum(1 << d for d in s.active), sv=s.variable_stride, q=s.q,
            m=s.metrics, jacobian=s.jacobian, inverse_reynolds=1 / case.gas.reynolds, r=s.r[rows],
        )
        for s in states
    ]  # fmt: skip
    yield Term("turbulence", calls, needs=(RATES, VISCOUS, SOURCES), gives=())
