"""Messages that the receiver reads directly from the buffer of the sender. Only a notification is sent."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from hiresx.exchange.halo_layout import Peer
from hiresx.exchange.transport import Transport


class Notification(Transport):
    """Transport by shared memory whose messages are announced by empty MPI messages with `tag` in the communicator
    `mpi_comm`. `peers`: the other ranks. `messages[turn][rank]`: the array in the memory of the peer `rank` that
    contains its message for this rank. `turn` is the number of the set of buffers, 0 or 1."""

    def __init__(self, mpi_comm: Any, tag: int, peers: Sequence[Peer], messages: Sequence[Mapping[int, Any]]):
        super().__init__(peers)
        self._messages = messages
        nothing = bytearray()
        # One request of each is enough for both turns, because an exchange completes all requests that it started.
        self._receives = [(mpi_comm.Recv_init(nothing, peer.rank, tag), peer) for peer in peers]
        self._sends = [mpi_comm.Send_init(nothing, peer.rank, tag) for peer in peers]

    def receive(self, turn: int) -> list[tuple[Any, Peer]]:
        """Start to receive the notification that each peer sends when its message in buffer set `turn` (0 or 1) can be
        read. Returns pairs (request, peer)."""
        for request, _ in self._receives:
            request.Start()
        return self._receives

    def send(self, turn: int) -> list[Any]:
        """Make the packed messages in buffer set `turn` (0 or 1) readable, and start to notify all peers by MPI.
        Returns the MPI requests."""
        self.publish(turn)
        for request in self._sends:
            request.Start()
        return self._sends

    @abstractmethod
    def publish(self, turn: int) -> None:
        """Make the packed messages in buffer set `turn` (0 or 1) visible to the other ranks, and return when they
        are."""

    def message(self, peer: Peer, turn: int) -> Any:
        """Return the message of `peer`, an array of reals that remains in the memory of this peer. `turn`: the buffer
        set, 0 or 1. Does not wait: the request of this message from `receive` must be complete."""
        return self._messages[turn][peer.rank]

    def close(self) -> None:
        """Free the persistent MPI requests by which ranks notify each other of messages."""
        for request in [*self._sends, *(request for request, _ in self._receives)]:
            request.Free()
