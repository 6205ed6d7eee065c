"""The host's C++ compiler, with a cache."""

import atexit
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from hiresx.base.notify import notify
from hiresx.device import cache
from hiresx.errors import HiresxError

COMPILING = "compiling the kernels for this case and this machine; this takes up to a minute, and happens once"
MEND = "apt install g++ (GCC 11 or later), or set CXX to a C++ compiler"


def compiler() -> tuple[list[str], str]:
    """Return the command of the C++ compiler ($CXX or g++) and its --version. Raises HiresxError when there is none or
    it does not run."""
    command = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    if shutil.which(command[0]) is None:
        raise HiresxError(f"no C++ compiler: {command[0]} is not found", MEND)
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    if done.returncode:
        raise HiresxError(f"no C++ compiler: {command[0]} --version fails with status {done.returncode}", MEND)
    return command, done.stdout.strip()


@lru_cache
def processor() -> str:
    """Return the processor's model and instruction sets, on which -march=native depends."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return platform.processor() or platform.machine()
    return "\n".join(line for line in first.splitlines() if line.startswith(("model name", "flags", "Features")))


def build(text: str, flags: tuple[str, ...], label: str) -> Path:
    """Return the path of the shared library of the C++ `text`. It is compiled unless the cache has it; its source is
    kept beside it.

    Raises HiresxError without a compiler, for a failed compilation and for a cache that cannot be written.
    """
    command, version = compiler()
    name = f"{label}-{cache.key([text, *flags, *command, version, processor()])}"

    def compile(private: Path) -> Path:
        source, library = private / "kernels.cpp", private / "kernels.so"
        notify(COMPILING)
        source.write_text(text, encoding="utf-8")
        status, said = _run([*command, *flags, "-o", str(library), str(source)])
        source.replace(private.parent / f"{name}.cpp")
        if status:
            log = private.parent / f"{name}.log"
            log.write_text(said, encoding="utf-8")
            raise HiresxError(
                f"{command[0]} does not compile the {label} kernels:\n  {first_errors(said)}",
                f"the whole message is in {log}; GCC 11 or later is wanted, and CXX can name it",
            )
        if not library.is_file() or not library.stat().st_size:
            raise HiresxError(
                f"{shlex.join(command)} ends as if it had compiled the {label} kernels, and writes nothing",
                f"it is no C++ compiler: {MEND}",
            )
        return library

    return cache.find_or_make(f"{name}.so", compile)


# Running compilers, each a group of processes.
_running: set[int] = set()
_ending = threading.Event()


def _run(command: list[str]) -> tuple[int, str]:
    """Return the exit status and messages of a compiler. The compiler is killed when this process ends first; then this
    raises RuntimeError."""
    # Not a context manager: on an interrupt, that would wait for the compiler.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
    )
    try:
        _running.add(process.pid)
        if _ending.is_set():
            _end(process.pid)
        _, said = process.communicate()
    except BaseException:
        _end(process.pid)
        process.wait()
        raise
    finally:
        _running.discard(process.pid)
    if _ending.is_set():
        raise RuntimeError("the process ends")
    return process.returncode, said


@atexit.register
def _abandon() -> None:
    _ending.set()
    for group in [*_running]:
        _end(group)


def _end(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def first_errors(log: str) -> str:
    """Return the first error lines of a compiler's `log`, or its first lines if it has no errors."""
    lines = log.splitlines()
    return "\n  ".join(([line for line in lines if re.search(r"\berror\b", line)] or lines)[:5])
