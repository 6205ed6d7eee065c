"""The time in seconds that each part of a step takes, measured with events of the backend."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import TypeAlias

from hiresx.device.interface import Backend, Event

# The number of event pairs kept before they are read: reading waits for the device, so it is not done every step.
PENDING = 2000

# If steps can be timed as a whole, one in this many is timed by parts. The first of these steps of a solver arranges
# all of its launches. With a smaller number this would take noticeable time if levels follow the flow, whose launches
# change every few steps.
SAMPLED = 64

# Parts that are timed within another part.
_NOTHING = nullcontext()

# The name of a timed part, its start and its end.
_Entry: TypeAlias = tuple[str, Event, Event]


class Stopwatch:
    """Measures the seconds of each part of a step. `with stopwatch("inviscid"): ...` adds to `seconds["inviscid"]` when
    `collect` has read the events.

    If `within` is true, a part inside another part is counted as that other part. If `together` is true, the current
    step is timed as a whole. `seconds` divides the time of such steps among the parts, in proportion to the steps that
    were timed by parts.
    """

    def __init__(self, backend: Backend):
        self._backend = backend
        self._pending: list[_Entry] = []
        self._free: list[Event] = []
        self._seconds: dict[str, float] = defaultdict(float)
        self._steps = 0
        self.together = False
        self.within = False

    def __call__(self, name: str) -> AbstractContextManager[None]:
        if self.within:
            return _NOTHING
        return _Span(self, self._pending, "" if self.together else name, self._event(), self._event())

    @contextmanager
    def step(self, can_be_one: bool) -> Iterator[None]:
        """Return a context manager that times one time step. `can_be_one`: whether the step may be timed as a whole; if
        so, only the first and every 64th step after it are timed part by part."""
        self.together = can_be_one and self._steps % SAMPLED > 0
        self._steps += 1
        try:
            yield
        finally:
            self.together = False

    def _event(self) -> Event:
        return self._free.pop() if self._free else self._backend.event()

    def collect(self, everything: bool = False) -> None:
        """Add the measured times of finished parts of steps to their sums, which waits for the device. Does nothing if
        `everything` is false and few times are outstanding."""
        if not everything and len(self._pending) < PENDING:
            return
        self._backend.synchronize()
        for name, start, stop in self._pending:
            self._seconds[name] += stop.elapsed_time(start)
            self._free += [start, stop]
        self._pending.clear()

    @property
    def seconds(self) -> dict[str, float]:
        """The measured seconds by the name of the part of a step. The time of steps that were timed as a whole is
        divided among the parts in proportion."""
        self.collect(everything=True)
        found = dict(self._seconds)
        together = found.pop("", 0.0)
        apart = sum(found.values())
        return {name: seconds + together * seconds / (apart or 1.0) for name, seconds in found.items()}

    def reset(self) -> None:
        """Discard all times measured so far."""
        self.collect(everything=True)
        self._seconds.clear()
        self._steps = 0


class _Span:
    """A timed part. A part that ends with an exception is not counted. It is a class because a generator would take as
    long as a small task."""

    __slots__ = ("_entry", "_pending", "_stopwatch")

    def __init__(self, stopwatch: Stopwatch, pending: list[_Entry], name: str, start: Event, stop: Event):
        self._stopwatch, self._pending, self._entry = stopwatch, pending, (name, start, stop)

    def __enter__(self) -> None:
        self._stopwatch.within = True
        self._entry[1].record()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stopwatch.within = False
        if kind is None:
            self._entry[2].record()
            self._pending.append(self._entry)
