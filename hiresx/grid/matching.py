"""Connections that are found by comparing coordinates of nodes, for grid files that do not contain them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from hiresx.base.argument_types import check_types
from hiresx.base.arrays import Integers, Reals, triple
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, direction, face_range, rectangles, side
from hiresx.grid.connections import TOLERANCE, Connection
from hiresx.grid.face_ownership import FacePart, assign_nodes
from hiresx.grid.motions import IntMatrix
from hiresx.grid.singular import COLLAPSED, collapsed_direction
from hiresx.grid.stored_coordinates import slabs

# In a usable grid no node lies on more faces than this, except on a pole, where all nodes of a ring coincide.
Place = tuple[int, str]  # number of a block, face
AT_ONE_PLACE = 64


@check_types
def matched_connections(blocks: Sequence[Block]) -> list[Connection]:
    """Return the connections between faces (or parts of faces) of `blocks` whose nodes coincide one to one, found by
    comparing coordinates.

    Nodes coincide if their distance is less than 1e-6 of the extent of the blocks and less than a thousandth of the
    smallest spacing. A contact along an edge or at a corner alone is not a connection, nor is a contact of a face that
    has collapsed to a line. A line of face nodes that two contacts share belongs to the first contact. Raises
    HiresxError for a block that occurs twice."""
    _refuse_twins(blocks)
    with np.errstate(over="ignore", invalid="ignore"):
        faces = [(b, f) for b, block in enumerate(blocks) for f in block.faces if collapsed_direction(block, f) is None]
    if not faces:
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # a file may contain any finite number
        return _match_faces(blocks, faces)


def outside_regions(blocks: Sequence[Block], connections: Sequence[Connection]) -> list[Connection]:
    """Return `connections` without the nodes of regions, the named parts of faces. A line of nodes that a connection
    shares with a region belongs to the region. Two faces are not connected if a region of one of them contains more
    than such a line, as on the two sides of a wall between touching blocks."""
    regions = [
        FacePart(b, *part, name)
        for b, block in enumerate(blocks)
        for name in block.regions
        for part in block.regions[name]
    ]
    found, apart = list[Connection](), set[frozenset[Place]]()
    for c in connections:
        own = [part for part in regions if (part.block, part.face) == (c.block, c.face)]
        try:
            (ranges,) = assign_nodes(blocks, [FacePart(c.block, c.face, c.range, "a connection")], own)
        except HiresxError:
            apart.add(_faces(c))
            continue
        found += [replace(c, range=range_) for range_ in ranges]
    return [c for c in found if _faces(c) not in apart]


def _faces(c: Connection) -> frozenset[Place]:
    return frozenset({(c.block, c.face), (c.donor, c.donor_face)})


def _refuse_twins(blocks: Sequence[Block]) -> None:
    known: dict[tuple[object, ...], Block] = {}
    for block in blocks:
        coordinates = block.coordinates
        ends = tuple(float(c[place]) for c in coordinates for place in ((0, 0, 0), (-1, -1, -1), (0, 0, -1)))
        twin = known.setdefault((block.size, ends), block)
        if twin is not block and all(map(np.array_equal, coordinates, twin.coordinates)):
            raise HiresxError(
                f"block '{block.name}' has the same {block.points} nodes as block '{twin.name}'",
                "a block is in the grid once: leave one of them out",
            )


def _match_faces(blocks: Sequence[Block], faces: Sequence[Place]) -> list[Connection]:
    nodes, owner, index = _face_nodes(blocks, faces)
    distance = matching_distance(blocks)
    if distance == 0:  # neighbours coincide: a grid without a valid Jacobian is not matched
        return []
    most = max(max(block.size) for block in blocks) if len(faces) < sum(len(block.faces) for block in blocks) else 0
    own, other = _coinciding(nodes, distance, AT_ONE_PLACE + 2 * most)
    same_node = np.all(index[:, own] == index[:, other], axis=0)
    block_of = np.array([b for b, _ in faces])
    one_block = block_of[owner[own]] == block_of[owner[other]]
    real = ~(same_node & one_block)
    asked = np.flatnonzero(real & one_block)
    one_face = owner[own[asked]] == owner[other[asked]]
    real[asked] = ~_close_neighbours(
        blocks, block_of[owner[own[asked]]], index[:, own[asked]], index[:, other[asked]], one_face, distance
    )
    own, other = own[real], other[real]

    connections, pairs = [], owner[own] * len(faces) + owner[other]
    for pair in np.unique(pairs):
        (a, face), (b, donor_face) = (faces[n] for n in divmod(int(pair), len(faces)))
        at = pairs == pair
        for range_, matrix, offset in _rectangles(
            blocks, (a, face), (b, donor_face), index[:, own[at]].T, index[:, other[at]].T
        ):
            connections.append(Connection(a, face, range_, b, matrix, offset))
    free = assign_nodes(blocks, [FacePart(c.block, c.face, c.range, "") for c in connections], strict=False)
    return [replace(c, range=range_) for c, ranges in zip(connections, free, strict=True) for range_ in ranges]


def _face_nodes(blocks: Sequence[Block], faces: Sequence[Place]) -> tuple[Reals, Integers, Integers]:
    """Return coordinates (n, 3), positions in `faces` (n,) and index triples (3, n) of all face nodes."""
    nodes, owner, index = [], [], []
    for f, (b, face) in enumerate(faces):
        block = blocks[b]
        i, j, k = (m.ravel() for m in np.meshgrid(*[np.arange(*r) for r in face_range(face, block.size)]))
        nodes.append(block.node(i, j, k).T)
        owner.append(np.full(len(i), f))
        index.append(np.stack([i, j, k]))
    return np.concatenate(nodes), np.concatenate(owner), np.concatenate(index, axis=1)


def matching_distance(blocks: Sequence[Block]) -> float:
    """Return the distance, in reference lengths, up to which two nodes count as coincident: 1e-6 of the largest extent
    of the `blocks` or, if less, a thousandth of the smallest spacing."""
    extent = max(max(block.extents) for block in blocks)
    smallest = float("inf")
    for block in blocks:
        for nodes in slabs(block.x, block.y, block.z, overlap=1):
            for d in block.active:
                step = np.sqrt(sum(np.diff(c, axis=2 - d) ** 2 for c in nodes))
                # neighbours on a collapsed line are not neighbours in the grid
                smallest = min(smallest, float(np.min(step, where=step > COLLAPSED * extent, initial=np.inf)))
    if not np.isfinite(smallest):
        return 0.0
    return min(TOLERANCE * extent, 1e-3 * smallest)


def _coinciding(nodes: np.ndarray, distance: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all ordered pairs of different nodes closer than `distance`. They are found among neighbours in the order
    of a skew projection. At most `most` nodes coincide at one point."""
    # No grid line has this direction (sqrt(2), sqrt(3), sqrt(5)), so that few different nodes have close projections.
    projection = nodes @ (np.sqrt([2.0, 3.0, 5.0]) / np.sqrt(10.0))
    order = np.argsort(projection, kind="stable")
    sorted_, own, other = projection[order], [], []
    for shift in range(1, min(len(nodes), most)):
        near = np.flatnonzero(sorted_[shift:] - sorted_[:-shift] <= distance)
        if not near.size:
            break
        a, b = order[near], order[near + shift]
        close = np.sum((nodes[a] - nodes[b]) ** 2, axis=1) <= distance**2
        own += [a[close], b[close]]
        other += [b[close], a[close]]
    if not own:
        return np.zeros(0, int), np.zeros(0, int)
    return np.concatenate(own), np.concatenate(other)


def _close_neighbours(
    blocks: Sequence[Block], block: Integers, own: Integers, other: Integers, one_face: np.ndarray, distance: float
) -> np.ndarray:
    """Return the mask of the pairs of nodes (3, n) of one `block` (n,) that lie on one grid line and are as close as
    neighbours on it: the nodes of a thin layer, and those of a line on a collapsed face (`one_face`: whether both nodes
    of a pair are on one face). Pairs are not neighbours if a line returns to its beginning, or is a pole between two
    faces."""
    towards = np.sign(other - own)
    on_a_line = np.count_nonzero(towards, axis=0) == 1
    along = np.argmax(np.abs(towards), axis=0)
    extent = max(max(of_one.extents) for of_one in blocks)
    found = np.zeros(len(block), bool)
    for b, d in product(np.unique(block[on_a_line]), range(3)):
        at = np.flatnonzero(on_a_line & (block == b) & (along == d))
        coordinates = blocks[b].coordinates
        here, beside = (tuple(m[:, at][::-1]) for m in (own, own + towards))
        at = at[sum((c[here] - c[beside]) ** 2 for c in coordinates) <= distance**2]
        if at.size:
            lines = (np.moveaxis(c, 2 - d, -1)[tuple(np.delete(own[:, at], d, axis=0)[::-1])] for c in coordinates)
            long = np.max([np.ptp(line, axis=-1) for line in lines], axis=0) > COLLAPSED * extent
            found[at] = long | one_face[at]
    return found


def _rectangles(
    blocks: Sequence[Block], own_face: Place, donor_face: Place, index: Integers, donor: Integers
) -> Iterator[tuple[Range, IntMatrix, tuple[int, int, int]]]:
    """Yield rectangles of one face whose coincident nodes correspond one to one: (range, matrix, offset)."""
    (a, face), (b, other) = own_face, donor_face
    block, d, e = blocks[a], direction(face), direction(other)
    across = [x for x in block.active if x != d]
    across_donor = [x for x in blocks[b].active if x != e]
    if len(across) != len(across_donor):
        return
    if not (np.ptp(index[:, across], axis=0).all() and np.ptp(donor[:, across_donor], axis=0).all()):
        return  # a contact along an edge only
    for permutation in {p for p in product(across_donor, repeat=len(across)) if len(set(p)) == len(p)}:
        for signs in product((1, -1), repeat=len(across)):
            matrix = np.zeros((3, 3), dtype=int)
            matrix[e, d] = -side(face) * side(other)
            for x, y, s in zip(across, permutation, signs, strict=True):
                matrix[y, x] = s
            for x in range(3):
                if block.size[x] == 1:
                    matrix[x, x] = 1
            offsets, group = np.unique(donor - index @ matrix.T, axis=0, return_inverse=True)
            for n in _wide(index[:, across], group.ravel(), len(offsets)):
                mine = index[group.ravel() == n]
                mask = np.zeros([block.size[x] for x in range(3) if x != d], dtype=bool)
                mask[tuple(mine[:, x] for x in range(3) if x != d)] = True
                for rectangle in rectangles(mask) if _has_cell(mask) else ():
                    range_ = list(face_range(face, block.size))
                    for x, part in zip([x for x in range(3) if x != d], rectangle, strict=True):
                        range_[x] = part
                    if all(range_[x][1] - range_[x][0] > 1 for x in across):
                        yield triple(range_), triple(map(triple, matrix.tolist())), triple(int(o) for o in offsets[n])


def _wide(index: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    """Return the groups of index tuples (n, d) that are more than one wide in each of the d directions. With a wrong
    orientation there are as many groups as nodes, or lines of nodes."""
    widest, least = np.zeros((count, index.shape[1]), dtype=int), np.full((count, index.shape[1]), np.iinfo(int).max)
    np.maximum.at(widest, group, index)
    np.minimum.at(least, group, index)
    return np.flatnonzero((widest > least).all(axis=1))


def _has_cell(mask: np.ndarray) -> bool:
    """True if somewhere all corners of a cell of a face are True; a diagonal line of nodes has no such cell."""
    for axis in (0, 1):
        if mask.shape[axis] > 1:
            mask = mask[1:] & mask[:-1] if axis == 0 else mask[:, 1:] & mask[:, :-1]
    return bool(mask.any())
