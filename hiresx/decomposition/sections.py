"""Division of one box of nodes among several ranks: repeated cuts into sections, such that the cost is least."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, product
from math import prod

from hiresx.base.arrays import prime_factors, triple
from hiresx.decomposition.rank_cost import CONTACT, EXCHANGE, LINE, SAME, capacity, excess, work
from hiresx.grid.blocks import Range

# For each direction: the fractions of the low and of the high face that touch nodes of other ranks, and the fraction of
# the faces that is connected with the box's own opposite end. The latter costs nothing unless the direction is cut.
Sides = tuple[tuple[float, float, float], ...]
Size = tuple[int, int, int]
CLOSED: Sides = ((0.0, 0.0, 0.0),) * 3

# Largest number of ranks for which every direction is tried.
FEW = 12
# Cost of a cut: that of the most expensive rank, and of all ranks; and (direction, widths, ranks of each section), None
# for one rank.
Found = tuple[float, float, tuple[int, Sequence[int], Sequence[int]] | None]


class Sections:
    """A search for the best way to divide a box of nodes into sections for several ranks. `speed`: the relative speed
    of each rank, with the mean 1. `ideal`: the number of nodes for a rank of speed 1. `least`: the smallest number of
    nodes of a part in each direction.

    A box is divided along one direction, and each section is divided again until every rank has one. The number of
    sections is 2, 3 or a prime factor of the number of ranks, and their sizes are proportional to the speeds of their
    ranks. So the candidates include regular grids of parts (a x b x c), recursive bisection, and mixtures of both. The
    candidate whose most expensive rank has the lowest cost is taken. If several are equal, the lowest total cost
    decides, and then the order of the directions: k before j before i.
    """

    def __init__(self, speed: Sequence[float], ideal: float, least: int):
        self.speed, self.ideal, self.least = tuple(speed), ideal, least
        self._even = len(set(speed)) == 1
        self._sums = (0.0, *accumulate(speed))
        self._known: dict[tuple[object, ...], Found] = {}

    def cut(self, box: Range, first: int, last: int, sides: Sides = CLOSED) -> list[Range]:
        """Divide `box` (half-open index ranges i, j, k) into one box for each of the ranks `first` to `last` - 1, and
        return these boxes in the order of the ranks. `sides`: for each direction, which fractions of the lower and of
        the upper side of the box touch other boxes, and which fraction touches the opposite side (the result of
        `sides_of`). There must not be more ranks than the box can have parts (`rank_cost.capacity`)."""
        size = triple(hi - lo for lo, hi in box)
        self._best(size, sides, first, last)
        return list(self._boxes(box, sides, first, last))

    def _boxes(self, box: Range, sides: Sides, first: int, last: int) -> Iterator[Range]:
        if last - first == 1:
            yield box
            return
        size = triple(hi - lo for lo, hi in box)
        made = self._best(size, sides, first, last)[2]
        assert made is not None  # there is more than one rank
        d, widths, counts = made
        place, rank = box[d][0], first
        for n, (width, count) in enumerate(zip(widths, counts, strict=True)):
            inner = triple((place, place + width) if e == d else box[e] for e in range(3))
            yield from self._boxes(inner, _inner(sides, d, n, len(widths)), rank, rank + count)
            place, rank = place + width, rank + count

    def _best(self, size: Size, sides: Sides, first: int, last: int) -> "Found":
        """Return (cost of the most expensive rank, total cost, (direction, widths, ranks of each)); the last is None
        for one rank."""
        key = (size, sides, last - first if self._even else self.speed[first:last])
        if key not in self._known:
            is_leaf = last - first == 1
            self._known[key] = self._leaf(size, sides, first) if is_leaf else self._find(size, sides, first, last)
        return self._known[key]

    def _leaf(self, size: Size, sides: Sides, rank: int) -> "Found":
        points = prod(size)
        load = work(size) + excess(points, self.ideal * self.speed[rank])
        cost = load / self.speed[rank] + EXCHANGE * _exchange_cost(size, sides)
        return cost, cost, None

    def _find(self, size: Size, sides: Sides, first: int, last: int) -> "Found":
        best: Found = (float("inf"), float("inf"), None)
        for d in _directions(size, last - first, self.least):
            for counts in self._counts(first, last, size[d] // self.least):
                best = self._try(size, sides, first, d, counts, best)
        if best[2] is not None:
            return best
        # The largest possible number of sections: the sections that remain can then always be cut further.
        for d in (2, 1, 0):
            most = min(last - first, size[d] // self.least)
            if most > 1:
                best = self._try(size, sides, first, d, _even(last - first, most), best)
        return best

    def _try(self, size: Size, sides: Sides, first: int, d: int, counts: Sequence[int], best: "Found") -> "Found":
        widths = self._widths(size, d, first, counts)
        if widths is None:
            return best
        highest = total = 0.0
        rank = first
        for n, (width, count) in enumerate(zip(widths, counts, strict=True)):
            inner = triple(width if e == d else size[e] for e in range(3))
            high, sum_, _ = self._best(inner, _inner(sides, d, n, len(widths)), rank, rank + count)
            highest, total, rank = max(highest, high), total + sum_, rank + count
            if highest > best[0]:
                return best
        return min(best, (highest, total, (d, widths, counts)), key=lambda found: found[:2])

    def _counts(self, first: int, last: int, most: int) -> list[tuple[int, ...]]:
        """Yield the ways to give the ranks to 2 to `most` sections, for equal numbers of ranks and equal speeds."""
        ranks = last - first
        divisors = {2, *prime_factors(ranks)} if ranks > FEW else {2, 3, *prime_factors(ranks)}
        numbers = sorted(m for m in divisors if m <= min(ranks, most))
        found = [] if self._even else [self._fair(first, last, m) for m in numbers]
        if self._even or ranks <= FEW:
            found += [_even(ranks, m) for m in numbers]
        return list(dict.fromkeys(found))

    def _fair(self, first: int, last: int, m: int) -> tuple[int, ...]:
        """Return the ranks in m groups of about the same total speed."""
        start, whole = self._sums[first], self._sums[last] - self._sums[first]
        ends, place = [], first
        for n in range(1, m):
            goal = start + whole * n / m
            place = min(range(place + 1, last - (m - n) + 1), key=lambda r: (abs(self._sums[r] - goal), r))
            ends.append(place)
        edges = [first, *ends, last]
        return tuple(b - a for a, b in pairwise(edges))

    def _widths(self, size: Size, d: int, first: int, counts: Sequence[int]) -> tuple[int, ...] | None:
        """Return the number of nodes of each section in direction d: proportional to the speeds, and enough for the
        parts of its ranks."""
        others = capacity(tuple(1 if e == d else n for e, n in enumerate(size)), self.least)
        least = [self.least * -(-count // others) for count in counts]
        if sum(least) > size[d]:
            return None
        ranks = list(accumulate(counts, initial=first))
        start, whole = self._sums[first], self._sums[ranks[-1]] - self._sums[first]
        edges = [round(size[d] * (self._sums[r] - start) / whole) for r in ranks]
        for n in range(1, len(edges)):
            edges[n] = max(edges[n], edges[n - 1] + least[n - 1])
        edges[-1] = size[d]
        for n in range(len(edges) - 2, 0, -1):
            edges[n] = min(edges[n], edges[n + 1] - least[n])
        return tuple(b - a for a, b in pairwise(edges))


def equal_parts(box: Range, ranks: int, least: int, sides: Sides = CLOSED) -> list[Range] | None:
    """Divide `box` (half-open index ranges i, j, k) into a x b x c = `ranks` equal boxes along i, j, k, such that the
    estimated cost is lowest, and return them, those along i first; None if no division gives every box `least` nodes or
    more in each direction with more than one node. `sides`: for each direction, which fractions of the lower and of the
    upper side of the box touch other boxes, and which fraction touches the opposite side (the result of `sides_of`).
    Equal boxes have fewer neighbours than other sections."""
    size = triple(hi - lo for lo, hi in box)
    most = [1 if n == 1 else n // least for n in size]
    ways = [
        (a, b, ranks // a // b)
        for a in range(1, min(ranks, most[0]) + 1)
        if ranks % a == 0
        for b in range(1, min(ranks // a, most[1]) + 1)
        if ranks // a % b == 0 and ranks // a // b <= most[2]
    ]
    if not ways:
        return None

    def price(way: tuple[int, int, int]) -> float:
        largest = triple(-(-n // m) for n, m in zip(size, way, strict=True))
        inner = sides
        for d, m in enumerate(way):
            if m > 1:
                inner = _inner(inner, d, 1 if m > 2 else 0, max(m, 2))
        over = excess(prod(largest), prod(size) / ranks)
        return work(largest) + over + EXCHANGE * _exchange_cost(largest, inner)

    def cuts(way: tuple[int, int, int]) -> int:
        return sum((m - 1) * (prod(size) // n) for m, n in zip(way, size, strict=True))

    prices = {way: price(way) for way in ways}
    way = min((way for way in ways if prices[way] <= (1 + SAME) * min(prices.values())), key=cuts)
    edges = [[lo + n * m // count for m in range(count + 1)] for (lo, _), n, count in zip(box, size, way, strict=True)]
    return [(i, j, k) for k, j, i in product(*(list(pairwise(line)) for line in reversed(edges)))]


def _exchange_cost(size: Size, sides: Sides) -> float:
    """Return the face nodes with ghosts from other ranks, including the cost of each contact."""
    shares = [(share, prod(size) // n) for (low, high, _), n in zip(sides, size, strict=True) for share in (low, high)]
    return sum(share * area + CONTACT * (share > 0) for share, area in shares)


def sides_of(size: Size, box: int, links: Iterable[tuple[int, int, int]]) -> Sides:
    """Return, for i, j and k, how much of the two sides of a box normal to this direction touches other boxes. The
    three numbers are the fraction of the lower side that touches another box, the same for the upper side, and the
    fraction of the two sides that touch each other, as at the ends of a periodic direction. The first two leave out
    what the third counts. `size`: (ni, nj, nk) of the box. `box`: the number of the box. `links`: the contacts of the
    box, each as (number of the other box, side of this box from 0 for imin to 5 for kmax, number of nodes in contact).
    A side in contact with itself, such as the wake of a C-grid, counts as touching another box, since most partitions
    put its two halves on different ranks."""
    others, own = [0.0] * 6, [0.0] * 6
    for other, face, nodes in links:
        (own if other == box else others)[face] += nodes * size[face // 2] / prod(size)
    sides = []
    for d in range(3):
        joined = min(own[2 * d], own[2 * d + 1])
        low, high = (others[face] + own[face] - joined for face in (2 * d, 2 * d + 1))
        sides.append((round(low, 6), round(high, 6), round(joined, 6)))
    return tuple(sides)


def _directions(size: Size, ranks: int, least: int) -> list[int]:
    """Return the directions to divide in, k first. For more than FEW ranks these are the directions in which the box is
    long compared with its parts. Parts are longer in a direction in proportion to the cost of a cut normal to it."""
    if ranks <= FEW:
        return [2, 1, 0]
    length = [n / (line + 2 * EXCHANGE) if n >= 2 * least else 0.0 for n, line in zip(size, LINE, strict=True)]
    return [d for d in (2, 1, 0) if length[d] > max(length) / 2]


def _inner(sides: Sides, d: int, n: int, count: int) -> Sides:
    """Return the sides of section n of `count` in direction d."""
    low, high, joined = sides[d]
    cut = (low + joined if n == 0 else 1.0, high + joined if n == count - 1 else 1.0, 0.0)
    return tuple(cut if e == d else side for e, side in enumerate(sides))


def _even(ranks: int, m: int) -> tuple[int, ...]:
    edges = [n * ranks // m for n in range(m + 1)]
    return tuple(b - a for a, b in pairwise(edges))
