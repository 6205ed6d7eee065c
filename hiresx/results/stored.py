"""Arrays over (time,) k, j, i in field files, of which xarray reads a section when it is used.

Coordinates and stored variables are read in sections. A derived variable that depends on the state at the same point is
computed for the section only. A variable that needs gradients is computed for the whole block, one time after the
other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import coordinate_file, derived, field_file
from hiresx.output.fields.field_reader import AXES, FieldReader, open_file
from hiresx.output.saved.netcdf_library import LOCK


@dataclass(frozen=True, eq=False)
class StoredVariable:
    """The variable `name` of the block `block` in the field files `paths`, one file for each time. `nodes`: the shape
    (nk, nj, ni) of the block. `gamma`: the ratio of specific heats of the gas, for derived variables. `name` may be in
    a group of the block, such as "reynolds/u_v". `moving`: whether the first dimension is time; if not, there is one
    path."""

    paths: tuple[Path, ...]
    block: str
    name: str
    nodes: tuple[int, int, int]
    dtype: np.dtype
    gamma: float
    moving: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array: (times, nk, nj, ni) for a series of files, or (nk, nj, ni) for one file."""
        return (len(self.paths), *self.nodes) if self.moving else self.nodes

    def read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Return a section of the array `[k, j, i]`, or `[time, k, j, i]` for a series of files. `key`: the selection
        in each dimension, a number, a slice or an array of indexes."""
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
        with open_file(path) as blocks:
            if self.block not in blocks.file:
                raise HiresxError(f'there is no block "{self.block}"', "see whether the run was overwritten")
            return self._in(path, key, blocks)

    def _in(self, path: Path, key: tuple[Any, ...], blocks: FieldReader) -> np.ndarray:
        """Return the part of an open file that `key` selects."""
        group = blocks.file[self.block]
        stored = self.name in group
        simple = all(isinstance(part, int) or (isinstance(part, slice) and (part.step or 1) > 0) for part in key)
        local = stored or derived.about(self.name).local
        if not local or self.name in AXES:
            coordinate_file.check(path)
        if stored:
            if simple:
                return np.asarray(group[self.name][key])
            return np.asarray(group[self.name][...])[np.ix_(*_lists(key, self.nodes))].reshape(_shape(key, self.nodes))
        whole = not local or not simple
        part = (slice(None),) * 3 if whole else tuple(slice(n, n + 1) if isinstance(n, int) else n for n in key)
        x, y, z = (np.zeros(1) if local else np.asarray(group[axis][part]) for axis in AXES)
        flow = derived.FlowState(
            x,
            y,
            z,
            {name: np.asarray(group[name][part]) for name in derived.PRIMITIVE if name in group},
            self.gamma,
            beyond=None if local else partial(field_file.neighbours(blocks).of, blocks.names.index(self.block)),
        )
        values = derived.evaluate([self.name], flow)[self.name]
        if whole:
            return values[np.ix_(*_lists(key, self.nodes))].reshape(_shape(key, self.nodes))
        return values.reshape(_shape(key, self.nodes))


def _indexes(key: Sequence[Any], nodes: Sequence[int]) -> list[np.ndarray]:
    return [np.arange(n)[part] for part, n in zip(key, nodes, strict=True)]


def _lists(key: Sequence[Any], nodes: Sequence[int]) -> list[np.ndarray]:
    return [np.atleast_1d(part) for part in _indexes(key, nodes)]


def _shape(key: Sequence[Any], nodes: Sequence[int]) -> tuple[int, ...]:
    return tuple(part.size for part in _indexes(key, nodes) if part.ndim)


@dataclass(frozen=True, eq=False)
class ComputedArray:
    """An array (nk, nj, ni) that `function` computes from the arrays of `parts`; for instance a root mean square from a
    second moment."""

    function: Callable[..., np.ndarray]
    parts: tuple[StoredVariable, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (nk, nj, ni) of the result, which is the shape of each input array."""
        return self.parts[0].shape

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of the result, double precision."""
        return np.dtype("f8")

    def read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Return a section of the computed array `[k, j, i]`: the function is applied to the same section of its input
        arrays. `key`: the selection in each dimension, a number, a slice or an array of indexes. Undefined values are
        NaN or infinite."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.function(*(part.read(key) for part in self.parts)), dtype=np.float64)


def lazy(source: Any) -> Any:
    """Return a lazy array for xarray whose values are read from files when they are used. `source`: an object with the
    attributes shape and dtype and the method read(key), such as `StoredVariable`. `read` returns a section of the
    array."""
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class StoredArray(BackendArray):
        """The access of xarray to a variable in files, which `lazy` uses. Only the selected part is read."""

        shape, dtype = source.shape, source.dtype

        def __getitem__(self, key: Any) -> Any:
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._outer)

        def _outer(self, key: tuple[Any, ...]) -> np.ndarray:
            with LOCK:
                return source.read(tuple(int(n) if isinstance(n, np.integer) else n for n in key))

    return indexing.LazilyIndexedArray(StoredArray())
