"""Launches on a GPU as one CUDA graph: independent launches run concurrently, without Python between launches."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hiresx.device.batches import BatchedLaunch, arrange_batches
from hiresx.device.call import Call, Calls
from hiresx.device.dependency_graph import flatten_calls

# The largest number of streams used during a capture.
BRANCHES = 64
# Messages between ranks (kernels/signals.h) keep their order, so that two ranks never wait for each other. Kernels that
# send or wait (URGENT) run before kernels that have not started yet, with the highest priority of CUDA. Kernels that
# unpack have no priority: their results are needed later, and reading another GPU's memory delays other kernels.
URGENT = ("pack_signalled_", "raise_signals", "await_signals")
MESSAGES = (*URGENT, "unpack_signalled_", "rotate_signalled_")
FIRST = -100
# Number of runs of launches without a guard before they are recorded as a graph, which takes the host the time of about
# five runs. Most launches that are not parts of recorded steps run two or three times between changes of the levels.
IN_ORDER = 4
# Batches must save at least this many launches to be worth the compilation of their wrappers.
LEAST = 8


class Graph:
    """The launches `calls` of `program`, made on `stream` after all work given to it before. `guard`: an array; no
    launch has an effect while its first item is negative. None: they always have.

    The first call, of launches without a guard the first `IN_ORDER` calls, makes the launches in order, which loads the
    kernels. Later calls make one CUDA graph, in which launches are batched where possible (hiresx.device.batches). If
    there are batches, the next call makes them in order, which loads their wrappers. Launches with a guard whose
    kernels or wrappers are loaded are not made in order: after a change of blocks the kernels are the same.
    """

    def __init__(self, cupy: Any, program: Any, calls: Calls, stream: Any, guard: Any = None):
        self._cuda, self._program, self._stream, self._guard = cupy.cuda, program, stream, guard
        self._noted = list(calls)
        self._calls = flatten_calls(self._noted)  # keeps the arrays alive
        self._left = IN_ORDER if guard is None else 1  # runs in order
        # The launches and batches, and for each one the numbers of the earlier ones that it waits for.
        self._launches: tuple[list[Any], list[list[int]]] | None = None
        self._graph: Any = None

    def __call__(self) -> None:
        if self._program.recorded is not None:
            self._program.recorded += self._noted
        elif self._graph is not None:
            self._graph.launch(self._stream)
        elif len(self._calls) < 2 or (self._left and not self._at_once(self._calls)):
            self._in_order(self._calls)
            self._left = max(self._left - 1, 0)
        elif self._launches is None and (several := self._arrange()) and not self._at_once(several):
            self._in_order(several)
        else:
            self._graph = self._capture()
            self._graph.launch(self._stream)

    def _in_order(self, launches: Sequence[Any]) -> None:
        for one in launches:
            self._launch(self._stream, one)
        self._program.loaded.update(map(_loads, launches))

    def _at_once(self, launches: Sequence[Any]) -> bool:
        """True if `launches` have a guard and need not be made in order, because all their kernels are loaded."""
        return self._guard is not None and self._program.loaded.issuperset(map(_loads, launches))

    def _arrange(self) -> list[Any]:
        """Form batches. Returns the launches if there are batches, else an empty list."""
        made, waits = arrange_batches(self._noted, self._program.shape, _first, _bytes, _is_message, LEAST)
        several = {id(one): one for one in made if isinstance(one, BatchedLaunch)}
        loaded = dict(zip(several, self._program.load_batches(several.values()), strict=True))
        found = [loaded.get(id(one), one) for one in made]
        self._launches = found, waits
        return found if loaded else []

    def _launch(self, stream: Any, one: Any) -> None:
        launch = self._program.launch_on if isinstance(one, Call) else self._program.launch_batch
        launch(stream, self._guard, one)

    def _capture(self) -> Any:
        # Relaxed mode: other threads may copy fetched data meanwhile.
        self._stream.begin_capture(self._cuda.runtime.streamCaptureModeRelaxed)
        try:
            self._record()
        finally:
            graph = self._stream.end_capture()
        return graph

    def _record(self) -> None:
        """Record each launch on a stream, so that it waits only for the launches on which it depends as long as there
        are free streams. Urgent launches have streams of their own."""
        assert self._launches is not None
        launches, waits = self._launches
        hurries = [isinstance(one, Call) and one.name.startswith(URGENT) for one in launches]
        on, awaited = choose_streams(hurries, waits)
        begin, streams = self._moment(self._stream), {0: self._stream}
        moments: dict[int, Any] = dict.fromkeys(n for some in awaited for n in some)
        for number, one in enumerate(launches):
            stream = streams.get(on[number])
            if stream is None:
                priority = FIRST if hurries[number] else 0
                stream = streams[on[number]] = self._cuda.Stream(non_blocking=True, priority=priority)
                if not waits[number]:
                    stream.wait_event(begin)
            for n in awaited[number]:
                stream.wait_event(moments[n])
            self._launch(stream, one)
            if number in moments:
                moments[number] = self._moment(stream)
        for branch, stream in streams.items():
            if branch:
                self._stream.wait_event(self._moment(stream))

    def _moment(self, stream: Any) -> Any:
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event


def choose_streams(urgent: Sequence[bool], waits: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Return the number of the stream on which each launch is recorded, and the launches of other streams for which it
    waits there. A launch uses a stream whose last launch it waits for anyway, else a new stream, of which there are up
    to `BRANCHES`. `urgent`: whether each launch is urgent; such launches have streams of their own. `waits`: for each
    launch the numbers of the earlier launches on which it depends."""
    # For each launch and stream, the last launch that is done when this launch is.
    done = np.full((len(waits) + 1, BRANCHES + 1), -1)
    last, of_urgent = np.full(BRANCHES + 1, -1), np.zeros(BRANCHES + 1, bool)
    count, on, awaited = 1, list[int](), list[list[int]]()
    for number, (hurry, of_call) in enumerate(zip(urgent, waits, strict=True)):
        own = done[number]
        if of_call:
            done[of_call].max(axis=0, out=own)
        alike = of_urgent[:count] == hurry
        free = np.flatnonzero(alike & (own[:count] >= last[:count]))
        if len(free):
            branch = int(free[last[free].argmax()])  # the latest one, so that a chain stays on one stream
        elif count < BRANCHES or not alike.any():
            branch, count = count, count + 1
            of_urgent[branch] = hurry
        else:
            those = np.flatnonzero(alike)
            branch = int(those[last[those].argmin()])
        own[:] = done[last[branch]]
        awaited.append([])
        for n in reversed(of_call):
            if n > own[on[n]]:  # neither the stream nor another of these launches waits for it
                awaited[-1].append(n)
                np.maximum(own, done[n], out=own)
        own[branch] = last[branch] = number
        on.append(branch)
    return on, awaited


def _loads(one: Any) -> Hashable:
    """Return what names the kernel of a launch or a batch."""
    return one.name if isinstance(one, Call) else one.entry


def _is_message(call: Call) -> bool:
    return call.name.startswith(MESSAGES)


def _first(array: Any) -> int:
    """Return the address of the first byte of an array on the GPU."""
    return int(array.data.ptr)


def _bytes(array: Any) -> tuple[int, int]:
    """Return the addresses of the first byte of an array on the GPU and of the byte after its last."""
    start = _first(array)
    if not array.size:
        return start, start
    return start, start + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
