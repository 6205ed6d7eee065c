"""Blocks cut into pieces, and the pieces given to ranks by the graph partitioner METIS."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np

from hiresx.base import optional
from hiresx.base.arrays import triple
from hiresx.decomposition.contacts import Boxes, Contacts, Neighbourhood, links_by_box
from hiresx.decomposition.rank_cost import capacity
from hiresx.decomposition.sections import Sections, sides_of


def chop(neighbourhood: Neighbourhood, boxes: Boxes, ranks: int, fineness: float, least: int) -> Boxes:
    """Boxes of at most the nodes due to one of `ranks`, divided by `fineness`, as far as `least` nodes in every
    direction allow. There are never fewer boxes than ranks where there can be as many."""
    sizes = [tuple(size) for size in boxes.sizes.tolist()]
    ideal = sum(map(prod, sizes)) / ranks
    most = [capacity(size, least) for size in sizes]
    count = [min(m, max(1, -int(-prod(size) * fineness // ideal))) for m, size in zip(most, sizes, strict=True)]
    heap = [(-prod(size) / n, b) for b, (n, size) in enumerate(zip(count, sizes, strict=True)) if n < most[b]]
    heapify(heap)
    missing = ranks - sum(count)
    while missing > 0 and heap:
        _, b = heappop(heap)
        count[b], missing = count[b] + 1, missing - 1
        if count[b] < most[b]:
            heappush(heap, (-prod(sizes[b]) / count[b], b))

    links = links_by_box(neighbourhood.contacts(boxes), len(sizes))
    whole, ranges = [], []
    for b, (n, size) in enumerate(zip(count, sizes, strict=True)):
        box = triple((lo, hi) for lo, hi in boxes.ranges[b].tolist())
        cut = Sections([1.0] * n, prod(size) / n, least).cut(box, 0, n, sides_of(size, b, links[b]))
        ranges += cut
        whole += [int(boxes.whole[b])] * n
    return Boxes(np.array(whole), np.array(ranges))


def metis(boxes: Boxes, contacts: Contacts, speed: Sequence[float] | np.ndarray) -> np.ndarray | None:
    """The rank of each box as METIS finds it; None without pymetis or when a rank is left without a box."""
    pymetis = optional.import_or_none("pymetis")
    if pymetis is None:
        return None
    count, ranks = len(boxes.whole), len(speed)
    # An edge counts for both of its ends; METIS takes no loops.
    to, source, _, nodes = (column[contacts.to != contacts.source] for column in contacts)
    ends = np.concatenate([to * count + source, source * count + to])
    edges, place = np.unique(ends, return_inverse=True)
    weights = np.bincount(place, np.tile(nodes, 2)).astype(int)
    # Its integers have 32 bits.
    points = boxes.sizes.prod(axis=1)
    unit = 1 + points.sum() // 2**30
    starts = np.searchsorted(edges // count, np.arange(count + 1))
    _, found = pymetis.part_graph(
        ranks,
        pymetis.CSRAdjacency(starts.tolist(), (edges % count).tolist()),
        vweights=(-(-points // unit)).tolist(),
        eweights=weights.tolist(),
        tpwgts=(np.array(speed) / sum(speed)).tolist(),
        options=pymetis.Options(seed=1),
    )
    rank = np.array(found)
    return rank if len(np.unique(rank)) == ranks else None
