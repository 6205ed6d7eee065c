"""Groups of GPUs by closeness: NUMA node, PHB, PXB, PIX as in the paper (section 4.3.2), and NVLink. Also the network
adapters nearest to a GPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hiresx.topology.connection_levels import RANK, nvlinks, rank
from hiresx.topology.machine import Machine

Partition = tuple[tuple[int, ...], ...]
# Coarse to fine. PSB, one board, is finer than PIX, one switch.
NESTED = ("NUMA", "NODE", "PHB", "PXB", "PIX", "PSB", "NV")


@dataclass(frozen=True)
class GpuGroup:
    """A group of GPUs in which each two are connected at the level `level` (PIX, NODE, ...) or a closer one. `gpus`:
    their indexes. `children`: the subgroups with a closer level."""

    level: str
    gpus: tuple[int, ...]
    children: tuple["GpuGroup", ...] = ()


def groups(machine: Machine) -> dict[str, Partition]:
    """Return the groups of GPUs that are close to each other, for each level of closeness: "NUMA", the PCIe levels
    "NODE", "PHB", "PXB", "PIX" and "PSB" (as in `nvidia-smi topo -m`), and "NV" for NVLink. A group is a tuple of the
    indexes of its GPUs, and every GPU is in one group of each level. Groups of NUMA nodes follow from the NUMA node and
    CPUs of each GPU, groups of PCIe levels from the levels of all pairs. In a group of "NV" each GPU has NVLink with
    every other one."""
    found = {"NUMA": numa_groups(machine)}
    for level in ("NODE", "PHB", "PXB", "PIX", "PSB"):
        found[level] = pcie_groups(machine, level)
    if found["PSB"] == tuple((n,) for n in range(len(machine.gpus))):
        del found["PSB"]
    found["NV"] = nvlink_groups(machine)
    return found


def pcie_groups(machine: Machine, level: str) -> Partition:
    """Return the groups of GPUs whose PCIe paths to each other are at most as long as `level` says, one of "PSB",
    "PIX", "PXB", "PHB", "NODE" and "SYS" (from the same board to different sockets). Each group is a tuple of the
    indexes of its GPUs. NVLink is ignored."""
    return connect_pairs(len(machine.gpus), lambda a, b: rank(machine.pcie[a][b]) <= RANK[level])


def numa_groups(machine: Machine) -> Partition:
    """Return the groups of GPUs that are connected to the same NUMA node, each a tuple of the indexes of its GPUs. Two
    GPUs are in one group if their NUMA nodes are equal. If a node is not known, the nearest CPUs of both must be equal.
    If these are not known either, the PCIe level must be NODE or closer. GPUs with the level SYS (different sockets)
    are always in two groups, if any devices of the machine have a closer level: the cgroup of a job may restrict the
    CPUs and nodes of all GPUs to the same few, but it does not change the levels."""
    gpus = machine.gpus
    tell = levels_tell_nodes(machine)

    def together(a: int, b: int) -> bool:
        if tell and machine.pcie[a][b] == "SYS":
            return False
        if None not in (gpus[a].numa, gpus[b].numa):
            return gpus[a].numa == gpus[b].numa
        if gpus[a].cpus and gpus[b].cpus:
            return gpus[a].cpus == gpus[b].cpus
        return rank(machine.pcie[a][b]) <= RANK["NODE"]

    return connect_pairs(len(gpus), together)


def levels_tell_nodes(machine: Machine) -> bool:
    """Return whether any two devices of the machine have a PCIe level closer than SYS (different sockets). If all
    levels are SYS, the machine may be virtual and hide its topology, and the levels do not tell which GPUs share a NUMA
    node."""
    words = [word for rows in (machine.pcie, machine.nic_levels) for row in rows for word in row]
    return any(rank(word) <= RANK["NODE"] for word in words)


def nvlink_groups(machine: Machine) -> Partition:
    """Return groups of GPUs in which every GPU has NVLink with every other one, each a tuple of the indexes of its
    GPUs. If NVLink connects GPUs that are not all linked pairwise (as in a hybrid cube mesh), the GPUs of one NUMA node
    are a group if they are all linked. Otherwise a group starts with the pair that has most links, and the GPU with
    most links to all members is added repeatedly."""
    count = len(machine.gpus)
    link = [[nvlinks(machine.levels[a][b]) for b in range(count)] for a in range(count)]
    found: list[tuple[int, ...]] = []
    for island in connect_pairs(count, lambda a, b: link[a][b] > 0):
        if _all_linked(island, link):
            found.append(island)
            continue
        parts = [tuple(g for g in island if g in node) for node in numa_groups(machine)]
        parts = [part for part in parts if part]
        found += parts if all(_all_linked(part, link) for part in parts) else _split_by_links(island, link)
    return tuple(sorted(found))


def _all_linked(part: Sequence[int], link: list[list[int]]) -> bool:
    return all(link[a][b] for n, a in enumerate(part) for b in part[:n])


def _split_by_links(island: Sequence[int], link: list[list[int]]) -> list[tuple[int, ...]]:
    left, found = list(island), []
    while left:
        start = max(
            ((link[a][b], -a, -b) for a in left for b in left if a < b),
            default=(0, 0, 0),
        )
        part = [-start[1], -start[2]] if start[0] else [left[0]]
        while more := [g for g in left if g not in part and all(link[g][b] for b in part)]:
            _, first = max((sum(link[g][b] for b in part), -g) for g in more)
            part.append(-first)
        found.append(tuple(sorted(part)))
        left = [g for g in left if g not in part]
    return found


def tree(machine: Machine, usable: tuple[int, ...] | None = None) -> GpuGroup:
    """Return the GPUs as a tree of groups of increasing closeness: NUMA nodes, PCIe bridges and switches, and NVLink. A
    level at which no group is divided further is left out. If GPUs connected by NVLink are in several NUMA nodes or
    PCIe groups, these groups are joined, because NVLink is the fastest connection. `usable`: the indexes of the GPUs in
    the tree, by default all."""
    usable = tuple(range(len(machine.gpus))) if usable is None else tuple(sorted(usable))
    by_level = groups(machine)
    linked = [part for part in by_level["NV"] if len(part) > 1]
    whole = {g: n for n, part in enumerate(linked) for g in part}
    levels: list[tuple[str, list[tuple[int, ...]]]] = []
    for level in NESTED:
        if level not in by_level:
            continue
        member = {g: n for n, part in enumerate(by_level[level]) for g in part}

        def together(a: int, b: int, member: dict[int, int] = member) -> bool:
            return member[a] == member[b] or (a in whole and whole[a] == whole.get(b))

        whole_parts = connect_pairs(len(machine.gpus), together)
        levels.append((level, [tuple(g for g in part if g in usable) for part in whole_parts]))
    return _nest("machine", usable, levels)


def _nest(name: str, members: tuple[int, ...], levels: list[tuple[str, list[tuple[int, ...]]]]) -> GpuGroup:
    for n, (level, parts) in enumerate(levels):
        inside = [part for part in parts if part and set(part) <= set(members)]
        # Groups by NUMA affinity and groups by the level NODE may overlap; the parts are then divided where they are
        # already separate.
        if sum(map(len, inside)) != len(members):
            inside = [tuple(g for g in part if g in members) for part in parts]
            inside = [part for part in inside if part]
        if len(inside) > 1 and any(len(part) > 1 for part in inside):
            return GpuGroup(name, members, tuple(_nest(level, part, levels[n + 1 :]) for part in inside))
        if len(inside) == 1 and name != "machine":
            name = level
    return GpuGroup(name if len(members) > 1 or name == "machine" else "GPU", members)


def connect_pairs(count: int, together: Callable[[int, int], bool]) -> Partition:
    """Partition the devices 0 to `count` - 1 into groups, each a tuple of their numbers. Two devices are in one group
    if a chain of pairs (a, b) with `together(a, b)` true connects them."""
    root = list(range(count))

    def find(n: int) -> int:
        while root[n] != n:
            root[n] = root[root[n]]
            n = root[n]
        return n

    for a in range(count):
        for b in range(a):
            if together(a, b):
                low, high = sorted((find(a), find(b)))
                root[high] = low
    parts: dict[int, list[int]] = {}
    for n in range(count):
        parts.setdefault(find(n), []).append(n)
    return tuple(tuple(part) for part in parts.values())


def nearest_nics(machine: Machine, gpu: int) -> tuple[int, ...]:
    """Return the indexes of the network adapters that are nearest to the GPU with the index `gpu` by PCIe level. If any
    adapter of the machine has RDMA, only adapters with RDMA are considered."""
    return best_nics(machine, [rank(word) for word in machine.nic_levels[gpu]])


def best_nics(machine: Machine, ranks: list[int]) -> tuple[int, ...]:
    """Return the indexes of the network adapters nearest to a GPU or CPU. `ranks`: for each adapter the position of its
    connection level to this GPU or CPU in the order of closeness, 0 for the closest. If any adapter of the machine has
    RDMA, only adapters with RDMA are considered."""
    rdma = any(nic.rdma for nic in machine.nics)
    some = [n for n, nic in enumerate(machine.nics) if nic.rdma or not rdma]
    return tuple(n for n in some if ranks[n] == min(ranks[m] for m in some))
