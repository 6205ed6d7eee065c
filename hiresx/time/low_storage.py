"""Runge-Kutta schemes with one array besides the state and its right-hand side."""

from collections.abc import Sequence

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.time.compensation import update_call
from hiresx.time.explicit import Explicit


class LowStorage(Explicit):
    """Base class of the low-storage Runge-Kutta schemes in the form of Williamson. Every stage computes d = A d + dt
    R(q), then q = q + B d, with A = 0 in the first stage. `a` and `b`: the coefficients A and B of the stages. Source:
    J. H. Williamson, Journal of Computational Physics 35 (1980) 48.

    The stages are not convex combinations of Euler steps. The state at the start of the step is not stored, since its
    register contains d.
    """

    registers, keeps_start, convex = 1, False, False
    a: Sequence[float]
    b: Sequence[float]

    def updates(self, program: Program, state: BlockState) -> list[Call]:
        """Return the kernel launches that update the state of the block `state` at the end of the stages, one for each
        stage."""
        s = state
        return [
            update_call(
                program, s, "accumulate", s.size, **s.place, sv=s.variable_stride, d=s.registers[0], q=s.q, r=s.r,
                jacobian=s.jacobian, dt=s.dt, dt_stride=s.dt_stride, a=a, b=b, first=int(stage == 0),
            )
            for stage, (a, b) in enumerate(zip(self.a, self.b, strict=True))
        ]  # fmt: skip


def stage_times(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    """Return the times at the end of the stages of a Runge-Kutta scheme, as fractions of the step. `a`, `b`: the
    coefficients of its low-storage form (Williamson 1980). The times are the solution of dq/dt = 1; the last one is
    exactly 1."""
    time, d, found = 0.0, 0.0, list[float]()
    for factor, share in zip(a, b, strict=True):
        d = factor * d + 1.0
        time += share * d
        found.append(time)
    return (*found[:-1], 1.0)
