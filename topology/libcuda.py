"""Functions of the CUDA driver for finding GPUs, measurements and page-locked memory, called through ctypes. The CUDA
toolkit is not needed."""

import ctypes
import uuid
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p
from typing import Any

from hiresx.errors import HiresxError

PEER_ALREADY = 704  # CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
CAPABILITY = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
PORTABLE = 1  # CU_MEMHOSTREGISTER_PORTABLE: for all contexts


class Driver:
    """The CUDA driver and its GPUs, numbered in CUDA's order. It creates no context. `library`: the loaded driver
    library, by default the library of the system. Raises HiresxError if there is no driver, and for a call that fails.
    """

    def __init__(self, library: ctypes.CDLL | None = None):
        try:
            self._c = ctypes.CDLL("libcuda.so.1") if library is None else library
        except OSError:
            raise HiresxError("the CUDA driver is not installed", "install the NVIDIA driver") from None

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._c, name)(*arguments)
        if status:
            text = c_char_p()
            self._c.cuGetErrorString(c_int(status), byref(text))
            raise HiresxError(
                f"{name}: {(text.value or b'error').decode(errors='replace')} ({status})",
                "see whether nvidia-smi works",
            )

    def version(self) -> int:
        """Return the newest CUDA version that the driver supports, as a number: 12040 is version 12.4."""
        number = c_int(0)
        self._call("cuDriverGetVersion", byref(number))
        return number.value

    def count(self) -> int:
        """Return the number of GPUs that CUDA shows to this process. The call initialises the driver, so it must come
        before all queries about a GPU."""
        number = c_int(0)
        self._call("cuInit", c_uint(0))
        self._call("cuDeviceGetCount", byref(number))
        return number.value

    def name(self, device: int) -> str:
        """Return the model name of the GPU with CUDA's number `device`."""
        text = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", text, c_int(len(text)), c_int(device))
        return text.value.decode(errors="replace")

    def memory(self, device: int) -> int:
        """Return the total memory of the GPU with CUDA's number `device`, in bytes."""
        size = c_size_t(0)
        self._call("cuDeviceTotalMem_v2", byref(size), c_int(device))
        return size.value

    def capability(self, device: int) -> int:
        """Return the compute capability of the GPU with CUDA's number `device` as an integer: 90 means 9.0."""
        found = [c_int(0), c_int(0)]
        for number, attribute in zip(found, CAPABILITY, strict=True):
            self._call("cuDeviceGetAttribute", byref(number), c_int(attribute), c_int(device))
        return 10 * found[0].value + found[1].value

    def bus_id(self, device: int) -> str:
        """Return the PCI bus id of the GPU with CUDA's number `device` as text, in the form in which the driver writes
        it."""
        text = ctypes.create_string_buffer(32)
        self._call("cuDeviceGetPCIBusId", text, c_int(len(text)), c_int(device))
        return text.value.decode(errors="replace")

    def mig_uuid(self, device: int) -> str:
        """Return the UUID of the MIG slice (a part of a divided GPU) with CUDA's number `device`, in NVML's form; ""
        for a whole GPU. CUDA makes only one slice visible to a process."""
        own, card = (c_ubyte * 16)(), (c_ubyte * 16)()
        try:
            # The first version of this call returns the UUID of the card (CUDA driver API, device management).
            self._call("cuDeviceGetUuid_v2", byref(own), c_int(device))
            self._call("cuDeviceGetUuid", byref(card), c_int(device))
        except (AttributeError, HiresxError):  # a driver before CUDA 11.4
            return ""
        return "" if bytes(own) == bytes(card) else f"MIG-{uuid.UUID(bytes=bytes(own))}"

    def has_context(self, device: int) -> bool:
        """Return whether this process has an active primary CUDA context on the GPU with CUDA's number `device`."""
        flags, active = c_uint(0), c_int(0)
        self._call("cuDevicePrimaryCtxGetState", c_int(device), byref(flags), byref(active))
        return bool(active.value)


class Cuda(Driver):
    """The initialised CUDA driver. It allocates no memory on a GPU before `context` is called for that GPU. `library`:
    the loaded driver library, by default the library of the system."""

    def __init__(self, library: ctypes.CDLL | None = None):
        super().__init__(library)
        self._call("cuInit", c_uint(0))
        self._contexts: dict[int, c_void_p] = {}

    def ordinal(self, bus_id: str) -> int:
        """Return the number that CUDA gives to the GPU with the PCI bus id `bus_id`. CUDA and NVML number GPUs in
        different orders."""
        number = c_int(0)
        self._call("cuDeviceGetByPCIBusId", byref(number), bus_id.encode())
        return number.value

    def context(self, device: int) -> None:
        """Make the primary CUDA context of the GPU number `device` current in this thread. The context is created if
        necessary."""
        if device not in self._contexts:
            context = c_void_p()
            self._call("cuDevicePrimaryCtxRetain", byref(context), c_int(device))
            self._contexts[device] = context
        self._call("cuCtxSetCurrent", self._contexts[device])

    def close(self) -> None:
        """Release all CUDA contexts that this object has created with `context`."""
        for device in list(self._contexts):
            self._call("cuDevicePrimaryCtxRelease_v2", c_int(device))
            del self._contexts[device]

    def allocate(self, device: int, size: int) -> int:
        """Allocate `size` bytes of memory on the GPU number `device`, and return the address."""
        self.context(device)
        pointer = c_ulonglong(0)
        self._call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer.value

    def free(self, device: int, pointer: int) -> None:
        """Free GPU memory that `allocate` returned. `device`: the number of the GPU. `pointer`: the address."""
        self.context(device)
        self._call("cuMemFree_v2", c_ulonglong(pointer))

    def register(self, address: int, size: int) -> None:
        """Page-lock `size` bytes of host memory that begin at `address`, so that the GPU copies them faster. A CUDA
        context must be current."""
        self._call("cuMemHostRegister_v2", c_void_p(address), c_size_t(size), c_uint(PORTABLE))

    def unregister(self, address: int) -> None:
        """End the page-locking of host memory that `register` page-locked at `address`."""
        self._call("cuMemHostUnregister", c_void_p(address))

    def enable_peer(self, device: int, other: int) -> bool:
        """Enable direct access of the GPU number `device` to the memory of the GPU number `other`. Returns False if the
        hardware or driver does not allow this."""
        can = c_int(0)
        self._call("cuDeviceCanAccessPeer", byref(can), c_int(device), c_int(other))
        if not can.value:
            return False
        self.context(other)
        self.context(device)
        status = self._c.cuCtxEnablePeerAccess(self._contexts[other], c_uint(0))
        return status in (0, PEER_ALREADY)

    def copy_time(
        self, kind: str, to: int, source: int, size: int, repeats: int, device: int, other: int = -1
    ) -> float:
        """Return the mean duration in seconds of a copy of `size` bytes from the address `source` to the address `to`,
        over `repeats` consecutive copies on a CUDA stream of the GPU number `device`. `kind`: "peer" (between the GPUs
        `device` and `other`), "to_device" or "to_host"."""
        self.context(device)
        stream, events = c_void_p(), [c_void_p(), c_void_p()]
        self._call("cuStreamCreate", byref(stream), c_uint(1))  # 1: does not wait for the default stream
        for event in events:
            self._call("cuEventCreate", byref(event), c_uint(0))
        try:
            self._copy(kind, to, source, size, stream, device, other)  # the first copy maps memory and warms up
            self._call("cuEventRecord", events[0], stream)
            for _ in range(repeats):
                self._copy(kind, to, source, size, stream, device, other)
            self._call("cuEventRecord", events[1], stream)
            self._call("cuEventSynchronize", events[1])
            milliseconds = c_float(0)
            self._call("cuEventElapsedTime", byref(milliseconds), *events)
        finally:
            for event in events:
                self._call("cuEventDestroy_v2", event)
            self._call("cuStreamDestroy_v2", stream)
        return milliseconds.value / 1000 / repeats

    def _copy(self, kind: str, to: int, source: int, size: int, stream: c_void_p, device: int, other: int) -> None:
        if kind == "peer":
            self._call(
                "cuMemcpyPeerAsync",
                c_ulonglong(to),
                self._contexts[other],
                c_ulonglong(source),
                self._contexts[device],
                c_size_t(size),
                stream,
            )
        elif kind == "to_device":
            self._call("cuMemcpyHtoDAsync_v2", c_ulonglong(to), c_void_p(source), c_size_t(size), stream)
        else:
            self._call("cuMemcpyDtoHAsync_v2", c_void_p(to), c_ulonglong(source), c_size_t(size), stream)
