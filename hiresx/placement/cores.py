"""CPUs of each rank of one host: near its GPU, else a share in the order of the NUMA nodes."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from hiresx.base.plural import plural
from hiresx.placement.facts import PlacementFacts
from hiresx.topology.machine import GPU, Machine

Cpus = frozenset[int]


class Share(NamedTuple):
    """The CPUs of one rank. `cpus`: their numbers. `cores`: the number of physical cores among them, at least 1.
    `node`: their NUMA node, or None if they belong to several. `kept`: whether a launcher had already bound the rank to
    them. `why`: the reasons for this choice, in words."""

    cpus: Cpus
    cores: int
    node: int | None
    kept: bool
    why: tuple[str, ...]


def cut(machine: Machine, facts: Mapping[int, PlacementFacts], gpus: Mapping[int, GPU]) -> dict[int, Share]:
    """Divide the logical CPUs of this host (machine) among its ranks, and return the CPUs of each rank. `machine`: the
    host. `facts`: for the number of each rank, the CPUs that it may use and its launcher. `gpus`: by rank, the GPUs of
    the ranks that have one; such a rank gets CPUs near its GPU if possible.

    Ranks that may use the same CPUs divide them by whole physical cores. If a launcher gave each rank CPUs of its own,
    these are not changed. If there are fewer cores than ranks, no rank is bound, so that the operating system can move
    them."""
    found: dict[int, Share] = {}
    groups = dict.fromkeys(fact.cpus for fact in facts.values())
    kept = _launcher_remark(machine, facts) if len(groups) > 1 else ""
    for allowed in groups:
        ranks = [rank for rank, fact in facts.items() if fact.cpus == allowed]
        near = {rank: _near(machine, gpus[rank], allowed) for rank in ranks if rank in gpus}
        cores = _cores(machine, allowed)
        if len(ranks) == 1:
            (rank,) = ranks
            bound = (kept,) if kept else ()
            # A single rank on the host gets all CPUs; if its GPU is on one of several nodes, it gets those of this
            # node.
            several = not kept and len(_nodes(machine, allowed)) > 1
            shares = {rank: near[rank] if several and rank in near else allowed}
        elif len(cores) < len(ranks):
            bound = (f"{len(ranks)} ranks take turns on {plural(len(cores), 'core')}: not bound",)
            shares = dict.fromkeys(ranks, allowed)
        else:
            bound = ()
            shares = _even(ranks, cores, near) if len(near) == len(ranks) else _share_with_gpus(ranks, cores, near)
        turns = len(cores) < len(ranks)
        for rank, cpus in shares.items():
            nodes = _nodes(machine, cpus)
            count = 1 if turns else max(1, len(_cores(machine, cpus)))
            far = ("none of its CPUs is near its GPU",) if rank in gpus and not (gpus[rank].cpus or cpus) & cpus else ()
            found[rank] = Share(cpus, count, nodes[0] if len(nodes) == 1 else None, bool(kept), (*bound, *far))
    return found


def _launcher_remark(machine: Machine, facts: Mapping[int, PlacementFacts]) -> str:
    """Return a remark on the binding of ranks by a launcher."""
    used = sum(1 for core in machine.cores if any(core & fact.cpus for fact in facts.values()))
    message = "the launcher has bound the ranks: kept"
    by = next(iter(facts.values())).launcher
    if used < len(machine.cores) and by in ("Open MPI", "MPICH"):
        message += f", though {used} of {len(machine.cores)} cores are used; mpirun --bind-to none leaves it to hiresx"
    return message


def _near(machine: Machine, gpu: GPU, allowed: Cpus) -> Cpus:
    """Return those of the allowed CPUs that are nearest to the GPU, or all of them if these are not known."""
    near = gpu.cpus or next((node.cpus for node in machine.numa if node.index == gpu.numa), frozenset())
    return near & allowed or allowed


def _nodes(machine: Machine, cpus: Cpus) -> list[int]:
    """Return the NUMA nodes with any of the CPUs."""
    return [node.index for node in machine.numa if node.cpus & cpus]


def _cores(machine: Machine, allowed: Cpus) -> list[Cpus]:
    """Return the complete cores among the allowed CPUs, NUMA node by NUMA node."""
    whole = [core & allowed for core in machine.cores if core & allowed]
    whole += [frozenset([cpu]) for cpu in allowed - frozenset().union(*whole)]
    return sorted(whole, key=lambda core: (_nodes(machine, core)[:1], min(core)))


def _slices(cores: list[Cpus], count: int) -> list[Cpus]:
    """Divide `cores` into `count` parts as evenly as possible. If there are fewer cores than parts, neighbours share a
    core."""
    if len(cores) < count:
        return [cores[n * len(cores) // count] for n in range(count)]
    bounds = [n * len(cores) // count for n in range(count + 1)]
    return [frozenset().union(*cores[low:high]) for low, high in pairwise(bounds)]


def _even(ranks: list[int], cores: list[Cpus], near: Mapping[int, Cpus]) -> dict[int, Cpus]:
    """Return the CPUs of ranks that all compute on GPUs. Ranks near the same CPUs divide them."""
    found: dict[int, Cpus] = {}
    for cpus in dict.fromkeys(near.values()):
        some = [rank for rank in ranks if near[rank] == cpus]
        found |= zip(some, _slices([core & cpus for core in cores if core & cpus], len(some)), strict=True)
    return found


def _share_with_gpus(ranks: list[int], cores: list[Cpus], near: Mapping[int, Cpus]) -> dict[int, Cpus]:
    """Return the CPUs of ranks of which some have a GPU. Such a rank gets one core, near its GPU if one is free; the
    others divide the remaining cores."""
    left = list(cores)
    found: dict[int, Cpus] = {}
    for rank in near:
        found[rank] = next((core for core in left if core & near[rank]), left[0])
        left.remove(found[rank])
    others = [rank for rank in ranks if rank not in near]
    return found | dict(zip(others, _slices(left, len(others)), strict=True))
