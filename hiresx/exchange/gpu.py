"""The CUDA functions that transports need besides kernel launches."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hiresx.device import cuda
from hiresx.errors import HiresxError

# Granularity, in bytes, of CUDA memory that other processes may open. An allocation of whole units shares none of them
# with another allocation, whose handle would be the same.
PIECE = 2 * 2**20


class StreamMark:
    """A CUDA event: a marker in the sequence of work of a CUDA `stream`."""

    def __init__(self, event: Any, stream: Any):
        self.event, self._stream = event, stream

    def record(self) -> None:
        """Record the event in the CUDA stream: it is reached when all work that was submitted to the stream before is
        complete. Replaces an earlier recording."""
        self.event.record(self._stream)

    def synchronize(self) -> None:
        """Wait until the GPU has completed all work before the recorded event."""
        self.event.synchronize()


class Gpu:
    """The GPU of this process. Its kernels run on CuPy's current stream, its copies on another stream."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        self._runtime = cupy.cuda.runtime
        self._kernels = cupy.cuda.get_current_stream()
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._registered: list[np.ndarray] = []
        self.name = cuda.device(cupy.cuda.Device().id).address

    def _event(self) -> Any:
        return self._cupy.cuda.Event(disable_timing=True)

    def moment(self) -> StreamMark:
        """Return a CUDA event that can be recorded in the stream on which kernels run."""
        return StreamMark(self._event(), self._kernels)

    # ---- memory

    def memory(self, size: int) -> Any:
        """Return a new array of `size` bytes in GPU memory, filled with zeros, that other processes can open by its
        handle. It comes directly from the CUDA runtime. (An array from CuPy's memory pool is part of a larger
        allocation, and its handle would open the beginning of that allocation.) Raises HiresxError if there is not
        enough GPU memory."""
        self._cupy.get_default_memory_pool().free_all_blocks()
        try:
            memory = self._cupy.cuda.memory.Memory(-(-max(size, 1) // PIECE) * PIECE)
        except (self._cupy.cuda.memory.OutOfMemoryError, self._runtime.CUDARuntimeError) as error:
            raise HiresxError(
                f"no GPU memory for {size / 2**20:.3g} MiB of halos: {error}",
                'take more ranks, a coarser grid or precision = "fp32"',
            ) from None
        array = self._bytes(memory, size)
        array[...] = 0
        self._kernels.synchronize()
        return array

    def _bytes(self, memory: Any, size: int) -> Any:
        return self._cupy.ndarray((max(size, 8),), "uint8", memptr=self._cupy.cuda.MemoryPointer(memory, 0))

    def host_memory(self, size: int) -> np.ndarray:
        """Return a new array of `size` bytes in host memory, filled with zeros. The memory is page-locked if the system
        permits this."""
        try:
            memory = self._cupy.cuda.alloc_pinned_memory(max(size, 1))
        except self._runtime.CUDARuntimeError:
            return np.zeros(size, np.uint8)
        array = np.frombuffer(memory, np.uint8, size)
        array[...] = 0
        return array

    def lock(self, memory: np.ndarray) -> None:
        """Page-lock the host memory of the array `memory`, so that copies to and from the GPU need no intermediate
        buffer. If the driver refuses, nothing is locked."""
        if not memory.size:
            return
        try:
            self._runtime.hostRegister(memory.ctypes.data, memory.nbytes, 0)
        except self._runtime.CUDARuntimeError:
            return
        self._registered.append(memory)

    def unlock(self) -> None:
        """End the page-locking of all memory that `lock` has locked. Call this before the memory is freed."""
        self._kernels.synchronize()
        for memory in self._registered:
            self._runtime.hostUnregister(memory.ctypes.data)
        self._registered.clear()

    # ---- memory of other processes

    def handle(self, array: Any) -> bytes:
        """Return the CUDA IPC handle by which another process on this host can open the GPU memory of `array`, an array
        that the method `memory` has allocated."""
        return self._runtime.ipcGetMemHandle(array.data.ptr)

    def open(self, handle: bytes, size: int) -> Any:
        """Open GPU memory of another process by its CUDA IPC handle, and return the first `size` bytes as an array,
        without a copy. Raises RuntimeError if this is not possible."""
        address = self._runtime.ipcOpenMemHandle(handle)
        device = self._cupy.cuda.Device().id
        return self._bytes(self._cupy.cuda.UnownedMemory(address, size, self, device), size)

    def close(self, array: Any) -> None:
        """Close GPU memory of another process that `open` has opened. Call this before the other process frees the
        memory. `array`: the array that `open` returned."""
        self._kernels.synchronize()
        self._runtime.ipcCloseMemHandle(array.data.ptr)

    def write(self, array: Any, number: int) -> None:
        """Write the integer `number` into the first 8 bytes of the GPU array `array`, and wait until it is written."""
        array[:8].set(np.array([number]).view(np.uint8))
        self._kernels.synchronize()

    def read(self, array: Any) -> int:
        """Return the integer in the first 8 bytes of the GPU array `array`."""
        return int(array[:8].get().view(np.int64)[0])

    # ---- copies

    def copy_out(self, pairs: Iterable[tuple[np.ndarray, Any]], packed: StreamMark, copied: StreamMark) -> None:
        """Start copies from the GPU to host memory after the event `packed`, in a stream for copies, and record the
        event `copied` behind them. `pairs`: pairs (host array, GPU array). Does not wait if the host arrays are
        page-locked. They are valid when `copied` is reached; until then the GPU arrays must not change."""
        self._copies.wait_event(packed.event)
        for there, here in pairs:
            self._runtime.memcpyAsync(
                there.ctypes.data, here.data.ptr, here.nbytes, self._runtime.memcpyDeviceToHost, self._copies.ptr
            )
        copied.event.record(self._copies)

    def copy_in(self, array: Any, host: np.ndarray) -> None:
        """Start a copy of the host array `host` to the GPU array `array`, of the same size, in the stream of the
        kernels. Kernels that are launched afterwards read the copied values. The call does not wait for the copy: if
        `host` is page-locked, it must not change until the copy is complete."""
        if array.size:
            self._runtime.memcpyAsync(
                array.data.ptr, host.ctypes.data, array.nbytes, self._runtime.memcpyHostToDevice, self._kernels.ptr
            )
