"""The jumps across half points by which the H-correction raises eigenvalues (kernels/terms/h_correction.h)."""

from collections.abc import Iterator, Sequence

from hiresx.case import Case
from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import HALOS, JUMPS_ACROSS, Term


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term that computes, before the inviscid fluxes, the jumps of the eigenvalues in all blocks `states` by
    which the H-correction of Roe's flux adds dissipation at shocks; nothing if `case` has another flux. `program`: the
    compiled kernels."""
    if case.scheme.flux != "roe_h":
        return
    calls = [
        program.call(
            "h_correction", s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, q=s.q, m=s.metrics,
            jumps=s.array(JUMPS_ACROSS),
        )
        for s in states
    ]  # fmt: skip
    yield Term("H-correction", calls, needs=(HALOS,), gives=(JUMPS_ACROSS,))
