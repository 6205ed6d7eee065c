"""The runs of a sweep, one after the other on this machine, each in a process of its own."""

import signal
import time as wall
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from hiresx.base import shell
from hiresx.base.argument_types import check_types
from hiresx.base.plural import plural
from hiresx.base.termination_signals import ENDING, Requests, Terminated
from hiresx.errors import HiresxError
from hiresx.launch import counts, job, mpi_library
from hiresx.launch.command import command
from hiresx.mpi import launcher_environment
from hiresx.output.saved import directories, files, record
from hiresx.output.show.progress import duration
from hiresx.sweeps import folder, member, table
from hiresx.sweeps.members import SweepMember, SweepPlan, plan
from hiresx.sweeps.run_numbers import Analysis, ReducedColumn, analyses, column
from hiresx.sweeps.table import SweepTable

PICTURE = "table.png"
# Seconds to wait for the end of a run that a killed sweep has left: it writes its checkpoint.
PATIENCE = 60.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class TableRequest:
    """The content of the table and of the picture of a sweep. `columns`: further columns, each a number of a history.
    `analyses`: commands of `hiresx post` whose numbers are columns. `plot`: the names of the columns along x and y;
    None for no picture."""

    columns: Sequence[ReducedColumn] = ()
    analyses: Sequence[Analysis] = ()
    plot: tuple[str, str] | None = None

    def check(self, of: SweepPlan) -> None:
        """Raise HiresxError for a column from a history that no run of the sweep `of` writes, and for a column to plot
        that does not exist in the table of `of`."""
        for wanted in self.columns:
            wanted.check([one.case for one in of.members])
        empty = table.table(of, [], self.columns)
        for name in self.plot or ():
            if not name.startswith(tuple(f"{analysis.name}." for analysis in self.analyses)):
                empty.full_name(name)


@dataclass(frozen=True)
class RunOptions:
    """Options by which each run of a sweep is started. `ranks`: the number of MPI ranks. `words`: the arguments of
    `hiresx run` that do not belong to the case. `mpirun`: the launcher to use instead of the default one."""

    ranks: int = 1
    words: Sequence[str] = ()
    mpirun: str | None = None


@check_types
def sweep(
    case: str | Path,
    values: Mapping[str, Sequence[Any]] | None = None,
    out: str | Path = "",
    presets: Sequence[str] = (),
    zip: bool = False,
    ranks: int = 1,
    backend: str = "auto",
    columns: Sequence[str] = (),
    collect: Sequence[str] = (),
    start: float | None = None,
    plot: tuple[str, str] | None = None,
    progress: bool = True,
) -> SweepTable:
    """Run `case` (name, file or folder) with all combinations of `values` (a list for each dotted key) and `presets`,
    each in a separate folder in `out`, and return the table of the results, which is also written as table.csv and
    table.json. If `zip` is true, the first values of all keys are combined, then the second ones. A sweep that was
    interrupted is resumed by the same call: finished runs are not run again, others continue from their checkpoints.
    Values may be added. A run that fails does not stop the others; its row is in `SweepTable.unfinished_rows`.

    `columns`: numbers from histories, as HISTORY.QUANTITY:HOW (last, first, mean, min, max, std), over times from
    `start` (in L / c_ref) on. `collect`: commands of `hiresx post` with their options, whose numbers become columns.
    `plot`: two columns to draw in table.png. `ranks` and `backend`: the number of MPI ranks and the backend of each
    run. If `progress` is false nothing is printed.

    Raises HiresxError, before anything is run, for an invalid case, and for a folder that contains other files or a
    sweep of another case, with the difference. Ctrl-C stops the sweep in a state that can be resumed.
    """
    if not str(out):
        raise HiresxError("the sweep has no folder", 'give one: out="runs/sweep"')
    of = plan(case, dict(values or {}), presets, zip, folder.named_by(Path(out)))
    wanted = TableRequest([column(text, start) for text in columns], analyses(collect), plot)
    words = ["--backend", backend] if backend != "auto" else []
    say: Say = partial(print, flush=True) if progress else lambda line: None
    ended = run(of, Path(out), case, RunOptions(ranks, words), wanted, say, progress)
    for line in draw_picture(ended.table, Path(out), wanted) if plot is not None and ended.signal is None else ():
        say(f"wrote {line}")
    ended.act()
    return ended.table


@dataclass(frozen=True)
class SweepEnd:
    """The result of a sweep. `table`: its table. `signal`: the number of the signal that stopped the sweep, or None."""

    table: SweepTable
    signal: int | None = None

    def act(self) -> None:
        """Raise KeyboardInterrupt or Terminated if a signal stopped the sweep; otherwise do nothing."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            raise Terminated(self.signal)


def run(
    of: SweepPlan, out: Path, case: str | Path, how: RunOptions, wanted: TableRequest, say: Say, show: bool = True
) -> SweepEnd:
    """Make all runs of the sweep `of` that are not finished, write the table that `wanted` describes after each run,
    and return the table with the signal that stopped the sweep, if any. `out`: the folder of the sweep. `case`: the
    case as the user named it. `how`: the options of each run. `say`: a function that prints a line of progress. `show`:
    whether the output of the runs is also written to stderr. Raises HiresxError for a folder with other contents or
    another sweep, and for columns that no run provides."""
    if (launcher_environment.launched_processes() or 0) > 1:
        raise HiresxError(
            "a launcher started this sweep", "start it without the launcher; -n N gives each of its runs N ranks"
        )
    wanted.check(of)
    launcher = mpi_library.find(how.mpirun)[1] if how.ranks > 1 else None
    folder.holds_sweep(out)
    directories.make_directory(out)
    with directories.lock_directory(out), Requests() as requests:
        folder.claim(out, case, of)
        needs = {one.name: member.need(out, one) for one in of.members}
        rows = {one.name: table.row(out, one, fresh=False) for one in of.members}
        wants = list(needs.values())
        finished, removal = wants.count("nothing"), wants.count("removal")
        left = len(wants) - finished - removal
        say(f"{plural(len(of.members), 'run')} in {out}: {finished} finished, {left} to do")
        for one in (one for one in of.members if needs[one.name] == "removal"):
            say(f"left out: {rows[one.name][table.ERROR]}")
        if left_out := folder.others(out, of):
            are = "is" if len(left_out) == 1 else "are"
            named = ", ".join([left_out[0], *(["..."] if left_out[1:] else [])])
            say(f"{plural(len(left_out), 'more run')} of this sweep {are} not requested and not in this table: {named}")
        clock = _Clock(left)
        written = table.table(of, list(rows.values()), wanted.columns)
        found = None
        for n, one in enumerate(of.members):
            found = found or requests.signal
            if found is not None:
                break
            need = needs[one.name]
            to_do = need not in ("nothing", "removal")
            if to_do:
                label = f"{n + 1}/{len(of.members)}"
                say(f"[{label}] {one.name}{'' if need == 'begin' else f' ({need})'}: {clock.remaining()}")
                found = _one(out, one, need, how, launcher, f"[{label}] " if show else None, say)
                clock.took()
            found = found or requests.signal
            rows[one.name] = table.row(out, one, wanted.columns, wanted.analyses, fresh=found is None)
            if to_do:
                say(f"[{label}] {one.name}: {_summarise(rows[one.name])}")
            written = table.table(of, list(rows.values()), wanted.columns)
            if to_do or n + 1 == len(of.members):
                written.write(out)
    return SweepEnd(written, found or requests.signal)


def tabulate(of: SweepPlan, out: Path, case: str | Path, wanted: TableRequest) -> SweepTable:
    """Write the table of the existing runs of the sweep `of` in the folder `out` and return it; nothing is run.
    `wanted`: its columns. `case`: the case as the user named it. Raises HiresxError if `out` does not contain this
    sweep."""
    wanted.check(of)
    if not folder.compare(out, case, of):
        raise HiresxError(f"{out} holds no sweep", "leave out --table, so that the runs are made first")
    found = table.table(
        of, [table.row(out, one, wanted.columns, wanted.analyses) for one in of.members], wanted.columns
    )
    found.write(out)
    return found


def draw_picture(of: SweepTable, out: Path, wanted: TableRequest) -> list[Path]:
    """Draw the columns that `wanted` names of the table `of` of a sweep to table.png in the folder `out`, and return
    the path in a list, which is empty if no picture is wanted. Raises HiresxError for columns that do not exist or
    contain no number."""
    if wanted.plot is None:
        return []
    from hiresx.output.show import picture_file

    figure, _ = of.plot(*wanted.plot)
    with picture_file.style():  # the resolution is a setting, too
        return [picture_file.save(figure, out / PICTURE)]


def arguments(out: Path, one: SweepMember, need: member.Need, words: Sequence[str]) -> list[str]:
    """Return the arguments of `hiresx run` for the run `one` of the sweep in the folder `out`. `need`: what has to be
    done for it: "begin", "go on" from its checkpoint, or "begin again". `words`: further options."""
    if need == "go on":
        return ["--restart", str(out / one.name), *words]
    return [str(out / folder.CASE), *one.words, *words, "--out", str(out / one.name)]


def _one(
    out: Path, one: SweepMember, need: member.Need, how: RunOptions, launcher: Any, prefix: str | None, say: Say
) -> int | None:
    """Run one. Returns the signal that ended it, or that this process received meanwhile."""
    place = out / one.name
    if need != "begin" and not _free(place, say):
        say(f"another process runs {place}: it is skipped")
        return None
    if need == "begin again":
        member.clear(out, one)
    line = command(launcher, how.ranks, counts.cores(), arguments(out, one, need, how.words))
    path = member.log(out, one)
    with files.naming_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as log:
            log.write(f"\n{member.BEGUN}{shell.quote_all(line)}\n")
            with redirect_stdout(_Tee(log, None)), redirect_stderr(_Tee(log, prefix)):
                ended = job.run(line, how.ranks, launcher is not None and launcher.hydra)
    if ended.status not in (0, 2, 3) and ended.asked is None:
        _explain(place, path, ended)
    if ended.asked is None and ended.status - 128 in ENDING:
        return ended.status - 128  # the run itself received the signal
    return ended.asked


def _explain(place: Path, log: Path, ended: job.JobEnd) -> None:
    """Let the record, or the log, say how a run ended that could not record it itself."""
    how = f"ended with status {ended.status}" if ended.signal is None else f"was ended by signal {ended.signal}"
    if ended.status > 128 and ended.signal is None:
        how = f"was ended by signal {ended.status - 128}"
    message = f"the run {how}"
    if record.read_or_empty(place).get("status") in ("running", "lost"):
        with suppress(HiresxError):
            record.mark_failed(place, "failed", message)
    elif not member.last_error(log):
        with suppress(OSError), log.open("a", encoding="utf-8") as stream:
            stream.write(f"error: {message}\n")


def _free(place: Path, say: Say) -> bool:
    """True if no process computes a run; the end of one that is about to end is awaited."""
    until, announced = wall.monotonic() + PATIENCE, False
    while True:
        try:
            with directories.lock_directory(place):
                # Without locks, or if the process is on another host, only its record is known.
                return record.read_or_empty(place).get("status") != "running"
        except HiresxError:
            if wall.monotonic() > until:
                return False
        if not announced:
            say(f"{place} is still running: waiting for its end")
            announced = True
        wall.sleep(0.2)


def _summarise(row: Mapping[str, Any]) -> str:
    facts = [str(row["status"])]
    if row["steps"] is not None:
        facts.append(plural(row["steps"], "step"))
    if row["wall_s"] is not None:
        facts.append(duration(row["wall_s"]))
    return ", ".join(facts) + (f": {row[table.ERROR]}" if row[table.ERROR] else "")


@dataclass
class _Clock:
    """Estimates how long the remaining runs will take, from those that ended during this process."""

    todo: int
    _took: list[float] = field(default_factory=list)
    _since: float = field(default_factory=wall.monotonic)

    def took(self) -> None:
        now = wall.monotonic()
        self._took.append(now - self._since)
        self._since = now
        self.todo -= 1

    def remaining(self) -> str:
        text = f"{self.todo} left"
        if self._took:
            text += f", about {duration(self.todo * sum(self._took) / len(self._took))}"
        return text


class _Tee:
    """Writes the output of a run to its `log`; with a `prefix` each line is also written to stderr."""

    def __init__(self, log: TextIO, prefix: str | None):
        import sys

        self._log, self._prefix, self._target, self._line = log, prefix, sys.stderr, ""

    def write(self, text: str) -> int:
        with suppress(OSError):  # the run itself reports a full disk
            self._log.write(text)
            self._log.flush()
        if self._prefix is not None:
            *lines, self._line = (self._line + text).split("\n")
            for line in lines:
                print(f"{self._prefix}{line}", file=self._target, flush=True)
        return len(text)

    def flush(self) -> None:
        """Does nothing: every write is flushed."""
