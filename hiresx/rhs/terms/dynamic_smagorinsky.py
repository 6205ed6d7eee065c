"""The coefficient of the dynamic Smagorinsky model (kernels/terms/dynamic_smagorinsky.h)."""

from collections.abc import Iterator, Sequence

from hiresx.case import Case
from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import EDDY_COEFFICIENT, HALOS, Term, with_halos


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the three terms by which the dynamic Smagorinsky model of `case` computes its coefficient in all blocks
    `states` before the viscous fluxes: the rate of strain at every node, the products of Germano's identity, and the
    coefficient. Yield nothing for other models. `program`: the compiled kernels."""
    if not case.turbulence.dynamic:
        return

    def term(kernel: str, needs: str, gives: str, *reads: str) -> Term:
        calls = [
            program.call(
                kernel, s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, **{gives: s.array(gives)},
                **{name: s.array(name) for name in reads},
            )
            for s in states
        ]  # fmt: skip
        return Term("eddy viscosity", calls, needs=(needs,), gives=(gives,))

    yield term("strain_rate", HALOS, "strain", "q", "metrics", "jacobian")
    yield term("germano", with_halos("strain"), "products", "q", "strain", "jacobian")
    yield term("dynamic_coefficient", with_halos("products"), EDDY_COEFFICIENT, "products")
