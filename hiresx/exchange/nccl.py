"""Messages by NCCL, in the order of a stream: the host neither waits for them nor hears of them."""

from collections.abc import Sequence
from typing import Any

from hiresx.exchange.gpu import Gpu
from hiresx.exchange.halo_layout import Peer
from hiresx.exchange.message_buffers import MessageBuffers
from hiresx.exchange.transport import Transport


class Nccl(Transport):
    """Sends from `buffers` in GPU memory and receives into them; `communicator` from `gpu.nccl`."""

    def __init__(self, communicator: Any, peers: Sequence[Peer], buffers: MessageBuffers, gpu: Gpu):
        super().__init__(peers)
        self.silent = self.peers
        self._communicator, self._gpu = communicator, gpu
        self._out = [[(p.rank, out) for p, out in zip(peers, sent, strict=True)] for sent in buffers.sent(peers)]
        self._into = buffers.received(peers)

    def receive(self, turn: int) -> list[tuple[Any, Peer]]:
        return []

    def stage(self, turn: int) -> None:
        self._gpu.trade(self._communicator, self._out[turn], self._into[turn].items())

    def send(self, turn: int) -> list[Any]:
        return []

    def message(self, peer: Peer, turn: int) -> Any:
        self._gpu.await_copies()
        return self._into[turn][peer.rank]

    def close(self) -> None:
        """Nothing is held."""
