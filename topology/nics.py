"""The network adapters nearest to a GPU."""

from hiresx.topology import levels
from hiresx.topology.machine import Machine

# The rank of a level that is not known: behind all others.
UNKNOWN = 99


def nearest_nics(machine: Machine, gpu: int) -> tuple[int, ...]:
    """Indexes of the adapters with the best level to a GPU; those with RDMA alone where there are any."""
    return best_nics(machine, [levels.RANK.get(word, UNKNOWN) for word in machine.nic_levels[gpu]])


def best_nics(machine: Machine, ranks: list[int]) -> tuple[int, ...]:
    """Indexes of the adapters with the least of these `ranks`, one for each; those with RDMA alone where there are
    any."""
    rdma = any(nic.rdma for nic in machine.nics)
    some = [n for n, nic in enumerate(machine.nics) if nic.rdma or not rdma]
    return tuple(n for n in some if ranks[n] == min(ranks[m] for m in some))
