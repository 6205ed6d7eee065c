"""A group of boxes in two halves, for two runs of ranks: grown box by box, so that little is exchanged between them."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush, nsmallest
from itertools import accumulate
from math import prod
from typing import NamedTuple

from hiresx.decomposition.rank_cost import CONTACT, EXCHANGE, IMBALANCE, PART, STEEP, capacity

# Boxes from which halves are grown, and the largest share of a half of whole boxes, if the ranks are not more uneven.
SEEDS = 4
# Boxes beside the next one that are tried for a cut.
TRIED = 3
LARGEST = 0.7

Size = tuple[int, int, int]
# Per box (other box, face, nodes) for every contact through which the box has ghosts.
Links = Mapping[int, Sequence[tuple[int, int, int]]]


class Cut(NamedTuple):
    """Box `box` is cut in direction `d`: `nodes` layers at its low or high end are of the first half."""

    box: int
    d: int
    nodes: int
    low: bool


class Half(NamedTuple):
    """The boxes of the first half, and one of which it has a piece. `price`: what this costs beyond an even share
    without exchange, in loads of a rank."""

    price: float
    boxes: frozenset[int]
    cut: Cut | None


class Grown:
    """A half while it grows: its boxes, their points, the parts that they can be cut into, and the face nodes between
    them and the others."""

    def __init__(self) -> None:
        self.boxes: set[int] = set()
        self.points = self.room = self.exchanged = 0

    def add(self, n: int, points: int, room: int, exchanged: int) -> None:
        self.boxes.add(n)
        self.points += points
        self.room += room
        self.exchanged += exchanged


class RankGroup:
    """The boxes of some ranks of given `speed`: indexes into `size` and `links`. Parts have `least` nodes in every
    direction."""

    def __init__(self, boxes: Sequence[int], size: Sequence[Size], links: Links, speed: Sequence[float], least: int):
        self._boxes, self._size, self._speed, self._least = boxes, size, speed, least
        self._points = {n: prod(size[n]) for n in boxes}
        self._whole = sum(self._points.values())
        self._capacity = {n: capacity(size[n], least) for n in boxes}
        self._ends = {n: [link for link in links[n] if link[0] in self._points] for n in boxes}
        self._near: dict[int, dict[int, int]] = {}
        for n in boxes:
            near = self._near[n] = {}
            for other, _, nodes in self._ends[n]:
                if other != n:
                    near[other] = near.get(other, 0) + nodes + CONTACT
        self._room = sum(self._capacity.values())
        self._sums = [0.0, *accumulate(speed)]
        # Each level of halving may use up its part of the imbalance that is allowed.
        self._allowed = IMBALANCE / max(1, (len(speed) - 1).bit_length())

    def best(self) -> tuple[int, Half] | None:
        """How many ranks the first half has, and the half; None when none found has room for a part on every rank."""
        found = [entry for seed in self._seeds() for entry in self._grow(seed)]
        return min(found, key=lambda entry: round(entry[1].price, 9), default=None)

    def _seeds(self) -> list[int]:
        """The largest box, and others as far from it and from each other as there are."""
        seeds = [max(self._boxes, key=lambda n: (self._points[n], -n))]
        while len(seeds) < min(SEEDS, len(self._boxes)):
            reached, front = set(seeds), seeds
            while front:
                last, front = front, []
                for n in last:
                    fresh = [other for other in self._near[n] if other not in reached]
                    reached.update(fresh)
                    front += fresh
            beyond = [n for n in self._boxes if n not in reached]
            seeds.append(beyond[0] if beyond else last[-1])
        return list(dict.fromkeys(seeds))

    def _grow(self, seed: int) -> Iterator[tuple[int, Half]]:
        """Halves grown from `seed`, always by the box that adds least to the exchange: of whole boxes, with as many
        ranks as suit them, and of half the ranks, with a box cut."""
        price = {n: sum(near.values()) for n, near in self._near.items()}
        heap = [(price[seed], seed)]
        others = iter(self._boxes)
        grown = Grown()
        goals = {at: self._whole * self._share(at) for at in self._even()}
        least = min(self._whole * (1 - LARGEST), *goals.values())
        most = max(self._whole * LARGEST, *goals.values())
        while grown.points < most and len(grown.boxes) < len(self._boxes):
            if not heap:
                fresh = next(n for n in others if n not in grown.boxes)
                heap.append((price[fresh], fresh))
            added, n = heappop(heap)
            if n in grown.boxes or added != price[n]:
                continue
            for at, goal in goals.items():
                if grown.points < goal < grown.points + self._points[n]:
                    for other in [n, *self._next(heap, price, grown)]:
                        yield from self._cut_halves(grown, other, at, goal)
            grown.add(n, self._points[n], self._capacity[n], added)
            if least * (1 - self._allowed) <= grown.points < self._whole:
                yield from self._whole_half(grown)
            for other, nodes in self._near[n].items():
                if other not in grown.boxes:
                    price[other] -= 2 * nodes
                    heappush(heap, (price[other], other))

    def _next(self, heap: list[tuple[int, int]], price: Mapping[int, int], grown: Grown) -> list[int]:
        """Boxes that could be taken next: where the first cannot be cut, or not where it should be, another can."""
        found = nsmallest(4 * TRIED, set(heap))
        return [n for added, n in found if n not in grown.boxes and added == price[n]][:TRIED]

    def _even(self) -> list[int]:
        """Numbers of ranks in the first of two halves of about as many ranks, or as much speed."""
        ranks = len(self._speed)
        fair = min(range(1, ranks), key=lambda at: abs(self._share(at) - 0.5))
        return sorted({ranks // 2, ranks - ranks // 2, fair})

    def _share(self, at: int) -> float:
        """What is due to the first `at` ranks, of 1."""
        return self._sums[at] / self._sums[-1]

    def _whole_half(self, grown: Grown) -> Iterator[tuple[int, Half]]:
        at = bisect_left(self._sums, self._sums[-1] * grown.points / self._whole)
        for ranks in (at - 1, at):
            if 0 < ranks < len(self._speed) and self._fits(grown.room, self._room - grown.room, ranks):
                price = self._price(grown.points, self._whole * self._share(ranks), grown.exchanged, False)
                yield ranks, Half(price, frozenset(grown.boxes), None)

    def _cut_halves(self, grown: Grown, n: int, at: int, goal: float) -> Iterator[tuple[int, Half]]:
        """The boxes of `grown` and an end of box `n`."""
        size, points, least = self._size[n], self._points[n], self._least
        rest = self._room - grown.room - self._capacity[n]
        for d in (2, 1, 0):
            if size[d] < 2 * least:
                continue
            area = points // size[d]
            nodes = min(max(round((goal - grown.points) / area), least), size[d] - least)
            halves = (tuple(m if e == d else size[e] for e in range(3)) for m in (nodes, size[d] - nodes))
            rooms = [capacity(half, least) for half in halves]
            if not self._fits(grown.room + rooms[0], rest + rooms[1], at):
                continue
            for low in (True, False):
                exchanged = grown.exchanged + area + CONTACT + self._crossing(grown.boxes, n, d, nodes, low)
                price = self._price(grown.points + nodes * area, goal, exchanged, True)
                yield at, Half(price, frozenset(grown.boxes), Cut(n, d, nodes, low))

    def _crossing(self, inside: set[int], n: int, d: int, nodes: int, low: bool) -> float:
        """What the exchange between the halves grows by when an end of box `n` joins the first, the cut aside."""
        grown = 0.0
        for other, face, count in self._ends[n]:
            share = nodes / self._size[n][d]
            if face // 2 == d:
                share = float((face % 2 == 0) == low)
            if other == n:
                grown += count / 2 * (face // 2 == d)
            elif other in inside:
                grown -= share * count
            else:
                grown += share * count
        return grown

    def _fits(self, first: int, second: int, at: int) -> bool:
        return first >= at and second >= len(self._speed) - at

    def _price(self, held: float, goal: float, exchanged: float, is_cut: bool) -> float:
        ranks = len(self._speed)
        over = max(held / goal, (self._whole - held) / (self._whole - goal)) - 1
        # The ranks at the boundary between the halves share the exchange.
        share = self._whole / ranks * (ranks / 2) ** (2 / 3)
        steep = STEEP * max(0.0, over - self._allowed)
        return over + steep + (EXCHANGE * exchanged + PART * is_cut) / share
