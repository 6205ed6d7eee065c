"""Pictures of a run: lines in one dimension, colours on the curvilinear grid in two, mid-planes in three."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.equations import equations
from hiresx.errors import HiresxError
from hiresx.output.fields import cut, derived
from hiresx.output.fields import field_file as fields
from hiresx.output.show import animation, colours, lines, page


def plot_run(
    directory: str | Path,
    variable: str | None = None,
    out: str | Path | None = None,
    plane: str | None = None,
    line: str | None = None,
    reference: str | Path | None = None,
    step: int | None = None,
    subset: str | None = None,
    against: str | Path | None = None,
) -> list[Path]:
    """Plot the last fields of the run in `directory` (or a field file itself), or those of `step`.

    By default: in one dimension rho, u, p over x, with the case's exact solution when its case.py has a function
    `exact`; in two and three dimensions density and the derived variables that the case writes, or else schlieren, in
    three on the three mid-planes. `variable`: one name or several, separated by commas. `plane`: "z=0" cuts a
    three-dimensional field. `line`: "y=0" (in three dimensions "y=0, z=0") draws lines instead. `subset`: the name of
    an output.subset of the case, drawn instead of the whole fields. `reference`: a CSV file whose header names its
    columns (x, rho, ...), drawn with lines. `against`: another run or field file, at the same time if it has that, else
    its last: drawn beside lines; of colours the difference is drawn. `out`: a file (.png, .svg, .pdf) or a directory;
    default: a PNG beside the fields. Returns the files written.

    Raises HiresxError when matplotlib or the fields are missing, or something asked for is not there.
    """
    page.require_matplotlib()
    path = _field_file(Path(directory), step, subset or "fields")
    request = _Request(path, variable, plane, line, reference)
    other = None if against is None else request.read(_same_time(Path(against), path, subset or "fields"))
    with page.style():
        figure = request.draw(request.read(path), other, None if against is None else Path(against))
        return [page.save(figure, _target(path, out, ".png", variable, plane, line, against))]


def animate_run(
    directory: str | Path,
    variable: str | None = None,
    out: str | Path | None = None,
    plane: str | None = None,
    line: str | None = None,
    reference: str | Path | None = None,
    subset: str | None = None,
    fps: float = 10.0,
) -> list[Path]:
    """An animation (.gif, or .mp4 where ffmpeg is installed) over all fields of the run in `directory`, `fps` pictures
    a second, with colours and axes that do not change. Arguments and errors as those of `plot_run`; default of `out`: a
    GIF beside the fields. Returns the files written.
    """
    page.require_matplotlib()
    name = subset or "fields"
    frames = fields.frames(directory, name)
    if not frames:
        fields.last(directory, name)  # says what is missing
    target = _target(Path(directory) / f"{name}.nc", out, ".gif", variable, plane, line)
    animation.check(target, fps)
    paths = list(frames.values())
    request = _Request(paths[-1], variable, plane, line, reference)
    with page.style(animation.STYLE):
        request.fix_scales(paths)
        figures = (request.draw(request.read(path)) for path in paths)
        return [animation.save(figures, target, fps)]


@dataclass
class _Request:
    """What is to be drawn of field files like `path`."""

    path: Path
    variable: str | None
    plane: str | None
    line: str | None
    reference: str | Path | None

    def __post_init__(self):
        about = fields.describe(self.path)
        # A block of one point in a direction is flat there.
        self.dimensions = max(sum(n > 1 for n in shape) for shape in about["blocks"].values())
        self.names = [name.strip() for name in self.variable.split(",")] if self.variable else self._default(about)
        derived.check(self.names, "variable", equations(about["case"]).scalars)
        self.as_lines = self.dimensions <= 1 or self.line is not None
        if self.as_lines and self.plane is not None:
            raise HiresxError("both a plane and a line were asked for", "a line in space alone: --line y=0,z=0")
        if not self.as_lines and self.reference is not None:
            raise HiresxError("a reference can be drawn with lines only", "name a line too, such as --line y=0")
        self.scales: dict[str, Any] | None = None

    def _default(self, about: dict[str, Any]) -> list[str]:
        if about["part"]:
            return [name for name in about["variables"] if name not in ("v", "w")][:4] or about["variables"]
        if self.dimensions <= 1:
            return ["rho", "u", "p"]
        asked = [name for name in about["case"]["output"]["variables"] if name not in derived.PRIMITIVE]
        return ["rho", *(asked or ["schlieren"])]

    def read(self, path: Path) -> fields.Fields:
        return fields.read(path, self.names)

    def draw(self, data: fields.Fields, other: fields.Fields | None = None, against: Path | None = None) -> Any:
        pieces = _pieces(data)
        if self.as_lines:
            beside = [] if other is None else [(_label(against), other)]
            drawn = lines.samples(data, pieces, self.dimensions, self.line)
            compared = [(label, lines.samples(d, _pieces(d), self.dimensions, self.line)) for label, d in beside]
            figure = lines.draw(data, drawn, self.names, self.reference, compared, self.scales)
        else:
            if other is not None:
                pieces = _difference(data, other, self.names)
            views = colours.views(pieces, self.dimensions, self.plane, data.part)
            figure = colours.draw(views, self.names, self.scales, difference=other is not None)
        heading = " ".join(
            [data.case.get("title") or data.path.parent.name, *([f"({data.part})"] if data.part else [])]
        )
        if other is not None and not self.as_lines:
            heading += f"\ndifference from {_label(against)}"
        figure.suptitle(f"{heading}\n$t = {data.time:.4g}\\,L/c_\\mathrm{{ref}}$, step {data.step}", fontsize=10)
        return figure

    def fix_scales(self, paths: list[Path]) -> None:
        """One scale for all the files `paths`: colours, or the ends of the axis, of each variable."""
        gathered: dict[str, list[np.ndarray]] = {name: [] for name in self.names}
        for path in paths:
            data = self.read(path)
            if self.as_lines:
                drawn = lines.samples(data, _pieces(data), self.dimensions, self.line).values
            for name in self.names:
                if self.as_lines:
                    gathered[name].append(drawn[name])
                else:
                    views = colours.views(_pieces(data), self.dimensions, self.plane, data.part)
                    gathered[name].append(colours.sampled(name, views))
        choose = lines.ends if self.as_lines else colours.shades
        self.scales = {name: choose(name, np.concatenate(values)) for name, values in gathered.items()}


def _pieces(data: fields.Fields) -> list[cut.Piece]:
    return [{"x": b.x, "y": b.y, "z": b.z} | dict(b.state) for b in data.blocks]


def _difference(data: fields.Fields, other: fields.Fields, names: list[str]) -> list[cut.Piece]:
    """The fields of `data` less those of `other`, on one grid."""
    ours, theirs = _pieces(data), _pieces(other)
    alike = [piece["x"].shape for piece in ours] == [piece["x"].shape for piece in theirs]
    if not alike or not all(
        np.allclose(a[axis], b[axis], rtol=0, atol=1e-6 * np.ptp(a[axis]) + 1e-12, equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
        for axis in "xyz"
    ):
        raise HiresxError(
            f"{data.path} and {other.path} lie on different grids: there is no difference to draw",
            "compare them along a line, such as --line y=0",
        )
    return [a | {name: a[name] - b[name] for name in names} for a, b in zip(ours, theirs, strict=True)]


def _label(run: Path) -> str:
    return run.name or str(run)


def _field_file(path: Path, step: int | None, name: str) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise HiresxError(f"{path} does not exist", "give the directory of a run, or one of its fields_*.nc")
    if step is None:
        return fields.last(path, name)
    found = fields.frames(path, name)
    if step not in found:
        there = ", ".join(map(str, found)) or "none"
        raise HiresxError(f"{path} has no {name} of step {step}", f"there are {name} of the steps: {there}")
    return found[step]


def _same_time(run: Path, path: Path, name: str) -> Path:
    """The fields of `run` nearest in time to those of the file `path`; its last where the time stands still."""
    if run.is_file():
        return run
    last, time = _field_file(run, None, name), fields.moment(path)
    if time == 0:
        return last
    return min(fields.frames(run, name).values(), key=lambda other: abs(fields.moment(other) - time))


def _target(path: Path, out: str | Path | None, suffix: str, *choices: Any) -> Path:
    said = [str(choice).replace(" ", "").replace(",", "_").replace("=", "") for choice in choices if choice]
    said = [Path(choice).name for choice in said]
    name = "_".join([path.stem, *said]) + suffix
    if out is None:
        return path.with_name(name)
    out = Path(out)
    return out if out.suffix and not out.is_dir() else out / name
