"""Weights of the nodes of walls that go on from block to block: those of the uncut wall, however it is cut.

Along each direction of a wall its nodes form lines, over connections too. A line that ends has the weights of a closed
formula there (`hiresx.output.watch.quadrature`), one that comes back to itself the weight 1 throughout. A node that two
blocks hold counts half in each.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hiresx.base.arrays import runs
from hiresx.decomposition import Decomposition
from hiresx.grid.blocks import FACES, direction, layer, side
from hiresx.grid.connections import Connection
from hiresx.grid.orientation import layout_of
from hiresx.output.watch.quadrature import REACH, corrections

# A face of a block, by number and name.
Place = tuple[int, str]


class _Run(NamedTuple):
    """Nodes `first` to `last` - 1 of line number `line` along direction `along` of a face."""

    place: Place
    along: int
    line: int
    first: int
    last: int


class _End(NamedTuple):
    """The lower or `upper` end of a run, by its number; `shared`: its node is that of the end it is joined to."""

    run: int
    upper: bool
    shared: bool


def wall_weights(decomposition: Decomposition, walls: Mapping[Place, np.ndarray]) -> dict[Place, np.ndarray]:
    """Return the weights of the nodes of `walls`, masks of the nodes of faces ([k, j, i] without the face's direction),
    in integrals over all of these. The sum of weight times area times a field is its integral."""
    weights = {place: mask.astype(float) for place, mask in walls.items()}
    ways = {(place, e) for place in walls for e in _tangents(place[1]) if decomposition.blocks[place[0]].size[e] > 1}
    lines = {(*place, e): _lines(place, e, mask) for place, mask in walls.items() for e in _tangents(place[1])
             if (place, e) in ways}  # fmt: skip
    found = [run for of_way in lines.values() for run in of_way]
    at = {(*run[:3], run.first): n for n, run in enumerate(found)}
    at |= {(*run[:3], run.last - 1): n for n, run in enumerate(found)}
    links = _links(decomposition, walls, found, at)
    factors = {(*place, e): np.ones(walls[place].shape) for place, e in ways}
    for n, run in enumerate(found):
        array = np.moveaxis(factors[(*run.place, run.along)], _axis(run.place[1], run.along), -1)
        array[run.line, run.first : run.last] = _along(found, links, n)
    for (b, face, _), values in factors.items():
        weights[b, face] *= values
    return weights


def _tangents(face: str) -> list[int]:
    """Directions of the axes of an array over a face."""
    return [e for e in (2, 1, 0) if e != direction(face)]


def _axis(face: str, e: int) -> int:
    return _tangents(face).index(e)


def _lines(place: Place, e: int, mask: np.ndarray) -> list[_Run]:
    lines = np.moveaxis(mask, _axis(place[1], e), -1)
    return [_Run(place, e, m, *run) for m, line in enumerate(lines) for run in runs(line)]


def _links(
    decomposition: Decomposition,
    walls: Mapping[Place, np.ndarray],
    found: Sequence[_Run],
    at: Mapping[tuple[Place, int, int, int], int],
) -> dict[tuple[int, bool], _End]:
    """What the ends of the runs, (number, upper), are joined to."""
    over: dict[Place, list[Connection]] = {}
    for c in decomposition.connections:
        if not c.over_a_pole:
            over.setdefault((c.block, c.face), []).append(c)
    links: dict[tuple[int, bool], _End] = {}
    for n, run in enumerate(found):
        (b, face), e = run.place, run.along
        size = decomposition.blocks[b].size
        (other,) = (a for a in _tangents(face) if a != e)
        for upper, there in ((False, run.first == 0), (True, run.last == size[e])):
            if not there:
                continue
            node = np.zeros((3, 1), dtype=np.int64)
            node[direction(face)], node[other] = layer(face, size)[0], run.line
            node[e] = run.last - 1 if upper else 0
            for c in over.get((b, FACES[2 * e + upper]), ()):
                if all(lo <= node[a, 0] < hi for a, (lo, hi) in enumerate(c.range)):
                    if (end := _joined(decomposition, walls, at, c, face, node)) is not None:
                        links[n, upper] = end
                    break
    return links


def _joined(
    decomposition: Decomposition,
    walls: Mapping[Place, np.ndarray],
    at: Mapping[tuple[Place, int, int, int], int],
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
    (other,) = (a for a in _tangents(place[1]) if a != e)
    n = at.get((place, e, int(there[other]), int(there[e])))
    return None if n is None else _End(n, bool(there[e] > 0), shared)


def _beyond(found: Sequence[_Run], links: Mapping[tuple[int, bool], _End], n: int, upper: bool) -> int:
    """How many nodes a line has beyond an end of run number `n`, or `REACH` where there are as many or more."""
    count = 0
    while count < REACH and (end := links.get((n, upper))) is not None:
        n, upper = end.run, not end.upper
        count += found[n].last - found[n].first - end.shared
    return min(count, REACH)


def _along(found: Sequence[_Run], links: Mapping[tuple[int, bool], _End], n: int) -> np.ndarray:
    """The weights of the nodes of run number `n` along its line."""
    length = found[n].last - found[n].first
    beyond = [_beyond(found, links, n, upper) for upper in (False, True)]
    at_ends = np.zeros(length + REACH)
    at_ends[:REACH][: length + sum(beyond)] = corrections(length + sum(beyond))
    weights = np.ones(length) + at_ends[beyond[0] : beyond[0] + length]
    weights[::-1] += at_ends[beyond[1] : beyond[1] + length]
    for upper, place in ((False, 0), (True, -1)):
        if (end := links.get((n, upper))) is not None and end.shared:
            weights[place] *= 0.5
    return weights
