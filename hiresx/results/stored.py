"""Values that stay in field files until they are used: an array over (time,) k, j, i for xarray's lazy indexing.

Coordinates and stored variables are read by slabs. What follows from the state at a point is computed of the slab
alone; what needs gradients is computed of the whole block, one time after the other.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import coordinate_file, derived, field_file
from hiresx.output.saved.netcdf_library import LOCK, h5py

AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class StoredVariable:
    """The variable `name` of the block named `block` in the field files `paths`, of each time one, which `gamma` and
    the shape (nk, nj, ni) of the block belong to. `name`: also one of a group of the block, such as "reynolds/u_v".
    `moving`: with a first dimension, time; else there is one path."""

    paths: tuple[Path, ...]
    block: str
    name: str
    nodes: tuple[int, int, int]
    dtype: np.dtype
    gamma: float
    moving: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (times, nk, nj, ni), without times for a variable that does not change."""
        return (len(self.paths), *self.nodes) if self.moving else self.nodes

    def read(self, key: tuple[Any, ...]) -> np.ndarray:
        """The part of it that `key` selects: of each dimension a number, a slice or an array of indexes."""
        if not self.moving:
            return self._of(self.paths[0], key)
        times = np.arange(len(self.paths))[key[0]]
        if times.ndim == 0:
            return self._of(self.paths[int(times)], key[1:])
        found = None
        for n, time in enumerate(times):
            part = self._of(self.paths[int(time)], key[1:])
            if found is None:
                found = np.empty((len(times), *part.shape), self.dtype)
            found[n] = part
        return np.empty((0, *np.empty(self.nodes, bool)[key[1:]].shape), self.dtype) if found is None else found

    def _of(self, path: Path, key: tuple[Any, ...]) -> np.ndarray:
        if all(isinstance(part, int) or (isinstance(part, slice) and (part.step or 1) > 0) for part in key):
            values = self._read_stored(path, key)
            if values is not None:
                return values
        with field_file.open_file(path) as (file, groups):
            group = next((group for group in groups if group.name == self.block), None)
            if group is None:
                raise HiresxError(f'there is no block "{self.block}"', "see whether the run was overwritten")
            stored = "/" in self.name or self.name in group.variables
            whole = not stored and not derived.about(self.name).local
            if whole or self.name in AXES:
                coordinate_file.check(path)
            if stored:
                return np.asarray(group[self.name][key])
            part = (slice(None),) * 3 if whole else tuple(slice(n, n + 1) if isinstance(n, int) else n for n in key)
            x, y, z = (np.asarray(group[axis][part]) if whole else np.zeros(1) for axis in AXES)
            flow = derived.FlowState(
                x,
                y,
                z,
                {name: np.asarray(group[name][part]) for name in derived.PRIMITIVE if name in group.variables},
                self.gamma,
                beyond=partial(field_file.neighbours(file, groups).of, groups.index(group)) if whole else None,
            )
            values = derived.evaluate([self.name], flow)[self.name]
        if whole:
            return values[np.ix_(*map(np.atleast_1d, _indexes(key, self.nodes)))].reshape(_shape(key, self.nodes))
        return values.reshape(_shape(key, self.nodes))

    def _read_stored(self, path: Path, key: tuple[Any, ...]) -> np.ndarray | None:
        """The part of what is stored under this name, by HDF5, which opens this block alone: netCDF reads the headers
        of all of them. None where that is not possible; the way by netCDF names the fault."""
        with suppress(HiresxError, AttributeError, OSError, KeyError, RuntimeError, TypeError, ValueError):
            if self.name in AXES:
                coordinate_file.check(path)
            with h5py().File(path, "r", locking=False) as file:
                return np.asarray(file[self.block][self.name][key])
        return None


def _indexes(key: Sequence[Any], nodes: Sequence[int]) -> list[np.ndarray]:
    return [np.arange(n)[part] for part, n in zip(key, nodes, strict=True)]


def _shape(key: Sequence[Any], nodes: Sequence[int]) -> tuple[int, ...]:
    return tuple(part.size for part in _indexes(key, nodes) if part.ndim)


@dataclass(frozen=True, eq=False)
class ComputedArray:
    """An array (nk, nj, ni) that `function` makes of those that the `parts` select: a root mean square of a moment."""

    function: Callable[..., np.ndarray]
    parts: tuple[StoredVariable, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result: that of each of its `parts`."""
        return self.parts[0].shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the result: double precision."""
        return np.dtype("f8")

    def read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Read the part `key` of all `parts`, and return the function of them. Undefined values are NaN or infinite."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.function(*(part.read(key) for part in self.parts)), dtype=np.float64)


def lazy(source: Any) -> Any:
    """Return `source` (shape, dtype, read) as a lazy array for xarray: only the part that is used is read, when it is
    used."""
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class LazyArray(BackendArray):
        """See `lazy`."""

        shape, dtype = source.shape, source.dtype

        def __getitem__(self, key: Any) -> Any:
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._outer)

        def _outer(self, key: tuple[Any, ...]) -> np.ndarray:
            with LOCK:
                return source.read(tuple(int(n) if isinstance(n, np.integer) else n for n in key))

    return indexing.LazilyIndexedArray(LazyArray())
