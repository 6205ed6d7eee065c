"""Pictures in colours of fields on curvilinear blocks: a two-dimensional field, or planes through a three-dimensional
one."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import cut, derived
from hiresx.output.show import picture_file, raster
from hiresx.output.show.look import Look

_DIVERGING = "RdBu_r"
# Pixels per inch of a picture: those of `page.STYLE`.
_DPI = 200

# A view: horizontal and vertical coordinate, two-dimensional pieces, and a description of its position.
View = tuple[str, str, list[cut.Piece], str]
# Largest number of values of one picture that are used for the scale of many pictures.
_SAMPLED = 200_000


def views(pieces: list[cut.Piece], dimensions: int, plane: str | None, part: str = "") -> list[View]:
    """Return the planes of a field that a picture shows, as a list of tuples. A tuple has the names of the horizontal
    and the vertical coordinate, the blocks as dictionaries of two-dimensional arrays, and a text with the position of
    the plane. A two-dimensional field is shown as a whole. Of a three-dimensional field `plane` is shown, a text such
    as "z=0" (in units of L), or, if `plane` is None, the three mid-planes. `pieces`: for each block a dictionary of
    arrays `[k, j, i]`, coordinates "x", "y", "z" and variables. `dimensions`: number of dimensions of the field.
    `part`: the description of the subset of the fields, "" for whole fields; the normal of a plane subset is the
    coordinate that varies least. Raises HiresxError for a plane that does not exist."""
    if dimensions == 2:
        if plane is not None:
            raise HiresxError("the field is two-dimensional: there is no plane to choose", "leave the plane out")
        flat = [{name: np.squeeze(values) for name, values in piece.items()} for piece in pieces]
        across = cut.flat_axis(flat, part)
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


def draw(
    views: list[View],
    names: list[str],
    scales: dict[str, Any] | None = None,
    difference: bool = False,
    look: Look | None = None,
    rasters: list[raster.Raster] | None = None,
) -> Any:
    """Return a Matplotlib figure in colours with one panel for each variable of `names` and each view. `views`: the
    planes (the result of the function `views`). `scales`: the colour scale of each variable, by its name (the result of
    `scale`); by default it is computed from these views. `difference`: whether the values are differences of two
    fields. `look`: the appearance. `rasters`: the result of `pixels` for these views; by default it is computed. Raises
    HiresxError if `look` has a zoom and there are several planes, or no value lies in the zoom."""
    from matplotlib.ticker import MaxNLocator

    look = look or Look()
    if look.box is not None and len(views) > 1:
        raise HiresxError("a zoom needs one plane", "name it too: --plane z=0")
    boxes = [look.box or raster.box_of(flat, a, b) for a, b, flat, _ in views]
    sizes = [_size(box) for box in boxes]
    by_rows, inches = _arrangement(sizes, len(names), look)
    widths, heights = ([size[m] * inches for size in sizes] for m in (0, 1))
    rasters = rasters or pixels(views, look, max(widths))
    if by_rows:
        widths, heights = widths, [max(heights)] * len(names)
    else:
        widths, heights = [max(widths)] * len(names), heights
    # "compressed" joins panels of a given shape, but gives panels of different shapes different scales.
    layout: picture_file.Layout = (
        "compressed" if len({round(high / wide, 6) for wide, high in sizes}) == 1 else "constrained"
    )
    lines = 0.02 * look.font  # height of a line of text with its margins, in inches
    figure = look.figure(sum(heights) + 1.7 * lines * len(heights) + (3.4 if by_rows else 5.5) * lines, layout)
    grid = figure.subplots(len(heights), len(widths), squeeze=False, width_ratios=widths, height_ratios=heights)
    for number, name in enumerate(names):
        axes = grid[number] if by_rows else grid[:, number]
        painted = [mapped([piece[name] for piece in view[2]]) for mapped, view in zip(rasters, views, strict=True)]
        values = np.concatenate([piece[name].ravel() for view in views for piece in view[2]])
        if look.box is not None:
            values = painted[0].ravel()
            if not np.isfinite(values).any():
                raise HiresxError(f"there is no flow in {look.box}", "see hiresx check for where the grid is")
        norm, colours, extend = scales[name] if scales else scale(name, values, look, difference)
        panels = zip(axes, painted, rasters, views, strict=True)
        for n, (ax, picture, mapped, (horizontal, vertical, flat, where)) in enumerate(panels):
            left, right, low, high = mapped.box
            picture_file.name_axes(ax, horizontal, vertical, 1 / 12 <= (high - low) / (right - left) <= 12)
            drawn = ax.imshow(
                picture, origin="lower", extent=mapped.box, norm=norm, cmap=colours, interpolation="nearest",
                aspect=ax.get_aspect(), label=f"_{name} {n}",
            )  # fmt: skip
            if look.lines is not None:
                lines_of = mapped([piece[look.contours or name] for piece in flat])
                ax.contour(
                    *mapped.centres, np.ma.masked_invalid(lines_of), look.lines, colors="k", linewidths=0.5, alpha=0.8
                )
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
        bar.set_label(r"$\Delta$ " * difference + picture_file.symbol(name) + describe_exponent(norm))
        bar.outline.set_linewidth(0.5)
        if side == "bottom":
            bar.locator = MaxNLocator(3)
    return figure


def update(figure: Any, views: list[View], names: list[str], rasters: list[raster.Raster]) -> None:
    """Replace the images in a figure that `draw` has made by images of another time. `views`: the planes at this time.
    `names`: the names of the variables. `rasters`: the result of `pixels` for `views`."""
    images = {image.get_label(): image for ax in figure.axes for image in ax.images}
    for name in names:
        for n, (mapped, view) in enumerate(zip(rasters, views, strict=True)):
            images[f"_{name} {n}"].set_data(mapped([piece[name] for piece in view[2]]))


def pixels(views: list[View], look: Look, inches: float | None = None) -> list[raster.Raster]:
    """Return a list with the mapping from the pixels of the picture to the nodes of the grid for each view, within the
    zoom of `look`. `views`: the planes (the result of the function `views`). `inches`: the width of the widest panel in
    inches; None for an estimate."""
    inches = inches or look.wide * (0.8 if len(views) == 1 else 0.5)
    wide = int(np.clip(_DPI * inches, 400, 2400))
    return [raster.raster(flat, a, b, look.box, wide) for a, b, flat, _ in views]


def _arrangement(sizes: list[tuple[float, float]], variables: int, look: Look) -> tuple[bool, float]:
    """Return whether variables are in rows and views in columns (or the reverse), and the inches per unit of length.
    The arrangement with the larger picture is chosen, for a screen as wide as the page and 5 inches high, with half an
    inch for the labels of each column and for each vertical colour bar. Afterwards the scale may use the height of the
    page."""
    wide, high = ([size[m] for size in sizes] for m in (0, 1))
    bars = variables if len(sizes) == 1 else 0
    label = 0.5 * look.font / picture_file.FONT
    choices = [
        (False, max(look.wide - label * (variables + bars), 1) / (variables * max(wide)), sum(high)),
        (True, max(look.wide - label * (len(sizes) + 1), 1) / sum(wide), variables * max(high)),
    ]
    by_rows, inches, height = max(choices, key=lambda choice: min(choice[1], 5.0 / choice[2]))
    return by_rows, min(inches, look.high / height)


def _size(box: raster.Box) -> tuple[float, float]:
    """Return width and height of a view, whose ratio is at most 12: a thinner domain is stretched to be visible."""
    width, height = box[1] - box[0], box[3] - box[2]
    return max(width, height / 12), max(height, width / 12)


def sample_values(name: str, views: list[View]) -> np.ndarray:
    """Return a sample (n,) of the values of the variable `name` on the planes `views`, for the choice of a colour
    scale. It has at most 200,000 values, evenly spread over the points, so that the samples of many pictures fit in
    memory."""
    values = np.concatenate([piece[name].ravel() for view in views for piece in view[2]])
    return values[:: -(-values.size // _SAMPLED)]


def scale(name: str, values: np.ndarray, look: Look, difference: bool = False) -> tuple[Any, str, str]:
    """Return the colour scale of the variable `name` for these `values`, with the settings of `look`: Matplotlib's
    norm, the name of the colour map, and the ends of the scale beyond which there are values ("neither", "min", "max"
    or "both"). `difference`: whether the values are differences of two fields. Raises HiresxError for invalid limits,
    and for a colour map that Matplotlib does not have."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize, PowerNorm

    norm, chosen, extend = default_scale(name, values, difference, _exponent(look))
    if look.limits is not None or look.symmetric:
        low, high = look.limits or (norm.vmin, norm.vmax)
        if look.symmetric:
            high = max(abs(low), abs(high))
            low, chosen = -high, _DIVERGING
        curved = isinstance(norm, PowerNorm) and low >= 0
        norm = PowerNorm(_exponent(look), low, high) if curved else Normalize(low, high)
        known = values[np.isfinite(values)]
        margin = 1e-6 * (high - low)
        extend = _ends(known.min() < low - margin, known.max() > high + margin)
    if look.colours is not None:
        if look.colours not in colormaps:
            raise HiresxError(f'matplotlib has no colour map "{look.colours}"', "viridis, inferno, RdBu_r, gray_r, ...")
        chosen = look.colours
    return norm, chosen, extend


def check_exponent(names: Iterable[str], look: Look) -> None:
    """Raise HiresxError if `look` has an exponent of the brightness, but none of the variables `names` is drawn in
    shades of grey, as schlieren are. Only these have such an exponent."""
    names = list(names)
    if look.exponent is not None and not any(derived.about(name).colours == "gray_r" for name in names):
        shaded_ones = ", ".join(name for name, about in derived.VARIABLES.items() if about.colours == "gray_r")
        raise HiresxError(
            f"exponent: of the shades of {shaded_ones}, and {', '.join(names)} has none", "leave the exponent out"
        )


def _exponent(look: Look) -> float:
    return 0.5 if look.exponent is None else look.exponent


def default_scale(
    name: str, values: np.ndarray, difference: bool = False, exponent: float = 0.5
) -> tuple[Any, str, str]:
    """Return the default colour scale of the variable `name` for these `values`: Matplotlib's norm, the name of the
    colour map, and the ends of the scale beyond which there are values ("neither", "min", "max" or "both").
    `difference`: whether the values are differences of two fields. `exponent`: for variables that are drawn as
    schlieren, the exponent of the brightness as a function of the value; 0.5 suits the perception of brightness. Raises
    HiresxError if no value is finite."""
    from matplotlib.colors import Normalize, PowerNorm

    values = values[np.isfinite(values)]
    if not values.size:
        raise HiresxError(f"{name} is not a number anywhere", "the run has broken down: plot an earlier step")
    # A thousandth of the values at either end is ignored, so that a corner or a start-up wave does not determine the
    # scale.
    low, high = (float(q) for q in np.quantile(values, (0.001, 0.999)))
    colours = derived.about(name).colours
    if difference or (low < 0 < high and min(-low, high) > 0.1 * max(-low, high)):
        # White is at zero if both signs occur.
        high = max(-low, high)
        low, colours = -high, _DIVERGING
    elif values.min() >= 0 and low < 0.1 * high:
        low = 0.0
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-12):
        # A uniform field: its round-off must not look like structure.
        low, high = low - 0.5e-3 * max(abs(low), 1.0), high + 0.5e-3 * max(abs(high), 1.0)
    margin = 1e-6 * (high - low)
    # Shows faint waves beside shocks.
    norm = PowerNorm(exponent, low, high) if colours == "gray_r" and low == 0 else Normalize(low, high)
    return norm, colours, _ends(values.min() < low - margin, values.max() > high + margin)


def _ends(under: bool, over: bool) -> str:
    return {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[bool(under), bool(over)]


def describe_exponent(norm: Any) -> str:
    """Return a note for the label of a colour bar with the exponent of its scale; "" for a linear scale. `norm`: the
    scale, a Matplotlib norm."""
    exponent = getattr(norm, "gamma", 1.0)
    return "" if exponent == 1 else f"   (shade: power {exponent:g})"
