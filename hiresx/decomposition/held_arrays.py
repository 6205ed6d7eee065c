"""Arrays over the nodes of whole blocks, distributed over the ranks as boxes.

A box is given by half-open ranges of nodes (i, j, k) of a whole block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.grid.blocks import Range


class LazyArray:
    """An array whose values are computed when NumPy reads them: np.asarray calls `make`. `shape` and `dtype` are known
    before."""

    def __init__(self, shape: Sequence[int], dtype: Any, make: Callable[[], np.ndarray]):
        self.shape, self.dtype, self._make = tuple(shape), np.dtype(dtype), make

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._make(), dtype)


@dataclass(frozen=True)
class Piece:
    """The values of a distributed array that one rank holds. `name`: the name of the array. `box`: half-open index
    ranges of the nodes. `array` (..., nk, nj, ni): the values at these nodes. The pieces of all ranks make up the whole
    array, from node (0, 0, 0) on, with each node in one piece. Raises ValueError if the shape of `array` differs from
    the size of the box."""

    name: str
    box: Range
    array: np.ndarray | LazyArray

    def __post_init__(self) -> None:
        if tuple(self.array.shape[-3:]) != sizes(self.box) or 0 in sizes(self.box):
            raise ValueError(f"{label(self.name, self.box)}: an array of the shape {self.array.shape}")


def sizes(box: Range) -> tuple[int, int, int]:
    """Return the shape (nk, nj, ni) of an array over the nodes in `box`, which has half-open index ranges in the order
    i, j, k."""
    return triple(last - first for first, last in reversed(box))


def label(name: str, box: Range) -> str:
    """Return the name under which a file stores the part of the array `name` at the nodes in `box`, such as
    "rho[0:33,0:17,0:1]". The ranges are half-open, in the order i, j, k."""
    return f"{name}[{','.join(f'{first}:{last}' for first, last in box)}]"
