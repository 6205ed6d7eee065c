"""The network adapters, NUMA node and cores nearest to one GPU, or to the CPUs of a process."""

import os
from dataclasses import dataclass

from hiresx.errors import HiresxError
from hiresx.topology import connection_levels
from hiresx.topology.groups import best_nics, nearest_nics
from hiresx.topology.libcuda import Driver
from hiresx.topology.machine import GPU, NIC, Cpus, Machine, address


@dataclass(frozen=True)
class Nearest:
    """The devices nearest to a GPU. `gpu`: the GPU; None for a process without one. `numa`: its NUMA node; None if
    unknown. `cpus`: the nearest CPUs that this process may use (for a recording: the nearest ones). `cores`: these
    CPUs, grouped by cores. `nics`: the nearest adapters, all equally near; if any of them has RDMA, only those with
    RDMA. `nic_level`: their level, a word of `hiresx.topology.connection_levels`; "" without an adapter. `warnings`:
    reasons why a run may be slow."""

    gpu: GPU | None
    numa: int | None
    cpus: Cpus
    cores: tuple[Cpus, ...]
    nics: tuple[NIC, ...]
    nic_level: str
    warnings: tuple[str, ...] = ()

    @property
    def nic(self) -> NIC | None:
        """The network adapter that the GPU should use; None if there is none. If several adapters are equally near,
        GPUs take them in turn, by the index of the GPU."""
        turn = self.gpu.index if self.gpu is not None else 0
        return self.nics[turn % len(self.nics)] if self.nics else None


def nearest(gpu: int | str | None = None, machine: Machine | None = None) -> Nearest:
    """Return the network adapters, NUMA node and CPU cores nearest to a GPU. `gpu`: its index on the host (in the order
    of PCI addresses, as in NVML), its PCI address, or the UUID of a GPU or MIG slice. If `gpu` is None, the GPU on
    which this process has a CUDA context is used or, without a context, the only GPU that CUDA shows to the process. If
    there is no such GPU, the result is for the CPUs to which the process is bound. `machine`: the description of a
    machine, by default of this one. No CUDA context is created. Raises HiresxError for an unknown GPU."""
    if machine is None:
        from hiresx.topology.discover import discover

        machine = discover()
    if gpu is None and machine.live:
        gpu = _own()
    found = None if gpu is None else _find_gpu(machine, gpu)
    warnings = []
    if found is not None:
        every = found.cpus or next((node.cpus for node in machine.numa if node.index == found.numa), frozenset())
        numa, nics = found.numa, nearest_nics(machine, found.index)
        level = machine.nic_levels[found.index][nics[0]] if nics else ""
    else:
        allowed = _allowed_cpus(machine)
        nodes = [node for node in machine.numa if node.cpus & allowed]
        numa = nodes[0].index if len(nodes) == 1 else None
        every = allowed
        away = [_node_level(machine, numa, nic) for nic in machine.nics]
        nics = best_nics(machine, [connection_levels.RANK.get(word, connection_levels.RANK["NODE"]) for word in away])
        level = away[nics[0]] if nics else ""
    cpus = every & _allowed_cpus(machine) if machine.live else every
    if found is not None and every and not cpus:
        warnings.append("none of the CPUs that this process may use is near the GPU")
        cpus = _allowed_cpus(machine)
    if level == "SYS":
        warnings.append("the nearest network adapter is on another NUMA node")
    cores = tuple(core & cpus for core in machine.cores if core & cpus)
    return Nearest(found, numa, cpus, cores, tuple(machine.nics[n] for n in nics), level, tuple(warnings))


def _node_level(machine: Machine, numa: int | None, nic: NIC) -> str:
    """Return the level of an adapter to a NUMA node; "" if it is not known."""
    if len(machine.numa) < 2:
        return "NODE"
    return "" if None in (numa, nic.numa) else "NODE" if nic.numa == numa else "SYS"


def _allowed_cpus(machine: Machine) -> Cpus:
    """Return the CPUs that this process may use now; for a recording all of its CPUs."""
    if machine.live:
        return frozenset(os.sched_getaffinity(0))
    return frozenset().union(*(node.cpus for node in machine.numa), *machine.cores)


def _own() -> str | None:
    """Return the address of the GPU of this process."""
    try:
        driver = Driver()
        numbers = range(driver.count())
        used = [number for number in numbers if driver.has_context(number)]
        chosen = used[0] if used else 0 if len(numbers) == 1 else None
        return None if chosen is None else address(driver.bus_id(chosen), driver.mig_uuid(chosen))
    except HiresxError:  # no driver, or no GPU
        return None


def _find_gpu(machine: Machine, gpu: int | str) -> GPU:
    for entry in machine.gpus:
        names = (entry.address, entry.mig_uuid) if entry.mig_uuid else (entry.address, entry.uuid)
        if entry.index == gpu or (isinstance(gpu, str) and gpu and (gpu in names or address(gpu) == entry.address)):
            return entry
    where = "this machine" if machine.live else "the recording"
    raise HiresxError(f"there is no GPU {gpu}", f"{where} has {len(machine.gpus)}; name one by number, address or UUID")
