"""Pictures of the grid lines of a run, a field file, a case or a grid file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.fields import cut, field_file
from hiresx.output.show import colours, picture_file, raster
from hiresx.output.show.look import Look

# Largest number of blocks that a legend names; further ones have colours, too.
_NAMED = 16
_COLOURS = (picture_file.BLUE, *picture_file.OTHERS, "0.35", "#b0417a", "#4d8fb0", "#6b8e23")


def plot_grid(
    path: str | Path, out: str | Path | None = None, every: int | None = None, look: Look | None = None
) -> list[Path]:
    """Draw the grid lines and the faces of all blocks, and return the paths of the files written. `path`: a run, a
    field file, a case or a grid file. `out`: a file or a directory; by default grid.png in the run, or a file beside
    `path`. `every`: draw every n-th line; by default as many as can be distinguished. `look`: the appearance. A
    three-dimensional grid is drawn on `look.plane` or the three mid-planes. Raises HiresxError if there is no grid, if
    it has only one dimension, and if Matplotlib is missing."""
    picture_file.require_matplotlib()
    look, path = look or Look(), Path(path)
    if every is not None and every < 1:
        raise HiresxError(f"each {every}-th line is not possible", "give --every 1 or more")
    title, pieces, named, case = _grid(path)
    dimensions = max(sum(n > 1 for n in piece["x"].shape) for piece in pieces)
    if dimensions < 2:
        raise HiresxError(f"{path} holds a grid of one dimension", "there are no lines to draw")
    for number, piece in enumerate(pieces):
        piece["number"] = np.full(piece["x"].shape, float(number))
    views = colours.views(pieces, dimensions, look.plane)
    step = every or max(1, -(-max(max(piece["x"].shape) for view in views for piece in view[2]) // 100))
    beside = path / "grid.png" if path.is_dir() else path.with_name(f"{path.name}-grid.png")
    target = beside if out is None else Path(out)
    if target.is_dir() or not target.suffix:
        target = target / beside.name
    with look.style():
        figure = _draw(views, named, step, look)
        lines = "all lines" if step == 1 else f"one line in {step}, and the faces"
        heading = look.heading(f"{title}\n{plural(len(named), 'block')}, {lines}")
        if heading:
            figure.suptitle(heading)
        return [picture_file.save(picture_file.use_length_symbol(figure, case), target)]


def _grid(path: Path) -> tuple[str, list[cut.Piece], list[str], dict[str, Any]]:
    """Return title, coordinates (nk, nj, ni) and names of the blocks, and the case, which is empty if there is none."""
    about: dict[str, Any] = {}
    is_case = path.suffix == ".toml" or (path.is_dir() and (path / "case.toml").is_file())
    if is_case or not path.exists():
        from hiresx.case import load
        from hiresx.grid import build

        case = load(str(path))
        blocks: Sequence[Any] = build(case.grid, case.directory).blocks
        title, about = case.title or path.name, {"length_symbol": case.length_symbol}
    elif path.is_dir() or path.suffix == ".nc":
        data = field_file.read(field_file.last(path) if path.is_dir() else path, [])
        blocks, title, about = data.blocks, data.case.get("title") or path.resolve().name, data.case
    else:
        from hiresx.grid import read_grid

        blocks, title = read_grid(path).blocks, path.name
    pieces = [{axis: np.asarray(getattr(block, axis), dtype=float) for axis in "xyz"} for block in blocks]
    return title, pieces, [block.name for block in blocks], about


def _draw(views: list[colours.View], named: list[str], step: int, look: Look) -> Any:
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    if look.box is not None and len(views) > 1:
        raise HiresxError("a zoom needs one plane", "name it too: --plane z=0")
    boxes = [look.box or raster.box_of(flat, *axes) for *axes, flat, _ in views]
    ratios = [float(np.clip((box[3] - box[2]) / (box[1] - box[0]), 1 / 12, 12)) for box in boxes]
    wide = (look.wide - 1.6) / sum(1 / ratio if ratio > 1 else 1 for ratio in ratios)
    figure = look.figure(1.2 + wide * max(min(ratio, 1.0) for ratio in ratios) * (1.0 if len(views) > 1 else 1.05))
    axes = figure.subplots(1, len(views), squeeze=False, width_ratios=[1 / r if r > 1 else 1 for r in ratios])[0]
    for ax, box, (horizontal, vertical, flat, where) in zip(axes, boxes, views, strict=True):
        for piece in flat:
            x, y = piece[horizontal], piece[vertical]
            number = int(np.nanmedian(piece["number"]))
            nodes = np.stack([x, y], axis=-1)
            for lines, count in ((nodes, x.shape[0]), (nodes.swapaxes(0, 1), x.shape[1])):
                kept = lines[_inner(count, step)]
                faces = lines[[0, -1]]
                how = {"colors": _COLOURS[number % len(_COLOURS)], "rasterized": kept.size > 400_000}
                ax.add_collection(LineCollection(list(kept), linewidths=0.3, **how), autolim=False)
                ax.add_collection(LineCollection(list(faces), linewidths=1.1, **how), autolim=False)
        margin = 0.02 * max(box[1] - box[0], box[3] - box[2]) if look.box is None else 0.0
        ax.set_xlim(box[0] - margin, box[1] + margin)
        ax.set_ylim(box[2] - margin, box[3] + margin)
        picture_file.name_axes(ax, horizontal, vertical, 1 / 12 <= (box[3] - box[2]) / (box[1] - box[0]) <= 12)
        if where:
            ax.set_title(where)
    if len(named) > 1:
        keys = [Line2D([], [], color=_COLOURS[n % len(_COLOURS)], label=name) for n, name in enumerate(named[:_NAMED])]
        title = f"{_NAMED} of {len(named)} blocks" if len(named) > _NAMED else None
        picture_file.legend_beside(axes[-1], handles=keys, title=title)
    return figure


def _inner(count: int, step: int) -> np.ndarray:
    return np.arange(step, count - 1, step)
