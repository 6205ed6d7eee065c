"""Compiling the kernels while the grid is made: what is asked for later is then in the cache, or under way."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event

from hiresx.base.threads import start_in_background
from hiresx.device.configuration import Configuration


def begin(configuration: Configuration, name: str) -> Callable[[], bool]:
    """Begin to compile the kernels of `configuration` for the backend called `name` (auto among them) of this host,
    beside what this process does; whoever compiles them afterwards waits for that instead of doing it twice.

    No context is made on a GPU. What fails here is left to the one who asks again, and is told then. Lists of backends
    by rank are not looked at. What is returned tells whether that is over."""
    over = Event()
    start_in_background(_compile, configuration, name, over)
    return over.is_set


def _compile(configuration: Configuration, name: str, over: Event) -> None:
    try:
        _compiled(configuration, name)
    finally:
        over.set()


def _compiled(configuration: Configuration, name: str) -> None:
    with suppress(Exception):
        if name in ("auto", "cuda"):
            from hiresx.device import cuda

            fault = cuda.fault()  # imports CuPy, which takes a second
            if fault is None:
                cuda.precompile(configuration)
            if fault is None or name == "cuda":
                return
        if name in ("auto", "cpu"):
            from hiresx.device import cpu

            cpu.Backend().libraries(configuration)
        elif name == "emulated":
            from hiresx.device import emulated

            emulated.Backend().libraries(configuration)
