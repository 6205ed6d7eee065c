"""What the cpu and the emulated backend share: aligned numpy arrays, and functions of a library compiled for this host
that are called with a few microseconds of overhead."""

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hiresx import kernels
from hiresx.device.arguments import INT_RANGES, check_array, is_pointer, is_written, item, scalar
from hiresx.device.compiler import build
from hiresx.device.configuration import Configuration
from hiresx.device.wrappers import find, generate, launch_shape
from hiresx.errors import HiresxError
from hiresx.shell import word

# Bytes: a cache line, and the widest vector register there is.
ALIGNMENT = 64

SCALARS = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
}

# Only these are looked up in compiled code besides the kernels.
THREADS_TEXT = """#line 1 "threads"
#include <omp.h>
extern "C" void hx_set_threads(int n) { omp_set_num_threads(n); }
extern "C" int hx_get_threads() { return omp_get_max_threads(); }
"""

# Rounds an idle OpenMP thread spins before it sleeps. libgomp's own choice, long spinning, makes a run about ten times
# slower than one thread alone as soon as another program wants a core; with this number it was as fast as any.
SPINS = "20000"


class Array(np.ndarray):
    """A numpy array that remembers its checked address, so that passing it once more costs one attribute.

    `read_float64`, `write_int32` and so on are the address, for a kernel that reads or writes items of that type.
    They raise TypeError as `address` does.
    """

    def __getattr__(self, name: str):
        access, _, item_name = name.partition("_")
        if access not in ("read", "write") or item_name not in SCALARS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        self.__dict__[name] = found = address(self, np.dtype(item_name), access == "write")
        return found


def address(array: np.ndarray, dtype: np.dtype, write: bool) -> int:
    """Address of the first item of `array`. Raises TypeError if its items are not of `dtype`, not side by side along
    the last axis, or read-only where they are to be written."""
    check_array(array, np.ndarray, dtype)
    if write and not array.flags.writeable:
        raise TypeError("wants to write, got a read-only array")
    return array.ctypes.data


def empty(shape: Sequence[int] | int, dtype="float64") -> Array:
    """An uninitialised Array, 64-byte aligned. Raises HiresxError if it does not fit in memory."""
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    try:
        raw = np.empty(size + ALIGNMENT, np.uint8)
    except MemoryError:
        raise HiresxError(
            f"no memory for an array of {size / 2**30:.3g} GiB", "take a coarser grid, or a machine with more memory"
        ) from None
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape).view(Array)


class Event:
    """A moment in the work. Kernels of these backends are done when `launch` returns, so a clock is enough."""

    def __init__(self):
        self._at = 0.0

    def record(self) -> None:
        self._at = time.perf_counter()

    def elapsed(self, start: "Event") -> float:
        """Seconds from `start` to this event."""
        return self._at - start._at


class NativeBackend:
    """A backend whose kernels the host's C++ compiler compiles. A subclass gives `name`, `flags` and `program`, the
    class of what `compile` returns."""

    name: str
    flags: tuple[str, ...]
    program: "type[NativeProgram]"

    def __init__(self, root: Path = kernels.ROOT):
        self._root = root
        self._threads: int | None = None
        self._library: ctypes.CDLL | None = None

    def compile(self, configuration: Configuration) -> "NativeProgram":
        """The kernels of `configuration`, from the cache or compiled now (seconds). Raises HiresxError."""
        text, signatures = generate(configuration, self.name, self._root)
        path = build(text + THREADS_TEXT, self.flags, self.name)
        if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
            os.environ["GOMP_SPINCOUNT"] = SPINS  # read when the OpenMP library is loaded
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise HiresxError(f"the compiled kernels cannot be loaded: {error}", f"rm {word(path)}") from None
        if self._threads is not None:
            self._library.hx_set_threads(self._threads)
        # Some stand in an #if that this configuration leaves out.
        names = [name for name in signatures if hasattr(self._library, self.program.symbol(name))]
        built = {name: signatures[name] for name in names}
        return self.program(self._library, built, configuration.real)

    @property
    def threads(self) -> int:
        """OpenMP threads of a kernel: OMP_NUM_THREADS or every core that this process may use, until it is set."""
        if self._library is not None:
            return self._library.hx_get_threads()
        return self._threads or asked_threads() or len(os.sched_getaffinity(0))

    @threads.setter
    def threads(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"threads must be at least 1, got {count}")
        self._threads = count
        if self._library is not None:
            self._library.hx_set_threads(count)

    def empty(self, shape: Sequence[int] | int, dtype="float64") -> Array:
        return empty(shape, dtype)

    def zeros(self, shape: Sequence[int] | int, dtype="float64") -> Array:
        array = empty(shape, dtype)
        array[...] = 0
        return array

    def to_device(self, array: np.ndarray) -> Array:
        """A copy of `array` for kernels."""
        copy = empty(np.shape(array), np.asarray(array).dtype)
        copy[...] = array
        return copy

    def to_host(self, array: np.ndarray) -> np.ndarray:
        """A plain numpy copy of `array`."""
        return np.array(array, subok=False)

    def fetch(self, array: np.ndarray) -> Callable[[], np.ndarray]:
        """A copy of `array`, made at once: kernels change the array as soon as they are launched."""
        copy = self.to_host(array)
        return lambda: copy

    def copy(self, destination: np.ndarray, source: np.ndarray) -> None:
        """`source` into `destination`, of the same type and shape."""
        np.copyto(destination, source, casting="no")

    def synchronize(self) -> None:
        """Returns when all launched work is done: at once, as `launch` waits for it."""

    def event(self) -> Event:
        return Event()


def asked_threads(environment: Mapping[str, str] = os.environ) -> int | None:
    """What OMP_NUM_THREADS says of the outermost level; None where it says nothing."""
    first = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None


class NativeProgram:
    """Compiled kernels of one configuration. `signatures` holds what there is and what it takes."""

    def __init__(self, library: ctypes.CDLL, signatures: dict[str, kernels.Signature], real: str):
        self.signatures = signatures
        self._library = library
        self._real = real
        self._callers: dict[str, Callable] = {}

    def launch(self, name: str, extent: tuple[int, int, int], *arguments) -> None:
        """Visits the points (i, j, k) of extent = (ni, nj, nk) with kernel `name`. Raises TypeError for arguments that
        do not fit its signature, KeyError for a kernel that is not there."""
        caller = self._callers.get(name)
        if caller is None:
            caller = self._callers[name] = self._point_caller(name)
        caller(extent, *arguments)

    @staticmethod
    def symbol(name: str) -> str:
        """What the library calls kernel `name`."""
        return name

    def _point_caller(self, name: str) -> Callable:
        return self._caller(name, name, "ni, nj, nk = extent", ("ni", "nj", "nk"))

    def _caller(self, name: str, symbol: str, statement: str = "", leading: tuple[str, ...] = ()) -> Callable:
        """A Python function that calls `symbol` with the arguments of kernel `name`. With a `statement` it takes
        `extent` ahead of them, and the ints `leading` that the statement makes of that go first.

        The function is written out for the signature, as a loop over the arguments would cost more than the call. It
        passes Arrays and Python numbers straight on; anything else goes the slow way through `convert`, which raises.
        """
        signature = find(self.signatures, name)
        kinds = [kind for kind, _ in signature.arguments]
        items = [item(kind, self._real) for kind in kinds]
        function = getattr(self._library, symbol)
        function.restype = None
        function.argtypes = [ctypes.c_int32] * len(leading) + [
            ctypes.c_void_p if is_pointer(kind) else SCALARS[item_name]
            for kind, item_name in zip(kinds, items, strict=True)
        ]
        names = [f"a{n}" for n in range(len(kinds))]
        straight = [
            f"{name}.{'write' if is_written(kind) else 'read'}_{item_name}" if is_pointer(kind) else name
            for name, kind, item_name in zip(names, kinds, items, strict=True)
        ]
        # ctypes cuts an int that is too long without a word.
        limits = [(n, *INT_RANGES["int"]) for n in ("ni", "nj", "nk") if statement]
        limits += [(name, *INT_RANGES[kind]) for name, kind in zip(names, kinds, strict=True) if kind in INT_RANGES]
        fits = " and ".join(f"{low} <= {name} <= {high}" for name, low, high in limits)

        def convert(*values):
            return [_convert(signature, n, np.dtype(items[n]), value) for n, value in enumerate(values)]

        takes = ["extent", *names] if statement else names
        code = [
            f"def {signature.name}({', '.join(takes)}):",
            f"    {statement}",
            "    try:",
            f"        if {fits or True}:",
            f"            return function({', '.join([*leading, *straight])})",
            "    except (ArgumentError, AttributeError, TypeError, ValueError):",
            "        pass",
            "    extent = whole(extent)" if statement else "",
            f"    {statement}",
            f"    function({', '.join(leading)}{', ' if leading else ''}*convert({', '.join(names)}))",
        ]
        scope = {
            "function": function,
            "convert": convert,
            "whole": _whole,
            "launch_shape": launch_shape,
            "program": self,
            "ArgumentError": ctypes.ArgumentError,
        }
        exec("\n".join(code), scope)
        return scope[signature.name]


def _convert(signature: kernels.Signature, n: int, dtype: np.dtype, value) -> int | float:
    kind, name = signature.arguments[n]
    try:
        return address(value, dtype, is_written(kind)) if is_pointer(kind) else scalar(dtype, value)
    except TypeError as error:
        raise TypeError(f"kernel {signature.name}, argument {name} ({kind}): {error}") from None


def _whole(extent) -> tuple[int, ...]:
    """`extent` as Python ints; TypeError if it holds anything else."""
    return tuple(scalar(np.dtype("int32"), n) for n in extent)
