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
    """A marker in the sequence of launches of a backend, by which elapsed times are measured."""

    def record(self) -> None:
        """Record the time at which all work launched so far on the backend is complete."""

    def elapsed_time(self, start: "Event") -> float:
        """Return the seconds from the event `start` to this event. Both must have been recorded. The call waits until
        this event has occurred."""


class Program(Protocol):
    """Interface of the compiled kernels of one configuration."""

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The signatures (parameter names and types) of the compiled kernels by name."""

    def call(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> Call:
        """Return a launch of kernel `name` at the points 0 <= (i, j, k) < extent = (ni, nj, nk), to be made later.
        `extent` is None for a CPU kernel, which determines its points itself.

        `arguments`: the arguments of the kernel's signature after i, j, k, by name: numbers, and arrays or views of
        arrays of this backend. For an array the kernel receives the address of its first item.

        Raises KeyError for an unknown kernel. Raises TypeError, with the names of kernel and argument, for a missing or
        unknown argument; for a number that does not fit, or an integer in place of a real number; for an array of
        another type, or one that is not contiguous along the last axis; and, for kernels with fields (hiresx.kernels),
        for strides that do not fit and arrays that are too small for the nodes visited.
        """

    def run(self, call: Call) -> None:
        """Make the kernel launch `call`, after the launches made before. Its arguments are not checked again."""

    def launch(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
        """Launch the kernel `name` at once. `extent`: the numbers of points (ni, nj, nk), or None. `arguments`: the
        kernel's arguments by name. Raises the errors of `call`. For repeated launches it is faster to use `call` once
        and `run` for each launch."""

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """Return a function that makes the kernel launches `calls`, with the same effect as if they were made one after
        the other. If an entry of `calls` is a list, its launches do not depend on each other, even if they share
        arrays. No launch has an effect if the first item of the array `guard` is negative at that time; no launch
        writes `guard`. On a CPU, the threads synchronize once for all launches, and independent launches run
        concurrently: a kernel must access only the views that are its arguments."""


class Backend(Protocol):
    """Interface of the devices on which kernels run and that own their arrays. Arrays are NumPy's on a CPU and CuPy's
    on a GPU."""

    @property
    def name(self) -> str:
        """Name of the backend, as in `hiresx run --backend`: "cpu", "cuda" or "emulated"."""

    @property
    def chunk_bytes(self) -> int:
        """Number of bytes that a thread reads at once from arrays with the layout of kernels/implicit/chunks.h. It is 0
        if a thread reads single numbers."""

    def compile(self, configuration: Configuration) -> Program:
        """Return the compiled kernels for the compile-time choices `configuration` from the cache, or compile them,
        which takes seconds. Raises HiresxError for a missing compiler, for a choice without a header, and for errors of
        the compiler."""

    def empty(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """Return an uninitialised array of this backend, of the given `shape` and NumPy type `dtype`. Raises
        HiresxError if it does not fit in memory."""

    def zeros(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """Return an array of zeros of this backend, of the given `shape` and NumPy type `dtype`. Raises HiresxError if
        it does not fit in memory."""

    def to_device(self, array: np.ndarray) -> Any:
        """Return a copy of the NumPy array `array` in the memory of this backend. Raises HiresxError if it does not fit
        in memory."""

    def mirror(self, array: np.ndarray) -> Any:
        """Return `array`, or a view of one, for kernels that only read it: a view of the same memory if the arrays of
        this backend are in the host's memory, else a copy. Raises HiresxError if it does not fit in memory."""

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy of `array`, an array of this backend, as a NumPy array, made after all work launched so far."""

    def fetch(self, array: Any) -> Callable[[], np.ndarray]:
        """Start an asynchronous copy of `array`, an array of this backend, to the host, made after all work launched so
        far. Return a function that waits for the copy and returns it as a NumPy array; any thread may call it."""

    def copy(self, destination: Any, source: Any) -> None:
        """Copy the array `source` into `destination`, arrays of this backend with the same type and shape."""

    def write(self, destination: Any, source: np.ndarray) -> None:
        """Copy the few numbers of the NumPy array `source` into `destination`, an array of this backend with the same
        type and shape, after all work launched so far. The call does not wait for this work, and the caller may change
        `source` afterwards."""

    def free_memory(self) -> int | None:
        """Return the number of bytes that are free for arrays of this backend; None if its arrays are in the host's
        memory."""

    def synchronize(self) -> None:
        """Wait until all work launched on this backend is done."""

    def event(self) -> Event:
        """Return a new event, by which elapsed times on this backend are measured."""
