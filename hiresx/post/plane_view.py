"""The plane of fields on which slices and modes are drawn."""

from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.show import colours
from hiresx.output.show.look import Look


def plane_of_fields(tree: Any, look: Look, *names: str) -> tuple[str, str, list[cut.Piece], str]:
    """Return the plane of the fields `tree` (as `Run.fields` returns them) that `look` selects: its horizontal and
    vertical axis, its pieces (nj, ni) with the variables `names`, and a description of its position. Raises HiresxError
    for a one-dimensional field, and for a plane that does not exist."""
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
