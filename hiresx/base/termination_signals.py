"""Signals that ask a run to end. They are noted during a step, so that the run can end between two steps.

The signals are SIGINT (Ctrl-C), SIGTERM (of a scheduler or a shell), SIGHUP (a closed terminal), and SIGUSR1, SIGUSR2
and SIGXCPU, with which schedulers announce that the time limit is near.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

# A second one of these signals means that the user does not want to wait. The other signals often come in pairs: when a
# terminal closes, both the terminal and its shell send SIGHUP.
URGENT = (signal.SIGINT, signal.SIGTERM)
ENDING = (*URGENT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)

# Whether one of them has come since `raise_on_termination` was entered.
_come = False


class Terminated(SystemExit):
    """The exception that is raised after a signal other than SIGINT, when the run has stopped in a consistent state.
    Unless it is caught, the process ends with the exit status 128 + `number`, which a shell reports for a process that
    the signal `number` ended (143 for SIGTERM)."""

    everywhere = False

    def __init__(self, number: int = signal.SIGTERM):
        super().__init__(128 + number)
        self.number = number

    def __str__(self) -> str:
        return f"terminated by {signal.Signals(self.number).name}"


# Exceptions that end a process because of a signal, and not because of an error in the interrupted code.
SIGNALLED = (KeyboardInterrupt, Terminated)


def _act(number: int, frame: object) -> None:
    global _come
    if _come and number not in URGENT:
        return
    _come = True
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)


@contextmanager
def handle_signals(handler: Callable[[int, object], None], numbers: Sequence[int] = ENDING) -> Iterator[None]:
    """Return a context manager inside which the signals `numbers` call `handler`(number, frame). Three kinds of signals
    are not redirected: signals that are ignored (SIGHUP under nohup, SIGINT in a shell's background job); signals other
    than SIGINT and SIGTERM for which the program already has a handler; and all signals outside the main thread."""
    before: dict[int, Any] = {}  # the values that `signal.signal` returns and accepts
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            present = signal.getsignal(number)
            # None: the handler was not installed by Python, which cannot change it
            if present in (signal.SIG_IGN, None):
                continue
            ours = getattr(present, "__module__", None) == __name__
            if number in URGENT or ours or present == signal.SIG_DFL:
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, present in before.items():
            signal.signal(number, present)


class Requests:
    """A context in which the first signal does not interrupt the program: its number is stored in `signal`. A second
    SIGINT or SIGTERM acts at once. `agreed`: the signal that all ranks have received and act on."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.agreed: int | None = None
        self._urged = False
        self._handled = handle_signals(self._note)

    def __enter__(self) -> "Requests":
        self._handled.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._handled.__exit__(kind, error, where)

    def _note(self, number: int, frame: object) -> None:
        global _come
        if number in URGENT and self._urged:
            _act(number, frame)
        _come = True
        self._urged |= number in URGENT
        if self.signal is None:
            self.signal = number

    def act(self) -> None:
        """Raise KeyboardInterrupt (for SIGINT) or Terminated (for other signals) if all ranks have agreed to act on a
        signal (`agreed`). Do nothing if there is none."""
        if self.agreed is None:
            return
        error: Any = KeyboardInterrupt() if self.agreed == signal.SIGINT else Terminated(self.agreed)
        error.everywhere = True
        raise error


@contextmanager
def ignore_broken_output(lost: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Return a context manager for printing that suppresses the error if the terminal or the reading end of the pipe
    was closed, and calls `lost` instead, by default a function that does nothing."""
    try:
        yield
    except Terminated:
        raise
    # a closed file raises the first; rich raises the second for a broken pipe
    except (OSError, ValueError, SystemExit):
        lost()


@contextmanager
def raise_on_termination() -> Iterator[None]:
    """Return a context manager inside which termination signals (SIGTERM and others) raise Terminated, as SIGINT raises
    KeyboardInterrupt, so that a command can clean up."""
    global _come
    _come = False
    with handle_signals(_act, [number for number in ENDING if number != signal.SIGINT]):
        yield
