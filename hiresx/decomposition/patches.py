"""Boundary condition of every face node: every node has exactly one."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case import Case
from hiresx.case.boundaries import Condition, PatchedFace, Place
from hiresx.decomposition.axis import check_axis
from hiresx.decomposition.connection_ends import ConnectionEnds
from hiresx.decomposition.oblique_walls import Wall, find_walls
from hiresx.decomposition.parts import Part
from hiresx.decomposition.poles import pole_connections
from hiresx.decomposition.prescribed_vectors import check_pushed_planes, check_turned_vectors
from hiresx.decomposition.wall_seams import (
    WALLS,
    PlacedCondition,
    connected_over_steps,
    walls_over_connections,
    walls_over_seams,
)
from hiresx.equations.stencil import Stencil
from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection, Grid
from hiresx.grid.blocks import (
    AXES,
    FACES,
    Range,
    direction,
    directions_along,
    face_range,
    intersection,
    layer,
    read_whole,
    rectangles_of_face,
    slices,
    whole_box,
)
from hiresx.grid.connections import periodic_connections
from hiresx.grid.motions import format_vector
from hiresx.grid.patched import PATCHED

if TYPE_CHECKING:
    from hiresx.decomposition.levels import Levels

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patch:
    """Nodes of a block face with one physical boundary condition. `block`: number of the block. `face`: "imin" to
    "kmax".

    `range`: half-open node ranges (i, j, k), one node thick in the direction normal to the face. `condition`: the entry
    of [[boundary]] (`hiresx.case.boundaries`). `place`: for a patch of a block that was divided among ranks, the number
    of the original patch."""

    block: int
    face: str
    range: Range
    condition: Condition
    place: int


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Blocks with their connections (periodic ones included) and boundary patches, before or after their division among
    ranks.

    `parts`: for each block the box of the grid that it is (number of the grid's block, half-open index ranges i, j, k
    in it) and the rank that computes it. Before the division, each is a whole block of rank 0. `stencil`: the widths of
    the stencils of the run, which determine the number of ghost layers and the smallest boxes. `axisymmetric`: whether
    y is the radius. `pushes`: unit vectors along which a body force acts. `levels`: which of the blocks are boxes of
    finer grid (tiles), None without refinement. `step_edges`: nodes of slip walls on edges of steps
    (`hiresx.decomposition.wall_seams.connected_over_steps`), which belong to the walls in integrals only. Such nodes of
    no-slip walls have patches, and connections as well."""

    blocks: tuple[Block, ...]
    connections: tuple[Connection, ...]
    patches: tuple[Patch, ...]
    parts: tuple[Part, ...]
    stencil: Stencil = field(default_factory=Stencil)
    axisymmetric: bool = False
    pushes: tuple[tuple[float, float, float], ...] = ()
    levels: "Levels | None" = None
    step_edges: tuple[Patch, ...] = ()

    @property
    def points(self) -> int:
        """Total number of nodes of all blocks."""
        return sum(block.points for block in self.blocks)

    @cached_property
    def walls(self) -> tuple[Wall, ...]:
        """The walls behind which ghosts mirror the flow, if the blocks are not divided among ranks
        (`hiresx.decomposition.oblique_walls.find_walls`)."""
        return find_walls(self)

    @property
    def grid_blocks(self) -> tuple[Block, ...]:
        """Blocks of the original grid, without the boxes of finer grid (tiles) that refine it."""
        return self.blocks if self.levels is None else self.blocks[: self.levels.of_grid]

    @property
    def names_of_grid(self) -> list[str]:
        """For each block, the name of a block of the original grid: its own name, or, for a box of finer grid (tile),
        the name of the block that the tile refines."""
        tiles = None if self.levels is None else self.levels.tiles
        return [self.blocks[n if tiles is None else tiles[n].base].name for n in range(len(self.blocks))]


def with_conditions(decomposition: Decomposition, conditions: Sequence[Condition]) -> Decomposition:
    """Return the same decomposition in which the patches refer to the objects in `conditions` instead of equal copies.
    Patches from another process contain copies, but conditions are compared by identity."""

    def own(patches: Sequence[Patch]) -> tuple[Patch, ...]:
        held = [next((c for c in conditions if c == patch.condition), patch.condition) for patch in patches]
        return tuple(replace(patch, condition=c) for patch, c in zip(patches, held, strict=True))

    return replace(decomposition, patches=own(decomposition.patches), step_edges=own(decomposition.step_edges))


def decompose(case: Case, grid: Grid) -> Decomposition:
    """Assign every face node of the grid to a connection between blocks or to a physical boundary condition of the
    case.

    The conditions of `case.boundary` are applied in this order: first conditions with a block or a range, on its nodes
    alone; then conditions that name only faces, on the remaining nodes of these faces in every block; then `faces =
    "all"` without a range, on the remaining nodes of its block; last `faces = "all"` without a block. A node must not
    have two conditions of one of these four kinds, and a condition of the first kind must not apply to a connection.
    Faces of singleton directions need no condition. Nodes that a wall shares with another condition of another block
    have the condition of the wall in both (`hiresx.decomposition.wall_seams`). Nodes at which a connection ends beside
    a wall belong to the wall, whether or not its range includes them (`hiresx.decomposition.connection_ends`). So do
    connected nodes that another block has on its wall (`hiresx.decomposition.wall_seams`).

    Raises HiresxError, which names block, face and node, for a node to which two conditions or none apply. It also
    raises HiresxError for unknown block or region names, for ranges outside the face, for conditions (except of the
    last kind) that apply to no node, and for blocks that are too thin for the stencil of the scheme."""
    reaches = case.stencil
    _check_width(grid, reaches, case)
    cover = _Cover(grid)
    connections = list(grid.connections)
    patches: list[Patch] = []
    for n, connection in enumerate(connections):
        _check_connection(grid, connection, reaches.halo)
        cover.take(connection.block, connection.face, connection.range, f"connection {n}")
    ends = ConnectionEnds(grid.blocks, connections)

    conditions = [(f"boundary.{n} ({c.type})", c) for n, c in enumerate(case.boundary)]
    placed = []
    for rank in range(4):
        # The free nodes are determined before conditions of one kind are applied, so that overlapping conditions of one
        # kind are rejected.
        left = {(b, face): cover.free_nodes(b, face) for b, block in enumerate(grid.blocks) for face in block.faces}
        for who, condition in conditions:
            if _rank(condition) != rank:
                continue
            named = list(places(grid.blocks, who, condition))
            if rank in (1, 2) and named and not any(left[b, face] for b, face, _ in named):
                raise HiresxError(f"{who}: the other conditions and connections leave it no node", "remove it")
            for b, face, range_ in named:
                free = [range_] if rank == 0 else left[b, face]
                if rank == 0 and isinstance(condition, WALLS):
                    free = ends.outside(b, face, range_) or free
                for part in free:
                    cover.take(b, face, part, who)
                    placed.append((b, face, part, condition))
        if rank == 0:
            placed += _patched_connections(grid, cover, placed)
    cover.check_complete()
    _check_touching(grid, placed, conditions)
    connections, placed = ends.given_to_walls(placed)
    connections, placed, edges = connected_over_steps(grid.blocks, connections, placed)
    connections, placed = walls_over_connections(grid.blocks, connections, placed)
    placed += [edge for edge in edges if edge[3].kernel == "no_slip"]
    closed = _periodic(grid, [(b, face, range_) for b, face, range_, c in placed if c.type == "periodic"])
    connections += closed
    for b, face, range_, condition in walls_over_seams(grid.blocks, connections, placed):
        if condition.type != "periodic":
            patches.append(Patch(b, face, range_, condition, len(patches)))
    axisymmetric = bool(getattr(case, "axisymmetric", False))
    if axisymmetric:
        check_axis(grid.blocks, patches, connections)
    connections += pole_connections(grid.blocks, connections, patches, reaches.halo)
    blocks = grid.blocks
    if any(block.is_stored for block in blocks) and any(patch.condition.type == PATCHED for patch in patches):
        # the nodes behind a patched face may have any position
        log.info("the grid is read whole by the first rank of every host for its patched interfaces")
        blocks = read_whole(blocks)
    parts = tuple(Part(b, whole_box(block.size)) for b, block in enumerate(blocks))
    force = getattr(case, "body_force", None)
    pushes = () if force is None else force.directions
    sliding = [edge for edge in edges if edge[3].kernel != "no_slip"]
    step_edges = tuple(Patch(*edge, len(patches) + n) for n, edge in enumerate(sliding))
    found = Decomposition(
        blocks, tuple(connections), tuple(patches), parts, reaches, axisymmetric, pushes, step_edges=step_edges
    )
    check_turned_vectors(found, getattr(case, "sponge", ()))
    check_pushed_planes(found)
    return found


def _patched_connections(grid: Grid, cover: "_Cover", placed: Sequence[PlacedCondition]) -> Iterable[PlacedCondition]:
    """Yield the patched connections of the grid, on nodes that nothing else covers, unless the case names them
    itself."""
    if any(condition.range == PATCHED for *_, condition in placed):
        return
    condition = PatchedFace(faces="all", range=PATCHED)
    for b, block in enumerate(grid.blocks):
        for face, range_ in block.regions.get(PATCHED, ()):
            for free in cover.free_nodes(b, face):
                part = intersection(free, range_)
                if part is not None:
                    cover.take(b, face, part, f"a {PATCHED} connection")
                    yield b, face, part, condition


def _check_touching(grid: Grid, placed: Sequence[PlacedCondition], conditions: Sequence[tuple[str, Condition]]) -> None:
    """Raises HiresxError for a condition that includes a face on another block without naming that face."""
    who = {id(condition): name for name, condition in conditions}
    for contact in grid.touching:
        normal = direction(contact.face)
        active = grid.blocks[contact.block].active
        for b, face, range_, condition in placed:
            if (b, face) != (contact.block, contact.face) or _rank(condition) == 0:
                continue
            if condition.type == "periodic" and contact.closes:
                continue
            common = intersection(range_, contact.range)
            if common is None or any(
                common[e][1] - common[e][0] < min(2, range_[e][1] - range_[e][0]) for e in active if e != normal
            ):
                continue
            name = grid.blocks[b].name
            raise HiresxError(
                f"{who[id(condition)]} takes a face that meets another block: {contact.describe(grid.blocks)}",
                f'if that is a boundary, add a [[boundary]] with block = "{name}" and faces = ["{face}"]; if the '
                f"flow is to pass there, {contact.hint(grid.blocks)}",
            )


class _Cover:
    """For each face an array (n2, n1) of what covers the nodes: 0 for nothing, else 1 + the position in
    `self.names`."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.names: list[str] = []
        self.holder = {
            (b, face): np.zeros([n for d, n in reversed(list(enumerate(block.size))) if d != direction(face)], int)
            for b, block in enumerate(grid.blocks)
            for face in block.faces
        }

    def take(self, b: int, face: str, range_: Range, who: str) -> None:
        holder = self.holder[b, face][_in_plane(face, range_)]
        if holder.any():
            at = np.argwhere(holder)[0]
            raise HiresxError(
                f"block '{self.grid.blocks[b].name}', face {face}: {who} and {self.names[holder[tuple(at)] - 1]} both "
                f"hold node {self._node(b, face, at, range_)}",
                "give each a `range` (or `block`) of its own; a condition that names neither block nor range fills "
                "what the others leave",
            )
        self.names.append(who)
        holder[...] = len(self.names)

    def free_nodes(self, b: int, face: str) -> list[Range]:
        """Return the nodes of a face that no connection or condition has, as disjoint rectangles."""
        return rectangles_of_face(face, face_range(face, self.grid.blocks[b].size), self.holder[b, face] == 0)

    def check_complete(self) -> None:
        for (b, face), holder in self.holder.items():
            if not holder.all():
                block = self.grid.blocks[b]
                at = np.argwhere(holder == 0)[0]
                where = "" if holder.any() else " (the whole face)"
                axis = AXES[direction(face)]
                hint = f'add a [[boundary]] with faces = ["{face}"]'
                if axis in self.grid.period[b]:
                    hint += f'; where the flow repeats itself, faces = ["{axis}min", "{axis}max"] and type = "periodic"'
                raise HiresxError(
                    f"block '{block.name}', face {face}: no boundary condition at node "
                    f"{self._node(b, face, at, face_range(face, block.size))}{where}",
                    hint,
                )

    def _node(self, b: int, face: str, at: np.ndarray, range_: Range) -> str:
        """Describe the node at position `at` within the plane of `range_`: index triple and coordinates."""
        node = [range_[d][0] for d in range(3)]
        for d, m in zip(directions_along(face), at, strict=True):
            node[d] += int(m)
        xyz = format_vector(self.grid.blocks[b].node(*node))
        return f"(i, j, k) = ({node[0]}, {node[1]}, {node[2]}), (x, y, z) = {xyz}"


def _in_plane(face: str, range_: Range) -> tuple[slice, ...]:
    d = direction(face)
    return tuple(s for e, s in zip((2, 1, 0), slices(range_), strict=True) if e != d)


def _rank(condition: Condition) -> int:
    """Return 0 for a condition that applies exactly where it says, and 1 to 3 for those that fill the remaining
    nodes."""
    if condition.faces != "all":
        return 0 if condition.block is not None or condition.range else 1
    return 0 if condition.range else 2 if condition.block is not None else 3


def _faces(condition: Place, block: Block) -> list[str]:
    """Return the faces named by a condition that the block's dimensions have."""
    return [face for face in (FACES if condition.faces == "all" else condition.faces) if face in block.faces]


def places(blocks: Sequence[Block], who: str, place: Place) -> Iterable[tuple[int, str, Range]]:
    """Yield (block number, face, half-open index ranges) for all face nodes of `blocks` that an entry of the case file
    names by block, faces, range or region. `place`: the entry (`hiresx.case.boundaries.Place`). `who`: the beginning of
    the error message. Raises HiresxError for an unknown block or region and for a range outside the face."""
    names = [block.name for block in blocks]
    if place.block is not None and place.block not in names:
        raise HiresxError(
            f"{who}: the grid has no block '{place.block}'{_nearest(place.block, names)}",
            f"its blocks are {', '.join(names)}",
        )
    region = place.range if isinstance(place.range, str) else None
    regions = sorted({name for block in blocks for name in block.regions})
    if region is not None and region not in regions:
        raise HiresxError(
            f"{who}: the grid has no region '{region}'{_nearest(region, regions)}",
            f"its regions are {', '.join(regions)}" if regions else "give the range as node indexes: {i = [0, 10]}",
        )
    placed = 0
    for b, block in enumerate(blocks):
        if place.block not in (None, block.name):
            continue
        named = _faces(place, block)
        if region is None:
            for face in named:
                yield b, face, _node_range(who, place, block, face)
            continue
        for face, range_ in block.regions.get(region, ()):
            if face in named:
                placed += 1
                yield b, face, range_
    if region is not None and not placed:
        homes = [f"{block.name} {face}" for block in blocks for face, _ in block.regions.get(region, ())]
        raise HiresxError(
            f"{who}: region '{region}' is not on the block and faces named",
            f'it is on {", ".join(homes)}; `faces = "all"` takes all of it',
        )


def poles(case: Case, grid: Grid) -> list[tuple[int, Range]]:
    """Return the face nodes of `grid` to which `case` gives the boundary condition `pole` (faces that have collapsed to
    a line), as (number of the block, half-open index ranges)."""
    conditions = [c for c in case.boundary if c.type == "pole"]
    return [(b, range_) for c in conditions for b, _, range_ in places(grid.blocks, "pole", c)]


def _node_range(who: str, condition: Place, block: Block, face: str) -> Range:
    """Return the range of a condition in node indexes; negative ones are counted from the end."""
    d = direction(face)
    result = []
    for e, (axis, n) in enumerate(zip(AXES, block.size, strict=True)):
        if e == d:
            result.append(layer(face, block.size))
            continue
        lo, hi = condition.range.get(axis, (0, n)) if isinstance(condition.range, dict) else (0, n)
        first, last = (lo + n if lo < 0 else lo), (n if hi == "end" else hi + n if hi < 0 else hi)
        if not 0 <= first < last <= n:
            raise HiresxError(
                f"{who}: range {axis} = [{lo}, {hi}] is empty or leaves the {n} nodes of block '{block.name}', "
                f"face {face}",
                f"first and last + 1 must lie within 0 and {n}",
            )
        result.append((first, last))
    return triple(result)


def _nearest(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _periodic(grid: Grid, placed: list[tuple[int, str, Range]]) -> list[Connection]:
    """Return the connections of the faces with a periodic condition. Each condition must be placed in the same way on
    both of its faces."""
    connections = []
    across = {(b, face, _without_normal(face, range_)) for b, face, range_ in placed}
    for b, face, range_ in placed:
        d = direction(face)
        other = FACES[2 * d + 1 - FACES.index(face) % 2]
        if (b, other, _without_normal(face, range_)) not in across:
            raise HiresxError(
                f"block '{grid.blocks[b].name}', face {face}: periodic, but face {other} is not periodic on the same "
                "nodes",
                f'name both: faces = ["{AXES[d]}min", "{AXES[d]}max"], type = "periodic"',
            )
        if FACES.index(face) % 2 == 0:
            connections += periodic_connections(grid, b, AXES[d], range_)
    return connections


def _without_normal(face: str, range_: Range) -> tuple[tuple[int, int], ...]:
    return tuple(r for e, r in enumerate(range_) if e != direction(face))


def _check_width(grid: Grid, reaches: Stencil, case: Case) -> None:
    filtered = case.filter is not None and reaches.filter_reach == reaches.halo
    also, other = "", "an interpolation that reaches less far"
    if filtered:
        also, other = f" and filter.order = {2 * reaches.filter_reach}", "a filter of a lower order"
    elif max(reaches.interpolation_reach, reaches.correction_reach) < reaches.difference_reach:
        also, other = f" and scheme.viscous_order = {case.scheme.viscous_order}", "scheme.viscous_order = 6"
    for block in grid.blocks:
        for axis, n in zip(AXES, block.size, strict=True):
            if 1 < n < reaches.least_nodes:
                raise HiresxError(
                    f"block '{block.name}' has {n} nodes along {axis}; for scheme.interpolation = "
                    f'"{case.scheme.interpolation}"{also}, with {reaches.halo} ghost layers, '
                    f"{reaches.least_nodes} or more are needed",
                    f"use at least {reaches.least_nodes} nodes there, or {other}",
                )


def _check_connection(grid: Grid, connection: Connection, halo: int) -> None:
    """Raises HiresxError unless the range lies on the face and the donor nodes of `halo` layers exist."""
    block, donor = grid.blocks[connection.block], grid.blocks[connection.donor]
    d = direction(connection.face)
    where = f"connection of block '{block.name}', face {connection.face}, to block '{donor.name}'"
    if connection.face not in block.faces or tuple(connection.range[d]) != layer(connection.face, block.size):
        raise HiresxError(f"{where}: the range {connection.range} is not on the face", "correct the connection")
    for e, n in enumerate(block.size):
        lo, hi = connection.range[e]
        if not 0 <= lo < hi <= n:
            raise HiresxError(f"{where}: the range {connection.range} leaves the block", "correct the connection")
    index = connection.donors(connection.ghosts(halo, block.size)).reshape(3, -1)
    outside = (index < 0) | (index >= np.array(donor.size)[:, None])
    if outside.any():
        i, j, k = (int(m) for m in index[:, np.argmax(outside.any(axis=0))])
        raise HiresxError(f"{where}: there is no donor node (i, j, k) = ({i}, {j}, {k})", "correct the connection")
