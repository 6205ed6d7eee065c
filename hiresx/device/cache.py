"""The cache of compiled kernels, and the checks before a file of it is loaded.

Loaded code runs with the rights of the user. A file is therefore loaded only from a folder into which no other user may
write, and only if its SHA-256 is the one stored beside it.
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

# One lock for each file made in this process: two threads that want the same file make it once.
_making: dict[Path, threading.Lock] = {}

# Seconds for which a process waits for another one that makes the same file: far longer than any compiler takes.
PATIENCE = 300

# Prefix of the work folders, each locked by the process that uses it.
_WORK = "making-"


class _Folders:
    """The work folders of this process. They are removed when it ends, even while threads still use them."""

    def __init__(self) -> None:
        self._lock, self._open, self._ended = threading.Lock(), set[Path](), False
        atexit.register(self.end)

    def new(self, path: Path) -> Path:
        """Return a new folder in `path`. Raises RuntimeError once the process ends."""
        with self._lock:
            if self._ended:
                raise RuntimeError("the process ends")
            private = Path(tempfile.mkdtemp(prefix=_WORK, dir=path))
            self._open.add(private)
        return private

    def remove(self, private: Path) -> None:
        """Remove a folder of `new` with its content."""
        shutil.rmtree(private, ignore_errors=True)
        with self._lock:
            self._open.discard(private)

    def end(self) -> None:
        """Delete all temporary folders that this object made. A later call of `new` raises RuntimeError."""
        with self._lock:
            self._ended, left = True, [*self._open]
        for private in left:
            # Renamed first, so that running threads and compilers create no more files in it.
            gone = private.with_name(f"{private.name}-ended")
            with suppress(OSError):
                private.rename(gone)
            for _ in range(_TRIES):
                shutil.rmtree(gone, ignore_errors=True)
                if not gone.exists():
                    break
                time.sleep(0.01)  # a file was created during the renaming


class _LockFiles:
    """The lock files that this process holds. They are removed when it ends, even while threads still hold them."""

    def __init__(self) -> None:
        self._lock, self._held, self._ended = threading.Lock(), dict[Path, int](), False
        atexit.register(self.end)

    def take(self, path: Path) -> bool:
        """Return true if this process now holds the lock file `path`, or the file system has no locks; false if another
        process holds it. Raises RuntimeError once the process ends."""
        with self._lock:
            if self._ended:
                raise RuntimeError("the process ends")
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if not _is_taken(number, path):
                os.close(number)
                return False
            self._held[path] = number
        return True

    def release(self, path: Path) -> None:
        """Remove the lock file `path` if this process holds it."""
        with self._lock:
            number = self._held.pop(path, None)
            if number is None:
                return
            path.unlink(missing_ok=True)
            # A process that was forked meanwhile holds it too.
            with suppress(OSError):
                fcntl.flock(number, fcntl.LOCK_UN)
            os.close(number)

    def end(self) -> None:
        """Remove all lock files that are held, and allow no more."""
        with self._lock:
            self._ended, left = True, [*self._held]
        for path in left:
            self.release(path)


_TRIES = 20
_folders = _Folders()
_lock_files = _LockFiles()

_ELSEWHERE = "set HIRESX_CACHE to a folder of your own, where nobody else may write"


def key(parts: Iterable[str]) -> str:
    """Return a digest of the strings `parts`, 32 hexadecimal digits, for use in a file name."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def directory() -> Path:
    """Return the folder of the cache of compiled kernels, without symbolic links: $HIRESX_CACHE, or hiresx in
    $XDG_CACHE_HOME or ~/.cache. A missing folder is created for the user alone. Raises HiresxError if that fails, if
    the folder belongs to neither the user nor root, or if others may write to it or replace it."""
    path = _configured_path()
    with _refusal(path):
        # Links are resolved once, here: the checked folder is the used one.
        path = Path(os.path.realpath(path))
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not path.is_dir():
            raise NotADirectoryError(0, "it is a file")
        fault = _fault(path)
    if fault:
        why, hint = fault
        hint = f"{hint}, or {_ELSEWHERE}" if hint else _ELSEWHERE
        raise HiresxError(f"the kernel cache {path} is not used: {why}", hint)
    return path


def _configured_path() -> Path:
    chosen = os.environ.get("HIRESX_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hiresx"
    except RuntimeError:
        raise HiresxError("there is no home directory for the kernel cache", "set HIRESX_CACHE to a folder") from None


def _fault(path: Path) -> tuple[str, str] | None:
    """Return (reason, command that repairs it, if any) for a folder that others could write to or replace, and None for
    a safe one."""
    for folder in (path, *path.parents):
        status = folder.stat()
        which = "it" if folder == path else f"{folder}, in which it lies,"
        # Inside a container, an owner from outside looks like the overflow user.
        if not (_is_own(status.st_uid) or (folder != path and status.st_uid == _unmapped_user())):
            return f"{which} belongs to {_user(status.st_uid)}", ""
        sticky = status.st_mode & stat.S_ISVTX
        # In a sticky folder, such as /tmp, users can rename and remove only their own files.
        if (writer := _writer(status)) and not (sticky and folder != path):
            mends = status.st_uid == os.geteuid() and not sticky
            return f"{which} can be written to by {writer}", f"chmod go-w {shlex.quote(str(folder))}" if mends else ""
    return None


def _is_own(user: int) -> bool:
    return user in (0, os.geteuid())


def _unmapped_user() -> int:
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return 65534


def _writer(status: os.stat_result) -> str:
    """Return who may write besides the owner; empty if nobody."""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if status.st_mode & stat.S_IWGRP and not _group_is_private(status):
        return f"the group {_group(status.st_gid)}"
    return ""


def _group_is_private(status: os.stat_result) -> bool:
    """True if the owner is alone in a group of the same name."""
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


def find_or_make(name: str, make: Callable[[Path], Path]) -> Path:
    """Return the path of the file `name` in the cache of compiled kernels. If there is no intact file of this name,
    `make(folder)` is called; it creates the file in a temporary folder and returns its path there. The file is then
    moved into the cache.

    Errors of `make` propagate. Raises HiresxError for a cache that cannot be written, or is not safe to use.
    """
    path = directory() / name
    with _hold(_making.setdefault(path, threading.Lock())):
        if is_intact(path):
            return path
        with _sole_maker(path):
            return path if is_intact(path) else _put(path, make)


@contextmanager
def _hold(lock: threading.Lock) -> Iterator[None]:
    """Acquire `lock`. The main thread waits with timeouts: otherwise it would not react to a signal that arrives just
    before it begins to wait."""
    while not lock.acquire(timeout=0.1):
        pass
    try:
        yield
    finally:
        lock.release()


def _put(path: Path, make: Callable[[Path], Path]) -> Path:
    with workplace() as private:
        found, digest = make(private), private / "digest"
        digest.write_text(_digest(found) + "\n", encoding="ascii")
        for file in (found, digest):
            file.chmod(file.stat().st_mode & ~0o022)
        # The digest comes first: wherever the file exists, its digest does. A file with the digest of another one is
        # compiled again.
        digest.replace(_digest_path(path))
        found.replace(path)
    return path


def is_intact(path: Path) -> bool:
    """Return whether `path` is a file of the user or root that nobody else may write, and whose SHA-256 digest is the
    stored one."""
    try:
        for file in (path, _digest_path(path)):
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode) or not _is_own(status.st_uid) or _writer(status):
                return False
        return _digest(path) == _digest_path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return False


def _digest_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def workplace() -> Iterator[Path]:
    """Return a context manager whose value is the path of a new private folder on the file system of the cache. The
    caller writes files there and renames them into the cache, so that other processes never see incomplete files. The
    folder is deleted at the end. Folders of killed processes are deleted at the start. Raises HiresxError if the cache
    cannot be written to."""
    path = directory()
    with _refusal(path):
        _sweep(path)
        private, lock = _new_locked_folder(path)
        try:
            yield private
        finally:
            _folders.remove(private)
            os.close(lock)


@contextmanager
def _sole_maker(path: Path) -> Iterator[None]:
    """Hold the lock by which one process at a time makes `path`. After PATIENCE the wait for another process ends."""
    lock = path.with_name(f"{path.name}.lock")
    end = time.monotonic() + PATIENCE
    try:
        with _refusal(path.parent):
            while not _lock_files.take(lock) and time.monotonic() < end:
                time.sleep(0.02)
        yield
    finally:
        _lock_files.release(lock)


def _is_taken(number: int, lock: Path) -> bool:
    """Lock the open file `number`. Returns True if this process now has the lock (or the file system has no locks) and
    `lock` is still the same file. A process that had the lock before may have removed it."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    with suppress(FileNotFoundError):
        return os.fstat(number).st_ino == lock.stat().st_ino
    return False


def _new_locked_folder(path: Path) -> tuple[Path, int]:
    """Return a new folder in `path`, and the file descriptor by which this process locks it until it ends."""
    while True:
        private = _folders.new(path)
        with suppress(FileNotFoundError):  # another process removed it before it was locked
            lock = os.open(private, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # a file system without locks, on which no process removes folders
                fcntl.flock(lock, fcntl.LOCK_EX)
            if private.exists():
                return private, lock
            os.close(lock)
        _folders.remove(private)


def _sweep(path: Path) -> None:
    """Remove the folders that no process has locked."""
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
