"""Remarks of `hiresx check` on slip walls, symmetry planes and axes that grid lines do not meet at right angles."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.mirror_points import Coordinates, find_mirror_sources
from hiresx.decomposition.oblique_walls import inward_rows, walls

if TYPE_CHECKING:
    from hiresx.decomposition import Decomposition

# Degrees off the normal, and cells by which mirrored places were moved, from which on a wall is reported.
REPORTED, FAR = 1.0, 0.5
# Degrees up to which viscous flow bears temperatures that jump by a factor of 100 (docs/numerics.md).
STEEP = 52.0


def report(decomposition: "Decomposition", extended: Sequence[Coordinates | GhostLayers]) -> list[dict[str, Any]]:
    """Per wall, plane of symmetry and axis: the largest angle in degrees between a grid line and the normal, whether
    ghosts take the flow at the mirror images of their own places, whether there is an edge on it, and the cells by
    which such places were moved at most, as they lie outside the grid."""
    moved = {entry.place: entry.moved for entry in find_mirror_sources(decomposition, extended)}
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
    """Return the rows worth printing, for `viscous` or inviscid flow: face, type, angle, behaviour there."""
    reported = []
    for wall in found:
        if wall["angle"] < REPORTED and not wall["edge"] and wall["moved"] < FAR:
            continue
        if wall["edge"]:
            what = "an edge: ghosts mirror nodes, first order"
        elif not wall["mirrors_places"]:
            what = "ghosts mirror nodes"
        else:
            what = "ghosts mirror places: " + ("third order" if wall["curved"] else "no order is lost")
            if wall["moved"] >= FAR:
                what += (
                    f", but where lines lean out of the grid: places moved by {wall['moved']:.1f} cells, first order"
                )
        if viscous and wall["mirrors_places"] and wall["angle"] > STEEP:
            what += ", but temperatures that jump by a factor of 100 may end the run"
        reported.append((f"{wall['block']} {wall['face']}", wall["type"], f"{wall['angle']:.1f}", what))
    return reported


def check_wall_models(decomposition: "Decomposition") -> None:
    """Raises HiresxError for a wall with a model that has no exchange node (`hiresx.rhs.modelled_wall`)."""
    from hiresx.rhs.modelled_wall import exchange_nodes

    for patch in decomposition.patches:
        if patch.condition.type == "modelled-wall":
            exchange_nodes(decomposition.blocks[patch.block], patch)


def notes_of_body_force(case: Case, decomposition: "Decomposition") -> Iterator[str]:
    """A note for each slip wall and plane of symmetry that the body force pushes the gas against: their ghosts know no
    slope of the pressure that balances it."""
    if case.body_force is None:
        return
    pushes = [np.array(case.body_force.acceleration)]
    if case.body_force.keep:
        pushes.append(np.eye(3)["xyz".index(case.body_force.axis)])
    for patch in decomposition.patches:
        if patch.condition.kernel != "reflect":
            continue
        block = decomposition.blocks[patch.block]
        nodes = inward_rows(block, patch.face, patch.range, 1)[0]
        along = [np.gradient(nodes, axis=axis) for axis in (1, 2, 3) if nodes.shape[axis] > 1]
        if len(block.active) == 2 and len(along) == 1:
            along.append(np.broadcast_to(np.array([0.0, 0.0, 1.0])[:, None, None, None], nodes.shape))
        if len(along) != 2:  # of one row of nodes: the other patches of its condition show its normal
            continue
        normal = np.cross(along[0], along[1], axis=0)
        normal = normal / np.maximum(np.linalg.norm(normal, axis=0), np.finfo(float).tiny)
        against = max(float(np.abs(np.tensordot(push, normal, 1)).max()) for push in pushes)
        if against > 1e-6 * max(float(np.linalg.norm(push)) for push in pushes):
            yield (
                f"body_force acts across face {patch.face} of block '{block.name}' ({patch.condition.type}): the "
                "pressure there has no slope that balances it, and the flow is of first order beside it (page Numerics)"
            )
