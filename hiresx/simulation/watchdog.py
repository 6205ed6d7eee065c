"""The watchdog of a rank that is asked to end and cannot, as it waits for another rank in its device or in MPI, where
Python calls no signal handler. A thread receives the signal and ends the job after some time. Until then the thread
reports ranks that are stopped."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hiresx.base.termination_signals import ENDING, URGENT, Terminated
from hiresx.mpi.communicator import Communicator, end_process
from hiresx.output.saved import record
from hiresx.simulation import stopped_ranks

# Time limits: seconds, or a multiple of the longest step, within which a rank must complete its step and hear from the
# others; seconds before its first step; and seconds after a second Ctrl-C or SIGTERM.
PATIENCE, STEPS, FIRST, URGED = 8.0, 5.0, 60.0, 2.0


class WatchdogTimeout(Terminated):
    """The exception that is raised if the signal `number` requested the end of the run and no step ended within
    `seconds`, since the run waited for another rank."""

    def __init__(self, number: int, seconds: float):
        super().__init__(number)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"{super().__str__()}; no step came to its end in {self.seconds:.0f} s: it waited for another rank"


class Watchdog:
    """A context around the steps of a run in `directory` (None: nothing is written). If a rank does not complete a step
    after a signal, it raises WatchdogTimeout. `report`: a function that prints a WatchdogTimeout and ends all ranks if
    necessary (default: one line). The watchdog receives signals if the caller is the main thread. Collective."""

    def __init__(
        self, comm: Communicator, directory: Path | None, report: Callable[[WatchdogTimeout], object] | None = None
    ):
        self._comm, self._directory, self._report = comm, directory, report or _print
        self._ranks = stopped_ranks.StoppedRanks(comm)
        self._over = threading.Event()
        self._began = self._longest = 0.0
        self._ends: tuple[int, int] | None = None

    def __enter__(self) -> "Watchdog":
        if threading.current_thread() is not threading.main_thread():
            return self
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        if before != -1:  # another listener is installed
            signal.set_wakeup_fd(before)
            os.close(read)
            os.close(write)
            return self
        self._ends = read, write
        threading.Thread(target=self._listen, args=(read,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._over.set()
        if self._ends is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._ends[1])  # the thread closes the other end

    def record_step(self) -> None:
        """Record the present time as the end of a step of all ranks, from which the watchdog knows how long steps
        take."""
        now = time.monotonic()
        if self._began:
            self._longest = max(self._longest, now - self._began)
        self._began = now

    def stop(self) -> None:
        """Stop watching, because the steps of the run have ended normally."""
        self._over.set()

    def _listen(self, read: int) -> None:
        number = 0
        while number not in ENDING:
            if not select.select([read], [], [], None if self._ranks.alone else stopped_ranks.INTERVAL)[0]:
                self._ranks.look()
                continue
            got = os.read(read, 1)
            if not got:  # closed: the run has ended
                os.close(read)
                return
            number = got[0]
        since, urged = time.monotonic(), number in URGENT
        patience = max(PATIENCE, STEPS * self._longest) if self._longest else FIRST
        while not self._over.wait(0.1):
            with suppress(BlockingIOError):
                if urged and any(again in URGENT for again in os.read(read, 64)):
                    patience = min(patience, time.monotonic() - since + URGED)
            if time.monotonic() - since > patience:
                self._end(WatchdogTimeout(number, time.monotonic() - since))
        while select.select([read], [], []) and os.read(read, 64):
            pass  # later signals are written to this end until the run has ended
        os.close(read)

    def _end(self, error: WatchdogTimeout) -> None:
        if self._directory is not None:
            with suppress(Exception):  # the job ends nevertheless
                record.mark_failed(self._directory, "interrupted", f"rank {self._comm.rank}: {error}")
        try:
            self._report(error)
        finally:
            self._comm.abort(error.number + 128)


def _print(error: WatchdogTimeout) -> None:
    def tell(prefix: str) -> None:
        with suppress(OSError, ValueError):
            os.write(2, f"error: {prefix}{error}\n".encode())

    end_process(error, error.number + 128, tell)
