"""The thread pool for kernels on a CPU: one for the whole process, implemented in kernels/thread_pool.h."""

import ctypes
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from hiresx import kernels
from hiresx.base.shell import quote
from hiresx.device.compiler import build
from hiresx.errors import HiresxError

FLAGS = ("-O2", "-std=c++17", "-pthread", "-fPIC", "-shared", "-Wl,-Bsymbolic")

# Nanoseconds for which an idle thread spins before it sleeps: longer than the gap between two parts of a time step, and
# far shorter than the milliseconds of an operating system's time slice.
SPIN = 20_000
# The time in nanoseconds for which an idle thread spins, by the value of OMP_WAIT_POLICY.
POLICIES = {"active": 1_000_000_000, "passive": 0}


class PoolCall(ctypes.Structure):
    """A call of a kernel by the threads, as the structure `Call` of kernels/thread_pool.h."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("first", ctypes.c_longlong),
        ("parts", ctypes.c_longlong),
        ("weight", ctypes.c_longlong),
    )


class Level(ctypes.Structure):
    """Calls that may run at the same time, as the structure `Level` of kernels/thread_pool.h."""

    _fields_ = (
        ("calls", ctypes.c_void_p),
        ("count", ctypes.c_longlong),
        ("parts", ctypes.c_longlong),
        ("weight", ctypes.c_longlong),
    )


class WorkShape(ctypes.Structure):
    """The number and the size of the parts into which a call can be divided, as the structure `Shape` of
    kernels/thread_pool.h. Each library of kernels has functions that return it."""

    _fields_ = (("parts", ctypes.c_longlong), ("weight", ctypes.c_longlong))


class Counts(NamedTuple):
    """Counters since the start of the process. `runs`: kernel calls that several threads executed together. `wakes`:
    how often a sleeping thread was woken."""

    runs: int
    wakes: int


def load_library(path: Path) -> ctypes.CDLL:
    """Load the compiled shared library at `path`. Raises HiresxError if the system cannot load it."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise HiresxError(f"the compiled kernels cannot be loaded: {error}", f"rm {quote(path)}") from None


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Return the loaded library of the thread pool, compiled at the first call. Raises HiresxError if it does not
    compile."""
    found = load_library(build(kernels.flatten('#include "thread_pool.h"\n'), FLAGS, "thread-pool"))
    found.hx_run.restype = found.hx_launch.restype = found.hx_counts.restype = None
    found.hx_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_longlong]
    found.hx_run.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int, ctypes.c_longlong]
    return found


def counts() -> Counts:
    """Return two counters of the thread pool since the start of the process: kernel calls that several threads executed
    together, and how often a sleeping thread was woken."""
    found = (ctypes.c_longlong * 2)()
    library().hx_counts(found)
    return Counts(*found)


def spin_time(threads: int, environment: Mapping[str, str] = os.environ) -> int:
    """Return for how many nanoseconds an idle thread of the pool spins before it sleeps. OMP_WAIT_POLICY decides if it
    is set. Otherwise the result is 20,000, or 0 if `threads` exceeds the number of CPUs that this process may use.
    `environment`: the environment variables."""
    asked = environment.get("OMP_WAIT_POLICY", "").strip().lower()
    return POLICIES.get(asked, 0 if threads > len(os.sched_getaffinity(0)) else SPIN)
