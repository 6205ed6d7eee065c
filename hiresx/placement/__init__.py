"""Placement of ranks: the backend, GPU, CPU cores and NUMA memory of each rank.

It is computed after the partition, since it depends on the bytes between the parts, and before any CUDA context is
created: a context, and the host memory that it page-locks, cannot be moved later.

Modules: backend_selection, the option --backend; facts, the properties of a rank; gpus and cores, the choice for one
host; cpu_binding, the CPUs that a process may use, and its binding to some of them; stored_placement, the result as a
table and as JSON.
"""

import time
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from hiresx.decomposition import Decomposition
from hiresx.decomposition.halo_bytes import halo_bytes
from hiresx.device import Backend, backend
from hiresx.device.fields import Layout
from hiresx.device.native import NativeBackend
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator
from hiresx.placement import cores, cpu_binding, gpus
from hiresx.placement.backend_selection import AUTO, by_rank
from hiresx.placement.cores import Share
from hiresx.placement.facts import PlacementFacts, gather
from hiresx.placement.gpus import GpuChoice
from hiresx.placement.stored_placement import Placement, Seat
from hiresx.topology import memory, sysfs
from hiresx.topology.cpus import format_list
from hiresx.topology.discover import discover
from hiresx.topology.machine import Machine
from hiresx.topology.place import BUSY_UTILISATION, check_strategies

__all__ = ["AUTO", "Placement", "Seat", "place"]

# nvmlUtilization_t: "the past sample period", up to a second.
SAMPLE = 1.1


def place(
    comm: Communicator,
    cut: Decomposition | None = None,
    backends: str = AUTO,
    bytes_: ArrayLike | None = None,
    strategy: str | None = None,
    bind: bool = True,
) -> Placement:
    """Choose the backend, GPU and CPU cores of every rank, bind this rank to its cores, and create its backend.
    Collective.

    `comm`: the ranks. `cut`: the blocks after their division among the ranks, from which the bytes that ranks exchange
    are computed. `backends`: "auto", "cpu", "cuda", "emulated", or a list by rank such as "cuda:2,cpu:4"; "auto" is
    "cuda" on hosts with a GPU. `bytes_` (ranks, ranks): the bytes that the rank of the row sends to the rank of the
    column in an exchange, if they shall not be computed from `cut`. `strategy`: a strategy of `hiresx.topology.place`,
    by default the one with the shortest estimated exchange. `bind`: whether to bind the ranks and their memory; if not,
    the binding by their launcher is not changed. A single process is bound only if its GPU is on one of several NUMA
    nodes, and the number of its threads does not change.

    Raises HiresxError on all ranks for a list of the wrong length and for a GPU that is requested and missing (with
    host and rank), and if a backend cannot be used on the machine of its rank."""
    hosts = comm.hosts
    with comm.together():
        check_strategies([] if strategy is None else [strategy])
        names = by_rank(backends, hosts)
        facts = gather(names[comm.rank] in (AUTO, "cuda"))
    known = comm.allgather(facts)
    names = _resolve_auto(names, known)
    if bytes_ is None:
        per_node = Layout(STORAGE["fp64"]).exchanged_bytes(viscous=True)  # only their ratios matter
        bytes_ = np.zeros((comm.size, comm.size)) if cut is None or comm.size == 1 else halo_bytes(cut, per_node)
    machine, shared = _host_placement(comm, known, names, _square(bytes_, comm.size), strategy)
    with comm.together():
        seat, made = _bind_and_make(comm, facts, names[comm.rank], machine, *shared[comm.rank], bind)
    seats = comm.allgather(seat)
    lines = comm.allgather(tuple(machine.problems) if comm.local.root and machine.gpus else ())
    return Placement(tuple(seats), made, tuple(dict.fromkeys(line for some in lines for line in some)))


def _square(bytes_: ArrayLike, size: int) -> np.ndarray:
    """Return `bytes_` with rows and columns of zeros for ranks that have no part."""
    given = np.asarray(bytes_, float)
    matrix = np.zeros((size, size))
    matrix[: len(given), : len(given)] = given
    return matrix


def _resolve_auto(names: list[str], known: list[PlacementFacts]) -> list[str]:
    """Replace "auto" by cuda or cpu. Raises an error for a GPU that does not exist, the same on all ranks."""
    lacking = [rank for rank, name in enumerate(names) if name == "cuda" and known[rank].fault]
    if lacking:
        rank = lacking[0]
        message, hint = known[rank].fault or ("", "")
        if len(names) > 1:
            more = len(lacking) - 1
            others = f" (and {more} other{'s' * (more > 1)})" if more else ""
            message = f"rank {rank} on host {known[rank].host}{others} is to compute on a GPU: {message}"
        error = HiresxError(message, hint)
        error.everywhere = error.placed = True
        raise error
    return [
        ("cpu" if fact.fault else "cuda") if name == AUTO else name for name, fact in zip(names, known, strict=True)
    ]


def _host_placement(
    comm: Communicator, known: list[PlacementFacts], names: list[str], bytes_: np.ndarray, strategy: str | None
) -> tuple[Machine, dict[int, tuple[GpuChoice | None, Share]]]:
    """Return (this host's machine, {rank of this host: (Chosen or None, Share)}), computed by its first rank."""
    here = [rank for rank, host in enumerate(comm.hosts) if host == comm.hosts[comm.rank]]
    wanting = {rank: known[rank] for rank in here if names[rank] == "cuda"}
    first = {fact.gpus: rank for rank, fact in reversed(wanting.items())}
    seen = None
    with comm.together():
        if comm.rank in first.values():
            seen = _discover_host()  # not on one rank for all: a scheduler may make other GPUs visible to each rank
        elif comm.local.root:
            seen = sysfs.discover()
    machines = dict(zip(here, comm.local.allgather(seen), strict=True))
    answer = None
    with comm.together():
        if comm.local.root:
            off_host = np.delete(bytes_, here, axis=1).sum(axis=1)
            views = {view: machines[rank] for view, rank in first.items()}
            chosen = gpus.choose(views, wanting, bytes_, off_host, strategy)
            machine = machines[next(iter(wanting), here[0])]
            shares = cores.cut(machine, {rank: known[rank] for rank in here}, {r: c.gpu for r, c in chosen.items()})
            answer = machine, {rank: (chosen.get(rank), shares[rank]) for rank in here}
    answers: tuple[Machine, dict[int, tuple[GpuChoice | None, Share]]] = comm.local.bcast(answer)
    return answers


def _discover_host() -> Machine:
    """Return a description of this host. If a GPU is busy, it is made once more after NVML's sampling time: NVML
    reports the past second, so that a run that has just ended still counts in the first answer."""
    machine = discover()
    if any((gpu.utilisation or 0) > BUSY_UTILISATION for gpu in machine.gpus):
        time.sleep(SAMPLE)
        machine = discover()
    return machine


def _bind_and_make(
    comm: Communicator,
    facts: PlacementFacts,
    name: str,
    machine: Machine,
    chosen: GpuChoice | None,
    share: Share,
    bind: bool,
) -> tuple[Seat, Backend]:
    """Bind this process, then make the backend. No CUDA context exists before."""
    if not bind and share.cpus != cpu_binding.now():
        share = share._replace(cpus=cpu_binding.now(), why=(*share.why, "not bound, as was asked"))
    why = [*(chosen.why if chosen else ()), *share.why]
    by = "the launcher" if share.kept else ""
    if share.cpus != cpu_binding.now():
        made = cpu_binding.bind(share.cpus, chosen and chosen.gpu.index)
        by = made.by.split(" (")[0]
        why += made.warnings
    node = share.node
    if chosen and chosen.gpu.numa is not None:
        node = chosen.gpu.numa
    several = sum(1 for entry in machine.numa if entry.memory != 0) > 1
    if not bind:
        node = None
    if several and node is not None and (chosen or comm.size > 1):
        why += filter(None, [memory.prefer(node)])
    number = facts.gpus.index(chosen.gpu.address) if chosen else None
    if number is not None and facts.used not in (None, number):
        why.append(f"a CUDA context was on GPU {facts.used} before the choice")
    threads = None
    found = backend(name, number)
    if name != "cuda":
        cpu = cast(NativeBackend, found)
        if comm.size > 1 and facts.threads is None:
            cpu.threads = share.cores
        threads = cpu.threads
        if facts.threads is not None and comm.size > 1:
            why.append(f"OMP_NUM_THREADS={facts.threads}")
    seat = Seat(
        rank=comm.rank,
        host=facts.host,
        backend=name,
        gpu=chosen.gpu.index if chosen else None,
        gpu_name=(chosen.gpu.model or facts.names[number or 0]) if chosen else "",
        gpu_uuid=(chosen.gpu.mig_uuid or chosen.gpu.uuid) if chosen else "",
        gpu_pci=chosen.gpu.address if chosen else "",
        cpus=format_list(share.cpus),
        cores=share.cores,
        numa=node,
        threads=threads,
        bound=by,
        why=tuple(dict.fromkeys(why)),
    )
    return seat, found
