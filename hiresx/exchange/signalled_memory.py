"""Messages between ranks of one host in memory that kernels of all of them can access. The devices notify each other,
so that an exchange does not need the host and can be part of a CUDA graph (kernels/signals.h).

The memory of a rank contains, one after the other:

- the messages that the rank has packed, with the layout of `BufferLayout`;
- the flags that other ranks set in it: one per rank for every exchanged quantity and for every set of shared numbers;
- the numbers that the rank shares with all ranks, such as its spectral radii.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.device.interface import Backend, Call, Program
from hiresx.exchange.buffer_layout import ALIGNMENT, BufferLayout
from hiresx.exchange.halo_layout import Peer

# Bytes from one flag to the next: each has a cache line of its own (SIGNAL_STRIDE).
FLAG = 64
# Bytes before the flags, so that the mark that is first written into a memory without points (`agreed.MARK`) overwrites
# no flag.
GAP = ALIGNMENT
# Largest number of calls of `offer`, and the bytes for all of them.
OFFERS, OFFERED = 4, 65536


def extra_bytes(ranks: int, quantities: int) -> int:
    """Return the bytes of shared memory that a rank needs besides its message buffers: the flags by which `ranks` ranks
    announce messages of `quantities` quantities, and the space for numbers that all ranks share."""
    return GAP + (quantities + OFFERS) * ranks * FLAG + OFFERED


@dataclass
class SignalFlags:
    """The flags by which kernels of this rank and of the ranks `ranks` announce that the values of one quantity are
    complete. `program`: the kernels that raise flags and wait for them. `flags`: the flags in this rank's memory, which
    the other ranks raise; `addresses`: the addresses of this rank's flags in the memory of those ranks; `peers`:
    `ranks` on the device. `count`, `order`: counters on the device (kernels/signals.h)."""

    program: Program
    ranks: Sequence[int]
    flags: Any
    peers: Any
    addresses: Any
    count: Any
    order: Any

    def raise_call(self) -> Call:
        """Return the kernel launch that notifies the other ranks that the data which this rank has written for them can
        be read. It comes after the launches that write these data."""
        return self.program.call(
            "raise_signals", (1, 1, 1), peers=len(self.ranks), flags=self.addresses, count=self.count,
            order=self.order,
        )  # fmt: skip

    def wait_call(self) -> Call:
        """Return the kernel launch that waits on the device until the data of the other ranks for this rank can be
        read."""
        return self.program.call(
            "await_signals", (1, 1, 1), peers=len(self.ranks), ranks=self.peers, flags=self.flags,
            count=self.count, order=self.order,
        )  # fmt: skip


@dataclass
class SignalledMessages:
    """The buffers of one quantity, and the flags `signals` that announce their contents. `outgoing`: the two buffers of
    this rank, which consecutive exchanges use alternately; the second begins `turn_reals` numbers after the first.
    `incoming`: for each other rank, its buffers from the first point for this rank on, and the number of reals between
    the first and the second."""

    signals: SignalFlags
    outgoing: Any
    turn_reals: int
    incoming: Mapping[int, tuple[Any, int]]


@dataclass
class SharedValues:
    """Numbers that every rank sends to all others at once. `signals`: the flags that announce them. `own`: the buffer
    of this rank in double precision, with space for two sets of numbers, which are used alternately. `addresses`: the
    address of the buffer of every rank, by rank."""

    signals: SignalFlags
    own: Any
    addresses: Any

    def synchronization(self) -> list[Call]:
        """Return the kernel launches that notify all ranks that the numbers of this rank are written, and then wait for
        the numbers of all other ranks. They come after the launches that write the numbers of this rank, and before the
        launches that read the numbers of all ranks."""
        return [self.signals.raise_call(), self.signals.wait_call()]


class SignalledMemory:
    """The memory of all ranks of a host, through which kernels exchange messages and a few numbers. `own`: the memory
    of this rank, as bytes. `others`: the memory of each other rank, by rank, at addresses that kernels can use.
    `buffer_layout`: the layout of the message buffers. `points`: the number of points that each rank sends."""

    def __init__(
        self,
        backend: Backend,
        program: Program,
        rank: int,
        own: Any,
        others: Mapping[int, Any],
        buffer_layout: BufferLayout,
        points: Sequence[int],
    ):
        self._backend, self._program, self._rank, self._buffer_layout = backend, program, rank, buffer_layout
        self._memory = {**others, rank: own}
        self._points, self._size = points, len(points)
        self._offers, self._offered = 0, 0
        self._order = backend.zeros((1,), "int32")

    def messages(self, quantity: int, peers: Sequence[Peer], spans: Mapping[int, tuple[int, int]]) -> SignalledMessages:
        """Return the message buffers and flags of one quantity. `quantity`: its index in the buffer layout. `peers`:
        the ranks with which messages are exchanged. `spans`: for each of these ranks, the half-open range of the grid
        points in the memory of that rank that are for this rank."""
        incoming = {}
        for peer in peers:
            both, apart = self._buffers(peer.rank, quantity)
            # kernels/signals.h: variables are separate in memory
            incoming[peer.rank] = both[spans[peer.rank][0] :], apart
        signals = self._signals(quantity, [peer.rank for peer in peers])
        return SignalledMessages(signals, *self._buffers(self._rank, quantity), incoming)

    def offer(self, values: int) -> SharedValues | None:
        """Reserve memory in which every rank offers `values` numbers to all other ranks. Returns None if there is not
        enough memory. All ranks must make the same calls."""
        size = -(-2 * 8 * values // ALIGNMENT) * ALIGNMENT
        if self._offers == OFFERS or self._offered + size > OFFERED:
            return None
        signals = self._signals(
            len(self._buffer_layout.widths) + self._offers, [rank for rank in self._memory if rank != self._rank]
        )
        arrays = [self._offer(rank)[self._offered // 8 : (self._offered + size) // 8] for rank in range(self._size)]
        self._offers, self._offered = self._offers + 1, self._offered + size
        return SharedValues(signals, arrays[self._rank], self._addresses(arrays))

    def radii(self, found: Any, few: np.ndarray) -> tuple[list[Call], Any, np.ndarray]:
        """Return the kernel launches that gather the largest spectral radii of all ranks, from which the time step is
        computed, and two arrays that replace `found` and `few` for the launches after them. `found` (blocks, 2, FEW) on
        the device: the inviscid and the viscous radii of the blocks of this rank, partial maxima by the last threads of
        a reduction, of which a block has `few` (blocks,), at most FEW. They fill the first 2 x few numbers of the 2 x
        FEW of the block. The new `found` (ranks, 2, FEW) has one inviscid and one viscous radius for each rank, and the
        new `few` (ranks,) is 1. The launches come after those that compute the radii of this rank's blocks."""
        offer = self.offer(2)
        assert offer is not None  # it is small, and requested once
        together = self._backend.zeros((self._size, *found.shape[1:]), str(found.dtype))
        call, count = self._program.call, offer.signals.count
        calls = [
            call(
                "offer_radii", (1, 1, 1), blocks=len(few), few=self._backend.to_device(few), radii=found,
                offered=offer.own, count=count,
            ),
            *offer.synchronization(),
            call("gather_radii", (self._size, 1, 1), offers=offer.addresses, radii=together, count=count),
        ]  # fmt: skip
        return calls, together, np.ones(self._size, np.int32)

    def sums(self, sums: Any, groups: np.ndarray, result: Any) -> list[Call] | None:
        """Return the kernel launches that compute sums over all ranks and store them in `result` (groups, quantities,
        1), an array on the device; None if there is not enough shared memory. Each result is the sum of `sums` (rows,
        quantities, terms), also on the device, over the terms, over the rows of the group, and over the ranks. `groups`
        (rows,): the number of the group to which each row belongs. The result is bit-identical on all ranks."""
        values = result.shape[0] * result.shape[1]
        offer = self.offer(values)
        if offer is None:
            return None
        call, count = self._program.call, offer.signals.count
        return [
            call(
                "offer_sums", (values, 1, 1), rows=len(groups), quantities=sums.shape[1], terms=sums.shape[2],
                group_of_row=self._backend.to_device(np.asarray([*groups, 0], np.int32)), sums=sums, values=values,
                offered=offer.own, count=count,
            ),
            *offer.synchronization(),
            call(
                "gather_sums", (values, 1, 1), ranks=self._size, offers=offer.addresses, values=values, result=result,
                count=count,
            ),
        ]  # fmt: skip

    def _signals(self, quantity: int, ranks: list[int]) -> SignalFlags:
        zeros, device = self._backend.zeros, self._backend.to_device
        mine = [self._flags(rank, quantity)[self._rank * FLAG // 8 :] for rank in ranks]
        return SignalFlags(
            self._program,
            ranks,
            self._flags(self._rank, quantity),
            device(np.array(ranks, np.int32)),
            self._addresses(mine),
            zeros((3,), "int64"),
            self._order,
        )

    def _addresses(self, arrays: Sequence[Any]) -> Any:
        addresses = [a.ctypes.data if isinstance(a, np.ndarray) else a.data.ptr for a in arrays]
        return self._backend.to_device(np.array(addresses, np.int64))

    def _buffers(self, rank: int, quantity: int) -> tuple[Any, int]:
        return self._buffer_layout.both_turns(self._memory[rank], self._points[rank])[quantity]

    def _flags(self, rank: int, quantity: int) -> Any:
        start = self._buffer_layout.size(self._points[rank]) + GAP + quantity * self._size * FLAG
        return self._memory[rank][start : start + self._size * FLAG].view("int64")

    def _offer(self, rank: int) -> Any:
        flags = (len(self._buffer_layout.widths) + OFFERS) * self._size * FLAG
        start = self._buffer_layout.size(self._points[rank]) + GAP + flags
        return self._memory[rank][start : start + OFFERED].view("float64")
