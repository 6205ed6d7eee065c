"""Files that are either complete or not there: write beside, fsync, rename; faults named by path.

What takes a communicator is called by all its ranks.
"""

import errno
import fcntl
import os
import re
import time as wall
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from hiresx.communicator import Communicator, alone
from hiresx.errors import HiresxError

Thing = TypeVar("Thing")

_ELSEWHERE = "choose another directory with --out DIR"
_FAULTS = {
    errno.ENOSPC: ("the disk is full", f"free some space, or {_ELSEWHERE}"),
    errno.EDQUOT: ("the disk quota is used up", f"free some space, or {_ELSEWHERE}"),
    errno.EFBIG: ("the file exceeds the largest size allowed here", f"raise the limit (ulimit -f), or {_ELSEWHERE}"),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("not permitted", _ELSEWHERE),
    errno.ENAMETOOLONG: ("a name in it is too long for the file system", "choose a shorter one"),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", _ELSEWHERE),
    errno.EEXIST: ("it is a file, not a directory", _ELSEWHERE),
}
# How long what one host has made may take to be seen on the others: network file systems remember for up to half a
# minute that a name was not there.
_ARRIVAL_S = 40.0
# The directory of such a thing is older than that: when it is not there for so long, it is gone.
_GONE_S = 3.0


def fault(path: str | Path, error: OSError, action: str = "write") -> HiresxError:
    """The user's view of an OSError met at `path` while trying to `action` it."""
    gone = error.errno == errno.ENOENT and action != "read" and not Path(path).parent.is_dir()
    if gone:
        return HiresxError(f"cannot {action} {path}: its directory is gone", "see whether it was moved or removed")
    reason, mend = _FAULTS.get(
        error.errno or 0, (error.strerror or str(error), "see that the path is right and reachable")
    )
    return HiresxError(f"cannot {action} {path}: {reason}", mend)


def once(comm: Communicator | None, function: Callable[[], Thing]) -> Thing:
    """What `function` gives on rank 0, to all ranks; what it raises there, raised on all."""
    if comm is None or comm.size == 1:
        return function()
    found = None
    with comm.together():
        if comm.root:
            try:
                found = function()
            except HiresxError as error:
                error.placed = True  # that it was rank 0 says nothing
                raise
    return comm.bcast(found)


def arrived(path: str | Path) -> None:
    """Wait until `path`, which another process has made, is seen here. Raises HiresxError if that does not happen."""
    end = wall.monotonic() + _ARRIVAL_S
    missing = 0.0
    while not os.path.exists(path):
        missing = 0.0 if Path(path).parent.is_dir() else missing or wall.monotonic()
        if missing and wall.monotonic() > missing + _GONE_S:
            raise fault(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        if wall.monotonic() > end:
            raise HiresxError(
                f"{os.uname().nodename} does not see {path}, which another host has made",
                "write to a file system that all hosts share: --out DIR",
            )
        wall.sleep(0.05)
        with suppress(OSError):
            os.listdir(Path(path).parent)  # has a network file system look again


def directory(path: str | Path, comm: Communicator | None = None) -> Path:
    """Make the output directory `path` (parents too) and prove that a file can be written there.

    Raises HiresxError naming the path when it cannot be made or written to, or one of the `comm` does not see it.
    """
    comm, path = comm or alone(), Path(path)
    once(comm, lambda: _directory(path))
    with comm.together():
        arrived(path)
    return path


def _directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / "writable", keep=False):
            pass
    except OSError as error:
        raise fault(path, error, "write to") from None


def temporary_path(path: Path, process: int) -> Path:
    """Where the process of this number, or those whose first has it, write what will be `path` (see `sweep`)."""
    return path.with_name(f".{path.name}.{process}.part")


@contextmanager
def replacing(path: str | Path, keep: bool = True) -> Iterator[Path]:
    """Gives an empty file beside `path` to write to; on leaving it is synced to disk and renamed to `path`.

    After an error, or with `keep` false, it is removed and `path` stays as it was. OSErrors pass through (see `fault`).
    """
    path = Path(path)
    temporary = temporary_path(path, os.getpid())
    # Opened by us first: netCDF calls every failure to create a file "permission denied".
    temporary.open("wb").close()
    try:
        yield temporary
        if keep:
            sync(temporary)
            os.replace(temporary, path)
            sync(path.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def remove(paths: Iterable[Path]) -> None:
    """Remove files; one that is gone already is no fault. Raises HiresxError for the first that cannot go."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise fault(path, error, "remove") from None


@contextmanager
def locked(path: str | Path, comm: Communicator | None = None) -> Iterator[None]:
    """Keeps `path`, a run directory, to one process (of a communicator: to rank 0) at a time; the lock goes with the
    process, however that ends.

    Raises HiresxError when another process holds it. Where the file system knows no locks, there is none.
    """
    with ExitStack() as held:

        def lock() -> None:
            held.enter_context(_locked(path))

        once(comm, lock)
        yield


@contextmanager
def _locked(path: str | Path) -> Iterator[None]:
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
                raise fault(path, error, "lock") from None
        yield
    finally:
        os.close(handle)


def sweep(path: str | Path) -> None:
    """Remove what killed processes left half-written (see `replacing`) in the directory `path` and the folders in it.
    Only for who holds its lock, and before any rank writes."""
    for stale in [*Path(path).glob(".*.part"), *Path(path).glob("*/.*.part")]:
        if re.fullmatch(r"\..+\.\d+\.part", stale.name):
            with suppress(OSError):
                stale.unlink()


def sync(path: Path) -> None:
    """Have a file, or the names in a directory, on disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a directory; the data itself was synced before.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
