"""What all ranks tell each other before an exchange, and what they conclude from it."""

from dataclasses import replace
from typing import Any

import numpy as np

from hiresx.communicator import Communicator
from hiresx.exchange import cuda_aware, window
from hiresx.exchange.choice import RankFacts, choose
from hiresx.exchange.division import Division
from hiresx.exchange.gpu import Gpu
from hiresx.exchange.halo_layout import HaloLayout
from hiresx.exchange.signalled_memory import extra_bytes

# Transports that open the GPU memory of other ranks.
OPENING = frozenset({"ipc", "signals"})

# Written into GPU memory, with the rank, to see whether another process reads what is there.
MARK = 0x48616C6F


class Agreement:
    """`facts`: what all ranks told. `pairs`: the transports of all by (lower, higher) rank; `names`: those of this rank
    by peer. `opened`: GPU memory of peers that this rank can read.

    `packed`: the GPU memory that this rank packs its messages into. Collective; raises HiresxError as `choose`.
    """

    def __init__(
        self, comm: Communicator, gpu: Gpu | None, layout: HaloLayout, division: Division, precision: str, asked: str,
        packed: Any,
    ):  # fmt: skip
        self._comm, self._gpu, self._layout, self._division = comm, gpu, layout, division
        self.opened: dict[int, Any] = {}
        with comm.together():
            own = RankFacts(
                host=comm.hosts[comm.rank],
                asked=asked,
                gpu=None if gpu is None else gpu.name,
                cuda_fault=None if gpu is None else cuda_aware.fault(),
                precision=precision,
                widths=tuple(division.widths),
                sends={peer.rank: peer.out for peer in layout.peers},
                receives={peer.rank: peer.into for peer in layout.peers},
                points=layout.sent,
                room=window.room(),
            )
        self.facts: list[RankFacts] = comm.allgather(own)
        self.pairs = self._choose()
        if OPENING.intersection(self.pairs.values()) and self.facts[0].gpu is not None:
            told = comm.allgather(self._open(packed))
            self.facts = [replace(facts, closed=closed) for facts, closed in zip(self.facts, told, strict=True)]
            self.pairs = self._choose()

    @property
    def names(self) -> dict[int, str]:
        own = self._comm.rank
        return {p.rank: self.pairs[min(own, p.rank), max(own, p.rank)] for p in self._layout.peers}

    def _choose(self) -> dict[tuple[int, int], str]:
        with self._comm.together():
            return choose(self.facts, self._spare_room())

    def _spare_room(self) -> dict[int, bool]:
        """By host, whether all of its ranks can have their messages in shared memory."""
        room: dict[int, float] = {}
        for facts in self.facts:
            room[facts.host] = min(room.get(facts.host, np.inf), facts.room)
        for facts in self.facts:
            signals = extra_bytes(len(self.facts), len(self._division.widths)) if facts.asked == "signals" else 0
            room[facts.host] -= self._division.size(facts.points) + signals + window.SPARE
        return {host: left >= 0 for host, left in room.items()}

    def _open(self, packed: Any) -> dict[int, str]:
        """Open the GPU memory of the peers to be reached by "ipc", or of all ranks for "signals". Returns why it cannot
        be, by rank. Collective."""
        comm, gpu = self._comm, self._gpu
        assert gpu is not None
        signalled = "signals" in self.pairs.values()
        peers = [rank for rank, name in self.names.items() if name == "ipc"]
        if signalled:
            peers = [rank for rank in range(comm.size) if rank != comm.rank]
        handle, closed = None, {}
        if peers:
            try:
                gpu.write(packed, MARK + comm.rank)
                handle = gpu.handle(packed)
            except RuntimeError as error:
                closed = dict.fromkeys(peers, f"rank {comm.rank} cannot give others its GPU memory: {error}")
        handles = comm.allgather(handle)
        for rank in peers:
            if handles[rank] is None:
                continue  # its owner says why
            try:
                size = self._division.size(self.facts[rank].points)
                size += extra_bytes(comm.size, len(self._division.widths)) if signalled else 0
                self.opened[rank] = gpu.open(handles[rank], size)
                if gpu.read(self.opened[rank]) != MARK + rank:
                    closed[rank] = f"rank {comm.rank} reads something else in the GPU memory of rank {rank}"
            except RuntimeError as error:
                closed[rank] = f"rank {comm.rank} cannot open the GPU memory of rank {rank}: {error}"
        return closed
