"""The body force of `[body_force]` (kernels/terms/body_force.h). What keeps the mass flow is added to its acceleration
at the start of each step, in the field `kept_acceleration` (hiresx.output.watch.monitors.body_force)."""

from collections.abc import Iterator, Sequence

from hiresx.case import Case
from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import Term


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """The force and its work, behind the rates of everything else."""
    force = case.body_force
    if force is None:
        return
    along = [float(force.axis == axis) for axis in "xyz"]
    names = zip(("ax", "ay", "az", "kx", "ky", "kz"), (*force.acceleration, *along), strict=True)
    numbers = {name: float(number) for name, number in names}
    calls = [
        program.call(
            "body_force", s.size, **s.place, sv=s.variable_stride, q=s.q, jacobian=s.jacobian, **numbers,
            kept=s.array("kept_acceleration"), r=s.r,
        )
        for s in states
    ]  # fmt: skip
    yield Term("body force", calls)
