"""SSP-RK3, eq. (20)."""

from collections.abc import Sequence

from hiresx.device.interface import Call
from hiresx.device.state import BlockState

# (a, b) of q = a q0 + b (q + dt R), and the share of the step that is reached with it
STAGES = ((0.0, 1.0, 1.0), (0.75, 0.25, 0.5), (1.0 / 3.0, 2.0 / 3.0, 1.0))


def updates(state: BlockState) -> list[Call]:
    """The launch that ends each stage, on one block."""
    s = state
    return [
        (
            "update", s.size, *s.place, s.variable_stride, s.q0, s.q, s.r, s.jacobian, s.dt, s.dt_stride,
            a, b, int(stage == 0),
        )
        for stage, (a, b, _) in enumerate(STAGES)
    ]  # fmt: skip


def viscous_updates(state: BlockState, differences: Sequence[Call]) -> list[list[Call]]:
    """The launches that end each stage, on one block, and in the same breath do what the launches `differences` of
    viscous_difference would; `r` is left without it but for that of the last stage."""
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
