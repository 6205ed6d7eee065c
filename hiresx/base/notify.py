"""Messages to the user, from any package, about work that takes long and happens once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

_listeners: list[Callable[[str], None]] = []
_lock = Lock()


def notify(line: str) -> None:
    """Pass the text `line` to all listeners."""
    for listener in [*_listeners]:
        listener(line)


@contextmanager
def notifications_to(listener: Callable[[str], None]) -> Iterator[None]:
    """A context in which `listener` receives every notified line. A line that several threads notify is received
    once."""
    seen: set[str] = set()

    def once(line: str) -> None:
        with _lock:
            if line in seen:
                return
            seen.add(line)
        listener(line)

    _listeners.append(once)
    try:
        yield
    finally:
        _listeners.remove(once)
