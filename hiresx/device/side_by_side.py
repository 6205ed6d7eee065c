"""Which launches of a list may run side by side, and launches that are noted in place of made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hiresx.device.arguments import is_pointer, is_written
from hiresx.device.call import Call, Calls


class Noting:
    """What a program that can note its launches has besides: `noted`, the list to which they go, or None."""

    noted: list[Call | list[Call]] | None = None

    @contextmanager
    def noting(self) -> Iterator[list[Call | list[Call]]]:
        """Launches, prepared ones too, are not made but put down in the list that is given."""
        found: list[Call | list[Call]] = []
        self.noted = found
        try:
            yield found
        finally:
            self.noted = None


def flat(calls: Calls) -> list[Call]:
    """The launches, those of lists too, in order."""
    return [call for some in calls for call in (some if isinstance(some, list) else [some])]


def one_by_one(program: Any, calls: Calls) -> Callable[[], None]:
    """The launches in order, each for itself, as where each is timed."""
    single = flat(calls)

    def run() -> None:
        for call in single:
            program.run(call)

    return run


def levels(calls: Calls, extent: Callable[[Any], tuple[int, int]] | None = None) -> list[int]:
    """For each call, those of lists too, the level in which it can run: calls of one level do not depend on each other,
    and of two that do, the later one has the higher level. `extent(array)`: address of the first byte of an array and
    of the one behind its last, without it those of a numpy array.

    Two calls depend on each other if one writes what the other reads or writes. A kernel is taken to touch all of an
    array that it is given, and nothing beside it; those of a list among `calls`, to share a level all the same.
    """
    extent = extent or _bytes
    touched: list[list[tuple[int, int, bool]]] = []
    for some in calls:
        ranges: set[tuple[int, int, bool]] = set()
        for call in some if isinstance(some, list) else [some]:
            given = call.arguments
            ranges |= {(*extent(given[n]), is_written(k)) for k, n in call.signature.arguments if is_pointer(k)}
        touched.append(sorted(ranges))
    # Memory between two neighbours of `ends` is touched as a whole: its last level, and the last that wrote it.
    ends = np.unique([end for of_call in touched for low, high, _ in of_call for end in (low, high)])
    last, written = np.full(len(ends), -1), np.full(len(ends), -1)
    found: list[int] = []
    for some, of_call in zip(calls, touched, strict=True):
        places = [(*np.searchsorted(ends, (low, high)), write) for low, high, write in of_call if low < high]
        before = [(last if write else written)[low:high].max() for low, high, write in places]
        level = 1 + int(max(before, default=-1))
        found += [level] * (len(some) if isinstance(some, list) else 1)
        for low, high, write in places:
            np.maximum(last[low:high], level, out=last[low:high])
            if write:
                written[low:high] = level
    return found


def _bytes(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Address of the first byte of an array and of the one behind its last."""
    start = array.ctypes.data
    if not array.size:
        return start, start
    reach = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    return start, start + reach + array.itemsize
