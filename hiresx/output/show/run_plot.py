"""Pictures and animations of the fields of a run: curves in one dimension, colours on the curvilinear grid in two,
mid-planes in three."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.notify import notify
from hiresx.base.whole_files import describe_path
from hiresx.errors import HiresxError
from hiresx.output.fields import cut, derived
from hiresx.output.fields import field_file as fields
from hiresx.output.saved import record
from hiresx.output.show import animation, colours, common_time, lines, picture_file, raster
from hiresx.output.show.look import Look


def plot_run(
    directory: str | Path,
    variable: str | None = None,
    out: str | Path | None = None,
    plane: str | None = None,
    line: str | None = None,
    reference: str | Path | None = None,
    step: int | None = None,
    subset: str | None = None,
    against: str | Path | Sequence[str | Path] | None = None,
    look: Look | None = None,
) -> list[Path]:
    """Plot the last fields of a run, or the fields of `step`, and return the paths of the files written. `directory`:
    the run, or one of its field files.

    By default: in one dimension rho, u, p over x, with the exact solution if case.py has a function `exact`; in two and
    three dimensions density and the derived variables that the case writes, or schlieren if it writes none; in three
    dimensions on the three mid-planes.

    - `variable`: one name or several, separated by commas.
    - `plane`: the plane through a three-dimensional field, such as "z=0".
    - `line`: the line along which values are drawn, such as "y=0" (in three dimensions "y=0, z=0").
    - `subset`: the name of an `[[output.subset]]` of the case, drawn instead of the whole fields.
    - `reference`: a CSV file whose header names its columns (x, rho, ...), drawn with lines.
    - `against`: another run or field file, or several. Along a line their values are drawn, too. In pictures with
      colours the difference from one other run is drawn. Runs are compared at the latest time that all have, unless
      `step` or a field file selects another. Field files are compared at the times that they have, and a file must then
      be named for every run.
    - `look`: size, colours, zoom, contour lines, also the plane.
    - `out`: a file (.png, .svg, .pdf) or a directory; by default a PNG in the folder of the fields.

    Raises HiresxError if Matplotlib or the fields are missing, if a requested variable, plane, line, subset or step
    does not exist, and if runs have no time in common."""
    picture_file.require_matplotlib()
    runs = other_runs(against)
    path, *beside = _at_one_time([Path(directory), *runs], step, subset or "fields")
    look = look or Look()
    request = _Request(path, variable, plane or look.plane, line, reference, look)
    if len(runs) > 1 and not request.as_lines:
        raise HiresxError("colours show the difference from one run", "draw lines of several: --line y=0")
    others = [(run, request.read(theirs)) for run, theirs in zip(runs, beside, strict=True)]
    with look.style():
        figure = request.draw(request.read(path), others)
        return [picture_file.save(figure, picture_path(path, out, ".png", variable, plane or look.plane, line, *runs))]


def animate_run(
    directory: str | Path,
    variable: str | None = None,
    out: str | Path | None = None,
    plane: str | None = None,
    line: str | None = None,
    reference: str | Path | None = None,
    subset: str | None = None,
    fps: float = 10.0,
    look: Look | None = None,
) -> list[Path]:
    """Write an animation (.gif, or .mp4 if ffmpeg is installed) of all stored fields of the run in `directory`, and
    return the paths of the files written. `fps`: frames per second. `out`: by default a GIF in the folder of the
    fields. `variable`: names, separated by commas. `plane`, `line`: the plane or the line on which values are drawn,
    such as "z=0" or "y=0". `reference`: a CSV file with lines to draw. `subset`: the name of an `[[output.subset]]` of
    the case that is drawn instead of the whole fields. `look`: size, colours, zoom. Colours and axes are the same in
    all frames. Raises HiresxError if the fields, a variable, plane or line do not exist, and if the animation cannot be
    written."""
    name = subset or "fields"
    frames = fields.frames(directory, name)
    if not frames:
        fields.last(directory, name)  # the error names the missing library
    plane = plane or (look.plane if look else None)
    film = picture_path(Path(directory) / f"{name}.nc", out, ".gif", variable, plane, line)
    return [animate_files(list(frames.values()), film, fps, variable, plane, line, reference, look)]


def animate_files(
    paths: Sequence[Path],
    film: Path,
    fps: float,
    variable: str | None = None,
    plane: str | None = None,
    line: str | None = None,
    reference: str | Path | None = None,
    look: Look | None = None,
    style: Mapping[str, Any] = animation.STYLE,
    sampled: Sequence[Path] = (),
) -> Path:
    """Write an animation of the field files `paths` to the file `film`, with `fps` frames per second, and return its
    path. `style`: settings of Matplotlib. `sampled`: files from which the limits of colours and axes are computed; all
    `paths` if it is empty. `variable`: names, separated by commas. `plane`, `line`: the plane or the line on which
    values are drawn, such as "z=0" or "y=0". `reference`: a CSV file with lines to draw. `look`: size, colours, zoom.
    Raises HiresxError if a variable, plane or line does not exist, and if the animation cannot be written."""
    picture_file.require_matplotlib()
    animation.check_target(film, fps)
    look = look or Look()
    request = _Request(paths[-1], variable, plane, line, reference, look)
    with look.style(dict(style)):
        request.fix_scales(sampled or paths)
        return animation.write(request.pictures(paths), film, fps)


@dataclass
class _Request:
    """The request for pictures of field files like `path`."""

    path: Path
    variable: str | None
    plane: str | None
    line: str | None
    reference: str | Path | None
    look: Look

    def __post_init__(self) -> None:
        about = fields.describe(self.path)
        # A block with one point in a direction is flat in it.
        self.dimensions = _dimensions(about["blocks"].values())
        self.names = [name.strip() for name in self.variable.split(",")] if self.variable else self._default(about)
        fields.check_variables(self.names, about, f"{self.path}: ")
        self.as_lines = self.dimensions <= 1 or self.line is not None
        if self.as_lines and self.plane is not None:
            raise HiresxError("both a plane and a line were asked for", "a line in space alone: --line y=0,z=0")
        if not self.as_lines and self.reference is not None:
            raise HiresxError("a reference can be drawn with lines only", "name a line too, such as --line y=0")
        contours = self.look.contours
        if self.as_lines:
            self._refuse_colours()
        else:
            colours.check_exponent(self.names, self.look)
        fields.check_variables([contours] if contours else [], about, f"contours: {self.path}: ")
        self.read_too = [contours] if contours and contours not in self.names else []
        self.scales: dict[str, Any] | None = None
        self._known: tuple[list[colours.View], list[raster.Raster]] | None = None

    def _refuse_colours(self) -> None:
        """Raises HiresxError for options of colours if lines are drawn."""
        if self.look.lines is not None:
            raise HiresxError("contour lines belong to planes", "leave them out, or leave the line out")
        look = self.look
        asked = {"symmetric": look.symmetric, "colours": look.colours, "exponent": look.exponent}
        if named := [name for name, value in asked.items() if value]:
            raise HiresxError(
                f"{', '.join(named)}: only of colours, and lines are drawn here", "leave it out, or leave the line out"
            )

    def _default(self, about: dict[str, Any]) -> list[str]:
        if about["part"]:
            return [name for name in about["variables"] if name not in ("v", "w")][:4] or about["variables"]
        if self.dimensions <= 1:
            return ["rho", "u", "p"]
        asked = [name for name in about["case"]["output"]["variables"] if name not in derived.PRIMITIVE]
        return ["rho", *(asked or ["schlieren"])]

    def read(self, path: Path) -> fields.FieldFileContent:
        return fields.read(path, [*self.names, *self.read_too])

    def draw(self, data: fields.FieldFileContent, others: Sequence[tuple[Path, fields.FieldFileContent]] = ()) -> Any:
        pieces = _pieces(data)
        if self.as_lines:
            drawn = lines.line_values(data, pieces, self.dimensions, self.line)
            for run, other in others:
                if (theirs := _dimensions(block.shape for block in other.blocks)) != self.dimensions:
                    raise HiresxError(
                        f"{_label(run)} has {theirs} dimensions, {_label(data.path.parent)} has {self.dimensions}: "
                        "they have no line in common",
                        "draw runs of as many dimensions over each other",
                    )
            compared = [
                (_label(run) + _other_time(data, d), lines.line_values(d, _pieces(d), self.dimensions, self.line))
                for run, d in others
            ]
            figure = lines.draw(data, drawn, self.names, self.reference, compared, self.scales, self.look)
        else:
            for _, other in others:
                pieces = _difference(data, other, self.names)
            views = colours.views(pieces, self.dimensions, self.plane, data.part)
            figure = colours.draw(views, self.names, self.scales, bool(others), self.look, self._rasters(views))
        if heading := self._heading(data, others):
            figure.suptitle(heading)
        return picture_file.use_length_symbol(figure, data.case)

    def _heading(
        self, data: fields.FieldFileContent, others: Sequence[tuple[Path, fields.FieldFileContent]] = ()
    ) -> str:
        heading = " ".join(
            [data.case.get("title") or data.path.parent.name, *([f"({data.part})"] if data.part else [])]
        )
        if others and not self.as_lines:
            heading += f"\ndifference from {_label(others[0][0])}{_other_time(data, others[0][1])}"
        return self.look.heading(f"{heading}\n$t = {data.time:.4g}\\,L/c_\\mathrm{{ref}}$, step {data.step}")

    def pictures(self, paths: Sequence[Path]) -> Iterator[np.ndarray]:
        """Red, green, blue (height, width, 3) of each of the files. Of colours on one grid only these and the title
        are drawn anew."""
        moving: animation.MovingFigure | None = None
        # Contour lines are drawn anew, since they are not images; the layout of an exact size depends on the title.
        redrawn = self.as_lines or self.look.lines is not None or {self.look.width, self.look.height} != {None}
        for path in paths:
            data, before = self.read(path), self._known
            views = [] if redrawn else colours.views(_pieces(data), self.dimensions, self.plane, data.part)
            if moving is None or redrawn or self._rasters(views) is not (before and before[1]):
                moving = animation.MovingFigure(self.draw(data))
            else:
                colours.update(moving.figure, views, self.names, self._rasters(views))
                moving.set_title(picture_file.with_length_symbol(self._heading(data), data.case))
            yield moving.pixels()

    def _rasters(self, views: list[colours.View]) -> list[raster.Raster]:
        """Return the rasters of `views`. The pictures of a film share them as long as the grid does not change."""
        if self._known is None or not _same_places(self._known[0], views):
            self._known = views, colours.pixels(views, self.look)
        return self._known[1]

    def fix_scales(self, paths: Sequence[Path]) -> None:
        """One scale for all the files `paths`: colours, or the ends of the axis, of each variable."""
        gathered: dict[str, list[np.ndarray]] = {name: [] for name in self.names}
        for path in paths:
            data = self.read(path)
            if self.as_lines:
                drawn = lines.line_values(data, _pieces(data), self.dimensions, self.line).values
            for name in self.names:
                if self.as_lines:
                    gathered[name].append(drawn[name])
                else:
                    views = colours.views(_pieces(data), self.dimensions, self.plane, data.part)
                    gathered[name].append(colours.sample_values(name, views))

        def choose(name: str, values: np.ndarray) -> Any:
            return lines.ends(name, values) if self.as_lines else colours.scale(name, values, self.look)

        self.scales = {name: choose(name, np.concatenate(values)) for name, values in gathered.items()}


def _same_places(known: list[colours.View], views: list[colours.View]) -> bool:
    return len(known) == len(views) and all(
        a[:2] == b[:2]
        and len(a[2]) == len(b[2])
        and all(
            np.array_equal(p[axis], q[axis], equal_nan=True) for p, q in zip(a[2], b[2], strict=True) for axis in "xyz"
        )
        for a, b in zip(known, views, strict=True)
    )


def _pieces(data: fields.FieldFileContent) -> list[cut.Piece]:
    return [{"x": b.x, "y": b.y, "z": b.z} | dict(b.state) for b in data.blocks]


def _difference(data: fields.FieldFileContent, other: fields.FieldFileContent, names: list[str]) -> list[cut.Piece]:
    """Return the fields of `data` minus those of `other`, on the same grid."""
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


def _dimensions(shapes: Iterable[Sequence[int]]) -> int:
    return max(sum(n > 1 for n in shape) for shape in shapes)


def other_runs(against: str | Path | Sequence[str | Path] | None) -> list[Path]:
    """Return the runs or field files with which a run is compared, as a list of paths. `against`: None, one path or
    several."""
    if against is None:
        return []
    return [Path(run) for run in ([against] if isinstance(against, str | Path) else against)]


def _label(run: Path) -> str:
    return run.name or str(run)


def _field_file(path: Path, step: int | None, name: str) -> Path:
    if path.is_file():
        return path
    if path.name == "averages.nc" and (path.parent / "run.json").is_file():
        raise record.no_averages(path.parent)
    if not path.is_dir():
        raise HiresxError(f"{path} {describe_path(path)}", "give the directory of a run, or one of its fields_*.nc")
    if step is None:
        return fields.last(path, name)
    found = fields.frames(path, name)
    if step not in found:
        there = ", ".join(map(str, found)) or "none"
        raise HiresxError(f"{path} has no {name} of step {step}", f"there are {name} of the steps: {there}")
    return found[step]


def _at_one_time(runs: Sequence[Path], step: int | None, name: str) -> list[Path]:
    """Return the fields to draw of each of `runs` (folders, or field files, which are used as they are): those of
    `step` of the first run, and those of the other runs at its time (`common_time.latest_common`). Prints a note if the
    first run has a later time."""
    fixed = [run.is_file() or (step is not None and n == 0) for n, run in enumerate(runs)]
    last = [_field_file(run, step if n == 0 else None, name) for n, run in enumerate(runs)]
    if all(fixed) or len(runs) == 1:
        return last
    frames = [
        {fields.describe(path)["step"]: path} if known else fields.frames(run, name)
        for run, path, known in zip(runs, last, fixed, strict=True)
    ]
    chosen = common_time.latest_common(frames)
    if chosen[0] != last[0]:
        time, end = fields.read_time(chosen[0]), fields.read_time(last[0])
        notify(f"drawn are the latest fields that all have, t = {time:.6g}: {runs[0]} goes on to t = {end:.6g}")
    return chosen


def _other_time(ours: fields.FieldFileContent, theirs: fields.FieldFileContent) -> str:
    """Return a label with the time of other fields, or with their step if the time does not advance; "" for the same
    time."""
    if not common_time.same_time(ours.time, theirs.time):
        return f", $t = {theirs.time:.4g}\\,L/c_\\mathrm{{ref}}$"
    return f", step {theirs.step}" if theirs.time == 0 and theirs.step != ours.step else ""


def picture_path(path: Path, out: str | Path | None, suffix: str, *choices: Any) -> Path:
    """Return the path of the picture of the file or run `path`. The name of the picture consists of the stem of `path`,
    the strings `choices` (what is drawn) and `suffix` (".png", ...). `out`: the file or the folder that the user named;
    None for the folder of `path`."""
    words = [str(choice).replace(" ", "").replace(",", "_").replace("=", "") for choice in choices if choice]
    words = [Path(choice).name for choice in words]
    name = "_".join([path.stem, *words]) + suffix
    if out is None:
        return path.with_name(name)
    out = Path(out)
    return out if out.suffix and not out.is_dir() else out / name
