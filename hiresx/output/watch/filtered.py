"""Samples of the flow at nodes that are filtered against aliasing. Each sample is a weighted mean over the time steps
around it, summed on the device.

The filter consists of four running means over the interval T between samples (kernels/filter.h): a frequency f passes
with the factor sinc(f T)^4. Tones that appear at a quarter of the sampling rate or below by aliasing are damped by 38
dB or more relative to a tone at that frequency. Multiples of the sampling rate, which would appear as a change of the
mean, are removed."""

import math
import time as wall
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.case.monitors import SampledTable
from hiresx.device.interface import Call
from hiresx.equations import equations
from hiresx.equations.gas import Gas
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.output.watch.gather import SampledNodes
from hiresx.output.watch.sampling import ROUND_OFF, SampleTimes
from hiresx.solver import Solver
from hiresx.time.step_clock import MOST_SAMPLES

if TYPE_CHECKING:
    from hiresx.output.watch.monitors.probe import ProbeMonitor

# Number of samples that are summed at a time, and number of intervals until one is complete.
SUMS, BEHIND = 4, 2
# Largest number of samples that stay on the device until the host fetches them, largest number of their bytes, and
# longest time, in s.
STAY, BYTES, SECONDS = MOST_SAMPLES, 1 << 26, 0.25


class FilteredNodes(Attachment):
    """Filtered samples of the flow at `nodes`, for all probes with the sampling times of the table `spec` of the case.
    Each sample is a weighted mean over time steps.

    - `samples`: number of intervals that have ended. With the end of interval n, the sample at the end of interval n -
      2 is complete.
    - `continued`: whether a run that continues has the sums of the earlier run.
    - `readers`: probes that receive complete samples. They are called with the number of the first sample, and the flow
      (samples, variables, nodes), with the variables in the order of `names` and the nodes in the order of `columns`
      (m,).
    - `by_itself`: whether the device takes samples without the host."""

    def __init__(self, solver: Solver, spec: SampledTable, nodes: SampledNodes):
        self._solver, self._nodes = solver, nodes
        self._every, self._every_time = spec.every, spec.every_time
        self._times = SampleTimes(None, spec.every_time)
        self.name = f"samples of {spec.every} steps" if spec.every else f"samples every {spec.every_time!r}"
        self.samples = 0
        self._variables = equations(solver.case).variables
        self.names = list(Gas.of(solver.case).primitive(np.ones((self._variables, 1))))
        self._interval = solver.backend.zeros((3,), "float64")
        self.readers: list[ProbeMonitor] = []
        self._stay = max(1, min(STAY, BYTES // (8 * self._variables * len(nodes.ids))))
        self._parts = [_Part(solver, nodes, n, self._interval, self._stay) for n in np.unique(nodes.states)]
        self.columns = self._columns()[nodes.inverse]
        prepare, looks = solver.program.prepare, [part.look for part in self._parts]
        self._look, self._rest = prepare(looks), prepare([part.rest for part in self._parts])
        self._end = prepare([*looks, *(part.sample for part in self._parts)])
        # The step at which the interval began, and the wall time since which samples are only on the device.
        self._step: int | None = None
        self._waiting, self._since = 0, 0.0
        # Samples that are being fetched: the number of the first, their count, and the functions that wait for the
        # values of every part.
        self._coming: tuple[int, int, list[Callable[[], np.ndarray]]] | None = None
        self.continued = self._restored = self.by_itself = False
        self._leave: list[Callable[[], None]] = []

    def steps_left(self, solver: Solver) -> int:
        """Return a number of steps that is never reached, since the probes say when their samples are due."""
        return MANY

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Begin the weighted sums of the first filtered sample, before the first time step, or continue the sums that
        `restore` took from a checkpoint."""
        if self._leave:
            return
        begins, position = self._began()
        if not self._restored:
            self.samples, self._step = 0, solver.steps
            for part in self._parts:
                part.forget(position)
        self.continued, self._restored = self._restored, False
        self._times.last = self._step
        self._times.begin(solver)
        self._put(begins)
        self._launch(self._look)
        calls = [part.look for part in self._parts]
        end = None if self._every_time is None else solver.device_resident_steps.take_samples_of(self)
        if end is not None:
            calls += [part.sample for part in self._parts]
            self._leave.append(end)
        self.by_itself = end is not None
        self._leave.append(solver.look_at_steps(calls))

    def sample(self) -> None:
        """End the intervals between samples whose end this time step has reached, one or more, and begin the next
        interval. All ranks must call this method."""
        solver = self._solver
        self._times.mark(solver.steps, solver.time)
        if self._step == solver.steps:
            return
        self._make_room()
        solver.clock.put_sample(solver.time, solver.dt, self._began()[0], self._waiting)
        self._end()
        self._end_interval(solver.steps)

    # ---- samples that the device takes without the host

    @property
    def every(self) -> float:
        """Time between samples, in units of L / c_ref (length scale over sound speed). Only for samples at an interval
        of time."""
        assert self._every_time is not None
        return self._every_time

    @property
    def next(self) -> float:
        """Time at which the next interval between samples ends, in units of L / c_ref (length scale over sound
        speed)."""
        return self._times.next_time

    @property
    def room(self) -> int:
        """Number of further samples that fit into the device memory before the host must fetch them."""
        return self._stay - self._waiting

    @property
    def slot(self) -> int:
        """Index in the device memory at which the next sample is stored."""
        return self._waiting

    def record_samples(self, samples: Sequence[tuple[int, float]]) -> None:
        """Record samples that the device has taken without the host. `samples`: for each sample the number of time
        steps that the run had made and the time, in units of L / c_ref (length scale over sound speed)."""
        for step, time in samples:
            self._times.mark(step, time)
            self._end_interval(step)
            for reader in self.readers:
                reader.awaits(self.samples, step, time)
        if samples:
            self._make_room()

    # ----

    def _end_interval(self, step: int) -> None:
        """An interval ended with this step."""
        if not self._waiting:
            self._since = wall.monotonic()
        self._step = step
        self.samples += 1
        self._waiting += 1

    def _make_room(self) -> None:
        if self._waiting and self._due():
            self._begin_fetching()
            self._solver.device_resident_steps.beside(self._deliver)

    def fetch(self) -> None:
        """Copy all complete samples to the host and pass them to the probes. All ranks must call this method."""
        self._deliver()
        if self._waiting:
            self._begin_fetching()
            self._deliver()

    def _begin_fetching(self) -> None:
        self._deliver()
        first, count = self.samples - BEHIND - self._waiting + 1, self._waiting
        self._coming = first, count, [part.fetch(count) for part in self._parts]
        self._waiting = 0

    def _deliver(self) -> None:
        """Give the samples that are being fetched to the readers."""
        if self._coming is not None:
            (first, count, parts), self._coming = self._coming, None
            found = self._together(count, parts)
            for reader in self.readers:
                reader.take(first, found)

    def _due(self) -> bool:
        """True if there is little room left on the device, or samples have stayed there for long."""
        late = wall.monotonic() - self._since > SECONDS
        # if the device takes samples by itself, the next ones need free places
        full = self._waiting >= (self._stay // 2 if self.by_itself else self._stay)
        return full or bool(self._solver.comm.max(float(late)) > 0)

    def rest(self) -> np.ndarray:
        """Return the last samples, whose weighted means are not complete, computed as if the flow stayed constant from
        now on: an array (samples, variables, nodes) with the nodes of all ranks. All ranks must call this method."""
        self._launch(self._rest)
        return self._together(BEHIND, [part.fetch(BEHIND) for part in self._parts])

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the weighted sums of the samples that are not complete. Complete samples
        are passed to the probes before. All ranks must call this method."""
        self.fetch()
        rows = 2 + (1 + SUMS) * self._variables
        held = self._nodes.together(self._of_parts([part.stored_values() for part in self._parts], rows))
        step = -1 if self._step is None else self._step
        return {"nodes": self._nodes.ids, "held": held, "samples": self.samples, "step": step}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the sums of incomplete samples from a checkpoint. `captured`: the result of `capture`. The sums of
        nodes that are not in `captured` start again at zero."""
        known, held = np.asarray(captured["nodes"]), np.asarray(captured["held"], dtype=float)
        wanted = self._nodes.ids[self._nodes.mine]
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        values = held[:, at]
        values[1, known[at] != wanted] = _UNSEEN
        for part in self._parts:
            part.take(values[:, part.chosen])
        self.samples, self._step = int(captured["samples"]), int(captured["step"])
        self._restored = True

    def finish(self, solver: Solver) -> None:
        """Stop adding the flow to the weighted sums of the incomplete samples, which is otherwise done in every time
        step. This is called at the end of a run. The sums keep their values."""
        while self._leave:
            self._leave.pop()()

    def _began(self) -> tuple[float, float]:
        """Return the beginning of the current interval, and the share of it that is over."""
        time, steps = self._solver.time, self._solver.steps
        if self._every is not None:
            return 0.0, steps % self._every / self._every
        assert self._every_time is not None
        begins = self._every_time * math.floor(time / self._every_time + ROUND_OFF)
        return begins, max(0.0, (time - begins) / self._every_time)

    def _put(self, begins: float) -> None:
        share = 0.0 if self._every is None else 1 / self._every
        backend = self._solver.backend
        backend.copy(self._interval, backend.to_device(np.array([begins, self._every_time or 1.0, share])))

    def _launch(self, prepared: Callable[[], None]) -> None:
        self._solver.clock.put(self._solver.time, self._solver.dt)
        prepared()

    def _together(self, samples: int, fetched: list[Callable[[], np.ndarray]]) -> np.ndarray:
        """Gather `samples` samples of the parts of all ranks, as readers get them."""
        rows = samples * self._variables
        parts = [np.empty((rows, 0)), *(wait().reshape(rows, -1) for wait in fetched)]
        return self._nodes.gather_by_rank(np.concatenate(parts, axis=1)).reshape(samples, self._variables, -1)

    def _columns(self) -> np.ndarray:
        """The column of each of the nodes in the arrays of `_together`. Collective."""
        own = np.empty(len(self._nodes.mine))
        own[np.concatenate([np.empty(0, dtype=int), *(part.chosen for part in self._parts)])] = np.arange(len(own))
        return self._nodes.together(own[None] + self._nodes.before)[0].astype(np.int64)

    def _of_parts(self, values: list[np.ndarray], rows: int) -> np.ndarray:
        """One array of this rank's nodes, of the arrays (rows, nodes of a part) of its parts."""
        found = np.empty((rows, len(self._nodes.mine)))
        for part, of_part in zip(self._parts, values, strict=True):
            found[:, part.chosen] = of_part
        return found


# The time of a node that was not examined.
_UNSEEN = -1.0


class _Part:
    """The nodes in `solver.states[n]`, which are the `chosen` of this rank's, what is summed up of them, and the
    launches: `look` at the state, the `sample` with which an interval ends, `stay` of them at most until they are
    fetched, the `rest` of samples."""

    def __init__(self, solver: Solver, nodes: SampledNodes, n: int, interval: Any, stay: int):
        state, backend, program = solver.states[n], solver.backend, solver.program
        self._backend = backend
        self.chosen = np.flatnonzero(nodes.states == n)
        count, variables = len(self.chosen), equations(solver.case).variables
        self._position, self._seen = (backend.zeros((1, count), "float64") for _ in range(2))
        self._stored_samples = backend.zeros((variables, count), "float64")
        # `filter_rest` produces one sample less than there are sums.
        rows = SUMS, max(stay, SUMS - 1)
        self._sums, self._samples = (backend.zeros((n, variables, count), "float64") for n in rows)
        places = backend.to_device(nodes.places[self.chosen].astype(np.int32))

        def call(name: str, **arguments: Any) -> Call:
            return program.call(name, (count, 1, 1), count=count, position=self._position, sums=self._sums, **arguments)

        self.look = call(
            "filter_state", sv=state.variable_stride, places=places, q=state.q, clock=solver.clock.array,
            interval=interval, seen=self._seen, held=self._stored_samples,
        )  # fmt: skip
        self.sample = call("filter_sample", clock=solver.clock.array, interval=interval, samples=self._samples)
        self.rest = call("filter_rest", held=self._stored_samples, sample=self._samples)

    def fetch(self, samples: int) -> Callable[[], np.ndarray]:
        """Start to fetch the first `samples` samples that `sample` and `rest` have stored. The returned function waits
        for them and returns an array (samples, variables, nodes)."""
        return self._backend.fetch(self._samples[:samples])

    def forget(self, position: float) -> None:
        """Begin anew at this position in an interval."""
        held = self.stored_values()
        held[0], held[1] = position, _UNSEEN
        self.take(held)

    def stored_values(self) -> np.ndarray:
        """All values that are kept from step to step, (2 + (1 + SUMS) variables, nodes)."""
        return np.concatenate([self._backend.to_host(array).reshape(-1, len(self.chosen)) for array in self._arrays])

    def take(self, held: np.ndarray) -> None:
        """Restore what `held` returned."""
        first = 0
        for array in self._arrays:
            rows = array.size // len(self.chosen)
            value = np.ascontiguousarray(held[first : first + rows]).reshape(array.shape)
            self._backend.copy(array, self._backend.to_device(value))
            first += rows

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return self._position, self._seen, self._stored_samples, self._sums
