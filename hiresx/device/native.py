"""The common part of the cpu and the emulated backend: aligned numpy arrays, and libraries compiled for this host,
whose functions run on the thread pool of the process."""

import ctypes
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from hiresx import kernels
from hiresx.base.threads import requested_threads
from hiresx.device import thread_pool
from hiresx.device.arguments import (
    CHUNK,
    INT_RANGES,
    check_array,
    check_places,
    fit_conditions,
    is_pointer,
    is_written,
    item,
    last_node,
    misfit,
    order_arguments,
    scalar,
)
from hiresx.device.call import Call, Calls
from hiresx.device.compiler import build_all
from hiresx.device.configuration import USUAL, Configuration, Target, later_kernels, parts
from hiresx.device.dependency_graph import RecordingProgram, flatten_calls, levels
from hiresx.device.native_event import NativeEvent
from hiresx.device.wrappers import find_signature, generate_part, kernel_shape
from hiresx.equations.storage import LONGEST
from hiresx.errors import HiresxError

# Compiler flags of every kernel, besides the level of optimisation.
NATIVE_FLAGS = ("-march=native", "-ffp-contract=fast", "-std=c++17", "-fPIC", "-shared", "-Wl,-Bsymbolic")

# In bytes: a cache line, and the widest vector register.
ALIGNMENT = 64

# Item types of an Array, with their `struct` format in a word of 8 bytes: q for an int, d for a real. An address is P.
ITEMS = {"int8": "q", "int32": "q", "int64": "q", "float64": "d", "float32": "d", LONGEST: "d"}


class Array(np.ndarray):
    """A NumPy array that stores its checked address, so that to pass it again takes only one attribute access.
    `read_float64`, `write_int32` and so on are the address for a kernel that reads or writes items of that type. They
    raise TypeError for another type, for a last axis that is not contiguous, and to write a read-only array."""

    def __getattr__(self, name: str) -> int:
        access, _, item_name = name.partition("_")
        if access not in ("read", "write") or item_name not in ITEMS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        self.__dict__[name] = found = address(self, np.dtype(item_name), access == "write")
        return found


def address(array: Any, dtype: np.dtype[Any], write: bool) -> int:
    """Return the memory address of the first item of the NumPy array `array`. Raises TypeError if its items are not of
    `dtype`, if it is not contiguous along the last axis, or if it is read-only and the kernel writes it (`write`)."""
    check_array(array, np.ndarray, dtype)
    if write and not array.flags.writeable:
        raise TypeError("the kernel writes it, but the array is read-only")
    found: int = array.__array_interface__["data"][0]
    return found


def empty(shape: Sequence[int] | int, dtype: Any = "float64") -> Array:
    """Return an uninitialised array of `shape` and `dtype`, aligned to 64 bytes. Raises HiresxError if too large."""
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    size = prod(map(int, shape)) * np.dtype(dtype).itemsize
    try:
        raw = np.empty(size + ALIGNMENT, np.uint8)
    except MemoryError:
        raise HiresxError(
            f"no memory for an array of {size / 2**30:.3g} GiB", "take a coarser grid, or a machine with more memory"
        ) from None
    return Array(shape, dtype, raw, -raw.__array_interface__["data"][0] % ALIGNMENT)


class NativeBackend:
    """A backend whose kernels the host's C++ compiler compiles. A subclass defines `name`, `flags` and `program`, the
    class of the result of `compile`. `root`: the folder of the kernels."""

    name: Target
    chunk_bytes = 0
    flags: tuple[str, ...]
    program: "type[NativeProgram]"

    def __init__(self, root: Path = kernels.ROOT):
        self._root = root
        self._threads: int | None = None
        self._spin_time: int | None = None

    def compile(self, configuration: Configuration) -> "NativeProgram":
        """Return the compiled kernels for the compile-time choices `configuration`. Kernels for some runs only are
        compiled at their first use. Raises HiresxError if the C++ compiler is missing or if it fails."""
        usual = self.libraries(configuration)
        thread_pool.library()
        return self.program(self, usual, configuration, later_kernels(configuration, self._root))

    def libraries(
        self, configuration: Configuration, part: str | None = None
    ) -> list[tuple[Path, Mapping[str, kernels.Signature]]]:
        """Return the shared libraries of those kernels for the compile-time choices `configuration` that most runs
        need, each with the signatures of its kernels; with `part` only the kernels of this separately compiled part
        (the name of a header of kernels/ without `.h`). Missing libraries are compiled in parallel. Raises HiresxError
        if there is no compiler, or if it fails."""
        wanted = [p for p in parts(configuration, self._root) if p is None or p in USUAL] if part is None else [part]
        made = (generate_part(configuration, self.name, one, self._root) for one in wanted)
        texts, declared = zip(*made, strict=True)
        return list(zip(build_all(texts, self.flags, self.name), declared, strict=True))

    @property
    def threads(self) -> int:
        """Number of threads that compute a kernel: by default OMP_NUM_THREADS, or all cores of this process."""
        if self._threads is None:
            self._threads = requested_threads() or len(os.sched_getaffinity(0))
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        """Set the number of threads that compute a kernel to `count`. Raises ValueError if it is less than 1."""
        if count < 1:
            raise ValueError(f"threads must be at least 1, got {count}")
        self._threads = count
        self._spin_time = None

    @property
    def thread_settings(self) -> tuple[int, int]:
        """The number of threads, and the nanoseconds for which an idle thread spins before it sleeps."""
        if self._spin_time is None:
            self._spin_time = thread_pool.spin_time(self.threads)
        return self.threads, self._spin_time

    def empty(self, shape: Sequence[int] | int, dtype: str = "float64") -> Array:
        """Return an uninitialised array of `shape` and NumPy type `dtype`. Raises HiresxError if too large."""
        return empty(shape, dtype)

    def zeros(self, shape: Sequence[int] | int, dtype: str = "float64") -> Array:
        """Return an array of zeros of `shape` and NumPy type `dtype`. Raises HiresxError if it is too large."""
        array = empty(shape, dtype)
        array[...] = 0
        return array

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """Return a copy of the NumPy array `array`, aligned for use by kernels."""
        copy = empty(np.shape(array), np.asarray(array).dtype)
        copy[...] = array
        return copy

    def mirror(self, array: np.ndarray[Any, Any]) -> Array:
        """Return a view of `array`, which kernels must not change."""
        return array.view(Array)

    def to_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return a copy of `array` as a plain NumPy array."""
        return np.array(array, subok=False)

    def fetch(self, array: np.ndarray[Any, Any]) -> Callable[[], np.ndarray]:
        """Copy `array` now, and return a function that returns the copy. Later kernels may change `array`."""
        copy = self.to_host(array)
        return lambda: copy

    def copy(self, destination: np.ndarray, source: np.ndarray[Any, Any]) -> None:
        """Copy the array `source` into `destination`, which has the same type and shape."""
        np.copyto(destination, source, casting="no")

    write = copy

    def free_memory(self) -> int | None:
        """Return None, since the arrays of this backend are in the memory of the host."""
        return None

    def synchronize(self) -> None:
        """Return at once, since a launch on this backend waits until the kernel is complete."""

    def event(self) -> NativeEvent:
        """Return a new event, by which elapsed times are measured."""
        return NativeEvent()


class _Kernel:
    """The calling convention of a kernel: `words(extent, **arguments)` packs its arguments into bytes; `function` and
    `shape` are the addresses of the functions that take them (see hiresx.device.wrappers)."""

    def __init__(self, program: "NativeProgram", name: str):
        self.signature = signature = find_signature(program.signatures, name, program.signatures.all_names())
        library = program.library(name)
        self.names = tuple(called for _, called in signature.arguments)
        statement, leading = program.visit(name, signature.kind) if signature.kind != "CPU_KERNEL" else ("", ())
        self.function = ctypes.cast(library[f"{name}_launch"], ctypes.c_void_p).value
        self._cut = library[f"{name}_shape"]
        self.shape = ctypes.cast(self._cut, ctypes.c_void_p).value
        self._cut.restype = thread_pool.WorkShape
        self._words = _words(signature, program, statement, leading)

    def words(self, extent: Any, arguments: Mapping[str, Any]) -> bytes:
        """Return the checked arguments in the library's form. Raises TypeError."""
        try:
            return self._words(extent, **arguments)
        except TypeError:
            order_arguments(self.signature, arguments)  # raises where names do not fit
            raise

    def cut(self, words: bytes) -> thread_pool.WorkShape:
        """Return the number of parts of this work, and their weight."""
        found: thread_pool.WorkShape = self._cut(words)
        return found


def _words(
    signature: kernels.Signature, program: "NativeProgram", statement: str, leading: tuple[str, ...]
) -> Callable[..., bytes]:
    """Return a Python function that checks and packs the arguments of a kernel. The ints `leading`, which `statement`
    computes from the extent `hx_extent`, come first. All names except those of arguments begin with hx_.

    The function is generated for the signature, as a loop over the arguments would cost more than the call. It packs
    Arrays and Python numbers directly; `convert` handles anything else and raises errors."""
    kinds, names = zip(*signature.arguments, strict=True) if signature.arguments else ((), ())
    items = [item(kind, program.real) for kind in kinds]
    letters = ["P" if is_pointer(kind) else ITEMS[name] for kind, name in zip(kinds, items, strict=True)]
    straight = []
    for name, kind, item_name in zip(names, kinds, items, strict=True):
        word = f"{name}.{'write' if is_written(kind) else 'read'}_{item_name}" if is_pointer(kind) else name
        straight.append(f"0 if {name} is None else {word}" if name in signature.optional else word)
    # A word has a wider range than an int argument, and would accept an int for a real.
    limits = [(n, *INT_RANGES["int"]) for n in ("hx_ni", "hx_nj", "hx_nk") if statement]
    limits += [(name, *INT_RANGES[kind]) for kind, name in signature.arguments if kind in INT_RANGES]
    fits = [f"{low} <= {name} <= {high}" for name, low, high in limits]
    fits += [f"{name}.__class__ is float" for kind, name in signature.arguments if kind in ("real", "double")]
    fits += [f"{straight[names.index(name)]} % {CHUNK} == 0" for name in signature.aligned]
    last = last_node(signature)

    def convert(extent: Any, *values: Any) -> list[int | float]:
        found = [_convert(signature, n, np.dtype(items[n]), value) for n, value in enumerate(values)]
        check_places(signature, extent, values)
        return found

    code = [
        f"def {signature.name}({', '.join(['hx_extent', '/', *(['*'] if names else []), *names])}):",
        "    try:",
        f"        {statement or 'pass'}",
        f"        hx_last = {last or 0}",
        f"        if {' and '.join([*fits, *fit_conditions(signature)]) or True}:",
        f"            return hx_pack({', '.join([*leading, *straight])})",
        "    except (AttributeError, TypeError, ValueError, hx_error):",
        "        pass",
        "    hx_extent = hx_whole(hx_extent)" if statement else "",
        f"    {statement}",
        f"    return hx_pack({', '.join([*leading, '*hx_convert(' + ', '.join(['hx_extent', *names]) + ')'])})",
    ]
    scope: dict[str, Any] = {
        "hx_pack": struct.Struct("@" + "q" * len(leading) + "".join(letters)).pack,
        "hx_convert": convert,
        "hx_whole": _whole,
        "hx_shape": kernel_shape,
        "hx_program": program,
        "hx_error": struct.error,
    }
    exec(_compile_function("\n".join(code)), scope)
    made: Callable[..., bytes] = scope[signature.name]
    return made


@lru_cache(maxsize=1024)
def _compile_function(code: str) -> CodeType:
    """Compile the packing function of a kernel; cached, as every solver needs the same ones."""
    return compile(code, "<arguments of a kernel>", "exec")


class _Signatures(Mapping[str, kernels.Signature]):
    """The signatures of the kernels of a program by name. `later`: the part of kernels that `add` has yet to add.
    `all_names()`: all names, without adding any."""

    def __init__(self, add: Callable[[str], None], later: Mapping[str, str]):
        self.there: dict[str, kernels.Signature] = {}
        self._add, self._later = add, dict(later)

    def __getitem__(self, name: str) -> kernels.Signature:
        if name in self._later:
            self._complete(self._later[name])
        return self.there[name]

    def __iter__(self) -> Iterator[str]:
        for part in [*dict.fromkeys(self._later.values())]:
            self._complete(part)
        return iter(self.there)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def all_names(self) -> set[str]:
        return {*self.there, *self._later}

    def _complete(self, part: str) -> None:
        self._add(part)
        self._later = {name: other for name, other in self._later.items() if other != part}


class NativeProgram(RecordingProgram):
    """Compiled kernels of one configuration. `later`: the kernels that are compiled at their first use, with their
    part. `real`: NumPy's name of the kernels' real type. `arranges_at_once`: whether prepare() orders launches.
    `libraries`: pairs of a shared library and the signatures of the kernels in it."""

    arranges_at_once = False

    @staticmethod
    def visit(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        """Return code that packs the arguments of a launch of kernel `name`, of the kind `Signature.kind`: a statement
        that computes integers from the numbers of points `hx_extent`, and the names of these integers."""
        raise NotImplementedError

    def __init__(
        self,
        backend: NativeBackend,
        libraries: Iterable[tuple[Path, Mapping[str, kernels.Signature]]],
        configuration: Configuration,
        later: Mapping[str, str],
    ):
        self.configuration, self.real = configuration, configuration.real
        self._signatures = _Signatures(self._add_part, later)
        self._of_kernel: dict[str, ctypes.CDLL] = {}
        self._backend, self._pool = backend, thread_pool.library()
        self._kernels: dict[str, _Kernel] = {}
        for path, declared in libraries:
            self._add(thread_pool.load_library(path), declared)

    @property
    def signatures(self) -> _Signatures:
        """The signatures (parameter names and types) of the compiled kernels by name."""
        return self._signatures

    def _add_part(self, part: str) -> None:
        for path, declared in self._backend.libraries(self.configuration, part):
            self._add(thread_pool.load_library(path), declared)

    def _add(self, library: ctypes.CDLL, declared: Mapping[str, kernels.Signature]) -> None:
        # An #if may leave out kernels of this configuration.
        built = {name: found for name, found in declared.items() if hasattr(library, f"{name}_launch")}
        self._signatures.there.update(built)
        self._of_kernel |= dict.fromkeys(built, library)

    def library(self, name: str) -> ctypes.CDLL:
        """Return the loaded shared library that contains the kernel `name`."""
        return self._of_kernel[name]

    def kernel(self, name: str) -> _Kernel:
        """Return how kernel `name` is called: packing function, addresses. Raises KeyError for an unknown kernel."""
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = _Kernel(self, name)
        return found

    def call(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> Call:
        """Return a launch of kernel `name` at the points 0 <= (i, j, k) < `extent` = (ni, nj, nk), to be made later.
        `arguments`: the kernel's arguments by name. Errors: `interface.Program.call`."""
        kernel = self._kernels.get(name) or self.kernel(name)
        words = kernel.words(extent, arguments)
        given = dict(zip(kernel.names, map(arguments.__getitem__, kernel.names), strict=True))
        return Call(kernel.signature, extent, given, words)

    def run(self, call: Call) -> None:
        """Make the kernel launch `call` on the threads of the CPU, and wait until it is complete."""
        if self.recorded is not None:
            self.recorded.append(call)
            return
        kernel = self._kernels[call.name]
        self._pool.hx_launch(kernel.function, kernel.shape, call.packed, *self._backend.thread_settings)

    def launch(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
        """Launch kernel `name` on the CPU, and wait until it is complete. `extent`: the numbers of points (ni, nj, nk),
        or None. `arguments`: the kernel's arguments by name. Raises the errors of `call`."""
        if self.recorded is not None:
            self.recorded.append(self.call(name, extent, **arguments))
            return
        kernel = self._kernels.get(name) or self.kernel(name)
        self._pool.hx_launch(
            kernel.function, kernel.shape, kernel.words(extent, arguments), *self._backend.thread_settings
        )

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """Return a function that makes the launches `calls`. No launch has an effect if guard[0] is negative then."""
        return _PreparedLaunches(self, calls, self._backend, self._pool, guard).run

    def arrange_launches(self, calls: Calls, alone: bool = False) -> tuple[list["LaunchWork"], list[int]]:
        """Return the kernel launches `calls` as work for threads, in order, and the level of each: launches of one
        level do not depend on each other. If `alone` is true, one thread does all the work, and there are no levels."""
        return list(map(self.work, flatten_calls(calls))), [] if alone else levels(calls)

    def work(self, call: Call) -> "LaunchWork":
        """Return the kernel launch `call` as work for threads. Its packed arguments live as long as `call`."""
        kernel = self.kernel(call.name)
        shape = kernel.cut(call.packed)
        return LaunchWork(kernel.function, call.packed, shape.parts, shape.weight)


class LaunchWork(NamedTuple):
    """The work of a launch: the address of its `function`, its packed arguments `words`, the number of `parts` into
    which it can be divided and the `weight` of each. `kept` owns the memory of arguments if nothing else does."""

    function: int | None
    words: bytes
    parts: int
    weight: int
    kept: Any = None


class _PreparedLaunches:
    """Several launches as one: from the second run on arguments are not checked, and threads synchronise once."""

    def __init__(self, program: NativeProgram, calls: Calls, backend: NativeBackend, library: ctypes.CDLL, guard: Any):
        self._backend, self._run = backend, library.hx_run
        self._program, self._calls, self._guard = program, list(calls), guard
        # Arranging takes longer than one run. Most lists are recorded into those of complete steps, or run once.
        self._ran = program.arranges_at_once and bool(self._arrange)

    @cached_property
    def _arrange(self) -> tuple[list["LaunchWork"], list[int]]:
        return self._program.arrange_launches(self._calls)

    @cached_property
    def _alone(self) -> tuple[int, int, Any]:
        # A single thread goes from block to block, whose data stay in its cache.
        return _table([self._program.arrange_launches(self._calls, alone=True)[0]])

    @cached_property
    def _share(self) -> tuple[int, int, Any]:
        made, level = self._arrange
        grouped: list[list[LaunchWork]] = [[] for _ in range(max(level, default=-1) + 1)]
        for one, n in zip(made, level, strict=True):
            grouped[n].append(one)
        # The longest parts first, so that small parts are left for the end.
        return _table([sorted(group, key=lambda one: -one.weight) for group in grouped])

    def run(self) -> None:
        if self._program.recorded is not None:
            self._program.recorded += self._calls
            return
        if self._guard is not None and self._guard[0] < 0:
            return
        if not self._ran:
            self._ran = True
            for call in flatten_calls(self._calls):
                self._program.run(call)
            return
        threads, patience = self._backend.thread_settings
        table, count, _ = self._alone if threads == 1 else self._share
        self._run(table, count, threads, patience)


def _table(groups: list[list[LaunchWork]]) -> tuple[int, int, Any]:
    """Return the address and number of `thread_pool.Level`s, each with the calls of a group, and their owners."""
    rows, kept = [], []
    for group in groups:
        calls = (thread_pool.PoolCall * len(group))()
        parts = weight = 0
        for call, one in zip(calls, group, strict=True):
            words = ctypes.cast(ctypes.c_char_p(one.words), ctypes.c_void_p).value
            call.function, call.words, call.first = one.function, words, parts
            call.parts, call.weight = one.parts, one.weight
            parts += one.parts
            weight += one.parts * one.weight
        rows.append((ctypes.addressof(calls), len(group), parts, weight))
        kept.append((calls, group))
    table = (thread_pool.Level * len(rows))(*(thread_pool.Level(*row) for row in rows))
    return ctypes.addressof(table), len(rows), (table, kept)


def _convert(signature: kernels.Signature, n: int, dtype: np.dtype[Any], value: Any) -> int | float:
    kind, name = signature.arguments[n]
    if value is None and name in signature.optional:
        return 0
    try:
        return address(value, dtype, is_written(kind)) if is_pointer(kind) else scalar(dtype, value)
    except TypeError as error:
        raise misfit(signature, name, error) from None


def _whole(extent: Any) -> tuple[int | float, ...]:
    """Return `extent` as Python ints. Raises TypeError if it holds anything else."""
    return tuple(scalar(np.dtype("int32"), n) for n in extent)
