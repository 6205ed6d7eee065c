"""`hiresx run`: computes a case and writes fields, or continues a run from a checkpoint."""

import contextlib
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hiresx.base.shell import quote
from hiresx.base.termination_signals import SIGNALLED, Terminated, raise_on_termination
from hiresx.cli import check_numbers, options, terminal
from hiresx.cli.options import argument, option
from hiresx.errors import HiresxError

if TYPE_CHECKING:
    from hiresx.case import Case
    from hiresx.mpi.communicator import Communicator
    from hiresx.simulation import Simulation

# Errors that are reported in one or two lines; any other exception is an error of the program.
_ENDS = (HiresxError, *SIGNALLED)

Name = Annotated[
    str | None, argument("NAME|FILE.toml", "A bundled case, a case file or its folder; not needed with --restart.")
]
Out = Annotated[Path | None, option("--out", "DIR", "Output folder; runs/<case>-<preset>-<n> if absent.")]
Steps = Annotated[
    int | None, option("--steps", "N", "Take at most N steps; with --restart N more. time.steps remains an end.", min=1)
]
Restart = Annotated[
    str | None,
    option(
        "--restart",
        "[PATH|latest]",
        "Go on from a run's newest whole checkpoint, or from one of its files; latest, or nothing: from that "
        "of the run in runs/ that wrote one last. The case.py that the run keeps may be executed.",
    ),
]
Transport = Annotated[
    str,
    option(
        "--transport",
        "NAME",
        "How halos go from rank to rank: auto takes the fastest that works; window, mpi, cuda-aware, ipc, "
        "staged, signals.",
    ),
]
Weights = Annotated[
    str | None, option("--weights", "W,W,...", "How fast each rank is, relative to the others; all alike if absent.")
]
Rebalance = Annotated[
    str,
    option(
        "--rebalance",
        "auto|never|STEPS",
        "Cut the grid anew during the run by the measured speeds of the ranks: auto, if it saves time; never; "
        "or a check every STEPS steps. With --weights auto is never.",
    ),
]
Threads = Annotated[
    int | None,
    option("--threads", "N", "Threads of a rank on a CPU, as OMP_NUM_THREADS=N; all cores if absent.", min=1),
]
NoBind = Annotated[
    bool, option("--no-bind", None, "Do not bind ranks and their memory: keep the binding of the launcher.")
]


def run(
    name: Name = None,
    preset: options.Preset = None,
    set_: options.Overrides = None,
    unset: options.Unset = None,
    out: Out = None,
    backend: options.Backend = "auto",
    steps: Steps = None,
    restart: Restart = None,
    transport: Transport = "auto",
    weights: Weights = None,
    rebalance: Rebalance = "auto",
    threads: Threads = None,
    no_bind: NoBind = False,
    json: options.Json = False,
) -> int:
    """Run a case and write its fields and run.json, or continue a run.

    Exit status: 0 done; 2 an error to correct; 3 stopped before the end (blow-up, full disk, time.wall_limit);
    130 Ctrl-C; 128 + N another signal N (143 SIGTERM, 129 SIGHUP, 138 and 140 SIGUSR1 and SIGUSR2). After the last
    three a checkpoint was written, from which hiresx run --restart continues.

    If mpirun, srun or hiresx launch starts this command, all ranks compute the case together.
    """
    import rich.console  # noqa: F401 - a broken library is reported before a folder is made

    from hiresx.base.threads import check_threads
    from hiresx.mpi.communicator import world

    with terminal.only_json(json), raise_on_termination():
        check_threads(threads)
        if threads is not None:
            os.environ["OMP_NUM_THREADS"] = str(threads)
        speeds = options.numbers(weights, "--weights", "1,1,4")
        how = {
            "backend": backend, "comm": world(), "transport": transport, "weights": speeds, "bind": not no_bind,
            "rebalance": rebalance,
        }  # fmt: skip
        request = _RunRequest(name, preset or (), set_ or (), unset or (), out, steps, how, json)
        outcome = _run_new(request) if restart is None else _run_restarted(restart, request)
    return outcome.report(json)


@dataclass(frozen=True)
class _RunRequest:
    """A run as the command line describes it. `how`: arguments that are passed on to Simulation."""

    name: str | None
    preset: Sequence[str]
    overrides: Sequence[str]
    unset: Sequence[str]
    out: Path | None
    steps: int | None
    how: dict[str, Any]
    json: bool

    @property
    def comm(self) -> Any:
        return self.how["comm"]

    def on_timeout(self, directory: Path) -> Any:
        """The function that reports a run there that is ended while it waits."""
        return lambda error: _Outcome(directory, error, True, {}, self.comm.root).report(self.json)

    def load(self) -> Any:
        """The case, by name or file."""
        from hiresx.case import load

        assert self.name is not None
        return load(self.name, self.preset, self.overrides, unset=self.unset)


class _Outcome:
    """The outcome of a run in `directory`: its `fault` (None if it returned), whether it had `begun`, and its record
    `done`. `root`: whether this rank prints it. `already`: if nothing was done because the run had reached an end
    before, the key and value of this end, and the present step or time."""

    def __init__(
        self,
        directory: Path,
        fault: BaseException | None,
        begun: bool,
        done: dict[str, Any],
        root: bool,
        already: tuple[str, float, float] | None = None,
    ):
        self.directory, self.fault, self.begun, self.done, self.root = directory, fault, begun, done, root
        self.already = already

    def report(self, json: bool) -> int:
        """Prints it and gives the exit status."""
        from hiresx.case.functions import CORRECT_FUNCTION
        from hiresx.output.saved import checkpoint

        directory, done, cause = self.directory, self.done, self.fault
        fault: Any = cause
        status = done.get("status")
        if status == "finished" and fault is None:
            if not self.root:
                return 0
            if self.already is not None:
                key, _, at = self.already
                terminal.note(f"{directory} is already {_where(*self.already)}: nothing was done")
                if key:
                    again = checkpoint.command_to_continue(directory, f"{key}=...")
                    terminal.note(f"to go on, with a value above {at:g}: {again}")
            if json:
                terminal.print_json({"directory": str(directory), **done})
            elif self.already is None:
                from hiresx.output.fields.field_file import only_vtk

                terminal.say(f"wrote {directory}", needed=False)
                there = only_vtk(directory)
                look = f"see it with: hiresx plot {quote(directory)}" if there is None else f"open {there} in ParaView"
                terminal.say(f"  {look}", needed=False)
            return 0
        code = 3 if self.begun else 2
        if isinstance(fault, Terminated):
            code, fault = int(fault.code or 0), HiresxError(str(fault))
        elif isinstance(fault, KeyboardInterrupt) or (fault is None and status == "interrupted"):
            code, fault = 130, HiresxError("interrupted")
        elif fault is None:
            fault = HiresxError(done.get("error") or f"the run is {status or 'without a record'}")
        fault.everywhere = cause is None or getattr(cause, "everywhere", False)
        parts = [fault.hint]
        if self.begun and directory.exists():
            parts.append(f"what was computed is in {directory}")
            if checkpoint.list_checkpoints(directory):
                # with the same settings the flow would blow up again
                if (again := getattr(self.fault, "again", "")) is not None:
                    parts.append(_way_on(directory, again))
                if fault.hint == CORRECT_FUNCTION:
                    parts.append(f"the restart takes functions from {directory / 'case'}: correct them there")
        hint = "; ".join(part for part in parts if part)
        return terminal.end_with_error(fault, code, fault.message, hint, json, directory=str(directory))


def _way_on(directory: Path, again: str) -> str:
    """Return a text that says how to continue a run from its checkpoints. `again`: the setting that this needs,
    KEY=VALUE."""
    from hiresx.output.saved import checkpoint
    from hiresx.sweeps import folder

    if again and (directory.parent / folder.NAME).is_file():
        # with another value it would no longer be the run of this name in the sweep
        return f"the run is one of the sweep in {directory.parent}: try {again} as another value of the sweep, or apart"
    return f"to go on: {checkpoint.command_to_continue(directory, again)}"


def _run_new(request: _RunRequest) -> _Outcome:
    comm, out = request.comm, request.out
    if request.name is None:
        raise HiresxError(
            "Missing argument NAME|FILE.toml",
            "name a bundled case (hiresx new lists them) or a file, or a run with --restart; see hiresx run --help",
        )
    with comm.together():
        case = request.load()
    from hiresx.estimate import refuse_on_gpus, refuse_oversized

    with comm.together():  # before the imports that a run needs
        refuse_oversized(case, request.how["backend"], hosts=len(set(comm.hosts)))
        refuse_on_gpus(case, request.how["backend"], comm.size)
    from hiresx.equations import equations
    from hiresx.output.fields import derived
    from hiresx.simulation import Simulation
    from hiresx.simulation.watchdog import Watchdog

    for line in check_numbers.unlikely_values(case, math.inf):
        terminal.note_once(line)
    absent, directory = [], None
    with comm.together():
        derived.check(case.output.variables, f"{request.name}: output.variables", equations(case).scalars)
        if comm.root:
            root = Path("runs") if out is None else out
            absent = [path for path in (root, *root.parents) if not os.path.exists(path)]
            directory = output_directory(out, case)
    directory = comm.bcast(directory)
    simulation = fault = done = None
    try:
        with Watchdog(comm, None):
            simulation = Simulation(case, out=directory, **request.how)
        simulation.on_timeout = request.on_timeout(directory)
        done = _run_steps(simulation, request)
    except _ENDS as error:
        fault = error
    begun = getattr(simulation, "begun", False)
    done = record(directory) if comm.root else done or {}
    if comm.root and not done and (out is None or absent) and not begun:
        discard(directory, absent)
    return _Outcome(directory, fault, bool(done) or begun, done, comm.root)


def _run_restarted(restart: str, request: _RunRequest) -> _Outcome:
    comm, out = request.comm, request.out
    if request.name is None and request.preset:
        raise HiresxError(
            "--preset needs the name of a case",
            "a restarted run has its preset in it already: leave --preset away, or name the case as well",
        )
    from hiresx.output.saved import checkpoint
    from hiresx.simulation import Simulation, kept_case
    from hiresx.simulation.watchdog import Watchdog

    with comm.together():
        case = None if request.name is None else request.load()
        where = None if not comm.root else latest_run(out) if restart == "latest" else restart
    found = checkpoint.find(comm.bcast(where), comm)
    with comm.together():
        if found.directory is None and (out is None or case is None):
            command, name = checkpoint.command_that_starts(), quote(request.name or "CASE")
            raise HiresxError(
                f"{restart} is not in a run directory",
                "name the case of the run and a new folder: "
                f"{command} {name} --restart {quote(restart)} --out {quote(out or 'DIR')}",
            )
        directory = found.directory if out is None else out
        assert directory is not None
        if comm.root and (found.directory is None or directory.absolute() != found.directory.absolute()):
            directory = output_directory(out, case or kept_case(found, request.overrides, request.unset))
        case = case or kept_case(found, request.overrides, request.unset)
    directory = comm.bcast(directory)
    done = comm.bcast(record(directory) if comm.root else None)
    end = at_its_end(case, found, comm)
    if end is not None and done.get("status") == "finished":
        return _Outcome(directory, None, False, done, comm.root, end)
    if end is not None and comm.root:
        terminal.note(f"{directory} is already {_where(*end)}: no step is taken, the last fields are written")
    with Watchdog(comm, None):
        simulation = Simulation(case, out=directory, restart=found, **request.how)
    simulation.on_timeout = request.on_timeout(directory)
    fault = done = None
    try:
        done = _run_steps(simulation, request)
    except _ENDS as error:
        fault = error
    done = record(directory) if simulation.begun and comm.root else done or {}
    return _Outcome(directory, fault, simulation.begun, done, comm.root)


def _run_steps(simulation: "Simulation", request: _RunRequest) -> dict[str, Any]:
    """Run to the end, or for the number of steps that was requested, and print a note if `time.steps` permits fewer
    steps. Returns the record of the run."""
    before, most = simulation.step_count, simulation.case.time.steps
    done = simulation.run(steps=request.steps)
    taken = simulation.step_count - before
    if request.comm.root and request.steps is not None and taken < request.steps and simulation.step_count == most:
        terminal.note(f"ended at time.steps = {most} after {taken} of the {request.steps} steps of --steps")
        from hiresx.output.saved import checkpoint

        if command := checkpoint.command_to_continue(simulation.out or "", "time.steps=..."):
            terminal.note(f"to go on: {command}")
    return done


def _where(key: str, end: float, at: float) -> str:
    """Return a text that says how far a run has come, from the result of `at_its_end`."""
    if not key:
        return f"at a residual of {at:.3g}, which is round-off"
    return f"at {key} = {end:g}" if at <= end * (1 + 1e-9) else f"at {at:g}, past {key} = {end:g}"


def at_its_end(case: "Case", found: Any, comm: "Communicator") -> tuple[str, float, float] | None:
    """Return the end of `case` that the checkpoint `found` has already reached: its key (such as "time.end"), its
    value, and the time or the number of steps of the checkpoint. Return None if no end is reached, so that the run can
    continue. A steady flow ends when its residual has fallen by the factor `implicit.drop`. If the residual is only
    round-off, the flow has converged as well, and the key is "". All ranks of `comm` must call this. Raises HiresxError
    for a checkpoint of another case."""
    from hiresx.case.implicit_table import NAME as IMPLICIT
    from hiresx.output.saved import checkpoint
    from hiresx.simulation.continuation import Continuation
    from hiresx.simulation.ends import is_reached

    with comm.together():
        Continuation(comm, case.model_dump(mode="json"), found)
        spec = case.time
        with checkpoint.reading_contents(found.container.path):
            at = found.container.values["solver"]
            time, steps, dt = float(at["time"]), int(at["steps"]), float(at["dt"])
            fall = _steady_end(at.get("memory", {}), case.implicit.drop) if spec.integrator == IMPLICIT else None
        if fall is not None:
            return fall
        if spec.steps is not None and steps >= spec.steps:
            return "time.steps", spec.steps, steps
        return (
            ("time.end", spec.end, time) if spec.end is not None and is_reached(spec, time, steps, dt, None) else None
        )


def _steady_end(memory: Mapping[str, float], drop: float) -> tuple[str, float, float] | None:
    """Return the result of `at_its_end` for the implicit integrator, from its `memory`
    (`hiresx.time.integrators.implicit`)."""
    first, last = float(memory.get("first_residual", 0.0)), float(memory.get("residual", math.inf))
    if last * drop <= first:
        return "implicit.drop", drop, first / last if last > 0 else math.inf
    floor = float(memory.get("round_off", 0.0))
    return ("", floor, last) if last <= floor else None


def latest_run(out: Path | None) -> Path:
    """Return the folder of the run to continue if the user names none: `out`, or the run in the folder runs/ with the
    newest checkpoint. Raises HiresxError if there is none."""
    from hiresx.output.saved import checkpoint

    if out is not None:
        return out
    newest = {path: found[0] for path in Path("runs").glob("*/") if (found := checkpoint.list_checkpoints(path))}
    if not newest:
        raise HiresxError("no run in runs/ has a checkpoint", "name the run: hiresx run --restart DIR")
    return max(newest, key=lambda path: newest[path].stat().st_mtime_ns)


def output_directory(out: Path | None, case: "Case") -> Path:
    """Create and return the folder of a new run: `out`, or the first unused runs/<case>[-<preset>]-<n>. Raises
    HiresxError if it cannot be created, or if `out` contains a run already."""
    from hiresx.output.saved import directories, files

    if out is not None:
        refuse_existing_run(out)
        return directories.make_directory(out)
    stem = "-".join(part for part in (case.name, case.preset) if part)
    runs = directories.make_directory(Path("runs"))
    number = 1
    while True:
        directory = runs / f"{stem}-{number}"
        try:
            # The folder is created and not only looked for, so that two runs that start together get two folders.
            directory.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise files.io_error(directory, error) from None
        else:
            return directory


def refuse_existing_run(out: Path) -> None:
    """Raise HiresxError if the folder `out` contains a run. The message says whether a process is still computing this
    run."""
    from hiresx.output.saved import checkpoint, directories

    if os.path.lexists(out / "run.json"):
        with directories.lock_directory(out):
            pass
        command = checkpoint.command_to_continue(out)
        raise HiresxError(
            f"{out} holds a run already",
            f"name another folder with --out DIR, or remove this one{command and f', or continue it: {command}'}",
        )


def discard(directory: Path, absent: Sequence[Path]) -> None:
    """Remove the folder `directory` of a run that did not begin. `absent`: the folders among it and its parents that
    did not exist before this command; those that are empty are removed, too."""
    shutil.rmtree(directory, ignore_errors=True)
    for path in absent:
        with contextlib.suppress(OSError):
            path.rmdir()


def record(directory: Path) -> dict[str, Any]:
    """Return the content of the file run.json in `directory`, the record of a run; an empty dictionary if there is no
    such file."""
    from hiresx.output.saved import record as records

    return records.read_or_empty(directory)
