"""Measurement of the time of each launch of a kernel during a run."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hiresx.device.configuration import Configuration
from hiresx.device.dependency_graph import launch_one_by_one
from hiresx.device.interface import Backend, Call, Calls, Program


class Launch(NamedTuple):
    """One launch of a kernel. `call`: the kernel with its arguments. `start` and `stop`: the events before and after
    it."""

    call: Call
    start: Any
    stop: Any

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self.call.name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments of the kernel, by name."""
        return self.call.arguments

    @property
    def direction(self) -> str | None:
        """The index direction "i", "j" or "k" along which the kernel works; None for a kernel that works along none."""
        sd = self.arguments.get("sd", 1 if self.kernel == "sweep_along" else None)
        if sd is None:
            return None
        others = [self.arguments[name] for name in ("s1", "s2", "sj", "sk") if name in self.arguments]
        if not others:  # of the kernel of listed segments, which knows no other direction
            q = self.arguments["q"]
            others = [stride // q.itemsize for stride in q.strides[-3:]]
        return "ijk"[0 if sd == 1 else 1 + sum(1 < other < sd for other in others)]

    @property
    def points_visited(self) -> int:
        """Number of nodes that the launch computes: the nodes of its index range, times the height of a column for a
        kernel whose threads each compute a column of nodes."""
        extent = self.call.extent or [self.arguments.get(name, 1) for name in ("nd", "n1", "n2")]
        if "chunk" in self.arguments:  # kernels of lines compute all nodes of each line
            lines = (self.arguments["rows"], extent[2]) if self.kernel == "sweep_along" else extent[:2]
            return int(math.prod(lines) * self.arguments["n"])
        return int(math.prod(extent) * self.arguments.get("height", 1))

    @property
    def seconds(self) -> float:
        """Time between the two events, in s."""
        return float(self.stop.elapsed_time(self.start))


class TimingBackend:
    """A backend that measures the time of each launch of its programs. While `launches` is a list, a `Launch` is
    appended to it for each launch; while it is None, nothing is measured."""

    def __init__(self, backend: Backend):
        self._backend = backend
        self.launches: list[Launch] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def compile(self, configuration: Configuration) -> "TimingProgram":
        """Compile the kernels into a program whose launches can be timed. `configuration`: the compile-time choices."""
        return TimingProgram(self, self._backend.compile(configuration))


class TimingProgram:
    """A program of a `TimingBackend`. It wraps `program` and measures the time of each of its launches."""

    def __init__(self, timed: TimingBackend, program: Program):
        self._timed, self.program = timed, program
        self.signatures = program.signatures

    def call(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> Call:
        """Return a launch of the kernel `name`, to be made later. `extent` and `arguments`: as in
        `hiresx.device.interface.Program.call`."""
        return self.program.call(name, extent, **arguments)

    def launch(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
        """Launch the kernel `name` now. The launch is timed while the `launches` of the backend are a list. `extent`
        and `arguments`: as in `Program.call`."""
        self.run(self.call(name, extent, **arguments))

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """Return a function that makes the launches `calls` one after the other, so that each is timed."""
        return launch_one_by_one(self, calls)

    def run(self, call: Call) -> None:
        """Make the launch `call`. It is timed while the `launches` of the backend are a list."""
        launches = self._timed.launches
        if launches is None:
            self.program.run(call)
            return
        start, stop = self._timed.event(), self._timed.event()
        start.record()
        self.program.run(call)
        stop.record()
        launches.append(Launch(call, start, stop))
