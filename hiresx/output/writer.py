"""Work that the time step does not wait for: jobs done in their order by a thread of their own."""

import threading
import time
from collections import deque
from collections.abc import Callable


class Writer:
    """Does jobs (functions without arguments) in the background, one after the other.

    At most `outstanding` jobs are begun or waiting; who brings one more waits for the first of them, and `waited` says
    how long that was in all. After a failure no job is done any more; the failure is raised once, by whichever call
    comes first. The thread lives as long as there are jobs, and keeps the process alive until they are done.
    """

    def __init__(self, outstanding: int = 2):
        self.outstanding = outstanding
        self.waited = 0.0
        self.busy = 0.0
        self._jobs: deque[Callable[[], None]] = deque()
        self._running = False
        self._failure: BaseException | None = None
        self._failed = False
        self._changed = threading.Condition()

    @property
    def failed(self) -> bool:
        """A job has failed, whether that was raised or not."""
        return self._failed

    def submit(self, job: Callable[[], None]) -> None:
        """Have `job` done. Raises the failure of an earlier one; once that was raised, drops the job."""
        with self._changed:
            began = time.perf_counter()
            while len(self._jobs) >= self.outstanding:
                self._changed.wait()
            self.waited += time.perf_counter() - began
            self._raise()
            if self._failed:
                return
            self._jobs.append(job)
            if not self._running:
                self._running = True
                threading.Thread(target=self._work, name="output").start()

    def check(self) -> None:
        """Raise the failure of an earlier job, if it was not raised before."""
        if self._failed:
            with self._changed:
                self._raise()

    def drain(self) -> None:
        """Wait until every job is done. Raises nothing: see `check`."""
        with self._changed:
            while self._jobs:
                self._changed.wait()

    def _raise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._jobs:
                    self._running = False
                    return
                job = self._jobs[0]
            began = time.perf_counter()
            failure = None
            try:
                job()
            except BaseException as error:
                failure = error
            del job  # it holds the fields
            with self._changed:
                self.busy += time.perf_counter() - began
                if failure is None:
                    self._jobs.popleft()
                else:
                    # What waits behind it came later: a gap in the series would be worse than its end.
                    self._jobs.clear()
                    self._failure, self._failed = failure, True
                self._changed.notify_all()
