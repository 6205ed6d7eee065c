"""Which launches of a list may run side by side, and launches that are noted in place of made."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

import numpy as np

from hiresx.device.arguments import is_pointer, is_written
from hiresx.device.call import Call, Calls


class RecordingProgram:
    """What a program that can note its launches has besides: `noted`, the list to which they go, or None."""

    recorded: list[Call | list[Call]] | None = None

    @contextmanager
    def recording(self) -> Iterator[list[Call | list[Call]]]:
        """Launches, prepared ones too, are not made but put down in the list that is given."""
        found: list[Call | list[Call]] = []
        self.recorded = found
        try:
            yield found
        finally:
            self.recorded = None


def flatten_calls(calls: Calls) -> list[Call]:
    """The launches, those of lists too, in order."""
    return [call for some in calls for call in (some if isinstance(some, list) else [some])]


def launch_one_by_one(program: Any, calls: Calls) -> Callable[[], None]:
    """The launches in order, each for itself, as where each is timed."""
    single = flatten_calls(calls)

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
    touched, pieces = _memory_accesses(calls, extent or _bytes)
    # Of every piece of memory its last level, and the last that wrote it.
    last, written = [-1] * pieces, [-1] * pieces
    found: list[int] = []
    for some in touched:
        places = {place for of_call in some for place in of_call}
        level = 1 + max((n for a, b, write in places for n in (last if write else written)[a:b]), default=-1)
        found += [level] * len(some)
        for a, b, write in places:
            for piece in range(a, b):
                last[piece] = max(last[piece], level)
                if write:
                    written[piece] = level
    return found


def dependencies(
    calls: Calls,
    extent: Callable[[Any], tuple[int, int]] | None = None,
    in_order: Callable[[Call], bool] = lambda call: False,
) -> list[list[int]]:
    """For each call, those of lists too, the numbers of the calls before it that it waits for, without those that these
    plainly wait for. What depends on what, and `extent`, are as of `levels`; those of a list among `calls`, which do
    not depend on each other, wait each for itself, and each is waited for. Calls that are `in_order` follow each other
    besides. Takes time and memory by the number of calls."""
    touched, pieces = _memory_accesses(calls, extent or _bytes, in_order)
    # Of every piece of memory: the calls that wrote it last, those that read it since, and whether these waited for all
    # who wrote it. Calls of the same list did not.
    written: list[Collection[int]] = [()] * pieces
    read: list[list[int]] = [[] for _ in range(pieces)]
    covered = [True] * pieces
    found: list[list[int]] = []
    for some in touched:
        writers: dict[int, list[int]] = {}
        readers: dict[int, list[int]] = {}
        for of_call in some:
            waits: set[int] = set()
            for a, b, write in of_call:
                for piece in range(a, b):
                    if write:
                        waits.update(read[piece])
                    if not (write and read[piece] and covered[piece]):
                        waits.update(written[piece])
                    (writers if write else readers).setdefault(piece, []).append(len(found))
            found.append(sorted(waits - _implied_waits(waits, found)))
        for piece, those in writers.items():
            written[piece], read[piece], covered[piece] = those, [], True
        for piece, those in readers.items():
            read[piece] += those
            covered[piece] = covered[piece] and piece not in writers
    return found


# How many calls are looked at for what they wait for already.
_SEARCH_LIMIT = 64


def _implied_waits(waits: Collection[int], found: Sequence[Sequence[int]]) -> set[int]:
    """Of the calls `waits` those for which others of them wait, as far as it is seen from what was `found` of a few."""
    implied: set[int] = set()
    if len(waits) < 2:
        return implied
    least, left = min(waits), list(waits)
    for _ in range(_SEARCH_LIMIT):
        if not left:
            break
        for n in found[left.pop()][-_SEARCH_LIMIT:]:
            if n >= least and n not in implied:
                implied.add(n)
                left.append(n)
    return implied


# A place that calls which keep an order write besides: no array lies there.
_NOWHERE = (-2, -1)


def _memory_accesses(
    calls: Calls,
    extent: Callable[[Any], tuple[int, int]],
    in_order: Callable[[Call], bool] = lambda call: False,
) -> tuple[list[list[list[tuple[int, int, bool]]]], int]:
    """Of each entry of `calls`, of each of its calls, which pieces of memory it touches, from one number to behind
    another, and whether it writes there; and the number of pieces. A piece is touched as a whole, or not at all."""
    entries = [some if isinstance(some, list) else [some] for some in calls]
    # The same arrays and kernels come again and again: numbers stand for arrays, by what is their address in Python.
    numbers: dict[int, int] = {}
    extents: list[tuple[int, int]] = [_NOWHERE]
    pointers: dict[int, list[tuple[str, bool]]] = {}
    places: list[list[tuple[int, bool]]] = []
    for call in chain.from_iterable(entries):
        named = pointers.get(id(call.signature))
        if named is None:
            kinds = call.signature.arguments
            named = pointers[id(call.signature)] = [
                (name, is_written(kind)) for kind, name in kinds if is_pointer(kind)
            ]
        of_call = [(0, True)] if in_order(call) else []
        for name, write in named:
            array = call.arguments[name]
            number = numbers.get(id(array))
            if number is None:
                number = numbers[id(array)] = len(extents)
                extents.append(extent(array))
            of_call.append((number, write))
        places.append(of_call)
    ends, found = np.unique(np.array(extents, np.int64), return_inverse=True)
    pieces: list[tuple[int, int]] = [(int(a), int(b)) for a, b in found.reshape(-1, 2)]
    each = iter([[(*pieces[number], write) for number, write in of_call] for of_call in places])
    return [list(islice(each, len(some))) for some in entries], len(ends)


def _bytes(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Address of the first byte of an array and of the one behind its last."""
    start = array.ctypes.data
    if not array.size:
        return start, start
    reach = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    return start, start + reach + array.itemsize
