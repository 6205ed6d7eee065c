"""Additional tiles that no criterion asks for. They fill gaps, so that tiles form fewer and larger blocks."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np

from hiresx.decomposition.refinement import joined_boxes

# Cost of a block as a number of nodes: the ends of its grid lines, its ghosts, its launches, and its share of a change
# of the levels (docs/refinement.md).
BLOCK = 400
# Number of passes in which blocks are joined. Two or three passes make nearly all joins.
PASSES = 4


def fill_tiles(lattice: Sequence[Sequence[int]], taken: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return the mask `taken` of the existing boxes of finer grid (tiles) of a block with some tiles added. Adjacent
    tiles are joined to boxes, and the added tiles reduce the number of these boxes. Each added tile lies in the
    bounding box of two boxes. Together the added tiles have fewer nodes than a fixed number (`BLOCK`) times the
    decrease of the number of boxes. All masks are boolean [k, j, i], with one entry for each possible tile. `taken`:
    the tiles that must exist. `allowed`: the tiles that may exist. `lattice`: three lists, along i, j and k, of the
    node indexes at which tiles begin and end.

    Boxes depend on the order in which they extend along the directions (`joined_boxes`). The order with the fewest
    boxes is taken. If several orders have the fewest, the tiles that any of them adds are added. The result therefore
    does not depend on which direction is called i, j or k."""
    # Between two evaluations of the criterion few levels change.
    ends = tuple(tuple(along) for along in lattice)
    return _fill_tiles(ends, taken.shape, taken.tobytes(), allowed.tobytes()).copy()


@lru_cache(maxsize=256)
def _fill_tiles(
    lattice: tuple[tuple[int, ...], ...], shape: tuple[int, ...], tiles: bytes, may_be: bytes
) -> np.ndarray:
    taken, allowed = (np.frombuffer(some, bool).reshape(shape) for some in (tiles, may_be))
    nodes, found = nodes_of_tiles(lattice), taken.copy()
    orders = [order for order in permutations(range(3)) if all(shape[a] > 1 or order[a] == a for a in range(3))]
    boxes = [_boxes(taken.transpose(order)) for order in orders]
    fewest = min(map(len, boxes))
    for order, own in zip(orders, boxes, strict=True):
        if len(own) == fewest > 1:
            turned = (some.transpose(order) for some in (nodes, taken, allowed))
            found.transpose(order)[...] |= _filled(own, *turned)
    return found


def _boxes(taken: np.ndarray) -> np.ndarray:
    """Return the boxes (n, 3, 2) that cover the tiles `taken` [k, j, i], as half-open ranges of tiles along i, j, k."""
    places = [range(n + 1) for n in reversed(taken.shape)]
    return np.array([*joined_boxes(places, taken)], np.int64).reshape(-1, 3, 2)


def _filled(boxes: np.ndarray, nodes: np.ndarray, taken: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return the mask `taken` of tiles, which `boxes` cover, with added tiles. `nodes`: the nodes of each tile."""
    for _ in range(PASSES):
        made = _join_boxes(nodes, taken, allowed, boxes)
        after = _boxes(made)
        if BLOCK * (len(boxes) - len(after)) <= nodes[made & ~taken].sum():
            break
        taken, boxes = made, after
    return taken


def nodes_of_tiles(lattice: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the number of nodes of every possible box of finer grid (tile) of a block, an integer array [k, j, i] with
    one entry for each tile. `lattice`: three lists, along i, j and k, of the node indexes at which tiles begin and end.
    """
    return np.asarray(np.einsum("k,j,i->kji", *(np.diff(ends) for ends in reversed(lattice))))


def _join_boxes(nodes: np.ndarray, taken: np.ndarray, allowed: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return the mask `taken` of tiles with further tiles: those in bounding boxes of two of `boxes` (n, 3, 2). The
    pairs that save most are joined first, and no tile is part of two joins. `nodes`: the number of nodes of each tile.
    """
    one, other = np.triu_indices(len(boxes), 1)
    low = np.minimum(boxes[one, :, 0], boxes[other, :, 0])
    high = np.maximum(boxes[one, :, 1], boxes[other, :, 1])
    most = BLOCK * len(boxes)  # a tile that is not allowed exceeds this number
    more = _sums(np.where(taken, 0, np.where(allowed, nodes, most)), low, high)
    near = more < most
    low, high, more = low[near], high[near], more[near]
    inside = (boxes[:, :, 0] >= low[:, None]).all(axis=2) & (boxes[:, :, 1] <= high[:, None]).all(axis=2)
    gain = BLOCK * (inside.sum(axis=1) - 1) - more
    made, begun = taken.copy(), np.zeros_like(taken)
    for n in np.argsort(-gain, kind="stable"):
        box = tuple(map(slice, low[n][::-1], high[n][::-1]))
        if gain[n] <= 0:
            break
        if not begun[box].any():
            made[box] = begun[box] = True
    return made


def _sums(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the sums (n,) of `values` (k, j, i) over the boxes from `low` to `high` (n, 3), along i, j, k."""
    total = np.pad(values.astype(np.int64).cumsum(0).cumsum(1).cumsum(2), ((1, 0),) * 3)
    found = np.zeros(len(low), np.int64)
    for corner in np.ndindex(2, 2, 2):
        at = [np.where(upper, last, first) for upper, first, last in zip(corner, low.T, high.T, strict=True)]
        found += (-1) ** (3 - sum(corner)) * total[tuple(reversed(at))]
    return found
