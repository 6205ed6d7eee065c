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
    touched = [sorted({place for call in some for place in call}) for some in _touched(calls, extent or _bytes)]
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


def dependencies(
    calls: Calls,
    extent: Callable[[Any], tuple[int, int]] | None = None,
    in_order: Callable[[Call], bool] = lambda call: False,
) -> list[list[int]]:
    """For each call, those of lists too, the numbers of the calls before it that it waits for, without those that these
    wait for. What depends on what, and `extent`, are as of `levels`; those of a list among `calls`, which do not depend
    on each other, wait each for itself, and each is waited for. Calls that are `in_order` follow each other besides."""
    touched = _touched(calls, extent or _bytes, in_order)
    ends = np.unique([end for some in touched for call in some for low, high, _ in call for end in (low, high)])
    # Of memory between two neighbours of `ends`: the calls that wrote it last, and those that read it since.
    written: list[set[int]] = [set() for _ in ends]
    read: list[set[int]] = [set() for _ in ends]
    before: list[int] = []  # of each call a bit for every one that is done before it
    found: list[list[int]] = []
    for some in touched:
        writers: dict[int, set[int]] = {}
        readers: dict[int, set[int]] = {}
        for of_call in some:
            number, waits = len(found), set()
            for low, high, write in of_call:
                for place in range(*np.searchsorted(ends, (low, high))):
                    waits |= written[place] | read[place] if write else written[place]
                    (writers if write else readers).setdefault(place, set()).add(number)
            indirect = 0
            for n in waits:
                indirect |= before[n]
            found.append(sorted(n for n in waits if not indirect >> n & 1))
            before.append(indirect | sum(1 << n for n in found[-1]))
        for place, those in writers.items():
            written[place], read[place] = those, set()
        for place, those in readers.items():
            read[place] |= those
    return found


# A place that calls which keep an order write besides: no array lies there.
_NOWHERE = (-2, -1, True)


def _touched(
    calls: Calls,
    extent: Callable[[Any], tuple[int, int]],
    in_order: Callable[[Call], bool] = lambda call: False,
) -> list[list[list[tuple[int, int, bool]]]]:
    """Of each entry of `calls`, of each of its calls, what memory it touches, and whether it writes there."""
    return [
        [
            [
                (*extent(call.arguments[name]), is_written(kind))
                for kind, name in call.signature.arguments
                if is_pointer(kind)
            ]
            + ([_NOWHERE] if in_order(call) else [])
            for call in (some if isinstance(some, list) else [some])
        ]
        for some in calls
    ]


def _bytes(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Address of the first byte of an array and of the one behind its last."""
    start = array.ctypes.data
    if not array.size:
        return start, start
    reach = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    return start, start + reach + array.itemsize
