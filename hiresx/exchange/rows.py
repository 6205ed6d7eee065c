"""Lists of nodes, grouped into rows that are contiguous in memory at both the source and the target
(kernels/halo_rows.h)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hiresx.device.interface import Backend

# Least mean number of nodes per row. With shorter rows, copying by the list itself is as fast.
SHORTEST = 3


def rows(to: np.ndarray, source: np.ndarray) -> np.ndarray | None:
    """Combine the copies from index `source[n]` to index `to[n]` into rows of consecutive indexes. `to`, `source`:
    integer arrays (m,), flat indexes into two arrays. Returns int32 (rows, 3) with the columns first index in `to`,
    first index in `source`, and length, sorted by the first column. Returns None if rows have fewer than 3 nodes on
    average, as behind faces whose indexes run in different directions."""
    if not len(to):
        return None
    steps = np.diff(to)
    if (steps < 0).any():
        order = np.argsort(to, kind="stable")
        to, source = to[order], source[order]
        steps = np.diff(to)
    begins = np.append(0, np.flatnonzero((steps != 1) | (np.diff(source) != 1)) + 1)
    if len(to) < SHORTEST * len(begins):
        return None
    lengths = np.diff(np.append(begins, len(to)))
    return np.stack([to[begins], source[begins], lengths], axis=1).astype(np.int32)


def lists_on_device(backend: Backend, lists: Sequence[Sequence[np.ndarray]]) -> list[list[Any]]:
    """Copy groups of integer arrays, `lists`, to the device, as one-dimensional int32 arrays in the same groups. All
    are transferred by one copy, since each copy has a latency."""
    single = [one for some in lists for one in some]
    if not single:
        return [[] for _ in lists]
    whole = backend.to_device(np.concatenate([*map(np.ravel, single), [0]]).astype(np.int32))
    ends = np.cumsum([0, *map(np.size, single)]).tolist()
    views = iter([whole[a:b] for a, b in pairwise(ends)])
    return [[next(views) for _ in some] for some in lists]
