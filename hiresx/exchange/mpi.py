"""Messages sent by MPI from the memory of the host, or from that of the GPU if MPI supports it."""

from collections.abc import Sequence
from typing import Any

from hiresx.exchange.halo_layout import Peer
from hiresx.exchange.message_buffers import MessageBuffers
from hiresx.exchange.transport import Transport


class Mpi(Transport):
    """Transport by MPI messages from and to `buffers`. `tag`: the MPI tag, which distinguishes quantities. `mpi_comm`:
    the mpi4py communicator. `peers`: the other ranks."""

    def __init__(self, mpi_comm: Any, tag: int, peers: Sequence[Peer], buffers: MessageBuffers):
        super().__init__(peers)
        self._outgoing, self._incoming = buffers.outgoing_messages(peers), buffers.incoming_messages(peers)
        # Persistent requests: communications with the same arguments are created once and started repeatedly.
        self._sends = [
            [mpi_comm.Send_init(_memory(array), p.rank, tag) for p, array in zip(peers, out, strict=True)]
            for out in self._outgoing
        ]
        self._receives = [
            [(mpi_comm.Recv_init(_memory(into[p.rank]), p.rank, tag), p) for p in peers] for into in self._incoming
        ]

    def receive(self, turn: int) -> list[tuple[Any, Peer]]:
        """Start to receive a message from each peer by MPI, into buffer set `turn` (0 or 1). Returns pairs (request,
        peer)."""
        for request, _ in self._receives[turn]:
            request.Start()
        return self._receives[turn]

    def send(self, turn: int) -> list[Any]:
        """Start to send the packed messages in buffer set `turn` (0 or 1) to all peers by MPI. Returns the MPI
        requests."""
        for request in self._sends[turn]:
            request.Start()
        return self._sends[turn]

    def message(self, peer: Peer, turn: int) -> Any:
        """Return the message that was received from `peer`, an array of reals in the receive buffer. `turn`: the buffer
        set, 0 or 1. The request of this message from `receive` must be complete."""
        return self._incoming[turn][peer.rank]

    def close(self) -> None:
        """Free the persistent MPI requests by which messages of ghosts are sent and received."""
        for turn in (0, 1):
            for request in [*self._sends[turn], *(request for request, _ in self._receives[turn])]:
                request.Free()


def _memory(array: Any) -> list[Any]:
    """Return an array of the host or of a GPU as memory for mpi4py, by its address. From the array itself mpi4py would
    request the address from CuPy, which makes a stream wait."""
    from mpi4py import MPI

    address = array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data
    return [MPI.buffer.fromaddress(address, array.nbytes), MPI.BYTE]
