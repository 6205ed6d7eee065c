"""Under mpirun: does every rank run where the plan says? Each takes its GPU, binds itself, and asks the kernel."""

import platform
from dataclasses import dataclass, replace

import numpy as np

from hiresx import optional
from hiresx.errors import HiresxError
from hiresx.topology import binding, cuda, memory
from hiresx.topology.cost import traffic
from hiresx.topology.cpus import format_list, shares
from hiresx.topology.discover import discover
from hiresx.topology.place import even_traffic, plan

PROBE = 2**20  # bytes of host memory that are placed to see where they land


@dataclass(frozen=True)
class Standing:
    """Where one rank is. `gpu`: index, -1 without one. `right`: whether that is what was planned."""

    rank: int
    host: str
    gpu: int
    bus_id: str
    planned: str
    cpus: str
    memory: str
    right: bool
    remarks: tuple[str, ...]


def communicator():
    """MPI.COMM_WORLD. Raises HiresxError when mpi4py is not there, or finds no MPI."""
    try:
        from mpi4py import MPI
    except Exception as error:
        raise HiresxError(
            f"ranks are asked through mpi4py, which {optional.fault('mpi4py', error)}",
            "pip install 'hiresx[mpi]', then: mpirun -n 4 hiresx topo verify",
        ) from None
    return MPI.COMM_WORLD


def verify(comm, matrix=None, strategy: str = "optimal", driver=None) -> list[Standing]:
    """Where every rank of `comm` is, on all ranks. `matrix`: bytes between them, a chain of neighbours if absent.

    The first rank of each host finds out about it and plans; the others are told, so all agree. `driver`: a
    `cuda.Cuda`, made when there are GPUs and none is given.
    """
    from mpi4py import MPI

    size, rank = comm.Get_size(), comm.Get_rank()
    whole = traffic(even_traffic(size) if matrix is None else matrix)
    if whole.ranks != size:
        raise HiresxError(f"bytes between {whole.ranks} ranks, but {size} are running", f"start {whole.ranks} ranks")
    local = comm.Split_type(MPI.COMM_TYPE_SHARED, key=rank)
    here = local.allgather(rank)
    # A launcher that bound each rank to a core of its own gave the job the cores of all of them.
    allowed = frozenset().union(*local.allgather(binding.bound_cpus()))
    answer = None
    if local.Get_rank() == 0:
        try:
            machine = replace(discover(), allowed=allowed)
            placement = None
            if machine.gpus:
                inside = whole.bytes[np.ix_(here, here)]
                outside = whole.bytes[here].sum(axis=1) - inside.sum(axis=1)
                placement = plan(machine, traffic(inside, np.maximum(outside, 0))).strategies[strategy].placement
            answer = machine, placement
        except HiresxError as error:
            answer = error
    answer = local.bcast(answer)
    if isinstance(answer, HiresxError):
        raise answer
    machine, placement = answer
    standing = _standing(machine, placement, here.index(rank), len(here), rank, allowed, driver)
    return comm.allgather(standing)


def _standing(machine, placement, own: int, count: int, rank: int, allowed, driver) -> Standing:
    if placement is None:
        cpus, warnings, gpu = shares(allowed, machine.cores, count)[own], (), None
    else:
        gpu = machine.gpus[placement[own]]
        cpus, warnings = binding.rank_cpus(machine, placement, allowed)[own]
    bound = binding.bind(cpus, None if gpu is None else gpu.index, warnings)
    remarks = list(bound.warnings)
    right = bound.as_asked
    found = ""
    if gpu is not None:
        driver = cuda.Cuda() if driver is None else driver
        ordinal = driver.ordinal(gpu.bus_id)
        driver.context(ordinal)  # the first context of this process: only now is the choice made
        found = driver.bus_id(ordinal)
        right &= found == gpu.bus_id
    node = gpu.numa if gpu is not None else None
    if node is None:
        near = [entry.index for entry in machine.numa if bound.is_ <= entry.cpus]
        node = near[0] if len(near) == 1 else None
    _, place = memory.allocate(PROBE, "u1", node)
    remarks += place.warnings
    right &= node is None or place.as_asked
    return Standing(
        rank=rank,
        host=platform.node(),
        gpu=-1 if gpu is None else gpu.index,
        bus_id=found,
        planned=format_list(cpus),
        cpus=format_list(bound.is_),
        memory=", ".join(f"NUMA {entry}" for entry in place.pages) or "-",
        right=bool(right),
        remarks=tuple(remarks),
    )
