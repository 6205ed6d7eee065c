"""The quality of a grid: cell volumes, skewness, stretching, aspect ratio."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.equations.stencil import CENTRAL_DIFFERENCE
from hiresx.equations.stencil import DIFFERENCE_REACH as REACH
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, FACES, Block, Range, RawBlock, direction, side, slices
from hiresx.grid.connections import TOLERANCE, Grid
from hiresx.grid.motions import format_vector
from hiresx.grid.singular import PAGE, collapsed_direction
from hiresx.grid.stored_coordinates import slabs

# Number of nodes processed at a time: limits the work memory to some 200 MB for any grid.
SLAB = 1_000_000
# Lengths and volumes below this fraction of the largest count as zero.
FLAT = 1e-12
# A single node is displaced if its positions extrapolated along all grid lines agree to this fraction of its
# displacement.
AGREE = 0.5
# Differences of sixth order have the wrong sign beside a jump of the spacing by more than 9.6.
STEEPEST = 5.0
SMOOTH = "let spacings change by a factor of 1.2 or less from a cell to the next, also across faces of blocks"
# A grid line turns back where the cosine of the angle between two successive steps is below minus this.
TURNED = 0.98


def quality(grid: Grid) -> list[dict[str, Any]]:
    """Return measures of the quality of a grid: a dictionary for each block with "block" (name), "size" [ni, nj, nk],
    and extremes, each {"value", "node": [i, j, k], "position": [x, y, z]}:
    - "volume_min", "volume_max": 1/J = det d(x, y, z)/d(xi, eta, zeta), with sixth order; in 2-D an area, in 1-D a
      length;
    - "skewness": largest deviation of the angle between two grid lines from 90 degrees, in degrees (absent in 1-D);
    - "aspect_ratio": largest ratio of the spacings along two grid lines at a node (absent in 1-D);
    - "stretching": largest ratio of neighbouring spacings along a grid line, without spacings that have collapsed.

    Beyond a face, the differences use the nodes of the connected block. If there is none, the grid is extended by point
    reflection."""
    records = []
    for b, block in enumerate(grid.blocks):
        found: dict[str, Any] = {}
        for k, tangents in _slabs(grid, b):
            volume = _volume(tangents)
            _note(found, "volume_min", block, k, volume, smallest=True)
            _note(found, "volume_max", block, k, volume)
            if len(block.active) > 1:
                angle, aspect = _angle_and_aspect([tangents[d] for d in block.active])
                _note(found, "skewness", block, k, angle)
                _note(found, "aspect_ratio", block, k, aspect)
        first = 0
        for nodes in slabs(block.x, block.y, block.z, overlap=min(2, block.size[2] - 1)):
            for d in block.active:
                _note(found, "stretching", block, first, _stretching(nodes, d))
            first += nodes[0].shape[0] - 2
        records.append({"block": block.name, "size": list(block.size), **found})
    return records


@dataclass(frozen=True)
class NotPositive:
    """A block whose Jacobian is not positive at `count` of its nodes. `worst`: the smallest 1/J, in L^3 (in L^2 for a
    plane block, in L for a line). `node`: the node (i, j, k) with this value. `place`: its coordinates (x, y, z), in L.
    `what`: a description of the error. `hint`: how to correct it."""

    block: Block
    count: int
    worst: float
    node: tuple[int, int, int]
    place: tuple[float, float, float]
    what: str
    hint: str


def not_positive(grid: Grid, poles: Collection[tuple[int, Range]] = ()) -> Iterator[NotPositive]:
    """Yield the blocks in which the Jacobian of the grid is not positive at some nodes, with the worst node and the
    cause. `poles`: face nodes at which 1/J may be zero, because the face has collapsed to a line, as (block number,
    half-open index ranges)."""
    for b, block in enumerate(grid.blocks):
        found: dict[str, Any] = {}
        bad = 0
        for k, tangents in _slabs(grid, b):
            volume = _volume(tangents)
            for _, range_ in (pole for pole in poles if pole[0] == b):
                (i0, i1), (j0, j1), (k0, k1) = range_
                volume[max(k0 - k, 0) : max(k1 - k, 0), j0:j1, i0:i1] = np.inf
            _note(found, "worst", block, k, volume, smallest=True)
            bad += int(np.sum(~(volume > 0)))
        if bad:
            worst = found["worst"]
            what, hint = why_not_positive(block, triple(worst["node"]))
            yield NotPositive(block, bad, worst["value"], triple(worst["node"]), triple(worst["position"]), what, hint)


def check_jacobian(grid: Grid, poles: Collection[tuple[int, Range]] = ()) -> None:
    """Raise HiresxError if the Jacobian of the grid is not positive at all nodes. The message names the node with the
    smallest 1/J. `poles`: face nodes at which 1/J may be zero, as (block number, half-open index ranges)."""
    for found in not_positive(grid, poles):
        raise HiresxError(
            f"block '{found.block.name}': the Jacobian is not positive at {found.count} of {found.block.points} nodes; "
            f"worst 1/J = {found.worst:.6g} at node (i, j, k) = {found.node}, (x, y, z) = "
            f"{format_vector(found.place)}: {found.what}",
            found.hint,
        )


def why_not_positive(block: Block, node: tuple[int, int, int]) -> tuple[str, str]:
    """Return (cause, advice) for an error message about a block whose Jacobian is not positive at `node` (i, j, k). The
    cause is that the block is flat, left-handed, collapsed or folded there, or that its spacing changes too fast."""
    extents = block.extents
    needed = len(block.active)
    flat = [axis for axis, extent in zip("xyz", extents, strict=True) if extent <= FLAT * max(extents)]
    if 3 - len(flat) < needed or any(axis in flat for axis in "xyz"[:needed]):
        return (
            f"the block is flat, all its nodes have one {' and one '.join(flat)}",
            "a grid of two dimensions lies in the plane x-y, with one node, or two equal planes, in one direction",
        )
    low, high = volume_extremes(block)
    if low == high == 0.0:
        return (
            f"an extent of {max(extents):.3g} is so small that volumes of cells are 0 in double precision",
            "take another unit of length: for a grid from a file, [grid] scale",
        )
    near = FLAT * max(abs(low), abs(high))
    if not high > near:
        some = "" if high < -near else ", some of its cells without volume"
        return (
            f"the whole block is left-handed{some}",
            f'reverse one of its index directions: [grid] reverse = ["{block.name}"] does that for a grid from a file',
        )
    k, j, i = (slice(max(n - REACH, 0), n + REACH + 1) for n in reversed(node))
    for d in block.active:
        step = np.sqrt(sum(np.diff(c[k, j, i], axis=2 - d) ** 2 for c in block.coordinates))
        if step.size and step.min() <= FLAT * max(extents):
            lines = [face for face in block.faces if collapsed_direction(block, face) is not None]
            lines.sort(key=lambda face: _layers_from(face, block.size, node))
            return (
                f"a grid line along {AXES[d]} has collapsed there, neighbouring nodes coincide",
                f"{lines[0]} has collapsed to a line: if the flow goes on across it, give it a [[boundary]] with type "
                f'= "pole"; {PAGE}'
                if lines
                else f"this is no pole: leave the collapsed nodes out, or end the block before them; {PAGE}",
            )
    box = slices(triple((max(n - REACH, 0), min(n + REACH + 1, m)) for n, m in zip(node, block.size, strict=True)))
    around = RawBlock(block.name, *block.at(box))
    folded = volume_extremes(around)[0] <= 0
    displaced = _find_displaced(block, node)
    # Along a single line, a jump of the spacing looks like a displaced node.
    if displaced is not None and (folded or len(block.active) > 1):
        where = "({}, {}, {})".format(*displaced)
        return (
            f"node {where} is out of its place: where its neighbours would have it, all cells there are sound",
            "correct that node in the grid file",
        )
    for d in block.active:
        if _turns_back(block, node, d):
            return (
                f"the grid line along {AXES[d]} turns back on itself there, the block is wrapped around a sharp edge",
                "cut the block there, or begin it off the edge; without an edge, correct the nodes of this line",
            )
    if not folded:
        coordinates = [np.asarray(x) for x in around.coordinates]
        ratio, d = max((float(_stretching(coordinates, d).max()), d) for d in block.active)
        jump = f"spacings along {AXES[d]} change by a factor of {ratio:.3g} from a cell to the next"
        bend = "grid lines bend sharply in the block, or cells of another size follow behind its face"
        what = jump if ratio > STEEPEST else bend
        return f"no cell is folded there, but {what}: differences of sixth order have the wrong sign", SMOOTH
    return "grid lines fold over each other there", "untangle the grid there"


def _find_displaced(block: Block, node: tuple[int, int, int]) -> tuple[int, int, int] | None:
    """Return the node near `node` that is displaced: along every grid line its neighbours suggest the same other
    position, with which the cells around it have a positive volume. None if there is no single such node."""
    box = triple((max(n - 2 * REACH, 0), min(n + 2 * REACH + 1, m)) for n, m in zip(node, block.size, strict=True))
    part = block.at(slices(box))
    wanted = np.stack([_from_neighbours(part, 3 - d) for d in block.active])
    middle = wanted.mean(axis=0)
    off = np.linalg.norm(part - middle, axis=0)
    agree = np.linalg.norm(wanted - middle, axis=1).max(axis=0) < AGREE * off
    # The displacement is measured in widths of cells, since stretched lines are extrapolated badly; with a single grid
    # line there is no agreement to check.
    share = AGREE if len(block.active) > 1 else 1.0
    agree &= off > share * np.min([_width(part, 3 - d) for d in block.active], axis=0)
    k, j, i = (int(n) for n in np.unravel_index(int(np.argmax(np.where(agree, off, -1.0))), off.shape))
    if not agree[k, j, i]:
        return None
    part[:, k, j, i] = middle[:, k, j, i]
    low, high = volume_extremes(RawBlock(block.name, *part))
    if not low > FLAT * high:
        return None
    return triple(n + first for n, (first, _) in zip((i, j, k), box, strict=True))


def _width(part: np.ndarray, axis: int) -> np.ndarray:
    """Return half the distance of the two neighbours of each node of `part` (3, nk, nj, ni) along one axis; at the ends
    the distance of the only neighbour."""
    n = part.shape[axis]
    low, high = (np.arange(n) - 1).clip(0), (np.arange(n) + 1).clip(max=n - 1)
    width: np.ndarray = np.linalg.norm(np.take(part, high, axis) - np.take(part, low, axis), axis=0)
    shape = [1, 1, 1]
    shape[axis - 1] = n
    return width / (high - low).reshape(shape)


def _from_neighbours(part: np.ndarray, axis: int) -> np.ndarray:
    """Return the positions of the nodes of `part` (3, nk, nj, ni) extrapolated from their neighbours along one axis:
    the middle of both. At the ends the two next nodes are extrapolated linearly."""
    n = part.shape[axis]
    low, high = np.arange(n) - 1, np.arange(n) + 1
    middle = (np.take(part, low.clip(0), axis) + np.take(part, high.clip(max=n - 1), axis)) / 2
    ends = [2 * np.take(part, [a], axis) - np.take(part, [b], axis) for a, b in ((1, 2), (n - 2, n - 3))]
    return np.concatenate([ends[0], np.take(middle, range(1, n - 1), axis), ends[1]], axis)


def _layers_from(face: str, size: tuple[int, int, int], node: tuple[int, int, int]) -> int:
    """Return the number of layers between a node and a face."""
    d = direction(face)
    return node[d] if side(face) < 0 else size[d] - 1 - node[d]


def _turns_back(block: Block, node: tuple[int, int, int], d: int) -> bool:
    """True if a grid line reverses its direction at a node within a block."""
    if not 0 < node[d] < block.size[d] - 1:
        return False
    behind, ahead = (tuple(n + s * (e == d) for e, n in enumerate(node)) for s in (-1, 1))
    here = block.node(*node)
    a, b = here - block.node(*behind), block.node(*ahead) - here
    return bool(a @ b < -TURNED * np.linalg.norm(a) * np.linalg.norm(b))


def volume_extremes(block: Block) -> tuple[float, float]:
    """Return the smallest and the largest signed volume of the cells of a block (in 2-D area, in 1-D length). Each is
    computed from the three edges at the cell's lower corner."""
    found = [bound for _, volume in _cell_volumes(block) for bound in (float(volume.min()), float(volume.max()))]
    return float(np.min(found)), float(np.max(found))


def folded_cells(block: Block) -> tuple[int, tuple[int, int, int]] | None:
    """Return the number of cells of a block with a negative volume (in 2-D area, in 1-D length), and the lower corner
    (i, j, k) of the first such cell; None if there is none."""
    least = -FLAT * volume_extremes(block)[1]
    count, node = 0, None
    for first, volume in _cell_volumes(block):
        if (bad := volume < least).any():
            count += int(bad.sum())
            k, j, i = (int(n) for n in np.argwhere(bad)[0])
            node = node or (i, j, k + first)
    return None if node is None else (count, node)


def _cell_volumes(block: Block) -> Iterator[tuple[int, np.ndarray]]:
    """Yield slabs of k of a block: (first k, volumes of its cells)."""
    first, overlap = 0, int(block.size[2] > 1)
    for nodes in slabs(block.x, block.y, block.z, overlap=overlap):
        cells = tuple(max(n - 1, 1) for n in nodes[0].shape)
        edges = [np.zeros((3, *cells)) for _ in range(3)]
        with np.errstate(over="ignore", invalid="ignore"):  # a file may contain any finite number
            for d in range(3):
                if d in block.active:
                    edges[d] = np.stack([np.diff(c, axis=2 - d)[tuple(map(slice, cells))] for c in nodes])
                else:
                    edges[d][d] = 1.0
            volume = _volume(edges)
        yield first, volume
        first += nodes[0].shape[0] - overlap


def hands(block: Block) -> str:
    """Return the handedness of a block, "right", "left" or "mixed", from the signs of its cell volumes. The result is
    "" for a curved or oblique surface (one whose z varies by more than 1e-6 of its extent), which has no handedness."""
    if len(block.active) == 2 and block.extents[2] > TOLERANCE * max(block.extents):
        return ""
    low, high = volume_extremes(block)
    near = 1e-12 * max(abs(low), abs(high))
    right, left = high > near, low < -near
    return "mixed" if right and left else "left" if left else "right"


def _note(
    found: dict[str, Any], name: str, block: Block, first: int, values: np.ndarray, smallest: bool = False
) -> None:
    """Store the extreme of `values` (nk', nj, ni), whose first k index is `first`, if it exceeds the one found
    before."""
    k, j, i = (int(m) for m in np.unravel_index((np.argmin if smallest else np.argmax)(values), values.shape))
    value = float(values[k, j, i])
    before = found[name]["value"] if name in found else None
    if before is None or (value < before if smallest else value > before):
        position = [float(m) for m in block.node(i, j, first + k)]
        found[name] = {"value": value, "node": [i, j, first + k], "position": position}


def _slabs(grid: Grid, b: int) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield slabs of k of a block: (first k, [d(x, y, z)/d(xi), d/d(eta), d/d(zeta)]), each (3, nk', nj, ni); unit
    vectors in singleton directions."""
    block = grid.blocks[b]
    ni, nj, nk = block.size
    ghosts = {face: _ghosts(grid, b, face) for face in block.faces}
    thickness = max(SLAB // (ni * nj), 1)
    for first in range(0, nk, thickness):
        last = min(first + thickness, nk)
        inner = block.at(slice(first, last))
        tangents = []
        for d in range(3):
            if d not in block.active:
                tangents.append(np.zeros_like(inner))
                tangents[d][d] = 1.0
                continue
            below, above = ghosts[FACES[2 * d]], ghosts[FACES[2 * d + 1]]
            if d == 2:
                lo, hi = max(first - REACH, 0), min(last + REACH, nk)
                middle = block.at(slice(lo, hi))
                parts = [below[:, min(first, REACH) :], middle, above[:, : max(last + REACH - nk, 0)]]
            else:
                parts = [below[:, first:last], inner, above[:, first:last]]
            extended = np.concatenate(parts, axis=3 - d)
            n = inner.shape[3 - d]
            terms = (c * extended[_window(d, m, n)] for m, c in enumerate(CENTRAL_DIFFERENCE) if c)
            tangents.append(np.asarray(sum(terms)))
        yield first, tangents


def _window(d: int, start: int, n: int) -> tuple[slice, ...]:
    return tuple(slice(start, start + n) if axis == 3 - d else slice(None) for axis in range(4))


def _ghosts(grid: Grid, b: int, face: str) -> np.ndarray:
    """Return the coordinates (3, ...) of the ghost layers behind a face that the difference reads, in ascending index
    order."""
    block, d = grid.blocks[b], direction(face)
    axis, n = 2 - d, block.size[d]
    if FACES.index(face) % 2:
        wall, mirror = [n - 1], np.arange(n - 2, n - 2 - REACH, -1)
    else:
        wall, mirror = [0], np.arange(REACH, 0, -1)
    ghosts = np.stack([2 * np.take(c, wall, axis) - np.take(c, mirror, axis) for c in block.coordinates])
    for c in grid.connections:
        if c.block == b and c.face == face:
            own = c.ghosts(REACH, block.size)
            donors = c.motion(grid.blocks[c.donor].node(*c.donors(own)))
            own[d] -= own[d].min()
            ghosts[:, own[2], own[1], own[0]] = donors
    return ghosts


def _volume(tangents: list[np.ndarray]) -> np.ndarray:
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = tangents
    return ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)


def _angle_and_aspect(lines: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest difference from 90 degrees of the angles between the tangents, and the ratio of the longest to
    the shortest tangent."""
    lengths = [np.sqrt(np.sum(t * t, axis=0)) for t in lines]
    angle = np.zeros(lengths[0].shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for m in range(len(lines)):
            for n in range(m):
                cosine = np.sum(lines[m] * lines[n], axis=0) / (lengths[m] * lengths[n])
                angle = np.fmax(angle, np.degrees(np.arcsin(np.minimum(np.abs(cosine), 1.0))))
        aspect = np.max(lengths, axis=0) / np.min(lengths, axis=0)
    return angle, np.where(np.isnan(aspect), np.inf, aspect)


def _stretching(nodes: list[np.ndarray], d: int) -> np.ndarray:
    """Return the ratio, 1 or more, of the two spacings beside each node along direction `d`, (nk, nj, ni); 1 at the
    ends and beside spacings that have collapsed."""
    axis = 2 - d
    step = np.sqrt(sum(np.diff(c, axis=axis) ** 2 for c in nodes))
    n = nodes[0].shape[axis]
    left, right = np.take(step, range(n - 2), axis=axis), np.take(step, range(1, n - 1), axis=axis)
    ratio = np.ones(nodes[0].shape)
    inner = tuple(slice(1, -1) if a == axis else slice(None) for a in range(3))
    long, short = np.maximum(left, right), np.minimum(left, right)
    np.divide(long, short, out=ratio[inner], where=short > FLAT * long)
    return ratio
