"""One column of a sweep's table over another."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.sweeps.values import format_value

if TYPE_CHECKING:
    from hiresx.sweeps.table import SweepTable

MARKERS = "osD^v<>ph*"
# With more curves there is no legend, since it would hide them.
_MOST = 12


def draw(table: "SweepTable", x: str, y: str) -> tuple[Any, Any]:
    """Draw the column `y` of the table of a sweep over the column `x`, and return Figure and Axes of matplotlib. Runs
    that differ only in `x` form a curve. If every such curve would be a single point, one curve goes through all runs.
    Values of `x` that are not numbers are placed at equal distances, in the order of the table. Raises HiresxError for
    a column that does not exist or contains no number."""
    picture_file.require_matplotlib()
    across, up = table.full_name(x), table.full_name(y)
    rows = [row for row in table.rows if _is_number(row[up]) and row[across] is not None]
    if not rows:
        raise HiresxError(f'no run has a number in the column "{up}"', "the table shows the state of the runs")
    numeric = all(_is_number(row[across]) for row in rows)
    places = {text: n for n, text in enumerate(dict.fromkeys(format_value(row[across]) for row in rows))}
    others = [key for key in table.keys if key != across and len({format_value(row[key]) for row in table.rows}) > 1]
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        place = float(row[across]) if numeric else float(places[format_value(row[across])])
        curves.setdefault(_label(row, others), []).append((place, float(row[up])))
    if all(len(points) == 1 for points in curves.values()):
        # if x is not a key but a result, one curve goes through all runs
        curves = {"": [point for points in curves.values() for point in points]}
    with picture_file.style():
        figure = picture_file.figure(3.6)
        ax = figure.add_subplot()
        colours = (picture_file.BLUE, *picture_file.OTHERS)
        for n, (label, points) in enumerate(curves.items()):
            style = {"color": colours[n % len(colours)], "marker": MARKERS[n % len(MARKERS)], "markersize": 4}
            ax.plot(*zip(*sorted(points), strict=True), label=label, **style)
        ax.set_xlabel(across)
        ax.set_ylabel(up)
        ax.set_title(table.title, loc="left")
        if not numeric:
            ax.set_xticks(list(places.values()), list(places))
        if 1 < len(curves) <= _MOST:
            figure.legend(loc="outside right upper")
        ax.grid(linewidth=0.3, alpha=0.5)
    return figure, ax


def _label(row: Mapping[str, Any], others: list[str]) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} = {format_value(row[key])}" for key in others)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
