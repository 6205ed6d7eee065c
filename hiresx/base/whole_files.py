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
    """Return the HiresxError, with a message for the user, for the OSError `error` that occurred at `path` during
    `action`, a verb such as "write" or "read"."""
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
    """Return the reason why `path` is not a readable regular file with content, as the end of a sentence, such as "is a
    pipe"; "" if it is one."""
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
    """Return a context manager that converts an OSError into a HiresxError that names `path` and `action`, a verb such
    as "write" or "read"."""
    try:
        yield
    except OSError as error:
        raise io_error(path, error, action) from None


def temporary_path(path: Path, process: int) -> Path:
    """Return the path of a temporary file, in the same folder, for the future file `path`. Its name contains the
    process id `process`. If several processes write the file together, this is the id of the first of them, so that
    remains of dead processes are recognised."""
    return path.with_name(f".{path.name}.{process}.part")


@contextmanager
def replacing(path: str | Path, keep: bool = True) -> Iterator[Path]:
    """Yield the path of an empty temporary file in the folder of `path`, to write to. At the end of the context the
    temporary file is flushed to the disk and renamed to `path`.

    After an error, or if `keep` is false, the temporary file is removed and `path` is unchanged. An OSError is raised
    unchanged. Raises HiresxError if `path` is a device, a pipe or a socket, which must not be replaced by a file.
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
    """Yield the path of a temporary file that replaces the file `path` at the end of the context; after an error the
    temporary file is removed and `path` is unchanged. An OSError becomes a HiresxError that names `path`. `parents`:
    whether missing folders are created."""
    with naming_errors(path):
        if parents:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            yield temporary


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to the file `path` in UTF-8. An existing file is replaced only when all of the text is written.
    Raises HiresxError, which names the path, if it cannot be written."""
    with writing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sync(path: Path) -> None:
    """Flush the file `path`, or the entries of the directory `path`, to the disk. Raises OSError if this fails."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a directory; the data itself was synced before.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
