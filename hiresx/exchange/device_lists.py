"""Lists of integers on the device, such as flat indexes of nodes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hiresx.device.interface import Backend


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
