"""Pictures of the region of a grid in which its quality is worst."""

from pathlib import Path
from typing import Any

import numpy as np

from hiresx.grid import Grid, quality, read_grid
from hiresx.grid.blocks import Block
from hiresx.output.show import picture_file
from hiresx.output.show.look import Look

# Number of nodes that are drawn on each side of the place.
AROUND = 6
# Measures that determine the worst place: a volume that is not positive comes first, then the largest of the others,
# each divided by its limit for a good grid.
LIMITS = {"skewness": 60.0, "stretching": 1.3}


def plot_quality(path: str | Path, out: str | Path | None = None, look: Look | None = None) -> list[Path]:
    """Draw the whole grid of the grid file `path` and the region where its quality is worst, and return the paths of
    the files written. `out`: a file (.png, .svg, .pdf), by default a PNG in the folder of the grid. `look`: size and
    font. Raises HiresxError if Matplotlib is missing or the file has no grid."""
    picture_file.require_matplotlib()
    path, look = Path(path), look or Look()
    grid = read_grid(path)
    block, what, extreme = worst_place(grid)
    target = Path(out) if out is not None else path.with_name(f"{path.name}-quality.png")
    with look.style():
        return [picture_file.save(_figure(grid, block, what, extreme, look), target)]


def worst_place(grid: Grid) -> tuple[Block, str, dict[str, Any]]:
    """Return the block where the quality of a grid is worst, the name of the measure of quality, and the node: the node
    with the smallest volume if it is not positive, otherwise the node where skewness / 60 degrees or stretching / 1.3
    is largest. The third result is a dictionary with "value", "node" (i, j, k) and "position" (x, y, z)."""
    found, blocks = quality(grid), {block.name: block for block in grid.blocks}
    by_volume = min(found, key=lambda record: record["volume_min"]["value"])
    if by_volume["volume_min"]["value"] <= 0:
        return blocks[by_volume["block"]], "volume_min", by_volume["volume_min"]
    candidates = [
        (record[name]["value"] / limit, record, name)
        for record in found
        for name, limit in LIMITS.items()
        if name in record
    ]
    _, record, name = max(candidates, key=lambda c: c[0])
    return blocks[record["block"]], name, record[name]


def _figure(grid: Grid, block: Block, what: str, extreme: dict[str, Any], look: Look) -> Any:
    i, j, k = extreme["node"]
    a, b = _axes(block, k)
    size = look.width or 10.0, look.height or 4.5
    exact = look.width is not None, look.height is not None
    figure = picture_file.figure(size[1], "constrained", size[0], exact)
    whole, near = figure.subplots(1, 2)
    for other in grid.blocks:
        _lines(whole, other, min(k, other.size[2] - 1), a, b, every=None, colour="0.4")
    _lines(near, block, k, a, b, every=(i, j), colour="C0")
    x, y = extreme["position"]["xyz".index(a)], extreme["position"]["xyz".index(b)]
    for axes in (whole, near):
        axes.plot(x, y, "o", color="C3", markersize=8, fillstyle="none", markeredgewidth=2)
        axes.set_xlabel(f"{a} / L")
        axes.set_ylabel(f"{b} / L")
    whole.set_aspect("equal", adjustable="datalim")
    whole.set_title("outlines of the blocks")
    label = "cell volume" if what == "volume_min" else what
    near.set_title(f"{label} {extreme['value']:.4g} at ({i}, {j}, {k}) of '{block.name}'")
    return figure


def _axes(block: Block, k: int) -> tuple[str, str]:
    """Return the two coordinates in which the plane k of a block is largest."""
    extents = {axis: float(np.ptp(getattr(block, axis)[k])) for axis in "xyz"}
    kept = sorted(sorted(extents, key=lambda axis: -extents[axis])[:2])
    return kept[0], kept[1]


def _lines(axes: Any, block: Block, k: int, a: str, b: str, every: tuple[int, int] | None, colour: str) -> None:
    """Yield the rim of plane k, or all grid lines around a node."""
    u, v = getattr(block, a)[k], getattr(block, b)[k]
    if every is None:
        for line in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
            axes.plot(u[line], v[line], color=colour, linewidth=0.8)
        return
    rows, columns = (slice(max(m - AROUND, 0), m + AROUND + 1) for m in reversed(every))
    u, v = u[rows, columns], v[rows, columns]
    axes.plot(u, v, color=colour, linewidth=0.7)
    axes.plot(u.T, v.T, color=colour, linewidth=0.7)
