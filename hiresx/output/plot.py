"""Pictures of a run: lines in one dimension, colours on the curvilinear grid in two, mid-planes in three."""

from pathlib import Path
from typing import Any

from hiresx.errors import HiresxError
from hiresx.output import colours, derived, fields, lines, page


def plot_run(
    directory: str | Path,
    variable: str | None = None,
    out: str | Path | None = None,
    plane: str | None = None,
    line: str | None = None,
    reference: str | Path | None = None,
    step: int | None = None,
) -> list[Path]:
    """Plot the last fields of the run in `directory` (or a field file itself), or those of `step`.

    By default: in one dimension rho, u, p over x, with the case's exact solution when its case.py has a function
    `exact`; in two and three dimensions density and the derived variables that the case writes, or else schlieren, in
    three on the three mid-planes. `variable`: one name or several, separated by commas. `plane`: "z=0" cuts a
    three-dimensional field. `line`: "y=0" (in three dimensions "y=0, z=0") draws lines instead. `reference`: a CSV file
    whose header names its columns (x, rho, ...), drawn with lines. `out`: a file (.png, .svg, .pdf) or a directory;
    default: a PNG beside the fields. Returns the files written.

    Raises HiresxError when matplotlib or the fields are missing, or something asked for is not there.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise HiresxError("plotting needs matplotlib, which is not installed", "pip install 'hiresx[plot]'") from None

    path = _field_file(Path(directory), step)
    about = fields.describe(path)
    dimensions = max(sum(n > 1 for n in shape) for shape in about["blocks"].values())
    names = [name.strip() for name in variable.split(",")] if variable else _default(about["case"], dimensions)
    derived.check(names, "variable")
    data = fields.read(path, names)
    pieces = [{"x": b.x, "y": b.y, "z": b.z} | b.state for b in data.blocks]
    target = _target(path, out, variable, plane, line)
    with mpl.rc_context(page.STYLE):
        if dimensions == 1 or line is not None:
            if plane is not None:
                raise HiresxError("both a plane and a line were asked for", "a line in space alone: --line y=0,z=0")
            figure = lines.draw(data, pieces, dimensions, names, line, reference)
        else:
            if reference is not None:
                raise HiresxError("a reference can be drawn with lines only", "name a line too, such as --line y=0")
            figure = colours.draw(pieces, dimensions, names, plane)
        title = data.case.get("title") or path.parent.name
        figure.suptitle(f"{title}\n$t = {data.time:.4g}\\,L/c_\\mathrm{{ref}}$, step {data.step}", fontsize=10)
        return [page.save(figure, target)]


def _field_file(path: Path, step: int | None) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise HiresxError(f"{path} does not exist", "give the directory of a run, or one of its fields_*.nc")
    if step is None:
        return fields.last(path)
    found = fields.frames(path)
    if step not in found:
        there = ", ".join(map(str, found)) or "none"
        raise HiresxError(f"{path} has no fields of step {step}", f"there are fields of the steps: {there}")
    return found[step]


def _default(case: dict[str, Any], dimensions: int) -> list[str]:
    if dimensions == 1:
        return ["rho", "u", "p"]
    asked = [name for name in case["output"]["variables"] if name not in derived.PRIMITIVE]
    return ["rho", *(asked or ["schlieren"])]


def _target(path: Path, out: str | Path | None, *choices: str | None) -> Path:
    said = (choice.replace(" ", "").replace(",", "_").replace("=", "") for choice in choices if choice)
    name = "_".join([path.stem, *said]) + ".png"
    if out is None:
        return path.with_name(name)
    out = Path(out)
    return out if out.suffix and not out.is_dir() else out / name
