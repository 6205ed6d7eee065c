"""Line plots: a one-dimensional field, or a line through a field of more dimensions, with exact and reference
solutions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.base.whole_files import describe_path
from hiresx.errors import HiresxError
from hiresx.output.fields import cut, derived
from hiresx.output.fields import field_file as fields
from hiresx.output.show import picture_file
from hiresx.output.show.look import Look


@dataclass(frozen=True)
class LineValues:
    """The values of a field along a line. `values`: arrays (n,) by name, coordinates included. `along`: the name of the
    coordinate along the line, in whose ascending order the values are. `gaps`: the indexes of the values before which
    the line leaves the grid. `where`: the position of the line, as text for the axis of a plot."""

    values: cut.Piece
    gaps: Sequence[int] | np.ndarray
    along: str
    where: str


def line_values(
    data: fields.FieldFileContent, pieces: list[cut.Piece], dimensions: int, line: str | None
) -> LineValues:
    """Return the values of a field to draw as curves: all values of a one-dimensional field, or the values along
    `line`, such as "y=0", in a field with more dimensions. `data`: the field file. `pieces`: the same field as a
    dictionary of arrays `[k, j, i]` for each block, coordinates and variables. `dimensions`: number of dimensions of
    the field. Raises HiresxError for a line outside the grid, and for a line in a one-dimensional field."""
    if dimensions > 1:
        return _along(pieces, dimensions, line or "", data.part)
    if line is not None:
        raise HiresxError("the field is one-dimensional: there is no line to choose", "leave the line out")
    found = {key: np.concatenate([piece[key].ravel() for piece in pieces]) for key in pieces[0]}
    if not data.part:
        found = {key: values[np.argsort(found["x"], kind="stable")] for key, values in found.items()}
        return LineValues(found, [], "x", "")
    along = max("xyz", key=lambda axis: float(np.ptp(found[axis])))
    order = np.argsort(found[along], kind="stable")
    gaps = data.blocks[0].gaps if len(data.blocks) == 1 else ()
    return LineValues({key: values[order] for key, values in found.items()}, gaps, along, "")


def ends(name: str, values: np.ndarray) -> tuple[float, float]:
    """Return the limits of an axis that shows all `values` of the variable `name`, with a margin of 5 %. Raises
    HiresxError if no value is finite."""
    values = values[np.isfinite(values)]
    if not values.size:
        raise HiresxError(f"{name} is not a number anywhere", "the run has broken down: plot an earlier step")
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 0.5e-3 * max(abs(high), 1.0)
    return low - margin, high + margin


def draw(
    data: fields.FieldFileContent,
    drawn: LineValues,
    names: list[str],
    reference: str | Path | None,
    compared: Sequence[tuple[str, LineValues]] = (),
    scales: Mapping[str, tuple[float, float]] | None = None,
    look: Look | None = None,
) -> Any:
    """Return a Matplotlib figure of curves along a line, with one panel for each variable of `names`. `data`: the field
    file. `drawn`: the values of its fields along the line. `reference`: the path of a CSV file whose columns are also
    drawn; None for none. `compared`: pairs of the name of another run and its values along the same line. `scales`: the
    limits of the vertical axis of each variable. `look`: the appearance. The exact solution is drawn if the case has a
    function `exact`. Raises HiresxError if the CSV file cannot be read."""
    along, count = drawn.along, drawn.values[drawn.along].size
    exact = _exact(data, drawn.values, along, names)
    reference_file = Path(reference) if reference else None
    points = read_table(reference_file, along) if reference_file else {}
    look = look or Look()
    ours = data.path.parent.name if compared else "computed"
    figure = look.figure(0.7 + 1.75 * len(names))
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for ax, name in zip(axes, names, strict=True):
        if reference_file and name in points:
            ax.plot(points[along], points[name], color="0.55", lw=1.6, label=reference_file.stem, zorder=1)
        if exact is not None and name in exact:
            ax.plot(exact[along], exact[name], color="black", lw=0.8, label="exact", zorder=2)
        for (label, other), colour in zip(compared, cycle(picture_file.OTHERS), strict=False):
            ax.plot(*_with_gaps(other, name), color=colour, lw=1.0, label=label, zorder=2.5)
        style = {"marker": "o", "ms": 2.6, "mfc": "none", "mew": 0.7, "lw": 0.5} if count <= 256 else {"lw": 1.0}
        ax.plot(*_with_gaps(drawn, name), color=picture_file.BLUE, label=f"{ours}, {count} points", zorder=3, **style)
        ax.set_ylabel(picture_file.symbol(name))
        ax.margins(x=0)
        if scales is not None:
            ax.set_ylim(*scales[name])
        picture_file.add_grid(ax)
    look.curves(axes)
    axes[-1].set_xlabel(f"${along}/L${drawn.where}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _with_gaps(drawn: LineValues, name: str) -> list[np.ndarray]:
    """Return coordinate and values with nan where the line leaves the grid."""
    return [np.insert(drawn.values[key].astype(float), drawn.gaps, np.nan) for key in (drawn.along, name)]


def _along(pieces: list[cut.Piece], dimensions: int, line: str, part: str) -> LineValues:
    fixed = cut.parse(line, "line")
    flat = [{name: np.squeeze(values) for name, values in piece.items()} for piece in pieces]
    axes = "xyz"
    if dimensions == 2:
        axes = axes.replace(cut.flat_axis(flat, part), "")
    if len(fixed) != dimensions - 1 or not set(fixed) < set(axes):
        raise HiresxError(
            f'line "{line}" does not name a line in {dimensions} dimensions',
            f"fix one of {axes[0]} and {axes[1]}, as in {axes[1]}=0"
            if dimensions == 2
            else "fix two of x, y and z, as in y=0,z=0",
        )
    at = {axis: cut.middle(pieces, axis) if value is None else value for axis, value in fixed.items()}
    *planes, (axis, value) = at.items()
    for plane_axis, plane_value in planes:
        flat = cut.plane(pieces, plane_axis, plane_value)
    found, gaps = cut.line(flat, axis, value)
    (along,) = set(axes) - set(at)
    where = ", ".join(f"${name} = {value:.4g}\\,L$" for name, value in at.items())
    return LineValues(found, gaps, along, f"   at {where}")


def _exact(
    data: fields.FieldFileContent, samples: cut.Piece, along: str, names: list[str]
) -> dict[str, np.ndarray] | None:
    """Return the case's exact solution on a fine line through the samples; None if its case.py has no function `exact`.
    Variables that are gradients are left out, since they do not follow from values on a line."""
    from hiresx.case import Case
    from hiresx.case.functions import public_functions

    folder = data.path.parent / "case"
    if "exact" not in public_functions(folder):
        return None
    case = Case.from_dict(data.case, folder)
    # Fine enough for a discontinuity to look vertical at the resolution of the picture.
    at = np.linspace(samples[along][0], samples[along][-1], 2001)
    points = {axis: at if axis == along else np.interp(at, samples[along], samples[axis]) for axis in "xyz"}
    state = dict(zip(derived.PRIMITIVE, case.evaluate("exact", **points, t=data.time), strict=True))
    flow = derived.FlowState(points["x"], points["y"], points["z"], state, case.gas.gamma)
    return {
        along: at,
        **derived.evaluate([name for name in names if name in derived.VARIABLES and derived.about(name).local], flow),
    }


def read_table(path: Path, along: str, others: str = "rho,u,p") -> dict[str, np.ndarray]:
    """Return the columns of the CSV file `path` by name, each an array (rows,). The header is the first line whose
    names of columns include `along`; it may begin with #. `others`: names of further columns that error messages give
    as an example. Raises HiresxError with file and line for a line that cannot be read, and for two columns of one
    name."""
    if kind := describe_path(path):
        raise HiresxError(f"cannot read the table {path}: it {kind}", "give a CSV file")
    try:
        lines = [text.strip() for text in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise HiresxError(f"cannot read the table {path}: {error}", "give a CSV file") from None
    header: list[str] = []
    rows: list[list[float]] = []
    for number, text in enumerate(lines, 1):
        cells = [cell.strip() for cell in text.lstrip("#").split(",")]
        if not text:
            continue
        if not rows and along in cells:
            header = cells
            if twice := [name for n, name in enumerate(cells) if name and name in cells[:n]]:
                raise HiresxError(f"{path}, line {number}: two columns are called {twice[0]}", "rename or remove one")
        elif not text.startswith("#"):
            try:
                rows.append([float(cell) for cell in cells])
            except ValueError:
                message = f"{path}, line {number}: not numbers separated by commas"
                raise HiresxError(message, "correct the file") from None
            if len(rows[-1]) != len(header):
                raise HiresxError(
                    f"{path}, line {number}: {plural(len(rows[-1]), 'number')} under "
                    f"{plural(len(header), 'name')} of columns",
                    f"name the columns in the first line, as in {along},{others}",
                )
    if not rows:
        raise HiresxError(
            f"{path} has no numbers", f"give a CSV file with lines of numbers under the names {along},{others}"
        )
    return dict(zip(header, np.array(rows).T, strict=True))
