"""Quadrature weights of the nodes of walls with levels of refinement, where every place counts with its finest level.

As in `hiresx.decomposition.level_quadrature` an integral is that over the walls of the grid itself and, for every box
of cells of them that a level covers, the difference between the integral over the box on this level and that on the
level before. All of these have the weights of `hiresx.output.watch.wall_quadrature`. Nodes under a finer level give
their share to the node of the finest level at the same place, since friction and heat are known best there. So nodes
near the end of a level may have a negative share.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Decomposition
from hiresx.decomposition.level_quadrature import covered_cells
from hiresx.decomposition.levels import Levels
from hiresx.grid.blocks import Range, direction, directions_along, layer, rectangles, side
from hiresx.output.watch.wall_quadrature import FaceWeights, Place, Walls

# Weights below this value are rounding errors of 1 - 1.
_NOTHING = 1e-12


def level_wall_shares(
    decomposition: Decomposition, walls: Mapping[Place, np.ndarray]
) -> dict[Place, list[FaceWeights]]:
    """Return the quadrature weights of wall nodes of a grid with levels of refinement: for each (block, face) a list of
    `FaceWeights`. The first entry of a list has the weights and areas of all nodes. At an edge of the wall, a line at
    which its direction jumps, a node has an area on each side: a further entry has the areas on the other side, and
    weights that are 0 except at nodes on edges. Every part of the wall counts once, with its finest level; nodes under
    finer levels have the weight 0. `walls`: for each (block, face) of the unrefined grid the mask of its wall nodes, an
    array [k, j, i] without the axis normal to the face. `decomposition`: the blocks of all levels, not divided among
    ranks."""
    levels = decomposition.levels
    assert levels is not None
    of_tiles = {
        (n, face): _on_level(levels, n, face, nodes)
        for (base, face), nodes in walls.items()
        for level in range(levels.finest + 1)
        for n in levels.of(level, base)
        if _touches(levels, n, face)
    }
    lines = Walls(decomposition, of_tiles)
    found = _Sums()
    found.add(lines.shares(walls), 1)
    for (base, face), nodes in walls.items():
        cells = _cells(decomposition, base, face, nodes)
        for level in range(1, levels.finest + 1):
            for box in _covered_of_face(levels, level, base, face, cells):
                found.add(lines.shares(_parts(levels, level, base, face, box, 2)), 1)
                found.add(lines.shares(_parts(levels, level - 1, base, face, box, 1)), -1)
    return _moved(levels, found.of)


class _Sums:
    """Sums of quadrature weights, `of[place][sides]`: by the face of a block and the sides of edges
    (`Walls.shares`)."""

    def __init__(self) -> None:
        self.of: dict[Place, dict[tuple[int, ...], FaceWeights]] = {}

    def add(self, more: Mapping[Place, Mapping[tuple[int, ...], FaceWeights]], sign: int) -> None:
        """Add `sign` times the weights `more` to the sums."""
        for place, by_sides in more.items():
            own = self.of.setdefault(place, {})
            for sides, shares in by_sides.items():
                before = own[sides].weights if sides in own else 0.0
                own[sides] = shares._replace(weights=before + sign * shares.weights)


def _touches(levels: Levels, n: int, face: str) -> bool:
    """True if a face of a whole block lies on that face of its block of the grid."""
    tile, d = levels.tiles[n], direction(face)
    end = levels.spaces[tile.level, tile.base].size[d] if side(face) > 0 else 0
    return tile.box[d][side(face) > 0] == end


def _on_level(levels: Levels, n: int, face: str, nodes: np.ndarray) -> np.ndarray:
    """Mask of the nodes on a face of a whole block that lie on `nodes` of the grid, a mask, or between them."""
    tile, found = levels.tiles[n], nodes
    for axis, e in enumerate(directions_along(face)):
        per, (lo, hi) = 2**tile.level, tile.box[e]
        if nodes.shape[axis] == 1:
            continue
        place = np.arange(lo, hi)
        first, behind = place // per, -(-place // per)
        # Behind its last node a block continues in itself or in another block.
        wrap = levels.spaces[0, tile.base].wrapped[e]
        behind = np.where(behind < nodes.shape[axis], behind, 0 if wrap is not None else first)
        found = np.take(found, first, axis) & np.take(found, behind, axis)
    return found


def _cells(decomposition: Decomposition, base: int, face: str, nodes: np.ndarray) -> np.ndarray:
    """Mask of the cells of a face of the grid all of whose nodes are in the mask `nodes`: a cell lies behind its node,
    also behind the last one where the block goes on in itself."""
    levels, found = decomposition.levels, nodes
    assert levels is not None
    for axis, e in enumerate(directions_along(face)):
        n, wrap = nodes.shape[axis], levels.spaces[0, base].wrapped[e]
        if n == 1:
            continue
        last = n if wrap is not None and wrap.step == n else n - 1
        found = np.take(found, np.arange(last), axis) & np.take(found, np.arange(1, last + 1) % n, axis)
    return found


def _covered_of_face(levels: Levels, level: int, base: int, face: str, cells: np.ndarray) -> Iterator[Range]:
    """Boxes of cells of the level before, one thick, that a level covers on a face and that lie in `cells` of the face
    of the grid, a mask; none twice."""
    d, along = direction(face), directions_along(face)
    size, before = levels.spaces[level, base].size, levels.spaces[level - 1, base].size
    per = 2 ** (level - 1)
    named = [
        tuple(
            (lo, hi) if before[e] == 1 else (per * lo, per * hi) for e, (lo, hi) in zip(along, rectangle, strict=True)
        )
        for rectangle in rectangles(cells)
    ]
    boxes = next((boxes for boxes, _ in covered_cells(levels, level, base)), ())  # any cover is valid
    for box in boxes:
        if (2 * box[d][1] != size[d] - 1) if side(face) > 0 else (box[d][0] != 0):
            continue
        for rectangle in named:
            ends = [(max(box[e][0], lo), min(box[e][1], hi)) for e, (lo, hi) in zip(along, rectangle, strict=True)]
            if all(lo < hi for lo, hi in ends):
                there = dict(zip(along, ends, strict=True))
                yield triple(layer(face, before) if e == d else there[e] for e in range(3))


def _parts(levels: Levels, level: int, base: int, face: str, cells: Range, per: int) -> dict[Place, np.ndarray]:
    """Masks of the nodes of a level in a box of `cells` of a face, by the faces of its tiles. `per`: nodes of the level
    for each cell."""
    size, along = levels.spaces[level, base].size, directions_along(face)
    inside = [np.zeros(size[e], bool) for e in along]
    for line, e in zip(inside, along, strict=True):
        lo, hi = cells[e]
        line[np.arange(per * lo, per * hi + 1) % size[e] if size[e] > 1 else 0] = True
    found = {}
    for n in levels.of(level, base):
        if _touches(levels, n, face):
            box = levels.tiles[n].box
            own = [line[slice(*box[e])] for line, e in zip(inside, along, strict=True)]
            if all(line.any() for line in own):
                found[n, face] = np.logical_and.outer(*own)
    return found


# ---- nodes under finer levels


def _moved(
    levels: Levels, found: Mapping[Place, Mapping[tuple[int, ...], FaceWeights]]
) -> dict[Place, list[FaceWeights]]:
    """The shares of each place, of which those of nodes under a finer level went to the finest one."""
    made = {
        place: [s._replace(weights=np.where(np.abs(s.weights) < _NOTHING, 0.0, s.weights)) for s in by_sides.values()]
        for place, by_sides in found.items()
    }
    for n, face in sorted(made, key=lambda place: levels.tiles[place[0]].level):
        tile, own = levels.tiles[n], made[n, face]
        for other in levels.of(tile.level + 1, tile.base):
            ends = _same_nodes(levels, n, other, face) if (other, face) in made else None
            if ends is None:
                continue
            here, there = ends
            for m, shares in enumerate(own):
                given = shares.weights[here]
                if given.any():
                    made[other, face].append(_spread(made[other, face][0], there, given, shares.along[:, *here]))
                    left = shares.weights.copy()
                    left[here] = 0.0
                    own[m] = shares._replace(weights=left)
    return made


def _same_nodes(levels: Levels, n: int, other: int, face: str) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """The nodes on the face of a tile that lie at nodes of a tile of the next level, and these nodes, as NumPy indexes
    [k, j, i] without the direction of the face; None if there are none."""
    box, finer = levels.tiles[n].box, levels.tiles[other].box
    here, there = [], []
    for e in directions_along(face):
        (own, own_end), (lo, hi) = box[e], finer[e]
        if levels.spaces[0, levels.tiles[n].base].size[e] == 1:
            first, last = 0, 1
        else:
            first, last = max(own, -(-lo // 2)), min(own_end, -(-hi // 2))
        if first >= last:
            return None
        here.append(slice(first - own, last - own))
        there.append(slice(2 * first - lo, 2 * last - 1 - lo, 2))
    return tuple(here), tuple(there)


def _spread(like: FaceWeights, there: tuple[slice, ...], given: np.ndarray, areas: np.ndarray) -> FaceWeights:
    """Quadrature of a face like that of `like`, whose nodes `there` have these `given` weights and `areas`."""
    weights, along = np.zeros_like(like.weights), np.zeros_like(like.along)
    weights[there] = given
    along[:, *there] = areas
    return FaceWeights(weights, along, along)
