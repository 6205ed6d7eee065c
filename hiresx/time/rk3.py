"""SSP-RK3, eq. (20)."""

from hiresx.device.state import BlockState

# (a, b) of q = a q0 + b (q + dt R), and the share of the step that is reached with it
STAGES = ((0.0, 1.0, 1.0), (0.75, 0.25, 0.5), (1.0 / 3.0, 2.0 / 3.0, 1.0))


class Update:
    """The update of one block at the end of a stage."""

    def __init__(self, program, state: BlockState):
        s = state
        self._launch = program.launch
        self._calls = [
            (
                "update", s.size, *s.place, s.variable_stride, s.q0, s.q, s.r, s.jacobian, s.dt, s.dt_stride,
                a, b, int(stage == 0),
            )
            for stage, (a, b, _) in enumerate(STAGES)
        ]  # fmt: skip

    def __call__(self, stage: int) -> None:
        self._launch(*self._calls[stage])
