"""Host memory on NUMA nodes: allocation on a given node, and the node of existing memory."""

import ctypes
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PAGE = os.sysconf("SC_PAGE_SIZE")
# Numbers of the system calls move_pages and set_mempolicy (Linux: arch/*/include, unistd.h).
_MOVE_PAGES = {"x86_64": 279, "aarch64": 239, "ppc64le": 301}
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261}
_PREFERRED = 1  # linux/mempolicy.h: MPOL_PREFERRED


@dataclass(frozen=True)
class Where:
    """The location of memory: the number of `pages` on each NUMA node, as the operating system reports it. `warnings`:
    warnings, as sentences."""

    pages: dict[int, int]
    warnings: tuple[str, ...] = ()


def prefer(node: int) -> str:
    """Set the memory policy of this thread, and of threads that it starts later: memory is allocated on the NUMA node
    `node` as long as there is free memory on it. Returns "", or a sentence if the operating system refuses, as in some
    containers; memory is then allocated near the core that first accesses it."""
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        return ""
    words = (ctypes.c_ulong * (node // 64 + 1))()
    words[node // 64] = 1 << node % 64
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel reads one bit fewer than the given number.
    if libc.syscall(ctypes.c_long(number), ctypes.c_int(_PREFERRED), words, ctypes.c_ulong(64 * len(words) + 1)):
        return f"memory on NUMA node {node} cannot be preferred: {os.strerror(ctypes.get_errno())}"
    return ""


def where(array: np.ndarray) -> Where:
    """Return the number of memory pages of `array` on each NUMA node, as the operating system reports them. Pages that
    were never accessed are on no node."""
    try:
        return Where(_by_move_pages(array))
    except OSError as error:
        return Where(_by_numa_maps(array), (f"the kernel does not say where pages are: {error.strerror}",))


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
    """Return the same from /proc/self/numa_maps, for the whole mapping that contains the array's first byte."""
    try:
        lines = Path("/proc/self/numa_maps").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    below = [line for line in lines if int(line.split(" ", 1)[0], 16) <= array.ctypes.data]
    return {int(node): int(count) for node, count in re.findall(r"\bN(\d+)=(\d+)", below[-1] if below else "")}
