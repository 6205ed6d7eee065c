"""The strong-stability-preserving scheme of three stages and third order, eq. (20)."""

from collections.abc import Sequence

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.time.compensation import rounding_shares, update_call
from hiresx.time.explicit import Explicit

# (a, b) of q = a q0 + b (q + dt R), and the time at the end of the stage as a fraction of the step
STAGES = ((0.0, 1.0, 1.0), (0.75, 0.25, 0.5), (1.0 / 3.0, 2.0 / 3.0, 1.0))
_SHARES = rounding_shares([b for _, b, _ in STAGES])
# further arguments of a stage with compensated rounding errors
_BESIDE = tuple({"share": share, "last": int(stage == len(STAGES) - 1)} for stage, share in enumerate(_SHARES))


class SspRk3(Explicit):
    """Strong-stability-preserving Runge-Kutta scheme of third order with three stages. Source: C.-W. Shu & S. Osher,
    Journal of Computational Physics 77 (1988) 439."""

    order, registers, keeps_start, convex = 3, 1, True, True
    cfl, viscous_cfl = 1.375, 0.998
    times = tuple(time for _, _, time in STAGES)

    def updates(self, program: Program, state: BlockState) -> list[Call]:
        """Return the kernel launches that update the state of the block `state` at the end of the three stages, one for
        each."""
        s = state
        return [
            update_call(
                program, s, "update", s.size, _BESIDE[stage], **s.place, sv=s.variable_stride, q0=s.q0, q=s.q, r=s.r,
                jacobian=s.jacobian, dt=s.dt, dt_stride=s.dt_stride, a=a, b=b, first=int(stage == 0),
            )
            for stage, (a, b, _) in enumerate(STAGES)
        ]  # fmt: skip

    def viscous_updates(self, program: Program, state: BlockState, differences: Sequence[Call]) -> list[list[Call]]:
        """Return, for each stage, the kernel launches that add the differences of viscous fluxes and update the state
        of the block `state` in one kernel. `differences`: the launches that would compute these differences alone."""
        s, last = state, len(STAGES) - 1
        return [
            [
                update_call(
                    program, s, "viscous_update", difference.extent, _BESIDE[stage], **difference.arguments, q0=s.q0,
                    q=s.q, jacobian=s.jacobian, dt=s.dt, dt_stride=s.dt_stride, a=a, b=b, first=int(stage == 0),
                    keep=int(stage == last),
                )
                for difference in differences
            ]
            for stage, (a, b, _) in enumerate(STAGES)
        ]  # fmt: skip
