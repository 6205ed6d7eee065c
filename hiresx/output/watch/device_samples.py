"""Samples of monitors that consist of a few numbers. The device computes them, and the host reads them while the device
computes the next steps."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from hiresx.device.interface import Calls
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.output.watch.sampling import Monitor
from hiresx.solver import Solver

# For each monitor what waits for its numbers.
_Fetched: TypeAlias = "dict[DeviceMonitor, Callable[[], np.ndarray]]"


class DeviceMonitor(Monitor):
    """Base class of monitors whose samples are numbers that kernels write to device memory. If `array` is None, a
    sample has `count` numbers, which lie in an array that all monitors share. Otherwise `array` is a device array of
    this monitor that holds them. `ghosts`: whether the kernels need the halos of the state. `deferred`: whether the
    host may read the numbers later."""

    count = 0
    array: Any = None
    ghosts = False
    deferred = True

    _samples: "DeviceSamples | None" = None

    def calls(self, numbers: Any) -> Calls:
        """Return the kernel launches that compute a sample of this monitor. They write to the device array `numbers`,
        float64 (`count`,), or to the attribute `array` if this monitor has one."""
        raise NotImplementedError

    def values(self, numbers: np.ndarray, time: float) -> Mapping[str, Any]:
        """Return a sample of this monitor, with a value for each column of its history, from the numbers that the
        device computed. `numbers`: the numbers of this rank, as the method `numbers` returns them. `time`: the time of
        the sample, in units of L / c_ref (length scale over sound speed). Called for each sample in order. All ranks
        must call this method."""
        raise NotImplementedError

    def due_after(self, step: int) -> bool:
        """Return whether a sample is due after step number `step`, if the interval is given in steps. The kernels of
        this sample can then be launched before the host waits for the step. False if the interval is given in time, or
        if the host must read the numbers at once."""
        return self.deferred and self._clock.due_after(step)

    def join(self, samples: "DeviceSamples") -> None:
        """Let `samples` compute the samples of this monitor together with those of other monitors. This monitor must be
        one of the monitors of `samples`."""
        self._samples = samples

    def numbers(self, solver: Solver) -> np.ndarray:
        """Compute the numbers of this rank from which a sample for the current state follows, and return them on the
        host: a float64 array. Its shape is (`count`,), where the attribute `count` is the number of numbers in a
        sample. If this monitor has a device array of its own, the attribute `array`, its shape is that of `array`."""
        if self._samples is None:
            self._samples = DeviceSamples(solver, [self])
        return self._samples.read(self)

    def measure(self, solver: Solver) -> Mapping[str, Any]:
        """Return a sample of this monitor for the current state, with a value for each column of its history. All ranks
        must call this method."""
        return self.values(self.numbers(solver), solver.time)

    def _take(self, solver: Solver) -> None:
        if self.deferred and self._samples is not None:
            self._samples.take(self)
        else:
            super()._take(solver)

    def add_sample(self, step: int, time: float, numbers: np.ndarray) -> None:
        """Append the sample after step `step`, at `time` in units of L / c_ref (length scale over sound speed), to the
        history. `numbers`: the numbers of this rank, as the method `numbers` returns them. All ranks must call this
        method."""
        self._add(step, time, self.values(numbers, time))

    def _deliver(self) -> None:
        if self._samples is not None:
            self._samples.deliver()

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint. Samples that are still being copied from the device are stored first. All
        ranks must call this method."""
        self._deliver()
        return super().capture()

    def finish(self, solver: Solver) -> None:
        """Store, at the end of a run, the samples that are still on the device, and close the history. An iteration
        towards steady flow first takes a sample of its last step. All ranks must call this method."""
        try:
            self._deliver()
        finally:
            super().finish(solver)
        self._samples = None  # it refers to this monitor


class DeviceSamples(Attachment):
    """The samples of all `monitors`, in one array on the device. One set of launches computes the numbers of all
    monitors that are due after a step, and one copy fetches them. The host stores them while the device computes the
    next steps. If the host knows beforehand which monitors are due, the launches and the copy follow the launches of
    the step, before the host waits for it. In the list of attachments this object must come after the monitors."""

    name = "samples on the device"

    def __init__(self, solver: Solver, monitors: Sequence[DeviceMonitor]):
        self._solver = solver
        ends = np.cumsum([0, *(monitor.count for monitor in monitors)]).tolist()
        self._numbers = solver.backend.zeros((max(ends[-1], 1),), "float64")
        self._places = {monitor: slice(*ends[n : n + 2]) for n, monitor in enumerate(monitors)}
        self._calls: dict[DeviceMonitor, Calls] = {}
        self._launches: dict[tuple[DeviceMonitor, ...], Callable[[], None]] = {}
        self._due: list[DeviceMonitor] = []
        self._coming: tuple[int, float, _Fetched] | None = None
        self._ahead: _Fetched = {}  # what was launched before the host waited for the steps
        for monitor in monitors:
            monitor.join(self)

    def take(self, monitor: DeviceMonitor) -> None:
        """Request that `after_step`, when it is next called, takes a sample of `monitor` together with the samples of
        other monitors."""
        self._due.append(monitor)

    def read(self, monitor: DeviceMonitor) -> np.ndarray:
        """Compute the numbers from which a sample of `monitor` for the current state follows, wait for them and return
        them on the host: a float64 array (`monitor.count`,) or, if `monitor.array` is set, an array of its shape."""
        self._launch([monitor])
        found = self._numbers[self._places[monitor]] if monitor.array is None else monitor.array
        return np.asarray(self._solver.backend.to_host(found))

    def steps_left(self, solver: Solver) -> int:
        """Return a number of steps that is never reached, since the monitors themselves say when their samples are
        due."""
        return MANY

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Compute those samples of the initial state, or of the state of the checkpoint in a restarted run, that
        monitors have requested in their method `begin`. The monitors must therefore begin first. All ranks must call
        this method."""
        self.after_step(solver)

    def launch_ahead(self, solver: Solver, step: int) -> None:
        """Launch the kernels of the samples that are due after step `step`, and the copy of their numbers, before the
        host waits for this step."""
        if due := [monitor for monitor in self._places if monitor.due_after(step)]:
            self._launch(due)
            self._ahead = self._fetch(due)

    def after_step(self, solver: Solver) -> None:
        """Take the samples that monitors have requested by `take` since the last call: launch their kernels, unless
        `launch_ahead` has done so, and begin to copy the numbers to the host. The method does not wait for them. All
        ranks must call it."""
        coming, self._ahead = self._ahead, {}
        if not self._due:
            return
        self.deliver()
        due, self._due = self._due, []
        if list(coming) != due or not solver.device_resident_steps.seen_ahead:
            self._launch(due)
            coming = self._fetch(due)
        self._coming = solver.steps, solver.time, coming
        solver.device_resident_steps.beside(self.deliver)

    def deliver(self) -> None:
        """Wait for the samples that are being copied to the host, and pass them to their monitors. All ranks must call
        this method."""
        if self._coming is None:
            return
        (step, time, coming), self._coming = self._coming, None
        for monitor, wait in coming.items():
            monitor.add_sample(step, time, wait())

    def _fetch(self, due: Sequence[DeviceMonitor]) -> _Fetched:
        """Start to copy the numbers of these monitors. Returns for each what waits for its own."""
        fetch, together = self._solver.backend.fetch, [monitor for monitor in due if monitor.array is None]
        waits = {monitor: fetch(monitor.array) for monitor in due if monitor.array is not None}
        if together:
            places = {monitor: self._places[monitor] for monitor in together}
            first = min(place.start for place in places.values())
            wait = fetch(self._numbers[first : max(place.stop for place in places.values())])
            for monitor, place in places.items():
                waits[monitor] = partial(_part, wait, slice(place.start - first, place.stop - first))
        return {monitor: waits[monitor] for monitor in due}

    def _launch(self, due: Sequence[DeviceMonitor]) -> None:
        launch = self._launches.get(tuple(due))
        if launch is None:
            for monitor in due:
                if monitor not in self._calls:
                    self._calls[monitor] = monitor.calls(self._numbers[self._places[monitor]])
            launch = self._solver.program.prepare([call for monitor in due for call in self._calls[monitor]])
            self._launches[tuple(due)] = launch
        if any(monitor.ghosts for monitor in due):
            self._solver.settle()
        launch()


def _part(wait: Callable[[], np.ndarray], place: slice) -> np.ndarray:
    return wait()[place]
