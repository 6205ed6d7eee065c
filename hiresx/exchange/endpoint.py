"""The part of the exchange that belongs to one rank: its message buffers, and the transports that it uses."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.device.interface import Backend, Program
from hiresx.device.native import Array
from hiresx.exchange.buffer_layout import BufferLayout
from hiresx.exchange.choice import SIGNALLING, STAGED
from hiresx.exchange.cuda_aware import CudaAware
from hiresx.exchange.gpu import Gpu
from hiresx.exchange.halo_layout import HaloLayout, Peer
from hiresx.exchange.ipc import Ipc
from hiresx.exchange.message_buffers import MessageBuffers
from hiresx.exchange.mpi import Mpi
from hiresx.exchange.negotiation import Negotiation
from hiresx.exchange.signalled_memory import SignalledMemory, SignalledMessages, extra_bytes
from hiresx.exchange.staged import StagedTransport
from hiresx.exchange.transport import Transport
from hiresx.exchange.window import SharedMemory, Window
from hiresx.mpi.communicator import GRACE, Communicator, is_on_all_ranks


@dataclass
class QuantityMessages:
    """Buffers and transports for the exchange of one quantity. Consecutive exchanges use two buffers alternately.
    `outgoing`: the two buffers into which the values are packed. `transports`: the transports that send them."""

    outgoing: Sequence[Any]
    transports: Sequence[Transport]


class Endpoint:
    """The buffers and transports by which this rank exchanges halos with other ranks. `messages`: one entry for each
    quantity. `names`: for each peer the names of the transports. With the transport "signals", `signalled` replaces
    `messages`, and `memory` is the memory that contains the buffers.

    `layout`: the nodes and ranks from which the ghosts of this rank come. `gpu`: a `hiresx.exchange.gpu.Gpu`, or None
    on a CPU. `widths`: for each quantity the number of values per point. `dtype`: the type of these values, or a list
    with one type for each quantity. `precision`: the name of these types. `asked`: the name of the transport to use.
    Collective. Raises HiresxError on all ranks if the transport cannot be used or memory is short. A failure on one
    rank is raised on all ranks, and then all resources are released.
    """

    def __init__(
        self,
        backend: Backend,
        program: Program,
        gpu: Gpu | None,
        comm: Communicator,
        layout: HaloLayout,
        dtype: Any,
        widths: Sequence[int],
        precision: str,
        asked: str,
    ):
        self._backend, self._gpu, self._comm, self._layout = backend, gpu, comm, layout
        self._buffer_layout = BufferLayout(dtype, widths)
        self._extra = extra_bytes(comm.size, len(widths)) if asked in SIGNALLING else 0
        with comm.together():
            packed = None if gpu is None else gpu.memory(self._buffer_layout.size(layout.sent) + self._extra)
        self._negotiation = Negotiation(comm, gpu, layout, self._buffer_layout, precision, asked, packed)
        self.names = self._negotiation.names
        self._window: SharedMemory | None = None
        self._mpi_comm: Any = None
        self.messages: Sequence[QuantityMessages] = ()
        self.signalled: Sequence[SignalledMessages] = ()
        self.memory: SignalledMemory | None = None
        try:
            # Stored only when all ranks have created it, since they must close it together.
            with comm.together(GRACE):
                found = self._shared_memory()
            self._window = found
            with comm.together(GRACE):
                duplicate = comm.mpi_comm.Dup()
            self._mpi_comm = duplicate
            with comm.together():
                if "signals" in self._negotiation.pairs.values():
                    self.memory = self._signalled_memory(program, packed)
                    peers = layout.peers
                    spans = {p.rank: self._negotiation.facts[p.rank].sends[comm.rank] for p in peers}
                    self.signalled = [self.memory.messages(n, peers, spans) for n in range(len(widths))]
                else:
                    self.messages = self._quantity_messages(packed)
        except BaseException as error:
            self.close(error)
            raise

    def _shared_memory(self) -> SharedMemory | None:
        """Return the shared memory of this host. All its ranks create it if two of them need it."""
        comm, host = self._comm, self._comm.hosts[self._comm.rank]
        if self._gpu is None and "signals" in self._negotiation.pairs.values():
            return SharedMemory(comm, self._buffer_layout.size(self._layout.sent) + self._extra)
        over_window = [pair for pair, name in self._negotiation.pairs.items() if name.endswith("window")]
        if not any(comm.hosts[pair[0]] == host for pair in over_window):
            return None
        mine = any(comm.rank in pair for pair in over_window)
        return SharedMemory(comm, self._buffer_layout.size(self._layout.sent) if mine else 0)

    def _quantity_messages(self, packed: Any) -> list[QuantityMessages]:
        gpu, layout, buffer_layout = self._gpu, self._layout, self._buffer_layout
        by_name: dict[str, list[Peer]] = {}
        for peer in layout.peers:
            name = self.names[peer.rank]
            # A CPU rank does not stage messages, even if its peer does.
            by_name.setdefault(name if gpu is not None else name.removeprefix(STAGED), []).append(peer)
        windows, over_mpi = ([n for n in by_name if n.removeprefix(STAGED) == host] for host in ("window", "mpi"))

        # Buffers that are sent and received in host memory ...
        sent: Sequence[Any] = [None] * len(buffer_layout.widths)
        into = shared = opened = sent
        if windows:
            assert self._window is not None
            sent = buffer_layout.buffers(self._map_memory(self._window.own), layout.sent)
            shared = self._peer_messages(
                {p.rank: self._map_memory(self._window.of(p.rank)) for p in by_name[windows[0]]}
            )
        elif over_mpi or gpu is None:
            sent = buffer_layout.buffers(self._host_memory(layout.sent), layout.sent)
        if over_mpi:
            into = buffer_layout.buffers(self._host_memory(layout.received), layout.received)
        # ... and in device memory.
        outgoing, incoming = sent, into
        if gpu is not None:
            outgoing = buffer_layout.buffers(packed, layout.sent)
            incoming = buffer_layout.buffers(gpu.memory(buffer_layout.size(layout.received)), layout.received)
        if "ipc" in by_name:
            opened = self._peer_messages({peer.rank: self._negotiation.opened[peer.rank] for peer in by_name["ipc"]})

        found = []
        for tag, width in enumerate(buffer_layout.widths):
            on_host = MessageBuffers(sent[tag], into[tag], width)
            on_device = MessageBuffers(outgoing[tag], incoming[tag], width)
            transports = []
            for name, peers in by_name.items():
                transport: Transport
                if name in windows:
                    assert self._window is not None
                    transport = Window(self._mpi_comm, tag, peers, shared[tag], self._window)
                elif name in over_mpi:
                    transport = Mpi(self._mpi_comm, tag, peers, on_host)
                else:
                    assert gpu is not None
                    if name == "cuda-aware":
                        transport = CudaAware(self._mpi_comm, tag, peers, on_device, gpu)
                    else:
                        transport = Ipc(self._mpi_comm, tag, peers, opened[tag], gpu)
                if name.startswith(STAGED):
                    assert gpu is not None
                    transport = StagedTransport(transport, sent[tag], on_device, gpu)
                transports.append(transport)
            found.append(QuantityMessages(outgoing[tag], transports))
        return found

    def _signalled_memory(self, program: Program, packed: Any) -> SignalledMemory:
        comm, own, opened = self._comm, packed, self._negotiation.opened
        if self._gpu is None:
            assert self._window is not None
            own = self._map_memory(self._window.own)
            opened = {rank: self._map_memory(self._window.of(rank)) for rank in range(comm.size) if rank != comm.rank}
        points = [facts.points for facts in self._negotiation.facts]
        return SignalledMemory(self._backend, program, comm.rank, own, opened, self._buffer_layout, points)

    def _peer_messages(self, memory: dict[int, Any]) -> list[list[dict[int, Any]]]:
        """Return the messages for this rank in the memory of its peers."""
        facts, own = self._negotiation.facts, self._comm.rank
        points = {rank: facts[rank].points for rank in memory}
        return self._buffer_layout.messages(memory, points, {rank: facts[rank].sends[own] for rank in memory})

    def _host_memory(self, points: int) -> np.ndarray:
        size = self._buffer_layout.size(points)
        return self._backend.zeros((size,), "uint8") if self._gpu is None else self._gpu.host_memory(size)

    def _map_memory(self, memory: np.ndarray) -> np.ndarray:
        """Return shared memory in the form that is fastest for kernels of a CPU, or for copies of a GPU."""
        if self._gpu is None:
            return memory.view(Array)
        self._gpu.lock(memory)
        return memory

    def close(self, error: BaseException | None = None) -> None:
        """Free the resources of MPI and CUDA that the exchange of ghosts uses. `error`: the exception that ends the
        exchange, or None. Collective, unless only this rank has raised `error`; then only what needs no other rank is
        freed."""
        together = error is None or is_on_all_ranks(error)
        with suppress(*([] if error is None else [RuntimeError])):  # it would hide the first error
            for transport in (transport for messages in self.messages for transport in messages.transports):
                transport.close()
            if self._gpu is not None:
                self._gpu.unlock()
        self._negotiation.close(error)
        if together and self._window is not None:
            self._window.close()
        if together and self._mpi_comm is not None:
            self._mpi_comm.Free()
