"""NVLink domains that span several hosts, as in racks with a common NVLink switch.

NVML gives the domain of each GPU (nvml.h, nvmlGpuFabricInfo_t): GPUs with the same cluster UUID and clique can reach
each other. A placement treats the hosts of a domain as one machine.
"""

from collections.abc import Sequence
from dataclasses import replace

from hiresx.errors import HiresxError
from hiresx.topology import connection_levels
from hiresx.topology.machine import GPU, NIC, Machine, Matrix, NumaNode


def nvlink_domains(machines: Sequence[Machine]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return the GPUs of each NVLink domain, the set of GPUs that reach each other through common NVLink switches. The
    keys are the names of the domains ("cluster UUID/clique"). The values are pairs (index of the machine in `machines`,
    index of the GPU on that machine). A GPU whose NVLinks do not leave its host belongs to no domain."""
    found: dict[str, list[tuple[int, int]]] = {}
    for n, machine in enumerate(machines):
        for gpu in machine.gpus:
            if gpu.domain:
                found.setdefault(gpu.domain, []).append((n, gpu.index))
    return {domain: tuple(members) for domain, members in sorted(found.items())}


def one_machine(machines: Sequence[Machine]) -> Machine:
    """Return one description that joins several hosts of one NVLink domain. The GPUs and network adapters of the hosts
    follow one another in the order of `machines`, and GPUs of different hosts are connected by NVLink. NUMA nodes are
    numbered consecutively. Data about single CPUs are left out, since they belong to one host. Raises HiresxError,
    naming the first GPU concerned, if not all GPUs are in one domain."""
    if len(machines) == 1:
        return machines[0]
    names = [machine.host or f"host {n}" for n, machine in enumerate(machines)]
    owner = [(n, gpu) for n, machine in enumerate(machines) for gpu in machine.gpus]
    if not owner:
        raise HiresxError("the recordings have no GPU to place ranks on", "take recordings of machines that have GPUs")
    domain = owner[0][1].domain
    for n, gpu in owner:
        if not gpu.domain or gpu.domain != domain:
            other = f", GPU 0 of {names[owner[0][0]]} in {_domain(owner[0][1])}" if gpu.domain else ""
            raise HiresxError(
                f"GPU {gpu.index} of {names[n]} is in {_domain(gpu)}{other}",
                "plan for the hosts of one domain, or for each host by itself with --off-host",
            )
    gpus: list[GPU] = []
    nics: list[NIC] = []
    numa: list[NumaNode] = []
    homes: list[int] = []
    for n, machine in enumerate(machines):
        first = max((node.index + 1 for node in numa), default=0)
        for gpu in machine.gpus:
            node = None if gpu.numa is None else gpu.numa + first
            gpus.append(replace(gpu, index=len(gpus), numa=node, nodes=None, cpus=None, path=()))
        for nic in machine.nics:
            node = None if nic.numa is None else nic.numa + first
            nics.append(replace(nic, name=f"{names[n]}:{nic.name}", numa=node, path=()))
            homes.append(n)
        numa += [replace(node, index=node.index + first, cpus=frozenset()) for node in machine.numa]

    def table(key: str, between: bool) -> Matrix:
        def word(a: int, b: int) -> str:
            (n, one), (m, two) = owner[a], owner[b]
            if n == m:
                entry: str = getattr(machines[n], key)[one.index][two.index]
                return entry
            return f"NV{min(_links(one), _links(two))}" if between else "SYS" if key == "pcie" else ""

        return tuple(tuple(word(a, b) for b in range(len(owner))) for a in range(len(owner)))

    def to_nic(a: int, b: int) -> str:
        n, gpu = owner[a]
        return machines[n].nic_levels[gpu.index][b - homes.index(n)] if homes[b] == n else "SYS"

    return Machine(
        source=f"one NVLink domain of {len(machines)} hosts: {', '.join(machine.source for machine in machines)}",
        gpus=tuple(gpus),
        levels=table("levels", True),
        pcie=table("pcie", False),
        peer=table("peer", False),
        nics=tuple(nics),
        nic_levels=tuple(tuple(to_nic(a, b) for b in range(len(nics))) for a in range(len(owner))),
        packages=machines[0].packages[:1],
        numa=tuple(numa),
        problems=tuple(f"{name}: {line}" for name, made in zip(names, machines, strict=True) for line in made.problems),
    )


def _domain(gpu: GPU) -> str:
    return f"the NVLink domain {gpu.domain}" if gpu.domain else "no NVLink domain that reaches over hosts"


def _links(gpu: GPU) -> int:
    return gpu.links or connection_levels.MOST_NVLINKS.get(connection_levels.generation(gpu.model) or "", 18)
