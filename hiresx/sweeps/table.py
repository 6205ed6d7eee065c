"""The table of a sweep, with one row for each run."""

import csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx.base.json_types import to_json_types
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.output.saved import files
from hiresx.sweeps import member
from hiresx.sweeps.members import SweepMember, SweepPlan
from hiresx.sweeps.run_numbers import Analysis, ReducedColumn
from hiresx.sweeps.values import format_value

CSV, JSON = "table.csv", "table.json"
# Columns of every run after its values: its status (as in run.json; "waiting": not begun) and the reason, steps, time
# (L / c_ref), seconds of all its processes. For a finished run `error` names the numbers that could not be computed.
FACTS = ("status", "steps", "time", "wall_s")
ERROR = "error"


@dataclass(frozen=True)
class SweepTable:
    """The table of a sweep. `title`: the title of the sweep. `keys`: the columns of the keys that were varied. `rows`:
    a dictionary for each run, all with the same `columns`."""

    title: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]

    @property
    def unfinished_rows(self) -> list[dict[str, Any]]:
        """The rows of those runs that are not finished or for which a column could not be computed."""
        return [row for row in self.rows if row["status"] != "finished" or row[ERROR]]

    def column(self, name: str) -> list[Any]:
        """Return the values of the column `name` for all runs. For a column of a key, the last part of the dotted key
        is enough. Raises HiresxError for an unknown name."""
        full = self.full_name(name)
        return [row[full] for row in self.rows]

    def full_name(self, name: str) -> str:
        """Return the full name of the column `name`, which may be the last part of a dotted key. Raises HiresxError for
        an unknown name."""
        near = [key for key in self.keys if key.rpartition(".")[2] == name]
        if name in self.columns:
            return name
        if len(near) == 1:
            return near[0]
        raise HiresxError(f'the table has no column "{name}"', did_you_mean(name, list(self.columns), "columns"))

    def plot(self, x: str, y: str) -> tuple[Any, Any]:
        """Draw the column `y` over the column `x`, with one curve for each combination of the other keys of the sweep,
        and return Figure and Axes of matplotlib."""
        from hiresx.sweeps import picture

        return picture.draw(self, x, y)

    def csv(self) -> str:
        """Return the table as the text of a CSV file (comma-separated values), with all digits; absent values are
        empty."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_cell(row[name]) for name in self.columns] for row in self.rows)
        return stream.getvalue()

    def document(self) -> dict[str, Any]:
        """Return the table as nested dictionaries and lists that JSON can represent."""
        plain: dict[str, Any] = to_json_types(
            {"title": self.title, "keys": self.keys, "columns": self.columns, "runs": self.rows}
        )
        return plain

    def write(self, out: Path) -> list[Path]:
        """Write the table to the files table.csv and table.json in the folder `out`, and return their paths. Raises
        HiresxError with the path of a file that cannot be written."""
        files.write_text(out / CSV, self.csv())
        files.write_text(out / JSON, json.dumps(self.document(), indent=2, allow_nan=False) + "\n")
        return [out / CSV, out / JSON]

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_short(row[name]))}</td>" for name in self.columns) + "</tr>"
            for row in self.rows
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def row(
    out: Path,
    one: SweepMember,
    columns: Sequence[ReducedColumn] = (),
    analyses: Sequence[Analysis] = (),
    fresh: bool = True,
) -> dict[str, Any]:
    """Return the row of the run `one` in the table of the sweep in the folder `out`, as a dictionary from the name of
    the column to its value. `columns`, `analyses`: further columns, which are computed if the run is finished; the
    entry `error` names those that fail. If `fresh` is false, these further columns are left out."""
    status, why, kept = member.status(out, one)
    found: dict[str, Any] = {"run": one.name, "status": status, "steps": kept.get("steps"), "time": kept.get("time")}
    found |= {"wall_s": _seconds(kept), **one.values}
    faults = []
    if status == "finished" and fresh:
        for column in columns:
            try:
                found[column.name] = column.value(out / one.name)
            except HiresxError as error:
                faults.append(f"{column.name}: {error.message}")
        for analysis in analyses:
            try:
                found |= analysis.values(out / one.name)
            except HiresxError as error:
                faults.append(error.message)
    found[ERROR] = "; ".join([part for part in (why, *faults) if part])
    return found


def table(plan: SweepPlan, rows: Sequence[Mapping[str, Any]], columns: Sequence[ReducedColumn] = ()) -> SweepTable:
    """Return the table of the sweep `plan` with the `rows` of its runs. `columns`: further columns from histories. A
    value that the row of a run does not have is None."""
    keys = tuple(plan.axes)
    names = dict.fromkeys(("run", *keys, *FACTS, *(column.name for column in columns)))
    names |= dict.fromkeys(name for found in rows for name in found if name != ERROR)
    names[ERROR] = None
    every = tuple(names)
    return SweepTable(plan.title, keys, every, tuple({name: found.get(name) for name in every} for found in rows))


def _seconds(kept: Mapping[str, Any]) -> float | None:
    """Return the wall time of all processes that computed a run."""
    if not kept:
        return None
    before = [(entry.get("before") or {}).get("wall_s") for entry in kept.get("restarts") or ()]
    return sum(float(s) for s in (*before, kept.get("wall_s")) if s is not None)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    return "" if value is None else format_value(value)


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else _cell(value)
