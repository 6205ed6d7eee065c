"""Check of the connections of a grid against the coordinates of its nodes. An error names the first node that does not
match."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.equations.stencil import DIFFERENCE_REACH
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, direction, format_size, layer, side
from hiresx.grid.connections import TOLERANCE, Connection, broken_seam
from hiresx.grid.motions import Motion, format_vector
from hiresx.grid.orientation import (
    LAYOUTS,
    donor_range,
    extents,
    join,
    layout_of,
    opposite,
    possible_matrices,
    transform_of,
)
from hiresx.grid.quality import FLAT

# Shared nodes must be closer than this fraction of the shortest step along the face, so that neighbours are not
# confused.
OF_STEP = 0.25


@dataclass(frozen=True)
class ConnectionCheck:
    """The result of the check of one connection. `layout`: "shared" or "offset". `gap`: the largest distance of nodes
    that should coincide, in L (0 in the offset layout). `nodes`: the number of compared nodes. `stretching`: the
    largest ratio (1 or more) of neighbouring spacings along the grid lines that pass the face. `steepest`: the node (i,
    j, k) of the face on the grid line with this ratio."""

    connection: Connection
    layout: str
    gap: float
    nodes: int
    stretching: float
    steepest: tuple[int, int, int]


def check_connections(blocks: Sequence[Block], connections: Sequence[Connection]) -> list[ConnectionCheck]:
    """Check that the connections between blocks agree with the coordinates of the nodes, and return one result for each
    connection. For every node of a connection these conditions are checked:
    - It lies on its face, and the donor has three layers of nodes for the ghosts.
    - If both blocks contain the nodes of the face (shared layout), the node coincides with the donor's node, after the
      connection's motion, to 1e-6 of the block's extent and a quarter of the shortest step beside it.
    - If they do not (offset layout), the grid line continues forwards from the block into the donor, with a step
      between 1/4 and 4 times its neighbours, and neighbouring lines do so in the same order.
    - The two blocks have the same handedness, and lie on opposite sides of the face.
    - Another connection leads back: at the same nodes, the ghosts of the donor are copied from this block, by the
      inverse index map and motion. Nodes on the border of a range are excepted, because they may belong to another
      patch.

    `hiresx.decomposition.decompose` checks that every node of a face belongs to one patch. Raises HiresxError for the
    first node that does not fulfil a condition, with its block, its indexes (i, j, k), its coordinates and those of the
    donor node."""
    with np.errstate(over="ignore", invalid="ignore"):  # a file may contain any finite number
        checks = [_check(blocks, connection) for connection in connections]
        _check_way_back(blocks, connections)
    return checks


class OverlapError(HiresxError):
    """The error for blocks that overlap, which cannot be corrected by other connections."""


def _check(blocks: Sequence[Block], c: Connection) -> ConnectionCheck:
    where = _where(blocks, c)
    _check_form(blocks, c, where)
    layout = layout_of(c, blocks)
    if layout is None:
        raise HiresxError(
            f"{where}: the first ghost nodes are neither on face {c.donor_face} of the donor nor one spacing behind it",
            "correct the connection: its ghosts begin with the donor's nodes beside the face",
        )
    if not _keeps_plane(blocks[c.block], c.motion):
        raise HiresxError(
            f"{where}: {c.motion} takes a block of {len(blocks[c.block].active)} dimensions out of its "
            f"{'plane' if len(blocks[c.block].active) == 2 else 'line'}",
            "move it along x and y and turn it about z",
        )
    if layout == "shared":
        gap, bad = _gaps(blocks, c)
    else:
        gap, bad = None, _find_breaks(blocks, c)
    if bad.any():
        raise _mismatch(blocks, c, where, layout, bad)
    if round(np.linalg.det(c.matrix)) < 0 and not c.over_a_pole:
        if _right_handed(blocks[c.block]) == _right_handed(blocks[c.donor]):
            raise OverlapError(
                f"{where}: the blocks overlap: they share the nodes of these faces and lie on the same side of them",
                "move one of the blocks, or leave out of one what the other holds as well",
            )
        left = next((b for b in (c.block, c.donor) if not _right_handed(blocks[b])), c.donor)
        raise HiresxError(
            f"{where}: a right-handed block meets a left-handed one",
            f"reverse one index direction of block '{blocks[left].name}'",
        )
    ratio = _stretching(blocks, c, layout)
    node = np.unravel_index(np.argmax(ratio), ratio.shape)
    steepest = triple(int(n) + first for n, (first, _) in zip(node, c.range, strict=True))
    return ConnectionCheck(
        c, layout, float(gap.max()) if gap is not None else 0.0, bad.size, float(ratio.max()), steepest
    )


def _where(blocks: Sequence[Block], c: Connection) -> str:
    nodes = ", ".join(f"{axis} = {lo}:{hi}" for axis, (lo, hi) in zip("ijk", c.range, strict=True))
    return (
        f"connection of block '{blocks[c.block].name}', face {c.face}, nodes {nodes}, to block '{blocks[c.donor].name}'"
    )


def _check_form(blocks: Sequence[Block], c: Connection, where: str) -> None:
    """Check everything that needs no coordinates."""
    block, donor = blocks[c.block], blocks[c.donor]
    if c.face not in block.faces or tuple(c.range[direction(c.face)]) != layer(c.face, block.size):
        raise HiresxError(f"{where}: the range is not on the face", "correct the connection")
    if any(not 0 <= lo < hi <= n for (lo, hi), n in zip(c.range, block.size, strict=True)):
        size = format_size(block.size)
        raise HiresxError(f"{where}: the range leaves the block of {size} nodes", "correct the connection")
    m = np.array(c.matrix)
    if m.shape != (3, 3) or (np.abs(m).sum(axis=0) != 1).any() or (np.abs(m).sum(axis=1) != 1).any():
        raise HiresxError(f"{where}: {m.tolist()} is no permutation of the directions with signs", "correct the matrix")
    if {e for d in block.active for e in range(3) if m[e, d]} != set(donor.active):
        raise HiresxError(
            f"{where}: the matrix does not join the directions of a block of {format_size(block.size)} nodes to those "
            f"of one of {format_size(donor.size)} nodes",
            "correct the connection, or connect blocks of the same number of dimensions",
        )
    ghosts = c.donors(c.ghosts(DIFFERENCE_REACH, block.size)).reshape(3, -1)
    outside = (ghosts < 0) | (ghosts >= np.array(donor.size)[:, None])
    if outside.any():
        raise HiresxError(
            f"{where}: there is no donor node (i, j, k) = {_index(ghosts[:, np.argmax(outside.any(axis=0))])} in a "
            f"block of {format_size(donor.size)} nodes",
            "correct the ranges of the connection",
        )


def _index(index: Iterable[int]) -> str:
    return "({}, {}, {})".format(*map(int, index))


def _keeps_plane(block: Block, motion: Motion) -> bool:
    """True if a motion leaves singleton directions where they are (k along z, j along y)."""
    if motion.rotation is not None and any(abs(motion.rotation[d][d] - 1) > 1e-9 for d in _singleton(block)):
        return False
    extent = max(block.extents)
    return all(abs(motion.translation[d]) <= TOLERANCE * extent for d in _singleton(block))


def _singleton(block: Block) -> list[int]:
    return [d for d in range(3) if block.size[d] == 1]


def _right_handed(block: Block) -> bool:
    """True if the edges at the middle node are right-handed."""
    k, j, i = (n // 2 for n in block.x.shape)
    edges = np.eye(3)
    for d in block.active:
        ahead, behind = [i, j, k], [i, j, k]
        ahead[d], behind[d] = min(ahead[d] + 1, block.size[d] - 1), behind[d] - 1
        edges[d] = block.node(*ahead) - block.node(*behind)
    return bool(np.linalg.det(edges) > 0)


def _face_nodes(c: Connection) -> np.ndarray:
    """Return the index triples (3, ni, nj, nk) of the connected nodes."""
    return np.stack(np.meshgrid(*(np.arange(*r) for r in c.range), indexing="ij"))


def _gaps(blocks: Sequence[Block], c: Connection) -> tuple[np.ndarray, np.ndarray]:
    """For the shared layout, return the distances of the nodes that should coincide, and where they are too large (ni,
    nj, nk)."""
    block, index = blocks[c.block], _face_nodes(c)
    own = block.node(*index)
    gap = np.linalg.norm(c.motion(blocks[c.donor].node(*c.donors(index))) - own, axis=0)
    extent = max(block.extents)
    allowed = np.full(gap.shape, TOLERANCE * extent)
    for e in range(3):
        if own.shape[e + 1] > 1:
            step = np.linalg.norm(np.diff(own, axis=e + 1), axis=0)
            ends = [(1, 0) if a == e else (0, 0) for a in range(3)], [(0, 1) if a == e else (0, 0) for a in range(3)]
            beside = [np.pad(step, end, constant_values=np.inf) for end in ends]
            allowed = np.minimum(allowed, OF_STEP * np.minimum(*beside))
    return gap, ~(gap <= np.maximum(allowed, 1e-13 * extent))


def _find_breaks(blocks: Sequence[Block], c: Connection) -> np.ndarray:
    """For the offset layout, return where the grid does not continue from the block into the donor (ni, nj, nk)."""
    before, last, first, after = _over_seam(blocks, c)
    bad = broken_seam(before, last, first, after)
    # a neighbouring line must be on the same side behind the seam, and not in the opposite direction
    for e in range(3):
        if last.shape[e + 1] > 1:
            own, other = np.diff(last, axis=e + 1), np.diff(first, axis=e + 1)
            wrong = ~(np.sum(own * other, axis=0) > 0)
            bad |= np.pad(wrong, [(0, 1) if a == e else (0, 0) for a in range(3)])
    return bad


def _over_seam(blocks: Sequence[Block], c: Connection) -> list[np.ndarray]:
    """Return four planes of nodes (3, ni, nj, nk) in the order in which grid lines pass them, the last two in the
    block and the next two in the donor."""
    index, outward = _face_nodes(c), np.zeros((3, 1, 1, 1), dtype=int)
    outward[direction(c.face)] = side(c.face)
    own = [blocks[c.block].node(*index - n * outward) for n in (1, 0)]
    return own + [c.motion(blocks[c.donor].node(*c.donors(index + n * outward))) for n in (1, 2)]


def _stretching(blocks: Sequence[Block], c: Connection, layout: str) -> np.ndarray:
    """Return the ratios (ni, nj, nk) of neighbouring spacings at a connection; in the shared layout these are the last
    one before the face and the first one behind it. The ratio is 1 beside a step that has
    collapsed."""
    before, first, second = seam_steps(blocks, c)
    ratio = np.ones(first.shape)
    for a, b in [(before, first), (first, second)][: 1 + (layout == "offset")]:
        long, short = np.maximum(a, b), np.minimum(a, b)
        ratio = np.fmax(ratio, np.divide(long, short, out=np.ones(long.shape), where=short > FLAT * long))
    return ratio


def seam_steps(blocks: Sequence[Block], c: Connection) -> list[np.ndarray]:
    """Return the lengths (ni, nj, nk) of three consecutive grid steps across a connection: the last step inside the
    block and the next two. The axis normal to the face has one entry. `c`: the connection. In the offset layout (no
    common nodes) the second step leads from one block to the other."""
    planes = _over_seam(blocks, c)
    return [np.linalg.norm(planes[n + 1] - planes[n], axis=0) for n in range(3)]


def _mismatch(blocks: Sequence[Block], c: Connection, where: str, layout: str, bad: np.ndarray) -> HiresxError:
    """Return the message about the first node that does not match, in the order of the arrays."""
    k, j, i = (int(m) for m in np.argwhere(bad.transpose(2, 1, 0))[0])
    index = _face_nodes(c)[:, i, j, k]
    there = index.copy()
    if layout == "offset":
        there[direction(c.face)] += side(c.face)
    there = c.donors(there)
    place, found = (b.node(*n) for b, n in ((blocks[c.block], index), (blocks[c.donor], there)))
    moved = "" if c.motion.still else f", after {c.motion} at {format_vector(c.motion(found))}"
    what = "is not the same point as" if layout == "shared" else "is not followed by"
    return HiresxError(
        f"{where}: {int(bad.sum())} of {bad.size} nodes do not match; first, node (i, j, k) = {_index(index)} at "
        f"(x, y, z) = {format_vector(place)} {what} node {_index(there)} of '{blocks[c.donor].name}' at "
        f"{format_vector(found)}{moved}",
        _hint(blocks, c, layout),
    )


def _hint(blocks: Sequence[Block], c: Connection, layout: str) -> str:
    """Return the hint of the message: a simple change that makes the nodes match, if there is one."""
    motions = ((c.motion, ""), (c.motion.inverse, "the inverse motion"), (Motion(), "no motion"))
    own, there = (c.block, c.face, c.range), (c.donor, c.donor_face, donor_range(c, blocks))
    others = (m for m in possible_matrices(blocks, own, there) if m != c.matrix and round(np.linalg.det(m)) > 0)
    matrices = [c.matrix, *others]
    for tried in (layout, *(other for other in LAYOUTS if other != layout)):
        for (motion, moved), matrix in product(motions, matrices):
            if misfit(blocks, join("", own, there, matrix, tried, motion), tried)[0] == 0:
                words = [f"transform = {transform_of(matrix)}"] if matrix != c.matrix else []
                words += [moved] if moved else []
                words += [f'layout = "{tried}"'] if tried != layout else []
                return f"they match with {' and '.join(words)}"
    if layout == "shared":
        index = _face_nodes(c)
        shift = blocks[c.block].node(*index) - c.motion(blocks[c.donor].node(*c.donors(index)))
        shift = shift.reshape(3, -1)
        if np.ptp(shift, axis=1).max() <= TOLERANCE * np.abs(shift).max():
            off = format_vector(shift[:, 0])
            return f"all of them are off by {off}: give that as the translation, or correct the ranges"
    return "correct the ranges, the transform, the motion or the layout of the connection, or the grid"


def misfit(blocks: Sequence[Block], c: Connection, layout: str) -> tuple[int, float]:
    """Return the number of nodes of connection `c` that do not match the donor's nodes, and the sum of their distances.
    Both are smallest for the right one of several possible orientations. `layout`: "shared" if the nodes must coincide,
    "offset" if the donor's nodes lie one spacing beyond the face."""
    if layout == "shared":
        gap, bad = _gaps(blocks, c)
        return int(bad.sum()), float(gap.sum())
    index = _face_nodes(c)
    there = index.copy()
    there[direction(c.face)] += side(c.face)
    seam = c.motion(blocks[c.donor].node(*c.donors(there))) - blocks[c.block].node(*index)
    return int(_find_breaks(blocks, c).sum()), float(np.linalg.norm(seam, axis=0).sum())


def _check_way_back(blocks: Sequence[Block], connections: Sequence[Connection]) -> None:
    """Raises HiresxError if a connection has no inverse somewhere inside its rim."""
    on_face: dict[tuple[int, str], list[Connection]] = {}
    for c in connections:
        on_face.setdefault((c.block, c.face), []).append(c)
    for c in connections:
        back = opposite(c, blocks)
        met = np.zeros(extents(back.range), dtype=bool)
        for other in on_face.get((back.block, back.face), ()):
            common = [(max(a, b), min(z, y)) for (a, z), (b, y) in zip(other.range, back.range, strict=True)]
            if all(lo < hi for lo, hi in common) and _same_map(other, back, blocks[c.donor]):
                met[tuple(slice(lo - f, hi - f) for (lo, hi), (f, _) in zip(common, back.range, strict=True))] = True
        across = [d for d in blocks[c.donor].active if d != direction(back.face)]
        inside = tuple(slice(1, -1) if d in across else slice(None) for d in range(3))
        lost = np.zeros_like(met)
        lost[inside] = ~met[inside]
        if lost.any():
            index = np.argwhere(lost.transpose(2, 1, 0))[0][::-1] + [lo for lo, _ in back.range]
            donor = blocks[c.donor]
            raise HiresxError(
                f"{_where(blocks, c)}: no connection leads back from its face {back.face}, first at node (i, j, k) = "
                f"{_index(index)}, (x, y, z) = {format_vector(donor.node(*map(int, index)))}",
                "connect that face as well, by the inverse transform and motion, or correct the connection it has",
            )


def _same_map(a: Connection, b: Connection, block: Block) -> bool:
    """True if two connections of one face of `block` take the same ghosts from the same nodes."""
    if (a.donor, a.matrix, a.offset) != (b.donor, b.matrix, b.offset):
        return False
    ends = [(float(v.min()), float(v.max())) for v in block.coordinates]
    corners = np.stack(np.meshgrid(*ends, indexing="ij"))
    gap = np.linalg.norm(a.motion(corners) - b.motion(corners), axis=0)
    return bool(gap.max() <= 10 * TOLERANCE * max(hi - lo for lo, hi in ends))
