"""Where compiled kernels are kept between runs."""

import hashlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path

from hiresx.errors import HiresxError


def key(parts: Iterable[str]) -> str:
    """A file-name-sized digest of everything that `parts` says."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def directory() -> Path:
    """$HIRESX_CACHE, or hiresx in $XDG_CACHE_HOME or ~/.cache; made if missing. Raises HiresxError if it cannot be."""
    chosen = os.environ.get("HIRESX_CACHE")
    path = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hiresx"
    with _refusal(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def workplace():
    """A private directory on the cache's file system, so that what is made in it can be renamed into the cache in one
    stroke: simultaneous processes never see half a file. Raises HiresxError if the cache cannot be written to."""
    path = directory()
    with _refusal(path), tempfile.TemporaryDirectory(dir=path) as private:
        yield Path(private)


@contextmanager
def _refusal(path: Path):
    try:
        yield
    except OSError as error:
        raise HiresxError(
            f"the kernel cache {path} cannot be written: {error.strerror or error}",
            "set HIRESX_CACHE to a directory that can be written, or make room there",
        ) from error
