"""The plane of fields on which slices and modes are drawn."""

from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.show import colours
from hiresx.output.show.look import Look


def plane_of_fields(tree: Any, look: Look, *names: str) -> tuple[str, str, list[cut.Piece], str]:
    """Horizontal and vertical axis, pieces (nj, ni) with `names`, and words for where the plane is. Raises HiresxError
    for a field of one dimension and planes that do not exist."""
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
