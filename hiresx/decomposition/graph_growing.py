"""Partition by graph growing: a front grows through the graph of blocks, and blocks are assigned to the ranks in the
order in which it reaches them."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import prod

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.decomposition.contacts import Boxes, Neighbourhood, links_by_box
from hiresx.decomposition.rank_cost import CONTACT, IMBALANCE, capacity
from hiresx.decomposition.sections import Sections, sides_of
from hiresx.grid.blocks import Range

# Number of blocks from which parts grow.
SEEDS = 4
# Ratios that are tried: the thinnest piece of a block that a rank may take, divided by the thinnest piece that may be a
# part.
THIN = (0.25, 0.5, 0.9)


class GraphGrowing:
    """A search for a distribution of the nodes of several blocks over ranks by graph growing: the region of a rank
    grows from one box over neighbouring boxes. `boxes`: the blocks. `speed`: the relative speeds of the ranks, whose
    mean is 1. `least`: the smallest number of nodes of a box in each direction. `neighbourhood`: the connections of the
    blocks."""

    def __init__(self, neighbourhood: Neighbourhood, boxes: Boxes, speed: Sequence[float], least: int):
        self._boxes, self._speed, self._least = boxes, speed, least
        self._sizes: list[Size] = [triple(size) for size in boxes.sizes.tolist()]
        self._capacity = [capacity(size, least) for size in self._sizes]
        self._links = links_by_box(neighbourhood.contacts(boxes), len(self._sizes))
        # For each box the number of face nodes that it shares with each other box.
        self._near: list[dict[int, int]] = [{} for _ in self._sizes]
        for n, links in enumerate(self._links):
            for other, _, nodes in links:
                if other != n:
                    self._near[n][other] = self._near[n].get(other, 0) + nodes + CONTACT

    def partitions(self) -> Iterator[tuple[Boxes, np.ndarray]]:
        """Yield candidate distributions of the grid over the ranks, each as (boxes of nodes, rank of each box (n,)).
        They differ in the block from which the front grows through the grid, in whether ranks get blocks in this order
        or in the reverse order, and in how thin the boxes that are cut off a block may be."""
        for seed in self._seeds():
            order = self._order(seed)
            for thin in THIN:
                yield self._fill_ranks(order, thin)
                yield self._fill_ranks(order[::-1], thin)

    def _seeds(self) -> list[int]:
        """Return the largest box, and further boxes that are as far as possible from it and from each other."""
        seeds = [max(range(len(self._sizes)), key=lambda n: (prod(self._sizes[n]), -n))]
        while len(seeds) < min(SEEDS, len(self._sizes)):
            seeds.append(_farthest(self._near, seeds))
        return list(dict.fromkeys(seeds))

    def _order(self, seed: int) -> list[int]:
        """Return all boxes in order from `seed`. The next box is always the one that adds least to the surface of those
        before it."""
        surface = [sum(near.values()) for near in self._near]
        order: dict[int, None] = {}
        for start in (seed, *range(len(surface))):  # several if not all boxes are connected
            heap = [(surface[start], start)]
            while heap:
                added, n = heappop(heap)
                if n in order or added != surface[n]:
                    continue
                order[n] = None
                for other, nodes in self._near[n].items():
                    surface[other] -= 2 * nodes
                    heappush(heap, (surface[other], other))
        return list(order)

    def _fill_ranks(self, order: Sequence[int], thin: float) -> tuple[Boxes, np.ndarray]:
        """Assign the boxes to the ranks, both in their order. A box is cut where the share of a rank ends within it."""
        last, rank, held = len(self._speed) - 1, 0, 0
        left = sum(map(prod, self._sizes))  # nodes that earlier ranks have not taken
        room = sum(self._capacity)
        whole: list[int] = []
        ranges: list[Range] = []
        ranks: list[int] = []
        for n in order:
            room -= self._capacity[n]
            layer = self._least * prod(self._sizes[n]) / max(self._sizes[n])
            # Number of ranks that must begin in this box, because the remaining boxes are too small for them.
            due = max(0, last - rank - room)
            if held and rank < last and (self._due(rank, left) - held < thin * layer or due == self._capacity[n]):
                left, rank, held, due = left - held, rank + 1, 0, max(0, due - 1)
            shares = self._shares(n, rank, held, left, thin * layer)
            if len(shares) <= due:
                shares = [1.0] * (due + 1)
            for m, box in enumerate(self._cut(n, shares)):
                if m:
                    left, rank, held = left - held, rank + 1, 0
                held += prod(hi - lo for lo, hi in box)
                whole.append(int(self._boxes.whole[n]))
                ranges.append(box)
                ranks.append(rank)
        return Boxes(np.array(whole), np.array(ranges)), np.array(ranks)

    def _due(self, rank: int, left: float) -> float:
        """Return the number of nodes that the next rank should take of the `left` ones for it and the ranks behind
        it."""
        return left * self._speed[rank] / sum(self._speed[rank:])

    def _shares(self, n: int, rank: int, held: int, left: float, thinnest: float) -> list[float]:
        """Return the number of nodes of box `n` for `rank`, which has `held` nodes already, and for the ranks behind
        it."""
        rest = float(prod(self._sizes[n]))
        shares: list[float] = []
        room = self._due(rank, left) - held
        while rank < len(self._speed) - 1 and len(shares) < self._capacity[n] - 1:
            if rest <= room + max(IMBALANCE / 2 * (room + held), thinnest):
                break
            shares.append(room)
            rest, left, rank, held = rest - room, left - room - held, rank + 1, 0
            room = self._due(rank, left)
        return [*shares, rest]

    def _cut(self, n: int, shares: Sequence[float]) -> list[Range]:
        box: Range = triple((lo, hi) for lo, hi in self._boxes.ranges[n].tolist())
        size, count = self._sizes[n], len(shares)
        speed = [share * count / sum(shares) for share in shares]
        return Sections(speed, prod(size) / count, self._least).cut(box, 0, count, sides_of(size, n, self._links[n]))


def _farthest(near: Sequence[Mapping[int, int]], start: Sequence[int]) -> int:
    """Return the box that is reached last from the boxes `start`, or one that is not reached at all."""
    reached = dict.fromkeys(start)
    queue = list(start)
    for n in queue:
        fresh = [other for other in near[n] if other not in reached]
        reached |= dict.fromkeys(fresh)
        queue += fresh
    return next((n for n in range(len(near)) if n not in reached), queue[-1])
