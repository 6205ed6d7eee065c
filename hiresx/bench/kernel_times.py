"""Times each kernel inside a stage, where other kernels run before and after it."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from hiresx.bench import rhs
from hiresx.bench.bytes_moved import reals
from hiresx.bench.rhs import device_seconds
from hiresx.device.configuration import Configuration
from hiresx.device.dependency_graph import launch_one_by_one
from hiresx.device.interface import Backend, Call, Calls, Program
from hiresx.solver import Solver, default_plan

# Bytes of each of two arrays whose copying tells the bandwidth: beyond any cache, and little of any memory.
COPIED = 512 * 2**20

# Rounds and points of the chains that tell the rate of arithmetic: some 20 ms of a core, or of a GPU of 30e12 a second.
CHAINS, GPU_CHAINS = (4096, 2**14), (40_000, 2**20)


class Launch(NamedTuple):
    """One launch of a kernel and events around it."""

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
        """i, j or k of a kernel that works along one direction."""
        sd = self.arguments.get("sd", 1 if self.kernel == "sweep_along" else None)
        if sd is None:
            return None
        others = [self.arguments[name] for name in ("s1", "s2", "sj", "sk") if name in self.arguments]
        return "ijk"[0 if sd == 1 else 1 + sum(1 < other < sd for other in others)]

    @property
    def points_visited(self) -> int:
        """Points: those of the range, times the height of the columns of a kernel that goes through columns."""
        extent = self.call.extent or [self.arguments.get(name, 1) for name in ("nd", "n1", "n2")]
        if "chunk" in self.arguments:  # of lines: as many nodes as they have
            lines = (self.arguments["rows"], extent[2]) if self.kernel == "sweep_along" else extent[:2]
            return math.prod(lines) * self.arguments["n"]
        return math.prod(extent) * self.arguments.get("height", 1)

    @property
    def seconds(self) -> float:
        """Time between the two events, in s."""
        return self.stop.elapsed_time(self.start)


class TimingBackend:
    """A backend whose programs time their launches. They are added to `launches` while that is a list."""

    def __init__(self, backend: Backend):
        self._backend = backend
        self.launches: list[Launch] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def compile(self, configuration: Configuration) -> "TimingProgram":
        """Compile the kernels into a program whose launches can be timed."""
        return TimingProgram(self, self._backend.compile(configuration))


class TimingProgram:
    """A program of the backend of `timed`, whose launches it times."""

    def __init__(self, timed: TimingBackend, program: Program):
        self._timed, self.program = timed, program
        self.signatures = program.signatures

    def call(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> Call:
        """A launch that is not made yet, as of the wrapped program."""
        return self.program.call(name, extent, **arguments)

    def launch(self, name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
        """Launch a kernel now; timed while the backend collects launches."""
        self.run(self.call(name, extent, **arguments))

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """Return a function that makes the launches one by one, so that each is timed."""
        return launch_one_by_one(self, calls)

    def run(self, call: Call) -> None:
        """Make the launch `call`; timed while the backend collects launches."""
        launches = self._timed.launches
        if launches is None:
            self.program.run(call)
            return
        start, stop = self._timed.event(), self._timed.event()
        start.record()
        self.program.run(call)
        stop.record()
        launches.append(Launch(call, start, stop))


def plans(device: Backend) -> list[str]:
    """The plan that `device` runs, and the paper's, whose kernels every backend can run."""
    return list(dict.fromkeys([default_plan(device.name), "decomposed"]))


def prepare(device: Backend, points: int, precision: str, plan: str | None = None) -> tuple[Solver, TimingBackend]:
    """Return a solver of the viscous flow of `hiresx.bench.rhs`, whose first stage is done, and the backend that times
    its launches."""
    timed = TimingBackend(device)
    solver = Solver(rhs.flow(points, True, precision), timed, plan=plan)
    solver.initialize()
    stage(solver)
    device.synchronize()
    return solver, timed


def stage_rows(solver: Solver, timed: TimingBackend, repeats: int) -> list[dict[str, Any]]:
    """One row for each kernel and direction of a stage, the time step and the norms:

    `kernel`, `direction` (i, j, k or None), `launches`, `ns_per_point` of all of them together (the median of
    `repeats`), `bytes_per_point` they must move at least and the `gb_per_s` that makes (None where that says nothing,
    see `hiresx.bench.bytes_moved`), and beside them the median `calibration_ns`.
    """
    samples: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    calibration: list[float] = []
    launches_of_stage: list[Launch] = []
    for _ in range(repeats):
        loop = rhs.calibrate(solver)
        calibration += [] if loop is None else [loop]
        timed.launches = launches_of_stage = []
        stage(solver)
        timed.launches = None
        timed.synchronize()
        for key, launches in _by_kernel(launches_of_stage).items():
            samples[key].append(sum(launch.seconds for launch in launches))
    item = np.dtype(solver.configuration.real).itemsize
    rows = []
    for (kernel, direction), launches in _by_kernel(launches_of_stage).items():
        seconds = median(samples[kernel, direction])
        moved = item * sum(launch.points_visited * reals(kernel, launch.arguments) for launch in launches)
        known = not math.isnan(moved)
        rows.append(
            {
                "kernel": kernel,
                "direction": direction,
                "launches": len(launches),
                "ns_per_point": 1e9 * seconds / solver.points,
                "bytes_per_point": moved / solver.points if known else None,
                "gb_per_s": moved / seconds / 1e9 if known else None,
                "calibration_ns": median(calibration) if calibration else None,
            }
        )
    return rows


def measure(device: Backend, points: int, precision: str, plan: str, repeats: int) -> list[dict[str, Any]]:
    """Measure every kernel of a stage by one plan in one precision. The rows are those of `stage_rows`, each with its
    `plan`, `precision` and `threads`."""
    beside = {"plan": plan, "precision": precision, "threads": getattr(device, "threads", None)}
    return [row | beside for row in stage_rows(*prepare(device, points, precision, plan), repeats)]


def _by_kernel(launches: list[Launch]) -> dict[tuple[str, str | None], list[Launch]]:
    found = defaultdict(list)
    for launch in launches:
        found[launch.kernel, launch.direction].append(launch)
    return found


def stage(solver: Solver) -> None:
    """Compute the time step, the first stage of a step and the norms."""
    solver.choose_dt()
    solver.stage(0)
    solver.norms()


def copy_bandwidth(device: Backend, repeats: int) -> float:
    """GB/s, read and written, of copying an array that no cache holds; on a CPU by one thread. The median of
    `repeats`."""
    source, target = device.zeros((COPIED // 8,)), device.zeros((COPIED // 8,))
    return 2 * COPIED / _median_seconds(device, lambda: device.copy(target, source), repeats) / 1e9


def arithmetic_rate(device: Backend, configuration: Configuration, repeats: int) -> float:
    """10^9 operations a second of independent chains of multiply-adds that wait for no memory (kernels/calibration.h),
    by the whole device, in the precision of the `configuration`. The median of `repeats`."""
    program = device.compile(configuration)
    rounds, points = CHAINS if hasattr(device, "threads") else GPU_CHAINS
    result = device.zeros((points,), configuration.real)

    def work() -> None:
        program.launch("multiply_adds", (points, 1, 1), count=rounds, result=result)

    return 16 * rounds * points / _median_seconds(device, work, repeats) / 1e9


def _median_seconds(device: Backend, work: Callable[[], None], repeats: int) -> float:
    """Seconds that `work` takes the device, after it was done once: the median of `repeats`."""
    work()
    return median(device_seconds(device, work) for _ in range(repeats))
