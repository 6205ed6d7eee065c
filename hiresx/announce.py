"""Telling the user of work that takes its time and happens once, from wherever it is begun."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[str], None]] = []


def announce(line: str) -> None:
    """Tells whoever listens."""
    for listener in _listeners:
        listener(line)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Inside, `listener` is told."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
