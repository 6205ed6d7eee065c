"""Lines: a one-dimensional field, or a cut through one of more dimensions, beside exact and reference solutions."""

from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import cut, derived, fields, page

_BLUE = "#0b61a4"


def draw(
    data: fields.Fields,
    pieces: list[cut.Piece],
    dimensions: int,
    names: list[str],
    line: str | None,
    reference: str | Path | None,
) -> Any:
    """The figure with one panel for each variable of `names`, over x or along `line`; see `plot.plot_run`."""
    if dimensions == 1:
        if line is not None:
            raise HiresxError("the field is one-dimensional: there is no line to choose", "leave the line out")
        samples = {key: np.concatenate([piece[key].ravel() for piece in pieces]) for key in pieces[0]}
        samples = {key: values[np.argsort(samples["x"], kind="stable")] for key, values in samples.items()}
        along, where, gaps = "x", "", []
    else:
        samples, gaps, along, where = _along(pieces, dimensions, line)
    exact = _exact(data, samples, along, names)
    compared = _read_reference(Path(reference), along) if reference else None
    figure = page.figure(0.7 + 1.75 * len(names))
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    count = samples[along].size
    for ax, name in zip(axes, names, strict=True):
        if compared is not None and name in compared:
            ax.plot(compared[along], compared[name], color="0.55", lw=1.6, label=Path(reference).stem, zorder=1)
        if exact is not None and name in exact:
            ax.plot(exact[along], exact[name], color="black", lw=0.8, label="exact", zorder=2)
        style = {"marker": "o", "ms": 2.6, "mfc": "none", "mew": 0.7, "lw": 0.5} if count <= 256 else {"lw": 1.0}
        at, values = (np.insert(samples[key].astype(float), gaps, np.nan) for key in (along, name))
        ax.plot(at, values, color=_BLUE, label=f"computed, {count} points", zorder=3, **style)
        ax.set_ylabel(page.symbol(name))
        ax.margins(x=0)
        ax.grid(lw=0.3, color="0.85")
        ax.set_axisbelow(True)
    axes[-1].set_xlabel(f"${along}/L${where}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _along(pieces: list[cut.Piece], dimensions: int, line: str) -> tuple[cut.Piece, np.ndarray, str, str]:
    """Samples along `line` and its gaps, the coordinate they are drawn over, and words that say where the line is."""
    fixed = cut.parse(line, "line")
    wanted = dimensions - 1
    if len(fixed) != wanted or (dimensions == 2 and "z" in fixed):
        raise HiresxError(
            f'line "{line}" does not name a line in {dimensions} dimensions',
            "fix one of x and y, as in y=0" if dimensions == 2 else "fix two of x, y and z, as in y=0,z=0",
        )
    fixed = {axis: cut.middle(pieces, axis) if value is None else value for axis, value in fixed.items()}
    *planes, (axis, value) = fixed.items()
    flat = [{name: np.squeeze(values) for name, values in piece.items()} for piece in pieces]
    for plane_axis, plane_value in planes:
        flat = cut.plane(pieces, plane_axis, plane_value)
    samples, gaps = cut.line(flat, axis, value)
    (along,) = set("xyz" if dimensions == 3 else "xy") - set(fixed)
    where = ", ".join(f"${name} = {value:.4g}\\,L$" for name, value in fixed.items())
    return samples, gaps, along, f"   at {where}"


def _exact(data: fields.Fields, samples: cut.Piece, along: str, names: list[str]) -> dict[str, np.ndarray] | None:
    """The case's exact solution on a fine line through the samples; None when its case.py has no function `exact`.

    Variables that are gradients are left out: a line does not tell them.
    """
    from hiresx.case import Case
    from hiresx.case.functions import listed

    folder = data.path.parent / "case"
    if "exact" not in listed(folder):
        return None
    case = Case.from_dict(data.case, folder)
    # Fine enough that a discontinuity looks upright at the resolution of the picture.
    at = np.linspace(samples[along][0], samples[along][-1], 2001)
    points = {axis: at if axis == along else np.interp(at, samples[along], samples[axis]) for axis in "xyz"}
    state = dict(zip(derived.PRIMITIVE, case.evaluate("exact", **points, t=data.time), strict=True))
    flow = derived.Flow(**points, state=state, gamma=case.gas.gamma)
    return {along: at, **derived.evaluate([name for name in names if derived.VARIABLES[name].local], flow)}


def _read_reference(path: Path, along: str) -> dict[str, np.ndarray]:
    """Columns of a CSV file by name; the header is its first line of names, which may be behind a #."""
    try:
        lines = [text.strip() for text in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise HiresxError(f"cannot read the reference {path}: {error}", "give a CSV file") from None
    header: list[str] = []
    rows = []
    for number, text in enumerate(lines, 1):
        cells = [cell.strip() for cell in text.lstrip("#").split(",")]
        if not text:
            continue
        if not rows and along in cells:
            header = cells
        elif not text.startswith("#"):
            try:
                rows.append([float(cell) for cell in cells])
            except ValueError:
                raise HiresxError(f"{path}, line {number}: not numbers separated by commas", "mend the file") from None
            if len(rows[-1]) != len(header):
                raise HiresxError(
                    f"{path}, line {number}: {len(rows[-1])} numbers under {len(header)} names of columns",
                    f"name the columns in the first line, as in {along},rho,u,p",
                )
    if not rows:
        raise HiresxError(f"{path} has no numbers", f"give a CSV file with the columns {along},rho,u,p")
    return dict(zip(header, np.array(rows).T, strict=True))
