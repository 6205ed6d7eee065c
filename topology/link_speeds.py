"""Bandwidth and latency between every pair of GPUs, and between each GPU and host memory next to it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hiresx.errors import HiresxError
from hiresx.topology import memory
from hiresx.topology.libcuda import Cuda
from hiresx.topology.machine import Machine, MeasuredSpeeds

# Large enough that the latency of a copy does not matter, small enough for a card of 4 GB.
LARGE, LARGE_REPEATS = 64 * 2**20, 10
# Small enough that only the latency matters.
SMALL, SMALL_REPEATS = 8, 100
GIGA = 1e9


def measure(machine: Machine, cuda: Cuda | None = None, say: Callable[[str], None] = lambda line: None) -> Machine:
    """Measure the bandwidth (GB/s) and latency (s) of copies between every ordered pair of GPUs and between each GPU
    and the host, one copy at a time. Returns the machine with its entry `measured` filled in. `machine`: the machine on
    which this process runs. `say`: a function that is called with a line of text about the progress. `cuda`: the
    initialised CUDA driver, by default a new one. Raises HiresxError for the recording of another machine, for a
    machine without a GPU, and if the CUDA driver is missing."""
    if not machine.live:
        raise HiresxError(
            f"{machine.source}: a recording cannot be measured", "run hiresx topo measure on that machine"
        )
    if not machine.gpus:
        raise HiresxError("there is no GPU here to measure", "run hiresx topo measure on a machine with GPUs")
    cuda = Cuda() if cuda is None else cuda
    count = len(machine.gpus)
    device: list[list[float | None]] = [[None] * count for _ in range(count)]
    latency: list[list[float | None]] = [[None] * count for _ in range(count)]
    to_device: list[float | None] = [None] * count
    to_host: list[float | None] = [None] * count
    try:
        ordinals = [cuda.ordinal(gpu.bus_id) for gpu in machine.gpus]
        for a, gpu in enumerate(machine.gpus):
            buffer = cuda.allocate(ordinals[a], LARGE)
            try:
                to_device[a], to_host[a], pinned = host_speeds(cuda, ordinals[a], buffer, gpu.numa)
                say(
                    f"GPU {a}: host to device {to_device[a]:.1f} GB/s, device to host {to_host[a]:.1f} GB/s"
                    + ("" if pinned else " (memory was not pinned)")
                )
                for b in range(count):
                    if a != b:
                        speed, small = _pair(cuda, ordinals[a], ordinals[b], buffer)
                        device[a][b], latency[a][b] = speed, small
                        say(f"GPU {a} to GPU {b}: {speed:.1f} GB/s, {small * 1e6:.1f} us")
            finally:
                cuda.free(ordinals[a], buffer)
    finally:
        cuda.close()
    speeds, seconds = (tuple(tuple(row) for row in matrix) for matrix in (device, latency))
    return replace(machine, measured=MeasuredSpeeds(speeds, seconds, tuple(to_device), tuple(to_host)))


def host_speeds(cuda: Cuda, ordinal: int, buffer: int, node: int | None) -> tuple[float, float, bool]:
    """Measure the bandwidth between a GPU and host memory on the NUMA node `node` (if None, wherever the system
    allocates it). `cuda`: the initialised driver. `ordinal`: CUDA's number of the GPU. `buffer`: an address in the
    memory of the GPU. Returns (GB/s to the device, GB/s to the host, True if the host memory was page-locked)."""
    if node is not None:
        memory.prefer(node)
    array = np.ones(LARGE, "u1")  # accessed, so that its pages are allocated
    address = array.ctypes.data
    try:
        cuda.register(address, LARGE)
        pinned = True
    except HiresxError:
        pinned = False
    try:
        down = cuda.copy_time("to_device", buffer, address, LARGE, LARGE_REPEATS, ordinal)
        up = cuda.copy_time("to_host", address, buffer, LARGE, LARGE_REPEATS, ordinal)
    finally:
        if pinned:
            cuda.unregister(address)
    return LARGE / down / GIGA, LARGE / up / GIGA, pinned


def _pair(cuda: Cuda, source: int, to: int, buffer: int) -> tuple[float, float]:
    """Return (GB/s, seconds of a small copy). Without peer access the driver stages the copy, and that time counts."""
    cuda.enable_peer(source, to)
    cuda.enable_peer(to, source)
    other = cuda.allocate(to, LARGE)
    try:
        large = cuda.copy_time("peer", other, buffer, LARGE, LARGE_REPEATS, source, to)
        small = cuda.copy_time("peer", other, buffer, SMALL, SMALL_REPEATS, source, to)
    finally:
        cuda.free(to, other)
    return LARGE / large / GIGA, small
