"""The checks that prescribed vectors have one direction on both sides of rotational periods and of planes of
symmetry."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.case import functions
from hiresx.case.model import State
from hiresx.case.wave_sums import Waves
from hiresx.decomposition.oblique_walls import NORMAL, is_pushed, mirrors
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Range, intersection
from hiresx.grid.motions import Motion

if TYPE_CHECKING:
    from hiresx.case import Case
    from hiresx.case.schema import Sponge
    from hiresx.decomposition.patches import Decomposition, Patch
    from hiresx.grid import Connection


def check_turned_vectors(whole: "Decomposition", sponges: "Sequence[Sponge]") -> None:
    """Raise HiresxError if a connection rotates a body force, the velocity towards which a sponge forces the flow, or a
    vector of a boundary condition whose patch meets the connection: the velocity of a state or of a wall, the direction
    of an inflow, or the axis z of a far-field vortex. Behind the connection the vector would have another direction.
    `whole`: the blocks, not divided among ranks."""
    for c in _turning(whole):
        name = whole.blocks[c.block].name
        given: list[tuple[str, object]] = [("body_force", push) for push in whole.pushes]
        given += [(f"sponge.{n}.state", s.state) for n, s in enumerate(sponges) if name in (s.blocks or [name])]
        for patch in whole.patches:
            if patch.block == c.block and intersection(patch.range, c.range) is not None:
                where = f"of {patch.condition.type} on face {patch.face}"
                keys = ("state", "velocity", "direction")
                given += [(f"{key} {where}", getattr(patch.condition, key, None)) for key in keys]
                if getattr(patch.condition, "vortex", None) is not None:
                    given.append((f"vortex {where}", (0.0, 0.0, 1.0)))
        for what, value in given:
            if value is None:
                continue
            vector = np.array([value.u, value.v, value.w] if isinstance(value, State) else value)
            if np.abs(np.array(c.rotation) @ vector - vector).max() > NORMAL * np.linalg.norm(vector):
                raise _turned(whole, c, what)


def check_turned_functions(whole: "Decomposition", case: "Case", profiles: Mapping[str, Callable[..., Any]]) -> None:
    """Raise HiresxError if a connection rotates the velocity that a function gives at boundary patches which meet the
    connection, or in a sponge. `whole`: the blocks, not divided among ranks. `profiles`: functions that replace those
    of case.py with the same names."""

    def flow(name: str, t: float | None) -> Callable[..., Sequence[Any]]:
        call = profiles.get(name) or case.function(name)
        return lambda x, y, z: functions.state(call, case.arguments(call), x, y, z, t)

    if not any(True for _ in _turning(whole)):
        return
    for patch in whole.patches:
        condition: Any = patch.condition
        if (name := getattr(condition, "function", None)) is not None:
            what = f'function "{name}" of {condition.type} on face {patch.face}'
            check_turned_flow(whole, what, flow(name, None if getattr(condition, "steady", True) else 0.0), patch)
    for n, sponge in enumerate(case.sponge):
        if sponge.function is not None:
            check_turned_flow(whole, f"sponge.{n}.function", flow(sponge.function, None), blocks=sponge.blocks)


def check_turned_flow(
    whole: "Decomposition",
    what: str,
    flow: Callable[..., Sequence[Any]],
    patch: "Patch | None" = None,
    blocks: Sequence[str] | None = None,
) -> None:
    """Raise HiresxError if a connection rotates the velocity of a given flow, that is, if the velocities at two places
    that the connection joins are closer to each other than to those with the rotation. A flow that is not periodic is
    accepted. `whole`: the blocks, not divided among ranks. `what`: the name of the flow in the message. `flow`: a
    function of the coordinates x, y, z that returns rho, u, v, w, p. `patch`: compare nodes of this boundary patch
    only. `blocks`: names of the blocks with the flow; absent: all."""
    for c in _turning(whole):
        block = whole.blocks[c.block]
        box: Range | None = c.range
        if patch is not None:
            box = intersection(patch.range, c.range) if patch.block == c.block else None
        if box is None or block.name not in (blocks or [block.name]):
            continue
        nodes = block.node(*np.stack(np.meshgrid(*(np.arange(*r) for r in box), indexing="ij")).reshape(3, -1))
        here, beyond = (_velocity(flow(*at), at.shape) for at in (nodes, c.motion.inverse(nodes)))
        off = np.abs(here - np.array(c.rotation) @ beyond).max()
        if off > NORMAL * np.abs(here).max() and np.abs(here - beyond).max() < 0.5 * off:
            raise _turned(whole, c, f"the velocity of {what}")


def _velocity(state: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return the velocity (3, n) of rho, u, v, w, p; of waves in time the mean."""
    means = [np.broadcast_to(v.mean if isinstance(v, Waves) else v, shape[1:]) for v in state[1:4]]
    return np.stack(means)


def _turning(whole: "Decomposition") -> "Iterator[Connection]":
    """Yield the connections of rotational periods."""
    return (c for c in whole.connections if c.rotation is not None and not c.over_a_pole)


def _turned(whole: "Decomposition", c: "Connection", what: str) -> HiresxError:
    return HiresxError(
        f"{what} has another direction behind face {c.face} of block '{whole.blocks[c.block].name}', which is "
        f"connected by {Motion(c.rotation)}",
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
