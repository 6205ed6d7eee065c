"""The sensor by which hybrid inviscid fluxes are blended (kernels/terms/shock_sensor.h)."""

from collections.abc import Iterator, Sequence

from hiresx.case import Case
from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import HALOS, SHOCK_SENSOR, Term


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term that computes the shock sensor at every node of the blocks `states`, before the inviscid fluxes,
    if `case` has the hybrid scheme; nothing for other schemes. `program`: the compiled kernels."""
    if case.scheme.inviscid != "hybrid":
        return
    hybrid = case.scheme.hybrid
    calls = [
        program.call(
            "shock_sensor", s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, q=s.q, m=s.metrics,
            jacobian=s.jacobian, threshold=hybrid.least, smooth=int(hybrid.blending == "smooth"), floor=hybrid.floor,
            sensor=s.array(SHOCK_SENSOR),
        )
        for s in states
    ]  # fmt: skip
    yield Term("shock sensor", calls, needs=(HALOS,), gives=(SHOCK_SENSOR,))
