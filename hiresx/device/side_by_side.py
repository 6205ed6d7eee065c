"""Which launches of a list may run side by side, and launches that are noted in place of made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Arrangement:
    """Where each of the items of a list goes. `levels`: of each; `aside`: of each, whether it goes aside; `awaited`: by
    level, how many of the items aside, from the first on, must be done before it begins, where that is more than for
    the levels before."""

    levels: list[int]
    aside: list[bool]
    awaited: dict[int, int]


def levels(calls: Calls, extent: Callable[[Any], tuple[int, int]] | None = None) -> list[int]:
    """For each call, those of lists too, the level in which it can run: calls of one level do not depend on each other,
    and of two that do, the later one has the higher level. `extent(array)`: address of the first byte of an array and
    of the one behind its last, without it those of a numpy array.

    Two calls depend on each other if one writes what the other reads or writes. A kernel is taken to touch all of an
    array that it is given, and nothing beside it; those of a list among `calls`, to share a level all the same.
    """
    found = arranged(calls, extent).levels
    return [n for n, some in zip(found, calls, strict=True) for _ in (some if isinstance(some, list) else [some])]


def arranged(
    calls: Calls,
    extent: Callable[[Any], tuple[int, int]] | None = None,
    aside: Callable[[Call], bool] = lambda call: False,
) -> Arrangement:
    """The same for the items of `calls`, launches or lists of them, where those that are `aside` follow each other in
    their order beside all levels: each begins when all levels below its own are done."""
    extent = extent or _bytes
    touched: list[list[tuple[int, int, bool]]] = []
    beside: list[bool] = []
    for some in calls:
        ranges: set[tuple[int, int, bool]] = set()
        together = some if isinstance(some, list) else [some]
        for call in together:
            given = call.arguments
            ranges |= {(*extent(given[n]), is_written(k)) for k, n in call.signature.arguments if is_pointer(k)}
        touched.append(sorted(ranges))
        beside.append(bool(together) and all(map(aside, together)))
    # Memory between two neighbours of `ends` is touched as a whole: its last level, and the last that wrote it, and the
    # same of those aside by how many there were.
    ends = np.unique([end for of_call in touched for low, high, _ in of_call for end in (low, high)])
    last, written = np.full(len(ends), -1), np.full(len(ends), -1)
    last_aside, written_aside = np.zeros(len(ends), int), np.zeros(len(ends), int)
    found: list[int] = []
    levels_aside = [-1]  # of the first, the second, ..., behind that of none
    awaited: dict[int, int] = {}
    for of_call, apart in zip(touched, beside, strict=True):
        places = [(*np.searchsorted(ends, (low, high)), write) for low, high, write in of_call if low < high]
        before = max((int((last if write else written)[low:high].max()) for low, high, write in places), default=-1)
        first = max(
            (int((last_aside if write else written_aside)[low:high].max()) for low, high, write in places), default=0
        )
        if apart:
            level, mark = max(before + 1, levels_aside[-1]), len(levels_aside)
            levels_aside.append(level)
            latest, wrote = last_aside, written_aside
        else:
            level = mark = 1 + max(before, levels_aside[first])
            awaited[level] = max(first, awaited.get(level, 0))
            latest, wrote = last, written
        found.append(level)
        for low, high, write in places:
            np.maximum(latest[low:high], mark, out=latest[low:high])
            if write:
                wrote[low:high] = mark
    done, needed = 0, {}
    for level in sorted(awaited):
        if awaited[level] > done:
            done = needed[level] = awaited[level]
    return Arrangement(found, beside, needed)


def _bytes(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Address of the first byte of an array and of the one behind its last."""
    start = array.ctypes.data
    if not array.size:
        return start, start
    reach = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    return start, start + reach + array.itemsize
