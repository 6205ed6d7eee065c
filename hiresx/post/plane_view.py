"""The plane of a field on which slices and SPOD modes are drawn."""

from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.show import colours
from hiresx.output.show.look import Look


def plane_of_fields(tree: Any, look: Look, *names: str) -> tuple[str, str, list[cut.Piece], str]:
    """Return the plane of a field that `look` selects: the names of its horizontal and vertical axis, a dictionary of
    arrays (nj, ni) for each block with the coordinates and the variables `names`, and a text with the position of the
    plane. `tree`: the field, a DataTree with a node for each block (`Run.fields`). A three-dimensional field is cut at
    its middle along z by default. Raises HiresxError for a one-dimensional field, and for a plane that does not
    exist."""
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
