"""Messages to the user, from any package, about work that takes long and happens once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

_listeners: list[Callable[[str], None]] = []
_lock = Lock()


def notify(line: str) -> None:
    """Pass the text `line`, a message to the user, to all functions that `notifications_to` has registered."""
    for listener in [*_listeners]:
        listener(line)


@contextmanager
def notifications_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Return a context manager inside which the function `listener` is called with every text that is passed to
    `notify`. The same text is passed on only once."""
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
