"""Quadrature weights of the nodes of walls that extend over several blocks. They are the weights of the whole wall,
however it is divided into blocks.

Along each direction of a wall its nodes form lines, over connections too. A line that ends, or has an edge
(`hiresx.decomposition.wall_edges`), has the weights of a closed formula there (`hiresx.decomposition.quadrature`); a
line that closes on itself has the weight 1 throughout. A line goes on beyond a plane of symmetry as its mirror image,
so that half of a body has half of the sum over the whole body. A node that two blocks share, or that lies in a plane of
symmetry, counts half, and a node at an edge counts on each side of the edge. Near ends and planes of symmetry the
metrics come from differences through the corner, or from coordinates continued beyond the end; there areas are made of
differences along the wall alone, which are one-sided at ends."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from hiresx.base.arrays import runs
from hiresx.decomposition import Decomposition
from hiresx.decomposition.oblique_walls import mirrors, symmetry_of
from hiresx.decomposition.quadrature import REACH, corrections
from hiresx.decomposition.wall_edges import Image, edges, nodes_beyond
from hiresx.equations.stencil import CENTRAL_DIFFERENCE, DIFFERENCE_NODES, DIFFERENCE_REACH
from hiresx.grid.blocks import FACES, Range, direction, directions_along, face_range, layer, side
from hiresx.grid.connections import Connection
from hiresx.grid.orientation import layout_of
from hiresx.grid.patched import PATCHED

# A face of a block, by the number of the block and the name of the face.
Place = tuple[int, str]
# Number of nodes beyond a block on which the weights and differences of its own nodes depend.
_AROUND = max(REACH, DIFFERENCE_NODES)


class FaceWeights(NamedTuple):
    """Quadrature of one face of a block. `weights`: the weights of its nodes, [k, j, i] without the direction of the
    face. `areas` (3, ...): the area vector of each node, pointing out of the block; nan for nodes whose area vector
    follows from the metrics of the grid. `along` (3, ...): the area vectors of all nodes, computed only from
    differences along the wall; nan at the end of a level."""

    weights: np.ndarray
    areas: np.ndarray
    along: np.ndarray


class _Run(NamedTuple):
    """Nodes `first` to `last` - 1 of line number `line` along direction `along` of a face. `open`: whether the lower
    and the upper end may go on in a connected block; an edge ends a run."""

    place: Place
    along: int
    line: int
    first: int
    last: int
    open: tuple[bool, bool]


class _End(NamedTuple):
    """The lower or `upper` end of a run, by its number; `shared`: its node is that of the end it is joined to."""

    run: int
    upper: bool
    shared: bool


def wall_shares(decomposition: Decomposition, walls: Mapping[Place, np.ndarray]) -> dict[Place, list[FaceWeights]]:
    """Return the quadrature weights of wall nodes in integrals over all given walls together. `walls`: for each (block,
    face) the mask of its wall nodes, an array `[k, j, i]` without the axis normal to the face. The result has a list
    for each (block, face). The integral of a field is the sum of weight times area times field, over the nodes and over
    the list of each face. The first entry of a list has all nodes. At an edge, a line along which the direction of the
    wall jumps, a node has an area on each side: the first entry has one of them. A further entry has the same shape,
    the areas on another side, and weights that are 0 except at nodes on edges."""
    return {place: [*found.values()] for place, found in Walls(decomposition, walls).shares(walls).items()}


class Walls:
    """The lines of nodes along which integrals over walls are computed. `decomposition`: the blocks. `walls`: for each
    face of a block the mask of its wall nodes, an array `[k, j, i]` without the direction of the face. The integral may
    be over a whole wall or a region of it. A wall does not end where a level of refinement ends."""

    def __init__(self, decomposition: Decomposition, walls: Mapping[Place, np.ndarray]):
        self._decomposition = decomposition
        self._over: dict[Place, list[Connection]] = {}
        for c in decomposition.connections:
            if not c.over_a_pole:
                self._over.setdefault((c.block, c.face), []).append(c)
        self._level_ends: dict[Place, list[Range]] = {}
        for patch in decomposition.patches if decomposition.levels is not None else ():
            if patch.condition.type == PATCHED:
                self._level_ends.setdefault((patch.block, patch.face), []).append(patch.range)
        # The planes of symmetry that walls meet, the reflections about them, and the faces on planes behind which the
        # coordinates of the grid are mirror images.
        self._planes: dict[Place, list[Range]] = {}
        images: dict[int, list[Image]] = {}
        mirrored: set[Place] = set()
        for patch in decomposition.patches:
            if patch.condition.type == "symmetry" and any(b == patch.block for b, _ in walls):
                symmetry = symmetry_of(decomposition.blocks[patch.block], patch)
                if symmetry is not None:
                    self._planes.setdefault((patch.block, patch.face), []).append(patch.range)
                    images.setdefault(patch.block, []).append((patch.face, symmetry[1]))
                    mirrored |= {(patch.block, patch.face)} if mirrors(decomposition, patch) else set()
        self._lines: dict[tuple[Place, int], _Lines] = {}
        self._runs: list[_Run] = []
        for place, mask in walls.items():
            for e in directions_along(place[1]):
                if decomposition.blocks[place[0]].size[e] > 1:
                    self._lines[place, e] = lines = _Lines(decomposition, place, e, images.get(place[0], ()))
                    self._runs += _runs(decomposition, self._over, place, e, mask, lines.edges)
        links = self._links_of(walls, self._runs)
        # for each run, the side of each of its nodes
        self._sides = [
            self._lines[run.place, run.along].add(
                run,
                (self._slopes_beyond(links, n, False), self._slopes_beyond(links, n, True)),
                [
                    links.get((n, upper)) == _End(n, upper, True)
                    and (run.place[0], FACES[2 * run.along + upper]) not in mirrored
                    for upper in (False, True)
                ],
            )
            for n, run in enumerate(self._runs)
        ]

    def shares(self, parts: Mapping[Place, np.ndarray]) -> dict[Place, dict[tuple[int, ...], FaceWeights]]:
        """Return the quadrature weights of wall nodes in an integral over regions of the walls. `parts`: for each
        (block, face) the mask of the nodes in the regions, an array [k, j, i] without the axis normal to the face. The
        result has for each (block, face) a dictionary of weights. Its keys are tuples with a number for each direction
        along the face. The first key consists of zeros, and its value has the weights of all nodes. At an edge of the
        wall, a line at which its direction jumps, a node has an area on each side. The numbers of the other keys say on
        which side of an edge (0 or 1) the area lies, and their values have weights of nodes on edges only."""
        found: list[_Run] = []
        sides: list[np.ndarray] = []
        for whole, own in zip(self._runs, self._sides, strict=True):
            if whole.place not in parts:
                continue
            axis = directions_along(whole.place[1]).index(whole.along)
            line = np.moveaxis(parts[whole.place], axis, -1)[whole.line, whole.first : whole.last]
            for lo, hi in runs(line):
                open_ = whole.open[0] and lo == 0, whole.open[1] and hi == len(line)
                found.append(whole._replace(first=whole.first + lo, last=whole.first + hi, open=open_))
                sides.append(own[lo:hi])
        links = self._links_of(parts, found)
        weights = {key: np.zeros(lines.near.shape) for key, lines in self._lines.items() if key[0] in parts}
        for n, run in enumerate(found):
            beyond = _beyond(found, links, n, False), _beyond(found, links, n, True)
            at = sides[n], run.line, np.arange(run.first, run.last)
            weights[run.place, run.along][at] = _along(found, links, n, beyond)
        return {
            place: _shares(
                place,
                mask,
                {e: (self._lines[place, e], weights[place, e]) for e in directions_along(place[1])
                 if (place, e) in weights},
            )
            for place, mask in parts.items()
        }  # fmt: skip

    def _links_of(self, walls: Mapping[Place, np.ndarray], found: Sequence[_Run]) -> dict[tuple[int, bool], _End]:
        ends = {
            (run.place, run.along, run.line, run.last - 1 if upper else run.first): n
            for n, run in enumerate(found)
            for upper in (False, True)
            if run.open[upper]
        }
        return _links(self._decomposition, self._over, self._planes, walls, found, ends)

    def _slopes_beyond(self, links: Mapping[tuple[int, bool], _End], n: int, upper: bool) -> int:
        """As `_beyond`, of the nodes that differences may reach: the grid goes on where a level ends, smoothly if it
        has no edge there."""
        run = self._runs[n]
        ranges = self._level_ends.get((run.place[0], FACES[2 * run.along + upper]), ())
        if run.open[upper] and (n, upper) not in links and ranges:
            node = _node(self._decomposition, run.place, run.along, run.line, run.last - 1 if upper else run.first)
            if _holds(ranges, node):
                return 0 if self._nears_edge(run, node[:, 0], upper) else REACH
        return _beyond(self._runs, links, n, upper)

    def _nears_edge(self, run: _Run, node: np.ndarray, upper: bool) -> bool:
        """True if the wall of the grid has an edge at the `node` at which a run of a level ends, or so near behind it
        that central differences reach over it."""
        levels, (n, face) = self._decomposition.levels, run.place
        assert levels is not None
        tile = levels.tiles[n]
        place, per = (tile.base, face), 2**tile.level
        if (place, run.along) not in self._lines:
            return False
        own = np.array([lo for lo, _ in tile.box]) + node
        behind = own[run.along] + (1 if upper else -1) * np.arange(DIFFERENCE_REACH + 1)
        edges_of = self._lines[place, run.along].edges
        (other,) = (a for a in directions_along(face) if a != run.along)
        line = edges_of[min(int(own[other]) // per, len(edges_of) - 1)]
        numbers = behind[behind % per == 0] // per
        return bool(line[numbers % len(line)].any())


class _Lines:
    """The lines of nodes of a face along direction `e`, in arrays (2, lines, nodes) of one side of each node and, at
    edges, of the other: derivatives `tangents` (2, 3, lines, nodes) of the coordinates, and whether these are
    one-sided, `near` an end. `edges` (lines, nodes): where the lines turn."""

    def __init__(self, decomposition: Decomposition, place: Place, e: int, images: Sequence[Image]):
        block = decomposition.blocks[place[0]]
        nodes = nodes_beyond(decomposition, place[0], face_range(place[1], block.size), e, _AROUND, images)
        count = nodes.shape[-1]
        self._nodes = np.zeros((3, nodes[0].size // count, count))
        self._nodes[: len(nodes)] = nodes.reshape(len(nodes), -1, count)
        self.edges = edges(self._nodes)[:, _AROUND - 1 : 1 - _AROUND]
        shape = self.edges.shape
        self.near = np.zeros((2, *shape), dtype=bool)
        central = sum(
            factor * self._nodes[..., m : m + shape[-1]]
            for m, factor in enumerate(CENTRAL_DIFFERENCE, _AROUND - DIFFERENCE_REACH)
        )
        self.tangents = np.stack([central, central])
        self._held = np.zeros(shape, dtype=bool)

    def add(self, run: _Run, beyond: tuple[int, int], images: Sequence[bool]) -> np.ndarray:
        """Add the nodes of a run, beyond whose ends its line has so many nodes. `images`: whether these are mirror
        images in place of which the metrics of the grid have other nodes. Returns the sides of the nodes (n,)."""
        first, last = run.first - beyond[0], run.last + beyond[1]
        width = min(DIFFERENCE_NODES, last - first)
        nodes = np.arange(run.first, run.last)
        sides = self._held[run.line, nodes].astype(int)
        self._held[run.line, nodes] = True
        for m, other in zip(nodes.tolist(), sides.tolist(), strict=True):
            start, at = min(max(m - DIFFERENCE_REACH, first), last - width), (other, run.line, m)
            if start != m - DIFFERENCE_REACH or width < DIFFERENCE_NODES:
                row = self._nodes[:, run.line, _AROUND + start : _AROUND + start + width]
                self.tangents[other, :, run.line, m] = row @ _derivative(width, m - start)
                self.near[at] = True
            self.near[at] |= images[0] and m - DIFFERENCE_REACH < run.first
            self.near[at] |= images[1] and m + DIFFERENCE_REACH >= run.last
        return sides


@cache
def _derivative(nodes: int, at: int) -> np.ndarray:
    """Factors of the values at `nodes` nodes, one apart, in the derivative of the polynomial through them at number
    `at`."""
    powers = np.arange(nodes)
    right = (powers == 1).astype(float)
    return np.linalg.solve((np.arange(nodes) - at) ** powers[:, None].astype(float), right)


def _shares(
    place: Place, mask: np.ndarray, lines: Mapping[int, tuple[_Lines, np.ndarray]]
) -> dict[tuple[int, ...], FaceWeights]:
    """The shares of the nodes of a `mask` by their sides. `lines`: by direction, with the weights along them."""
    face, found = place[1], dict[tuple[int, ...], FaceWeights]()
    for sides in product((0, 1), repeat=len(lines)):
        of = dict(zip(lines, sides, strict=True))
        weights, near = mask.astype(float), np.zeros(mask.shape, dtype=bool)
        slopes = [np.reshape(unit, (3, *(1 for _ in mask.shape))) + np.zeros(mask.shape) for unit in np.eye(3)]
        for e, other in of.items():
            axis, (own, along) = directions_along(face).index(e), lines[e]
            weights *= np.moveaxis(along[other], -1, axis)
            near |= np.moveaxis(own.near[other], -1, axis)
            slopes[e] = np.moveaxis(own.tangents[other], -1, 1 + axis)
        if any(sides) and not weights.any():
            continue
        d = direction(face)
        areas = side(face) * np.cross(slopes[(d + 1) % 3], slopes[(d + 2) % 3], axis=0)
        found[sides] = FaceWeights(weights, np.where(near, areas, np.nan), areas)
    return found


def _runs(
    decomposition: Decomposition,
    over: Mapping[Place, Sequence[Connection]],
    place: Place,
    e: int,
    mask: np.ndarray,
    edge: np.ndarray,
) -> Iterator[_Run]:
    """Yield the pieces between edges of the lines of nodes of a `mask`, from the lower end on. An edge at an end of the
    block belongs to both its sides: where the nodes of a connection are not doubled, one of them is the node alone."""
    size = decomposition.blocks[place[0]].size[e]
    for m, line in enumerate(np.moveaxis(mask, directions_along(place[1]).index(e), -1)):
        for lo, hi in runs(line):
            open_ = [lo == 0, hi == size]
            alone = [False, False]
            for upper, node in enumerate((lo, hi - 1)):
                if open_[upper] and edge[m, node]:
                    c = _connection(over, place, e, bool(upper), _node(decomposition, place, e, m, node))
                    open_[upper] = False
                    alone[upper] = c is not None and layout_of(c, decomposition.blocks) == "offset"
            cuts = [lo, *(lo + 1 + np.flatnonzero(edge[m, lo + 1 : hi - 1])).tolist(), hi - 1]
            if alone[0]:
                yield _Run(place, e, m, lo, lo + 1, (True, False))
            for n, (first, last) in enumerate(pairwise(cuts)):
                ends = open_[0] and n == 0, open_[1] and n == len(cuts) - 2
                yield _Run(place, e, m, first, last + 1, ends)
            if alone[1]:
                yield _Run(place, e, m, hi - 1, hi, (False, True))


def _node(decomposition: Decomposition, place: Place, e: int, line: int, number: int) -> np.ndarray:
    """Indexes (3, 1) of a node of a line along e on a face."""
    b, face = place
    (other,) = (a for a in directions_along(face) if a != e)
    node = np.zeros((3, 1), dtype=np.int64)
    node[direction(face)], node[other], node[e] = layer(face, decomposition.blocks[b].size)[0], line, number
    return node


def _connection(
    over: Mapping[Place, Sequence[Connection]], place: Place, e: int, upper: bool, node: np.ndarray
) -> Connection | None:
    """The connection through which a line along e goes on beyond its last `node`."""
    for c in over.get((place[0], FACES[2 * e + upper]), ()):
        if _holds([c.range], node):
            return c
    return None


def _holds(ranges: Sequence[Range], node: np.ndarray) -> bool:
    """True if one of some half-open index ranges contains a `node` (3, 1)."""
    return any(all(lo <= node[a, 0] < hi for a, (lo, hi) in enumerate(range_)) for range_ in ranges)


def _links(
    decomposition: Decomposition,
    over: Mapping[Place, Sequence[Connection]],
    planes: Mapping[Place, Sequence[Range]],
    walls: Mapping[Place, np.ndarray],
    found: Sequence[_Run],
    ends: Mapping[tuple[Place, int, int, int], int],
) -> dict[tuple[int, bool], _End]:
    """For each open end of a run, as (number, upper), the end to which it is joined. At one of the `planes` of
    symmetry the run is joined to its mirror image, which is the run itself."""
    links: dict[tuple[int, bool], _End] = {}
    for n, run in enumerate(found):
        for upper in (False, True):
            if not run.open[upper]:
                continue
            node = _node(decomposition, run.place, run.along, run.line, run.last - 1 if upper else run.first)
            c = _connection(over, run.place, run.along, upper, node)
            if c is not None and (end := _joined(decomposition, walls, ends, c, run.place[1], node)) is not None:
                links[n, upper] = end
            elif _holds(planes.get((run.place[0], FACES[2 * run.along + upper]), ()), node):
                links[n, upper] = _End(n, upper, True)
    return links


def _joined(
    decomposition: Decomposition,
    walls: Mapping[Place, np.ndarray],
    ends: Mapping[tuple[Place, int, int, int], int],
    c: Connection,
    face: str,
    node: np.ndarray,
) -> _End | None:
    """The end of a run of the donor of `c` that goes on from the `node` (3, 1) of a wall on `face`."""
    inward = np.zeros_like(node)
    inward[direction(face)] = -side(face)
    step = (c.donors(node + inward) - c.donors(node))[:, 0]
    axis = int(np.argmax(np.abs(step)))
    place = c.donor, FACES[2 * axis + int(step[axis] < 0)]
    if place not in walls:
        return None
    shared = layout_of(c, decomposition.blocks) == "shared"
    outward = np.zeros_like(node)
    outward[direction(c.face)] = side(c.face)
    there = c.donors(node if shared else node + outward)[:, 0]
    size, e = decomposition.blocks[c.donor].size, c.donor_direction
    if any(not 0 <= there[a] < size[a] for a in range(3)) or there[axis] != layer(place[1], size)[0]:
        return None
    (other,) = (a for a in directions_along(place[1]) if a != e)
    n = ends.get((place, e, int(there[other]), int(there[e])))
    return None if n is None else _End(n, bool(there[e] > 0), shared)


def _beyond(found: Sequence[_Run], links: Mapping[tuple[int, bool], _End], n: int, upper: bool) -> int:
    """Number of nodes of a line beyond an end of run number `n`, at most `REACH`."""
    count = 0
    while count < REACH and (end := links.get((n, upper))) is not None:
        n, upper = end.run, not end.upper
        count += found[n].last - found[n].first - end.shared
    return min(count, REACH)


def _along(
    found: Sequence[_Run], links: Mapping[tuple[int, bool], _End], n: int, beyond: tuple[int, int]
) -> np.ndarray:
    """The weights of the nodes of run number `n` along its line, which has so many nodes beyond its ends."""
    length = found[n].last - found[n].first
    at_ends = np.zeros(length + REACH)
    at_ends[:REACH][: length + sum(beyond)] = corrections(length + sum(beyond))
    weights = np.ones(length) + at_ends[beyond[0] : beyond[0] + length]
    weights[::-1] += at_ends[beyond[1] : beyond[1] + length]
    for upper, place in ((False, 0), (True, -1)):
        if (end := links.get((n, upper))) is not None and end.shared:
            weights[place] *= 0.5
    return weights
