"""Files that the netCDF and HDF5 libraries write, and the true causes of their failures: for a full disk, an exhausted
quota or a limit on the size of files the libraries report "HDF error", "permission denied", or a lock on a file that
they could not close."""

import errno
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hiresx.errors import HiresxError
from hiresx.output.saved import files

# Errors that are reported as they are. "Permission denied" is not among them, because this process has opened the file
# before.
_CLEAR = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.ENOENT)
# Largest number of bytes of a file without its arrays.
_BESIDE = 1 << 20


@contextmanager
def replacing(path: str | Path, size: int = 0, keep: bool = True) -> Iterator[Path]:
    """Return a context whose value is a temporary path, to which a library writes a file. At the end of the context the
    file is renamed to `path`. `size`: number of bytes that the file needs at least; it is an error if the disk has less
    free space. `keep`: whether the file is kept; if false, it is removed at the end. Raises HiresxError, with `path`
    and the cause, if the file cannot be written."""
    path = Path(path)
    try:
        _check_limit(size)
        if shutil.disk_usage(path.parent).free < size:
            raise OSError(errno.ENOSPC, "")
        with files.replacing(path, keep) as temporary:
            try:
                yield temporary
            except (OSError, RuntimeError) as error:
                if getattr(error, "errno", None) in _CLEAR:
                    raise
                _check_space(temporary, size)
                raise
    except OSError as error:
        raise files.io_error(path, error) from None
    except RuntimeError as error:
        free = f"{shutil.disk_usage(path.parent).free / 1e9:.1f} GB are free in {path.parent}"
        raise HiresxError(
            f"cannot write {path}: {error}",
            f"most often the disk is full or a limit is reached; {free}; choose another with --out DIR",
        ) from None


def _check_limit(size: int) -> None:
    """Raises OSError for a file above the limit of this process (ulimit -f)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and size > limit:
        raise OSError(errno.EFBIG, "")


def _check_space(temporary: Path, size: int) -> None:
    """Repeat the OSError that a library met, if the system still gives it, by allocating the space of the whole file
    beside the library's."""
    written = temporary.stat().st_size if temporary.exists() else 0
    wanted = max(size, written) + _BESIDE
    _check_limit(wanted)
    probe = temporary.with_name(f"{temporary.name}.probe.part")
    try:
        handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.posix_fallocate(handle, 0, wanted)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in _CLEAR:
            raise
    finally:
        probe.unlink(missing_ok=True)
