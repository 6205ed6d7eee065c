"""Ctrl-C and a scheduler's SIGTERM: noted while a run is stepping, so that it can end between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# What a shell reports for a process that SIGTERM ended.
TERMINATED = 128 + signal.SIGTERM


class Terminated(SystemExit):
    """SIGTERM, once everything is in order; ends the process with exit status 143 unless it is caught."""

    def __init__(self):
        super().__init__(TERMINATED)


def _act(number: int, frame) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated


class Requests:
    """Context manager in which the first SIGINT or SIGTERM is only noted, in `signal`; the second acts at once.

    Where signals cannot be handled (another thread than the main one) or SIGINT is ignored (a shell's background job),
    they are left alone.
    """

    def __init__(self):
        self.signal: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Requests":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):  # None: not Python's to change
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame) -> None:
        if self.signal is not None:
            _act(number, frame)
        self.signal = number

    def act(self) -> None:
        """Raise what was noted, here or on another rank: KeyboardInterrupt or Terminated."""
        if self.signal is None:
            return
        try:
            _act(self.signal, None)
        except (KeyboardInterrupt, Terminated) as error:
            error.everywhere = True
            raise


@contextmanager
def termination_raises() -> Iterator[None]:
    """Context in which SIGTERM raises Terminated, as SIGINT raises KeyboardInterrupt, so that a command can tidy up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _act)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
