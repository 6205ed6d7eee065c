"""Background jobs, for which the time step does not wait. A separate thread executes them in order, on one rank or on
all ranks together."""

import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from hiresx.mpi.communicator import Communicator


class Writer:
    """Executes jobs (functions without arguments) in a background thread, one after the other. At most `outstanding`
    jobs are running or waiting; `submit` waits if there are more. `seconds_waited`: the sum of these waits in s.
    `busy`: seconds that the jobs took. After a failure no further job is executed, so that a series of files has no
    gap. The failure is raised once, by the next call. The process does not end before all jobs are done."""

    def __init__(self, outstanding: int = 2):
        self.outstanding = outstanding
        self.seconds_waited = self.busy = 0.0
        self.has_failed = False
        self._failure: BaseException | None = None
        self._thread = ThreadPoolExecutor(1, "output")
        self._jobs: deque[Future[None]] = deque()

    def submit(self, job: Callable[[], None]) -> None:
        """Submit a job (a function without arguments) for execution in the background thread. Waits while too many jobs
        are unfinished. If an earlier job has failed, the new one is ignored, and the exception of the failed one is
        raised unless an earlier call has raised it."""
        while self._jobs and self._jobs[0].done():
            self._jobs.popleft()
        self.until(lambda: len(self._jobs) < self.outstanding)
        self.check()
        if not self.has_failed:
            self._jobs.append(self._thread.submit(self._execute, job))

    def check(self) -> None:
        """Raise the exception of a background job that has failed, unless an earlier call has raised it. Does not
        wait."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def drain(self) -> None:
        """Wait until all background jobs are done. Failures are not raised here, but by `check`."""
        while self._jobs:
            self._jobs.popleft().result()

    def until(self, ready: Callable[[], bool]) -> None:
        """Wait for one background job after the other until `ready()`, a function that is called before each wait,
        returns True. The time of waiting is added to the attribute `seconds_waited`."""
        began = time.perf_counter()
        while not ready():
            self._jobs.popleft().result()
        self.seconds_waited += time.perf_counter() - began

    def _execute(self, job: Callable[[], None]) -> None:
        if self.has_failed:
            return
        began = time.perf_counter()
        try:
            job()
        except BaseException as error:
            self._failure, self.has_failed = error, True
        self.busy += time.perf_counter() - began


class Work:
    """Base class of output that the ranks of a communicator write together. The files have temporary names that all
    ranks know."""

    def write(self) -> None:
        """Write the data of this rank to the temporary files. Called in a background thread of each rank."""

    def complete(self, comm: Communicator) -> None:
        """Add to the files what depends on the other ranks of `comm`. Called in the main thread of each rank when all
        ranks have executed `write`. Collective."""

    def publish(self) -> None:
        """Rename the temporary files to their final names. Called in the background thread of rank 0 when all ranks
        have written and completed the files."""

    def discard(self) -> None:
        """Remove the temporary files if `publish` was not called or failed. Called on rank 0 when no rank writes any
        more."""


class JointWriter:
    """Executes `Work` of the ranks of a communicator `comm` in the background, in the order of submission.

    Every call is collective, and communicates as long as there is unpublished work. Only calls in the main threads
    (`advance`, `drain`, `submit`) detect that all ranks have written; the background threads do not communicate. A
    failure of one rank is raised on all ranks, once; nothing is written after it. If there are more than `outstanding`
    works, `submit` waits until the first is published, because the next one may be written under the same name.
    `seconds_waited`: the sum of these waits in s. `busy`: seconds that the works took.
    """

    def __init__(self, comm: Communicator, outstanding: int = 2):
        self._comm, self._outstanding = comm, outstanding
        self._writer = Writer(outstanding if comm.size == 1 else sys.maxsize)
        # Work whose publication is not known yet, in the order of submission. The counters say how much this rank has
        # written, how much all ranks have written and completed, and how much rank 0 has published; `_known` is how
        # much of it all ranks know to be published.
        self._open: deque[Work] = deque()
        self._written = self._completed = self._published = self._known = 0
        self._error: BaseException | None = None
        self._failed = False

    @property
    def has_failed(self) -> bool:
        """Whether any background work has failed, also if its exception was already raised. Nothing more is written
        then."""
        return self._failed or self._writer.has_failed

    @property
    def seconds_waited(self) -> float:
        """Seconds for which the main thread of this rank has waited for the background thread."""
        return self._writer.seconds_waited

    @property
    def busy(self) -> float:
        """Seconds that the work took in the background thread of this rank."""
        return self._writer.busy

    def submit(self, work: Work) -> None:
        """Submit `work`, output that all ranks write together, for execution in the background. Waits while too much
        work is unfinished. If earlier work has failed, the new one is ignored, and the exception of the failed one is
        raised unless an earlier call has raised it. Collective."""
        if self._comm.size == 1:
            self._writer.submit(lambda: self._alone(work))
            return
        self.advance()
        while len(self._open) >= self._outstanding:
            self._writer.until(self._first_moves)
            self.advance()
        if not self._failed:
            self._open.append(work)
            self._writer.submit(lambda: self._write(work))

    def advance(self) -> None:
        """Find out, without waiting for them, which files all ranks have written. Complete these files, and let rank 0
        give them their final names in its background thread. Raises the exception of work that has failed, unless an
        earlier call has raised it. Collective."""
        if self._comm.size == 1:
            self._writer.check()
            return
        if not self._open:
            return
        published = self._published if self._comm.root else sys.maxsize
        written, published, good = self._comm.min([self._written, published, self._error is None])
        while self._known < published:
            self._open.popleft()
            self._known += 1
        while self._completed < written:
            self._complete(self._open[self._completed - self._known])
        if not good:
            self._fail()

    def drain(self) -> None:
        """Wait until all ranks have written all files, and the files have their final names. Raises the exception of
        work that has failed, unless an earlier call has raised it. Collective."""
        for _ in ("written", "published"):
            self._writer.drain()
            self.advance()

    def _first_moves(self) -> bool:
        """True if all ranks can continue with the first unpublished work without waiting for this rank."""
        if self._error is not None:
            return True
        if self._completed > self._known:
            return not self._comm.root or self._published > self._known
        return self._written > self._completed

    # ---- in the background thread

    def _alone(self, work: Work) -> None:
        try:
            work.write()
            work.complete(self._comm)
            work.publish()
        except BaseException:
            # Incomplete files are removed, since they may be the reason why the disk is full.
            work.discard()
            raise

    def _write(self, work: Work) -> None:
        if self._error is None and not self._failed:
            try:
                work.write()
                self._written += 1
            except BaseException as error:
                self._error = error

    def _publish(self, work: Work, number: int) -> None:
        if self._published == number:  # not after work that failed
            try:
                work.publish()
                self._published += 1
            except BaseException as error:
                self._error = error

    # ---- in the main thread

    def _complete(self, work: Work) -> None:
        try:
            work.complete(self._comm)
        except Exception:
            self._give_up()
            raise
        number = self._completed
        self._completed += 1
        if self._comm.root:
            self._writer.submit(lambda: self._publish(work, number))

    def _fail(self) -> None:
        try:
            with self._comm.together():
                if self._error is not None:
                    raise self._error
        finally:
            self._give_up()

    def _give_up(self) -> None:
        """Stop, and remove unpublished files. It is called when all ranks know of the failure."""
        self._failed = True
        self._writer.drain()
        self._comm.barrier()
        if self._comm.root:
            for work in list(self._open)[self._published - self._known :]:
                work.discard()
        self._open.clear()
