"""Ghosts of patched faces: their positions in other blocks, and the nodes of the parts from which they are
interpolated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.halo_copies import flat_index
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Range, direction, face_range, intersection, rectangles_of_face, side
from hiresx.grid.motions import format_vector
from hiresx.grid.patched import BEYOND, PATCHED, WIDTH, BlockMap, nearest_nodes, wraps

# Largest distance of a node of a patched face from the donor's face, in cells of the donor.
OFF = 0.5
# Stride of the nodes of a face among which the nearest one is chosen as the start of Newton's method.
SEEDS = 3
Coordinates = Sequence[np.ndarray]


@dataclass(frozen=True, eq=False)
class PatchedDonors:
    """The ghosts of a patched face (which touches other blocks without common nodes), and the positions at which they
    take their values. `place`: the number of the boundary patch. `index` (3, n): indexes i, j, k of the ghosts in their
    block, layer by layer. `donor` (n,): the number of the block in which each position lies. `xi` (n, 3): the position
    as fractional indexes i, j, k of this block. Blocks are those before the division among ranks. `off`: the largest
    distance of a node of the face from the face of the donor, in cells of the donor. `beyond`: the largest distance of
    a ghost that lies beyond the last nodes of the donor, in cells."""

    place: int
    index: np.ndarray
    donor: np.ndarray
    xi: np.ndarray
    off: float
    beyond: float

    per = 1  # places for each ghost

    @property
    def count(self) -> int:
        """Number of ghost nodes of the patched face."""
        return self.index.shape[1]


def shape_maps(whole: Decomposition) -> list[BlockMap]:
    """Return, for each block, a `BlockMap` without coordinates, which suffices for interpolation at known fractional
    indexes: its methods `base` (first nodes of a stencil) and `weights` depend only on the shape of the block. The
    methods that compute or search coordinates must not be called. `whole`: the blocks, not divided among ranks."""
    halo = whole.stencil.halo
    none = (np.empty((2 * halo + 1,) * 3),) * 3
    return [BlockMap(block, none, halo, wraps(block, b, whole.connections)) for b, block in enumerate(whole.blocks)]


def block_maps(whole: Decomposition, extended: Sequence[Coordinates | GhostLayers]) -> list[BlockMap]:
    """Return, for each block, the map from fractional indexes (i, j, k) to coordinates (x, y, z), and back. `whole`:
    the blocks, not divided among ranks. `extended`: their coordinates with ghosts (`extended_coordinates`)."""
    here, halo = _in_memory(extended), whole.stencil.halo
    return [BlockMap(block, here[b], halo, wraps(block, b, whole.connections)) for b, block in enumerate(whole.blocks)]


def find_donors(whole: Decomposition, extended: Sequence[Coordinates | GhostLayers]) -> list[PatchedDonors]:
    """Find the positions of the ghosts of all patched faces in the neighbouring blocks, from which the ghosts are
    interpolated. (A patched face touches other blocks without common nodes.) `whole`: the blocks, not divided among
    ranks. `extended`: their coordinates with ghosts (`extended_coordinates`). Raises HiresxError naming the first face
    node behind which there is no other block."""
    places = [n for n, patch in enumerate(whole.patches) if patch.condition.type == PATCHED]
    if not places:
        return []
    here, maps = _in_memory(extended), block_maps(whole, extended)
    return [_find_donors(whole, here, maps, place) for place in places]


def find_interpolable(
    whole: Decomposition, extended: Sequence[Coordinates | GhostLayers]
) -> list[tuple[Patch, list[Range]]]:
    """Return, for every patched face (a face that touches other blocks without common nodes), the face nodes behind
    which all ghosts can be interpolated in another block, as disjoint half-open index ranges. `whole`: the blocks, not
    divided among ranks. `extended`: their coordinates with ghosts."""
    places = [n for n, patch in enumerate(whole.patches) if patch.condition.type == PATCHED]
    found = []
    here, maps = _in_memory(extended), block_maps(whole, extended)
    for patch, search in ((whole.patches[n], _search(whole, here, maps, n)) for n in places):
        fits = (search.best <= BEYOND).all(axis=0) & (search.off <= OFF)
        found.append((patch, rectangles_of_face(patch.face, patch.range, fits)))
    return found


def layers_behind(face: str, range_: Range, layers: Sequence[int]) -> np.ndarray:
    """Return the indexes i, j, k, (3, layers, n), of ghost layers behind a part of a block face. `range_`: half-open
    index ranges of the nodes on `face`. `layers`: the numbers of the layers; layer 0 is the face itself."""
    d, (ni, nj, nk) = direction(face), (hi - lo for lo, hi in range_)
    index = np.empty((3, len(layers), nk, nj, ni), int)
    for e, (lo, hi) in enumerate(range_):
        index[e] = np.arange(lo, hi).reshape([-1 if axis == 2 - e else 1 for axis in range(3)])
    index[d] += side(face) * np.reshape(layers, (-1, 1, 1, 1))
    return index.reshape(3, len(layers), -1)


def _in_memory(extended: Sequence[Coordinates | GhostLayers]) -> list[Coordinates]:
    """Return the coordinates, which are all in memory: `hiresx.decomposition.patches` rejects other blocks with patched
    faces."""
    found = [coordinates for coordinates in extended if not isinstance(coordinates, GhostLayers)]
    assert len(found) == len(extended)
    return found


@dataclass(frozen=True, eq=False)
class _Search:
    """Search for the nodes of a patched face and its ghosts, (halo + 1, n): `best`, cells beyond the last nodes of the
    nearest block; `donor` and `xi` (..., 3), that block and the place there; `off` (n,), cells off its face."""

    index: np.ndarray
    best: np.ndarray
    donor: np.ndarray
    xi: np.ndarray
    off: np.ndarray


def _search(whole: Decomposition, extended: Sequence[Coordinates], maps: Sequence[BlockMap], place: int) -> _Search:
    patch = whole.patches[place]
    block, halo = whole.blocks[patch.block], whole.stencil.halo
    index = layers_behind(patch.face, patch.range, range(halo + 1))
    dimensions = len(block.active)
    i, j, k = (index[d] + halo for d in range(3))
    points = np.stack([c[k, j, i] for c in extended[patch.block][:dimensions]], axis=-1)
    count = points.shape[1]
    best = np.full((halo + 1, count), np.inf)
    donor = np.full((halo + 1, count), -1)
    xi = np.zeros((halo + 1, count, 3))
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    for b, other in enumerate(maps):
        if other.dimensions != dimensions:
            continue
        nodes = np.stack([np.ravel(c) for c in (other.block.x, other.block.y, other.block.z)[:dimensions]], axis=1)
        room = 0.1 * (high - low).max() + np.abs(points[1] - points[0]).max()
        if (nodes.min(axis=0) > high + room).any() or (nodes.max(axis=0) < low - room).any():
            continue
        at = _nearest_on_faces(other, points[1], skip=patch.face if b == patch.block else None)
        at = first = other.locate(points[1], at)[0]
        for layer in range(halo + 1):  # each search starts at the result for the previous node
            at, found = other.locate(points[layer], first if layer == 1 else at)
            beyond = np.where(found, other.beyond(at), np.inf)
            if layer == 0 and b == patch.block:  # not in its own block near its own index
                beyond[np.abs(at - index[:, 0].T).max(axis=1) < 1] = np.inf
            better = beyond < best[layer] - 1e-9
            best[layer][better], donor[layer][better], xi[layer][better] = beyond[better], b, at[better]
    sizes = np.array([m.block.size for m in maps])[donor[0]]
    ends = np.minimum(np.abs(xi[0]), np.abs(sizes - 1 - xi[0]))
    depth = np.where(sizes > 1, ends, np.inf).min(axis=1)
    return _Search(index, best, donor, xi, np.maximum(depth, best[0]))


def _find_donors(
    whole: Decomposition, extended: Sequence[Coordinates], maps: Sequence[BlockMap], place: int
) -> PatchedDonors:
    patch, search = whole.patches[place], _search(whole, extended, maps, place)
    index, best, donor, xi, off = search.index, search.best, search.donor, search.xi, search.off
    _check(whole, patch, index[:, 0], best)
    if (off > OFF).any():
        n = int(np.argmax(off > OFF))
        what = f"lies inside block '{whole.blocks[donor[0][n]].name}', not on a face of it"
        raise _fault(whole, patch, index[:, 0, n], what)
    return PatchedDonors(
        place, index[:, 1:].reshape(3, -1), donor[1:].ravel(), xi[1:].reshape(-1, 3), float(off.max()),
        float(best[1:].max()),
    )  # fmt: skip


def _check(whole: Decomposition, patch: Patch, face: np.ndarray, best: np.ndarray) -> None:
    for layer in range(len(best)):
        bad = best[layer] > BEYOND
        if bad.any():
            what = (
                "lies on no other block" if layer == 0 else f"has no other block behind it, {layer} of its steps away"
            )
            raise _fault(whole, patch, face[:, np.argmax(bad)], what)


def _fault(whole: Decomposition, patch: Patch, node: np.ndarray, what: str) -> HiresxError:
    i, j, k = (int(m) for m in node)
    block = whole.blocks[patch.block]
    return HiresxError(
        f"block '{block.name}', face {patch.face}, patched: node (i, j, k) = ({i}, {j}, {k}), (x, y, z) = "
        f"{format_vector(block.node(i, j, k))}, {what}",
        "give `patched` only the nodes that lie on another block (`range`), close gaps and overlaps, and let blocks "
        f"be as thick as {whole.stencil.halo} steps of their neighbour",
    )


def _nearest_on_faces(other: BlockMap, points: np.ndarray, skip: str | None) -> np.ndarray:
    """Return positions (n, 3) of nodes on faces of a block that are near to points (n, dimensions)."""
    index = []
    for face in other.block.faces:
        if face != skip:
            lines = [np.arange(lo, hi, SEEDS) for lo, hi in face_range(face, other.block.size)]
            index.append(np.stack(np.meshgrid(*lines, indexing="ij")).reshape(3, -1))
    return nearest_nodes(other.block, np.concatenate(index, axis=1), points)


@dataclass(frozen=True, eq=False)
class Rows:
    """Contributions of the nodes of one part of the grid to interpolated ghost values. The value of a ghost is the sum
    of the contributions of all parts.

    `part`: the number of the part. `ghost` (n,): the numbers of the ghosts. `start` (n,): flat index of the first node
    in the array with ghosts of the part. `widths`: the number of nodes in each direction. `weights` (2, 3, WIDTH, n):
    the weights along i, j and k, first of the interpolation of high order, then of linear interpolation, none of which
    is negative. `turn` (n, 3, 3): the matrix by which vectors are multiplied; None for the unit matrix."""

    part: int
    ghost: np.ndarray
    start: np.ndarray
    widths: tuple[int, int, int]
    weights: np.ndarray
    turn: np.ndarray | None = None

    def weights_of(self, chosen: np.ndarray) -> np.ndarray:
        """Return the interpolation weights (2, 3, 6, m) of m of the n contributions: weights of high order, then
        weights of linear interpolation, each along i, j and k, for the six nodes of a stencil. `chosen` (m,): the
        indexes of the m contributions among the n, ascending."""
        return self.weights if len(chosen) == len(self.ghost) else self.weights[..., chosen]


def interpolation_rows(
    whole: Decomposition, cut: Decomposition, maps: Sequence[BlockMap], donor: np.ndarray, xi: np.ndarray
) -> Iterator[Rows]:
    """Yield the nodes and weights with which each part of the grid contributes to n interpolated ghost values. `whole`:
    the blocks of the grid. `cut`: the blocks after their division into parts for the ranks. `maps`: the map from
    fractional indexes to coordinates of each whole block. `donor` (n,): the number of the whole block in which each
    ghost lies. `xi` (n, 3): the fractional indexes i, j, k of the ghost in this block."""
    prepared = {}
    for b in np.unique(donor):
        at = np.flatnonzero(donor == b)
        base = maps[b].base(xi[at])
        prepared[int(b)] = at, base, np.stack([maps[b].weights(xi[at], base)[0], linear(xi[at], base)])
    for p, part in enumerate(cut.parts):
        if part.whole not in prepared:
            continue
        at, base, weights = prepared[part.whole]
        wrapped, size = maps[part.whole].wrapped, whole.blocks[part.whole].size
        for turn in product(*((0, -1, 1) if w else (0,) for w in wrapped)):
            step = np.array([t * w.step if w else 0 for t, w in zip(turn, wrapped, strict=True)])
            made = share(base, weights, size, part.box, turn, step)
            if made is not None:
                chosen, start, widths, own = made
                flat = flat_index(start.T, cut.blocks[p], cut.stencil.halo)
                yield Rows(p, at[chosen], flat, widths, own)


def linear(xi: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Return the weights (n, 3, 6) of linear interpolation between the two nearest nodes of six-node stencils. None is
    negative. `xi` (n, 3): positions as fractional indexes i, j, k. `base` (n, 3): the first nodes of the stencils."""
    t = np.clip(xi - base, 0, WIDTH - 1)
    return np.maximum(0, 1 - np.abs(t[..., None] - np.arange(WIDTH)))


def share(
    base: np.ndarray,
    weights: np.ndarray,
    size: Size,
    box: Range,
    turn: Sequence[int] = (0, 0, 0),
    step: Sequence[int] | np.ndarray = (0, 0, 0),
) -> tuple[np.ndarray, np.ndarray, Size, np.ndarray] | None:
    """Restrict n interpolations in a block to the nodes of `box`, half-open index ranges (i, j, k) of the block. Each
    interpolation has a stencil of six nodes along each direction. `base` (n, 3): indexes i, j, k of the first nodes of
    the stencils. `weights` (2, n, 3, 6): weights of high order, then linear ones, along i, j, k, for the six nodes.
    `size`: (ni, nj, nk) of the block.

    Returns None if no stencil has nodes in the box. Otherwise returns four results for the m interpolations whose
    stencils do: their positions among the n (m,); the first nodes of their stencils, counted from the first node of the
    box (m, 3); the numbers of nodes of a stencil along i, j, k; and the weights (2, 3, 6, m), which are 0 for nodes
    outside the box.

    `turn` and `step` are for blocks that close on themselves, as O-grids do. The stencils of such a block may extend
    beyond its ends. Along each direction, `turn` says which nodes of the stencils are considered: 0 those within the
    block, -1 those before its first node, and 1 those behind its last node. Node m of a stencil outside the block is
    identical with node m - `step` of the block, so `step` has the sign of `turn`."""
    keep = np.ones(len(base), dtype=bool)
    starts, parts, widths = np.zeros_like(base), [], []
    for d, (lo, hi) in enumerate(box):
        width = WIDTH if size[d] > 1 else 1
        if size[d] == 1 and not turn[d] and (lo, hi) == (0, 1) and not base[:, d].any():
            parts.append(weights[:, :, d])  # a single node, which all interpolations use
            widths.append(width)
            continue
        node = base[:, d, None] + np.arange(WIDTH)
        inside = {0: (node >= 0) & (node < size[d]), -1: node < 0, 1: node >= size[d]}[turn[d]]
        image = node - step[d]
        inside &= (image >= lo) & (image < hi)
        inside &= np.arange(WIDTH) < width
        keep &= inside.any(axis=1)
        starts[:, d] = np.clip(base[:, d] - step[d] - lo, 0, hi - lo - width)
        # the position in the window that begins at `starts`
        shift = base[:, d] - step[d] - lo - starts[:, d]
        source = np.arange(WIDTH) - shift[:, None]
        valid = (source >= 0) & (source < WIDTH)
        source = np.clip(source, 0, WIDTH - 1)
        valid &= np.take_along_axis(inside, source, axis=1)
        moved = np.take_along_axis(weights[:, :, d], np.broadcast_to(source, weights[:, :, d].shape), axis=2)
        parts.append(np.where(valid, moved, 0.0))
        widths.append(width)
    chosen = np.flatnonzero(keep)
    if not chosen.size:
        return None
    own = np.stack(parts, axis=1)[:, :, chosen].transpose(0, 1, 3, 2)
    return chosen, starts[chosen], triple(widths), np.ascontiguousarray(own)


def targets(
    whole: Decomposition, cut: Decomposition, found: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the values of m interpolated ghosts are stored, as three integer arrays (m,): the number of the part
    of the grid, the flat index in the array with ghosts of this part, and the direction (0, 1, 2) normal to the face in
    front of the ghost. `whole`: the blocks of the grid. `cut`: the blocks after their division into parts for the
    ranks. `found`: objects with the attributes `place`, the number of a boundary patch, and `index` (3, n), the indexes
    i, j, k, in the whole block, of the ghosts behind the patch. The ghosts of one object follow those of the other."""
    part, flat, along = [], [], []
    of_block: dict[int, list[int]] = {}
    for p, piece in enumerate(cut.parts):
        of_block.setdefault(piece.whole, []).append(p)
    for entry in found:
        patch = whole.patches[entry.place]
        of, at = np.full(entry.index.shape[1], -1), np.zeros(entry.index.shape[1], dtype=np.int32)
        d = direction(patch.face)
        for p in of_block[patch.block]:
            box = cut.parts[p].box
            mine: Any = slice(None)
            if intersection(box, patch.range) != patch.range:  # most parts contain the whole face
                face, ends = entry.index.copy(), np.array(box)
                face[d] = patch.range[d][0]
                mine = ((face >= ends[:, :1]) & (face < ends[:, 1:])).all(axis=0)
            of[mine] = p
            first = [(lo,) for lo, _ in box]
            at[mine] = flat_index(entry.index[:, mine] - first, cut.blocks[p], cut.stencil.halo)
        part.append(of)
        flat.append(at)
        along.append(np.full(len(of), d))
    return np.concatenate(part), np.concatenate(flat), np.concatenate(along)
