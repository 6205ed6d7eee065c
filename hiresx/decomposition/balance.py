"""Layers of nodes moved from a rank that has too many to one that has room: cuts shifted, and new ones made."""

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from math import prod
from typing import NamedTuple

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.contacts import Boxes, Contacts, Neighbourhood
from hiresx.decomposition.rank_cost import CONTACT, EXCHANGE, IMBALANCE, costs
from hiresx.grid.blocks import Range

# So many of the moves that look best are priced, and of the emptiest ranks tried beside the neighbours.
PRICED = 6
EMPTIEST = 3
# Moves in all, per rank.
ROUNDS = 3


class Move(NamedTuple):
    """`box` of a rank becomes `kept`; `given` goes to rank `to`, in place of its box `grown` (None: as a new one)."""

    box: int
    kept: Range
    to: int
    given: Range
    grown: int | None


class Balance:
    """Boxes of given `rank`, for ranks of given `speed` (mean 1). Parts have `least` nodes in every direction."""

    def __init__(self, neighbourhood: Neighbourhood, boxes: Boxes, rank: np.ndarray, speed: np.ndarray, least: int):
        self._neighbourhood, self._speed, self._least = neighbourhood, speed, least
        self._whole = boxes.whole.tolist()
        self._box: list[Range] = [triple((lo, hi) for lo, hi in box) for box in boxes.ranges.tolist()]
        self._rank = rank.tolist()
        self._due = boxes.sizes.prod(axis=1).sum() / len(speed) * speed

    def run(self) -> tuple[Boxes, np.ndarray]:
        """Boxes and ranks, moved as long as some rank has more nodes than allowed and the dearest becomes cheaper."""
        contacts, price = self._priced(self._whole, self._box, self._rank)
        for _ in range(ROUNDS * len(self._speed)):
            held = np.bincount(self._rank, [_points(box) for box in self._box], len(self._speed))
            if (held <= (1 + IMBALANCE) * self._due).all():
                break
            dearest = int(price.argmax())
            looked = nsmallest(PRICED, self._moves(dearest, held, contacts))
            for _, move in looked:
                made = self._after(move)
                touching, after = self._priced(*made)
                if after.max() <= price.max() and max(after[dearest], after[move.to]) < price[dearest]:
                    self._whole, self._box, self._rank = made
                    contacts, price = touching, after
                    break
            else:
                break
        return Boxes(np.array(self._whole), np.array(self._box)), np.array(self._rank)

    def _priced(self, whole: Sequence[int], box: Sequence[Range], rank: Sequence[int]) -> tuple[Contacts, np.ndarray]:
        boxes = Boxes(np.array(whole), np.array(box))
        contacts = self._neighbourhood.contacts(boxes)
        return contacts, costs(boxes, contacts, np.array(rank), self._speed)

    def _moves(self, rank: int, held: np.ndarray, contacts: Contacts) -> Iterator[tuple[float, Move]]:
        """Moves off a rank, with what the dearer of the two ranks would then cost, roughly."""
        fill = held / self._due
        emptiest = np.argsort(fill, kind="stable")[:EMPTIEST].tolist()
        for n in [n for n, r in enumerate(self._rank) if r == rank]:
            near = {self._rank[m] for m in contacts.source[contacts.to == n].tolist()}
            for to in sorted((near | set(emptiest)) - {rank}):
                # As many nodes as make both equally full.
                wanted = (held[rank] * self._due[to] - held[to] * self._due[rank]) / (self._due[rank] + self._due[to])
                if wanted > 0:
                    yield from self._slices(n, to, wanted, held)

    def _slices(self, n: int, to: int, wanted: float, held: np.ndarray) -> Iterator[tuple[float, Move]]:
        box, rank, least = self._box[n], self._rank[n], self._least
        for d, (lo, hi) in enumerate(box):
            area = _points(box) // (hi - lo)
            for low in (True, False):
                grown = self._beyond(n, d, low, to)
                for layers in (int(wanted // area), int(wanted // area) + 1):
                    if hi - lo - layers < least or layers < (1 if grown is not None else least):
                        continue
                    at = lo + layers if low else hi - layers
                    ends = ((at, hi), (lo, at)) if low else ((lo, at), (at, hi))
                    kept, given = (triple(end if e == d else box[e] for e in range(3)) for end in ends)
                    cut = 0 if grown is not None else EXCHANGE * (area + CONTACT)
                    fill = max(
                        (held[rank] - layers * area + cut) / self._due[rank],
                        (held[to] + layers * area + cut) / self._due[to],
                    )
                    yield fill, Move(n, kept, to, given, grown)

    def _beyond(self, n: int, d: int, low: bool, to: int) -> int | None:
        """The box of rank `to` that goes on where box `n` ends, with the same cross-section."""
        lo, hi = self._box[n][d]
        for m, (whole, box, rank) in enumerate(zip(self._whole, self._box, self._rank, strict=True)):
            same = rank == to and whole == self._whole[n] and all(box[e] == self._box[n][e] for e in range(3) if e != d)
            if same and (box[d][1] == lo if low else box[d][0] == hi):
                return m
        return None

    def _after(self, move: Move) -> tuple[list[int], list[Range], list[int]]:
        whole, box, rank = list(self._whole), list(self._box), list(self._rank)
        box[move.box] = move.kept
        if move.grown is None:
            whole.append(whole[move.box])
            box.append(move.given)
            rank.append(move.to)
        else:
            other = box[move.grown]
            box[move.grown] = triple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(other, move.given, strict=True))
        return whole, box, rank


def _points(box: Range) -> int:
    return prod(hi - lo for lo, hi in box)
