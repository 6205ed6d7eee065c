"""Remarks of `hiresx check` on slip walls, symmetry planes and axes that grid lines do not meet at right angles."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition.connection_ends import ConnectionEnds
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.mirror_points import Coordinates, find_mirror_sources
from hiresx.decomposition.oblique_walls import is_pushed
from hiresx.grid.motions import format_vector

if TYPE_CHECKING:
    from hiresx.decomposition import Decomposition

# A wall is reported from this angle to the normal on, in degrees, or if mirrored places were moved by this number of
# cells.
REPORTED, FAR = 1.0, 0.5
# Angle in degrees up to which viscous flow stays stable with temperatures that jump by a factor of 100
# (docs/numerics.md).
STEEP = 52.0


def report(decomposition: "Decomposition", extended: Sequence[Coordinates | GhostLayers]) -> list[dict[str, Any]]:
    """Return one dictionary for each slip wall, plane of symmetry and axis. `extended`: the blocks with ghost layers.

    - `block`, `face`, `range`, `type`: the position of the wall, with half-open index ranges i, j, k, and the type of
      its boundary condition.
    - `angle`: the largest angle between a grid line and the normal of the wall, in degrees.
    - `curved`, `edge`: whether the wall is curved, and whether it has an edge, where its normal jumps.
    - `mirrors_places`: whether ghost nodes take the flow that is interpolated at mirrored points; if not, they take the
      flow of mirrored nodes.
    - `moved`: the largest distance, in cells, by which mirrored points outside the grid were moved into it.
    """
    moved: dict[int, float] = {}
    for entry in find_mirror_sources(decomposition, extended):
        moved[entry.place] = max(entry.moved, moved.get(entry.place, 0.0))
    found = []
    for wall in decomposition.walls:
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
    """Yield a note for each wall that ends where a connection of the same face begins, if the node between both, such
    as the trailing edge of an airfoil in a C-grid, belongs to the connection. The last cell of the body is then not
    part of the wall."""
    placed = [(p.block, p.face, p.range, p.condition) for p in decomposition.patches]
    for (b, face, _, condition), node in ConnectionEnds(decomposition.blocks, decomposition.connections).left(placed):
        block, (i, j, k) = decomposition.blocks[b], map(int, node)
        yield (
            f"the {condition.type} on face {face} of block '{block.name}' ends beside a connection that has the node "
            f"(i, j, k) = ({i}, {j}, {k}) at (x, y, z) = {format_vector(block.node(i, j, k))}, since another condition "
            "begins there on the other side of the connection: the cell between is no wall, and forces lack it; a "
            "connectivity file in which the [[region]] of the wall includes this node makes it one"
        )
