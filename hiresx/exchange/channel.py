"""The steps of the exchange of one quantity."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hiresx.device.interface import Backend, Call, Program
from hiresx.equations import DIRECTIONS
from hiresx.exchange.endpoint import QuantityMessages
from hiresx.exchange.halo_layout import HaloLayout, HaloLink, Peer, merge_links
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
    first component of the vector on."""

    array: Callable[[int, int], Any]
    strides: Sequence[int]
    vectors: Callable[[int, int], Any] | None = None


class Channel:
    """The exchange of the ghosts of one quantity with `width` numbers per node, between the boxes of nodes of this rank
    and with other ranks.

    `layout`: the nodes and ranks from which the ghosts of this rank come. `directed`: whether the quantity is a flux
    along a grid direction; its sign then changes if the directions of two blocks are opposite. `messages`: the message
    buffers and transports of the quantity. `later`: whether a launch returns before its kernel has run; sending then
    waits for the kernel. `apart`: whether its number type differs from the type of the state. `waited`: seconds spent
    waiting for other ranks. `exchanges`: the number of exchanges that were started."""

    def __init__(
        self, backend: Backend, program: Program, layout: HaloLayout, width: int, directed: bool,
        messages: QuantityMessages, later: bool, apart: bool = False,
    ):  # fmt: skip
        self._backend, self._program, self._width, self._later = backend, program, width, later
        self._apart = apart
        self._outgoing, self._transports = messages.outgoing, messages.transports
        ends: tuple[str, ...] = ("donor_direction", "direction", "sign") if directed else ()

        def lists(links: Iterable[HaloLink], *keys: str) -> list[tuple[HaloLink, Any, Any]]:
            found = merge_links(links, *keys)
            return [(link, backend.to_device(link.to), backend.to_device(link.source)) for link in found]

        def rotated_links(links: Iterable[HaloLink]) -> list[tuple[HaloLink, Any]]:
            rotated = [link for link in links if link.rotation is not None]
            return [(link, at) for link, at, _ in lists(rotated, "block", "rotation", *ends[1:2])]

        self._boxes = layout.copied if directed else layout.copied._replace(sign=np.ones_like(layout.copied.sign))
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
                [*self._local_copies(fields), *self._turns(fields, None)]  # from nodes to ghosts
            )
        copy()

    def _kernel(self, name: str) -> str:
        """Return the kernel of that name for the number type of the quantity."""
        return name.replace("_halo", "_work_halo").replace("_vectors", "_work_vectors") if self._apart else name

    def _local_copies(self, fields: ExchangedArrays) -> list[Call]:
        """Return the launch that copies ghosts between the parts of this rank; none if there are no such ghosts."""
        return self._boxes.calls(
            self._backend, self._program, self._kernel("copy_halo"), self._width,
            lambda n: fields.array(*divmod(n, DIRECTIONS)), lambda n: fields.strides[n // DIRECTIONS],
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
