"""What every backend offers. All packages above `device` see a backend through this, and on a CPU also through
`Backend.threads` (the threads of a kernel, to get and set)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hiresx.device.call import Call, Calls
from hiresx.device.configuration import Configuration
from hiresx.kernels import Signature

__all__ = ["Backend", "Call", "Calls", "Event", "Program"]


class Event(Protocol):
    """A moment in the work of a backend."""

    def record(self) -> None:
        """Notes the moment when all work launched so far is done."""

    def elapsed_time(self, start: "Event") -> float:
        """Seconds from `start` to this event, both recorded; waits until this one has come."""


class Program(Protocol):
    """The kernels of one configuration."""

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """What there is and what it takes, by name. A kernel that the configuration leaves out is not in it."""

    def call(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> Call:
        """A launch of kernel `name` at the points 0 <= (i, j, k) < extent = (ni, nj, nk), to be made later; extent None
        is for a CPU kernel, which visits for itself.

        `arguments` are what its signature lists after i, j, k, by name: numbers, and arrays or views of arrays of this
        backend, which stand for the address of their first item. Raises KeyError for a kernel that is not there, and
        TypeError, which names kernel and argument, for one that is missing or that it does not take, a number that does
        not fit or is an integer where a real is declared, an array of another type or of items that are not side by
        side along the last axis, and, of kernels with fields (hiresx.kernels), strides and arrays that do not hold the
        nodes which it visits.
        """

    def run(self, call: Call) -> None:
        """Makes a launch, behind those made before. Nothing of it is checked again."""

    def launch(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
        """Builds a launch and makes it at once. Raises as `call`. What is launched again and again is better built
        once."""

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """A function that makes the launches `calls` with an effect as if in this order; those of a list among them do
        not depend on each other, whatever arrays they share. Where the first item of the array `guard`, which none of
        them writes, is negative by then, they do nothing. On a CPU, threads come together for all of them at once, and
        those that do not depend on each other run side by side: a kernel may touch nothing of an array beside the view
        that it is given."""


class Backend(Protocol):
    """A place to keep arrays and run kernels. Arrays are numpy's on a CPU and cupy's on a GPU."""

    @property
    def name(self) -> str:
        """What it is called, as in `hiresx run --backend`."""

    def compile(self, configuration: Configuration) -> Program:
        """The kernels of `configuration`, from the cache or compiled now, which takes seconds. Raises HiresxError with
        what is missing (a compiler, a choice without a header) or what the compiler says."""

    def empty(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """An uninitialised array. Raises HiresxError if it does not fit in memory."""

    def zeros(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """An array of zeros. Raises as `empty`."""

    def to_device(self, array: np.ndarray) -> Any:
        """A copy of `array` that kernels can take. Raises as `empty`."""

    def to_host(self, array: Any) -> np.ndarray:
        """A numpy copy of `array`, after all work launched so far."""

    def fetch(self, array: Any) -> Callable[[], np.ndarray]:
        """Begins a copy to the host, of what `array` holds after all work launched so far, and does not wait for it.
        The function that is returned does, and gives a numpy array; any thread may call it."""

    def copy(self, destination: Any, source: Any) -> None:
        """`source` into `destination`, arrays of this backend of one type and shape."""

    def free_memory(self) -> int | None:
        """Bytes that arrays of this backend may still take; None where that is the host's own memory."""

    def synchronize(self) -> None:
        """Waits until all launched work is done."""

    def event(self) -> Event:
        """An event to record."""
