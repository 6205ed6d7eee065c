"""The sources of the transported variable of a model of turbulence (kernels/terms/transported.h). The viscous fluxes,
which know the gradients, leave them in a field."""

from collections.abc import Iterator, Sequence

from hiresx.case import Case
from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import FLUXES, RATES, Term


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term that adds the sources of the transported turbulence variable at every node, after all other rates
    and the viscous fluxes."""
    if not case.turbulence.transported:
        return
    calls = [
        program.call(
            "transported_source", s.size, **s.place, jacobian=s.jacobian, source=s.array("transported_source"),
            r=s.scalars[-1][1],
        )
        for s in states
    ]  # fmt: skip
    yield Term("turbulence", calls, needs=(RATES, FLUXES))
