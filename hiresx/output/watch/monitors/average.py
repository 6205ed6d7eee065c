"""`[average]`: time averages of the whole flow, on the device, and their file averages.nc."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.notify import notify
from hiresx.case import Case
from hiresx.case.monitors import Average as Spec
from hiresx.decomposition.held_arrays import LazyArray, Piece, sizes
from hiresx.decomposition.homogeneous import collapse_box
from hiresx.device.averaging import BITS, BUDGETS, kinds, names, quantities
from hiresx.device.interface import Call, Calls
from hiresx.equations import equations
from hiresx.grid.blocks import Block, slices, whole_box
from hiresx.grid.cutting import within
from hiresx.mpi.background import JointWriter
from hiresx.output.fields import block_neighbours
from hiresx.output.saved import files
from hiresx.output.saved.attachment import Attachment
from hiresx.output.saved.places import IndexBox, LocalRegion
from hiresx.output.watch.averages import Averages
from hiresx.output.watch.line_averages import LineAverages
from hiresx.output.watch.sampling import SampleTimes
from hiresx.output.watch.velocities import Velocities
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

FILE = "averages.nc"


def build(case: Case, simulation: WatchedRun) -> list[Attachment]:
    """Return the monitor of time averages of the run `simulation` in a list, which is empty if the case has no table
    `[average]`."""
    if case.average is None:
        return []
    return [AverageMonitor(case.average, simulation.solver, simulation.out)]


class AverageMonitor(Attachment):
    """Monitor of the Reynolds and Favre means and second moments, computed on the device. Each rank computes the
    averages at its nodes. With the key `over`, the averages are also taken along grid lines, and each rank has the
    averages over the whole lines that pass through its nodes.

    A sample is weighted with the time since the previous sample (with local time steps: with the number of steps), from
    `start` or the beginning of the run on. `spec`: the table [average]. `out`: the run directory, or None."""

    name = "averages"

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        self._spec, self._solver, self._path = spec, solver, None if out is None else out / FILE
        self._kinds, self._over = kinds(spec), "".join(sorted(spec.over))
        self._scalars = equations(solver.case).scalars
        self._clock = SampleTimes(spec.every, spec.every_time)
        output = solver.case.output
        self._writing = SampleTimes(output.every_steps, output.every_time)
        self._writer = JointWriter(solver.comm, outstanding=1)
        self._file: Averages | None = None
        self._begun = False
        self._since: float | None = None
        self._weight = dict.fromkeys(self._kinds, 0.0)
        self._budget = next((kind for kind in self._kinds if kind in BUDGETS), None)
        self._velocities = Velocities(solver) if self._budget else None
        self._lines = LineAverages(solver, spec.over, self._kinds, self._velocities) if spec.over else None
        # All kinds of a part are in one array, one after the other.
        if self._lines is not None:
            self._means = self._lines.zeros()
        else:
            count = quantities(self._kinds, self._scalars)
            self._means = [solver.backend.zeros((count, *state.block.x.shape)) for state in solver.states]
        self._sums: dict[str, list[Any]] = {}
        first = 0
        for kind in self._kinds:
            last = first + quantities([kind], self._scalars)
            self._sums[kind] = [array[first:last] for array in self._means]
            first = last
        self._fill = None if self._velocities is None else solver.program.prepare(self._velocities.calls)
        # Share of a sample in the averages of each kind, on the device, and the launches of a sample.
        self._shares = solver.backend.zeros((len(self._kinds),), "float64")
        self._launch: Callable[[], None] | None = None

    @property
    def next_time(self) -> float:
        """The time, in units of L / c_ref (length scale over sound speed), beyond which the next time step must not go,
        since a sample is due then. Infinite if samples are not taken at an interval of time."""
        return self._clock.next_time

    @property
    def bytes(self) -> int:
        """Device memory for the averages and for intermediate results of a sample, in bytes."""
        return sum(array.nbytes for array in self._means) + (0 if self._lines is None else self._lines.bytes)

    def _now(self, solver: Solver) -> float:
        return float(solver.steps) if solver.case.time.local else solver.time

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Prepare the file of averages and take the first sample. `restarted`: whether the run continues from a
        checkpoint; if not, the file of an earlier run is removed."""
        if self._begun:
            return
        self._begun = True
        path = self._path
        if path is not None:
            if not restarted:
                files.on_root(solver.comm, lambda: files.remove([path]))  # of another run
            case, unit = solver.case.model_dump(mode="json"), "steps" if solver.case.time.local else "L / c_ref"
            blocks: Sequence[Block] = solver.decomposition.blocks
            known = block_neighbours.encode_connections(solver.decomposition.connections)
            of_blocks = None
            if self._lines is not None:
                blocks = [b.part(b.name, collapse_box(whole_box(b.size), self._spec.over)) for b in blocks]
                known, of_blocks = "", self._lines.directions
            self._file = Averages(
                path, solver.comm, blocks, self._kinds, case, self._spec.start, unit, known, of_blocks
            )  # fmt: skip
        self._clock.begin(solver)
        self._writing.begin(solver)
        self._writing.last = solver.steps
        if self._since is None:
            self._since = self._now(solver)
        self._sample(solver)

    def steps_left(self, solver: Solver) -> int:
        """Return the number of time steps until a sample or a file of averages is due. Samples and files at an interval
        of time do not count (`next_time` has their time); if neither has an interval in steps, the number is one that
        is never reached."""
        # Averages are written when fields are written; steps end at these times anyway.
        return min(self._clock.steps_left(solver), self._writing.steps_left(solver))

    def after_step(self, solver: Solver) -> None:
        """Add a sample to the averages and write their file, if these are due. All ranks must call this method."""
        self._writer.advance()
        self._sample(solver)
        if self._writing.due(solver):
            self._write(solver)

    def _sample(self, solver: Solver) -> None:
        if not self._clock.due(solver):
            return
        now = self._now(solver)
        weight = now - max(now if self._since is None else self._since, self._spec.start)
        self._since = now
        if weight <= 0:
            return
        if self._velocities is not None:
            solver.settle()
        if self._lines is not None:  # all kinds have the same weight
            if self._fill is not None:
                self._fill()
            before = self._weight[self._kinds[0]]
            self._weight = dict.fromkeys(self._kinds, before + weight)
            self._lines.sample(self._means, before / weight)
            return
        if self._launch is None:
            self._launch = solver.program.prepare(self._calls(solver))
        self._weight = {kind: before + weight for kind, before in self._weight.items()}
        shares = np.array([weight / total for total in self._weight.values()])
        solver.backend.write(self._shares, shares)
        self._launch()

    def _calls(self, solver: Solver) -> Calls:
        """Return the launches of a sample. One kernel computes the Reynolds and the Favre averages, if their weights
        are equal; they differ if a run continues one kind alone."""
        moments = [kind for kind in self._kinds if kind != self._budget]
        alike = len({self._weight[kind] for kind in moments}) == 1
        groups = [moments] if alike else [[kind] for kind in moments]
        calls: list[Call | list[Call]] = [] if self._velocities is None else [*self._velocities.calls]
        for n, state in enumerate(solver.states):
            ni, nj, nk = state.size
            nodes = state.place | {
                "sv": state.variable_stride, "q": state.q, "width": ni, "height": nj, "count": ni * nj * nk,
            }  # fmt: skip
            if self._velocities is not None and self._budget is not None:  # it needs the other averages of before
                name, given = f"average_{self._budget}", nodes | self._velocities.arguments(state)
                sums = {kind: self._sums[kind][n] for kind in moments} | {"mean": self._sums[self._budget][n]}
                calls.append(solver.program.call(name, state.size, **given, share=self._share(self._budget), **sums))
            for group in groups:
                mean, kinds_ = self._means[n] if alike else self._sums[group[0]][n], sum(BITS[kind] for kind in group)
                given = nodes | {"kinds": kinds_, "share": self._share(group[0]), "mean": mean}
                calls.append(solver.program.call("average_moments", state.size, **given))
        return calls

    def _share(self, kind: str) -> Any:
        n = self._kinds.index(kind)
        return self._shares[n : n + 1]

    def fields(self, n: int) -> dict[str, dict[str, np.ndarray]]:
        """Return the averages at the nodes of a box that this rank computes, by kind and name: {"reynolds": {name: (nk,
        nj, ni)}, "favre": ...}. `n`: index of the box in `solver.states`. Both kinds have means and the second moments
        of fluctuations, such as u_v; in "favre", "rho" and "p" are the unweighted means. If the case asks for budgets,
        "budget" or "stress_budgets" have the averages from which they are computed (`hiresx.device.averaging.BUDGETS`).
        If averages are also taken over index directions, the arrays have one node along these."""
        found = {
            kind: dict(zip(names(kind, self._scalars), self._solver.backend.to_host(arrays[n]), strict=True))
            for kind, arrays in self._sums.items()
        }
        if favre := found.get("favre"):
            favre["p"] = favre["rho"] * favre["T"] / self._solver.case.gas.gamma
        return found

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the averages and their weights. Waits until the file of averages is
        written. All ranks must call this method."""
        self._writer.drain()
        found: dict[str, Any] = {
            "since": -1.0 if self._since is None else self._since,
            "last": -1 if self._clock.last is None else self._clock.last,
            "start": self._spec.start,
            "over": self._over,
        }
        for kind, weight in self._weight.items():
            found[f"{kind}.weight"] = weight
            if weight > 0 and self._lines is not None:
                found |= self._gather(kind, self._lines)
            elif weight > 0:
                found[kind] = [
                    Piece(f"{kind}.{state.part.whole}", state.part.box, self._later(array))
                    for state, array in zip(self._solver.states, self._sums[kind], strict=True)
                ]
        return found

    def _gather(self, kind: str, lines: LineAverages) -> dict[str, np.ndarray]:
        """Return the averages of whole blocks, the same on all ranks. Collective."""
        mine = [
            (self._solver.states[n].part.whole, lines.boxes[n], self._solver.backend.to_host(self._sums[kind][n]))
            for n in lines.owned
        ]
        found = {}
        for n, block in enumerate(self._solver.decomposition.blocks):
            shape = sizes(collapse_box(whole_box(block.size), self._spec.over))
            found[f"{kind}.{n}"] = np.empty((len(names(kind, self._scalars)), *shape))
        for whole, box, array in (one for theirs in self._solver.comm.allgather(mine) for one in theirs):
            found[f"{kind}.{whole}"][(slice(None), *slices(box))] = array
        return found

    def _later(self, array: Any) -> LazyArray:
        return LazyArray(array.shape, np.float64, lambda: self._solver.backend.to_host(array))

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Continue the averages of a checkpoint. `captured`: the result of `capture`. An average that the checkpoint
        does not have, or has with another start time or other directions, begins again at the present time. If the data
        of the budget are missing, all averages begin again, because budget and moments must have the same samples. If
        averages are also taken over index directions (key `over`), all averages begin again as soon as one must."""
        self._begun, self._launch = False, None
        self._since = None if captured["since"] < 0 else float(captured["since"])
        self._clock.last = None if captured["last"] < 0 else int(captured["last"])
        together = self._kinds if self._lines is not None else [self._budget] if self._budget else []
        anew = (captured["start"], captured.get("over", "")) != (self._spec.start, self._over) or any(
            f"{kind}.weight" not in captured for kind in together
        )
        known = any(captured.get(f"{kind}.weight", 0.0) > 0 for kind in self._kinds)
        if anew and known and self._solver.comm.root:
            notify(
                "the averages begin anew: those of the checkpoint have another average.start or average.over, or lack "
                "what the budget needs"
            )
        for kind in self._kinds:
            weight = 0.0 if anew else captured.get(f"{kind}.weight", 0.0)
            self._weight[kind] = float(weight)
            for n, (state, array) in enumerate(zip(self._solver.states, self._sums[kind], strict=True)):
                value, name = np.zeros(array.shape), f"{kind}.{state.part.whole}"
                if weight > 0 and self._lines is not None:
                    value = captured[name][(slice(None), *slices(self._lines.boxes[n]))]
                elif weight > 0:
                    value = captured[kind](name, state.part.box)
                self._solver.backend.copy(array, self._solver.backend.to_device(value))

    def finish(self, solver: Solver) -> None:
        """Write the last averages, also after a failure of the run, and wait until the file is complete."""
        self._begun = False
        try:
            if not self._writer.has_failed:
                self._write(solver)
        finally:
            self._writer.drain()

    def _finite(self) -> bool:
        """True if the averages are finite on all ranks."""
        mine = all(bool(np.isfinite(array).all()) for array in self._means)
        return bool(self._solver.comm.min(mine))

    def _write(self, solver: Solver) -> None:
        # If an invalid state has reached the averages, the earlier file is kept.
        if self._file is None or not any(self._weight.values()) or not self._finite():
            return
        regions: dict[int, list[LocalRegion]] = {}
        for n in range(len(solver.states)) if self._lines is None else self._lines.owned:
            part, block = solver.states[n].part, solver.states[n].block
            whole, box = whole_box(solver.decomposition.blocks[part.whole].size), part.box
            if self._lines is not None:
                whole, box = collapse_box(whole, self._spec.over), self._lines.boxes[n]
                block = block.part(block.name, within(part.box, box))
            place = IndexBox(sizes(whole), triple(reversed(box)))
            regions.setdefault(part.whole, []).append(self._file.region(block, place, self.fields(n)))
        numbers = {"time": solver.time, "step": solver.steps, "averaged_over": max(self._weight.values())}
        self._writer.submit(self._file.moment(regions, numbers))
