"""Messages in shared memory of the ranks of a host. The sender packs into it, and the receiver unpacks from it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hiresx.exchange.halo_layout import Peer
from hiresx.exchange.notification import Notification
from hiresx.mpi.communicator import Communicator


class SharedMemory:
    """Memory that all ranks of this host can read. Each rank has `size` bytes. Collective on the ranks of the host."""

    def __init__(self, comm: Communicator, size: int):
        from mpi4py import MPI

        info = MPI.Info.Create()
        # Each rank's bytes are on pages of their own. The rank is the first to write to them, so that they are
        # allocated in the memory nearest to it.
        info["alloc_shared_noncontig"] = "true"
        self._window = MPI.Win.Allocate_shared(size, 1, info, comm.local.mpi_comm)
        info.Free()
        self._window.Lock_all(MPI.MODE_NOCHECK)
        here = [rank for rank, host in enumerate(comm.hosts) if host == comm.hosts[comm.rank]]
        self._places = {rank: place for place, rank in enumerate(here)}
        self.own = self.of(comm.rank)[:size]
        self.own[...] = 0

    def of(self, rank: int) -> np.ndarray:
        """Return the shared memory of the rank `rank`, a number among the ranks of the run, as an array of bytes
        without a copy. The rank must be on the same host as this one."""
        memory: Any = self._window.Shared_query(self._places[rank])[0]
        return np.frombuffer(memory, np.uint8)

    def sync(self) -> None:
        """Execute a memory barrier on the shared memory, so that other ranks see all earlier writes of this rank once
        they are notified of them."""
        self._window.Sync()

    def close(self) -> None:
        """Free the shared memory. Collective on the ranks of the host."""
        self._window.Unlock_all()
        self._window.Free()


class Window(Notification):
    """Transport by the shared `memory` of a host. `messages[turn][rank]`: the array in this memory that contains the
    message of the peer `rank` for this rank. `turn` is the number of the set of buffers, 0 or 1. `mpi_comm`, `tag`: the
    mpi4py communicator and the tag of the notifications. `peers`: the other ranks."""

    def __init__(
        self,
        mpi_comm: Any,
        tag: int,
        peers: Sequence[Peer],
        messages: Sequence[Mapping[int, Any]],
        memory: SharedMemory,
    ):
        super().__init__(mpi_comm, tag, peers, messages)
        self._memory = memory

    def publish(self, turn: int) -> None:
        """Make the packed messages in shared memory, in buffer set `turn` (0 or 1), visible to the other ranks, by a
        memory barrier."""
        self._memory.sync()

    def message(self, peer: Peer, turn: int) -> Any:
        """Return the message of `peer`, a view of an array of reals that remains in shared memory. `turn`: the buffer
        set, 0 or 1. Does not wait: the request of this message from `receive` must be complete."""
        self._memory.sync()
        return super().message(peer, turn)
