"""`hiresx doctor`: lists what is installed and what is missing, why it is needed, and the command that installs it."""

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hiresx import kernels
from hiresx.base import optional
from hiresx.base.plural import plural
from hiresx.cli import options, terminal
from hiresx.errors import HiresxError

# Package of each component by the package manager of the system. The first package manager on PATH is named.
PACKAGES = {
    "apt": {"compiler": "g++", "hwloc": "libhwloc15", "mpi": "libopenmpi-dev", "driver": "nvidia-driver"},
    "dnf": {"compiler": "gcc-c++", "hwloc": "hwloc-libs", "mpi": "openmpi-devel", "driver": "nvidia-driver"},
}
GCC = 11  # the oldest version with which the kernels are tested
NVIDIA = "0x10de"  # PCI vendor


@dataclass(frozen=True)
class Finding:
    """A program, library or device that was searched for. `item`: its name. `found`: its version or path; None if it is
    missing. `needed_for`: the features that need it. `hint`: how to install it. `required`: whether nothing works
    without it."""

    item: str
    found: str | None
    needed_for: str
    hint: str = ""
    required: bool = False


def doctor(json: options.Json = False) -> int:
    """List what is installed on this machine, what is missing, and the commands that install it.

    Exit status: 0 all that a run on a CPU needs is there; 1 some of it is missing."""
    with terminal.only_json(json):
        findings = list(examine())
    ready = all(finding.found is not None for finding in findings if finding.required)
    if json:
        # "mend" is the former name of "hint".
        terminal.print_json({"ready": ready, "findings": [asdict(f) | {"mend": f.hint} for f in findings]})
        return 0 if ready else 1
    from rich.text import Text

    for finding in findings:
        missing = Text("missing ", "bold red" if finding.required else "yellow")
        line = Text.assemble(
            Text("present ", "green") if finding.found is not None else missing,
            f"{finding.item:<25}",
            finding.found or "",
        )
        if finding.found is None:
            line.append(f"needed for {finding.needed_for}")
            if finding.hint:
                line.append(f"\n        {'':<25}{finding.hint}")
        terminal.console().print(line, soft_wrap=True)
    terminal.say("This machine can run cases on its CPU." if ready else "CPU runs need what is missing in red above.")
    return 0 if ready else 1


def examine() -> Iterator[Finding]:
    """Yield one finding for each program, library and device that HiResX can use, whether it is present or missing.
    Nothing is computed on a GPU."""
    yield Finding("python", ".".join(map(str, sys.version_info[:3])), "everything", required=True)
    yield _whole()
    for package in ("numpy", "netCDF4", "h5py", "pydantic", "rich", "typer"):
        yield _python_package(package)
    yield from _compiler()
    yield _cache()
    yield _python_package("matplotlib", "plot", "hiresx plot")
    for package in ("xarray", "scipy", "imageio_ffmpeg", "jinja2"):
        yield _python_package(package, "post", "hiresx.open and hiresx post")
    yield _python_package("pyvista", "surface", "hiresx post isosurface")
    yield from _gpu()
    yield from _mpi()
    yield _hwloc()


def _install(part: str) -> str:
    manager = next((name for name in PACKAGES if shutil.which(name)), "apt")
    return f"{manager} install {PACKAGES[manager][part]}"


def _python(code: str) -> tuple[str | None, str]:
    """Run `code` in a separate Python process, since a broken library may abort the process. Return (its output or
    None, last line of its errors)."""
    try:
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "no answer within a minute"
    if done.returncode == 0:
        return done.stdout.strip(), ""
    return None, (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def _whole() -> Finding:
    """True if all files of hiresx that a run imports exist."""
    found, why = _python("import hiresx.simulation; print(hiresx.__version__)")
    hint = "" if found else f"{why}: install it again, pip install --force-reinstall --no-deps . in the clone of HiresX"
    return Finding("hiresx", found, "everything", hint, required=True)


def _python_package(name: str, extra: str = "", needed_for: str = "everything") -> Finding:
    version, fault = _python(f"import {name}, importlib.metadata as m; print(m.version({name!r}))")
    hint = optional.install_command(extra) if extra else f"pip install {name}"
    return Finding(name, version, needed_for + _broken_text(fault), hint, required=not extra)


def _compiler() -> Iterator[Finding]:
    command = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    hint = _install("compiler")
    version = None
    if shutil.which(command[0]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        version = done.stdout.partition("\n")[0] or None
    yield Finding("C++ compiler", version, "compiling the kernels for this machine", hint, required=True)
    width = version and _answer(command, kernels.flatten('#include "arithmetic.h"\n') + "#define ANSWER pack::size()\n")
    yield Finding(
        "vector extensions",
        f"{width} doubles in a pack" if width else None,
        f"vectorised kernels (GCC {GCC} or later)",
        hint,
        required=True,
    )
    headers = "#include <linux/futex.h>\n#include <pthread.h>\n#include <unistd.h>\n"
    cores = version and _answer(command, headers + "#define ANSWER int(sysconf(_SC_NPROCESSORS_ONLN))\n")
    yield Finding("threads", plural(cores, "core") if cores else None, "using all cores", hint, required=True)


def _answer(command: list[str], text: str) -> int:
    """Return the value of the expression ANSWER of the C++ `text`, which is built like the kernels; 0 if it cannot be
    built."""
    text += 'extern "C" int answer() { return ANSWER; }\n'
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "probe.so")
        flags = ["-std=c++17", "-march=native", "-pthread", "-fPIC", "-shared", "-x", "c++", "-", "-o", str(library)]
        done = subprocess.run([*command, *flags], input=text, capture_output=True, text=True)
        return ctypes.CDLL(str(library)).answer() if done.returncode == 0 else 0


def _cache() -> Finding:
    from hiresx.device import cache

    needed_for = "keeping compiled kernels"
    try:
        with cache.workplace():
            return Finding("cache folder", str(cache.directory()), needed_for, required=True)
    except HiresxError as error:
        return Finding("cache folder", None, f"{needed_for}: {error.message}", error.hint, required=True)


def _gpu() -> Iterator[Finding]:
    driver, gpus = _cuda_driver()
    if driver is None:
        cards = [path for path in Path("/sys/bus/pci/devices").glob("*/vendor") if path.read_text().strip() == NVIDIA]
        note = "" if cards else " (this machine shows no NVIDIA GPU)"
        yield Finding("NVIDIA driver", None, f"the cuda backend{note}", _install("driver") if cards else "")
    else:
        yield Finding("NVIDIA driver", f"for CUDA {driver // 1000}.{driver % 1000 // 10}", "the cuda backend")
        yield Finding("GPU", "; ".join(gpus) or None, "the cuda backend", "" if gpus else "nvidia-smi")
    # CUDA 12 wheels also run on drivers that are too old for CUDA 13.
    extra = "cuda12" if driver is not None and driver < 13000 else "cuda13"
    hint = optional.install_command(extra)
    cupy, fault = _python("import cupy; print(cupy.__version__)")
    yield Finding("CuPy", cupy, f"the cuda backend{_broken_text(fault)}", hint)
    nvrtc, fault = _python("from cupy.cuda import nvrtc; print('.'.join(map(str, nvrtc.getVersion())))")
    yield Finding("NVRTC", nvrtc, f"compiling the kernels for a GPU{_broken_text(fault)}", hint)


def _broken_text(fault: str) -> str:
    return f"; it is installed but broken: {fault}" if fault and "No module named" not in fault else ""


def _cuda_driver() -> tuple[int | None, list[str]]:
    """Return (highest CUDA version that the driver supports, e.g. 12040; names of the GPUs) without making a
    context."""
    from hiresx.topology.libcuda import Driver

    try:
        driver = Driver()
        version = driver.version()
    except HiresxError:
        return None, []
    try:
        return version or None, [driver.name(n) for n in range(driver.count())]
    except HiresxError:
        return version, []


def _mpi() -> Iterator[Finding]:
    from hiresx.launch import mpi_library

    needed_for = "runs on several ranks"
    version, fault = _python("import mpi4py; print(mpi4py.__version__)")
    yield Finding("mpi4py", version, f"{needed_for}{_broken_text(fault)}", optional.install_command("mpi"))
    library, why, hint = None, "", optional.install_command("mpi")
    try:
        library = mpi_library.library()
    except HiresxError as error:
        why = f"; {error.message}" if version else ""
    description = None if library is None else f"{library} {library.path}".rstrip()
    yield Finding("MPI library", description, needed_for + why, f"{hint}, or that of the system: {_install('mpi')}")
    launcher, why = None, ""
    if library is not None:
        try:
            launcher = f"{mpi_library.find()[1]}, which belongs to the library"
        except HiresxError as error:
            why, hint = f"; {error.message}", error.hint
    yield Finding("mpirun", launcher, f"hiresx launch{why}", hint)


def _hwloc() -> Finding:
    """Return the library that `hiresx topo` and the placement use; it is searched once for both."""
    code = (
        "from hiresx.errors import HiresxError\nfrom hiresx.topology.hwloc_library import library\n"
        "try:\n found = library()\nexcept HiresxError as error:\n raise SystemExit(error.message)\n"
        "print(found.version, found.path)"
    )
    found, message = _python(code)
    needed_for = "caches, packages and PCI bridges of this machine; /sys tells most of them without it"
    lacking = "cffi" in message
    return Finding(
        "hwloc",
        found,
        needed_for + (f"; {message}" if found is None and message else ""),
        optional.install_command("topology") if lacking else _install("hwloc"),
    )
