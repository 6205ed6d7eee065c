"""The layout of a halo exchange: the copies between parts of this rank, and the messages to and from every
neighbour."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hiresx.decomposition import HaloList
from hiresx.decomposition.halo_copies import StridedBox
from hiresx.equations import DIRECTIONS
from hiresx.exchange.copied_boxes import CopiedBoxes

Rotation = tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, eq=False)
class HaloLink:
    """Nodes that are copied from the box of nodes `donor` to the box `block` of this rank. One of the two is None if it
    is on another rank.

    `ghosts`, `donors`: the nodes that receive and that give the values, in the same order, by boxes of flat indexes
    into the arrays with ghosts of `block` and `donor`, or of points of a message buffer for the box on another rank.
    `direction`: the direction (0, 1, 2) of the connected face of `block`. `donor_direction`, `sign`: the flux of
    `block` through this face is `sign` times the flux of the donor along `donor_direction`. `rotation`: the matrix that
    rotates vectors of the donor into the axes of the block, or None."""

    donor: int | None
    block: int | None
    ghosts: tuple[StridedBox, ...]
    donors: tuple[StridedBox, ...]
    direction: int
    donor_direction: int
    sign: int
    rotation: Rotation | None

    @property
    def to(self) -> np.ndarray:
        """The ghosts, int32 (count,), as flat indexes or points of a message."""
        return np.concatenate([box.array() for box in self.ghosts])

    @property
    def source(self) -> np.ndarray:
        """The nodes that give the values, int32 (count,), as flat indexes or points of a message."""
        return np.concatenate([box.array() for box in self.donors])


@dataclass(frozen=True, eq=False)
class Peer:
    """Another rank with which every exchange sends and receives one message. Empty messages are sent, too, as each
    message also confirms that the previous one was read (`hiresx.exchange.transport`). `out`, `into`: first and last +
    1 of the points of the message, among all points that this rank sends or receives. `links`: the links that unpack
    the message; their `source` counts from its first point."""

    rank: int
    out: tuple[int, int]
    into: tuple[int, int]
    links: tuple[HaloLink, ...]


class HaloLayout:
    """The sources of the ghosts of this rank. `local`: links between boxes of nodes of this rank. `outgoing`: links
    from its boxes to the points of the messages that it sends. `peers`: for each other rank the points that are sent
    and received.

    `lists`: the lists of ghosts of all connections of this rank's boxes. `places`: the position of each box of this
    rank in the list of its boxes, by the number of the box. `owners`: the rank of each box."""

    def __init__(self, lists: Sequence[HaloList], places: Mapping[int, int], owners: Sequence[int]):
        """`places`: where in this rank's parts a block of the decomposition is. `owners`: the rank of every block."""
        here = [(entry.donor in places, entry.block in places) for entry in lists]
        self.local = [
            _link(e, places[e.donor], places[e.block], e.ghosts, e.donors)
            for e, ends in zip(lists, here, strict=True)
            if ends == (True, True)
        ]
        sent, received = _by_rank(lists, here, owners, outwards=True), _by_rank(lists, here, owners, outwards=False)
        self.outgoing, self.peers = [], []
        first, begin = 0, 0
        for rank in sorted(sent.keys() | received.keys()):
            stop, end = first, begin
            for entry in sent.get(rank, ()):
                n = entry.donors.nodes
                points = StridedBox((n, 1, 1), stop, (1, 0, 0))
                self.outgoing.append(_link(entry, places[entry.donor], None, points, entry.donors))
                stop += n
            links = []
            for entry in received.get(rank, ()):
                n = entry.ghosts.nodes
                points = StridedBox((n, 1, 1), end - begin, (1, 0, 0))
                links.append(_link(entry, None, places[entry.block], entry.ghosts, points))
                end += n
            self.peers.append(Peer(rank, (first, stop), (begin, end), tuple(links)))
            first, begin = stop, end
        self.sent, self.received = first, begin
        self.remote = [frozenset[str]()] * len(places)
        for entry, (_, block) in zip(lists, here, strict=True):
            if block and entry.donor not in places:
                self.remote[places[entry.block]] |= {entry.face}

    @cached_property
    def copied(self) -> CopiedBoxes:
        """The nodes that `local` copies. The number of an array is that of its box of nodes times 3, plus a direction:
        that of the connected face for the array that receives, and `donor_direction` for the one that gives."""
        if not self.local:
            return CopiedBoxes.none()
        ends = []
        for e in self.local:
            assert e.donor is not None and e.block is not None
            ends.append((DIRECTIONS * e.block + e.direction, DIRECTIONS * e.donor + e.donor_direction))
        boxes = [(*e.ghosts, *e.donors) for e in self.local]  # one at each end
        sizes = np.array([to.sizes for to, _ in boxes])
        first = np.array([[box.first for box in both] for both in boxes])
        steps = np.array([[box.steps for box in both] for both in boxes])
        signs = np.array([e.sign for e in self.local])
        return CopiedBoxes(np.transpose(ends), sizes, first.T, steps.swapaxes(0, 1), signs)


def _by_rank(
    lists: Sequence[HaloList], here: Sequence[tuple[bool, bool]], owners: Sequence[int], outwards: bool
) -> dict[int, list[HaloList]]:
    """Return the lists that lead from this rank to others, or from others to it, by the rank at their other end. Both
    ends keep the order of the lists, (donor, block, connection), so that the message has the same order at both ends.
    """
    found: dict[int, list[HaloList]] = {}
    for entry, ends in zip(lists, here, strict=True):
        if ends == (outwards, not outwards):
            found.setdefault(owners[entry.block if outwards else entry.donor], []).append(entry)
    return found


def _link(entry: HaloList, donor: int | None, block: int | None, to: StridedBox, source: StridedBox) -> HaloLink:
    e = entry
    return HaloLink(donor, block, (to,), (source,), e.direction, e.donor_direction, e.sign, e.rotation)


def merge_links(links: Iterable[HaloLink], *keys: str) -> list[HaloLink]:
    """Join those of `links` (lists of nodes to be copied) that have equal values of the attributes `keys`, so that one
    kernel launch copies the nodes of all joined lists: their arrays `to` and `source` are concatenated. Attributes of a
    joined link that are not in `keys` have no meaning."""
    groups: dict[tuple[object, ...], list[HaloLink]] = {}
    for link in links:
        groups.setdefault(tuple(getattr(link, key) for key in keys), []).append(link)
    return [
        group[0]
        if len(group) == 1
        else replace(
            group[0],
            ghosts=tuple(box for link in group for box in link.ghosts),
            donors=tuple(box for link in group for box in link.donors),
        )
        for group in groups.values()
    ]
