"""How messages go from rank to rank: what every transport does, and the rule by which buffers are used again.

Every message has two buffers, taken in turn: message n uses buffer n mod 2 wherever it lies. That is enough, whatever
the connections. A rank begins exchange n after it has finished n - 1, that is, after message n - 1 of each peer has
come. The peer sent that one after it had finished n - 2, message n - 2 of this rank being unpacked. So buffer n mod 2
is free on both sides when message n is written. It needs messages in both directions between any two peers, even empty
ones, and of a GPU, whose kernels run later than they are launched, that sending waits for the kernels that pack:
those stand behind the ones that unpacked before.

Nothing waits in a circle: an exchange posts all receives, then sends all messages, and waits only after that.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from hiresx.exchange.halo_layout import Peer


class Transport(ABC):
    """The messages of one quantity to and from the `peers` that are reached in one way. `turn` is 0 or 1."""

    def __init__(self, peers: Sequence[Peer]):
        self.peers = tuple(peers)

    @abstractmethod
    def receive(self, turn: int) -> list[tuple[Any, Peer]]:
        """Be ready for the next messages: requests (of mpi4py) with the peers whose messages have come when they are
        completed."""

    def stage(self, turn: int) -> None:
        """Called behind the launch of the kernels that pack."""
        return

    @abstractmethod
    def send(self, turn: int) -> list[Any]:
        """Send what is packed, having waited for the device. Requests that are completed when all is sent."""

    @abstractmethod
    def message(self, peer: Peer, turn: int) -> Any:
        """The array of reals that has come from `peer`, for kernels launched from now on."""

    @abstractmethod
    def close(self) -> None:
        """Give back what MPI holds for it."""
