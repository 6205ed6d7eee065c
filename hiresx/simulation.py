"""A run from Python or from the command line: build, step, look at the fields, write what is left behind."""

import math
import time as wall
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case, load
from hiresx.device import backend as find_backend
from hiresx.errors import HiresxError
from hiresx.output import derived, fields, record
from hiresx.output.progress import Progress
from hiresx.plan import plan
from hiresx.solver import Solver
from hiresx.time.rk3 import STAGES

__all__ = ["BlockView", "Simulation", "plan"]

# Times closer than this share of a step are the same time.
SAME_TIME = 1e-9


class BlockView:
    """One block of a simulation: node coordinates and the state as host arrays (nk, nj, ni)."""

    def __init__(self, solver: Solver, index: int):
        self._solver, self._index = solver, index
        block = solver.decomposition.blocks[index]
        self.name, self.x, self.y, self.z = block.name, block.x, block.y, block.z

    def state(self, name: str) -> np.ndarray:
        """A copy of rho, u, v, w, p or a derived variable (hiresx.output.derived.VARIABLES), (nk, nj, ni).

        Raises HiresxError for an unknown name.
        """
        state = self._solver.primitives(self._index)
        if name in state:
            return state[name]
        flow = derived.Flow(self.x, self.y, self.z, state, self._solver.case.gas.gamma)
        return derived.evaluate([name], flow)[name]

    def set_state(self, rho, u, v, w, p) -> None:
        """Replace the state by arrays (or numbers) broadcastable to (nk, nj, ni)."""
        self._solver.set_state(self._index, rho, u, v, w, p)
        self._solver.complete_state()


class Simulation:
    """A case on a backend.

    `case`: a Case, or the name or file of one. `out`: the run directory (None: nothing is written). `initial`: replaces
    the initial state, f(x, y, z, *, <parameters>) -> (rho, u, v, w, p). `profiles`: replaces functions of case.py that
    boundary conditions and sponges name. `monitors`: functions called with the simulation every `monitor.every` steps;
    a dictionary they return is kept in `history`. `grid` replaces the case's grid.

    Raises HiresxError for everything the user can mend (see `Solver`, `hiresx.case.load`, `hiresx.device.backend`).
    """

    def __init__(
        self,
        case: Case | str,
        backend: str = "auto",
        out: str | Path | None = None,
        initial: Callable | None = None,
        profiles: Mapping[str, Callable] | None = None,
        monitors: Sequence[Callable[["Simulation"], dict | None]] = (),
        grid=None,
    ):
        self.case = load(case) if isinstance(case, str) else case
        derived.check(self.case.output.variables, "output.variables")
        self.backend = find_backend(backend)
        self.solver = Solver(self.case, self.backend, grid=grid, profiles=dict(profiles or {}))
        self.solver.initialize(initial)
        self.blocks = [BlockView(self.solver, b) for b in range(len(self.solver.states))]
        self.monitors = tuple(monitors)
        self.history: list[dict[str, Any]] = []
        self.out = None if out is None else Path(out)

    @property
    def time(self) -> float:
        """Time reached, in L / c_ref (0 with local time steps)."""
        return self.solver.time

    @property
    def step_count(self) -> int:
        return self.solver.steps

    def step(self) -> float:
        """One time step, not past the case's end. Returns dt (0 with local steps)."""
        return self.solver.step(self._until(math.inf))

    def _until(self, stop: float) -> float:
        end = self.case.time.end
        return min(stop, math.inf if end is None else end) - self.time

    def run(self, steps: int | None = None, progress: bool = True) -> dict[str, Any]:
        """Run to the end the case asks for, or for `steps` more steps if that comes first. Returns the run record.

        Raises HiresxError when the flow blows up, naming where, with the record's status "failed"; an interrupt leaves
        the record "interrupted" and goes on up.
        """
        spec, solver = self.case.time, self.solver
        if self.case.initial.function is None or self.step_count == 0:
            self._look()
        limits = [self.step_count + steps] if steps is not None else []
        if spec.steps is not None:
            limits.append(spec.steps)
        last_step = min(limits) if limits else None
        log = _Log(self)
        bar = Progress(solver.points, spec.end, last_step, self.case.title, quiet=not progress)
        began = wall.perf_counter()
        solver.stopwatch.reset()
        first_step = self.step_count
        try:
            with bar:
                log.fields()
                while not self._finished(last_step):
                    dt = solver.step(self._until(log.next_time))
                    residual = None
                    if self.step_count % self.case.monitor.every == 0 or self._finished(last_step):
                        residual = self._look()
                    bar.update(self.step_count, self.time, None if spec.local else dt, residual)
                    log.progress(began, first_step)
                    if log.due():
                        with bar.aside():
                            log.fields()
                log.fields()
        except KeyboardInterrupt:
            log.finish("interrupted", began, first_step, "interrupted by the user")
            raise
        except Exception as error:
            log.finish("failed", began, first_step, str(error))
            raise
        return log.finish("finished", began, first_step)

    def _finished(self, last_step: int | None) -> bool:
        if last_step is not None and self.step_count >= last_step:
            return True
        end = self.case.time.end
        if end is None or self.case.time.local:
            return False
        return self.time >= end - SAME_TIME * max(self.solver.dt, SAME_TIME)

    def _look(self) -> float:
        """Residual norms and the check that the flow is alive. Returns the density residual."""
        norms, least_density, least_pressure = self.solver.norms()
        if not (np.isfinite(norms).all() and least_density > 0 and least_pressure > 0):
            raise self._blow_up()
        entry = {
            "step": self.step_count,
            "time": self.time,
            "dt": self.solver.dt,
            **dict(zip(("rho", "rho_u", "rho_v", "rho_w", "e"), (float(n) for n in norms), strict=True)),
            "least_rho": least_density,
            "least_p": least_pressure,
        }
        for monitor in self.monitors:
            entry |= monitor(self) or {}
        self.history.append(entry)
        return float(norms[0])

    def _blow_up(self) -> HiresxError:
        for b, block in enumerate(self.solver.decomposition.blocks):
            state = self.solver.primitives(b)
            for name in ("rho", "p"):
                bad = ~(state[name] > 0) | ~np.isfinite(state[name])
                if bad.any():
                    k, j, i = (int(n) for n in np.argwhere(bad)[0])
                    x, y, z = block.node(i, j, k)
                    return HiresxError(
                        f"the flow blew up: {name} = {state[name][k, j, i]:.4g} in block '{block.name}' at node "
                        f"(i, j, k) = ({i}, {j}, {k}), (x, y, z) = ({x:.6g}, {y:.6g}, {z:.6g}), "
                        f"step {self.step_count}, time {self.time:.6g}",
                        'lower time.cfl (or time.dt), or set scheme.positivity = "limiter"; look at the grid and the '
                        "conditions near that place",
                    )
        return HiresxError(
            f"the rate of change is not finite at step {self.step_count}, time {self.time:.6g}, though the state is",
            "lower time.cfl (or time.dt)",
        )


class _Log:
    """What a run leaves in its directory: field files and run.json. Does nothing without a directory."""

    def __init__(self, simulation: Simulation):
        self.simulation = simulation
        output, case = simulation.case.output, simulation.case
        self._every_time, self._every_steps = output.every_time, output.every_steps
        self.next_time = math.inf
        self._written_step = None
        self._record = None
        self._dump = case.model_dump(mode="json")
        self._count_time()
        if simulation.out is not None:
            if simulation.step_count == 0:
                fields.clear(simulation.out)  # an earlier run's later steps would pass for this one's
            source = None if case.directory is None else case.directory / "case.py"
            record.keep_case(
                simulation.out, case.to_toml(), source if source is not None and source.is_file() else None
            )
            solver = simulation.solver
            self._record = record.Record(
                simulation.out, case=self._dump, backend=simulation.backend.name, points=solver.points,
                bytes_per_point=solver.bytes / solver.points,
            )  # fmt: skip

    def _count_time(self) -> None:
        if self._every_time is not None:
            done = math.floor(self.simulation.time / self._every_time + 1e-6)
            self.next_time = (done + 1) * self._every_time

    def due(self) -> bool:
        s = self.simulation
        if self._every_steps is not None and s.step_count % self._every_steps == 0:
            return True
        return s.time >= self.next_time - SAME_TIME * max(s.solver.dt, SAME_TIME)

    def fields(self) -> None:
        s = self.simulation
        if s.out is not None and self._written_step != s.step_count:
            blocks = [fields.FieldBlock(b.name, b.x, b.y, b.z, s.solver.primitives(n)) for n, b in enumerate(s.blocks)]
            fields.write(fields.frame(s.out, s.step_count), blocks, s.time, s.step_count, self._dump)
            self._written_step = s.step_count
        self._count_time()

    def _entries(self, began: float, first_step: int) -> dict[str, Any]:
        s = self.simulation
        steps, seconds = s.step_count - first_step, wall.perf_counter() - began
        stages = s.solver.stopwatch.seconds
        rhs = sum(value for name, value in stages.items() if name not in ("time step", "update"))
        evaluations = steps * len(STAGES) * s.solver.points
        return {
            "steps": s.step_count,
            "time": s.time,
            "wall_s": seconds,
            "ns_per_point_rhs": 1e9 * rhs / evaluations if steps else None,
            "point_steps_per_s": steps * s.solver.points / sum(stages.values()) if steps else None,
            "stages": stages,
        }

    def progress(self, began: float, first_step: int) -> None:
        if self._record is not None and self.simulation.step_count % self.simulation.case.monitor.every == 0:
            self._record.update(**self._entries(began, first_step))

    def finish(self, status: str, began: float, first_step: int, error: str | None = None) -> dict[str, Any]:
        entries = self._entries(began, first_step)
        if self._record is not None:
            self._record.finish(status, error, history=self.simulation.history, **entries)
            return self._record.entries
        return {"status": status, "error": error, **entries}
