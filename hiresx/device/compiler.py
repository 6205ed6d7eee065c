"""The host's C++ compiler and a cache of its results."""

import atexit
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

from hiresx.base.notify import notify
from hiresx.base.threads import start_in_background
from hiresx.device import cache
from hiresx.errors import HiresxError

COMPILING = "compiling the kernels for this case and this machine; this takes up to a minute, and happens once"
HINT = "apt install g++ (GCC 11 or later), or set CXX to a C++ compiler"


def compiler() -> tuple[list[str], str]:
    """Return the command of the C++ compiler ($CXX or g++) as a list of words, and the text that it prints for
    --version. Raises HiresxError if there is no compiler or if it fails."""
    given = os.environ.get("CXX", "")
    try:
        command = shlex.split(given) or ["g++"]
    except ValueError as error:
        raise HiresxError(f"CXX={given}: {str(error).lower()}", "write for instance CXX='g++ -O2'") from None
    found = shutil.which(command[0])
    if found is None:
        raise HiresxError(f"no C++ compiler: {command[0]} is not found", HINT)
    status = os.stat(found)
    return command, _version(tuple(command), found, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache
def _version(command: tuple[str, ...], *_file: object) -> str:
    """Return the text by which `command` describes its version. It is asked once for each `_file`: its path, time of
    change, size and number."""
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    if done.returncode:
        raise HiresxError(f"no C++ compiler: {command[0]} --version fails with status {done.returncode}", HINT)
    return done.stdout.strip()


@lru_cache
def processor() -> str:
    """Return the model and the instruction sets of the processor as text. The result of the compiler's option
    -march=native depends on them."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return platform.processor() or platform.machine()
    return "\n".join(line for line in first.splitlines() if line.startswith(("model name", "flags", "Features")))


def build(text: str, flags: tuple[str, ...], label: str) -> Path:
    """Compile the C++ source `text` with the compiler options `flags` to a shared library, unless the cache of compiled
    kernels already has it, and return the path of the library there. The source is stored beside it. `label`: the
    beginning of the file name. Raises HiresxError if there is no compiler, if the compilation fails, and if the cache
    cannot be written."""
    (path,) = build_all([text], flags, label)
    return path


def build_all(texts: Sequence[str], flags: tuple[str, ...], label: str) -> list[Path]:
    """Compile the C++ sources `texts` in parallel, each to a shared library as `build` does, and return the paths of
    the libraries in the order of the sources. `flags`: the compiler's options. `label`: the beginning of the file
    names. Raises the HiresxError of `build`."""
    command, version = compiler()
    names = [f"{label}-{cache.key([text, *flags, *command, version, processor()])}" for text in texts]
    made = [
        partial(cache.find_or_make, f"{name}.so", partial(_compile, text, command, flags, label, name))
        for name, text in zip(names, texts, strict=True)
    ]
    # Only a request for the same library waits for these threads, and that wait can be interrupted.
    for name, one in zip(names[1:], made[1:], strict=True):
        if not cache.is_intact(cache.directory() / f"{name}.so"):
            start_in_background(one)
    return [one() for one in made]


def _compile(text: str, command: list[str], flags: tuple[str, ...], label: str, name: str, private: Path) -> Path:
    """Return the library of `text`, made in the folder `private`. Its source is stored beside it under `name`."""
    source, library = private / "kernels.cpp", private / "kernels.so"
    notify(COMPILING)
    source.write_text(text, encoding="utf-8")
    with _at_once:
        status, output = _run([*command, *flags, "-o", str(library), str(source)])
    source.replace(private.parent / f"{name}.cpp")
    if status:
        log = private.parent / f"{name}.log"
        log.write_text(output, encoding="utf-8")
        raise HiresxError(
            f"{command[0]} does not compile the {label} kernels:\n  {first_errors(output)}",
            (f"CXX={shlex.join(command)}: correct its options or leave them away; " if command[1:] else "")
            + f"the whole message is in {log}; GCC 11 or later is wanted, and CXX can name it",
        )
    if not library.is_file() or not library.stat().st_size:
        raise HiresxError(
            f"{shlex.join(command)} ends as if it had compiled the {label} kernels, and writes nothing",
            f"it is no C++ compiler: {HINT}",
        )
    return library


# As many compilers as there are cores; each needs half a gigabyte of memory.
_at_once = threading.BoundedSemaphore(len(os.sched_getaffinity(0)))

# A shell that ends its process group when its standard input is closed, which happens whenever the process that holds
# the other end of the pipe ends. A signal at the parent's death would reach only the compiler's driver, not the
# processes that it starts.
_WATCH = ["/bin/sh", "-c", "read -r _; kill -KILL 0"]

# Running compilers, each a group of processes.
_running: set[int] = set()
_ending = threading.Event()
# Held while a compiler is started. The end of this process may stop a thread anywhere, also between the start of a
# compiler and its entry in `_running`; that compiler would then continue.
_starting = threading.Lock()


def _run(command: list[str]) -> tuple[int, str]:
    """Return the exit status and messages of a compiler. If this process ends before, even by SIGKILL, the compiler and
    the processes that it started are killed. If this function can still return then, it raises RuntimeError."""
    with _starting:
        if _ending.is_set():
            raise RuntimeError("the process ends")
        # Not context managers: on an interrupt, those would wait for the compiler.
        watch = subprocess.Popen(
            _WATCH, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
        )
        _running.add(watch.pid)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                process_group=watch.pid,
            )
        except BaseException:
            _leave(watch)
            raise
    try:
        _, output = process.communicate()
    finally:
        _leave(watch)
        process.wait()
    if _ending.is_set():
        raise RuntimeError("the process ends")
    return process.returncode, output


def _leave(watch: subprocess.Popen[bytes]) -> None:
    """End the process group of `watch`."""
    _end(watch.pid)
    watch.communicate()
    _running.discard(watch.pid)


@atexit.register
def _abandon() -> None:
    with _starting:
        _ending.set()
    for group in [*_running]:
        _end(group)


def _end(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def first_errors(log: str) -> str:
    """Return the first five error lines of `log`, the output of a compiler, or its first lines if it contains no
    errors."""
    lines = log.splitlines()
    return "\n  ".join(([line for line in lines if re.search(r"\berror\b", line)] or lines)[:5])
