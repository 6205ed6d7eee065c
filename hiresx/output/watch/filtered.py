"""Samples of the flow at nodes, each a weighted mean of the steps around it, which are summed on the device.

Four running means over the interval between samples (kernels/filter.h): a frequency f passes with sinc(f T)^4. What
would be taken for a tone at a quarter of the rate of samples or below comes with 38 dB less or more than a tone there;
what would be taken for a change of the mean, the multiples of the rate, does not come at all.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hiresx.case.monitors import Sampled
from hiresx.device.interface import Call
from hiresx.equations import equations
from hiresx.equations.gas import Gas
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.output.watch.gather import Nodes
from hiresx.output.watch.sampling import ROUND_OFF
from hiresx.solver import Solver

# Samples that are under way at a time, and intervals that go by until one is done.
SUMS, BEHIND = 4, 2


class FilteredNodes(Attachment):
    """The samples at `nodes` of all probes that sample at the times of `spec`.

    `samples` counts the intervals that have ended: with the n-th the sample at the end of the (n - 2)-th is done.
    `continued`: whether a run that goes on has what the one before it summed up.
    """

    def __init__(self, solver: Solver, spec: Sampled, nodes: Nodes):
        self._solver, self._nodes = solver, nodes
        self._every, self._every_time = spec.every, spec.every_time
        self.name = f"samples of {spec.every} steps" if spec.every else f"samples every {spec.every_time!r}"
        self.samples = 0
        self._variables = equations(solver.case).variables
        self._names = list(Gas.of(solver.case).primitive(np.ones((self._variables, 1))))
        self._interval = solver.backend.zeros((3,), "float64")
        self._parts = [_Part(solver, nodes, n, self._interval) for n in np.unique(nodes.states)]
        # Steps at which an interval began, and what was found then.
        self._step: int | None = None
        self._found: dict[str, np.ndarray] | None = None
        self.continued = self._restored = False
        self._leave: Any = None

    def steps_left(self, solver: Solver) -> int:
        return MANY

    def begin(self, solver: Solver, restarted: bool) -> None:
        if self._leave is not None:
            return
        begins, position = self._began()
        if not self._restored:
            self.samples, self._step, self._found = 0, solver.steps, None
            for part in self._parts:
                part.forget(position)
        self.continued, self._restored = self._restored, False
        self._put(begins)
        self._launch("look")
        self._leave = solver.look_at_steps([part.look for part in self._parts])

    def sample(self) -> dict[str, np.ndarray] | None:
        """At the end of an interval, once or more often: rho, u, v, w, p and scalars (m,) of the sample that is done by
        then, at the nodes as they were given; None where no interval has ended yet. Collective."""
        solver = self._solver
        if self._step != solver.steps:
            self._step = solver.steps
            self._launch("look")
            self._launch("next")
            self.samples += 1
            self._put(self._began()[0])
            self._found = self._together(0)
        return self._found

    def rest(self) -> list[dict[str, np.ndarray]]:
        """What the samples before the beginning of the interval and at it come to if the flow stays as it was when it
        was looked at last. Collective."""
        self._launch("rest")
        return [self._together(n) for n in range(BEHIND)]

    def capture(self) -> dict[str, Any]:
        rows = 2 + (1 + SUMS) * self._variables
        held = self._nodes.together(self._of_parts([part.held() for part in self._parts], rows))
        step = -1 if self._step is None else self._step
        return {"nodes": self._nodes.ids, "held": held, "samples": self.samples, "step": step}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Nodes that were not among those begin anew."""
        known, held = np.asarray(captured["nodes"]), np.asarray(captured["held"], dtype=float)
        wanted = self._nodes.ids[self._nodes.mine]
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        values = held[:, at]
        values[1, known[at] != wanted] = _UNSEEN
        for part in self._parts:
            part.take(values[:, part.chosen])
        self.samples, self._step, self._found = int(captured["samples"]), int(captured["step"]), None
        self._restored = True

    def finish(self, solver: Solver) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _began(self) -> tuple[float, float]:
        """When the interval began that the run is in, and the share of it that is over."""
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

    def _launch(self, name: str) -> None:
        self._solver.clock.put(self._solver.time, self._solver.dt)
        for part in self._parts:
            self._solver.program.run(getattr(part, name))

    def _together(self, sample: int) -> dict[str, np.ndarray]:
        own = self._of_parts([part.done(sample) for part in self._parts], self._variables)
        found = self._nodes.together(own)[:, self._nodes.given]
        return dict(zip(self._names, found, strict=True))

    def _of_parts(self, values: list[np.ndarray], rows: int) -> np.ndarray:
        """Of arrays (rows, nodes of a part) one of this rank's nodes."""
        found = np.empty((rows, len(self._nodes.mine)))
        for part, of_part in zip(self._parts, values, strict=True):
            found[:, part.chosen] = of_part
        return found


# The time last seen of a node that was not looked at.
_UNSEEN = -1.0


class _Part:
    """The nodes in `solver.states[n]`, which are the `chosen` of this rank's, what is summed up of them, and the
    launches: `look` at the state, the `next` interval, the `rest` of samples."""

    def __init__(self, solver: Solver, nodes: Nodes, n: int, interval: Any):
        state, backend, program = solver.states[n], solver.backend, solver.program
        self._backend = backend
        self.chosen = np.flatnonzero(nodes.states == n)
        count, variables = len(self.chosen), equations(solver.case).variables
        self._position, self._seen = (backend.zeros((1, count), "float64") for _ in range(2))
        self._held = backend.zeros((variables, count), "float64")
        self._sums, self._samples = (backend.zeros((SUMS - m, variables, count), "float64") for m in (0, 1))
        places = backend.to_device(nodes.places[self.chosen].astype(np.int32))

        def call(name: str, **arguments: Any) -> Call:
            return program.call(name, (count, 1, 1), count=count, position=self._position, sums=self._sums, **arguments)

        self.look = call(
            "filter_state", sv=state.variable_stride, places=places, q=state.q, clock=solver.clock.array,
            interval=interval, seen=self._seen, held=self._held,
        )  # fmt: skip
        self.next = call("filter_sample", sample=self._samples)
        self.rest = call("filter_rest", held=self._held, sample=self._samples)

    def done(self, sample: int) -> np.ndarray:
        """(variables, nodes) of one of the samples that `next` and `rest` leave."""
        return self._backend.to_host(self._samples[sample])

    def forget(self, position: float) -> None:
        """Nothing was looked at yet, at this position in an interval."""
        held = self.held()
        held[0], held[1] = position, _UNSEEN
        self.take(held)

    def held(self) -> np.ndarray:
        """All that is kept from step to step, (2 + (1 + SUMS) variables, nodes)."""
        return np.concatenate([self._backend.to_host(array).reshape(-1, len(self.chosen)) for array in self._kept])

    def take(self, held: np.ndarray) -> None:
        """What `held` gave."""
        first = 0
        for array in self._kept:
            rows = array.size // len(self.chosen)
            value = np.ascontiguousarray(held[first : first + rows]).reshape(array.shape)
            self._backend.copy(array, self._backend.to_device(value))
            first += rows

    @property
    def _kept(self) -> tuple[Any, ...]:
        return self._position, self._seen, self._held, self._sums
