"""A run from Python or from the command line: build, step, look at the fields, write what is left behind."""

import hashlib
import json
import math
import time as wall
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hiresx import __version__, blow_up
from hiresx.bench import known_rate
from hiresx.blow_up import BlowUp
from hiresx.case import Case, load
from hiresx.decomposition import Decomposition, Part, domain
from hiresx.decomposition.partition import partition
from hiresx.errors import HiresxError
from hiresx.grid import Grid, build
from hiresx.logbook import Logbook
from hiresx.output.fields import derived, field_output
from hiresx.output.fields.field_output import FieldOutput
from hiresx.output.saved import checkpoint, files, identity, netcdf, pieces, record
from hiresx.output.saved.attachment import Attachment
from hiresx.output.saved.pieces import Later, Piece
from hiresx.output.show.progress import Progress
from hiresx.output.watch import monitors as watch
from hiresx.output.watch.monitors.own import Own
from hiresx.placement import place
from hiresx.placement.wishes import by_rank
from hiresx.plan import plan, refuse_oversized
from hiresx.signals import Requests
from hiresx.solver import Solver
from hiresx.team import Team, world

__all__ = ["BlockView", "Simulation", "plan"]

# Times closer than this share of a step are the same time.
SAME_TIME = 1e-9


class BlockView:
    """One block of a simulation, or this rank's part of one: node coordinates and the state as host arrays
    (nk, nj, ni). `first`: index (i, j, k) of its first node in the whole block `whole` (its name)."""

    def __init__(self, solver: Solver, index: int):
        self._solver, self._index = solver, index
        state = solver.states[index]
        block = state.block
        self.name, self.x, self.y, self.z = block.name, block.x, block.y, block.z
        self.whole, self.first = state.name, state.first

    def state(self, name: str) -> np.ndarray:
        """A copy of rho, u, v, w, p or a derived variable (hiresx.output.fields.derived.VARIABLES), (nk, nj, ni).

        Gradients are one-sided at the edges of a part. Raises HiresxError for an unknown name.
        """
        state = self._solver.primitives(self._index)
        if name in state:
            return state[name]
        flow = derived.Flow(self.x, self.y, self.z, state, self._solver.case.gas.gamma)
        return derived.evaluate([name], flow)[name]

    def set_state(self, rho: ArrayLike, u: ArrayLike, v: ArrayLike, w: ArrayLike, p: ArrayLike) -> None:
        """Replace the state by arrays (or numbers) broadcastable to (nk, nj, ni). Collective: a rank calls it as often
        as the others."""
        self._solver.set_state(self._index, rho, u, v, w, p)
        self._solver.complete_state()


class Simulation:
    """A case on a backend.

    `case`: a Case, or the name or file of one. `out`: the run directory (None: nothing is written). `initial`: replaces
    the initial state, `f(x, y, z, *, <parameters>) -> (rho, u, v, w, p)`. `profiles`: replaces functions of case.py
    that boundary conditions and sponges name. `monitors`: functions called with the simulation every `monitor.every`
    steps; the numbers they return by name are kept in `history` and in a file of their own. `grid` replaces the case's
    grid.

    `restart`: a run directory (its newest whole checkpoint) or a checkpoint file to go on from. Without `case` the one
    kept in that directory is taken, without `out` the run goes on in it. What Python gave to the first run (`profiles`,
    `monitors`, `grid`) is given again. `restarted` then tells from where, and what was passed over.

    Started by mpirun or srun, all ranks make the same Simulation and call it alike (every method is collective);
    `blocks` are then this rank's parts. `team`: the ranks (default: all that were started together). `weights`: how
    fast each rank is, relative to the others (by default alike, or as `hiresx bench` measured unlike backends).
    `transport`: how halos go to other ranks (`hiresx run --help` lists them). `placement`: how GPUs are chosen for them
    (`hiresx.topology.place.STRATEGIES`; the one with the shortest exchange if absent). `parts` cuts the grid in another
    way than `hiresx.decomposition.partition` does.

    Raises HiresxError for everything the user can mend (see `Solver`, `hiresx.case.load`, `hiresx.device.backend`), and
    for a checkpoint that is not whole or of another case or grid, naming the difference.
    """

    def __init__(
        self,
        case: Case | str | Path | None = None,
        backend: str = "auto",
        out: str | Path | None = None,
        initial: Callable[..., Any] | None = None,
        profiles: Mapping[str, Callable[..., Any]] | None = None,
        monitors: Sequence[Callable[..., Mapping[str, float] | None]] = (),
        grid: Grid | None = None,
        restart: str | Path | checkpoint.Found | None = None,
        team: Team | None = None,
        weights: Sequence[float] | None = None,
        transport: str = "auto",
        placement: str | None = None,
        parts: Callable[[Decomposition], Sequence[Part]] | None = None,
    ):
        self._made = wall.monotonic()
        self.team = world() if team is None else team
        found = checkpoint.find(restart, self.team) if isinstance(restart, str | Path) else restart
        with self.team.together():
            if out == "":
                raise HiresxError(
                    'out = "" names no run directory', "name one, or leave it away: nothing is then written"
                )
            if case is None:
                case = kept_case(found)
            self.case = load(case) if isinstance(case, str | Path) else case
            self.out = None if out is None and found is None else found.directory if out is None else Path(out)
            field_output.check(self.case)
            if self.out is not None:
                netcdf.library()
        self.resolved = self.case.model_dump(mode="json")
        _check_same(self.team, self.resolved)
        self.restarted: list[str] = []
        self.prints, changed = None, {}
        hosts = len(set(self.team.hosts))
        with self.team.together():
            # A run that cannot go on is refused for that before anything is asked of its grid and conditions.
            changed = self._compare_case(found)
            if grid is None:
                refuse_oversized(self.case, backend, hosts=hosts)
            if self.team.local.root:
                grid = build(self.case.grid, self.case.directory) if grid is None else grid
            if self.team.root:
                self.prints = identity.fingerprint(grid)
        self.prints = self.team.share(self.prints)
        with self.team.together():
            self._compare_grid(found)
        weights = _measured(self.team, backend, self.case) if weights is None else weights
        if parts is None and self.team.size > 1:
            parts = partial(partition, ranks=self.team.size, weights=weights)
        ground = domain(self.case, self.team, grid, parts)
        files.once(self.team, lambda: field_output.check_grid(self.case, ground.grid.blocks))
        self.placement = place(self.team, ground.cut, backend, strategy=placement)
        self.backend = self.placement.backend
        with self.team.together():
            own = sum(part.points for part in ground.cut.parts if part.rank == self.team.rank)
            refuse_oversized(self.case, self.backend.name, own)
        self.solver = Solver(self.case, self.backend, profiles=dict(profiles or {}), domain=ground, transport=transport)
        self.blocks = [BlockView(self.solver, b) for b in range(len(self.solver.states))]
        self.monitors = tuple(monitors)
        self._trace = blow_up.Trace(self.solver)
        self.history: list[dict[str, Any]] = []
        self.restarts: list[dict[str, Any]] = []
        self.retries: list[dict[str, Any]] = []
        self._source: Path | None = None
        self._passed: list[tuple[Path, str]] = []
        self._captured: dict[str, dict[str, Any]] = {}
        if found is None:
            self.solver.initialize(initial)
        else:
            self._restore(found.container)
            self._passed = found.passed
            self.restarts.append(self._restart_entry(found.container.path, changed))
        self.attachments = self._build_attachments()
        self.restarted += [
            f"{name} of the checkpoint is not continued: the case has none"
            for name in sorted(self._captured.keys() - {attachment.name for attachment in self.attachments})
        ]
        self._checkpoints = None
        if self.out is not None:
            self._checkpoints = checkpoint.Checkpoints(
                self.out, self.case.checkpoint, self._contents, lambda: blow_up.check(self.solver), team=self.team
            )
        # Whether a run was begun: what was there before it is then changed.
        self.begun = False
        self._open: list[Attachment] = []
        self._used = self._struck = False
        self._longest_step = 0.0

    @property
    def time(self) -> float:
        """Time reached, in L / c_ref (0 with local time steps)."""
        return self.solver.time

    @property
    def step_count(self) -> int:
        return self.solver.steps

    def step(self) -> float:
        """One time step, not past the case's end. Returns dt (0 with local steps). Raises HiresxError when the flow
        allows none."""
        return self._step(math.inf)

    def _step(self, stop: float) -> float:
        end = self.case.time.end
        until = min(stop, math.inf if end is None else end)
        try:
            return self.solver.step(max(until - self.time, 0.0))
        except FloatingPointError as error:
            found = blow_up.find(self.solver, f"no step can be taken ({error})")
            # the state is the one the step began with: where that is good, the step itself goes wrong
            raise (found if found.block is not None else blow_up.began(self.solver, 1, found)) from None

    # ---- the run

    def run(self, steps: int | None = None, progress: bool = True) -> dict[str, Any]:
        """Run to the end the case asks for, or for `steps` more steps if that comes first. Returns the run record; its
        status is "finished", or "stopped" when `time.wall_limit` came first.

        The first Ctrl-C, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 or SIGXCPU ends the run after the step that is being taken,
        with a checkpoint, and goes on up as KeyboardInterrupt or hiresx.signals.Terminated (a SystemExit); the record
        says "interrupted". A second Ctrl-C or SIGTERM acts at once. Raises HiresxError when the flow blows up, naming
        where, and when something cannot be written; the record says "failed".
        """
        spec, solver = self.case.time, self.solver
        limits = [self.step_count + steps] if steps is not None else []
        if spec.steps is not None:
            limits.append(spec.steps)
        last_step = min(limits) if limits else None
        bar = Progress(solver.points, spec.end, last_step, self.case.title, quiet=not (progress and self.team.root))
        with ExitStack() as held:
            if self.out is not None:
                held.enter_context(files.locked(files.directory(self.out, self.team), self.team))
            requests = held.enter_context(Requests())
            log = Logbook(self)
            try:
                with bar:
                    self._begin(bar)
                    for line in log.begin():
                        bar.note(line)
                    self.begun = True
                    while not self._finished(last_step) and not self._asked_to_stop(requests):
                        try:
                            self._advance(bar, last_step, log)
                        except BlowUp as error:
                            self._go_back(self._trace.back(error), bar)
                    if self._checkpoints is not None:
                        self._checkpoints.write(solver)
                    if not self._finished(last_step):
                        requests.act()
                    stopped = None if self._finished(last_step) else self._out_of_time_message()
                    self._captured = {a.name: checkpoint.remembered(a.capture()) for a in self.attachments}
                    for error in self._finish_attachments():
                        raise error
            except BaseException as error:
                if isinstance(error, BlowUp):
                    self._describe_blow_up(error)
                # What only this rank knows of ends all of them (see hiresx.team.ended): nothing to wait for is begun.
                self.team.desert(error)
                alone = self.team.size > 1 and not getattr(error, "everywhere", False)
                log.fail(error, [] if alone else self._finish_attachments())
                raise
            return log.finish("finished" if stopped is None else "stopped", stopped)

    def _advance(self, bar: Progress, last_step: int | None, log: Logbook) -> None:
        began = wall.monotonic()
        dt = self._step(min((a.next_time for a in self.attachments), default=math.inf))
        residual = None
        if self._due() or self._finished(last_step):
            residual = self._look()
        bar.update(self.step_count, self.time, None if self.case.time.local else dt, residual)
        with bar.aside():
            for attachment in self.attachments:
                attachment.after_step(self.solver)
            self._pass_notes(bar)
            if self._checkpoints is not None:
                self._checkpoints.after_step(self.solver, self._struck)
        if self._due():
            log.progress()
        self._longest_step = max(wall.monotonic() - began, 0.5 * self._longest_step)

    def _pass_notes(self, bar: Progress) -> None:
        for attachment in self.attachments:
            while attachment.notes:
                bar.note(attachment.notes.pop(0))

    def _due(self) -> bool:
        return self.step_count % self.case.monitor.every == 0

    def _finished(self, last_step: int | None) -> bool:
        if last_step is not None and self.step_count >= last_step:
            return True
        end = self.case.time.end
        if end is None or self.case.time.local:
            return False
        return self.time >= end - SAME_TIME * max(self.solver.dt, SAME_TIME)

    def _asked_to_stop(self, requests: Requests) -> bool:
        """Whether a signal reached any of the ranks, or the time is up. In the same exchange all learn whether the
        clock of rank 0 asks for a checkpoint."""
        struck = self.team.root and self._checkpoints is not None and self._checkpoints.struck()
        found = [requests.signal or 0, self._out_of_time(), struck]
        if self.team.size > 1:
            found = self.team.max(np.array(found, dtype=float))
            requests.signal = int(found[0]) or None
        self._struck = bool(found[2])
        return bool(found[0] or found[1])

    def _out_of_time(self) -> bool:
        limit = self.case.time.wall_limit
        if limit is None or not self._longest_step:  # at least one step, so that restarts under the limit come forward
            return False
        last = self._longest_step + (self._checkpoints.seconds if self._checkpoints is not None else 0.0)
        return wall.monotonic() - self._made + last > limit

    def _out_of_time_message(self) -> str:
        return (
            f"stopped at step {self.step_count}, time {self.time:.6g}: the wall-clock limit time.wall_limit = "
            f"{self.case.time.wall_limit:g} s is reached"
        )

    def _look(self) -> float:
        """Residual norms and the check that the flow is alive. Returns the density residual."""
        norms, least_density, least_pressure = blow_up.check(self.solver)
        entry = {
            "step": self.step_count,
            "time": self.time,
            "dt": self.solver.dt,
            **dict(zip(("rho", "rho_u", "rho_v", "rho_w", "e"), (float(n) for n in norms), strict=True)),
            "least_rho": least_density,
            "least_p": least_pressure,
        }
        for attachment in self.attachments:
            if isinstance(attachment, Own):
                entry |= attachment.values(self.solver)
        self.history.append(entry)
        self._trace.remember()
        return float(norms[0])

    # ---- what hangs on the run

    def _build_attachments(self) -> list[Attachment]:
        return [FieldOutput(self.case, self.out), *watch.build(self.case, self)]

    def _begin(self, bar: Progress) -> None:
        """Everything before the first step of this `run`."""
        again, self._longest_step = self._used, 0.0
        self._used = True
        if self.out is not None:
            files.once(self.team, self._tidy)
        for line in self.restarted:
            bar.note(line)
        restarted = again or self._source is not None
        if again:
            self.attachments = self._build_attachments()
        self._attach(restarted)
        self._pass_notes(bar)
        self.restarted, self._passed = [], []

    def _tidy(self) -> None:
        files.sweep(self.out)
        record.keep_resolved(self.out, self.case)
        checkpoint.set_aside(self._passed)

    def _attach(self, restarted: bool) -> None:
        place = self._source or Path("what was kept in memory")
        with self.team.together(), checkpoint.understood(place):
            for attachment in self.attachments:
                if attachment.name in self._captured:
                    attachment.restore(self._captured[attachment.name])
        self._captured = {}  # of a file that may be pruned
        if self._source is None and (not self.history or self.history[-1]["step"] != self.step_count):
            self._look()
        self._open = []
        for attachment in self.attachments:
            self._open.append(attachment)
            attachment.begin(self.solver, restarted)
        if self._checkpoints is not None:
            self._checkpoints.start(self.solver, self._source, new=not restarted)
        self._source = None

    def _finish_attachments(self) -> list[Exception]:
        """Finish each one once, whatever becomes of the others. Returns what went wrong."""
        errors = []
        while self._open:
            try:
                self._open.pop(0).finish(self.solver)
            except Exception as error:
                errors.append(error)
        return errors

    # ---- checkpoints

    def _contents(self) -> checkpoint.Contents:
        """What a checkpoint of now holds."""
        history = self.history
        if history and history[-1]["step"] == self.step_count and not self._due():
            history = history[:-1]  # the last look of a run that stops here: one that goes on has none
        attached, arrays = checkpoint.packed({a.name: a.capture() for a in self.attachments}, self.team)
        values = {
            "hiresx": __version__,
            "backend": self.backend.name,
            "written": record.now(),
            "case": self.resolved,
            "grid": self.prints,
            "given": self.solver.given(),
            "solver": self.solver.values(),
            "run": {"history": record.plain(history, finite=False), "retries": self.retries},
            "attachments": attached,
        }
        return values, [*pieces.labelled("solver/", map(self._alive, self.solver.pieces())), *arrays]

    def _alive(self, piece: Piece) -> Piece:
        """The same, which raises BlowUp when it is made of what is not finite."""

        def make() -> np.ndarray:
            array = np.asarray(piece.array)
            if not np.isfinite(array).all():
                raise blow_up.nowhere(self.solver, "a momentum is not finite")
            return array

        return Piece(piece.name, piece.box, Later(piece.array.shape, piece.array.dtype, make))

    def _compare_case(self, found: checkpoint.Found | None) -> dict[str, list[Any]]:
        """Refuse a checkpoint of another case; returns the keys that differ and may: [there, here]."""
        if found is None:
            return {}
        place, values = str(found.container.path), found.container.values
        with checkpoint.understood(found.container.path):
            try:
                # keys that this version has and that one had not take their defaults
                old = Case.from_dict(values["case"]).model_dump(mode="json")
            except HiresxError:
                old = values["case"]
            changed = identity.check_case(old, self.resolved, place)
            steps, time = values["solver"]["steps"], values["solver"]["time"]
            self.restarted.append(f"going on from {place}: step {steps}, time {time:.6g}")
        self.restarted += [f"passed over: {reason}" for _, reason in found.passed]
        self.restarted += [identity.told(difference) for difference in changed]
        return {key: [old, new] for key, old, new in changed}

    def _compare_grid(self, found: checkpoint.Found | None) -> None:
        """Refuse a checkpoint of another grid."""
        if found is None:
            return
        with checkpoint.understood(found.container.path):
            same = identity.check_grid(found.container.values["grid"], self.prints, str(found.container.path))
        if not same:
            self.restarted.append("the grid agrees to round-off only: the run goes on, but not to the last bit")

    def _restore(self, container: checkpoint.Container) -> None:
        values = container.values
        with checkpoint.understood(container.path):
            self.solver.restore(values["solver"], pieces.reader(container, "solver/"))
            real = self.solver.configuration.real
            identity.check_given(values["given"], self.solver.given(), real, str(container.path))
            self.history = [{"step": entry["step"], **entry} for entry in values["run"]["history"]]
            self.retries = [{"checkpoint": entry["checkpoint"], **entry} for entry in values["run"]["retries"]]
            self._captured = checkpoint.unpacked(container)
        self._source = container.path

    def _restart_entry(self, path: Path, changed: dict[str, list[Any]]) -> dict[str, Any]:
        before = self.team.share(record.found(self.out) if self.team.root else None)
        self.restarts += before.get("restarts") or []
        return {
            "checkpoint": str(path),
            "step": self.step_count,
            "time": self.time,
            "at": record.now(),
            "changed": changed,
            "before": {key: before.get(key) for key in ("status", "error", "steps", "started", "ended", "wall_s")},
        }

    def _go_back(self, error: BlowUp, bar: Progress) -> None:
        """After a blow-up: on from the last good checkpoint with smaller steps, if the case allows; raises if not."""
        spec = self.case.time
        if self._checkpoints is None or len(self.retries) >= spec.retries:
            raise error
        container = self._checkpoints.last_good([entry["checkpoint"] for entry in self.retries])
        if container is None:
            raise error
        self._describe_blow_up(error)
        self._finish_attachments()
        factor = self.solver.step_factor * spec.retry_factor
        entry = {"error": error.message, "step": self.step_count, "time": self.time, "factor": factor}
        retries = [*self.retries, entry | {"checkpoint": container.path.name}]
        self._restore(container)
        self.retries, self.solver.step_factor = retries, factor
        self.attachments = self._build_attachments()
        self._attach(True)
        bar.note(
            f"{error.message}\n  going back to step {self.step_count}, time {self.time:.6g}, with {factor:g} times the "
            f"step of the case (retry {len(retries)} of {spec.retries})"
        )

    def _describe_blow_up(self, error: BlowUp) -> None:
        """Leave the neighbourhood of the place, and say in the error's mend what there is."""
        if self.out is None:
            return
        path = None
        if error.rank == self.team.rank:
            with suppress(HiresxError):
                path = blow_up.write_neighbourhood(self.out, self.solver, error, self.resolved)
        path = self.team.share(path, error.rank or 0)
        found = self.team.share(checkpoint.listed(self.out)[:1] if self.team.root else None)
        if path is not None:
            error.mend += f"; what is around it is in {path}"
        if found:
            error.mend += f"; the last good checkpoint is {found[0]}"


def kept_case(found: checkpoint.Found | None, overrides: Sequence[str] = ()) -> Case:
    """The case that the run of a checkpoint keeps in its directory, with `overrides` (see hiresx.case.load). Functions
    that it names and lacks may come from Python. Raises HiresxError when there is none."""
    if found is None:
        raise HiresxError("Simulation needs a case, or a run to restart", "give the name of a case, or restart=DIR")
    folder = None if found.directory is None else found.directory / "case"
    if folder is None or not folder.is_dir():
        raise HiresxError(
            f"{found.container.path} lies in no run directory with the case beside it", "name the case as well"
        )
    return load(folder, overrides=overrides, complete=False)


def _check_same(team: Team, dump: Mapping[str, Any]) -> None:
    """Raises HiresxError where two ranks were given different cases."""
    prints = team.everyone(hashlib.sha256(json.dumps(dump, sort_keys=True, default=str).encode()).hexdigest())
    other = next((rank for rank, found in enumerate(prints) if found != prints[0]), None)
    if other is None:
        return
    difference = identity.differences(team.share(dump), team.share(dump, other))[0]
    error = HiresxError(
        f"ranks 0 and {other} were given different cases: {difference[0]} is {difference[1]!r} for rank 0 and "
        f"{difference[2]!r} for rank {other}",
        "start all ranks with the same case, the same --set and the same files",
    )
    error.everywhere = True
    raise error


def _measured(team: Team, wish: str, case: Case) -> list[float] | None:
    """How fast the ranks of unlike backends are, by what `hiresx bench` measured on their hosts; None if they are alike
    or it was not run on one of them."""
    names = by_rank(wish, team.hosts)
    if len(set(names)) == 1:
        return None
    rate = known_rate(names[team.rank], case.gas.reynolds is not None, case.scheme.precision)
    speeds = team.everyone(None if rate is None else 1 / rate["ns_per_point_rhs"])
    return None if None in speeds else speeds
