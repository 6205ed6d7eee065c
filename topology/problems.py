"""Problems of a machine that make a run slow or incorrect, as far as they can be detected from its description."""

import os
from collections.abc import Iterator

from hiresx.topology.connection_levels import (
    PCIE_OF,
    PCIE_SHARE,
    PCIE_X16,
    RANK,
    assumed_pcie_speed,
    pcie_generation,
    rank,
)
from hiresx.topology.cpus import format_list
from hiresx.topology.groups import levels_tell_nodes, nearest_nics, pcie_groups
from hiresx.topology.machine import Machine

# A measured bandwidth below this fraction of that of its level is a problem. ACS, for instance, halves it.
SLOW = 0.6


def problems(machine: Machine) -> list[str]:
    """Return sentences about everything in the description of a machine that makes a run slow or incorrect. Problems
    found while the machine was discovered come first."""
    found = list(machine.problems)
    found += [
        *_nodes(machine),
        *_levels(machine),
        *_affinities(machine),
        *_peers(machine),
        *_busy(machine),
        *_links(machine),
    ]
    found += [*_adapters(machine), *_slow_links(machine)]
    return list(dict.fromkeys(found))


def _nodes(machine: Machine) -> Iterator[str]:
    memory = {node.index: node.memory for node in machine.numa}
    cpus = {node.index: node.cpus for node in machine.numa}
    for gpu in machine.gpus:
        if gpu.numa is None:
            if len(machine.numa) > 1 and not gpu.nodes:
                yield f"GPU {gpu.index}: its NUMA node is not known (the firmware does not say)"
        elif memory.get(gpu.numa) == 0:
            yield f"GPU {gpu.index} is on NUMA node {gpu.numa}, which has no memory: host buffers will be on another"
        elif gpu.numa in cpus and not cpus[gpu.numa] and any(cpus.values()):
            yield f"GPU {gpu.index} is on NUMA node {gpu.numa}, which has no CPU: its nearest CPUs are on another"
        own = None if gpu.numa is None else cpus.get(gpu.numa)
        if gpu.cpus and own and not gpu.cpus & own:
            yield (
                f"GPU {gpu.index}: its nearest CPUs ({format_list(gpu.cpus)}) are none of NUMA node {gpu.numa} "
                f"({format_list(own)}), which it is said to be on: one of both is wrong"
            )
        if gpu.cpus and machine.allowed is not None and not gpu.cpus & machine.allowed:
            yield (
                f"GPU {gpu.index}: none of its nearest CPUs ({format_list(gpu.cpus)}) is among those this process may "
                f"use ({format_list(machine.allowed)})"
            )


def _levels(machine: Machine) -> Iterator[str]:
    gpus = machine.gpus
    if len(gpus) > 1:
        apart = all(machine.levels[a][b] == "SYS" for a in range(len(gpus)) for b in range(a))
        numa, cpus = {gpu.numa for gpu in gpus}, {gpu.cpus for gpu in gpus}
        if apart and 1 in (len(numa), len(cpus)) and (None not in numa or None not in cpus):
            yield "all GPUs are SYS from each other, yet on one NUMA node: a virtual machine that hides its topology?"
    for level in ("PHB", "NODE"):
        for part in pcie_groups(machine, level):
            far = [
                (a, b) for n, b in enumerate(part) for a in part[:n] if RANK.get(machine.pcie[a][b], 0) > RANK[level]
            ]
            if far:
                a, b = far[0]
                yield (
                    f"GPU {a} and GPU {b} are {machine.pcie[a][b]} of each other, yet both are {level} or nearer to "
                    "others in between: a contradiction in the recording"
                )
    for a in range(len(gpus)):
        for b in range(a):
            near = rank(machine.pcie[a][b]) <= RANK["NODE"]
            if near and None not in (gpus[a].numa, gpus[b].numa) and gpus[a].numa != gpus[b].numa:
                yield (
                    f"GPU {b} and GPU {a} are {machine.pcie[a][b]} of each other, yet on NUMA nodes {gpus[b].numa} and "
                    f"{gpus[a].numa}"
                )


def _affinities(machine: Machine) -> Iterator[str]:
    """Yield contradictions between NUMA nodes, nearest CPUs and levels."""
    tell = levels_tell_nodes(machine)
    found: dict[str, list[str]] = {}
    for a, one in enumerate(machine.gpus):
        for b, two in enumerate(machine.gpus[:a]):
            nodes = None if None in (one.numa, two.numa) else one.numa == two.numa
            if tell and machine.pcie[a][b] == "SYS" and (nodes or (one.cpus and one.cpus == two.cpus)):
                same = f"on NUMA node {one.numa}" if nodes else f"near the same CPUs ({format_list(one.cpus or ())})"
                text = f"are SYS of each other, yet {same}: the levels count; affinities clipped by a job, or wrong?"
            elif nodes and one.cpus and two.cpus and not one.cpus & two.cpus:
                text = f"are on NUMA node {one.numa}, yet have none of their nearest CPUs in common"
            elif nodes is False and one.cpus and one.cpus == two.cpus:
                text = f"are on two NUMA nodes, yet near the same CPUs ({format_list(one.cpus)}): clipped by a job?"
            else:
                continue
            found.setdefault(text, []).append(f"{b}-{a}")
    for text, pairs in found.items():
        yield f"GPUs {_some(pairs)} {text}"


def _some(pairs: list[str]) -> str:
    return ", ".join(pairs[:6]) + (f" and {len(pairs) - 6} more pairs" if len(pairs) > 6 else "")


def _peers(machine: Machine) -> Iterator[str]:
    without: dict[str, list[str]] = {}
    for a in range(len(machine.peer)):
        for b in range(a):
            reason = machine.peer[a][b]
            if reason not in ("", "OK"):
                without.setdefault(reason, []).append(f"{b}-{a}")
    for reason, pairs in without.items():
        yield f"no peer access ({reason}) between GPUs {_some(pairs)}: copies go through host memory"


def _busy(machine: Machine) -> Iterator[str]:
    for gpu in machine.gpus:
        if gpu.mig and not gpu.mig_uuid:
            yield f"GPU {gpu.index}: MIG is on, its parts have no peer access"
        if gpu.utilisation is not None and gpu.utilisation > 20:
            yield f"GPU {gpu.index} is busy: {gpu.utilisation} % utilisation"
        if gpu.memory and gpu.memory_used is not None and gpu.memory_used > 0.1 * gpu.memory:
            yield f"GPU {gpu.index} is in use: {gpu.memory_used / gpu.memory:.0%} of its memory"


def _links(machine: Machine) -> Iterator[str]:
    """Yield PCIe links with at most half the speed that the GPU's model supports. Smaller differences are not reported,
    since idle links report lower speeds."""
    slow: dict[str, list[int]] = {}
    for gpu in machine.gpus:
        best = PCIE_X16.get(PCIE_OF.get(pcie_generation(gpu.model) or "", 0))
        if gpu.pcie and best and gpu.pcie <= 0.51 * best and machine.measured is None:
            slow.setdefault(f"{gpu.pcie:.3g} GB/s, their model can do {best:.3g}", []).append(gpu.index)
    for what, gpus in slow.items():
        yield f"PCIe links of GPU {format_list(gpus)} are {what}: fewer lanes, a slower slot, or idle when recorded"


def _adapters(machine: Machine) -> Iterator[str]:
    """Yield GPUs whose path to other hosts begins with the interconnect between NUMA nodes, although that of other GPUs
    does not."""
    if not any(nic.rdma for nic in machine.nics):
        return
    best = [machine.nic_levels[gpu.index][nearest_nics(machine, gpu.index)[0]] for gpu in machine.gpus]
    far = [gpu for gpu, word in enumerate(best) if word == "SYS"]
    if far and len(far) < len(best):
        yield (
            f"GPU {format_list(far)}: no network adapter on their NUMA nodes; what they send to other hosts passes the "
            "interconnect"
        )


def _slow_links(machine: Machine) -> Iterator[str]:
    if machine.measured is None:
        return
    for a, gpu in enumerate(machine.gpus):
        speed = gpu.pcie * PCIE_SHARE if gpu.pcie else assumed_pcie_speed(gpu.model)
        for b in range(a):
            got = machine.measured.device[a][b]
            if machine.levels[a][b] in ("PSB", "PIX") and got is not None and got < SLOW * speed:
                yield (
                    f"GPU {b} to GPU {a} is {machine.levels[a][b]} but measured {got:.1f} GB/s of {speed:.0f}: "
                    "is ACS on? (lspci -vvv | grep ACSCtl)"
                )


def surroundings(machine: Machine) -> list[str]:
    """Return sentences about environment variables of this process that make a run slow or incorrect: a
    CUDA_VISIBLE_DEVICES that hides GPUs of `machine`, which must be the machine on which the process runs."""
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    if mask is None or any(gpu.mig_uuid for gpu in machine.gpus):
        return []
    names = [word.strip() for word in mask.split(",")]
    shown = [
        gpu.index
        for name in names
        for gpu in machine.gpus
        if name == str(gpu.index) or (name.startswith("GPU-") and gpu.uuid.startswith(name))
    ]
    hidden = [gpu.index for gpu in machine.gpus if gpu.index not in shown]
    if not hidden:
        return []
    whole = ",".join(map(str, dict.fromkeys([*shown, *hidden])))
    return [
        f"CUDA_VISIBLE_DEVICES={mask} hides GPU {format_list(hidden)}: where ranks are shown other GPUs each, direct "
        f"copies between them (CUDA IPC) may be refused; unset it and let the placement choose, or hide none: "
        f"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={whole}"
    ]
