"""The interface of every backend. All packages above `device` use a backend through it, and on a CPU also through
`Backend.threads` (the number of threads of a kernel, which can be set)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hiresx.device.call import Call, Calls
from hiresx.device.configuration import Configuration
from hiresx.kernels import Signature

__all__ = ["Backend", "Call", "Calls", "Event", "Program"]


class Event(Protocol):
    """A mark in the sequence of launches of a backend, by which elapsed times are measured."""

    def record(self) -> None:
        """Record the time at which all work launched so far is done."""

    def elapsed_time(self, start: "Event") -> float:
        """Return the seconds from `start` to this event, both recorded; waits until this one has happened."""


class Program(Protocol):
    """Interface of the compiled kernels of one configuration."""

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The signatures of the kernels by name, without kernels that the configuration leaves out."""

    def call(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> Call:
        """Return a launch of kernel `name` at the points 0 <= (i, j, k) < extent = (ni, nj, nk), to be made later.
        `extent` None is for a CPU kernel, which visits its points itself.

        `arguments`: the arguments of its signature after i, j, k, by name: numbers, and arrays or views of arrays of
        this backend, which stand for the address of their first item.

        Raises KeyError for an unknown kernel. Raises TypeError, with the names of kernel and argument, for a missing or
        unknown argument; for a number that does not fit, or an integer where a real is declared; for an array of
        another type, or one that is not contiguous along the last axis; and, for kernels with fields (hiresx.kernels),
        for strides that do not fit and arrays that are too small for the nodes visited.
        """

    def run(self, call: Call) -> None:
        """Make a launch, after those made before. Nothing is checked again."""

    def launch(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
        """Build a launch and make it at once. Raises as `call`. For repeated launches, `call` once and `run` are
        faster."""

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """Return a function that makes the launches `calls`, with the same effect as in this order. The launches of a
        list among them do not depend on each other, even if they share arrays. They do nothing if the first item of the
        array `guard` is negative at that time; none of them writes `guard`. On a CPU, the threads synchronize once for
        all of them, and independent launches run concurrently: a kernel must access only the views that it is given."""


class Backend(Protocol):
    """Interface of the devices on which kernels run and that hold their arrays. Arrays are numpy's on a CPU and cupy's
    on a GPU."""

    @property
    def name(self) -> str:
        """The name, as in `hiresx run --backend`."""

    @property
    def chunk_bytes(self) -> int:
        """The bytes that a thread reads at once where fields lie so (kernels/implicit/chunks.h); 0: one number."""

    def compile(self, configuration: Configuration) -> Program:
        """Return the kernels of `configuration`, from the cache or compiled now, which takes seconds. Raises
        HiresxError for a missing compiler, for a choice without a header, and for errors of the compiler."""

    def empty(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """Return an uninitialised array of `shape` and of the numpy type `dtype`. Raises HiresxError if it does not fit
        in memory."""

    def zeros(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """Return an array of zeros of `shape` and of the numpy type `dtype`. Raises as `empty`."""

    def to_device(self, array: np.ndarray) -> Any:
        """Return a copy of `array` for kernels. Raises as `empty`."""

    def to_host(self, array: Any) -> np.ndarray:
        """Return a numpy copy of `array`, made after all work launched so far."""

    def fetch(self, array: Any) -> Callable[[], np.ndarray]:
        """Start a copy of `array` to the host, made after all work launched so far, without waiting for it. The
        returned function waits and returns a numpy array; any thread may call it."""

    def copy(self, destination: Any, source: Any) -> None:
        """Copy `source` into `destination`, arrays of this backend of one type and shape."""

    def free_memory(self) -> int | None:
        """Return the bytes that are left for arrays of this backend; None for the host's own memory."""

    def synchronize(self) -> None:
        """Wait until all launched work is done."""

    def event(self) -> Event:
        """Return a new event."""
