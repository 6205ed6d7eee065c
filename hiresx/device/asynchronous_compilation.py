"""Compilation of the kernels in the background while the grid is made. A later request uses the result, or waits for
it."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event

from hiresx.base.threads import start_in_background
from hiresx.device.configuration import Configuration


def start_compilation(configuration: Configuration, name: str) -> Callable[[], bool]:
    """Start to compile the kernels for the compile-time choices `configuration` in a background thread, and return a
    function that tells, without waiting, whether the compilation has ended. `name`: the backend, which may be "auto",
    but not a list with a backend for each rank. Code that needs the kernels before they are ready waits for this
    compilation.

    No CUDA context is created. Errors are ignored here: a later request for the kernels raises them again.
    """
    over = Event()
    start_in_background(_compile, configuration, name, over)
    return over.is_set


def _compile(configuration: Configuration, name: str, over: Event) -> None:
    try:
        _compile_for_backend(configuration, name)
    finally:
        over.set()


def _compile_for_backend(configuration: Configuration, name: str) -> None:
    with suppress(Exception):
        if name in ("auto", "cuda"):
            from hiresx.device import cuda

            fault = cuda.obstacle()  # imports CuPy, which takes a second
            if fault is None:
                cuda.precompile(configuration)
            if fault is None or name == "cuda":
                return
        if name in ("auto", "cpu"):
            from hiresx.device import cpu

            cpu.CpuBackend().libraries(configuration)
        elif name == "emulated":
            from hiresx.device import emulated

            emulated.EmulatedBackend().libraries(configuration)
