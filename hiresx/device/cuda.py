"""The cuda backend: kernels on an NVIDIA GPU, through CuPy."""

import importlib.util
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hiresx import kernels
from hiresx.base import optional
from hiresx.device import nvrtc, wrappers
from hiresx.device.arguments import (
    CHUNK,
    check_array,
    check_places,
    fit_conditions,
    is_pointer,
    item,
    last_node,
    misfit,
    order_arguments,
    scalar,
)
from hiresx.device.batch_wrappers import Entry, generate_batched
from hiresx.device.batches import BatchedLaunch
from hiresx.device.call import Call, Calls
from hiresx.device.configuration import Configuration
from hiresx.device.dependency_graph import RecordingProgram
from hiresx.device.graphs import Graph
from hiresx.device.wrappers import BLOCK, Shape, dynamic_shared_memory, find_signature, generate, kernel_shape
from hiresx.errors import HiresxError
from hiresx.topology.libcuda import Driver
from hiresx.topology.machine import address

_NO_GPU = "use the cpu backend, or emulated to run the CUDA kernels on the CPU"


def obstacle() -> HiresxError | None:
    """Return the reason, a HiresxError, why this process cannot compute on a GPU, or None if it can. The driver is
    examined first, since the import of CuPy takes a second."""
    try:
        missing = importlib.util.find_spec("cupy") is None
    except ValueError:  # a stand-in without a module spec
        missing = False
    if missing:
        return HiresxError("the cuda backend needs CuPy, which is not installed", nvrtc.HINT)
    try:
        driver = Driver()
    except HiresxError:
        return HiresxError("the cuda backend finds no NVIDIA driver (libcuda.so.1) on this machine", _NO_GPU)
    try:
        why = "" if driver.count() else "it counts none"
    except HiresxError as error:
        why = error.message
    if why:
        return HiresxError(f"the NVIDIA driver offers no GPU ({why})", _NO_GPU)
    try:
        optional.import_required("cupy", "the cuda backend needs CuPy", nvrtc.HINT)
    except HiresxError as error:
        return error
    return None


def largest_memory() -> int | None:
    """Return the number of bytes of the largest memory of a GPU that this process can use; None without CuPy, driver or
    GPU."""
    try:
        if importlib.util.find_spec("cupy") is None:
            return None
        driver = Driver()
        return max((driver.memory(n) for n in range(driver.count())), default=None)
    except (HiresxError, ValueError):
        return None


def precompile(configuration: Configuration, root: Path = kernels.ROOT) -> None:
    """Compile the kernels for the compile-time choices `configuration` for the first GPU and store them in the cache,
    without a CUDA context. `root`: the folder of the kernels. Raises HiresxError if the driver, CuPy or NVRTC is
    missing, or if a kernel does not compile."""
    driver = Driver()
    driver.count()
    text, _ = generate(configuration, "cuda", root)
    nvrtc.build(text, nvrtc.target(driver.capability(0)))


@dataclass(frozen=True)
class CudaDevice:
    """A GPU that CUDA makes visible to this process. `number`: its number in CUDA's order. `name`: its model. `bus_id`:
    its PCI address, as the driver writes it. `used`: whether this process has a context on it. `mig_uuid`: the UUID of
    its MIG slice, "" for a whole GPU."""

    number: int
    name: str
    bus_id: str
    used: bool
    mig_uuid: str = ""

    @property
    def address(self) -> str:
        """Unique address of the GPU on this host: its PCI address and, for a slice of a GPU, its MIG UUID."""
        return address(self.bus_id, self.mig_uuid)


def devices() -> list[CudaDevice]:
    """Return the GPUs that CUDA makes visible to this process. The list is empty if this process cannot compute on a
    GPU. No CUDA context is created."""
    if obstacle():
        return []
    return [device(n) for n in range(Driver().count())]


def device(number: int) -> CudaDevice:
    """Return the GPU with CUDA's number `number`. Raises HiresxError for a number that the driver does not know."""
    driver = Driver()
    name, bus = driver.name(number), driver.bus_id(number)
    return CudaDevice(number, name, bus, driver.has_context(number), driver.mig_uuid(number))


class CudaEvent:
    """A CUDA event: a marker in the sequence of work of a stream, by which elapsed times are measured. `cupy`: the
    module."""

    def __init__(self, cupy: Any, stream: Any):
        self._cupy = cupy
        self._stream = stream
        self._event = cupy.cuda.Event()

    def record(self) -> None:
        """Record the event on the stream of the backend, behind all work launched so far."""
        self._event.record(self._stream)

    def elapsed_time(self, start: Any) -> float:
        """Return the time on the GPU from the event `start` to this event, in s. The call waits until this event has
        occurred."""
        self._event.synchronize()
        milliseconds: float = self._cupy.cuda.get_elapsed_time(start._event, self._event)
        return milliseconds / 1000.0


class CudaProgram(RecordingProgram):
    """Compiled kernels of one configuration. `module`: the CUDA module. `signatures`: the signatures of the kernels, by
    name. `batched`: compiles batch wrappers. `block`: threads (x, y, z) of a thread block if the index range is large
    enough (powers of two, at most 256 in total). `cupy`: the module. `stream`: the CuPy stream of the launches. `real`:
    NumPy's name of the kernels' real type."""

    block = BLOCK

    def __init__(
        self,
        module: Any,
        cupy: Any,
        stream: Any,
        signatures: dict[str, kernels.Signature],
        real: str,
        batched: Callable[[Iterable[Entry]], Any],
    ):
        self.signatures = signatures
        self._module, self._cupy, self._stream = module, cupy, stream
        self._array = cupy.ndarray
        self._real = real
        # The converters of a kernel's arguments; the kernel, loaded on first use, with the dynamic shared memory of a
        # block in bytes.
        self._converters: dict[str, list[Callable[[Any], Any]]] = {}
        self._passes: dict[str, Callable[..., tuple[Any, ...] | None]] = {}
        self._functions: dict[str, tuple[Any, int]] = {}
        # The function that compiles wrappers of batches, and the compiled ones.
        self._compile_batches, self._entries = batched, dict[Entry, tuple[Any, int]]()
        # The kernels and wrappers that graphs have launched: CUDA loads one at its first launch, not in a capture.
        self.loaded = set[Hashable]()

    def call(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> Call:
        """Return a launch of the kernel `name` at the points 0 <= (i, j, k) < `extent` = (ni, nj, nk), to be made
        later. `arguments`: the kernel's arguments by name. Raises the errors of `hiresx.device.interface.Program.call`,
        and TypeError if `extent` is None, which only kernels of a CPU accept."""
        converters = self._converters.get(name)
        if converters is None:
            converters = self._converters[name] = self._prepare(name)
            self._passes[name] = _passing(self.signatures[name], converters)
        signature = self.signatures[name]
        try:
            passed = self._passes[name](extent, **arguments)
        except (AttributeError, TypeError, ValueError):
            passed = None  # what follows says what does not fit
        if passed is not None:
            return Call(signature, extent, {called: arguments[called] for _, called in signature.arguments}, passed)
        values = order_arguments(signature, arguments)
        if extent is None:
            raise TypeError(f"kernel {name} is one of a GPU: it visits an extent")
        try:
            # CUDA reads an argument as the kernel's type: a number must have exactly its width.
            whole = [_int32(n) for n in extent]
            whole += [convert(value) for convert, value in zip(converters, values, strict=True)]
        except TypeError:
            _raise_misfit(signature, converters, values)
            raise
        check_places(signature, extent, values)
        given = {called: value for (_, called), value in zip(signature.arguments, values, strict=True)}
        return Call(signature, extent, given, tuple(whole))

    def run(self, call: Call) -> None:
        """Make the launch `call` of a kernel on the GPU. The function may return before the kernel has run."""
        if self.recorded is not None:
            self.recorded.append(call)
        else:
            self.launch_on(self._stream, None, call)

    def launch(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
        """Launch the kernel `name` on the GPU. The function may return before the kernel has run. `extent`: the numbers
        of points (ni, nj, nk). `arguments`: the kernel's arguments by name. Raises the errors of `call`."""
        self.run(self.call(name, extent, **arguments))

    def launch_on(self, stream: Any, guard: Any, call: Call) -> None:
        """Make the launch `call` of a kernel on the given CuPy stream. If the first item of the array `guard` is
        negative when the kernel starts, the kernel has no effect; None: it always runs."""
        name, extent = call.name, call.extent
        assert extent is not None  # `call` has checked it
        kernel, memory = self._functions.get(name) or self._load_kernel(call.signature)
        grid, block = kernel_shape(name, call.signature.kind, extent, self.block)
        if grid[0]:  # CUDA refuses an empty grid
            arguments = (_NOWHERE if guard is None else guard, *call.packed)
            kernel(grid, block, arguments, shared_mem=memory, stream=stream)

    def _load_kernel(self, signature: kernels.Signature) -> tuple[Any, int]:
        """Return a kernel and the dynamic shared memory of a block in bytes."""
        found = self._functions[signature.name] = self._with_memory(
            self._module.get_function(signature.name), signature
        )
        return found

    def _with_memory(self, kernel: Any, signature: kernels.Signature) -> tuple[Any, int]:
        memory = dynamic_shared_memory(signature, self._real)
        if memory:
            try:
                kernel.max_dynamic_shared_size_bytes = memory
            except RuntimeError as error:  # CuPy's errors of the driver
                raise HiresxError(
                    f"kernel {signature.name} needs {memory / 1024:.0f} KiB of shared memory in a block of threads, "
                    f"which this GPU does not give ({error})",
                    'set plan = "decomposed"',
                ) from error
        return kernel, memory

    def shape(self, call: Call) -> Shape:
        """Return the numbers of thread blocks (x, y, z) and of threads of a block (x, y, z) of the launch `call`."""
        assert call.extent is not None
        return kernel_shape(call.name, call.signature.kind, call.extent, self.block)

    def load_batches(self, launches: Iterable[BatchedLaunch]) -> list["LoadedBatch"]:
        """Return the `launches`, each of which combines several launches of a kernel, with their arguments on the GPU,
        ready for `launch_batch`. Wrapper kernels that are missing are compiled first."""
        launches = list(launches)
        missing = {one.entry for one in launches}.difference(self._entries)
        if missing:
            module = self._compile_batches(missing)
            for entry in missing:
                kernel = module.get_function(entry.name)
                self._entries[entry] = self._with_memory(kernel, self.signatures[entry.kernel])
        return [self._on_device(one) for one in launches]

    def _on_device(self, one: BatchedLaunch) -> "LoadedBatch":
        kernel, memory = self._entries[one.entry]
        numbers = [_EXACT[item(kind, self._real)](number) for kind, number in one.numbers]
        tables = [self._cupy.asarray(table) for table in one.tables]
        return LoadedBatch(one.entry, kernel, one.grid, one.block, (*numbers, *tables), memory)

    def launch_batch(self, stream: Any, guard: Any, one: "LoadedBatch") -> None:
        """Make the combined launch `one`, a result of `load_batches`, on the given CuPy stream. `guard`: an array; the
        launch has no effect if its first item is negative then."""
        arguments = (_NOWHERE if guard is None else guard, *one.arguments)
        one.kernel(one.grid, one.block, arguments, shared_mem=one.memory, stream=stream)

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """Return a function that makes the launches `calls` as one CUDA graph. `guard`: an array; no launch has an
        effect if its first item is negative then."""
        return Graph(self._cupy, self, calls, self._stream, guard)

    def _prepare(self, name: str) -> list[Callable[[Any], Any]]:
        converters: list[Callable[[Any], Any]] = []
        signature = find_signature(self.signatures, name)
        for kind, called in signature.arguments:
            dtype = np.dtype(item(kind, self._real))
            array = _array_check(self._array, dtype, called in signature.optional)
            converters.append(array if is_pointer(kind) else _EXACT[dtype.name])
        return converters


class LoadedBatch(NamedTuple):
    """A batch as one launch of `kernel`, the wrapper `entry`. `grid`: the number of thread blocks (x, y, z). `block`:
    the number of threads of a block (x, y, z). `arguments`: the arguments of the kernel. `memory`: the bytes of shared
    memory of a block."""

    entry: Entry
    kernel: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    memory: int


def _passing(
    signature: kernels.Signature, converters: Sequence[Callable[[Any], Any]]
) -> Callable[..., tuple[Any, ...] | None]:
    """Return a function of the extent and the named arguments of a kernel. It returns them in the form in which CuPy
    passes them on, or None if it does not see at once that they fit. It may raise AttributeError, TypeError or
    ValueError if they do not. The function is generated for the signature, since loops over the arguments and the
    checks of all places take six times as long."""
    names = [name for _, name in signature.arguments]
    fits = [*fit_conditions(signature), *(f"{name}.data.ptr % {CHUNK} == 0" for name in signature.aligned)]
    values = ["hx_int(hx_ni)", "hx_int(hx_nj)", "hx_int(hx_nk)", *(f"hx_{n}({name})" for n, name in enumerate(names))]
    code = (
        f"def {signature.name}({', '.join(['hx_extent', '/', *(['*'] if names else []), *names])}):\n"
        "    hx_ni, hx_nj, hx_nk = hx_extent\n"
        f"    hx_last = {last_node(signature) or 0}\n"
        f"    return ({', '.join(values)},) if {' and '.join(fits) or True} else None\n"
    )
    scope: dict[str, Any] = {"hx_int": _int32} | {f"hx_{n}": convert for n, convert in enumerate(converters)}
    exec(compile(code, "<arguments of a kernel>", "exec"), scope)
    made: Callable[..., tuple[Any, ...] | None] = scope[signature.name]
    return made


def _raise_misfit(
    signature: kernels.Signature, converters: Sequence[Callable[[Any], Any]], values: Sequence[Any]
) -> None:
    """Raise the TypeError of the first argument that does not fit, with its name."""
    for (_, name), convert, value in zip(signature.arguments, converters, values, strict=True):
        try:
            convert(value)
        except TypeError as error:
            raise misfit(signature, name, error) from None


def _array_check(array_type: type, dtype: np.dtype[Any], optional: bool) -> Callable[[Any], Any]:
    def convert(array: Any) -> Any:
        if array is None and optional:
            return _NOWHERE
        check_array(array, array_type, dtype)
        return array

    return convert


def _exact_float(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    make = dtype.type
    return lambda value: make(value) if type(value) is float else make(scalar(dtype, value))


def _exact_int(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    # The same few strides and counts recur. Typed, as 1.0 equals 1 but is no int.
    return lru_cache(maxsize=4096, typed=True)(lambda value: dtype.type(scalar(dtype, value)))


_EXACT = {name: _exact_int(np.dtype(name)) for name in ("int32", "int64")}
_EXACT |= {name: _exact_float(np.dtype(name)) for name in ("float64", "float32")}
_int32 = _EXACT["int32"]
_NOWHERE = np.uint64(0)


@cache
def _stream_of(cupy: Any, device: int) -> Any:
    """Return the stream that all backends on a GPU share. CuPy copies on its current stream: with a stream per backend,
    copies of the last one would not wait for the kernels of the others. The stream waits for the default stream, so
    that CuPy code of a user is in order with the kernels."""
    return cupy.cuda.Stream()


class CudaBackend:
    """Kernels on GPU number `device`. They run in order on one stream. All backends on the GPU share it, and it becomes
    CuPy's current stream."""

    name = "cuda"
    chunk_bytes = CHUNK

    def __init__(self, root: Path = kernels.ROOT, device: int = 0):
        if error := obstacle():
            raise error
        try:
            import cupy

            gpu = cupy.cuda.Device(device)
            gpu.use()
            self._stream = _stream_of(cupy, device)
            self._stream.use()
        except Exception as error:
            raise HiresxError(f"CuPy cannot use GPU {device}: {error}", nvrtc.HINT) from error
        self._cupy = cupy
        self._capability = int(gpu.compute_capability)
        # Bytes of shared memory that every GPU of this generation gives a block of threads.
        self.block_memory = wrappers.LARGE_MEMORY if self._capability >= 80 else wrappers.OLDER_MEMORY
        self._root = root

    def compile(self, configuration: Configuration) -> CudaProgram:
        """Return the compiled kernels for the compile-time choices `configuration` from the cache, or compile them,
        which takes seconds. Raises HiresxError if a kernel does not compile."""
        text, signatures = generate(configuration, "cuda", self._root)
        path = nvrtc.build(text, nvrtc.target(self._capability))
        image = path.read_bytes()
        built = {name: signature for name, signature in signatures.items() if nvrtc.has_kernel(image, name)}

        def compile_batches(entries: Iterable[Entry]) -> Any:
            text = generate_batched(configuration, "cuda", entries, self._root)
            return self._module(nvrtc.build(text, nvrtc.target(self._capability)))

        return CudaProgram(self._module(path), self._cupy, self._stream, built, configuration.real, compile_batches)

    def _module(self, path: Path) -> Any:
        """Load the compiled code at `path`."""
        module = self._cupy.RawModule(path=str(path))
        try:
            module.compile()  # only loads it: the path holds compiled code
        except RuntimeError as error:
            raise HiresxError(
                f"the NVIDIA driver does not load kernels of NVRTC {nvrtc.version()}: {error}",
                f"install a newer driver, or {optional.install_command('cuda12')}, instead of cuda13",
            ) from error
        return module

    def empty(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """Return an uninitialised CuPy array of the given `shape` and NumPy type `dtype`. Raises HiresxError if it does
        not fit in the GPU's memory."""
        return self._allocate(self._cupy.empty, shape, dtype)

    def zeros(self, shape: Sequence[int] | int, dtype: str = "float64") -> Any:
        """Return a CuPy array of zeros of the given `shape` and NumPy type `dtype`. Raises HiresxError if it does not
        fit in the GPU's memory."""
        return self._allocate(self._cupy.zeros, shape, dtype)

    def _allocate(self, make: Callable[..., Any], shape: Sequence[int] | int, dtype: Any) -> Any:
        try:
            return make(shape, dtype)
        except self._cupy.cuda.memory.OutOfMemoryError:
            free, total = self._cupy.cuda.runtime.memGetInfo()
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            raise HiresxError(
                f"no GPU memory for an array of {size / 2**30:.3g} GiB: {free / 2**30:.3g} of {total / 2**30:.3g} GiB "
                "are free",
                'take a coarser grid or precision = "fp32", or end what else uses the GPU',
            ) from None

    def free_memory(self) -> int:
        """Return the number of bytes of the GPU's memory that are free or in CuPy's memory pool."""
        free: int = self._cupy.cuda.runtime.memGetInfo()[0]
        return free + int(self._cupy.get_default_memory_pool().free_bytes())

    def to_device(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy of `array` on the GPU, in C order."""
        array = np.ascontiguousarray(array)
        copy = self.empty(array.shape, str(array.dtype))
        copy.set(array)
        return copy

    mirror = to_device

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        """Return a copy of the CuPy array `array` as a NumPy array, after all kernels launched before."""
        found: np.ndarray[Any, Any] = array.get()
        return found

    def fetch(self, array: Any) -> Callable[[], np.ndarray[Any, Any]]:
        """Start an asynchronous copy of the CuPy array `array` to page-locked host memory, and return a function that
        waits for the copy and returns it as a NumPy array."""
        from cupyx import empty_pinned

        if not array.size:
            return lambda: np.empty(array.shape, array.dtype)
        try:
            host: np.ndarray[Any, Any] = empty_pinned(array.shape, array.dtype)
        except self._cupy.cuda.runtime.CUDARuntimeError:
            # The system locks no more pages. An ordinary copy waits, but needs none.
            copy = self.to_host(array)
            return lambda: copy
        array.get(stream=self._stream, out=host, blocking=False)
        arrived = self._stream.record()

        def wait() -> np.ndarray[Any, Any]:
            arrived.synchronize()
            return host

        return wait

    def copy(self, destination: Any, source: Any) -> None:
        """Copy the array `source` into `destination`. Both are on the GPU and have the same type and shape."""
        self._cupy.copyto(destination, source, casting="no")

    def write(self, destination: Any, source: np.ndarray[Any, Any]) -> None:
        """Copy the few numbers of the NumPy array `source` into the CuPy array `destination` of the same type and
        shape, after all kernels launched before. The call does not wait for these, since CUDA takes up the numbers at
        once from memory that is not page-locked."""
        destination.set(source, stream=self._stream)

    def synchronize(self) -> None:
        """Wait until all work launched on the GPU is done."""
        self._stream.synchronize()

    def event(self) -> CudaEvent:
        """Return a new CUDA event, by which elapsed times on the GPU are measured."""
        return CudaEvent(self._cupy, self._stream)
