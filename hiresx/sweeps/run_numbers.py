"""Numbers of a run for a table: of a column of its history, and of what `hiresx post` finds."""

import json
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.error_messages import did_you_mean
from hiresx.case.monitors import RESIDUAL
from hiresx.errors import HiresxError
from hiresx.output.watch import history
from hiresx.output.watch.monitors.residual import COLUMNS as RESIDUALS

REDUCTIONS: Mapping[str, Callable[[np.ndarray], Any]] = {
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
    "std": np.std,
}
# Longer lists of numbers are not columns of a table.
_LONGEST = 16


@dataclass(frozen=True)
class ReducedColumn:
    """A column `name` of the table: the `reduction` ("last", "mean", ...) of a `quantity` (as `hiresx history` names
    it) of a `history`, over the samples from the time `start` on."""

    name: str
    history: str
    quantity: str
    reduction: str
    start: float | None = None

    def check(self, cases: Sequence[Mapping[str, Any]]) -> None:
        """Raise HiresxError if none of `cases` (nested dictionaries with all defaults) writes the history of this
        column, or if the column names a quantity that the history of residuals does not have."""
        there = list(dict.fromkeys(name for case in cases for name in _histories(case)))
        if self.history not in there:
            raise HiresxError(
                f'--column {self.name}: no history "{self.history}"', did_you_mean(self.history, there, "histories")
            )
        columns = [column.name for column in RESIDUALS]
        if self.history == RESIDUAL and self.quantity not in (*columns, "step", "time"):
            raise HiresxError(
                f'--column {self.name}: {RESIDUAL} has no column "{self.quantity}"',
                did_you_mean(self.quantity, columns, "columns"),
            )

    def value(self, run: Path) -> float:
        """Return the number in this column for the run in the folder `run`. Raises HiresxError for a run without this
        history or quantity, or without samples from the time `start` on."""
        there = history.histories(run)
        if self.history not in there:
            raise HiresxError(f'no history "{self.history}"', did_you_mean(self.history, list(there), "histories"))
        table = history.read(there[self.history])
        flat = table.flat()
        if self.quantity not in flat:
            raise HiresxError(
                f'{self.history} has no column "{self.quantity}"', did_you_mean(self.quantity, list(flat), "columns")
            )
        values = flat[self.quantity]
        if self.start is not None:
            values = values[flat["time"] >= self.start]
        if table.kind == RESIDUAL:
            values = values[~np.isnan(values)]  # before the first step there is no such column
        if not len(values):
            since = "" if self.start is None else f" from time {self.start:g} on"
            raise HiresxError(f"{self.history} has no sample{since}", "run longer, or sample more often")
        return float(REDUCTIONS[self.reduction](values))


def _histories(case: Mapping[str, Any]) -> list[str]:
    """Return the histories that runs of a resolved case write."""
    found = Case.from_dict(case)
    tables = [*(probe.name for probe in found.probe), *(force.name for force in found.force)]
    return [RESIDUAL, *found.monitors, *tables, *found.histories()]


def column(text: str, start: float | None = None) -> ReducedColumn:
    """Return the column of a table that `text` describes: HISTORY.QUANTITY or HISTORY.QUANTITY:REDUCTION; REDUCTION is
    last, first, mean, min, max or std, by default last. `start`: the time of the first sample to use, in L / c_ref.
    Raises HiresxError for any other text."""
    found = re.fullmatch(r"(?P<history>[^.:]+)\.(?P<quantity>[^:]+?)(?::(?P<reduction>\w+))?", text.strip())
    if not found:
        raise HiresxError(
            f'--column "{text}" is not of the form HISTORY.QUANTITY:HOW',
            "write for instance --column residual.rho:last",
        )
    how = found["reduction"] or "last"
    if how not in REDUCTIONS:
        raise HiresxError(f'--column {text}: no "{how}"', did_you_mean(how, list(REDUCTIONS), "reductions"))
    return ReducedColumn(text.strip(), found["history"], found["quantity"], how, start)


@dataclass(frozen=True)
class Analysis:
    """A command of `hiresx post` with the arguments `words` after the run. Its numbers become columns whose names begin
    with `name`."""

    name: str
    command: str
    words: tuple[str, ...]

    def values(self, run: Path) -> dict[str, Any]:
        """Run this command of `hiresx post` for the run in the folder `run`, and return its numbers by the names of
        their columns. Raises HiresxError if the command fails."""
        line = [sys.executable, "-P", "-m", "hiresx", "post", self.command, str(run), *self.words, "--json"]
        done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            found = {"error": (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]}
        if done.returncode or not isinstance(found, dict):
            message = found.get("error") if isinstance(found, dict) else None
            raise HiresxError(
                f"hiresx post {self.command}: {message or f'ended with {done.returncode}'}",
                f"run it alone: {shlex.join(['hiresx', *line[4:]])}",
            )
        return dict(_numbers(found, self.name))


def analyses(texts: Sequence[str]) -> tuple[Analysis, ...]:
    """Return the commands of `hiresx post` that `texts` describe, each "COMMAND [options]", as in the option --collect.
    If a command occurs several times, the names of the later ones get a number, for instance "jet-2". Raises
    HiresxError for a text without a command."""
    found: list[Analysis] = []
    for text in texts:
        try:
            command, *words = shlex.split(text)
        except ValueError:
            hint = "write for instance --collect 'jet --from 15'"
            raise HiresxError(f'--collect "{text}" does not name a command', hint) from None
        same = sum(other.command == command for other in found)
        found.append(Analysis(command if not same else f"{command}-{same + 1}", command, tuple(words)))
    return tuple(found)


def _numbers(value: Any, name: str) -> list[tuple[str, Any]]:
    """Return the numbers, truth values and absent values, by dotted names, without texts and tables."""
    if isinstance(value, Mapping):
        return [entry for key, item in value.items() for entry in _numbers(item, f"{name}.{key}")]
    if isinstance(value, list):
        plain = len(value) <= _LONGEST and all(isinstance(item, int | float) for item in value)
        return [(f"{name}.{n}", item) for n, item in enumerate(value)] if plain else []
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return [(name, value)]
    return []
