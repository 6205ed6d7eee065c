"""Positions of the values that one process has in an array of a file.

An array (nk, nj, ni) lies in a file in C order. A process has a box of its nodes, or scattered nodes. Nodes that are
contiguous both in the file and in the process's values are a run, which is written at once (`files.JointFile`). The
runs are determined once for all times."""

from dataclasses import dataclass, field

import numpy as np

from hiresx.base.arrays import triple


@dataclass(frozen=True)
class Runs:
    """The positions of the values of a block in a larger array, as runs of consecutive nodes in C order. `starts`: the
    flat index of the first node of each run. `lengths`: the number of nodes of each run. `layers`: the number of groups
    with equally many values and runs into which the values can be divided. `joined`: whether there is no gap between
    the runs."""

    starts: np.ndarray
    lengths: np.ndarray
    layers: int
    joined: bool = False


@dataclass(frozen=True)
class IndexBox:
    """A box of nodes of an array. `ends`: (first, last + 1) along k, j, i. `whole`: the shape (nk, nj, ni) of the
    array. `runs`: the positions of the box's values in the array. `shape`: the shape of the box."""

    whole: tuple[int, int, int]
    ends: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    shape: tuple[int, int, int] = field(init=False, compare=False)
    """Shape of the values."""
    runs: Runs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", triple(last - first for first, last in self.ends))
        object.__setattr__(self, "runs", self._runs())

    @classmethod
    def all(cls, whole: tuple[int, int, int]) -> "IndexBox":
        """Return the box that contains all nodes of an array of the shape `whole` (nk, nj, ni)."""
        return cls(triple(whole), triple((0, n) for n in whole))

    def _runs(self) -> Runs:
        (_, nj, ni), (mk, mj, mi) = self.whole, self.shape
        k, j, i = (low for low, _ in self.ends)
        layers = (np.arange(mk) + k)[:, None] * nj
        if mi < ni:
            starts, length = ((layers + np.arange(mj) + j) * ni + i).ravel(), mi
        else:
            starts, length = (layers[:, 0] + j) * ni, mj * ni
        return Runs(starts, np.full(starts.shape, length), mk, mi == ni and mj == nj)


@dataclass(frozen=True, eq=False)
class IndexPoints:
    """Single nodes of an array, given by their flat indexes `index` (n,) in ascending order. `runs`: the positions of
    their values in the array. The shape of the array is not needed; `whole` is therefore None."""

    index: np.ndarray
    whole: None = field(init=False, default=None)
    shape: tuple[int] = field(init=False)
    """Shape of the values."""
    runs: Runs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", self.index.shape)
        begin = np.flatnonzero(np.diff(self.index, prepend=self.index[:1] - 2) != 1)
        runs = Runs(self.index[begin], np.diff(begin, append=self.index.size), min(self.index.size, 1))
        object.__setattr__(self, "runs", runs)


Place = IndexBox | IndexPoints


@dataclass(eq=False)
class LocalRegion:
    """The points of one block of an output that this process writes. `place`: which points of the block they are. `x`,
    `y`, `z` and `values`, the variables by name: arrays of the shape of `place`. `missing`: mask of points outside the
    grid; their arrays contain the values of another point."""

    place: Place
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    values: dict[str, np.ndarray]
    missing: np.ndarray | None = None
