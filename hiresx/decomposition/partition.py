"""Partition of a grid: the blocks are cut into parts and distributed over the ranks, with balanced work and little
communication."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.plural import plural
from hiresx.decomposition.contacts import Boxes, Neighbourhood, boxes
from hiresx.decomposition.graph_growing import GraphGrowing
from hiresx.decomposition.partition_refinement import Refinement
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.rank_cost import SAME, capacity, costs
from hiresx.decomposition.sections import Sections, equal_parts, sides_of
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Range, format_size

# The cheapest partitions of several blocks are refined: at least 3, at most the first number, and as many as have about
# the second number of boxes in total.
REFINED, REFINED_BOXES = 12, 3000


@dataclass(frozen=True)
class Partition:
    """A division of the blocks among the ranks. `parts`: boxes of nodes, one or more for each rank, in the order of the
    ranks. `method`: how it was found: "grid" or "sections" for one block, "graph growing" for several blocks, or "whole
    blocks" for one rank. `costs` (ranks,): the estimated cost of each rank (`hiresx.decomposition.rank_cost`)."""

    parts: tuple[Part, ...]
    method: str
    costs: np.ndarray


def partition(decomposition: Decomposition, ranks: int, weights: Sequence[float] | None = None) -> tuple[Part, ...]:
    """Divide the blocks of a grid among MPI ranks, with balanced work and little communication. Returns boxes of nodes
    with their ranks, at least one for each rank, in the order of the ranks. `decomposition`: the blocks, not divided
    yet. `ranks`: the number of ranks. `weights`: the relative speeds of the ranks (None: all are equal); the number of
    nodes of a rank is proportional to its speed. Every box has at least as many nodes as the stencils of the run need
    (`least_nodes`) in each direction with more than one node. The same arguments give the same boxes.

    Raises HiresxError if there are more ranks than boxes of this size, and unless `weights` is None or has one positive
    number for each rank."""
    return best_partition(decomposition, ranks, weights).parts


def best_partition(decomposition: Decomposition, ranks: int, weights: Sequence[float] | None = None) -> Partition:
    """Return the division of the blocks among `ranks` MPI ranks with the lowest estimated cost, and how it was found.
    `decomposition`: the blocks, not divided yet. `weights`: the relative speeds of the ranks; None: all are equal.
    Raises HiresxError if there are more ranks than boxes that the stencils allow, and unless `weights` is None or has
    one positive number for each rank."""
    speed = _speed(ranks, weights)
    sizes = [block.size for block in decomposition.blocks]
    _check_room(decomposition, ranks)
    whole = boxes(decomposition.parts)
    neighbourhood = Neighbourhood(decomposition)
    if ranks == 1:
        return _make_partition("whole blocks", neighbourhood, whole, np.zeros(len(sizes), int), speed)
    least = decomposition.stencil.least_nodes
    if len(sizes) == 1:
        candidates = _of_one_block(neighbourhood, whole, speed, Sections(speed.tolist(), prod(sizes[0]) / ranks, least))
    else:
        candidates = _of_many_blocks(neighbourhood, whole, speed, least)
    found = [_make_partition(method, neighbourhood, made, rank, speed) for method, made, rank in candidates]
    cheapest = min(p.costs.max() for p in found)
    return min((p for p in found if p.costs.max() <= (1 + SAME) * cheapest), key=lambda p: round(p.costs.sum(), 6))


def _of_one_block(
    neighbourhood: Neighbourhood, whole: Boxes, speed: np.ndarray, sections: Sections
) -> Iterator[tuple[str, Boxes, np.ndarray]]:
    """Yield the methods for a grid of one block, the boxes that they make, and the rank of each box."""
    ranks = len(speed)
    box = triple((lo, hi) for lo, hi in whole.ranges[0].tolist())
    links = zip(*(column.tolist() for column in neighbourhood.contacts(whole)[1:]), strict=True)
    sides = sides_of(triple(hi - lo for lo, hi in box), 0, links)
    made = {"grid": equal_parts(box, ranks, sections.least, sides) if np.ptp(speed) == 0 else None}
    made["sections"] = sections.cut(box, 0, ranks, sides)
    for method, ranges in made.items():
        if ranges is not None:
            yield method, Boxes(np.zeros(ranks, int), np.array(ranges)), np.arange(ranks)


def _of_many_blocks(
    neighbourhood: Neighbourhood, whole: Boxes, speed: np.ndarray, least: int
) -> Iterator[tuple[str, Boxes, np.ndarray]]:
    """Yield the methods for a grid of several blocks, the boxes that they make, and the rank of each box."""
    found = list(GraphGrowing(neighbourhood, whole, speed.tolist(), least).partitions())
    price = [costs(made, neighbourhood.contacts(made), rank, speed).max() for made, rank in found]
    for n in np.argsort(price, kind="stable")[: max(3, min(REFINED, REFINED_BOXES // len(whole.whole)))]:
        made, rank = found[n]
        rank = Refinement(made, neighbourhood.contacts(made), rank, speed).run()
        yield "graph growing", *_merge_boxes(made, rank)


def _merge_boxes(made: Boxes, rank: np.ndarray) -> tuple[Boxes, np.ndarray]:
    """Merge boxes of the same block and rank where two of them together form a box."""
    groups: dict[tuple[int, int], list[Range]] = {}
    for r, whole, box in zip(rank.tolist(), made.whole.tolist(), made.ranges.tolist(), strict=True):
        groups.setdefault((r, whole), []).append(triple((lo, hi) for lo, hi in box))
    for group in groups.values():
        while found := next(((p, union) for p in combinations(group, 2) if (union := _union(*p))), None):
            pair, union = found
            for box in pair:
                group.remove(box)
            group.append(union)
    entries = sorted((r, whole, box) for (r, whole), group in groups.items() for box in group)
    ranks, wholes, ranges = zip(*entries, strict=True)
    return Boxes(np.array(wholes), np.array(ranges)), np.array(ranks)


def _union(a: Range, b: Range) -> Range | None:
    """Return the box that two boxes form together; None if they form none."""
    apart = [d for d in range(3) if a[d] != b[d]]
    if len(apart) != 1:
        return None
    (first, middle), (again, last) = sorted((a[apart[0]], b[apart[0]]))
    return triple((first, last) if d == apart[0] else a[d] for d in range(3)) if middle == again else None


def _make_partition(
    method: str, neighbourhood: Neighbourhood, made: Boxes, rank: np.ndarray, speed: np.ndarray
) -> Partition:
    entries = zip(rank.tolist(), made.whole.tolist(), made.ranges.tolist(), strict=True)
    parts = [Part(whole, triple((lo, hi) for lo, hi in box), r) for r, whole, box in sorted(entries)]
    return Partition(tuple(parts), method, costs(made, neighbourhood.contacts(made), rank, speed))


def check_weights(ranks: int, weights: Sequence[float] | None) -> None:
    """Raise HiresxError unless `weights`, the relative speeds of `ranks` ranks, is None or has one positive number for
    each rank."""
    _speed(ranks, weights)


def _speed(ranks: int, weights: Sequence[float] | None) -> np.ndarray:
    """Return the weights, scaled to the mean 1."""
    if ranks < 1:
        raise HiresxError(f"{ranks} ranks: there must be at least 1", "give the number of ranks")
    given = np.ones(ranks) if weights is None else np.array(weights, dtype=float)
    if given.shape != (ranks,) or not (np.isfinite(given) & (given > 0)).all():
        raise HiresxError(
            f"weights {', '.join(f'{w:g}' for w in given.ravel()[:8])}: not a positive number for each of {ranks} rank"
            + "s" * (ranks > 1),
            "give the speed of every rank, e.g. 1,1,4",
        )
    return given / given.mean()


def _check_room(decomposition: Decomposition, ranks: int) -> None:
    least = decomposition.stencil.least_nodes
    most = [capacity(block.size, least) for block in decomposition.blocks]
    if ranks <= sum(most):
        return
    makes = []
    for b in sorted(range(len(most)), key=lambda b: -most[b])[:3]:
        block = decomposition.blocks[b]
        size = format_size(block.size)
        cuts = " x ".join(str(block.size[d] // least) for d in block.active)
        makes.append(f"block '{block.name}' of {size} nodes makes {cuts}")
    more = f", {len(most) - 3} smaller ones the rest" if len(most) > 3 else ""
    raise HiresxError(
        f"{ranks} ranks are too many: the grid can be cut into {plural(sum(most), 'part')}. Each has "
        f"{least} nodes or more in every direction, so {', '.join(makes)}{more}",
        f"take {'1 rank' if sum(most) == 1 else f'{sum(most)} ranks or fewer'}, or a grid of more nodes",
    )
