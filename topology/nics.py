"""The network adapters nearest to a GPU."""

from hiresx.topology import levels
from hiresx.topology.machine import Machine

# The rank of a level that is not known: behind all others.
UNKNOWN = 99


def nearest_nics(machine: Machine, gpu: int) -> tuple[int, ...]:
    """Return the indexes of the adapters with the best level to a GPU; if any of them has RDMA, only of those with
    RDMA."""
    return best_nics(machine, [levels.RANK.get(word, UNKNOWN) for word in machine.nic_levels[gpu]])


def best_nics(machine: Machine, ranks: list[int]) -> tuple[int, ...]:
    """Return the indexes of the adapters with the smallest of `ranks` (one for each adapter); if any of them has RDMA,
    only of those with RDMA."""
    rdma = any(nic.rdma for nic in machine.nics)
    some = [n for n, nic in enumerate(machine.nics) if nic.rdma or not rdma]
    return tuple(n for n in some if ranks[n] == min(ranks[m] for m in some))
