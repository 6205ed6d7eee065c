"""The host's C++ compiler, with a cache."""

import os
import platform
import re
import shlex
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from hiresx.announce import announce
from hiresx.device import cache
from hiresx.errors import HiresxError

COMPILING = "compiling the kernels for this case and this machine; this takes up to a minute, and happens once"
MEND = "apt install g++ (GCC 11 or later), or set CXX to a C++ compiler"


def compiler() -> tuple[list[str], str]:
    """(command, its --version): $CXX or g++. Raises HiresxError when there is none or it does not run."""
    command = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    if shutil.which(command[0]) is None:
        raise HiresxError(f"no C++ compiler: {command[0]} is not found", MEND)
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    if done.returncode:
        raise HiresxError(f"no C++ compiler: {command[0]} --version fails with status {done.returncode}", MEND)
    return command, done.stdout.strip()


@lru_cache
def processor() -> str:
    """What -march=native depends on: the processor's model and instruction sets."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return platform.processor() or platform.machine()
    return "\n".join(line for line in first.splitlines() if line.startswith(("model name", "flags", "Features")))


def build(text: str, flags: tuple[str, ...], label: str) -> Path:
    """Path of the shared library of the C++ `text`, compiled unless the cache has it; its source is kept beside it.

    Raises HiresxError without a compiler, for a compile that fails and for a cache that cannot be written.
    """
    command, version = compiler()
    name = f"{label}-{cache.key([text, *flags, *command, version, processor()])}"

    def compile(private: Path) -> Path:
        source, library = private / "kernels.cpp", private / "kernels.so"
        announce(COMPILING)
        source.write_text(text, encoding="utf-8")
        done = subprocess.run([*command, *flags, "-o", library, source], capture_output=True, text=True)
        source.replace(private.parent / f"{name}.cpp")
        if done.returncode:
            log = private.parent / f"{name}.log"
            log.write_text(done.stderr, encoding="utf-8")
            raise HiresxError(
                f"{command[0]} does not compile the {label} kernels:\n  {first_errors(done.stderr)}",
                f"the whole message is in {log}; GCC 11 or later is wanted, and CXX can name it",
            )
        return library

    return cache.made(f"{name}.so", compile)


def first_errors(log: str) -> str:
    """The first few lines of a compiler's `log` that are errors, or its first lines if none says so."""
    lines = log.splitlines()
    return "\n  ".join(([line for line in lines if re.search(r"\berror\b", line)] or lines)[:5])
