"""Files that are either complete or not there: write beside, fsync, rename; faults named by path."""

import errno
import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hiresx.errors import HiresxError

_ELSEWHERE = "choose another directory with --out DIR"
_FAULTS = {
    errno.ENOSPC: ("the disk is full", f"free some space, or {_ELSEWHERE}"),
    errno.EDQUOT: ("the disk quota is used up", f"free some space, or {_ELSEWHERE}"),
    errno.EFBIG: ("the file exceeds the largest size allowed here", f"raise the limit (ulimit -f), or {_ELSEWHERE}"),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("not permitted", _ELSEWHERE),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", _ELSEWHERE),
    errno.EEXIST: ("it is a file, not a directory", _ELSEWHERE),
}


def fault(path: str | Path, error: OSError, action: str = "write") -> HiresxError:
    """The user's view of an OSError met at `path` while trying to `action` it."""
    gone = error.errno == errno.ENOENT and action != "read" and not Path(path).parent.is_dir()
    if gone:
        return HiresxError(f"cannot {action} {path}: its directory is gone", "see whether it was moved or removed")
    reason, mend = _FAULTS.get(error.errno, (error.strerror or str(error), "see that the path is right and reachable"))
    return HiresxError(f"cannot {action} {path}: {reason}", mend)


def directory(path: str | Path) -> Path:
    """Make the output directory `path` (parents too) and prove that a file can be written there.

    Raises HiresxError naming the path when it cannot be made or written to.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / "writable", keep=False):
            pass
    except OSError as error:
        raise fault(path, error, "write to") from None
    return path


@contextmanager
def replacing(path: str | Path, keep: bool = True) -> Iterator[Path]:
    """Gives an empty file beside `path` to write to; on leaving it is synced to disk and renamed to `path`.

    After an error, or with `keep` false, it is removed and `path` stays as it was. OSErrors pass through (see `fault`).
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    # Opened by us first: netCDF calls every failure to create a file "permission denied".
    temporary.open("wb").close()
    try:
        yield temporary
        if keep:
            _sync(temporary)
            os.replace(temporary, path)
            _sync(path.parent)
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
def locked(path: str | Path) -> Iterator[None]:
    """Keeps `path`, a run directory, to one process at a time; the lock goes with the process, however that ends.

    Raises HiresxError when another process holds it. Where the file system knows no locks, there is none.
    """
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
    Only for who holds its lock."""
    for stale in [*Path(path).glob(".*.part"), *Path(path).glob("*/.*.part")]:
        if re.fullmatch(r"\..+\.\d+\.part", stale.name):
            with suppress(OSError):
                stale.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a directory; the data itself was synced before.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
