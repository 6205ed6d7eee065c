"""`hiresx history`: the samples that the monitors of a run recorded."""

import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from hiresx.base.plural import plural
from hiresx.base.whole_files import describe_path
from hiresx.cli import options, terminal
from hiresx.cli.options import argument, option
from hiresx.errors import HiresxError


def history(
    run: Annotated[Path, argument("RUN|FILE.nc", "Folder of a run, or one of its histories.")],
    name: Annotated[str | None, argument("[NAME]", "A history; without it they are listed.")] = None,
    csv: Annotated[bool, option("--csv", None, "Print it as comma-separated values, with all digits.")] = False,
    out: Annotated[Path | None, option("--out", "FILE.csv", "Write the values there.")] = None,
    json: options.Json = False,
) -> int:
    """List the histories of a run, which are the time series that its monitors recorded, or show one of them: as a
    summary, as CSV or as JSON.

    Exit status: 0 done; 2 an error to correct."""
    with terminal.only_json(json):
        from hiresx.case.implicit_table import NAME as IMPLICIT
        from hiresx.case.monitors import RESIDUAL
        from hiresx.output.saved import files
        from hiresx.output.watch import history as kept

        path = _path(run, name)
        if path is None:
            tables = [kept.read(found) for found in kept.histories(run).values()]
        else:
            table = kept.read(path)
            if out is not None:
                with files.writing(out) as temporary, temporary.open("w", encoding="utf-8") as stream:
                    table.write_csv(stream)
    if path is None:
        listed = [
            (t.name, t.kind, t.samples, len(t.places) if t.places is not None else None, list(t.quantities))
            for t in tables
        ]
        if json:
            names = ("name", "kind", "samples", "places", "columns")
            terminal.print_json({"histories": [dict(zip(names, row, strict=True)) for row in listed]})
        else:
            rows = [(*row[:-1], _some(row[-1])) for row in listed]
            terminal.table("Histories", ["name", "kind", "samples", "places", "columns"], rows)
        return 0
    if json:
        terminal.print_json({"name": table.name, "kind": table.kind, "columns": table.flat()})
    elif csv:
        table.write_csv(sys.stdout)
    elif out is None:
        flat = table.flat()
        summaries = [(column, *_summary(values)) for column, values in flat.items()]
        terminal.table(
            f"{table.name}: {plural(table.samples, 'sample')}", ["", "first", "last", "least", "largest"], summaries
        )
        for column, values in flat.items():
            # before the first step there are no rates, and there is no step of the implicit integrator
            begins = table.kind in (RESIDUAL, IMPLICIT) and table.samples > 0 and flat["step"][0] == 0
            unknown = begins and not math.isfinite(values[0])
            if bad := len(values) - len(_finite(values)) - int(unknown):
                terminal.say(
                    f"{column}: {bad} of {plural(len(values), 'sample')} not finite, left out of least and largest"
                )
    else:
        terminal.say(f"wrote {out}")
    return 0


def _path(run: Path, name: str | None) -> Path | None:
    """Return the path of the requested history; None if all histories of a run are to be listed. Raises HiresxError if
    there is none."""
    from hiresx.case.error_messages import did_you_mean
    from hiresx.output.watch import history as kept

    if run.is_file():
        if name is not None:
            raise HiresxError(f"{run} is a file and has no history {name}", "give the folder of the run")
        return run
    if not run.is_dir():
        raise HiresxError(f"{run} {describe_path(run)}", "give the folder of a run, or one of its histories")
    found = kept.histories(run)
    if not found:
        raise HiresxError(f"there are no histories in {run}", "give the folder of a run that has begun")
    if name is None:
        return None
    if name not in found:
        raise HiresxError(f'{run} has no history "{name}"', did_you_mean(name, list(found), "histories"))
    return found[name]


def _summary(values: Any) -> list[float]:
    """Return the first, last, least and largest of the finite values."""
    if not len(values):
        return [float("nan")] * 4
    finite = _finite(values) or [float("nan")]
    return [float(values[0]), float(values[-1]), min(finite), max(finite)]


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in map(float, values) if math.isfinite(value)]


def _some(names: list[str], most: int = 12) -> str:
    """Return the first of many names."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])}, ... ({len(names)} in all)"
