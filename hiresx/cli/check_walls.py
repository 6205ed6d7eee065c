"""Remarks of `hiresx check` on slip walls, symmetry planes and axes that grid lines do not meet at right angles."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case import Case
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.mirror_points import Coordinates, find_mirror_sources
from hiresx.decomposition.oblique_walls import is_pushed, walls
from hiresx.grid.blocks import AXES, directions_along, intersection
from hiresx.grid.motions import format_vector
from hiresx.grid.orientation import layout_of

if TYPE_CHECKING:
    from hiresx.decomposition import Decomposition, Patch
    from hiresx.grid import Connection
    from hiresx.grid.blocks import Range

# A wall is reported from this angle to the normal on, in degrees, or if mirrored places were moved by this number of
# cells.
REPORTED, FAR = 1.0, 0.5
# Angle in degrees up to which viscous flow stays stable with temperatures that jump by a factor of 100
# (docs/numerics.md).
STEEP = 52.0
WALLS = ("slip-wall", "no-slip-wall", "modelled-wall")
# Distance of nodes that count as one, as a fraction of the cell beside them.
SAME = 1e-3


def report(decomposition: "Decomposition", extended: Sequence[Coordinates | GhostLayers]) -> list[dict[str, Any]]:
    """Return one dictionary for each slip wall, plane of symmetry and axis. `extended`: the blocks with ghost layers.

    - `block`, `face`, `range`, `type`: the position of the wall, with half-open index ranges i, j, k, and the type of
      its boundary condition.
    - `angle`: the largest angle between a grid line and the normal of the wall, in degrees.
    - `curved`, `edge`: whether the wall is curved, and whether it has an edge, where its normal jumps.
    - `mirrors_places`: whether ghost nodes take the flow at mirrored points, interpolated, not at mirrored nodes.
    - `moved`: by how many cells mirrored points outside the grid were moved at most.
    """
    moved: dict[int, float] = {}
    for entry in find_mirror_sources(decomposition, extended):
        moved[entry.place] = max(entry.moved, moved.get(entry.place, 0.0))
    found = []
    for wall in walls(decomposition):
        patch = decomposition.patches[wall.place]
        found.append(
            {
                "block": decomposition.blocks[patch.block].name,
                "face": patch.face,
                "range": patch.range,
                "type": patch.condition.type,
                "angle": wall.angle,
                "curved": wall.curved,
                "edge": wall.edged,
                "mirrors_places": wall.mirrors_places,
                "moved": moved.get(wall.place, 0.0),
            }
        )
    return found


def rows(found: Sequence[dict[str, Any]], viscous: bool = False) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table on walls that `hiresx check` prints: face, type, angle, and how ghost nodes are
    computed there. `found`: the result of `report`. Walls that need no remark are left out. `viscous`: whether the flow
    is viscous."""
    reported = []
    for wall in found:
        if wall["angle"] < REPORTED and not wall["edge"] and wall["moved"] < FAR:
            continue
        if not wall["mirrors_places"]:
            what = "ghosts mirror nodes"
        else:
            what = "ghosts mirror places: " + ("third order" if wall["curved"] else "no order is lost")
            if wall["moved"] >= FAR:
                what += (
                    f", but where lines lean out of the grid: places moved by {wall['moved']:.1f} cells, first order"
                )
        if wall["edge"]:
            beside = "beside its edge they mirror nodes" if wall["mirrors_places"] else "there is an edge"
            what += f"; {beside}, first order"
        if viscous and wall["mirrors_places"] and wall["angle"] > STEEP:
            what += ", but temperatures that jump by a factor of 100 may end the run"
        reported.append((f"{wall['block']} {wall['face']}", wall["type"], f"{wall['angle']:.1f}", what))
    return reported


def check_wall_models(decomposition: "Decomposition") -> None:
    """Raise HiresxError for a wall with a wall model that has no exchange node, the node inside the flow at which the
    model takes the velocity (`hiresx.rhs.modelled_wall`)."""
    from hiresx.rhs.modelled_wall import exchange_nodes

    for patch in decomposition.patches:
        if patch.condition.type == "modelled-wall":
            exchange_nodes(decomposition.blocks[patch.block], patch)


def check_wall_models_on_ranks(
    decomposition: "Decomposition", ranks: int | None, weights: Sequence[float] | None = None
) -> None:
    """Raise HiresxError if a division of the grid among `ranks` ranks separates nodes of a wall with a wall model from
    their exchange nodes. `weights`: relative speeds of the ranks. Nothing is checked if `ranks` is None."""
    from hiresx.decomposition import split
    from hiresx.decomposition.partition import partition

    if ranks is not None and any(patch.condition.type == "modelled-wall" for patch in decomposition.patches):
        check_wall_models(split(decomposition, partition(decomposition, ranks, weights)))


def notes_of_sources(case: Case, decomposition: "Decomposition") -> Iterator[str]:
    """Yield a warning, as a sentence, for each slip wall at which a formula of `[source]` may have a component normal
    to the wall. The ghost values there do not include the pressure gradient that balances a source. (They include the
    pressure gradient that balances a body force.)"""
    formulas = case.source.texts() if case.source else {}
    pushes = {key: np.eye(3)[n] for n, key in enumerate(("rho_u", "rho_v", "rho_w")) if key in formulas}
    for patch in decomposition.patches:
        across = [key for key, push in pushes.items() if is_pushed(decomposition, patch, [push])]
        if across and patch.condition.kernel == "reflect":
            name = decomposition.blocks[patch.block].name
            yield (
                f"source.{' and '.join(across)} may act across face {patch.face} of block '{name}' "
                f"({patch.condition.type}): where it is not zero there the pressure has no slope that balances it, and "
                "the flow is of first order beside it; an acceleration that is the same everywhere is [body_force]"
            )


def notes_of_ends(decomposition: "Decomposition") -> Iterator[str]:
    """Yield a note for each wall that ends beside a connection of the same face where the first node of both, such as
    the trailing edge of an airfoil in a C-grid, belongs to the connection: one cell of the body is then no wall."""
    walls_of_faces = defaultdict[tuple[int, str], list["Patch"]](list)
    for patch in decomposition.patches:
        if patch.condition.type in WALLS:
            walls_of_faces[patch.block, patch.face].append(patch)
    for c in decomposition.connections:
        for patch in walls_of_faces.get((c.block, c.face), ()):
            for e in directions_along(c.face):
                (first, last), (start, end) = c.range[e], patch.range[e]
                if end == first:
                    rim, beside = first, end - 1
                elif start == last:
                    rim, beside = last - 1, start
                else:
                    continue
                line = triple((rim, rim + 1) if a == e else r for a, r in enumerate(c.range))
                walls = triple((rim, rim + 1) if a == e else r for a, r in enumerate(patch.range))
                common = intersection(line, walls)
                if common is None or not _parts_there(decomposition, c, common, e, beside):
                    continue
                block, axis = decomposition.blocks[c.block], AXES[e]
                place = format_vector(block.node(*(lo for lo, _ in common)))
                yield (
                    f"the {patch.condition.type} on face {c.face} of block '{block.name}' ends at {axis} = {beside}, "
                    f"beside a connection that has the node {axis} = {rim} at (x, y, z) = {place}: the cell between is "
                    "no wall, and forces lack it; a connectivity file in which the [[region]] of the wall includes "
                    f"{axis} = {rim} makes it one"
                )


def _parts_there(decomposition: "Decomposition", c: "Connection", line: "Range", e: int, beside: int) -> bool:
    """True if the nodes beside a `line` of nodes of the connection `c`, which have the index `beside` along direction
    e, do not coincide with those beside this line on the other side of the connection."""
    block, donor = decomposition.blocks[c.block], decomposition.blocks[c.donor]
    if layout_of(c, decomposition.blocks) != "shared":
        return False
    node = np.array([[lo] for lo, _ in line])
    next_ = node.copy()
    next_[e] = beside
    there = c.donors(next_)[:, 0]
    if any(not 0 <= m < n for m, n in zip(there, donor.size, strict=True)):
        return True
    own, at_rim = (np.array(block.node(*map(int, n[:, 0]))) for n in (next_, node))
    other = c.motion(np.array(donor.node(*map(int, there))))
    return bool(np.linalg.norm(own - other) > SAME * np.linalg.norm(own - at_rim))
