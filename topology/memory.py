"""Host memory on a NUMA node, as NumPy arrays: allocated there, moved there, and asked where it is."""

import ctypes
import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from hiresx.errors import HiresxError
from hiresx.topology import hwloc_library
from hiresx.topology.hwloc_library import MEMBIND_BIND, MEMBIND_BYNODESET, MEMBIND_STRICT
from hiresx.topology.libcuda import Cuda

PAGE = os.sysconf("SC_PAGE_SIZE")
# Number of the system call move_pages (Linux: arch/*/include, unistd.h).
_MOVE_PAGES = {"x86_64": 279, "aarch64": 239, "ppc64le": 301}
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261}
_PREFERRED = 1  # linux/mempolicy.h: MPOL_PREFERRED


@dataclass(frozen=True)
class Where:
    """Where memory is: `pages` of each NUMA node as the kernel says; `asked`: the node wanted, None for none."""

    asked: int | None
    pages: dict[int, int]
    by: str
    warnings: tuple[str, ...] = ()


@cache
def _topology() -> hwloc_library.Topology:
    """One topology of this machine for the life of the process: memory is given back through it."""
    with hwloc_library.live_topology() as topology:
        kept, topology.handle = topology.handle, None
    topology.handle = kept
    if not topology.live:
        raise HiresxError("hwloc describes another machine")
    return topology


def allocate(shape: int | Sequence[int], dtype: DTypeLike = "f8", node: int | None = None) -> tuple[np.ndarray, Where]:
    """A zeroed array on a NUMA node through hwloc_alloc_membind, and where its pages really are.

    Without libhwloc, or when the kernel refuses, an array where the kernel puts it, with a warning.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    kind = np.dtype(dtype)
    size = max(1, prod(shape) * kind.itemsize)
    warnings = []
    array, by = None, "numpy"
    if node is not None:
        try:
            topology = _topology()
            library = topology.library
            with library.bitmap([node]) as nodes:
                flags = MEMBIND_BYNODESET | MEMBIND_STRICT
                pointer = library.c.hwloc_alloc_membind(topology.handle, size, nodes, MEMBIND_BIND, flags)
            if pointer == library.ffi.NULL:
                warnings.append(f"memory on NUMA node {node} was refused: {library.fault()}")
            else:
                # The array holds the buffer, the buffer the pointer, and the pointer gives the memory back.
                handle, free = topology.handle, library.c.hwloc_free
                owned = library.ffi.gc(pointer, lambda p: free(handle, p, size), size)
                array = np.frombuffer(library.ffi.buffer(owned, size), dtype="u1")[: prod(shape) * kind.itemsize]
                array = array.view(kind).reshape(shape)
                by = f"hwloc {library.version}"
        except HiresxError as error:
            warnings.append(f"{error.message}: memory is where the kernel puts it ({error.hint})")
    if array is None:
        array = np.empty(shape, kind)
    array[...] = 0  # the first touch: only now are there pages
    return array, where(array, node, by, warnings)


def prefer(node: int) -> str:
    """From now on this thread, and those it starts, take memory from a NUMA node while that has any. Returns why not
    when the kernel refuses, as in some containers: memory then lies next to the core that touches it first."""
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        return ""
    words = (ctypes.c_ulong * (node // 64 + 1))()
    words[node // 64] = 1 << node % 64
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel reads one bit less than it is told of.
    if libc.syscall(ctypes.c_long(number), ctypes.c_int(_PREFERRED), words, ctypes.c_ulong(64 * len(words) + 1)):
        return f"memory on NUMA node {node} cannot be preferred: {os.strerror(ctypes.get_errno())}"
    return ""


def where(array: np.ndarray, asked: int | None = None, by: str = "", warnings: Iterable[str] = ()) -> Where:
    """The NUMA nodes of an array's pages, asked from the kernel; pages that were never touched are nowhere."""
    said = list(warnings)
    try:
        pages = _by_move_pages(array)
    except OSError as error:
        said.append(f"the kernel does not say where pages are: {error.strerror}")
        pages = _by_numa_maps(array)
    if asked is not None and by not in ("", "nothing", "numpy") and set(pages) != {asked}:
        said.append(f"asked for NUMA node {asked}, pages are on {', '.join(map(str, pages)) or 'no node'}")
    return Where(asked, pages, by, tuple(said))


def _by_move_pages(array: np.ndarray) -> dict[int, int]:
    number = _MOVE_PAGES.get(platform.machine())
    if number is None:
        raise OSError(38, os.strerror(38))
    first = array.ctypes.data // PAGE * PAGE
    addresses = np.arange(first, array.ctypes.data + max(1, array.nbytes), PAGE, dtype=np.uint64)
    status = np.full(len(addresses), -1, dtype=np.int32)
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(
        ctypes.c_long(number),
        ctypes.c_int(0),
        ctypes.c_ulong(len(addresses)),
        ctypes.c_void_p(addresses.ctypes.data),
        ctypes.c_void_p(None),
        ctypes.c_void_p(status.ctypes.data),
        ctypes.c_int(0),
    )
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    nodes, counts = np.unique(status[status >= 0], return_counts=True)
    return {int(node): int(count) for node, count in zip(nodes, counts, strict=True)}


def _by_numa_maps(array: np.ndarray) -> dict[int, int]:
    """The same from /proc/self/numa_maps: of the whole mapping that holds the array's first byte."""
    try:
        lines = Path("/proc/self/numa_maps").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    below = [line for line in lines if int(line.split(" ", 1)[0], 16) <= array.ctypes.data]
    return {int(node): int(count) for node, count in re.findall(r"\bN(\d+)=(\d+)", below[-1] if below else "")}


class Pinned:
    """An array that CUDA may copy from and to directly; give it back before the array goes.

    `cuda`: a started `hiresx.topology.libcuda.Cuda` with a context, None for a machine without: then nothing is done.
    """

    def __init__(self, array: np.ndarray, cuda: Cuda | None = None):
        self.array, self._cuda, self.pinned = array, cuda, False
        self.warning = ""
        if cuda is not None:
            try:
                cuda.register(array.ctypes.data, array.nbytes)
                self.pinned = True
            except HiresxError as error:
                self.warning = f"not pinned: {error.message}"

    def release(self) -> None:
        if self.pinned and self._cuda is not None:
            self._cuda.unregister(self.array.ctypes.data)
            self.pinned = False

    def __enter__(self) -> np.ndarray:
        return self.array

    def __exit__(self, *_: object) -> None:
        self.release()
