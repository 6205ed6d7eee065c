"""Colours on curvilinear blocks: a two-dimensional field, or planes through a three-dimensional one."""

from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import cut, derived
from hiresx.output.show import page

_DIVERGING = "RdBu_r"


# A view: horizontal and vertical coordinate, two-dimensional pieces, where it is.
View = tuple[str, str, list[cut.Piece], str]
# Values of one picture that decide on a scale for many.
_SAMPLED = 200_000


def views(pieces: list[cut.Piece], dimensions: int, plane: str | None, part: str = "") -> list[View]:
    """What is to be seen of `pieces` (nk, nj, ni): themselves if they are flat, else a plane or the three mid-planes.

    `part`: what of the fields they are, if not all; a flat part may lie anywhere in space, and is seen along the
    coordinate that varies least. Raises HiresxError for planes that are not there.
    """
    if dimensions == 2:
        if plane is not None:
            raise HiresxError("the field is two-dimensional: there is no plane to choose", "leave the plane out")
        flat = [{name: np.squeeze(values) for name, values in piece.items()} for piece in pieces]
        across = "z"
        if part:
            across = min("zyx", key=lambda axis: float(np.subtract(*reversed(cut.extent(flat, axis)))))
        horizontal, vertical = (axis for axis in "xyz" if axis != across)
        return [(horizontal, vertical, flat, "")]
    fixed = cut.parse(plane, "plane") if plane else {"z": None, "y": None, "x": None}
    if plane and len(fixed) != 1:
        raise HiresxError(f'plane "{plane}" does not name a plane', "fix one of x, y and z, as in z=0")
    found = []
    for axis, value in fixed.items():
        value = cut.middle(pieces, axis) if value is None else value
        horizontal, vertical = (name for name in "xyz" if name != axis)
        found.append((horizontal, vertical, cut.plane(pieces, axis, value), f"${axis} = {value:.4g}\\,L$"))
    return found


def draw(views: list[View], names: list[str], scales: dict[str, Any] | None = None, difference: bool = False) -> Any:
    """The figure with a panel for each variable of `names` and each view; see `plot.plot_run`. `scales`: from `shades`,
    by name, instead of those that suit these views. `difference`: the values are differences."""
    from matplotlib.ticker import MaxNLocator

    sizes = [_size(view) for view in views]
    by_rows, scale = _arrangement(sizes, len(names))
    widths, heights = ([size[m] * scale for size in sizes] for m in (0, 1))
    if by_rows:
        widths, heights = widths, [max(heights)] * len(names)
    else:
        widths, heights = [max(widths)] * len(names), heights
    # "compressed" brings panels of a given shape together, but gives those of different shapes different scales.
    layout = "compressed" if len({round(high / wide, 6) for wide, high in sizes}) == 1 else "constrained"
    figure = page.figure(sum(heights) + 0.3 * len(heights) + (0.6 if by_rows else 1.0), layout)
    grid = figure.subplots(len(heights), len(widths), squeeze=False, width_ratios=widths, height_ratios=heights)
    for number, name in enumerate(names):
        axes = grid[number] if by_rows else grid[:, number]
        values = np.concatenate([piece[name].ravel() for view in views for piece in view[2]])
        norm, colours, extend = scales[name] if scales else shades(name, values, difference)
        for ax, (horizontal, vertical, flat, where) in zip(axes, views, strict=True):
            for piece in flat:
                drawn = _draw(ax, piece, horizontal, vertical, name, norm, colours)
            _frame(ax, flat, horizontal, vertical)
            if where and (number == 0 or not by_rows):
                ax.set_title(where)
            if by_rows and number < len(names) - 1:
                ax.set_xlabel("")
                ax.tick_params(labelbottom=False)
        side = "right" if by_rows or len(views) == 1 else "bottom"
        slimness = 0.95 * (heights[0] if side == "right" else widths[0]) / 0.13  # 0.13 inches wide
        bar = figure.colorbar(
            drawn, ax=list(axes), location=side, extend=extend, pad=0.015, aspect=slimness, shrink=0.95
        )
        bar.set_label(r"$\Delta$ " * difference + page.symbol(name))
        bar.outline.set_linewidth(0.5)
        if side == "bottom":
            bar.locator = MaxNLocator(3)
    return figure


def _arrangement(sizes: list[tuple[float, float]], variables: int) -> tuple[bool, float]:
    """Whether variables go in rows and views in columns (or the reverse), and inches per unit of length.

    The choice that makes the larger picture on a screen as wide as the page and 5 inches high, with half an inch for
    the labels of each column and for each vertical colour bar; then the scale may use the height of the page.
    """
    wide, high = ([size[m] for size in sizes] for m in (0, 1))
    bars = variables if len(sizes) == 1 else 0
    choices = [
        (False, (page.WIDTH - 0.5 * (variables + bars)) / (variables * max(wide)), sum(high)),
        (True, (page.WIDTH - 0.5 * (len(sizes) + 1)) / sum(wide), variables * max(high)),
    ]
    by_rows, scale, height = max(choices, key=lambda choice: min(choice[1], 5.0 / choice[2]))
    return by_rows, min(scale, page.HEIGHT / height)


def _size(view: tuple) -> tuple[float, float]:
    """Width and height of a view, no more than 12 to 1: a thinner domain is stretched to be seen (see `_frame`)."""
    horizontal, vertical, flat, _ = view
    width, height = (float(np.subtract(*reversed(cut.extent(flat, axis)))) for axis in (horizontal, vertical))
    return max(width, height / 12), max(height, width / 12)


def _frame(ax: Any, flat: list[cut.Piece], horizontal: str, vertical: str) -> None:
    (left, right), (low, high) = cut.extent(flat, horizontal), cut.extent(flat, vertical)
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    true = 1 / 12 <= (high - low) / (right - left) <= 12
    page.name_axes(ax, horizontal, vertical, true)


def sampled(name: str, views: list[View]) -> np.ndarray:
    """Values of a variable in `views`, few enough to be kept for many pictures."""
    values = np.concatenate([piece[name].ravel() for view in views for piece in view[2]])
    return values[:: -(-values.size // _SAMPLED)]


def shades(name: str, values: np.ndarray, difference: bool = False) -> tuple[Any, str, str]:
    """Colour scale of a variable that has these `values`: norm, map, and whether values lie beyond its ends."""
    from matplotlib.colors import Normalize, PowerNorm

    values = values[np.isfinite(values)]
    if not values.size:
        raise HiresxError(f"{name} is not a number anywhere", "the run has broken down: plot an earlier step")
    # A thousandth at either end is left out, so that a corner or a start-up wave does not take all colours.
    low, high = (float(q) for q in np.quantile(values, (0.001, 0.999)))
    colours = derived.about(name).colours
    if difference or (low < 0 < high and min(-low, high) > 0.1 * max(-low, high)):
        # White at zero, when both signs matter.
        high = max(-low, high)
        low, colours = -high, _DIVERGING
    elif values.min() >= 0 and low < 0.1 * high:
        low = 0.0
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-12):
        # A uniform field: round-off is not to be seen as structure.
        low, high = low - 0.5e-3 * max(abs(low), 1.0), high + 0.5e-3 * max(abs(high), 1.0)
    margin = 1e-6 * (high - low)
    under, over = values.min() < low - margin, values.max() > high + margin
    # Faint waves beside shocks: the square root of a gradient, as the eye takes the brightness of a schlieren picture.
    norm = PowerNorm(0.5, low, high) if colours == "gray_r" and low == 0 else Normalize(low, high)
    return norm, colours, {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[under, over]


def _draw(ax: Any, piece: cut.Piece, horizontal: str, vertical: str, name: str, norm: Any, colours: str) -> Any:
    a, b, values = piece[horizontal], piece[vertical], piece[name]
    shades = {"norm": norm, "cmap": colours, "rasterized": True}
    if not np.isfinite(a).all():
        return _draw_part(ax, a, b, values, shades)
    # More nodes than pixels only cost time: a page is 1400 wide.
    thin = tuple(slice(None, None, -(-n // 1400)) for n in a.shape)
    a, b, values = a[thin], b[thin], np.ma.masked_invalid(values[thin])
    drawn = ax.pcolormesh(_corners(a), _corners(b), values, shading="flat", **shades)
    if max(a.shape) <= 300 and not values.mask.any():
        # Nodes that are more than a few pixels apart are joined smoothly; the cells below still fill the gaps between
        # blocks whose nodes are not shared.
        drawn = ax.pcolormesh(a, b, values, shading="gouraud", **shades)
    return drawn


def _draw_part(ax: Any, a: np.ndarray, b: np.ndarray, values: np.ndarray, shades: dict) -> Any:
    """A sheet with missing nodes, as triangles."""
    n = np.arange(a.size).reshape(a.shape)
    corners = n[:-1, :-1], n[:-1, 1:], n[1:, 1:], n[1:, :-1]
    triangles = np.concatenate(
        [np.stack([corners[0], corners[m], corners[m + 1]], axis=-1).reshape(-1, 3) for m in (1, 2)]
    )
    known = np.isfinite(a).ravel() & np.isfinite(values).ravel()
    triangles = triangles[known[triangles].all(axis=1)]
    # Unknown nodes belong to no triangle, but must be numbers.
    a, b, values = (np.where(known, field.ravel(), 0.0) for field in (a, b, values))
    return ax.tripcolor(a, b, triangles, values, shading="gouraud", **shades)


def _corners(nodes: np.ndarray) -> np.ndarray:
    """Corners (n+1, m+1) of cells around nodes (n, m): means of four, reaching half a cell beyond the block."""
    for axis in (0, 1):
        f = np.moveaxis(nodes, axis, 0)
        f = np.concatenate([2 * f[:1] - f[1:2], f, 2 * f[-1:] - f[-2:-1]])
        nodes = np.moveaxis((f[:-1] + f[1:]) / 2, 0, axis)
    return nodes
