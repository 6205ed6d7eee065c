"""Steps that a device takes on its own: recorded whole, with the host looking now and then."""

from collections.abc import Sequence

import numpy as np

from hiresx.case import Case
from hiresx.device.side_by_side import Noting
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.conditions import Conditions
from hiresx.solver.step_size import StepSize
from hiresx.solver.terms import Task
from hiresx.time.integrator import Integrator
from hiresx.time.recorded import Recorded, Taken, noted


class WholeSteps:
    """The `tasks` of all stages of `integrator` as recorded steps."""

    def __init__(
        self,
        case: Case,
        blocks: LocalBlocks,
        conditions: Conditions,
        size: StepSize,
        tasks: Sequence[Task],
        integrator: Integrator,
    ):
        self._case, self._blocks, self._conditions, self._size = case, blocks, conditions, size
        self._tasks, self._integrator = tasks, integrator
        self._recorded: Recorded | None = None

    @property
    def possible(self) -> bool:
        """Whether nothing of a step needs the host: no other rank, no profile that changes, no pole, no local steps, no
        iteration; and nothing is lost when one fails."""
        b, program = self._blocks, self._blocks.program
        device = isinstance(program, Noting) and "choose_step" in program.signatures
        steady = not self._case.time.local and self._conditions.steady
        alone = b.comm.size == 1 and not self._integrator.iterates
        return device and alone and steady and self._integrator.keeps_start

    def __call__(self, count: int, time: float, until: float, factor: float) -> Taken:
        """`count` steps from `time` on, none past `until`, of `factor` times what the case wants."""
        if self._recorded is None:
            self._recorded = self._made()
        spec, size = self._case.time, self._size
        fixed = None if spec.dt is None else factor * spec.dt
        limits = (0.0, 0.0) if fixed else (factor * (spec.cfl or 0.0), factor * spec.viscous_cfl)
        taken = self._recorded(count, time, until, fixed, *limits, known=size.known_radii is not None)
        size.forget()
        size.known_radii = taken.radii if fixed is None else None
        return taken

    def _made(self) -> Recorded:
        b, size = self._blocks, self._size
        few = np.array([reduction.few for reduction in size.reductions], np.int32)
        assert isinstance(b.program, Noting)  # or it would not be possible
        calls = noted(b.program, self._tasks, self._integrator.stages)
        return Recorded(b.backend, b.program, calls, size.calls, size.found, few, b.states[0].dt)
