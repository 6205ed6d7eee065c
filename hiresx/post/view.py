"""What a slice and an animation look at: flat pieces of fields, their frame."""

from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.show import colours, picture_file, raster
from hiresx.output.show.look import Look


def flat(tree: Any, look: Look, *names: str) -> tuple[str, str, list[cut.Piece], str]:
    """Horizontal and vertical axis, pieces (nj, ni) with `names`, and words for where the plane is. Raises HiresxError
    for a field of one dimension and planes that are not there."""
    accessor = tree.hiresx
    if accessor.dimensions < 2:
        raise HiresxError("a field of one dimension has no slice", "draw lines: hiresx plot RUN")
    pieces = accessor.pieces(*names)
    plane = look.plane
    if accessor.dimensions == 3:
        plane = look.plane or "z"
        if "=" not in plane:
            plane = f"{plane}={cut.middle(pieces, plane.strip()) if plane.strip() in 'xyz' else ''}"
    (view,) = colours.views(pieces, accessor.dimensions, plane, tree.attrs.get("part", ""))
    return view


def sheets(tree: Any, look: Look) -> list[tuple[str, Any]]:
    """The pieces of `flat` as names of blocks and functions that take the values (nk, nj, ni) of that block to those of
    the piece: for many times on one grid."""
    blocks = list(tree.children)
    if tree.hiresx.dimensions == 2:
        return [(name, np.squeeze) for name in blocks]
    pieces = tree.hiresx.pieces()
    axis, value = next(iter(cut.parse(look.plane or "z", "plane").items()))
    value = cut.middle(pieces, axis) if value is None else value
    return [(blocks[number], sheet) for number, sheet in cut.plane_samples(pieces, axis, value)]


def frame(box: raster.Box, horizontal: str, vertical: str, look: Look) -> tuple[Any, Any]:
    """Figure and Axes for a picture of what is in `box`."""
    ratio = (box[3] - box[2]) / (box[1] - box[0])
    inner = 0.84 * look.wide
    height = float(np.clip(inner * ratio, 1.2, picture_file.HEIGHT - 1.0))
    figure = look.figure(height + 0.95)
    ax = figure.subplots()
    true = abs(inner * ratio - height) < 1e-9
    picture_file.name_axes(ax, horizontal, vertical, true)
    return figure, ax
