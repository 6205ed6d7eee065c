"""The choice of the transport between two ranks. It only depends on the properties of both, so that both choose the
same."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hiresx.errors import HiresxError

log = logging.getLogger(__name__)

# Valid choices. "signals" is used by all ranks of a job or by none; a step then does not need the host. "auto" uses it
# if all ranks are on GPUs of one host, each on its own. Otherwise it chooses for every pair of ranks the first
# transport that works of: window, mpi between two CPUs; cuda-aware, ipc, staged over window, staged over mpi between
# two GPUs; the last two between a CPU and a GPU. A name applies only to the pairs that can use it, and the other pairs
# get the best of these: cuda-aware and ipc apply to pairs of GPUs, staged also to pairs of a CPU and a GPU, window and
# mpi to all pairs (those with a GPU are staged over it).
NAMES = ("auto", "window", "mpi", "cuda-aware", "ipc", "staged", "signals")
# Former names, and the transports that replace them.
RETIRED = {"nccl": "auto"}
# Transports for which the memory of a rank has space for signals.
SIGNALLING = frozenset({"signals", "auto"})
# Number of GPUs that a pair must have so that a name applies to it.
GPUS = {"cuda-aware": 2, "ipc": 2, "staged": 1}

# Transports between CPUs, which also transfer the data that a GPU has staged in host memory.
STAGED = "staged over "


@dataclass
class RankFacts:
    """Facts about a rank that the other ranks need for the choice of transports.

    - `host`: the number of its host.
    - `asked`: the transport that the user requested, or "auto".
    - `gpu`: the address of the GPU on its host, for a MIG slice followed by "/" and its UUID; None for a CPU rank.
    - `cuda_fault`: the reason, in words, why MPI cannot send from GPU memory; None if it can.
    - `precision`: the name of the precision.
    - `widths`: for each quantity the number of values per point.
    - `sends`, `receives`: for each peer the first and last + 1 of the points that this rank sends to it, or receives
      from it.
    - `points`: the number of all points that it sends.
    - `room`: bytes of shared memory that its host can provide.
    - `closed`: peers whose GPU memory it could not open, with the reason.
    """

    host: int
    asked: str
    gpu: str | None
    cuda_fault: str | None
    precision: str
    widths: tuple[int, ...]
    sends: Mapping[int, tuple[int, int]]
    receives: Mapping[int, tuple[int, int]]
    points: int
    room: float
    closed: Mapping[int, str] = field(default_factory=dict)


def known_transport(name: str) -> str:
    """Return `name` if it is the name of a transport of messages between ranks, or the present name if `name` is a
    former one. Raises HiresxError for an unknown name."""
    if name in RETIRED:
        log.warning('the transport "%s" was removed: "%s" is used', name, RETIRED[name])
        return RETIRED[name]
    if name not in NAMES:
        raise HiresxError(f'there is no transport "{name}"', f"transports are {', '.join(NAMES)}")
    return name


def choose(facts: Sequence[RankFacts], spare_room: Mapping[int, bool]) -> dict[tuple[int, int], str]:
    """Choose the transport of messages (MPI, shared memory, CUDA IPC, ...) for every pair of ranks that exchange
    ghosts. Returns a dictionary from (lower rank, higher rank) to the name of the transport. `facts`: the properties of
    each rank, in the order of the ranks. `spare_room`: for the number of each host, whether it has enough shared memory
    for the transport "window". Raises HiresxError on all ranks if ranks differ in the requested transport, the
    precision or the exchanged variables, or if a requested transport does not work between two ranks."""
    asked = facts[0].asked
    for rank, found in enumerate(facts):
        if found.asked != asked:
            raise HiresxError(
                f'rank 0 is to use the transport "{asked}", rank {rank} "{found.asked}"', "start all ranks alike"
            )
        if found.precision != facts[0].precision:
            raise HiresxError(
                f'rank 0 computes with scheme.precision = "{facts[0].precision}", rank {rank} with "{found.precision}"',
                "give all ranks the same precision",
            )
        if found.widths != facts[0].widths:
            raise HiresxError(
                f"rank 0 exchanges {_join_widths(facts[0].widths)} numbers per node, "
                f"rank {rank} {_join_widths(found.widths)}",
                "start all ranks with the same case: viscous or not, and with the same scalars",
            )
    pairs = sorted({(min(a, b), max(a, b)) for a, own in enumerate(facts) for b in own.sends})
    for a, b in pairs:
        _check_sizes(facts, a, b)
        _check_sizes(facts, b, a)
    wanted = GPUS.get(asked, 0)
    if pairs and all(_gpus(facts, pair) < wanted for pair in pairs):
        lacking = "rank computes on a GPU" if wanted == 1 else "two neighbours compute on GPUs"
        raise HiresxError(f'transport "{asked}" cannot be used: no {lacking}', "leave it to --transport auto")
    if asked == "auto" and facts[0].gpu is not None and _signals_fault(facts, spare_room) is None:
        return dict.fromkeys(pairs, "signals")
    return {pair: _of_pair(facts, pair, asked, spare_room) for pair in pairs}


def _join_widths(widths: Sequence[int]) -> str:
    return " and ".join(map(str, widths))


def _gpus(facts: Sequence[RankFacts], pair: tuple[int, int]) -> int:
    return sum(facts[rank].gpu is not None for rank in pair)


def _check_sizes(facts: Sequence[RankFacts], a: int, b: int) -> None:
    (first, last), (begin, end) = facts[a].sends.get(b, (0, 0)), facts[b].receives.get(a, (0, 0))
    if last - first != end - begin:
        raise HiresxError(
            f"rank {a} has {last - first} halo nodes for rank {b}, which expects {end - begin}",
            "start all ranks with the same case, grid and decomposition",
        )


def _of_pair(facts: Sequence[RankFacts], pair: tuple[int, int], asked: str, spare_room: Mapping[int, bool]) -> str:
    (a, b), (one, two) = pair, (facts[rank] for rank in pair)
    apart = None if one.host == two.host else f"ranks {a} and {b} are on two hosts"
    crowded = None if spare_room[one.host] else f"the host of ranks {a} and {b} has too little shared memory (/dev/shm)"
    # The reasons why transports cannot be used by the pair, None for those that can, the best first.
    faults: dict[str, str | None] = {"window": apart or crowded, "mpi": None}
    gpus = _gpus(facts, pair)
    if gpus:
        faults = {STAGED + name: fault for name, fault in faults.items()}
    if gpus == 2:
        closed = one.closed.get(b) or two.closed.get(a)
        faults = {"cuda-aware": one.cuda_fault or two.cuda_fault, "ipc": apart or closed} | faults
    best = next(name for name, fault in faults.items() if fault is None)
    if asked == "auto" or gpus < GPUS.get(asked, 0):
        return best
    if asked == "staged":
        return next(name for name, fault in faults.items() if fault is None and name.startswith(STAGED))
    name = STAGED + asked if gpus and asked in ("window", "mpi") else asked
    fault = _signals_fault(facts, spare_room) if name == "signals" else faults[name]
    if fault is not None:
        if _signals_fault(facts, spare_room) is None and gpus:
            best = "signals"
        raise HiresxError(
            f'transport "{asked}" cannot be used: {fault}', f'--transport auto, which takes "{best}" here'
        )
    return name


def _signals_fault(facts: Sequence[RankFacts], spare_room: Mapping[int, bool]) -> str | None:
    """Return the reason why the transport "signals" cannot be used, or None. It needs all ranks on one host, either all
    on CPUs or each on a GPU of its own: a kernel that waits on a GPU would keep it from another process."""
    users: dict[str | None, int] = {}
    for rank, own in enumerate(facts):
        if own.host != facts[0].host:
            return f"ranks 0 and {rank} are on two hosts"
        if (own.gpu is None) != (facts[0].gpu is None):
            return f"of ranks 0 and {rank} one computes on a GPU and one on a CPU"
        other = users.setdefault(own.gpu, rank)
        if own.gpu is not None and other != rank:
            return f"ranks {other} and {rank} share a GPU"
        if own.closed:
            return next(iter(own.closed.values()))
    if facts[0].gpu is None and not spare_room[facts[0].host]:
        return "the host has too little shared memory (/dev/shm)"
    return None
