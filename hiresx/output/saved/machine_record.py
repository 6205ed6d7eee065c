"""Hardware and versions of a run, for the run record and for reports."""

import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hiresx import __version__
from hiresx.base import optional

# CPU flags that determine the width and kind of vector arithmetic, the narrowest first.
_SIMD = ("sse4_2", "avx", "fma", "avx2", "avx512f", "avx512dq", "avx512vl", "asimd", "sve", "sve2")
_PACKAGES = {
    "numpy": ("numpy",),
    "netCDF4": ("netCDF4",),
    "pydantic": ("pydantic",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "nvrtc": ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    "mpi4py": ("mpi4py",),
}


def hardware() -> dict[str, Any]:
    """Return a description of the machine as a dictionary: host name, CPU model, sockets, cores (physical, logical,
    available to this process), SIMD instruction sets, memory in bytes, and for each GPU its name, memory in bytes and
    UUID (an empty list without NVML). No CUDA context is created."""
    text = _text("/proc/cpuinfo")
    places = re.findall(r"^physical id\s*:\s*(\d+).*?^core id\s*:\s*(\d+)", text, re.M | re.S)
    flags = set((_first(r"^(?:flags|Features)\s*:\s*(.*)$", text) or "").split())
    logical = os.cpu_count() or 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    return {
        "host": platform.node(),
        "cpu": _first(r"^model name\s*:\s*(.*)$", text) or platform.processor() or platform.machine(),
        "sockets": len({socket for socket, _ in places}) or 1,
        "cores": len(set(places)) or logical,
        "threads": logical,
        "threads_available": available,
        "simd": [flag for flag in _SIMD if flag in flags],
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": gpus(),
    }


def gpus() -> list[dict[str, Any]]:
    """Return the name, the memory in bytes and the UUID of each GPU that NVML finds. The list is empty without NVML or
    without a driver."""

    def describe(nvml: Any) -> list[dict[str, Any]]:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return [
            {
                "name": _string(nvml.nvmlDeviceGetName(handle)),
                "memory_bytes": int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
                "uuid": _string(nvml.nvmlDeviceGetUUID(handle)),
            }
            for handle in handles
        ]

    return _query_nvml(describe) or []


def versions() -> dict[str, str | None]:
    """Return the version of each piece of software on which the results of a run depend, by name: Python, HiResX,
    packages, compiler, driver, system. It is None for software that is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), "hiresx": __version__}
    for name, distributions in _PACKAGES.items():
        found[name] = next((v for d in distributions if (v := _version(d))), None)
    found["compiler"] = _compiler()
    found |= _driver()
    found["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    return found


def _driver() -> dict[str, str | None]:
    """Return the version of the NVIDIA driver, and the newest CUDA version that it supports."""

    def describe(nvml: Any) -> dict[str, str | None]:
        number = nvml.nvmlSystemGetCudaDriverVersion_v2()
        return {
            "driver": _string(nvml.nvmlSystemGetDriverVersion()),
            "cuda": f"{number // 1000}.{number % 1000 // 10}",
        }

    return _query_nvml(describe) or {"driver": None, "cuda": None}


def _query_nvml(question: Callable[[Any], Any]) -> Any:
    """Return the result of `question`(pynvml); None without NVML, without a driver, or if it has no answer."""
    pynvml = optional.import_or_none("pynvml")
    if pynvml is None:
        return None
    try:
        pynvml.nvmlInit()
        try:
            return question(pynvml)
        finally:
            pynvml.nvmlShutdown()
    except Exception:  # an error of NVML, or of another module of this name: it must not end a run
        return None


def _compiler() -> str | None:
    try:
        command = shlex.split(os.environ.get("CXX", "g++"))
    except ValueError:
        return None
    if not command or not shutil.which(command[0]):
        return None
    try:
        shown = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return shown.stdout.splitlines()[0] if shown.stdout else None


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.M)
    return found[1].strip() if found else None


def _string(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
