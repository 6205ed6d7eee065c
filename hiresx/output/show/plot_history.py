"""Pictures of the histories of a run, which are time series of monitors and residuals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.notify import notify
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.saved import record
from hiresx.output.show import lines, picture_file
from hiresx.output.show.look import Look
from hiresx.output.show.run_plot import other_runs, picture_path
from hiresx.output.watch import history

# Largest numbers of panels in one picture, and of curves in one panel, unless curves are named one by one.
PANELS, CURVES = 8, 10
_DASHES = ("--", ":", "-.")
# Columns that every history has, and columns that are drawn only if they are requested.
_CLOCK, _ASIDE = ("step", "time"), ("dt",)


def plot_history(
    directory: str | Path,
    columns: str,
    out: str | Path | None = None,
    reference: str | Path | None = None,
    against: str | Path | Sequence[str | Path] | None = None,
    start: float | None = None,
    look: Look | None = None,
) -> list[Path]:
    """Draw columns of a history (the samples of a monitor) of the run in `directory` over time (over steps if the time
    does not advance), and return the paths of the files written.

    `columns`: "NAME" for every column of the history NAME (residual, the name of a probe or a force, ...),
    "NAME.COLUMN,...", or for one place of a probe "NAME.COLUMN_3,...". Of more than 10 places, 10 at equal distances
    are drawn, and of more than 8 columns the first 8; a note says so. Residual norms have a logarithmic axis.
    `reference`: a CSV file with a column time. `against`: other runs, which are drawn for comparison. `start`: the
    first time to draw. `look`: size, range, zoom. `out`: a file or a directory; by default a PNG in the run directory.
    Raises HiresxError if Matplotlib, the history or a column is missing."""
    picture_file.require_matplotlib()
    look = look or Look()
    ours = _select_columns(directory, columns, start)
    runs = other_runs(against)
    compared = [(run.name, _select_columns(run, columns, start)) for run in runs]
    clock = ours.clock
    reference_file = Path(reference) if reference else None
    points = lines.read_table(reference_file, clock) if reference_file else {}
    panels = ours.panels
    for line in ours.left_out:
        notify(line)
    with look.style():
        figure = look.figure(0.9 + 1.75 * len(panels))
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, names in zip(axes, panels, strict=True):
            own = dict(zip(names, picture_file.distinct_colours(len(names)), strict=True))
            for n, (label, other) in enumerate(compared):
                there = {name: colour for name, colour in own.items() if name in other.data}
                # with one curve each run has a colour; with several curves each curve has a colour and each run a line
                # style
                if len(names) == 1:
                    there = dict.fromkeys(there, picture_file.OTHERS[n % len(picture_file.OTHERS)])
                _draw(ax, other, there, f"{label}: ", "-" if len(names) == 1 else _DASHES[n % len(_DASHES)])
            _draw(ax, ours, own, "", "-")
            for name in names:
                if reference_file and name in points:
                    ax.plot(points[clock], points[name], color="0.55", lw=1.6, label=reference_file.stem, zorder=1)
            if len(names) == 1:
                ax.set_ylabel(ours.label(names[0]))
            if names[0] in ours.norms:
                ax.set_yscale("log")
                ax.set_ylabel("residual norms")
            if len(ax.lines) > 1:
                picture_file.legend_beside(ax, title=ours.legend_title(names))
            ax.margins(x=0)
            picture_file.add_grid(ax)
        look.curves(axes)
        axes[-1].set_xlabel(picture_file.TIME if clock == "time" else "step")
        heading = look.heading(
            "\n".join([ours.title, f"history {ours.name}", *ours.left_out[len(ours.thinning_messages) :]])
        )
        if heading:
            figure.suptitle(heading)
        picture_file.use_length_symbol(figure, record.read_or_empty(Path(directory)).get("case"))
        target = picture_path(Path(directory) / "history.nc", out, ".png", columns.replace(".", "_"), *runs)
        return [picture_file.save(figure, target)]


@dataclass
class _SelectedColumns:
    """The requested columns, and their descriptions."""

    run: str
    title: str
    name: str
    kind: str
    data: dict[str, np.ndarray]
    columns: dict[str, history.Column]
    asked: list[str]
    # Whether curves were named individually: then all of them are drawn.
    named: bool = False

    @property
    def clock(self) -> str:
        time = self.data["time"]
        return "time" if time.size < 2 or time[-1] > time[0] else "step"

    @property
    def norms(self) -> set[str]:
        """Columns whose axis is logarithmic by default."""
        residual = {"rho", "rho_u", "rho_v", "rho_w", "e"} if self.kind == "residual" else set()
        return {name for name in residual if name in self.data and (self.data[name] > 0).any()}

    @property
    def panels(self) -> list[list[str]]:
        """Names of the curves in each panel: norms together, the places of a probe together."""
        if self.named:
            return list(self._groups.values())
        return [_thin(names) for names in list(self._groups.values())[:PANELS]]

    @property
    def _groups(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.asked:
            group = "norms" if name in self.norms else self.columns[name].name if name in self.columns else name
            found.setdefault(group, []).append(name)
        return found

    @property
    def thinning_messages(self) -> list[str]:
        """Messages about columns of which some places are not drawn."""
        long = {key: names for key, names in list(self._groups.items())[:PANELS] if len(names) > CURVES}
        return [] if self.named else [
            f"{CURVES} of {len(names)} places of {self.name}.{key} are drawn; choose: {self.name}.{names[0]},..."
            for key, names in long.items()
        ]  # fmt: skip

    @property
    def left_out(self) -> list[str]:
        """These messages, and one about columns that are not drawn."""
        groups = list(self._groups)
        if self.named or len(groups) <= PANELS:
            return self.thinning_messages
        rest = ", ".join(groups[PANELS:])
        return [
            *self.thinning_messages,
            f"{PANELS} of {len(groups)} columns are drawn; choose: {self.name}.COLUMN,... of {rest}",
        ]

    def legend_title(self, drawn: Sequence[str]) -> str | None:
        """Title of the legend of a panel from which curves are left out."""
        whole = next((names for names in self._groups.values() if drawn[0] in names), drawn)
        return f"{len(drawn)} of {len(whole)} places" if len(drawn) < len(whole) else None

    def label(self, name: str) -> str:
        about = self.columns.get(name)
        if about is None:
            return name
        if about.name in derived.VARIABLES and self.kind == "probe":
            return picture_file.symbol(about.name)
        return f"{about.name} [{picture_file.unit(about.units)}]" if about.units not in ("", "1") else about.name


def _select_columns(directory: str | Path, wanted: str, start: float | None) -> _SelectedColumns:
    directory = Path(directory)
    if not directory.is_dir():
        raise HiresxError(f"{directory} is not the folder of a run", "give the folder that hiresx run made")
    name, _, wanted_columns = wanted.partition(".")
    there = history.histories(directory)
    if name not in there:
        raise HiresxError(f'{directory} has no history "{name}"', did_you_mean(name, list(there), "histories there"))
    table = history.read(there[name])
    data = table.flat()
    columns = {key: table.columns[key if key in table.columns else key.rpartition("_")[0]] for key in data}
    groups: dict[str, list[str]] = {}
    for key in data:
        groups.setdefault(columns[key].name, []).append(key)
    # Residuals that are always zero, such as that of w in two dimensions, are not drawn.
    idle = {key for key, values in data.items() if table.kind == "residual" and not np.nan_to_num(values).any()}
    asked = [key for key in data if key not in (*_CLOCK, *_ASIDE) and key not in idle]
    if wanted_columns:
        asked = []
        for column in (part.strip().removeprefix(f"{name}.") for part in wanted_columns.split(",")):
            if column not in data and column not in groups:
                raise HiresxError(
                    f'history "{name}" has no column "{column}"', did_you_mean(column, list(groups), "columns")
                )
            asked += [column] if column in data else groups[column]
    if start is not None:
        data = {key: values[table.data["time"] >= start] for key, values in data.items()}
    if not data["time"].size:
        raise HiresxError(
            f'history "{name}" of {directory} has no samples to draw', "continue the run, or begin earlier"
        )
    title = (record.read_or_empty(directory).get("case") or {}).get("title") or directory.name
    # Columns may have too many places to draw all of them; places that are named are all drawn.
    one_by_one = bool(wanted_columns) and all(
        part.strip().removeprefix(f"{name}.") in data for part in wanted_columns.split(",")
    )
    return _SelectedColumns(directory.name, title, name, table.kind, data, columns, asked, one_by_one)


def _thin(names: list[str]) -> list[str]:
    """Return at most CURVES of them at equal distances, including the first and the last."""
    kept = np.unique(np.linspace(0, len(names) - 1, min(CURVES, len(names))).astype(int))
    return [names[n] for n in kept]


def _draw(ax: Any, chosen: _SelectedColumns, colours: Mapping[str, Any], prefix: str, style: str) -> None:
    """Draw the columns for which `colours` has an entry."""
    for name, colour in colours.items():
        values = chosen.data[name]
        if name in chosen.norms:
            # zeros at the start, which cannot be drawn on a logarithmic axis
            values = np.where(values > 0, values, np.nan)
        marker = {"marker": "o", "ms": 2.6} if values.size <= 30 else {}
        ax.plot(chosen.data[chosen.clock], values, style, color=colour, label=f"{prefix}{name}", **marker)
