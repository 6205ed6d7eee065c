"""The GPU of each rank of one host, chosen by the bytes between the ranks and the speed of the links
between the GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.placement.facts import PlacementFacts
from hiresx.topology import connection_levels
from hiresx.topology.cost import traffic
from hiresx.topology.cpus import format_list
from hiresx.topology.machine import GPU, Machine
from hiresx.topology.place import free_gpus, plan


class GpuChoice(NamedTuple):
    """The choice of a GPU for a rank. `gpu`: the chosen GPU. `why`: the reasons for the choice, as sentences."""

    gpu: GPU
    why: tuple[str, ...]


def choose(
    machines: Mapping[tuple[str, ...], Machine],
    facts: Mapping[int, PlacementFacts],
    bytes_: np.ndarray,
    off_host: np.ndarray,
    strategy: str | None = None,
) -> dict[int, GpuChoice]:
    """Choose a GPU for each rank of this host that computes on one. `facts`: for each of these ranks the GPUs that are
    visible to it. `machines`: the topology of the host, for each set of GPUs that is visible to some rank. `bytes_` (n,
    n): the bytes that each of all n ranks sends to each other rank in an exchange; `off_host` (n,): the bytes that each
    rank sends to other hosts. `strategy`: one of the strategies of `hiresx.topology.place`; None for the one with the
    shortest estimated exchange.

    If different GPUs are visible to the ranks (a scheduler may give one to each), each rank gets a GPU that it sees;
    ranks that see the fewest GPUs choose first. The result does not depend on the order in which CUDA numbers the GPUs.
    Busy GPUs are used only if there are no others. If there are more ranks than GPUs, ranks share GPUs evenly."""
    found: dict[int, GpuChoice] = {}
    views = dict.fromkeys(frozenset(fact.gpus) for fact in facts.values())
    for view in sorted(views, key=len):
        ranks = [rank for rank, fact in facts.items() if frozenset(fact.gpus) == view]
        offered = facts[ranks[0]].gpus
        machine = complete(machines[offered], facts[ranks[0]])
        number = {gpu.address: gpu.index for gpu in machine.gpus}
        for rank in ranks:
            used = facts[rank].used
            if used is not None:
                gpu = machine.gpus[number[facts[rank].gpus[used]]]
                found[rank] = GpuChoice(gpu, ("this process has computed on it before",))
        ranks = [rank for rank in ranks if rank not in found]
        gpus, why = _free(machine, sorted(number[address] for address in offered))
        taken = {chosen.gpu.address for chosen in found.values()}
        left = tuple(gpu for gpu in gpus if machine.gpus[gpu].address not in taken)
        gpus = left if len(left) >= len(ranks) else gpus
        for some, near in _parts(machine, gpus, {rank: facts[rank] for rank in ranks}):
            found |= _plan(machine, some, near, bytes_, off_host, why, strategy)
    for rank, chosen in found.items():
        others = [r for r, c in found.items() if r != rank and c.gpu.address == chosen.gpu.address]
        notes = [f"shared with rank{'s' * (len(others) > 1)} {', '.join(map(str, others))}"] if others else []
        if others and chosen.gpu.mig_uuid:
            notes.append(
                "MIG: CUDA shows a process one slice; start each rank with CUDA_VISIBLE_DEVICES=MIG-... of its own"
            )
        notes += _hidden_gpu_remarks(rank, found, facts, machines[facts[rank].gpus])
        found[rank] = chosen._replace(why=(*chosen.why, *notes))
    return found


def _hidden_gpu_remarks(
    rank: int, chosen: Mapping[int, GpuChoice], facts: Mapping[int, PlacementFacts], machine: Machine
) -> list[str]:
    """Yield remarks on GPUs of other ranks of this host that are hidden from this rank, with the setting that makes
    them visible. `machine`: the machine as the rank sees it, including GPUs that are hidden from CUDA."""
    every = sorted({address for fact in facts.values() for address in fact.gpus})
    known = [gpu.address for gpu in machine.gpus]
    # If a cgroup hides GPUs from all processes, CUDA numbers the remaining ones; otherwise it numbers all GPUs of the
    # host.
    number = {address: (known if set(every) <= set(known) else every).index(address) for address in every}
    far = [r for r, other in chosen.items() if other.gpu.address not in facts[rank].gpus]
    if not far:
        return []
    who = f"rank{'s' * (len(far) > 1)} {format_list(far)}"
    if any("/" in address for address in every):
        return [f"MIG: the slices of {who} are not shown to it, and no slice can copy to another one directly"]
    own = chosen[rank].gpu.address
    mask = ",".join(str(number[address]) for address in (own, *(other for other in every if other != own)))
    return [
        f"the GPUs of {who} are hidden from it, which may keep it from copying from there directly (CUDA IPC); "
        f"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={mask} shows them, behind its own, and Slurm does so with "
        "--gpus-per-node in place of --gpus-per-task or --gpu-bind"
    ]


def complete(machine: Machine, facts: PlacementFacts) -> Machine:
    """Return the description `machine` if it contains all GPUs that CUDA shows to a process. Otherwise return a machine
    with just these GPUs, whose links are unknown: in a container NVML may be missing and /sys hidden. `facts`: the GPUs
    that are visible to the process."""
    known = {gpu.address: gpu for gpu in machine.gpus}
    if set(known) >= set(facts.gpus):
        return machine
    count = len(facts.gpus)

    def of(address: str, name: str) -> GPU:
        bus, _, part = address.partition("/")
        card = known.get(bus)  # of a slice that only CUDA knows
        return known.get(address) or (replace(card, mig_uuid=part) if card else GPU(0, bus, name, mig_uuid=part))

    gpus = (
        replace(of(address, name), index=n)
        for n, (address, name) in enumerate(zip(facts.gpus, facts.names, strict=True))
    )
    square = tuple(tuple(connection_levels.SELF if a == b else "SYS" for b in range(count)) for a in range(count))
    return replace(
        machine,
        gpus=tuple(gpus),
        levels=square,
        pcie=square,
        peer=tuple(tuple(connection_levels.SELF if a == b else "" for b in range(count)) for a in range(count)),
        nics=(),
        nic_levels=((),) * count,
        measured=None,
    )


def idle(machine: Machine, facts: PlacementFacts) -> tuple[int, ...]:
    """Return the indexes of the GPUs that CUDA shows to a process and that no process uses. `machine`: the description
    of the host. `facts`: the GPUs that are visible to the process."""
    machine = complete(machine, facts)
    return tuple(gpu for gpu in _idle(machine)[0] if machine.gpus[gpu].address in facts.gpus)


def _idle(machine: Machine) -> tuple[tuple[int, ...], dict[int, str]]:
    try:
        return free_gpus(machine)
    except HiresxError:  # all are busy
        return (), {}


def _free(machine: Machine, visible: Sequence[int]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return (the visible GPUs to use, remarks on the others)."""
    free, left_out = _idle(machine)
    chosen = tuple(gpu for gpu in visible if gpu in free)
    if not chosen:
        return tuple(visible), ("every GPU is in use by others",)
    return chosen, tuple(f"GPU {gpu} left out: {why}" for gpu, why in left_out.items() if gpu in visible)


def _parts(
    machine: Machine, gpus: tuple[int, ...], facts: Mapping[int, PlacementFacts]
) -> list[tuple[list[int], tuple[int, ...]]]:
    """Yield groups (ranks, GPUs for them). If a launcher bound ranks near some GPUs each, and there are enough GPUs
    near each group, groups use these; otherwise all ranks use all GPUs."""
    if not facts:
        return []

    def near(cpus: frozenset[int]) -> tuple[int, ...]:
        return tuple(gpu for gpu in gpus if cpus & (machine.gpus[gpu].cpus or cpus)) or gpus

    parts: dict[tuple[int, ...], list[int]] = {}
    for rank, fact in facts.items():
        parts.setdefault(near(fact.cpus), []).append(rank)
    apart = sum(map(len, parts)) == len(set().union(*parts))
    if apart and all(len(ranks) <= len(some) for some, ranks in parts.items()):
        return [(ranks, some) for some, ranks in parts.items()]
    return [(list(facts), gpus)]


def _plan(
    machine: Machine,
    ranks: list[int],
    gpus: tuple[int, ...],
    bytes_: np.ndarray,
    off_host: np.ndarray,
    why: tuple[str, ...],
    strategy: str | None,
) -> dict[int, GpuChoice]:
    made = plan(machine, traffic(bytes_[np.ix_(ranks, ranks)], off_host[ranks]), gpus=gpus)
    name = strategy or made.best
    if len(gpus) > 1 and len(ranks) > 1:
        notes = f"{name} placement of {plural(len(ranks), 'rank')} on {plural(len(gpus), 'GPU')}"
        if made.gain(name) > 0.005:
            notes += f", exchange {made.gain(name):.0%} shorter than round-robin"
        why = (notes, *why)
    placed = made.strategies[name].placement
    return {rank: GpuChoice(machine.gpus[gpu], why) for rank, gpu in zip(ranks, placed, strict=True)}
