"""Messages from rank to rank: the interface of all transports, and the rule by which buffers are used again.

Every message has two buffers, taken in turn: message n uses buffer n mod 2 on both sides. Two are enough, whatever the
connections:

- A rank begins exchange n after it has finished n - 1. By then message n - 1 of each peer has come.
- The peer sent that message after it had finished n - 2. By then it had unpacked message n - 2 of this rank.
- So buffer n mod 2 is free on both sides when message n is written.

This needs messages in both directions between any two peers, even empty ones. On a GPU kernels run later than they are
launched, so sending waits for the kernels that pack; these stand behind the ones that unpacked before.

There is no deadlock: an exchange posts all receives, then sends all messages, and waits only after that.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from hiresx.exchange.halo_layout import Peer


class Transport(ABC):
    """Interface of the ways to send the messages of one quantity to the ranks `peers` and to receive theirs. Two sets
    of buffers are used alternately; `turn` (0 or 1) is the number of the set."""

    def __init__(self, peers: Sequence[Peer]):
        self.peers = tuple(peers)

    @abstractmethod
    def receive(self, turn: int) -> list[tuple[Any, Peer]]:
        """Start to receive the messages of all peers into buffer set `turn` (0 or 1; consecutive exchanges use the two
        sets alternately). Returns pairs (mpi4py request, peer). When a request is complete, the message of its peer has
        arrived."""

    def stage(self, turn: int) -> None:
        """Prepare to send the messages in buffer set `turn` (0 or 1). Called after the kernels that pack messages are
        launched."""
        return

    @abstractmethod
    def send(self, turn: int) -> list[Any]:
        """Wait for the kernels that pack messages, then start to send the messages in buffer set `turn` (0 or 1) to all
        peers. Returns requests, which are complete when all messages are sent."""

    @abstractmethod
    def message(self, peer: Peer, turn: int) -> Any:
        """Return the message that `peer` has sent in buffer set `turn` (0 or 1), an array of reals. Its request from
        `receive` must be complete. Kernels that are launched from now on may read it."""

    @abstractmethod
    def close(self) -> None:
        """Free the resources of MPI that this transport uses."""
