"""A message about ranks of this host that a signal has stopped (SIGSTOP), so that the other ranks wait for them."""

import os
from contextlib import suppress

from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import process

# Seconds between two looks at the ranks, and looks in a row that find a rank stopped before it is reported. Looks are
# counted, and not seconds, because a job that was suspended as a whole has made no looks meanwhile.
INTERVAL, LOOKS = 1.0, 10


class StoppedRanks:
    """The ranks of `comm` on this host, and for how many looks in a row each has been stopped. Collective."""

    def __init__(self, comm: Communicator):
        self._rank = comm.rank
        self._processes = dict(comm.local.allgather((comm.rank, process.current_process())))
        self._looks = dict.fromkeys(self._processes, 0)

    @property
    def alone(self) -> bool:
        """Whether there is no other rank on this host."""
        return len(self._processes) == 1

    def look(self) -> None:
        """Look at all ranks once. The lowest rank that runs prints one line for each rank that has just been stopped
        for `LOOKS` looks."""
        for rank, found in self._processes.items():
            self._looks[rank] = self._looks[rank] + 1 if process.is_stopped(found) else 0
        if any(looks == 0 and rank < self._rank for rank, looks in self._looks.items()):
            return
        for rank, looks in self._looks.items():
            if looks == LOOKS:
                _print(rank, self._processes[rank]["pid"], self._processes[rank]["host"])


def _print(rank: int, pid: int, host: str) -> None:
    line = (
        f"note: rank {rank}, process {pid} on {host}, has been stopped by a signal for {LOOKS * INTERVAL:.0f} s: the "
        f"other ranks wait for it; to let it go on: kill -CONT {pid}\n"
    )
    with suppress(OSError):
        os.write(2, line.encode())
