"""The steps of the exchange of one quantity."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hiresx.base.kept import Kept
from hiresx.device.interface import Backend, Call, Program
from hiresx.exchange.endpoint import QuantityMessages
from hiresx.exchange.filled_lists import ListBoxes, filled_lists
from hiresx.exchange.halo_layout import HaloLayout, HaloLink, Peer, merge_links
from hiresx.exchange.rows import lists_on_device, rows
from hiresx.exchange.transport import Transport

# A waiting rank first polls without pause for this many seconds, then yields its core between polls, and finally sleeps
# between them. So early messages are seen at once, and in long waits the core is free for the ranks that are waited
# for.
WATCHFUL, YIELDING = 20e-6, 2e-3
NAP = 50e-6


@dataclass(frozen=True, eq=False)
class ExchangedArrays:
    """Access to the arrays whose ghosts are exchanged; they are the same in all exchanges. `part` is the position of a
    box of nodes among those that this rank computes. `array(part, direction)`: the array with all variables.
    `strides[part]`: the distance of two variables in it, in reals. `vectors(part, direction)`: the same array from the
    first component of the vector on. `owners[part]`: an object that exists as long as the arrays of the part. If
    `owners` is empty, the next solver does not use the kernel launches again."""

    array: Callable[[int, int], Any]
    strides: Sequence[int]
    vectors: Callable[[int, int], Any] | None = None
    owners: Sequence[Any] = ()


class Channel:
    """The exchange of the ghosts of one quantity with `width` numbers per node, between the boxes of nodes of this rank
    and with other ranks.

    `layout`: the nodes and ranks from which the ghosts of this rank come. `directed`: whether the quantity is a flux
    along a grid direction; its sign then changes if the directions of two blocks are opposite. `messages`: the message
    buffers and transports of the quantity. `later`: whether a launch returns before its kernel has run; sending then
    waits for the kernel. `apart`: whether its number type differs from the type of the state. `kept`: a cache from
    which the rows of nodes are taken. `waited`: seconds spent waiting for other ranks. `exchanges`: the number of
    exchanges that were started."""

    def __init__(
        self, backend: Backend, program: Program, layout: HaloLayout, width: int, directed: bool,
        messages: QuantityMessages, later: bool, apart: bool = False, kept: Kept | None = None,
    ):  # fmt: skip
        self._kept = kept or Kept()
        self._program, self._width, self._later = program, width, later
        self._apart = apart
        self._outgoing, self._transports = messages.outgoing, messages.transports
        ends: tuple[str, ...] = ("donor_direction", "direction", "sign") if directed else ()

        def lists(links: Iterable[HaloLink], *keys: str) -> list[tuple[HaloLink, Any, Any]]:
            found = merge_links(links, *keys)
            return [(link, backend.to_device(link.to), backend.to_device(link.source)) for link in found]

        def rotated_links(links: Iterable[HaloLink]) -> list[tuple[HaloLink, Any]]:
            rotated = [link for link in links if link.rotation is not None]
            return [(link, at) for link, at, _ in lists(rotated, "block", "rotation", *ends[1:2])]

        # Copies between the parts of this rank: by rows if the kernels support it, else by lists.
        self._local: list[tuple[HaloLink, Any, Any]] = []
        self._local_rows: list[tuple[HaloLink, Any, int]] = []
        by_rows = self._kernel("copy_halo_rows") in program.signatures
        # Channels of the same kind have the same nodes.
        if (by_rows, ends) not in layout.copies:
            layout.copies[by_rows, ends] = self._local_nodes(backend, layout, by_rows, ends)
        for link, (nodes, *source) in layout.copies[by_rows, ends]:
            if source:
                self._local.append((link, nodes, *source))
            else:
                self._local_rows.append((link, nodes.reshape(-1, 3), link.count))
        self._pack = lists(layout.outgoing, "donor", *ends[0::2])
        self._unpack = {peer.rank: lists(peer.links, "block", *ends[1:2]) for peer in layout.peers}
        self._turned = {peer.rank: rotated_links(peer.links) for peer in layout.peers} | {
            None: rotated_links(layout.local)
        }
        self._directed = directed
        # The launches that copy between the parts of this rank, by quantity.
        self._copies: WeakKeyDictionary[ExchangedArrays, Callable[[], None]] = WeakKeyDictionary()

        self._turn = 0
        self._fields: ExchangedArrays | None = None  # of the exchange in progress
        self._sent = True
        # Requests in progress and, for receives, the transport and the peer of each message.
        self._requests: list[Any] = []
        self._due: list[tuple[Peer, Transport]] = []
        self._left = 0  # requests not yet completed
        self.seconds_waited, self.exchanges = 0.0, 0

    def _local_nodes(
        self, backend: Backend, layout: HaloLayout, by_rows: bool, ends: tuple[str, ...]
    ) -> list[tuple[HaloLink, list[Any]]]:
        """Return the links between parts of this rank, each with its rows or its two lists of nodes on the device."""
        local = merge_links(layout.local, "donor", "block", *ends)

        def nodes_of(missing: list[int]) -> list[list[Any]]:
            if not by_rows:
                return _lists_of_boxes(backend, self._program, [local[n] for n in missing])
            made = [(local[n], rows(local[n].to, local[n].source)) for n in missing]
            return lists_on_device(
                backend, [[link.to, link.source] if own is None else [own.ravel()] for link, own in made]
            )

        found = self._kept.together([(("rows", by_rows, *link.keys), ()) for link in local], nodes_of)
        return [*zip(local, found, strict=True)]

    def start(self, fields: ExchangedArrays) -> None:
        """Begin to exchange the ghosts of the arrays `fields` with other ranks, and copy ghosts between the boxes of
        nodes of this rank. If an earlier exchange is not finished, it is finished first. The present values are sent,
        even if they are changed afterwards."""
        self.finish()
        self.exchanges += 1
        if self._transports:
            self._begin(fields)
        copy = self._copies.get(fields)
        if copy is None:
            copy = self._copies[fields] = self._program.prepare(
                [[*self._local_copies(fields)], *self._turns(fields, None)]  # from nodes to ghosts
            )
        copy()

    def _kernel(self, name: str) -> str:
        """Return the kernel of that name for the number type of the quantity."""
        return name.replace("_halo", "_work_halo").replace("_vectors", "_work_vectors") if self._apart else name

    def _local_copies(self, fields: ExchangedArrays) -> Iterator[Call]:
        def copy(name: str, extent: tuple[int, int, int] | None, link: HaloLink, **nodes: Any) -> Call:
            assert link.donor is not None and link.block is not None
            source = fields.array(link.donor, link.donor_direction)
            target = fields.array(link.block, link.direction)
            ends = {"source": source, "source_sv": fields.strides[link.donor], "target": target}
            ends |= {"target_sv": fields.strides[link.block], "sign": self._sign(link)}
            make = partial(self._program.call, self._kernel(name), extent, **nodes, **ends)
            if not fields.owners:
                return make()
            # The launch holds the arrays whose numbers are in the key, so these numbers stay their own.
            key = "copy", name, link.keys, self._width, self._sign(link), id(source), id(target)
            return self._kept(key, (fields.owners[link.donor], fields.owners[link.block]), make)

        for link, to, giving in self._local:
            yield copy("copy_halo", (len(to), 1, 1), link, to=to, giving=giving, variables=self._width)
        for link, found, nodes in self._local_rows:
            yield copy(
                "copy_halo_rows", None, link, rows=found, count=len(found), nodes=nodes, variables=self._width
            )  # fmt: skip

    def _begin(self, fields: ExchangedArrays) -> None:
        self._turn = turn = 1 - self._turn
        self._fields, self._sent = fields, False
        self._requests, self._due, self._left = [], [], 0
        for transport in self._transports:
            for request, peer in transport.receive(turn):
                self._requests.append(request)
                self._due.append((peer, transport))
        for link, to, giving in self._pack:
            assert link.donor is not None
            self._program.launch(
                self._kernel("pack_halo"), (len(to), 1, 1), to=to, giving=giving,
                source=fields.array(link.donor, link.donor_direction), source_sv=fields.strides[link.donor],
                buffer=self._outgoing[turn], variables=self._width, sign=self._sign(link),
            )  # fmt: skip
        for transport in self._transports:
            transport.stage(turn)
        if not self._later:
            self.flush()

    def flush(self) -> None:
        """Send the messages of this exchange of ghosts that are packed but not sent yet."""
        if self._fields is not None and not self._sent:
            self._sent = True
            for transport in self._transports:
                self._requests += transport.send(self._turn)
            self._left = len(self._requests)

    def progress(self) -> None:
        """Unpack the messages of other ranks that have arrived, without waiting. MPI transfers long messages only
        during its calls, so frequent calls let the transfer overlap with computation."""
        if self._left and self._sent:
            self._take_completed()

    def finish(self) -> None:
        """Wait for all messages of the exchange that was started, and unpack them into the ghosts. Do nothing if no
        exchange was started."""
        if self._fields is None:
            return
        self.flush()
        idle = time.perf_counter()
        while self._left:
            now = time.perf_counter()
            if self._take_completed():
                self.seconds_waited += now - idle
                idle = time.perf_counter()
            elif now - idle > YIELDING:
                time.sleep(NAP)
            elif now - idle > WATCHFUL:
                os.sched_yield()
        self._fields = None

    def _take_completed(self) -> bool:
        """Unpack the messages that have arrived since the last call. Returns whether any has arrived or was sent."""
        completed = self._requests[0].Testsome(self._requests)
        for n in completed or ():
            self._left -= 1
            if n < len(self._due):
                self._take(*self._due[n])
        return bool(completed)

    def _take(self, peer: Peer, transport: Transport) -> None:
        fields, message = self._fields, transport.message(peer, self._turn)
        assert fields is not None
        for link, to, giving in self._unpack[peer.rank]:
            assert link.block is not None
            self._program.launch(
                self._kernel("unpack_halo"), (len(to), 1, 1), to=to, giving=giving, buffer=message,
                variables=self._width, target=fields.array(link.block, link.direction),
                target_sv=fields.strides[link.block],
            )  # fmt: skip
        for call in self._turns(fields, peer.rank):
            self._program.run(call)

    def _turns(self, fields: ExchangedArrays, rank: int | None) -> Iterator[Call]:
        """Return the launches that rotate vectors received from a rank (None: from this one) into the frames of the
        parts that receive them."""
        if fields.vectors is None:
            return
        for link, at in self._turned[rank]:
            assert link.block is not None and link.rotation is not None
            entries = zip(product("xyz", repeat=2), np.ravel(link.rotation).tolist(), strict=True)
            yield self._program.call(
                self._kernel("rotate_vectors"), (len(at), 1, 1), at=at,
                target=fields.vectors(link.block, link.direction),
                target_sv=fields.strides[link.block], **{f"r{row}{column}": float(r) for (row, column), r in entries},
            )  # fmt: skip

    def _sign(self, link: HaloLink) -> float:
        return float(link.sign) if self._directed else 1.0


def _lists_of_boxes(backend: Backend, program: Program, links: Sequence[HaloLink]) -> list[list[Any]]:
    """Return the two lists of nodes of each link, `to` and `source`, which the device fills."""
    boxes = [box for link in links for end in (link.ghosts, link.donors) for box in end]
    sizes, first, steps = (np.array(of) for of in zip(*boxes, strict=True))
    ends = np.cumsum([0, *sizes.prod(axis=1)])
    lists = filled_lists(backend, program, int(ends[-1]), [ListBoxes(sizes, first, steps, ends[:-1])])
    counts = [count for link in links for count in (link.count, link.count)]
    views = iter([lists[b - n : b] for n, b in zip(counts, np.cumsum(counts).tolist(), strict=True)])
    return [[next(views), next(views)] for _ in links]
