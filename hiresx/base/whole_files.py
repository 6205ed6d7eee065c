"""Files that are either complete or absent: they are written under a temporary name, synced and renamed. Errors name
the path."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hiresx.errors import FILE_LIMIT, FILE_LIMIT_HINT, HiresxError

_ELSEWHERE = "choose another place with --out"
_FAULTS = {
    errno.ENOSPC: ("the disk is full", f"free some space, or {_ELSEWHERE}"),
    errno.EDQUOT: ("the disk quota is used up", f"free some space, or {_ELSEWHERE}"),
    errno.EFBIG: ("the file exceeds the largest size allowed here", f"raise the limit (ulimit -f), or {_ELSEWHERE}"),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("not permitted", _ELSEWHERE),
    errno.ENAMETOOLONG: ("a name in it is too long for the file system", "choose a shorter one"),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", _ELSEWHERE),
    errno.EMFILE: (FILE_LIMIT, FILE_LIMIT_HINT),
    errno.EEXIST: ("it is a file, not a directory", _ELSEWHERE),
}


def io_error(path: str | Path, error: OSError, action: str = "write") -> HiresxError:
    """Return the HiresxError for an OSError that occurred at `path` during the `action` (such as "write")."""
    gone = error.errno == errno.ENOENT and action != "read" and not Path(path).parent.is_dir()
    if gone:
        return HiresxError(f"cannot {action} {path}: its directory is gone", "see whether it was moved or removed")
    reason, hint = _FAULTS.get(
        error.errno or 0, (error.strerror or str(error), "see that the path is right and reachable")
    )
    if action == "read" and _ELSEWHERE in hint:
        hint = "check the path and its permissions"
    if error.errno in (errno.EEXIST, errno.ELOOP) and Path(path).is_symlink():
        reason = "it is a symbolic link that leads to no directory"
    return HiresxError(f"cannot {action} {path}: {reason}", hint)


_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)
ABSENT = "does not exist"


def describe_path(path: str | Path) -> str:
    """Return the reason why `path` is not a regular file, as the end of a sentence, such as "is a pipe"; "" for a
    regular file."""
    try:
        about = os.stat(path)
    except PermissionError:
        return "cannot be reached: permission denied"
    except (OSError, ValueError):  # a ValueError is raised for an invalid file name
        return "is a symbolic link that leads to nothing" if os.path.islink(path) else ABSENT
    kind = next((words for fits, words in _KINDS if fits(about.st_mode)), "")
    return kind or ("" if about.st_size else "is an empty file")


@contextmanager
def naming_errors(path: str | Path, action: str = "write") -> Iterator[None]:
    """Return a context that converts an OSError into the HiresxError of `io_error`, for `path` and `action`."""
    try:
        yield
    except OSError as error:
        raise io_error(path, error, action) from None


def temporary_path(path: Path, process: int) -> Path:
    """Return a temporary path for the future file `path`. Its name contains the process id `process`, by default that
    of this process. If several processes write the file together, it is the id of the first of them (see
    `directories.remove_stale`)."""
    return path.with_name(f".{path.name}.{process}.part")


@contextmanager
def replacing(path: str | Path, keep: bool = True) -> Iterator[Path]:
    """Yield the path of an empty temporary file in the folder of `path`, to write to. At the end of the context it is
    flushed to the disk and renamed to `path`.

    After an error, or if `keep` is false, it is removed and `path` is unchanged. An OSError is not converted: see
    `io_error`. Raises HiresxError if `path` is a device, a pipe or a socket, which must not be replaced by a file.
    """
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise HiresxError(f"cannot write {path}: it {describe_path(path)}", "name a file, or remove what is there")
    temporary = temporary_path(path, os.getpid())
    # The file is opened here first, because netCDF reports every failure to create a file as "permission denied".
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


@contextmanager
def writing(path: str | Path, parents: bool = False) -> Iterator[Path]:
    """Replace the file `path` as `replacing` does, but raise a HiresxError with the path in place of an OSError.
    `parents`: whether missing folders are made."""
    with naming_errors(path):
        if parents:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            yield temporary


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to the file `path`, which is replaced only when all of the text is written. Raises HiresxError with
    the path."""
    with writing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a directory; the data itself was synced before.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
