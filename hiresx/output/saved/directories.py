"""Directories of runs: they are created so that all ranks see them, locked for one process, and cleared of incomplete
files of killed processes. A function that takes a communicator is called by all its ranks."""

import errno
import fcntl
import os
import re
import time as wall
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator, single_process
from hiresx.output.saved.files import io_error, naming_errors, on_root, replacing

# Longest time until other hosts see a new file or directory: network file systems cache for up to half a minute that a
# name does not exist.
_ARRIVAL_S = 40.0
# If the parent directory is not visible for this long, it has been removed.
_GONE_S = 3.0


def wait_for(path: str | Path) -> None:
    """Wait until this process sees the file or directory `path`, which another process has made, perhaps on another
    host. Raises HiresxError if it is not visible after 40 s."""
    end = wall.monotonic() + _ARRIVAL_S
    missing = 0.0
    while not os.path.exists(path):
        missing = 0.0 if Path(path).parent.is_dir() else missing or wall.monotonic()
        if missing and wall.monotonic() > missing + _GONE_S:
            raise io_error(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        if wall.monotonic() > end:
            raise HiresxError(
                f"{os.uname().nodename} does not see {path}, which another host has made",
                "write to a file system that all hosts share: --out DIR",
            )
        wall.sleep(0.05)
        with suppress(OSError):
            os.listdir(Path(path).parent)  # this makes a network file system look again


def make_directory(path: str | Path, comm: Communicator | None = None) -> Path:
    """Create the output directory `path` and its parents, check that a file can be written there, and return the path.
    Raises HiresxError, with the path, if this fails or if a rank of `comm` does not see the directory. All ranks must
    call this function."""
    comm, path = comm or single_process(), Path(path)
    on_root(comm, lambda: _make_directory(path))
    with comm.together():
        wait_for(path)
    return path


def _make_directory(path: Path) -> None:
    with naming_errors(path, "write to"):
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / "writable", keep=False):
            pass


@contextmanager
def lock_directory(path: str | Path, comm: Communicator | None = None) -> Iterator[None]:
    """Return a context that locks the run directory `path` for this process. With a communicator `comm` only rank 0 has
    the lock. The lock is released at the end of the context, or of the process if that is earlier. Raises HiresxError
    if another process has the lock. On a file system without locks nothing is locked."""
    with ExitStack() as held:

        def lock() -> None:
            held.enter_context(_lock_directory(path))

        on_root(comm, lock)
        yield


@contextmanager
def _lock_directory(path: str | Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HiresxError(
                f"another process is running in {path}", "wait for its end, or choose another directory with --out DIR"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                raise io_error(path, error, "lock") from None
        yield
    finally:
        os.close(handle)


def remove_stale(path: str | Path) -> None:
    """Remove temporary files that killed processes have left in the directory `path` and its folders. The caller must
    hold the lock of the directory, and call this function before any rank begins to write."""
    for stale in [*Path(path).glob(".*.part"), *Path(path).glob("*/.*.part")]:
        if re.fullmatch(r"\..+\.\d+\.part", stale.name):
            with suppress(OSError):
                stale.unlink()
