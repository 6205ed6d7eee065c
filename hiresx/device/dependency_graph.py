"""The dependencies between the launches of a list, and programs that record launches instead of making them."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hiresx.device.arguments import is_pointer, is_written
from hiresx.device.call import Call, Calls


class RecordingProgram:
    """A program that can record its launches. `recorded`: the list to which they are appended, or None."""

    recorded: list[Call | list[Call]] | None = None

    @contextmanager
    def recording(self) -> Iterator[list[Call | list[Call]]]:
        """Return a context manager inside which kernel launches are not made, but appended to the list that is its
        value. This includes launches that were prepared before."""
        found: list[Call | list[Call]] = []
        self.recorded = found
        try:
            yield found
        finally:
            self.recorded = None


def flatten_calls(calls: Calls) -> list[Call]:
    """Return all launches in order. `calls`: launches and lists of launches."""
    return [call for some in calls for call in (some if isinstance(some, list) else [some])]


def launch_one_by_one(program: Any, calls: Calls) -> Callable[[], None]:
    """Return a function that makes the kernel launches `calls` of `program` in order, one at a time, so that each can
    be timed."""
    single = flatten_calls(calls)

    def run() -> None:
        for call in single:
            program.run(call)

    return run


def levels(calls: Calls, extent: Callable[[Any], tuple[int, int]] | None = None) -> list[int]:
    """Return the level of each kernel launch in `calls`, which contains launches and lists of launches. Launches of one
    level do not depend on each other; of two dependent launches, the later one has the higher level. `extent(array)`
    returns the addresses of the first byte of an array and of the byte after its last; the default is for NumPy arrays.

    Two launches depend on each other if one writes an array that the other reads or writes. A kernel is assumed to
    access all of its arrays, those in `Call.touched`, and nothing else. The launches of a list in `calls` have the same
    level even if they access the same arrays.
    """
    touched, pieces = _memory_accesses(calls, extent or _bytes)
    # For every piece of memory, the last level that accessed it and the last one that wrote it.
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
    """Return, for each kernel launch in `calls`, the numbers of the earlier launches that it waits for. `calls`
    contains launches and lists of launches. Two launches depend on each other if one writes an array that the other
    reads or writes. The launches of a list do not depend on each other; a later launch waits for each of them. Launches
    for which `in_order` is true also wait for each other. `extent(array)`: returns the addresses of the first byte of
    an array and of the byte after its last; the default is for NumPy arrays."""
    touched, pieces = _memory_accesses(calls, extent or _bytes, in_order)
    # For every piece of memory: the calls that wrote it last, those that read it since, and whether the readers waited
    # for all writers. Readers in the same list as a writer did not.
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
            found.append(sorted(waits))
        for piece, those in writers.items():
            written[piece], read[piece], covered[piece] = those, [], True
        for piece, those in readers.items():
            read[piece] += those
            covered[piece] = covered[piece] and piece not in writers
    return found


# A piece of memory outside all arrays. Calls that keep their order write it.
_NOWHERE = (-2, -1)


def _memory_accesses(
    calls: Calls,
    extent: Callable[[Any], tuple[int, int]],
    in_order: Callable[[Call], bool] = lambda call: False,
) -> tuple[list[list[list[tuple[int, int, bool]]]], int]:
    """Return, for each call of each entry of `calls`, the memory that it accesses as (first piece, end piece, writes),
    and the number of pieces. Pieces are accessed as a whole or not at all."""
    entries = [some if isinstance(some, list) else [some] for some in calls]
    # The same arrays and kernels recur: each array, identified by its Python id, has a number.
    numbers: dict[int, int] = {}
    extents: list[tuple[int, int]] = [_NOWHERE]
    pointers: dict[int, list[tuple[str, bool]]] = {}
    places: dict[int, list[tuple[int, bool]]] = {}  # by call: the stages of a step make the same ones
    for call in {id(call): call for some in entries for call in some}.values():
        named = pointers.get(id(call.signature))
        if named is None:
            kinds = call.signature.arguments
            named = pointers[id(call.signature)] = [
                (name, is_written(kind)) for kind, name in kinds if is_pointer(kind)
            ]
        of_call = places[id(call)] = [(0, True)] if in_order(call) else []
        for array, write in [*((call.arguments[name], write) for name, write in named), *call.touched]:
            if array is None:
                continue
            number = numbers.get(id(array))
            if number is None:
                number = numbers[id(array)] = len(extents)
                extents.append(extent(array))
            of_call.append((number, write))
    # Only memory that a call writes makes calls depend on each other.
    spans = np.array(extents, np.int64)
    written = [*{number for some in places.values() for number, write in some if write}]
    kept = np.flatnonzero(_overlap(spans, spans[written]))
    ends, found = np.unique(spans[kept], return_inverse=True)
    pieces: dict[int, list[int]] = dict(zip(kept.tolist(), found.reshape(-1, 2).tolist(), strict=True))
    each = {
        key: [(pieces[number][0], pieces[number][1], write) for number, write in of_call if number in pieces]
        for key, of_call in places.items()
    }
    return [[each[id(call)] for call in some] for some in entries], len(ends)


def _overlap(spans: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which of `spans` (n, 2), addresses of the first byte and of the byte after the last, overlap one of the
    `others` (m, 2)."""
    others = others[np.argsort(others[:, 0])]
    furthest = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(others[:, 1])])
    before = np.searchsorted(others[:, 0], spans[:, 1])  # how many begin before the end of each span
    return np.asarray(furthest[before] > spans[:, 0])


def _bytes(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return the addresses of the first byte of an array and of the byte after its last."""
    start: int = array.__array_interface__["data"][0]
    if array.flags.c_contiguous:
        return start, start + array.nbytes
    if not array.size:
        return start, start
    reach = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    return start, start + reach + array.itemsize
