"""Many blocks for many ranks: the graph of the boxes is halved again and again, a box cut where a half asks for it."""

from collections.abc import Sequence

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.contacts import Boxes, Neighbourhood
from hiresx.decomposition.halves import Cut, RankGroup
from hiresx.decomposition.sections import Sections, sides_of
from hiresx.grid.blocks import Range

Task = tuple[tuple[int, ...], int, int]


class Bisection:
    """`boxes` of the blocks for ranks of given `speed` (mean 1). A group of boxes and its run of ranks are halved until
    one rank is left, or one box, which `sections` cuts. Neighbouring ranks hold neighbouring boxes."""

    def __init__(self, neighbourhood: Neighbourhood, boxes: Boxes, speed: Sequence[float], sections: Sections):
        self._neighbourhood, self._speed, self._sections = neighbourhood, speed, sections
        self._whole = boxes.whole.tolist()
        self._box: list[Range] = [triple((lo, hi) for lo, hi in box) for box in boxes.ranges.tolist()]
        self._size = [triple(hi - lo for lo, hi in box) for box in self._box]
        self._links: dict[int, list[tuple[int, int, int]]] = {}

    def run(self) -> tuple[Boxes, np.ndarray] | None:
        """The boxes and the rank of each; None when some half would have more ranks than it can have parts."""
        tasks: list[Task] = [(tuple(range(len(self._box))), 0, len(self._speed))]
        rank: dict[int, int] = {}
        while tasks:
            self._link(sorted([*rank, *(n for group, _, _ in tasks for n in group)]))
            smaller: list[Task] = []
            for group, first, last in tasks:
                if last - first == 1:
                    rank |= dict.fromkeys(group, first)
                elif len(group) == 1:
                    rank |= self._section(group[0], first, last)
                else:
                    found = RankGroup(
                        group, self._size, self._links, self._speed[first:last], self._sections.least
                    ).best()
                    if found is None:
                        return None
                    at, half = found
                    low, high = set(half.boxes), set(group) - half.boxes
                    if half.cut is not None:
                        high.remove(half.cut.box)
                        for side, n in zip((low, high), self._cut(half.cut), strict=True):
                            side.add(n)
                    smaller += [(tuple(sorted(low)), first, first + at), (tuple(sorted(high)), first + at, last)]
            tasks = smaller
        kept = sorted(rank)
        made = Boxes(np.array([self._whole[n] for n in kept]), np.array([self._box[n] for n in kept]))
        return made, np.array([rank[n] for n in kept])

    def _link(self, boxes: list[int]) -> None:
        """The contacts of these boxes: those that have not been cut into others."""
        found = self._neighbourhood.contacts(
            Boxes(np.array([self._whole[n] for n in boxes]), np.array([self._box[n] for n in boxes]))
        )
        self._links = {n: [] for n in boxes}
        for to, source, face, nodes in zip(*(column.tolist() for column in found), strict=True):
            self._links[boxes[to]].append((boxes[source], face, nodes))

    def _add(self, n: int, box: Range) -> int:
        """A piece of box `n`; its index."""
        self._whole.append(self._whole[n])
        self._box.append(box)
        self._size.append(triple(hi - lo for lo, hi in box))
        return len(self._box) - 1

    def _cut(self, cut: Cut) -> tuple[int, int]:
        """The pieces of the first and of the second half."""
        box = self._box[cut.box]
        lo, hi = box[cut.d]
        place = lo + cut.nodes if cut.low else hi - cut.nodes
        ends = [(lo, place), (place, hi)] if cut.low else [(place, hi), (lo, place)]
        first, second = (self._add(cut.box, triple(e if d == cut.d else box[d] for d in range(3))) for e in ends)
        return first, second

    def _section(self, n: int, first: int, last: int) -> dict[int, int]:
        """The last box of its group, cut for all the ranks."""
        sides = sides_of(self._size[n], n, self._links[n])
        boxes = self._sections.cut(self._box[n], first, last, sides)
        return {self._add(n, box): rank for rank, box in enumerate(boxes, first)}
