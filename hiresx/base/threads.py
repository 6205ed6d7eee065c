"""Work on large arrays, shared among threads of the host. This is possible because NumPy releases Python's global
interpreter lock while it computes."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import ParamSpec, TypeVar

from hiresx.base.plural import plural
from hiresx.errors import HiresxError

# Number of nodes that are processed at a time: few enough that intermediate results stay in the cache of a core.
SLAB = 250_000
# Number of nodes processed at a time by functions with many intermediate arrays, which should all stay in the cache;
# and the least number of neighbouring lines of a piece.
PIECE, LEAST = 50_000, 8
# Largest number of threads for each core.
MOST_ON_A_CORE = 16
# Largest useful number of threads: beyond it the memory limits the speed.
MOST = 16

_Given = ParamSpec("_Given")
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def requested_threads(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the number of threads that the environment variable OMP_NUM_THREADS requests (of nested levels the
    outermost); None if it is not set or invalid. `environment`: the environment variables."""
    first = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None


def check_threads(count: int | None) -> None:
    """Raise HiresxError if the number of threads is far above the number of cores, or if OMP_NUM_THREADS is invalid.
    `count`: the number; None: the value of OMP_NUM_THREADS."""
    cores, name = len(os.sched_getaffinity(0)), f"--threads {count}"
    if count is None:
        text, count = os.environ.get("OMP_NUM_THREADS", "").strip(), requested_threads()
        name = f"OMP_NUM_THREADS={text}"
        if text and count is None:
            raise HiresxError(f"{name} is no number of threads", "give a whole number of 1 or more, or leave it unset")
    if count is not None and count > MOST_ON_A_CORE * cores:
        raise HiresxError(f"{name} is too many for {plural(cores, 'core')}", f"give {MOST_ON_A_CORE * cores} or fewer")


def planes(count: int, nodes: int) -> list[slice]:
    """Return slices that divide `count` planes of `nodes` nodes each into consecutive groups of about 250,000 nodes, so
    that intermediate results stay in the processor's cache."""
    depth = max(1, SLAB // max(nodes, 1))
    return [slice(lo, min(lo + depth, count)) for lo in range(0, count, depth)]


def lines_of(count: int, nodes: int) -> list[slice]:
    """Return slices that divide `count` grid lines of `nodes` nodes each into consecutive groups of about 50,000 nodes,
    but at least 8 lines."""
    depth = max(LEAST, PIECE // max(nodes, 1))
    ends = [*range(depth, count - LEAST + 1, depth), count]
    return [slice(lo, hi) for lo, hi in zip([0, *ends], ends, strict=False)]


def map_all(work: Callable[[_Item], _Found], items: Sequence[_Item]) -> list[_Found]:
    """Return the results of the function `work` for all items, in order, computed in parallel threads. If several calls
    fail, the error of the first item is raised."""
    return list(map_ahead(work, items))


def start_in_background(
    work: Callable[_Given, _Found], *args: _Given.args, **kwargs: _Given.kwargs
) -> Callable[[], _Found]:
    """Start `work(*args, **kwargs)` in a thread, and return a function that waits for it and returns its result or
    raises its error. The end of the process does not wait for the thread."""
    outcome: Future[_Found] = Future()

    def run() -> None:
        try:
            outcome.set_result(work(*args, **kwargs))
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True).start()
    return outcome.result


def map_ahead(work: Callable[[_Item], _Found], items: Iterable[_Item]) -> Iterator[_Found]:
    """Yield the results of the function `work` for all items, in order, while threads compute the next ones. The number
    of unfetched results is limited to about twice the number of threads, which bounds the memory."""
    count = min(requested_threads() or len(os.sched_getaffinity(0)), MOST)
    if count == 1 or (isinstance(items, Sequence) and len(items) == 1):
        yield from map(work, items)
        return
    with ThreadPoolExecutor(count) as pool:
        under_way = []
        try:
            for item in items:
                under_way.append(pool.submit(work, item))
                if len(under_way) > 2 * count:
                    yield under_way.pop(0).result()
            while under_way:
                yield under_way.pop(0).result()
        finally:
            for left in under_way:
                left.cancel()
