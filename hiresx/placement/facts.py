"""The facts that a rank knows about itself before any placement."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass

from hiresx.base.threads import requested_threads
from hiresx.device import cuda
from hiresx.mpi.launcher_environment import launcher_name
from hiresx.placement import cpu_binding


@dataclass(frozen=True)
class PlacementFacts:
    """Facts about the host and the devices of one process. `host`: the name of its host. `cpus`: the CPUs that it may
    use. `gpus`: PCI addresses of the GPUs that CUDA makes visible to it, in CUDA's order; `names`: their models.
    `used`: CUDA's number of the GPU on which it has a context. `fault`: why it has no GPU, and what to do. `threads`:
    the value of OMP_NUM_THREADS. `launcher`: the program that started the ranks (`hiresx.mpi.launcher_environment`)."""

    host: str
    cpus: frozenset[int]
    threads: int | None = None
    launcher: str = ""
    gpus: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    used: int | None = None
    fault: tuple[str, str] | None = None


def gather(gpu: bool, environment: Mapping[str, str] = os.environ) -> PlacementFacts:
    """Return the facts about this process that the placement of ranks needs: host, usable CPUs, visible GPUs, and
    launcher. `gpu`: whether it may use a GPU; if not, the CUDA driver is not loaded. `environment`: the environment
    variables."""
    host, cpus, threads = platform.node(), cpu_binding.allowed_cpus(), requested_threads(environment)
    by = launcher_name(environment)
    if not gpu:
        return PlacementFacts(host, cpus, threads, by)
    if error := cuda.obstacle():
        return PlacementFacts(host, cpus, threads, by, fault=(error.message, error.hint))
    found = cuda.devices()
    used = next((device.number for device in found if device.used), None)
    addresses = tuple(device.address for device in found)
    return PlacementFacts(host, cpus, threads, by, addresses, tuple(device.name for device in found), used)
