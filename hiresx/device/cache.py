"""Where compiled kernels are kept between runs, and what of it may be loaded.

What is loaded runs with the rights of the user. So nothing is taken from a folder, or through one, into which another
user may put a file of his own, and nothing that is not, byte by byte, what a compiler has put there: beside each file
lies the SHA-256 of it.
"""

import atexit
import fcntl
import grp
import hashlib
import os
import pwd
import shlex
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hiresx.errors import HiresxError

# One for each file that is, or was, made in this process: what two threads want is made once.
_making: dict[Path, threading.Lock] = {}

# Seconds for which a process waits for another one that makes the same: far longer than any compiler takes.
PATIENCE = 300

# Folders in which something is made, each locked by the process that does.
_WORK = "making-"


class _Folders:
    """The folders in which this process makes something. Threads that are still at work when it ends leave none."""

    def __init__(self) -> None:
        self._lock, self._open, self._ended = threading.Lock(), set[Path](), False
        atexit.register(self.end)

    def new(self, path: Path) -> Path:
        """A new one in `path`. Raises RuntimeError once the process ends."""
        with self._lock:
            if self._ended:
                raise RuntimeError("the process ends")
            private = Path(tempfile.mkdtemp(prefix=_WORK, dir=path))
            self._open.add(private)
        return private

    def remove(self, private: Path) -> None:
        """That of `new`, with what is in it."""
        shutil.rmtree(private, ignore_errors=True)
        with self._lock:
            self._open.discard(private)

    def end(self) -> None:
        """Remove all of them, and make no more."""
        with self._lock:
            self._ended, left = True, [*self._open]
        for private in left:
            # Under another name, so that threads and compilers still at work make no more files in it.
            gone = private.with_name(f"{private.name}-ended")
            with suppress(OSError):
                private.rename(gone)
            for _ in range(_TRIES):
                shutil.rmtree(gone, ignore_errors=True)
                if not gone.exists():
                    break
                time.sleep(0.01)  # a file that was being made when it was renamed


_TRIES = 20
_folders = _Folders()

_ELSEWHERE = "set HIRESX_CACHE to a folder of your own, where nobody else may write"


def key(parts: Iterable[str]) -> str:
    """A file-name-sized digest of everything that `parts` says."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def directory() -> Path:
    """$HIRESX_CACHE, or hiresx in $XDG_CACHE_HOME or ~/.cache, without symbolic links; made if missing, for the user
    alone. Raises HiresxError if it cannot be made, is not the user's or root's, or others may write to it or exchange
    it."""
    path = _chosen()
    with _refusal(path):
        # Links are followed once, here: what they lead to is what is looked at and used.
        path = Path(os.path.realpath(path))
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not path.is_dir():
            raise NotADirectoryError(0, "it is a file")
        fault = _fault(path)
    if fault:
        why, mend = fault
        mend = f"{mend}, or {_ELSEWHERE}" if mend else _ELSEWHERE
        raise HiresxError(f"the kernel cache {path} is not used: {why}", mend)
    return path


def _chosen() -> Path:
    chosen = os.environ.get("HIRESX_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hiresx"
    except RuntimeError:
        raise HiresxError("there is no home directory for the kernel cache", "set HIRESX_CACHE to a folder") from None


def _fault(path: Path) -> tuple[str, str] | None:
    """(why, the command that mends it if one does) for a folder that others could fill or exchange; None for a safe
    one."""
    for folder in (path, *path.parents):
        status = folder.stat()
        which = "it" if folder == path else f"{folder}, in which it lies,"
        # An owner outside a container cannot be told from root in it.
        if not (_owned(status.st_uid) or (folder != path and status.st_uid == _unmapped())):
            return f"{which} belongs to {_user(status.st_uid)}", ""
        sticky = status.st_mode & stat.S_ISVTX
        # A sticky folder, such as /tmp, lets nobody rename or remove what is not his.
        if (writer := _writer(status)) and not (sticky and folder != path):
            mends = status.st_uid == os.geteuid() and not sticky
            return f"{which} can be written to by {writer}", f"chmod go-w {shlex.quote(str(folder))}" if mends else ""
    return None


def _owned(user: int) -> bool:
    return user in (0, os.geteuid())


def _unmapped() -> int:
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return 65534


def _writer(status: os.stat_result) -> str:
    """Who may write besides the owner; empty if nobody."""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if status.st_mode & stat.S_IWGRP and not _alone(status):
        return f"the group {_group(status.st_gid)}"
    return ""


def _alone(status: os.stat_result) -> bool:
    """Whether the owner has the group to himself: it is called like him, and nobody else is in it."""
    with suppress(KeyError):
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
        return owner.pw_gid == group.gr_gid and owner.pw_name == group.gr_name and set(group.gr_mem) <= {owner.pw_name}
    return False


def _user(number: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return f"user {number}"


def _group(number: int) -> str:
    with suppress(KeyError):
        return grp.getgrgid(number).gr_name
    return str(number)


def made(name: str, make: Callable[[Path], Path]) -> Path:
    """Path of the file `name` in the cache. `make(folder)` makes it in a folder of its own, and gives its path there,
    unless the cache has it, whole and of nobody else.

    What `make` raises passes. Raises HiresxError for a cache that cannot be written, or is not safe to use.
    """
    path = directory() / name
    with _making.setdefault(path, threading.Lock()):
        if whole(path):
            return path
        with _sole_maker(path):
            return path if whole(path) else _put(path, make)


def _put(path: Path, make: Callable[[Path], Path]) -> Path:
    with workplace() as private:
        found, digest = make(private), private / "digest"
        digest.write_text(_digest(found) + "\n", encoding="ascii")
        for file in (found, digest):
            file.chmod(file.stat().st_mode & ~0o022)
        # The digest first: where the file is seen, its digest is. Who sees one with another's compiles once more.
        digest.replace(_beside(path))
        found.replace(path)
    return path


def whole(path: Path) -> bool:
    """Whether `path` is a file of the user's or root's that nobody else may write to, and what its digest says."""
    try:
        for file in (path, _beside(path)):
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode) or not _owned(status.st_uid) or _writer(status):
                return False
        return _digest(path) == _beside(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return False


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def workplace() -> Iterator[Path]:
    """A private directory on the cache's file system, so that what is made in it can be renamed into the cache in one
    stroke: simultaneous processes never see half a file. What processes that were killed have left is removed. Raises
    HiresxError if the cache cannot be written to."""
    path = directory()
    with _refusal(path):
        _sweep(path)
        private, lock = _locked(path)
        try:
            yield private
        finally:
            _folders.remove(private)
            os.close(lock)


@contextmanager
def _sole_maker(path: Path) -> Iterator[None]:
    """While no other process makes `path`. One that takes longer than PATIENCE is not waited for."""
    lock = path.with_name(f"{path.name}.lock")
    end = time.monotonic() + PATIENCE
    with _refusal(path.parent):
        number = _open(lock)
        while not (held := _hold(number, lock)) and time.monotonic() < end:
            time.sleep(0.02)
            if not _same(number, lock):  # removed by the one before
                os.close(number)
                number = _open(lock)
    try:
        yield
    finally:
        if held:
            lock.unlink(missing_ok=True)
        # A process that was forked meanwhile holds it too.
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_UN)
        os.close(number)


def _open(lock: Path) -> int:
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _hold(number: int, lock: Path) -> bool:
    """Whether this process now has the lock, or the file system has none."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return _same(number, lock)


def _same(number: int, lock: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.fstat(number).st_ino == lock.stat().st_ino
    return False


def _locked(path: Path) -> tuple[Path, int]:
    """A new folder in `path`, and the file number by which this process, as long as it lives, has it locked."""
    while True:
        private = _folders.new(path)
        with suppress(FileNotFoundError):  # swept before it was locked
            lock = os.open(private, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # of a file system without locks, on which nobody sweeps
                fcntl.flock(lock, fcntl.LOCK_EX)
            if private.exists():
                return private, lock
            os.close(lock)
        _folders.remove(private)


def _sweep(path: Path) -> None:
    """Remove the folders that nobody has locked."""
    for left in path.glob(f"{_WORK}*"):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def _refusal(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HiresxError(
            f"the kernel cache {path} cannot be written: {error.strerror or error}",
            "set HIRESX_CACHE to a directory that can be written, or make room there",
        ) from error
