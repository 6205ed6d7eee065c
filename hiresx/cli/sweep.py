"""`hiresx sweep`: runs a case with several values of its keys."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hiresx.base import shell
from hiresx.base.plural import plural
from hiresx.cli import launch, options, terminal
from hiresx.cli.option_groups import expand_option_groups
from hiresx.cli.options import option
from hiresx.cli.run import Transport
from hiresx.errors import HiresxError

if TYPE_CHECKING:
    from hiresx.sweeps.members import SweepPlan
    from hiresx.sweeps.running import TableRequest
    from hiresx.sweeps.table import SweepTable

# Largest number of rows of the table that are printed.
_SHOWN = 200
# Number of results of analyses up to which all of them are printed.
_NUMBERS = 6
# What has to be done for a run that is not started.
_NO_RUN = ("nothing", "removal")

Values = Annotated[
    list[str] | None,
    option(
        "--set", "KEY=V,V,...", "Values of a key; may be repeated. Lists in brackets: 'grid.n=[32,32,1],[64,64,1]'."
    ),
]


@expand_option_groups
def sweep(
    name: options.CaseName,
    out: Annotated[Path, option("--out", "DIR", "Folder of the sweep, with one for each run.")],
    set_: Values = None,
    preset: Annotated[
        list[str] | None, option("--preset", "P,P,...", "Presets of the case, one for each run; given once.")
    ] = None,
    zip_: Annotated[
        bool, option("--zip", None, "The first values of all keys together, then the second; not all combinations.")
    ] = False,
    columns: Annotated[
        list[str] | None,
        option(
            "--column",
            "HISTORY.QUANTITY:HOW",
            "Column of the table: last, first, mean, min, max or std of a history, e.g. residual.rho:last; repeatable.",
        ),
    ] = None,
    start: Annotated[float | None, option("--from", "T", "Columns: leave out earlier times.")] = None,
    collect: Annotated[
        list[str] | None,
        option("--collect", "COMMAND", "Numbers of hiresx post into the table, e.g. 'jet --from 15'; repeatable."),
    ] = None,
    plot: Annotated[str | None, option("--plot", "X,Y", "Draw a column over another: DIR/table.png.")] = None,
    dry_run: Annotated[bool, option("--dry-run", None, "List the runs and their commands; run none.")] = False,
    table: Annotated[bool, option("--table", None, "Only the table of the existing runs; run none.")] = False,
    ranks: Annotated[int, option("-n", "N", "Ranks of each run.", also="--ranks", **launch.Positive)] = 1,
    backend: options.Backend = "auto",
    transport: Transport = "auto",
    *,
    script: launch.ScriptOptions,
    json: options.Json = False,
) -> int:
    """Run a case with every combination of the values that --set gives to its keys, one after the other, and make one
    table of the results.

    Repeat the command to resume a sweep: finished runs are not run again, the others go on from their checkpoints.
    Values may be added; a case that was changed meanwhile is refused. With --slurm or --pbs the runs become a job
    array, and --table makes the table afterwards.

    Exit status: 0 all runs are finished; 2 an error to correct; 3 a run failed, or a column of the table could not be
    computed for it (the table says which); 130 Ctrl-C; 128 + N another signal N.
    """
    with terminal.only_json(json):
        from hiresx.sweeps import folder, run_numbers
        from hiresx.sweeps.members import plan
        from hiresx.sweeps.running import TableRequest
        from hiresx.sweeps.values import parse, split_values

        if len(preset or []) > 1:
            raise HiresxError("--preset is given twice", "write all of them after one: --preset P,P,...")
        presets = split_values(preset[0], f"--preset {preset[0]}") if preset else []
        of = plan(name, parse(set_ or []), presets, zip_, folder.named_by(out))
        axes = None if plot is None else _two(plot)
        wanted = TableRequest(
            [run_numbers.column(text, start) for text in columns or []], _analyses(collect or []), axes
        )
        wanted.check(of)
        words = [*(["--backend", backend] if backend != "auto" else [])]
        words += ["--transport", transport] if transport != "auto" else []
    if dry_run:
        return _print_plan(of, out, name, words, json)
    if script.is_wanted:
        made = launch.make_batch(launch.parse_run_arguments([name, *words]), script, ranks if ranks > 1 else None)
        return _write_job_array(of, out, name, made, script, json)
    return _run(of, out, name, (ranks, words), wanted, table, json)


def _two(text: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise HiresxError(f'--plot "{text}" does not name two columns', "e.g. --plot time.cfl,wall_s")
    return parts[0], parts[1]


def _analyses(texts: Sequence[str]) -> Any:
    from hiresx.case.error_messages import did_you_mean
    from hiresx.cli.post import post
    from hiresx.sweeps import run_numbers

    found = run_numbers.analyses(texts)
    known = [str(command.name) for command in post.registered_commands]
    for analysis in found:
        if analysis.command not in known:
            hint = did_you_mean(analysis.command, known, "commands")
            raise HiresxError(f'--collect: no command "{analysis.command}"', hint)
    return found


def _run(
    of: "SweepPlan",
    out: Path,
    name: str,
    how: tuple[int, list[str]],
    wanted: "TableRequest",
    only_table: bool,
    json: bool,
) -> int:
    from hiresx.sweeps import running

    with terminal.only_json(json):
        if only_table:
            end = running.SweepEnd(running.tabulate(of, out, name, wanted))
        else:
            end = running.run(of, out, name, running.RunOptions(*how), wanted, terminal.progress)
        if not json:
            _print(end.table, wanted)
        for path in [
            out / "table.csv",
            out / "table.json",
            *([] if end.signal else running.draw_picture(end.table, out, wanted)),
        ]:
            terminal.say(f"wrote {path}")
    if json:
        terminal.print_json(end.table.document())
    left, total = sum(row["status"] != "finished" for row in end.table.rows), plural(len(end.table.rows), "run")
    if end.signal is not None:
        terminal.note(f"the sweep was ended, {left} of {total} {'is' if left == 1 else 'are'} not finished")
        terminal.note("to resume: repeat the command")
        return 128 + end.signal
    failed = end.table.unfinished_rows
    if failed:
        ways = Counter("finished, but lack numbers" if row["status"] == "finished" else row["status"] for row in failed)
        summary = ", ".join(f"{count} {way}" for way, count in sorted(ways.items()))
        see = "; see the column error" if any(row["error"] for row in failed) else ""
        terminal.note(f"{len(failed)} of {total} {'is' if len(failed) == 1 else 'are'} incomplete: {summary}{see}")
    return 3 if failed else 0


def _print(table: "SweepTable", wanted: "TableRequest") -> None:
    """Print the table without its empty columns. If `hiresx post` gives many numbers, only those that are plotted are
    shown."""
    columns = [name for name in table.columns if any(row[name] not in (None, "") for row in table.rows)]
    found = [name for name in columns if name.startswith(tuple(f"{one.name}." for one in wanted.analyses))]
    left_out = [name for name in found if name not in (wanted.plot or ())] if len(found) > _NUMBERS else []
    columns = [name for name in columns if name not in left_out]
    rows = [[_cell(row[name]) for name in columns] for row in table.rows[:_SHOWN]]
    terminal.table(table.title, columns, rows)
    if len(table.rows) > _SHOWN or left_out:
        terminal.say(f"not shown: {plural(max(0, len(table.rows) - _SHOWN), 'row')}, {plural(len(left_out), 'column')}")


def _cell(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else terminal.text(value)


def _print_plan(of: "SweepPlan", out: Path, name: str, words: list[str], json: bool) -> int:
    from hiresx.sweeps import folder, member, running

    there = folder.compare(out, name, of)
    needs = [member.need(out, one) if there else "begin" for one in of.members]
    lines = [
        ["hiresx", "run", *running.arguments(out, one, need, words)]
        for one, need in zip(of.members, needs, strict=True)
    ]
    if json:
        runs = [
            {"run": one.name, "values": one.values, "to_do": need, "command": line if need not in _NO_RUN else None}
            for one, need, line in zip(of.members, needs, lines, strict=True)
        ]
        terminal.print_json({"title": of.title, "keys": of.axes, "runs": runs})
        return 0
    terminal.say(f"{plural(len(of.members), 'run')} in {out}")
    for one, need, line in zip(of.members, needs, lines, strict=True):
        summary = "finished" if need == "nothing" else f"{need}: {shell.quote_all(line)}"
        if need == "removal":
            _, summary, _ = member.status(out, one)
        terminal.say(f"  {one.name}  {summary}")
    return 0


def _write_job_array(of: "SweepPlan", out: Path, name: str, made: Any, script: launch.ScriptOptions, json: bool) -> int:
    """Write a job array. Its runs use the copy of the case in `out`, as runs on this machine do."""
    from hiresx.launch.batch_script import ArrayMember
    from hiresx.output.saved import directories
    from hiresx.sweeps import folder, member

    folder.holds_sweep(out)
    directories.make_directory(out)
    with directories.lock_directory(out):
        folder.claim(out, name, of)
        left = [one for one in of.members if member.need(out, one) not in _NO_RUN]
    if not left:
        raise HiresxError(f"nothing is left to do in {out}", "for the table give --table")
    words = [str(out / folder.CASE) if word == name else word for word in made.run]
    array = dataclasses.replace(
        made,
        name=f"{made.name}-sweep",
        run=tuple(words),
        out=str(out),
        members=tuple(ArrayMember(str(out / one.name), one.words) for one in left),
    )
    status = launch.write_scripts(array, script, json)
    if not json:
        terminal.say(
            f"  {len(left)} of {plural(len(of.members), 'run')}; for the table repeat the command with --table"
        )
    return status
