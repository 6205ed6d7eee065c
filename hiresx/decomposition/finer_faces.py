"""The connection or boundary condition of each face node of a finer level, which follows from the coarser level.

A node of a finer level coincides with a node of the coarser level, or lies halfway between two or four of them. A node
halfway between a boundary condition and a connection belongs to the connection, so that a wall ends with the same node
on both levels. Likewise a no-slip wall ends with its last node where another condition begins. The connection along the
edge of a step between walls has only nodes of the edge itself. Between two conditions of one kind the node belongs to
the one with the lower index, and likewise between two connections, if the donor of that one has the node.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hiresx.base.arrays import triple
from hiresx.grid.blocks import Range, direction, intersection, layer, rectangles_of_face, slices, whole_box
from hiresx.grid.cutting import image

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Patch
    from hiresx.grid import Connection

Size = tuple[int, int, int]


def finer_range(range_: Range, face: str, size: Size, before: bool = False) -> Range:
    """Return the node ranges of a part of a block face on the next finer level of refinement. The result contains the
    nodes of `range_` and the nodes halfway to the next nodes of the face. If `before` is true, it also contains the
    nodes halfway to the previous ones. `range_`: half-open index ranges (i, j, k) on the coarser level. `size`: (ni,
    nj, nk) of the block on the finer level."""
    d = direction(face)
    return triple(
        layer(face, size) if e == d else (0, 1) if size[e] == 1 else (max(2 * lo - before, 0), min(2 * hi, size[e]))
        for e, (lo, hi) in enumerate(range_)
    )


def finer_ranges(
    connections: "Sequence[Connection]",
    patches: "Sequence[Patch]",
    step_edges: "Sequence[Patch]",
    sizes: Sequence[Size],
) -> tuple[list[list[Range]], list[list[Range]], list[list[Range]]]:
    """Return which face nodes of a finer level of refinement belong to each of the `connections`, to each of the
    boundary `patches` and to each of the `step_edges` of the next coarser level (`Decomposition`): three lists of lists
    of half-open index ranges. A patch with the same range of nodes as a connection is also treated as an edge of a
    step. `sizes`: (ni, nj, nk) of the blocks on the finer level. An entry has several ranges if its nodes do not form
    one range."""
    all_patches = [*patches, *step_edges]
    of_patches = {(p.block, p.face, p.range): n for n, p in enumerate(all_patches)}
    # An edge is divided with the other nodes of the face once, as a connection.
    edges = [of_patches.get((c.block, c.face, c.range)) for c in connections]
    own = [n for n in range(len(all_patches)) if n not in edges]
    both: list[Connection | Patch] = [*connections, *(all_patches[n] for n in own)]
    found: list[list[Range]] = [[finer_range(of.range, of.face, sizes[of.block])] for of in both]
    rank = [0 if edge is None else 3 for edge in edges]
    rank += [2 if all_patches[n].condition.kernel == "no_slip" else 1 for n in own]
    on_face: dict[tuple[int, str], list[int]] = {}
    for n, of in enumerate(both):
        on_face.setdefault((of.block, of.face), []).append(n)
    for (b, face), some in on_face.items():
        possible = [_possible(connections[n], sizes) if n < len(connections) else whole_box(sizes[b]) for n in some]
        has_all = all(intersection(found[n][0], box) == found[n][0] for n, box in zip(some, possible, strict=True))
        if len({rank[n] for n in some}) > 1 or not has_all:
            ranked = [(rank[n], both[n].range, box) for n, box in zip(some, possible, strict=True)]
            made = _divide_nodes(face, sizes[b], ranked)
            for n, ranges in zip(some, made, strict=True):
                found[n] = ranges
    of_place = dict(zip([*edges, *own], found, strict=True))
    of_all = [of_place[n] for n in range(len(all_patches))]
    return found[: len(connections)], of_all[: len(patches)], of_all[len(patches) :]


def _possible(c: "Connection", sizes: Sequence[Size]) -> Range:
    """Return the nodes of a finer level that a connection can join to nodes of its donor. `sizes`: (ni, nj, nk) of the
    blocks on the finer level."""
    back, d = np.array(c.matrix).T, direction(c.face)
    box = image(whole_box(sizes[c.donor]), back.tolist(), (-2 * back @ c.offset).tolist())
    return triple((0, sizes[c.block][d]) if e == d else ends for e, ends in enumerate(box))


def _divide_nodes(face: str, size: Size, ranked: Sequence[tuple[int, Range, Range]]) -> list[list[Range]]:
    """Return the nodes of a face of a finer level for each of its (rank, range, nodes that it can have). Nodes between
    two ranges belong to the one of lower rank."""
    d = direction(face)
    whole: Range = triple(layer(face, size) if e == d else (0, n) for e, n in enumerate(size))
    shape = [hi - lo for lo, hi in reversed(whole)]
    holder, held = np.full(shape, -1), np.full(shape, -1)
    for rank in sorted({rank for rank, *_ in ranked}, reverse=True):
        for before in (True, False):
            for n, (own, range_, possible) in enumerate(ranked):
                if own == rank:
                    box = intersection(finer_range(range_, face, size, before), possible)
                    assert box is not None  # the donor has the nodes of the coarser level
                    at = slices(triple((0, 1) if e == d else ends for e, ends in enumerate(box)))
                    # The nodes before a range belong to another range of the same kind.
                    free = (held[at] != rank) | (not before)
                    holder[at], held[at] = np.where(free, n, holder[at]), rank
    return [rectangles_of_face(face, whole, holder == n) for n in range(len(ranked))]
