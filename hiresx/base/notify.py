"""Telling the user of work that takes its time and happens once, from wherever it is begun."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

_listeners: list[Callable[[str], None]] = []
_lock = Lock()


def notify(line: str) -> None:
    """Tells whoever listens."""
    for listener in [*_listeners]:
        listener(line)


@contextmanager
def notifications_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Inside, `listener` is told, of each line once: several threads may begin such work."""
    heard: set[str] = set()

    def once(line: str) -> None:
        with _lock:
            if line in heard:
                return
            heard.add(line)
        listener(line)

    _listeners.append(once)
    try:
        yield
    finally:
        _listeners.remove(once)
