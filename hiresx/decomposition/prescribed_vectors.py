"""The checks that prescribed vectors have one direction on both sides of rotational periods and of planes of
symmetry."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hiresx.case.model import State
from hiresx.decomposition.oblique_walls import NORMAL, is_pushed, mirrors
from hiresx.errors import HiresxError
from hiresx.grid.blocks import intersection
from hiresx.grid.motions import Motion

if TYPE_CHECKING:
    from hiresx.case.schema import Sponge
    from hiresx.decomposition.patches import Decomposition


def check_turned_vectors(whole: "Decomposition", sponges: "Sequence[Sponge]") -> None:
    """Raise HiresxError if a connection rotates a body force, the velocity towards which a sponge forces the flow, or a
    vector of a boundary condition whose patch meets the connection: the velocity of a state or of a wall, or the
    direction of an inflow. Behind the connection the vector would have another direction. `whole`: the blocks, not
    divided among ranks."""
    for c in whole.connections:
        if c.rotation is None or c.over_a_pole:
            continue
        name = whole.blocks[c.block].name
        given: list[tuple[str, object]] = [("body_force", push) for push in whole.pushes]
        given += [(f"sponge.{n}.state", s.state) for n, s in enumerate(sponges) if name in (s.blocks or [name])]
        for patch in whole.patches:
            if patch.block == c.block and intersection(patch.range, c.range) is not None:
                where = f"of {patch.condition.type} on face {patch.face}"
                keys = ("state", "velocity", "direction")
                given += [(f"{key} {where}", getattr(patch.condition, key, None)) for key in keys]
        for what, value in given:
            if value is None:
                continue
            vector = np.array([value.u, value.v, value.w] if isinstance(value, State) else value)
            if np.abs(np.array(c.rotation) @ vector - vector).max() > NORMAL * np.linalg.norm(vector):
                raise HiresxError(
                    f"{what} has another direction behind face {c.face} of block '{name}', which is connected by "
                    f"{Motion(c.rotation)}",
                    "take a vector along the axis of this rotation, or the whole ring",
                )


def check_pushed_planes(whole: "Decomposition") -> None:
    """Raise HiresxError if a body force has a component normal to a plane of symmetry, or to a slip wall in whose plane
    a pole lies (a line to which a block face has collapsed). Behind the plane the force would have the opposite
    direction. `whole`: the blocks, not divided among ranks."""
    for patch in whole.patches:
        symmetric = patch.condition.type == "symmetry"
        if patch.condition.kernel != "reflect" or not is_pushed(whole, patch, whole.pushes):
            continue
        if symmetric or mirrors(whole, patch):
            raise HiresxError(
                f"body_force acts across face {patch.face} of block '{whole.blocks[patch.block].name}' "
                f"({patch.condition.type}), behind which the flow is the mirror image",
                'give this face the type "slip-wall"' if symmetric else "take a whole ring around the pole",
            )
