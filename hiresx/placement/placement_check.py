"""Verification of a placement under mpirun. Ranks are placed as in a run, and the actual placement is then read from
the Linux kernel and the GPU driver."""

import platform
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hiresx.base import optional
from hiresx.base.plural import plural
from hiresx.device import cuda
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator
from hiresx.placement import AUTO, cpu_binding, place
from hiresx.placement.stored_placement import Seat
from hiresx.topology import memory
from hiresx.topology.cpus import format_list
from hiresx.topology.place import even_traffic

PROBE = 2**20  # bytes of host memory that are accessed to find their NUMA nodes


@dataclass(frozen=True)
class Standing:
    """The actual devices of one rank. `seat`: its GPU and CPUs according to the placement. `bus_id`: GPUs on which this
    process has a context, "" without one. `cpus`: the CPUs to which it is bound. `memory`: NUMA nodes of the memory
    that it accesses. `right`: whether all of this agrees with `seat`. `remarks`: deviations and warnings, as sentences.
    """

    seat: Seat
    bus_id: str
    cpus: str
    memory: str
    right: bool
    remarks: tuple[str, ...]


def comm() -> Communicator:
    """Return the communicator of all MPI ranks (MPI.COMM_WORLD). Raises HiresxError if mpi4py is missing or finds no
    MPI library."""
    try:
        from mpi4py import MPI
    except Exception as error:
        raise HiresxError(
            f"the ranks communicate through mpi4py, which {optional.describe_import_error('mpi4py', error)}",
            f"{optional.install_command('mpi')}, then: mpirun -n 4 hiresx topo verify",
        ) from None
    return Communicator(MPI.COMM_WORLD)


def verify(
    ranks: Communicator, bytes_: ArrayLike | None = None, strategy: str | None = None, backends: str = AUTO
) -> list[Standing]:
    """Place the ranks on GPUs and CPUs as a run does, and return for each rank where it really runs, as the operating
    system and the GPU driver report it. The result is the same on all ranks. `ranks`: the communicator of the ranks.
    `bytes_` (ranks, ranks): the bytes that the rank of the row sends to the rank of the column, by default between
    neighbours of a chain. `strategy`: the strategy that assigns GPUs to ranks, by default the one with the shortest
    estimated exchange. `backends`: "auto", "cpu", "cuda", "emulated", or a list by rank. Raises HiresxError for
    backends or GPUs that are missing (`hiresx.placement.place`), and for `bytes_` of another number of ranks.
    Collective."""
    matrix = np.asarray(even_traffic(ranks.size) if bytes_ is None else bytes_, float)
    if len(matrix) != ranks.size:
        raise HiresxError(
            f"bytes between {plural(len(matrix), 'rank')}, but {ranks.size} are running",
            f"start {plural(len(matrix), 'rank')}",
        )
    made = place(ranks, backends=backends, bytes_=matrix, strategy=strategy)
    seat = made.seats[ranks.rank]
    with ranks.together():
        standing = _standing(seat, made.remarks if ranks.root else ())
    return ranks.allgather(standing)


def _standing(seat: Seat, remarks: tuple[str, ...]) -> Standing:
    cpus = format_list(cpu_binding.now())
    used = [device.address for device in cuda.devices() if device.used] if seat.gpu is not None else []
    probe = np.ones(PROBE, "u1")
    found = memory.where(probe)
    wrong = []
    if cpus != seat.cpus:
        wrong.append(f"bound to CPUs {cpus}, not {seat.cpus}")
    if seat.gpu is not None and used != [seat.gpu_pci]:
        wrong.append(f"computes on {', '.join(used) or 'no GPU'}, not {seat.gpu_pci}")
    if seat.numa is not None and found.pages and set(found.pages) != {seat.numa}:
        wrong.append(f"memory on NUMA {', '.join(map(str, found.pages))}, not {seat.numa}")
    return Standing(
        seat=seat,
        bus_id=", ".join(used),
        cpus=cpus,
        memory=", ".join(f"NUMA {node}" for node in found.pages) or "-",
        right=not wrong and seat.host == platform.node(),
        remarks=(*wrong, *seat.why, *found.warnings, *remarks),
    )
