"""Which GPU each rank of one host takes: by the bytes between the ranks and the links between the GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hiresx.errors import HiresxError
from hiresx.placement.facts import PlacementFacts
from hiresx.topology import levels
from hiresx.topology.cost import traffic
from hiresx.topology.machine import GPU, Machine, bus_id
from hiresx.topology.place import free_gpus, plan


class Chosen(NamedTuple):
    gpu: GPU
    why: tuple[str, ...]


def choose(
    machines: Mapping[tuple[str, ...], Machine],
    facts: Mapping[int, PlacementFacts],
    bytes_: np.ndarray,
    off_host: np.ndarray,
    strategy: str | None = None,
) -> dict[int, Chosen]:
    """The GPU of each rank. `facts`: of the ranks of this host that compute on one; `machines`: the host as ranks that
    are offered the same GPUs see it. `bytes_` (n, n), `off_host` (n,): of all ranks, per exchange. `strategy`: one of
    `hiresx.topology.place`, None for that with the shortest exchange.

    Ranks that are offered different GPUs, as a scheduler's one for each, choose among their own. Busy GPUs are left
    out while there are others; ranks beyond the number of GPUs share them evenly.
    """
    found: dict[int, Chosen] = {}
    for view in dict.fromkeys(fact.gpus for fact in facts.values()):
        ranks = [rank for rank, fact in facts.items() if fact.gpus == view]
        machine = complete(machines[view], facts[ranks[0]])
        number = {bus_id(gpu.bus_id): gpu.index for gpu in machine.gpus}
        for rank in ranks:
            used = facts[rank].used
            if used is not None:
                gpu = machine.gpus[number[view[used]]]
                found[rank] = Chosen(gpu, ("this process has computed on it before",))
        ranks = [rank for rank in ranks if rank not in found]
        gpus, why = _free(machine, [number[address] for address in view])
        for some, near in _parts(machine, gpus, {rank: facts[rank] for rank in ranks}):
            found |= _planned(machine, some, near, bytes_, off_host, why, strategy)
    for rank, chosen in found.items():
        others = [r for r, c in found.items() if r != rank and c.gpu.bus_id == chosen.gpu.bus_id]
        if others:
            shared = f"shared with rank{'s' * (len(others) > 1)} {', '.join(map(str, others))}"
            found[rank] = chosen._replace(why=(*chosen.why, shared))
    return found


def complete(machine: Machine, facts: PlacementFacts) -> Machine:
    """The machine, if it has all GPUs that CUDA offers; else one of just these, of whose links nothing is known: in a
    container NVML may be missing and /sys hidden."""
    if {bus_id(gpu.bus_id) for gpu in machine.gpus} >= set(facts.gpus):
        return machine
    count = len(facts.gpus)
    known = {bus_id(gpu.bus_id): gpu for gpu in machine.gpus}
    gpus = (
        replace(known.get(address, GPU(n, address, name)), index=n)
        for n, (address, name) in enumerate(zip(facts.gpus, facts.names, strict=True))
    )
    square = tuple(tuple(levels.SELF if a == b else "SYS" for b in range(count)) for a in range(count))
    return replace(
        machine,
        gpus=tuple(gpus),
        levels=square,
        pcie=square,
        peer=tuple(tuple(levels.SELF if a == b else "" for b in range(count)) for a in range(count)),
        nics=(),
        nic_levels=((),) * count,
        measured=None,
    )


def idle(machine: Machine, facts: PlacementFacts) -> tuple[int, ...]:
    """Indexes of the GPUs that CUDA offers and nobody uses."""
    machine = complete(machine, facts)
    return tuple(gpu for gpu in _idle(machine)[0] if bus_id(machine.gpus[gpu].bus_id) in facts.gpus)


def _idle(machine: Machine) -> tuple[tuple[int, ...], dict[int, str]]:
    try:
        return free_gpus(machine)
    except HiresxError:  # all are busy
        return (), {}


def _free(machine: Machine, visible: Sequence[int]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(those of the visible GPUs to use, what there is to say of the others)."""
    free, left_out = _idle(machine)
    chosen = tuple(gpu for gpu in visible if gpu in free)
    if not chosen:
        return tuple(visible), ("every GPU is in use by others",)
    return chosen, tuple(f"GPU {gpu} left out: {why}" for gpu, why in left_out.items() if gpu in visible)


def _parts(
    machine: Machine, gpus: tuple[int, ...], facts: Mapping[int, PlacementFacts]
) -> list[tuple[list[int], tuple[int, ...]]]:
    """(ranks, GPUs for them): where a launcher bound ranks near some GPUs each, and has left no GPU short, they take
    these; else all take all."""
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


def _planned(
    machine: Machine,
    ranks: list[int],
    gpus: tuple[int, ...],
    bytes_: np.ndarray,
    off_host: np.ndarray,
    why: tuple[str, ...],
    strategy: str | None,
) -> dict[int, Chosen]:
    made = plan(machine, traffic(bytes_[np.ix_(ranks, ranks)], off_host[ranks]), gpus=gpus)
    name = strategy or made.best
    if len(gpus) > 1 and len(ranks) > 1:
        said = f"{name} placement of {len(ranks)} ranks on {len(gpus)} GPUs"
        if made.gain(name) > 0.005:
            said += f", exchange {made.gain(name):.0%} shorter than round-robin"
        why = (said, *why)
    placed = made.strategies[name].placement
    return {rank: Chosen(machine.gpus[gpu], why) for rank, gpu in zip(ranks, placed, strict=True)}
