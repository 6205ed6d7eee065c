"""A run, from Python or from the command line: its construction, its steps, its fields and its files."""

import math
import time as wall
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from hiresx.base import garbage
from hiresx.base.argument_types import check_types
from hiresx.base.termination_signals import Requests
from hiresx.base.threads import start_in_background
from hiresx.case import Case
from hiresx.case.validation import check_arguments
from hiresx.decomposition import Decomposition, Part, domain
from hiresx.decomposition.partition import check_weights, partition
from hiresx.device import asynchronous_compilation
from hiresx.errors import HiresxError
from hiresx.estimate import refuse_on_gpus, refuse_oversized, remarks_on_step
from hiresx.grid import Grid, build
from hiresx.mpi.communicator import Communicator, world
from hiresx.output.fields import field_output
from hiresx.output.fields.field_output import FieldOutput
from hiresx.output.saved import checkpoint, directories, files, identity, netcdf_library, record
from hiresx.output.saved.attachment import Attachment
from hiresx.output.show.progress import Progress
from hiresx.output.watch.monitors.probe import ProbeMonitor
from hiresx.output.watch.monitors.user import UserMonitor
from hiresx.output.watch.overlaps import overlaps
from hiresx.placement import place
from hiresx.rhs import closed, fast_waves, frozen, layers
from hiresx.simulation import blow_up_error
from hiresx.simulation.adapted_run import Adaptations, AdaptedRun
from hiresx.simulation.agreement import check_same, measured_speeds
from hiresx.simulation.continuation import Continuation, as_case
from hiresx.simulation.ends import Ends, check_steps
from hiresx.simulation.flow_flags import tiles_at_start
from hiresx.simulation.grid_check import refuse_folded
from hiresx.simulation.logbook import Logbook
from hiresx.simulation.rebalance import Rebalancing, Rule, parse_rule
from hiresx.simulation.sequencing import start_from_coarser
from hiresx.simulation.stored_tiles import tiles_of
from hiresx.simulation.watchdog import Watchdog, WatchdogTimeout
from hiresx.solver import configuration
from hiresx.solver.initial_flow import initial_flow
from hiresx.time.integrators import remarks
from hiresx.time.step_recording import STEPS

# Seconds for which the device makes steps without the host: a signal waits no longer than this.
HEARING = 0.1


class Simulation(AdaptedRun):
    """A run of a case on a backend.

    `case`: a Case, or the name or file of one. `backend`: its name, such as "cpu", "cuda" or "auto". `out`: the run
    directory (None: nothing is written). `initial`: `f(x, y, z, *, <parameters>) -> (rho, u, v, w, p)`, which replaces
    the initial state. `scalars`: `f(x, y, z, *, <parameters>) -> s` of scalars, by name. `profiles`: functions
    that replace those of case.py, by the names of boundary conditions and sponges. `monitors`: functions called with
    the simulation every `monitor.every` steps, whose numbers are in `history`. `grid`: replaces the grid of the case.

    `restart`: a run directory (its newest valid checkpoint is used) or a checkpoint file from which to continue.
    Without `case` the case of that directory is used, without `out` the run continues in it. `profiles`, `monitors` and
    `grid` of the first run must be given again. `restarted` lists the checkpoint and the files that were ignored.

    Under mpirun or srun all ranks create the same Simulation and make the same calls (every method is collective).
    `blocks`: this rank's boxes of nodes; their methods are not collective. `comm`: the ranks (default: all started
    together). `weights`: relative speeds of the ranks (default: equal, or for different backends as `hiresx bench`
    measured). `transport`: how halos are sent to other ranks (`hiresx.exchange.choice.NAMES`). `placement`: the
    strategy that assigns GPUs to ranks (`hiresx.topology.place.STRATEGIES`; default: the one with the shortest
    exchange). `bind`: whether to bind ranks and their memory to the cores next to their GPUs or to own cores. `parts`:
    replaces `hiresx.decomposition.partition`.

    `rebalance`: when to change the partition during the run (see `rebuild`), if ranks are faster or slower than
    assumed: "auto" (if it saves more than a tenth of a step and more time than it costs; not with `weights` or
    `parts`), "never", or the number of steps between checks.

    Raises the errors of `Solver`, `hiresx.case.load` and `hiresx.device.backend`, and HiresxError for a checkpoint that
    is damaged or of another case or grid."""

    @check_types
    def __init__(
        self,
        case: Case | str | Path | None = None,
        backend: str = "auto",
        out: str | Path | None = None,
        initial: Callable[..., Any] | None = None,
        profiles: Mapping[str, Callable[..., Any]] | None = None,
        monitors: Sequence[Callable[..., Mapping[str, float] | None]] = (),
        grid: Grid | None = None,
        restart: str | Path | checkpoint.FoundCheckpoint | None = None,
        comm: Communicator | None = None,
        weights: Sequence[float] | None = None,
        transport: str = "auto",
        placement: str | None = None,
        parts: Callable[[Decomposition], Sequence[Part]] | None = None,
        bind: bool = True,
        rebalance: Rule = "auto",
        scalars: Mapping[str, Callable[..., Any]] | None = None,
    ):
        made = wall.monotonic()
        self.comm = world() if comm is None else comm
        found = checkpoint.find(restart, self.comm) if isinstance(restart, str | Path) else restart
        with self.comm.together():
            if out == "":
                raise HiresxError('out = "" is not a run directory', "name one, or omit it: nothing is then written")
            self.case = as_case(case, found)
            self.out: Path | None = Path(out) if out is not None else None if found is None else found.directory
            rebalance = parse_rule(rebalance)
            field_output.check(self.case)
            check_arguments(self.case, profiles or {}, monitors, grid, scalars or {})
            check_weights(self.comm.size, weights)
            if self.out is not None:
                netcdf_library.library()
        self.resolved = self.case.model_dump(mode="json")
        check_same(self.comm, self.resolved)
        with self.comm.together():
            # A run that cannot continue is rejected before its grid and conditions are examined.
            self._continuation = Continuation(self.comm, self.resolved, found, grid is not None)
            if grid is None:
                refuse_oversized(self.case, backend, hosts=len(set(self.comm.hosts)))
                refuse_on_gpus(self.case, backend, self.comm.size)
            if self.comm.local.root:
                compiled = asynchronous_compilation.start_compilation(configuration(self.case), backend)
                grid = build(self.case.grid, self.case.directory) if grid is None else grid
            prints = start_in_background(identity.fingerprint, grid) if self.comm.root and grid is not None else None
        if found is not None:
            given = self.comm.bcast(prints and prints())
            with self.comm.together():
                self._continuation.compare_grid(given)
        if rebalance == "auto" and not (weights is None and parts is None):
            rebalance = "never"  # a caller who chooses the parts is responsible for them
        weights = measured_speeds(self.comm, backend, self.case) if weights is None else weights
        self._cutting = parts
        if parts is None and self.comm.size > 1:
            parts = partial(partition, ranks=self.comm.size, weights=weights)
        begin = partial(initial_flow, self.case, initial, scalars)
        tiles = tiles_at_start(begin, self.comm) if found is None else tiles_of(found.container)
        ground = domain(self.case, self.comm, grid, parts, tiles)
        with self.comm.together():
            if self.comm.local.root:
                refuse_folded(self.case, ground, compiled)
        whole = ground.whole
        files.on_root(self.comm, lambda: field_output.check_grid(self.case, whole.blocks, whole.names_of_grid))
        with self.comm.together():
            placed = layers.place_sponges(self.case, whole.grid_blocks)
        files.on_root(self.comm, lambda: layers.check(placed, whole.grid_blocks))
        self.resolved = placed.model_dump(mode="json")
        self.placement = place(self.comm, ground.cut, backend, strategy=placement, bind=bind)
        self.backend = self.placement.backend
        with self.comm.together():
            self._refuse_oversized(ground)
            flow = begin() if found is None else None
        self._profiles, self._transport, self.initial, self.scalars = dict(profiles or {}), transport, initial, scalars
        building = wall.monotonic()
        self._build(ground, flow)
        took = wall.monotonic() - building - self.solver.compile_s
        self._rebalancing = Rebalancing(rebalance, float(self.comm.max(took)))
        self._weights = None if weights is None else [float(w) for w in weights]
        # Arguments of a `rebuild` that was requested during a step, and whether a step is in progress.
        self._noted: set[str] = set()
        self._wanted: tuple[Callable[[Decomposition], Sequence[Part]], list[float] | None] | None = None
        self._stepping = False
        self.epochs: list[dict[str, Any]] = []
        self.adaptations = Adaptations.of(ground)
        self.prints = self.comm.bcast(prints and prints())
        self.monitors = tuple(monitors)
        self.history: list[dict[str, Any]] = []
        if found is not None:
            self.history = self._continuation.begin(self.solver, self.out)
            self.epochs += self._continuation.epochs
        self.attachments = self._build_attachments()
        there = {attachment.name for attachment in self.attachments}
        self._continuation.notes += [
            f"{name} of the checkpoint is not continued: the case has none"
            for name in sorted(self._continuation.captured.keys() - there)
        ]
        self._checkpoints = None
        if self.out is not None:
            self._checkpoints = checkpoint.Checkpoints(
                self.out, self.case.checkpoint, self._contents, self._check, comm=self.comm
            )
        # Whether a run was begun, so that files of earlier runs may have changed.
        self.begun = False
        self._open: list[Attachment] = []
        # Whether `run` was called before, and whether it ended before the end of the case.
        self._used = self._pausing = self._stepped = False
        self._step_limit = blow_up_error.StepLimit()
        self._pace = 0.0  # seconds of the last steps
        self._ends = Ends(self.case, self.comm, made, self._checkpoints)
        # Reports an end that comes from another thread, see `overdue`.
        self.on_timeout: Callable[[WatchdogTimeout], object] | None = None

    @check_types
    def step(self) -> float:
        """Make a time step, at most to the case's end; return its size in L / c_ref. Raises HiresxError if it fails."""
        self.solver.complete_if_set()
        for attachment in self.attachments:
            attachment.set_conditions(self.solver)
        dt = self._step(math.inf)
        self.solver.finish_reads()
        return dt

    def _step(self, stop: float, count: int = 1) -> float:
        """Up to `count` steps, none past `stop` or the case's end. Returns the last dt."""
        until = stop if self.case.time.end is None else min(stop, self.case.time.end)
        try:
            self.solver.advance(count, until)
        except FloatingPointError as error:
            found = blow_up_error.find(self.solver, f"no step can be taken ({error})")
            # The state is that of the start of the step. If it is valid, the step itself fails.
            raise (found if found.block is not None else blow_up_error.began(self.solver, 1, found)) from None
        return self._step_limit.check(self.solver)

    # ---- the run

    def run(self, steps: int | None = None, progress: bool = True, write_last: bool = True) -> dict[str, Any]:
        """Run to the end of the case, or for `steps` more steps if that comes first, with a progress bar if `progress`
        is true, and return the run record; its status is "finished", or "stopped" if `time.wall_limit` was reached
        first. At the end fields and a checkpoint are written; if `write_last` is false, only if the case has ended.

        At the first Ctrl-C, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 or SIGXCPU the run completes its step, writes a
        checkpoint and raises KeyboardInterrupt or hiresx.Terminated (a SystemExit); the status is "interrupted". A
        second Ctrl-C or SIGTERM acts at once. Raises HiresxError, with the position, if the flow becomes invalid, and
        if a file cannot be written; the status is then "failed".
        """
        check_steps(steps)
        spec = self.case.time
        limits = [n for n in (spec.steps, None if steps is None else self.step_count + steps) if n is not None]
        last_step = min(limits, default=None)
        quiet = not (progress and self.comm.root)
        bar = Progress(self.solver.points, spec.end, last_step, self.case.title, quiet=quiet)
        with ExitStack() as held:
            if self.out is not None:
                folder = directories.make_directory(self.out, self.comm)
                held.enter_context(directories.lock_directory(folder, self.comm))
            _, requests = held.enter_context(garbage.repeatedly()), held.enter_context(Requests())
            held.callback(lambda: self.solver.finish_reads())  # `solver` may be another object by then
            watchdog = held.enter_context(Watchdog(self.comm, self.out, self.on_timeout))
            log = Logbook(self, last_step)
            try:
                with bar:
                    self._begin(bar)
                    for line in [*log.begin(), *remarks(self.case), *self._remarks_on_step(), *self._overlaps()]:
                        bar.note(line)
                    self.begun = True
                    while not self._is_finished(last_step) and not self._ends.is_stop_requested(requests):
                        watchdog.record_step()
                        try:
                            if self._adapt_if_due():
                                bar.points = self.solver.points
                                log.cut()
                            self._advance(bar, last_step, log)
                            self._rebalance(bar, last_step, log)
                        except blow_up_error.BlowUp as error:
                            self._go_back(self._trace.back(error), bar)
                    watchdog.stop()
                    # A script that calls `run` repeatedly may announce this.
                    self._pausing = (
                        not write_last and self._is_finished(last_step) and not self._is_finished(spec.steps)
                    )
                    if self._checkpoints is not None and not self._pausing:
                        self._checkpoints.write(self.solver)
                    if not self._is_finished(last_step):
                        requests.act()
                    for attachment in self.attachments:
                        if isinstance(attachment, FieldOutput):
                            attachment.pausing = self._pausing
                    stopped = None if self._is_finished(last_step) else self._out_of_time_message()
                    self._continuation.captured = {
                        a.name: checkpoint.restore_in_memory(a.capture()) for a in self.attachments
                    }
                    for failed in self._finish_attachments():
                        raise failed
                self._pass_notes(bar)  # below the last line of the progress bar
                if self.adaptations is not None and (cost := self.adaptations.remark()) is not None:
                    bar.note(cost)
            except BaseException as error:
                watchdog.stop()
                if isinstance(error, blow_up_error.BlowUp):
                    self._describe_blow_up(error)
                # An error that only this rank has ends all ranks (hiresx.mpi.communicator.end_process): no collective
                # call is begun.
                self.comm.mark_aborting(error)
                alone = self.comm.size > 1 and not getattr(error, "everywhere", False)
                log.fail(error, [] if alone else self._finish_attachments())
                raise
            return log.finish("finished" if stopped is None else "stopped", stopped)

    def _remarks_on_step(self) -> list[str]:
        """Return remarks on the time step. Collective."""
        if self.begun or (self.case.time.dt is None and not self.case.sponge):
            return []
        return remarks_on_step(self.case, *map(float, self.solver.step_size.radii()))

    def _overlaps(self) -> Iterator[str]:
        """Print once the remarks on functions that are evaluated only at the start, on mass that is not determined, on
        implausible sponges, and on probes in sponges."""
        if self.begun or not self.comm.root:
            return
        case, blocks = self.solver.case, self.solver.grid.blocks
        yield from frozen.notes(case, self._ground.whole, self._profiles)
        yield from closed.notes(case, self._ground.whole)
        if not case.sponge:
            return
        yield from layers.notes(case, self._ground.whole.grid_blocks)
        probes = [a for a in self.attachments if isinstance(a, ProbeMonitor)]
        yield from overlaps(case, ((p.spec.name, p.spec.places, p.blocks(blocks)) for p in probes))

    def _rebalance(self, bar: Progress, last_step: int | None, log: Logbook) -> None:
        """Between two steps: another cut, if one was asked for, or is worth it by now."""
        if self._is_finished(last_step):
            return
        found, plan = self._wanted, None
        if found is None:
            plan = self._rebalancing.look(self.solver, self._ground, self._most_steps(last_step))
        if found is not None or plan is not None:
            with bar.aside():
                self._wanted = None
                if plan is None:
                    assert found is not None
                    epoch = self._cut_again(found[0], "asked for", found[1])
                else:
                    epoch = self._cut_again(lambda _: plan.parts, "speeds", plan.speeds, plan)
                log.cut()
                bar.note(epoch.description)
                self._pass_notes(bar)

    def _advance(self, bar: Progress, last_step: int | None, log: Logbook) -> None:
        self._stepping = True
        try:
            self._advance_whole(bar, last_step, log)
        finally:
            self._stepping = False

    def _advance_whole(self, bar: Progress, last_step: int | None, log: Logbook) -> None:
        began = wall.monotonic()
        first, count = self.step_count, self._steps_left(last_step)
        self._launch_ahead(count)
        dt = self._step(min((a.next_time for a in self.attachments), default=math.inf), count)
        took, made = wall.monotonic() - began, self.step_count - first
        self._pace = took / max(made, 1)
        self._count_steps(made, took)
        # a function that returns no waves is not evaluated again
        if not self._stepped and self.comm.max(float(any(c.moves for c in self.solver.conditions))) and self.comm.root:
            for line in fast_waves.notes(self.solver.case, self._ground.whole, dt, self._profiles):
                bar.note(line)
        self._stepped = True
        residual = self._record_residual() if self._record_due() or self._is_finished(last_step) else None
        bar.update(self.step_count, self.time, None if self.case.time.local else dt, residual)
        with bar.aside():
            for attachment in self.attachments:
                attachment.after_step(self.solver)
            self._pass_notes(bar)
            if self._checkpoints is not None:
                self._checkpoints.after_step(self.solver, self._ends.checkpoint_due)
        if self._record_due():
            log.progress()
        self._ends.record_step_time(wall.monotonic() - began)

    def _steps_left(self, last_step: int | None) -> int:
        """Steps until there is something to do between two, or to hear."""
        every = self.case.monitor.every
        left = [a.steps_left(self.solver) for a in self.attachments] + [every - self.step_count % every]
        if self._checkpoints is not None:
            left.append(self._checkpoints.steps_left(self.solver))
        if last_step is not None:
            left.append(last_step - self.step_count)
        left += [self._rebalancing.steps_left(self.solver), self._steps_to_adaptation()]
        left += [STEPS, int(HEARING / self._pace) if self._pace > 0 else 1]
        found = max(1, min(left))
        if self.comm.size > 1 and self.solver.device_resident_steps.possible:
            # devices wait for each other's steps: no rank may launch more steps than another
            found = int(self.comm.min([float(found)])[0])
        return found

    def _pass_notes(self, bar: Progress) -> None:
        for attachment in self.attachments:
            while attachment.notes:
                # Attachments are made anew when the grid is partitioned anew, and repeat their notes.
                line = attachment.notes.pop(0)
                if line not in self._noted:
                    self._noted.add(line)
                    bar.note(line)

    def _record_due(self) -> bool:
        return self.step_count % self.case.monitor.every == 0

    def _is_finished(self, last_step: int | None) -> bool:
        return self._ends.is_finished(self.solver, last_step)

    def _out_of_time_message(self) -> str:
        return (
            f"stopped at step {self.step_count}, time {self.time:.6g}: the wall-clock limit time.wall_limit = "
            f"{self.case.time.wall_limit:g} s is reached"
        )

    def _record_residual(self) -> float:
        """Residual norms and the check that the flow is alive. Returns the density residual."""
        norms, least_density, least_pressure = blow_up_error.check(self.solver)
        entry = {
            "step": self.step_count,
            "time": self.time,
            "dt": self.solver.dt,
            **dict(zip(("rho", "rho_u", "rho_v", "rho_w", "e"), (float(n) for n in norms), strict=True)),
            "least_rho": least_density,
            "least_p": least_pressure,
        }
        for attachment in self.attachments:
            if isinstance(attachment, UserMonitor):
                entry |= attachment.values(self.solver)
        self.history.append(entry)
        self._trace.remember()
        return float(norms[0])

    # ---- attachments

    def _begin(self, bar: Progress) -> None:
        """Do everything that comes before the first step of this `run`."""
        again, self._used, self._pace = self._used, True, 0.0
        self._ends.begin()
        self.solver.complete_if_set()
        if self.out is not None:
            files.on_root(self.comm, self._tidy)
        start_from_coarser(self)
        for line in self.restarted:
            bar.note(line)
        restarted = again or self._continuation.source is not None
        if again:
            self.attachments = self._build_attachments()
        self._attach(restarted)
        self._rebalancing.begin(self.solver)
        self._pass_notes(bar)
        self._continuation.notes, self._continuation.passed = [], []

    def _tidy(self) -> None:
        assert self.out is not None
        directories.remove_stale(self.out)
        record.keep_resolved(self.out, self.case)
        checkpoint.set_aside(self._continuation.passed)

    def _attach(self, restarted: bool) -> None:
        past = self._continuation
        self._restore_attachments(past.source or Path("what was kept in memory"))
        if past.source is None and (not self.history or self.history[-1]["step"] != self.step_count):
            self._record_residual()
        self._open_attachments(restarted)
        if self._checkpoints is not None and not self._pausing:
            self._checkpoints.start(self.solver, past.source, new=not restarted)
        self._pausing = False
        past.source = None

    # ---- checkpoints

    def _contents(self) -> checkpoint.Contents:
        """Return the content of a checkpoint of the current state."""
        history = self.history
        if history and history[-1]["step"] == self.step_count and not self._record_due():
            history = history[:-1]  # the last sample of a run that stops here; a run that continues has none
        return self._continuation.contents(self.solver, self.prints, history, self.attachments)

    def _go_back(self, error: blow_up_error.BlowUp, bar: Progress) -> None:
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
        self.history = self._continuation.restore(container, self.solver)
        self._continuation.retries, self.solver.step_factor = retries, factor
        self.attachments = self._build_attachments()
        self._attach(True)
        self._rebalancing.begin(self.solver)
        bar.note(
            f"{error.message}\n  going back to step {self.step_count}, time {self.time:.6g}, with {factor:g} times the "
            f"step of the case (retry {len(retries)} of {spec.retries})"
        )

    def _describe_blow_up(self, error: blow_up_error.BlowUp) -> None:
        """Write the neighbourhood of the place, and name the files in the hint of the error."""
        if self.out is None:
            return
        path = None
        if error.rank == self.comm.rank:
            with suppress(HiresxError):
                path = blow_up_error.write_neighbourhood(self.out, self.solver, error, self.resolved)
        path = self.comm.bcast(path, error.rank or 0)
        found = self.comm.bcast(checkpoint.list_checkpoints(self.out)[:1] if self.comm.root else None)
        if path is not None:
            error.hint += f"; what is around it is in {path}"
        if found:
            error.hint += f"; the last good checkpoint is {found[0]}"
