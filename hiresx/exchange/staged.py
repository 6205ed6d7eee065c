"""Messages of a GPU that are copied through page-locked memory of its host."""

from collections.abc import Iterable, Sequence
from typing import Any

from hiresx.exchange.gpu import Gpu
from hiresx.exchange.halo_layout import Peer
from hiresx.exchange.message_buffers import MessageBuffers
from hiresx.exchange.transport import Transport


class StagedTransport(Transport):
    """Transport through the memory of the host. It copies messages from the `buffers` of the GPU `gpu` to `staged`, an
    array on the host per turn, which the transport `host` sends. Messages that `host` receives are copied to the GPU's
    buffers.

    Copies to the host overlap with kernels that were launched after the packing kernels."""

    def __init__(self, host: Transport, staged: Sequence[Any], buffers: MessageBuffers, gpu: Gpu):
        super().__init__(host.peers)
        self._host, self._gpu = host, gpu
        width, spans = buffers.width, _spans(peer.out for peer in host.peers)
        self._out = [
            [(there[width * a : width * b], here[width * a : width * b]) for a, b in spans]
            for there, here in zip(staged, buffers.outgoing, strict=True)
        ]
        self._into = buffers.incoming_messages(host.peers)
        self._packed, self._copied = gpu.moment(), gpu.moment()

    def receive(self, turn: int) -> list[tuple[Any, Peer]]:
        """Start to receive messages from all peers into host memory, buffer set `turn` (0 or 1). Returns pairs
        (request, peer)."""
        return self._host.receive(turn)

    def stage(self, turn: int) -> None:
        """Start to copy the packed messages of buffer set `turn` (0 or 1) from the GPU to host memory."""
        self._packed.record()
        self._gpu.copy_out(self._out[turn], self._packed, self._copied)

    def send(self, turn: int) -> list[Any]:
        """Wait until the messages of buffer set `turn` (0 or 1) are in host memory, then start to send them to all
        peers. Returns the requests of the transport that sends from host memory."""
        self._copied.synchronize()
        return self._host.send(turn)

    def message(self, peer: Peer, turn: int) -> Any:
        """Start to copy the message of `peer` from host memory to the GPU, and return the array on the GPU without
        waiting. Kernels that are launched afterwards read the copied message. `turn`: the buffer set, 0 or 1."""
        into = self._into[turn][peer.rank]
        self._gpu.copy_in(into, self._host.message(peer, turn))
        return into

    def close(self) -> None:
        """Free the resources of the transport that sends messages from host memory."""
        self._host.close()


def _spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join adjacent spans, so that there are fewer and longer copies."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if first == last:
            continue
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found
