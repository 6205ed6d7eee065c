"""The body force of `[body_force]` (kernels/terms/body_force.h). The acceleration that keeps the mass flow constant is
set at the start of each step in the field `kept_acceleration` (hiresx/output/watch/monitors/body_force_values.py) and
added to that of the case."""

from collections.abc import Iterator, Sequence
from typing import Any

from hiresx.case import Case
from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import Term


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term of the right-hand side that adds the body force of `case` and its power in all blocks `states`;
    nothing if the case has no table [body_force]."""
    if case.body_force is None:
        return
    calls = [
        program.call(
            "body_force", s.size, **s.place, sv=s.variable_stride, q=s.q, jacobian=s.jacobian, r=s.r,
            **acceleration(case, s),
        )
        for s in states
    ]  # fmt: skip
    yield Term("body force", calls)


def acceleration(case: Case, state: BlockState) -> dict[str, Any]:
    """Return the parameters of kernels that need the acceleration of the body force of `case` in the block `state`, by
    name: `ax`, `ay`, `az`, the given acceleration in c_ref^2 / L; `kx`, `ky`, `kz`, 1 for the axis along which a mass
    flow is kept constant, else 0; and `kept`, the device array of the acceleration that keeps it, or None."""
    force = case.body_force
    given, axis = ((0.0, 0.0, 0.0), "") if force is None else (force.acceleration, force.axis)
    numbers = zip(("ax", "ay", "az", "kx", "ky", "kz"), (*given, *(a == axis for a in "xyz")), strict=True)
    kept = None if force is None else state.array("kept_acceleration")
    return {name: float(number) for name, number in numbers} | {"kept": kept}
