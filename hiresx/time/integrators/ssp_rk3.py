"""The strong-stability-preserving scheme of three stages and third order, eq. (20)."""

from collections.abc import Sequence

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.time.integrator import Integrator

# (a, b) of q = a q0 + b (q + dt R), and the share of the step that is reached with it
STAGES = ((0.0, 1.0, 1.0), (0.75, 0.25, 0.5), (1.0 / 3.0, 2.0 / 3.0, 1.0))


class Scheme(Integrator):
    """C.-W. Shu & S. Osher, Journal of Computational Physics 77 (1988) 439."""

    order, registers, keeps_start, convex = 3, 1, True, True
    cfl, viscous_cfl = 1.375, 0.998
    times = tuple(time for _, _, time in STAGES)

    def updates(self, state: BlockState) -> list[Call]:
        s = state
        return [
            (
                "update", s.size, *s.place, s.variable_stride, s.q0, s.q, s.r, s.jacobian, s.dt, s.dt_stride,
                a, b, int(stage == 0),
            )
            for stage, (a, b, _) in enumerate(STAGES)
        ]  # fmt: skip

    def viscous_updates(self, state: BlockState, differences: Sequence[Call]) -> list[list[Call]]:
        s, last = state, len(STAGES) - 1
        return [
            [
                (
                    "viscous_update", extent, *fields, s.q0, s.q, r, s.jacobian, s.dt, s.dt_stride,
                    a, b, int(stage == 0), int(stage == last),
                )
                for _, extent, *fields, r in differences
            ]
            for stage, (a, b, _) in enumerate(STAGES)
        ]  # fmt: skip
