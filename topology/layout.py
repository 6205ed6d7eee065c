"""Layout of GPUs and adapters on PCIe: NUMA nodes, nested host bridges and switches, and the groups that NVLink
joins."""

from dataclasses import dataclass

from hiresx.topology import connection_levels
from hiresx.topology.connection_levels import RANK, UNKNOWN
from hiresx.topology.groups import connect_pairs, numa_groups
from hiresx.topology.machine import Machine

NESTED = ("PHB", "PXB", "PIX", "PSB")


@dataclass(frozen=True)
class Branch:
    """A branch of the tree of a machine. `level`: the level at which all devices in it are connected; "machine" at the
    top. `numa`: the number of the NUMA node, for the level NUMA. `gpus`, `nics`: the indexes of all devices in it.
    `children`: the branches of the next closer level. Devices that are in no child belong to this branch itself."""

    level: str
    gpus: tuple[int, ...]
    nics: tuple[int, ...] = ()
    children: tuple["Branch", ...] = ()
    numa: int | None = None

    def own(self) -> tuple[list[int], list[int]]:
        """Return (GPU indexes, network adapter indexes) of the devices in this branch of the tree that are in none of
        its child branches."""
        return (
            [g for g in self.gpus if not any(g in child.gpus for child in self.children)],
            [n for n in self.nics if not any(n in child.nics for child in self.children)],
        )


def device_tree(machine: Machine) -> Branch:
    """Return the GPUs and network adapters of a machine as a tree: NUMA nodes at the top, nested PCIe bridges and
    switches below. The tree is computed only from the level of each pair of devices (PIX, PXB, PHB, NODE, SYS), which
    every kind of recording contains."""
    count = len(machine.gpus)
    rank = _ranks(machine)
    parts: list[list[int]] = [list(part) for part in numa_groups(machine)]
    for nic in range(len(machine.nics)):
        near = [(min(rank[count + nic][g] for g in part), n) for n, part in enumerate(parts) if part[0] < count]
        best = min(near, default=(UNKNOWN, 0))
        if best[0] <= RANK["NODE"]:
            parts[best[1]].append(count + nic)
        else:
            parts.append([count + nic])
    nodes = []
    for part in parts:
        gpus = [g for g in part if g < count]
        if not gpus:
            continue
        numa = {machine.gpus[g].numa for g in gpus}
        number = numa.pop() if len(numa) == 1 else None
        nodes.append(_branch("NUMA", part, NESTED, rank, count, number))
    everything = tuple(range(len(machine.nics)))
    return Branch("machine", tuple(range(count)), everything, tuple(nodes))


def _below(members: list[int], finer: tuple[str, ...], rank: list[list[int]], count: int) -> tuple[Branch, ...]:
    """Return the branches above the members, each by the finest level that contains all of its members."""

    def parts(some: list[int], level: str) -> list[list[int]]:
        found = connect_pairs(len(some), lambda a, b: rank[some[a]][some[b]] <= RANK[level])
        return [[some[m] for m in part] for part in found]

    children = []
    for part in parts(members, finer[0]) if finer else []:
        n = 0
        while n + 1 < len(finer) and len(parts(part, finer[n + 1])) == 1:
            n += 1
        if len(part) > 1:
            children.append(_branch(finer[n], part, finer[n + 1 :], rank, count))
    return tuple(children)


def _branch(
    level: str, members: list[int], finer: tuple[str, ...], rank: list[list[int]], count: int, numa: int | None = None
) -> Branch:
    gpus = tuple(member for member in members if member < count)
    nics = tuple(member - count for member in members if member >= count)
    return Branch(level, gpus, nics, _below(members, finer, rank, count), numa)


def _ranks(machine: Machine) -> list[list[int]]:
    """Return the ranks of the levels between all GPUs and adapters."""
    count, nics = len(machine.gpus), len(machine.nics)
    size = count + nics
    rank = [[UNKNOWN] * size for _ in range(size)]
    for a in range(count):
        for b in range(count):
            rank[a][b] = connection_levels.rank(machine.pcie[a][b])
        for n in range(nics):
            rank[a][count + n] = rank[count + n][a] = connection_levels.rank(machine.nic_levels[a][n])
    for n, row in enumerate(machine.nic_pairs):
        for m, word in enumerate(row):
            rank[count + n][count + m] = connection_levels.rank(word)
    return rank
