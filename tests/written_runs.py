"""Runs whose fields are written in the background."""

from vortices import taylor_green

from hiresx import Case
from hiresx.device import backend
from hiresx.output.fields.field_output import FieldOutput
from hiresx.solver import Solver


def periodic(*overrides, n=(12, 9, 8)) -> Case:
    return taylor_green(f"grid.n={list(n)}", "time.end=10.0", *overrides)


class Run:
    """The part of a run that concerns fields: steps, and an output that is told of them."""

    def __init__(self, case, directory, name="cpu", state=None, captured=None):
        self.case = case
        self.solver = Solver(case, backend(name))
        self.solver.initialize()
        if state is not None:
            self.solver.time, self.solver.steps, q = state
            for block, array in zip(self.solver.states, q, strict=True):
                self.solver.backend.copy(block.q, self.solver.backend.to_device(array))
        self.output = FieldOutput(case, directory)
        if captured is not None:
            self.output.restore(captured)
        self.output.begin(self.solver, captured is not None)

    def steps(self, count):
        for _ in range(count):
            self.solver.step(min(self.output.next_time, self.case.time.end) - self.solver.time)
            self.output.after_step(self.solver)
        return self

    @property
    def state(self):
        q = [self.solver.backend.to_host(block.q) for block in self.solver.states]
        return self.solver.time, self.solver.steps, q

    def finish(self):
        self.output.finish(self.solver)
        return self
