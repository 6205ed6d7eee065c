"""Launches on a GPU as one CUDA graph: what does not depend on each other side by side, and no Python between them."""

from typing import Any

from hiresx.device.call import Call, Calls
from hiresx.device.side_by_side import flat, levels

# Streams that independent launches are spread over.
BRANCHES = 16


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
        level = levels(self._noted, _bytes)
        grouped: list[list[Call]] = [[] for _ in range(max(level) + 1)]
        for call, n in zip(self._calls, level, strict=True):
            grouped[n].append(call)
        sides = [self._cuda.Stream(non_blocking=True) for _ in range(BRANCHES - 1)]
        # Relaxed: other threads may copy what was fetched meanwhile.
        self._stream.begin_capture(self._cuda.runtime.streamCaptureModeRelaxed)
        try:
            for group in grouped:
                self._record(group, sides)
        finally:
            graph = self._stream.end_capture()
        return graph

    def _record(self, group: list[Call], sides: list[Any]) -> None:
        """Launches that do not depend on each other."""
        used = sides[: len(group) - 1]
        if used:
            fork = self._moment(self._stream)
            for side in used:
                side.wait_event(fork)
        branches = [self._stream, *used]
        for n, call in enumerate(group):
            self._program.launch_on(branches[n % len(branches)], self._guard, call)
        for side in used:
            self._stream.wait_event(self._moment(side))

    def _moment(self, stream: Any) -> Any:
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event


def _bytes(array: Any) -> tuple[int, int]:
    """Address of the first byte of an array on the GPU and of the one behind its last."""
    start = array.data.ptr
    if not array.size:
        return start, start
    return start, start + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
