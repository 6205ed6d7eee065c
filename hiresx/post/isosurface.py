"""`hiresx post isosurface`: surfaces on which a variable of a field in space has a value, coloured by another variable,
drawn off screen by VTK through PyVista."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.show import colours, picture_file
from hiresx.output.show.look import Look
from hiresx.post.result import Result, as_run, dataset, file_stem
from hiresx.results.stored_levels import kinds_of_stored

_MEND = optional.install_command("surface")
# Settings for rendering in software and without a screen, if there is neither a GPU nor an X server.
_GL_MEND = "apt install libegl1 libgl1-mesa-dri (Mesa's, without a screen), or write the surface: --out FILE.vtp"
_SURFACES = (".vtp", ".ply", ".stl")
_VIEWS = {"xy": (270.0, 90.0), "xz": (270.0, 0.0), "yz": (0.0, 0.0)}  # views from +z, -y, +x
_CAMERA = (300.0, 25.0, 1.0)
# Pixels per inch of the picture.
_DPI = 200
_PROBE = """
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(32, 32))
plotter.add_mesh(pyvista.Sphere())
assert plotter.screenshot(return_img=True).std() > 0
"""


def isosurface(
    run: Any,
    variable: str,
    values: Sequence[float],
    by: str | None = None,
    which: int | float = -1,
    subset: str = "fields",
    clip: Sequence[float] | None = None,
    camera: str | None = None,
    opacity: float = 1.0,
    look: Look | None = None,
) -> Result:
    """Return the isosurfaces on which `variable` has each of `values`, in one three-dimensional field of `run` (a
    folder or the result of `hiresx.open`).

    - `by`: the variable that colours them; by default the value.
    - `which`: step (0 or more), position from the end (negative) or time (a float); by default the last field.
    - `subset`: the name of an `[[output.subset]]`, by default the whole fields.
    - `clip`: (x0, x1, y0, y1, z0, z1) in units of the length scale L, the box that is drawn; by default the whole grid.
    - `camera`: "azimuth,elevation[,zoom]", in degrees from +x towards +y and above the plane z = 0, or "xy", "xz",
      "yz".
    - `opacity`: above 0, at most 1. `look`: colours and size of the picture.

    `Result.summary` has the area of each surface, in L^2. `Result.write` also writes .vtp, .ply and .stl. PyVista draws
    the picture without a window. Without OpenGL only the surfaces can be written. Raises HiresxError for an unknown
    variable or run, for fields of less than three dimensions, for values outside of the range of the variable, and if
    PyVista is missing."""
    # imported first: the optional packages for pictures include the one that opens a run
    pyvista = optional.import_required("pyvista", "surfaces need PyVista", _MEND)
    run, look = as_run(run), look or Look()
    names = list(dict.fromkeys([variable, *([by] if by else [])]))
    azimuth, elevation, zoom = _view(camera)
    if clip is not None and (len(clip) != 6 or any(a >= b for a, b in zip(clip[::2], clip[1::2], strict=True))):
        raise HiresxError(f"{list(clip)} is no box", "give x from, to, y from, to, z from, to: --clip 0,10,-3,3,-1,1")
    if not 0 < opacity <= 1:
        raise HiresxError(f"an opacity of {opacity:g} is not possible", "give more than 0, and 1 at most")
    tree = run.fields(which, names, subset)
    if tree.hiresx.dimensions < 3:
        raise HiresxError("surfaces belong to fields in space", "of a plane draw contour lines: hiresx post slice")
    pieces = tree.hiresx.pieces(*names)
    kinds = kinds_of_stored(tree.hiresx.blocks)
    found = _surface(pyvista, pieces, kinds, variable, values, by, clip)
    bounds = [float(f(piece[axis])) for axis in "xyz" for f in (np.nanmin, np.nanmax)
              for piece in [{axis: np.concatenate([p[axis].ravel() for p in pieces])}]]  # fmt: skip
    triangles, points = found.regular_faces, np.asarray(found.points, dtype=float)
    level = np.asarray(found.point_data["level"])
    sides = points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
    areas = 0.5 * np.linalg.norm(np.cross(*sides), axis=1)
    on = level[triangles[:, 0]]
    time = float(np.asarray(tree.coords["time"]))
    summary = {
        "run": str(run.path), "variable": variable, "by": by or "", "time": time, "step": int(tree.coords["step"]),
        "points": len(points), "triangles": len(triangles),
        "surfaces": [{"value": float(v), "area": float(areas[np.isclose(on, v)].sum())} for v in values],
    }  # fmt: skip
    shown = by or "level"
    held = {shown: ("point", np.asarray(found.point_data[shown]), derived.about(by or variable).long_name, "")}
    data = dataset(
        {**held, "nodes": (("triangle", "corner"), triangles, "points of the triangles", "1")},
        {axis: ("point", points[:, n], f"{axis} coordinate", "L") for n, axis in enumerate("xyz")},
        title=run.title,
        time=time,
    )
    symbol, levels = picture_file.symbol(variable), ", ".join(f"{v:g}" for v in values)
    heading = look.heading(f"{run.title}\n{symbol} = {levels},  $t = {time:.4g}\\,L/c_\\mathrm{{ref}}$")

    def draw() -> Any:
        norm, chosen, extend = colours.scale(by or variable, np.asarray(found.point_data[shown]), look)
        size = look.wide - (1.0 if by else 0.2)
        ends = bounds if clip is None else list(clip)
        picture, seen = _picture(
            pyvista, found, shown, norm, chosen, ends, opacity, (azimuth, elevation, zoom), int(_DPI * size)
        )
        ratio = picture.shape[0] / picture.shape[1]
        figure = look.figure(size * ratio + 0.5)
        ax = figure.subplots()
        ax.imshow(picture, interpolation="antialiased")
        ax.set_axis_off()
        for axis in box_axes(ends, seen):
            _draw_axis(ax, axis)
        if by:
            from matplotlib.cm import ScalarMappable

            bar = figure.colorbar(ScalarMappable(norm, chosen), ax=ax, extend=extend, pad=0.01, aspect=30, shrink=0.85)
            bar.set_label(picture_file.symbol(by))
        if heading:
            figure.suptitle(heading)
        return figure

    always, *others = [{ending: partial(_save, found, ending)} for ending in _SURFACES]
    name = file_stem("isosurface", variable, f"{summary['step']:06d}")
    return Result(name, summary, data, draw, always, look.style, run.case, on_request=others[0] | others[1])


@dataclass(frozen=True, eq=False)
class PictureView:
    """The projection of points (3,) in space onto a picture of `width` by `height` pixels. `turn` @ point + `shift` has
    three components: the pixels to the right, the pixels downwards, and the coordinate towards the viewer."""

    turn: np.ndarray
    shift: np.ndarray
    width: int
    height: int

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the positions (..., 2) of points `places` (..., 3) in the picture: the pixels to the right and
        downwards."""
        return (places @ self.turn.T + self.shift)[..., :2]


@dataclass(frozen=True, eq=False)
class SeenAxis:
    """An edge of the box around a three-dimensional picture that is drawn as an axis of the coordinate `name`. `ticks`
    (n,): the values of its tick marks. `pixels` (n, 2): their positions in the picture. `ends`: the positions of its
    two ends. `away` (2,): the direction in the picture that points away from the box."""

    name: str
    ticks: np.ndarray
    pixels: np.ndarray
    ends: np.ndarray
    away: np.ndarray


# An edge has no scale if its length in the picture is below this fraction of the larger side, because the view is along
# it.
_SHORTEST = 0.04


def box_axes(bounds: Sequence[float], seen: PictureView) -> list[SeenAxis]:
    """Return the coordinate axes of a three-dimensional picture, which lie along edges of the box `bounds` (x from, x
    to, y from, ...): x and y at the lower border of the picture, z at the left. A direction parallel to the line of
    sight has no axis. `seen`: the projection onto the picture."""
    from matplotlib.ticker import MaxNLocator

    box, found = np.reshape(np.asarray(bounds, dtype=float), (3, 2)), []
    corners = np.stack(np.meshgrid(*box, indexing="ij"), axis=-1).reshape(-1, 3)
    middle = seen.at(corners).mean(axis=0)
    for d in range(3):
        edges = np.moveaxis(corners.reshape(2, 2, 2, 3), d, 2).reshape(4, 2, 3)
        # x and y have the lowest edge, z the leftmost one. It is at the border of the picture, since no corner lies
        # beyond it.
        ends = min(seen.at(edges), key=lambda pixels: pixels[:, 0].mean() if d == 2 else -pixels[:, 1].mean())
        along = ends[1] - ends[0]
        length = float(np.linalg.norm(along))
        if length < _SHORTEST * max(seen.width, seen.height):
            continue
        away = np.array([along[1], -along[0]]) / length
        away *= np.sign(away @ (ends.mean(axis=0) - middle)) or 1.0
        count = int(np.clip(length / 250, 2, 8))
        ticks = MaxNLocator(count, steps=[1, 2, 5, 10]).tick_values(*box[d])
        ticks = ticks[(ticks >= box[d, 0] - 1e-9) & (ticks <= box[d, 1] + 1e-9)]
        share = ((ticks - box[d, 0]) / (box[d, 1] - box[d, 0]))[:, None]
        found.append(SeenAxis("xyz"[d], ticks, ends[0] + share * along, ends, away))
    return found


def _draw_axis(ax: Any, axis: SeenAxis) -> None:
    right, down = axis.away
    aligned = {"ha": "left" if right > 0.4 else "right" if right < -0.4 else "center",
               "va": "top" if down > 0.4 else "bottom" if down < -0.4 else "center"}  # fmt: skip
    ax.plot(*axis.ends.T, color="0.3", lw=0.8, clip_on=False)
    for tick, pixel in zip(axis.ticks, axis.pixels, strict=True):
        ax.annotate("", pixel, (4 * right, -4 * down), textcoords="offset points", annotation_clip=False,
                    arrowprops={"arrowstyle": "-", "lw": 0.6, "color": "0.3", "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        ax.annotate(f"{tick:g}", pixel, (6 * right, -6 * down), textcoords="offset points", fontsize=7,
                    annotation_clip=False, **aligned)  # fmt: skip
    ax.annotate(f"${axis.name}/L$", axis.ends.mean(axis=0), (22 * right, -22 * down), textcoords="offset points",
                annotation_clip=False, **aligned)  # fmt: skip


def _save(found: Any, ending: str, path: Path) -> None:
    """Write `found` to `path` in the format of the `ending`. PyVista chooses the format by the name, and a temporary
    file has another ending."""
    named = path.with_name(f"{path.name}{ending}")
    found.save(named)
    named.replace(path)


def _view(camera: str | None) -> tuple[float, float, float]:
    if camera is None:
        return _CAMERA
    if camera in _VIEWS:
        return (*_VIEWS[camera], 1.0)
    try:
        azimuth, elevation, *rest = (float(word) for word in camera.split(","))
        (zoom,) = rest or (1.0,)
    except ValueError:
        raise HiresxError(f'camera "{camera}" is not understood', "give 300,25 or 300,25,1.5, or xy, xz, yz") from None
    if not -90 <= elevation <= 90 or not 0.05 <= zoom <= 50:
        raise HiresxError(f'camera "{camera}" sees nothing', "the elevation is -90 to 90 degrees, the zoom about 1")
    return azimuth, elevation, zoom


def _surface(
    pyvista: ModuleType, pieces: Sequence[dict[str, np.ndarray]], kinds: Sequence[np.ndarray | None], variable: str,
    values: Sequence[float], by: str | None, clip: Sequence[float] | None,
) -> Any:  # fmt: skip
    """Return the triangles of all blocks, with the point data "level" and `by`. `kinds`: the kinds of their cells, None
    if all are shown (`level_cells.cell_kinds`)."""
    parts = []
    low, high = np.inf, -np.inf
    for piece, hidden in zip(pieces, kinds, strict=True):
        if min(piece["x"].shape) < 2:
            continue
        low, high = min(low, float(np.nanmin(piece[variable]))), max(high, float(np.nanmax(piece[variable])))
        # VTK counts i fastest, in the same order as the memory of an array (nk, nj, ni); a structured grid gets the
        # transpose.
        grid = pyvista.StructuredGrid(*(np.ascontiguousarray(piece[axis].T) for axis in "xyz"))
        for name in dict.fromkeys([variable, *([by] if by else [])]):
            grid.point_data[name] = piece[name].ravel()
        if hidden is not None:
            grid.cell_data["vtkGhostType"] = hidden.ravel()
        for value in values:
            part = grid.contour([float(value)], scalars=variable)
            if clip is not None and part.n_points:
                part = part.clip_box(list(clip), invert=False).extract_surface(algorithm="dataset_surface")
            part = part.triangulate() if part.n_cells else part
            if part.n_cells:
                part.point_data["level"] = np.full(part.n_points, float(value))
                parts.append(part)
    if not parts:
        where = "" if clip is None else " in this box"
        raise HiresxError(
            f"{variable} is {', '.join(f'{v:g}' for v in values)} nowhere{where}",
            f"its values are {low:.4g} to {high:.4g}",
        )
    return pyvista.merge(parts, merge_points=False) if len(parts) > 1 else parts[0]


def _picture(
    pyvista: ModuleType, found: Any, shown: str, norm: Any, chosen: str, bounds: list[float], opacity: float,
    view: tuple[float, float, float], wide: int,
) -> tuple[np.ndarray, "PictureView"]:  # fmt: skip
    """Return red, green, blue (height, width, 3), reduced to the part with content, and the projection."""
    _check_gl()
    from matplotlib import colormaps
    from vtkmodules.vtkCommonCore import vtkLogger

    # VTK warns about the missing screen, and then works without it
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)

    azimuth, elevation, zoom = view
    a, e = np.radians(azimuth), np.radians(elevation)
    towards = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
    up = np.array([0.0, 1.0, 0.0] if abs(elevation) > 89.9 else [0.0, 0.0, 1.0])
    right = np.cross(up, towards) / np.linalg.norm(np.cross(up, towards))
    ends = np.reshape(bounds, (3, 2))
    middle, half = ends.mean(axis=1), np.diff(ends, axis=1)[:, 0] / 2
    # Extent of the box on the screen, from the middle of the screen.
    across, upwards = (1.02 * float(np.abs(half * axis).sum()) for axis in (right, np.cross(towards, right)))
    high = int(np.clip(wide * upwards / across, 0.1 * wide, 3 * wide))
    plotter = pyvista.Plotter(off_screen=True, window_size=(2 * wide, 2 * high))
    try:
        plotter.set_background("white")
        rgb = (colormaps[chosen](norm(np.asarray(found.point_data[shown])))[:, :3] * 255).astype(np.uint8)
        drawn = found.copy()
        drawn.point_data["rgb"] = rgb
        plotter.add_mesh(drawn, scalars="rgb", rgb=True, opacity=opacity, smooth_shading=True, specular=0.15)
        plotter.add_mesh(pyvista.Box(bounds).extract_all_edges(), color="grey", line_width=3)
        place = middle + 6 * np.linalg.norm(half) * towards
        plotter.camera_position = [tuple(place), tuple(middle), tuple(up)]
        plotter.enable_parallel_projection()
        plotter.camera.parallel_scale = upwards / zoom
        picture = np.asarray(plotter.screenshot(return_img=True))[: 2 * high, : 2 * wide, :3]
    finally:
        plotter.close()
    # Four samples to a pixel: edges are smooth.
    shape = picture.shape[0] // 2, 2, picture.shape[1] // 2, 2, 3
    picture = picture.reshape(shape).mean(axis=(1, 3)).round().astype(np.uint8)
    seen = (picture < 255).any(axis=2)
    rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
    cut: np.ndarray = picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    # In a parallel projection a length has the same number of pixels everywhere.
    scale = high / (2 * upwards / zoom)
    over = np.stack([scale * right, -scale * np.cross(towards, right), towards])
    corner = np.array([wide / 2 - columns[0], high / 2 - rows[0], 0.0])
    return cut, PictureView(over, corner - over @ middle, cut.shape[1], cut.shape[0])


def _check_gl() -> None:
    """Raises HiresxError if pictures cannot be rendered. The check runs in a separate process, since VTK may abort
    it."""
    tried = subprocess.run([sys.executable, "-P", "-c", _PROBE], capture_output=True, text=True, timeout=120)
    if tried.returncode:
        reason = next(
            (line for line in reversed(tried.stderr.strip().splitlines()) if line.strip()), "it does not say why"
        )
        raise HiresxError(f"VTK cannot draw off screen here ({reason[:150]})", _GL_MEND)
