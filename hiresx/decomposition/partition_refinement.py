"""Local improvement of a partition: a part moves to another rank, or two ranks swap parts, as long as this reduces the
cost."""

from collections.abc import Sequence
from heapq import nsmallest
from math import prod

import numpy as np

from hiresx.decomposition.contacts import Boxes, Contacts
from hiresx.decomposition.rank_cost import CONTACT, EXCHANGE, excess, work

# Largest number of times that a part is examined.
PASSES = 6
# Number of boxes of another rank that are tried in an exchange.
EXCHANGED = 6
# Ranks with more than this fraction of the highest cost count as the most expensive ones.
EXPENSIVE = 0.97
TINY = 1e-9


class Refinement:
    """A search that improves the division of a grid among ranks by moving boxes of nodes between ranks. `boxes`: the
    boxes. `contacts`: the pairs of boxes that exchange ghosts. `rank` (n,): the rank of each box. `speed`: relative
    speeds of the ranks, with the mean 1."""

    def __init__(self, boxes: Boxes, contacts: Contacts, rank: np.ndarray, speed: Sequence[float] | np.ndarray):
        sizes = boxes.sizes.tolist()
        self._points, self._work = [prod(size) for size in sizes], [work(size) for size in sizes]
        # For each box the face nodes that it shares with every other box, and with all boxes of every rank. Nodes that
        # represent the cost of a contact are included.
        self._near: list[dict[int, float]] = [{} for _ in sizes]
        for to, source, _, nodes in zip(*(column.tolist() for column in contacts), strict=True):
            if to != source:
                for a, b in ((to, source), (source, to)):
                    self._near[a][b] = self._near[a].get(b, 0) + (nodes + CONTACT) / 2
        self._all = [sum(near.values()) for near in self._near]
        self.rank = [int(r) for r in rank]
        self._drawn: list[dict[int, float]] = [{} for _ in sizes]
        for drawn, near in zip(self._drawn, self._near, strict=True):
            for other, nodes in near.items():
                drawn[self.rank[other]] = drawn.get(self.rank[other], 0) + nodes
        self._speed = [float(s) for s in speed]
        self._ideal = sum(self._points) / len(self._speed)
        count = len(self._speed)
        self._held: list[set[int]] = [set() for _ in range(count)]
        self._load, self._nodes, self._remote = [0.0] * count, [0] * count, [0.0] * count
        for n, r in enumerate(self.rank):
            self._held[r].add(n)
            self._load[r] += self._work[n]
            self._nodes[r] += self._points[n]
            self._remote[r] += self._all[n] - self._drawn[n].get(r, 0)
        self._cost = [self._price(r, 0, 0, 0) for r in range(count)]

    def run(self) -> np.ndarray:
        """Move boxes of nodes between ranks, and exchange them, as long as this lowers the estimated cost, and return
        the resulting rank of each box, an integer array (n,)."""
        for _ in range(PASSES):
            highest = max(self._cost)
            steps = 0
            for n in sorted(range(len(self.rank)), key=lambda n: (-self._cost[self.rank[n]], n)):
                steps += self._step(n, highest)
            if not steps:
                break
        return np.array(self.rank)

    def _price(self, r: int, load: float, nodes: int, remote: float) -> float:
        """Return the cost of rank r with `load`, `nodes` and `remote` added."""
        over = excess(self._nodes[r] + nodes, self._ideal * self._speed[r])
        return (self._load[r] + load + over) / self._speed[r] + EXCHANGE * (self._remote[r] + remote)

    def _step(self, n: int, highest: float) -> bool:
        """Move box n to a rank that it touches, or from an expensive rank to the one with the lowest cost; or exchange
        it for a box of that rank."""
        own = self.rank[n]
        targets = set(self._drawn[n])
        if self._cost[own] > EXPENSIVE * highest:
            targets.add(min(range(len(self._cost)), key=self._cost.__getitem__))
        for to in sorted(targets - {own}):
            if len(self._held[own]) > 1 and self._better(n, None, own, to, highest):
                self._move(n, own, to)
                return True
            if len(self._held[own]) + len(self._held[to]) > 2:
                for m in self._loosest(to, own):
                    if self._better(n, m, own, to, highest):
                        self._move(n, own, to)
                        self._move(m, to, own)
                        return True
        return False

    def _loosest(self, rank: int, other: int) -> list[int]:
        """Return the boxes of a rank whose contacts with the rank `other` most exceed those with their own rank."""
        drawn = ((self._drawn[m].get(rank, 0) - self._drawn[m].get(other, 0), m) for m in self._held[rank])
        return [m for _, m in nsmallest(EXCHANGED, drawn)]

    def _better(self, n: int, m: int | None, own: int, to: int, highest: float) -> bool:
        """True if box n of rank `own` should be exchanged for box m of rank `to` (None: box n should be moved). This is
        so if the cost of one of the most expensive ranks falls, or if fewer bytes are sent while no cost exceeds the
        highest one."""
        mine, theirs = self._drawn[n], {} if m is None else self._drawn[m]
        between = 0 if m is None else self._near[n].get(m, 0)
        # Contacts of n with boxes of its own rank become remote; contacts with boxes of the other rank become local.
        more_own = 2 * mine.get(own, 0) - self._all[n]
        more_to = self._all[n] - 2 * mine.get(to, 0)
        if m is not None:
            more_own += self._all[m] - 2 * theirs.get(own, 0) + 2 * between
            more_to += 2 * theirs.get(to, 0) + 2 * between - self._all[m]
        more = more_own + more_to
        before = max(self._cost[own], self._cost[to])
        if more > -TINY and before <= EXPENSIVE * highest:
            return False
        load = self._work[n] - (0 if m is None else self._work[m])
        nodes = self._points[n] - (0 if m is None else self._points[m])
        after = max(self._price(own, -load, -nodes, more_own), self._price(to, load, nodes, more_to))
        if more < -TINY and after <= max(before, EXPENSIVE * highest):
            return True
        return before > EXPENSIVE * highest and after < before - TINY * highest

    def _move(self, n: int, own: int, to: int) -> None:
        self._remote[own] += 2 * self._drawn[n].get(own, 0) - self._all[n]
        self._remote[to] += self._all[n] - 2 * self._drawn[n].get(to, 0)
        for r, sign in ((own, -1), (to, 1)):
            self._load[r] += sign * self._work[n]
            self._nodes[r] += sign * self._points[n]
        self._held[own].remove(n)
        self._held[to].add(n)
        self.rank[n] = to
        for r in (own, to):
            self._cost[r] = self._price(r, 0, 0, 0)
        for other, nodes in self._near[n].items():
            drawn = self._drawn[other]
            drawn[to] = drawn.get(to, 0) + nodes
            drawn[own] -= nodes
            if drawn[own] <= 0:
                del drawn[own]
