"""Launches on a GPU as one CUDA graph: what does not depend on each other side by side, and no Python between them."""

from collections.abc import Mapping
from typing import Any

from hiresx.device.call import Call, Calls
from hiresx.device.side_by_side import arranged, flat

# Streams that independent launches are spread over.
BRANCHES = 16
# Messages between ranks (kernels/signals.h) go beside all the rest: what other ranks wait for, and the waiting, ahead
# of what has not begun, by the highest priority that CUDA has; what has come, where there is room: what needs it comes
# later, and reading the memory of another GPU it would keep this one from its work.
URGENT = ("pack_signalled_", "raise_signals", "await_signals")
MESSAGES = (*URGENT, "unpack_signalled_", "rotate_signalled_")
FIRST = -100


class Graph:
    """The launches `calls` of `program`, made in order the first time, which loads the kernels, and recorded and made
    as one from then on. They go on `stream`, behind what is there: what does not depend on each other side by side,
    level by level, and messages between ranks beside the levels. `guard`: as of `Program.prepare`."""

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
        found = arranged(self._noted, _bytes, _is_message)
        groups: list[list[Call]] = [[] for _ in range(max(found.levels) + 1)]
        messages: list[list[list[Call]]] = [[] for _ in groups]
        for some, n, apart in zip(self._noted, found.levels, found.aside, strict=True):
            some = some if isinstance(some, list) else [some]
            if apart:
                messages[n].append(some)
            else:
                groups[n] += some
        sides = [self._cuda.Stream(non_blocking=True) for _ in range(BRANCHES - 1)]
        aside = {
            urgent: [self._cuda.Stream(non_blocking=True, priority=FIRST if urgent else None) for _ in range(BRANCHES)]
            for urgent in ((True, False) if any(found.aside) else ())
        }
        # Relaxed: other threads may copy what was fetched meanwhile.
        self._stream.begin_capture(self._cuda.runtime.streamCaptureModeRelaxed)
        try:
            self._record_all(groups, messages, found.awaited, sides, aside)
        finally:
            graph = self._stream.end_capture()
        return graph

    def _record_all(
        self,
        groups: list[list[Call]],
        messages: list[list[list[Call]]],
        awaited: Mapping[int, int],
        sides: list[Any],
        aside: Mapping[bool, list[Any]],
    ) -> None:
        """`groups` one behind the other on the stream, `messages` beside them on the streams `aside`, by whether they
        are urgent."""
        come: list[Any] = []  # when each message was done
        for n, (group, some) in enumerate(zip(groups, messages, strict=True)):
            done = self._moment(self._stream) if some else None
            for message in some:
                first, *others = aside[all(call.name.startswith(URGENT) for call in message)]
                for event in (done, *come[-1:]):
                    first.wait_event(event)
                self._record(message, first, others)
                come.append(self._moment(first))
            if n in awaited:
                self._stream.wait_event(come[awaited[n] - 1])
            self._record(group, self._stream, sides)
        if come:
            self._stream.wait_event(come[-1])

    def _record(self, group: list[Call], stream: Any, sides: list[Any]) -> None:
        """Launches that do not depend on each other, from `stream` on and back to it."""
        used = sides[: len(group) - 1] if group else []
        if used:
            fork = self._moment(stream)
            for side in used:
                side.wait_event(fork)
        branches = [stream, *used]
        for n, call in enumerate(group):
            self._program.launch_on(branches[n % len(branches)], self._guard, call)
        for side in used:
            stream.wait_event(self._moment(side))

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
