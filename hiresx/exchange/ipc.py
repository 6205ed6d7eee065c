"""Messages in the memory of a GPU. Kernels of another process unpack them there, from the same GPU or from one with
peer access."""

from collections.abc import Mapping, Sequence
from typing import Any

from hiresx.exchange.gpu import Gpu
from hiresx.exchange.halo_layout import Peer
from hiresx.exchange.notification import Notification


class Ipc(Notification):
    """Transport by GPU memory that other processes of the host can open (CUDA IPC). `messages[turn][rank]`: the array
    in the memory of the GPU of the peer `rank` that contains its message for this rank. `gpu` has opened this memory.
    `turn` is the number of the set of buffers, 0 or 1. `mpi_comm`, `tag`: the mpi4py communicator and the tag of the
    MPI messages that announce messages. `peers`: the other ranks."""

    def __init__(self, mpi_comm: Any, tag: int, peers: Sequence[Peer], messages: Sequence[Mapping[int, Any]], gpu: Gpu):
        super().__init__(mpi_comm, tag, peers, messages)
        self._packed = gpu.moment()

    def stage(self, turn: int) -> None:
        """Record a CUDA event behind the kernels that pack the messages in buffer set `turn` (0 or 1). The method
        `publish` waits for this event."""
        self._packed.record()

    def publish(self, turn: int) -> None:
        """Wait until the GPU has packed the messages in buffer set `turn` (0 or 1). Other processes can then read them
        in the memory of this GPU."""
        # The kernels that unpacked the previous messages are also complete, because they were launched before. A peer
        # that receives this notification may therefore overwrite the buffer that they read.
        self._packed.synchronize()
