"""Messages from GPU memory to GPU memory by an MPI that can read and write there."""

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from hiresx.exchange.gpu import Gpu
from hiresx.exchange.halo_layout import Peer
from hiresx.exchange.message_buffers import MessageBuffers
from hiresx.exchange.mpi import Mpi


class CudaAware(Mpi):
    """Transport that passes arrays in GPU memory to an MPI library that can read and write there (CUDA-aware MPI). It
    differs from `Mpi` in this only. `gpu`: the GPU of this process. `mpi_comm`: the mpi4py communicator. `tag`: the MPI
    tag of the quantity. `peers`: the other ranks. `buffers`: those of the messages."""

    def __init__(self, mpi_comm: Any, tag: int, peers: Sequence[Peer], buffers: MessageBuffers, gpu: Gpu):
        super().__init__(mpi_comm, tag, peers, buffers)
        self._packed = gpu.moment()

    def stage(self, turn: int) -> None:
        """Record a CUDA event behind the kernels that pack the messages in buffer set `turn` (0 or 1). The method
        `send` waits for this event."""
        self._packed.record()

    def send(self, turn: int) -> list[Any]:
        """Wait until the GPU has packed the messages in buffer set `turn` (0 or 1), then start to send them by MPI from
        GPU memory. Returns the MPI requests."""
        self._packed.synchronize()
        return super().send(turn)


def obstacle(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the reason, as text, why the MPI library of mpi4py cannot send from GPU memory; None if the library
    reports that it can. `environment`: the environment variables."""
    from mpi4py import MPI

    name = MPI.Get_library_version().splitlines()[0].strip("\0 ")
    if "CRAY MPICH" in name.upper() and environment.get("MPICH_GPU_SUPPORT_ENABLED") != "1":
        return f"{name} takes GPU memory only with MPICH_GPU_SUPPORT_ENABLED=1"
    # mpi4py is linked to the MPI library that it uses, so the symbol is found through mpi4py's extension module.
    try:
        query = ctypes.CDLL(MPI.__file__).MPIX_Query_cuda_support
    except (OSError, AttributeError):
        return f"{name} does not say that it takes GPU memory"
    query.restype = ctypes.c_int
    return None if query() else f"{name} says that it does not take GPU memory"
