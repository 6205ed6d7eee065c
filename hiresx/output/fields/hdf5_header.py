"""What a field file holds, read by h5py, which opens what is asked for: netCDF's library reads the headers of all
blocks when it opens a file (10 s of 1,025 blocks)."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.output.saved.netcdf_library import LOCK, h5py

_AXES, _DIMENSIONS = ("x", "y", "z"), ("k", "j", "i")
# What h5py raises where a file is not what it should be.
FAULTS = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def describe(path: Path) -> dict[str, Any] | None:
    """Return the content of a field file without its arrays, as `field_file.describe` does. Returns None if h5py cannot
    read it, or if the file with its coordinates is missing."""
    with root(path) as file:
        if file is None:
            return None
        try:
            found = groups(file)
            first = found[0]
            link = first.get("x", getlink=True)
            if isinstance(link, h5py().ExternalLink) and not path.with_name(link.filename).is_file():
                return None
            names = [name for name in _in_order(first) if name not in (*_AXES, *_DIMENSIONS)]
            return {
                "time": float(file["time"][()]),
                "step": int(file["step"][()]),
                "case": json.loads(_text(file.attrs["case"])),
                "variables": names,
                "precision": "fp32" if names and first[names[0]].dtype == np.float32 else "fp64",
                "blocks": sizes(found),
                "part": _text(file.attrs.get("part", "")),
            }
        except FAULTS:
            return None


@contextmanager
def root(path: Path) -> Iterator[Any]:
    """The file, None where it cannot be opened."""
    with LOCK:
        try:
            file = h5py().File(path, "r", locking=False)
        except (OSError, RuntimeError, TypeError, ValueError):
            file = None
        try:
            yield file
        finally:
            if file is not None:
                file.close()


def groups(file: Any) -> list[Any]:
    """The groups of the blocks, in the order of the blocks."""
    found = (entry for entry in file.values() if hasattr(entry, "keys"))
    return sorted(found, key=lambda group: int(np.ravel(group.attrs["index"])[0]))


def sizes(groups: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    """(nk, nj, ni) of the blocks of these groups by name."""
    return {group.name.lstrip("/"): tuple(len(group[n]) for n in _DIMENSIONS) for group in groups}


class Blocks(Sequence[Any]):
    """The groups of the blocks of an open `file` in their order, each opened when it is asked for."""

    def __init__(self, file: Any, path: Path):
        self._file = file
        about = path.stat()
        self.names = _names(path, about.st_mtime_ns, about.st_size)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, n: Any) -> Any:
        return self._file[self.names[n]]


@lru_cache(maxsize=64)
def _names(path: Path, changed: int, size: int) -> tuple[str, ...]:
    """Names of the blocks of a file in their order; one that was written anew is read anew."""
    with root(path) as file:
        return tuple(group.name.lstrip("/") for group in groups(file))


def attribute(file: Any, name: str) -> str:
    """The text of an attribute of the file, "" where it has none."""
    return _text(file.attrs.get(name, ""))


def _in_order(group: Any) -> list[str]:
    """Names of the arrays of a group in the order in which they were made."""
    library = h5py()
    found: list[str] = []
    group.id.links.iterate(lambda name: found.append(name.decode()), idx_type=library.h5.INDEX_CRT_ORDER)
    return [name for name in found if group.get(name, getclass=True, getlink=True) is not library.ExternalLink
            and group.get(name, getclass=True) is library.Dataset]  # fmt: skip


def _text(value: Any) -> str:
    value = np.ravel(value)[0] if isinstance(value, np.ndarray) else value
    return value.decode() if isinstance(value, bytes) else str(value)
