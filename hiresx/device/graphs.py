"""Launches on a GPU as one CUDA graph: what does not depend on each other side by side, and no Python between them."""

from typing import Any

from hiresx.device.call import Call, Calls
from hiresx.device.side_by_side import dependencies, flat

# Streams that launches are spread over while they are recorded, at most.
BRANCHES = 64
# Messages between ranks (kernels/signals.h) keep their order, so that no two ranks wait for each other. What others
# wait for, and the waiting, goes ahead of what has not begun, by the highest priority that CUDA has; what has come,
# where there is room: what needs it comes later, and reading another GPU's memory it would keep this one from its work.
URGENT = ("pack_signalled_", "raise_signals", "await_signals")
MESSAGES = (*URGENT, "unpack_signalled_", "rotate_signalled_")
FIRST = -100


class Graph:
    """The launches `calls` of `program`, made in order the first time, which loads the kernels, and recorded and made
    as one from then on. They go on `stream`, behind what is there. `guard`: as of `Program.prepare`."""

    def __init__(self, cupy: Any, program: Any, calls: Calls, stream: Any, guard: Any = None):
        self._cuda, self._program, self._stream, self._guard = cupy.cuda, program, stream, guard
        self._noted = list(calls)
        self._calls = flat(self._noted)  # their arrays are to stay
        self._made = False
        self._graph: Any = None

    def __call__(self) -> None:
        if self._program.noted is not None:
            self._program.noted += self._noted
        elif self._graph is not None:
            self._graph.launch(self._stream)
        elif self._made and len(self._calls) > 1:
            self._graph = self._recorded()
            self._graph.launch(self._stream)
        else:
            for call in self._calls:
                self._program.launch_on(self._stream, self._guard, call)
            self._made = True

    def _recorded(self) -> Any:
        # Relaxed: other threads may copy what was fetched meanwhile.
        self._stream.begin_capture(self._cuda.runtime.streamCaptureModeRelaxed)
        try:
            self._record()
        finally:
            graph = self._stream.end_capture()
        return graph

    def _record(self) -> None:
        """Each launch waits for those that it depends on and for no others, as long as there are streams for it: one
        goes on behind what it waits for anyway, else with a stream of its own. What is urgent has its own streams."""
        begin = self._moment(self._stream)
        streams, last, urgent = [self._stream], [-1], [False]  # last: the launch that each of them ends with
        moments: list[Any] = []
        before: list[int] = []  # of each launch a bit for every one that is done before it
        needed = dependencies(self._noted, _bytes, _is_message)
        for number, (call, waits) in enumerate(zip(self._calls, needed, strict=True)):
            done = sum(1 << n for n in waits)
            for n in waits:
                done |= before[n]
            hurry = call.name.startswith(URGENT)
            alike = [n for n, ahead in enumerate(urgent) if ahead == hurry]
            # the latest, so that a chain stays together
            free = [n for n in alike if last[n] < 0 or done >> last[n] & 1]
            branch = max(free, key=last.__getitem__, default=None)
            if branch is None and (len(streams) < BRANCHES or not alike):
                branch = len(streams)
                urgent.append(hurry)
                streams.append(self._cuda.Stream(non_blocking=True, priority=FIRST if hurry else 0))
                last.append(-1)
                if not waits:
                    streams[branch].wait_event(begin)
            if branch is None:
                branch = min(alike, key=last.__getitem__)
                done |= before[last[branch]] | 1 << last[branch]
            for n in waits:
                if n != last[branch]:
                    streams[branch].wait_event(moments[n])
            self._program.launch_on(streams[branch], self._guard, call)
            last[branch] = number
            before.append(done)
            moments.append(self._moment(streams[branch]))
        for stream in streams[1:]:
            self._stream.wait_event(self._moment(stream))

    def _moment(self, stream: Any) -> Any:
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event


def _is_message(call: Call) -> bool:
    return call.name.startswith(MESSAGES)


def _bytes(array: Any) -> tuple[int, int]:
    """Address of the first byte of an array on the GPU and of the one behind its last."""
    start = array.data.ptr
    if not array.size:
        return start, start
    return start, start + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
