"""`[conservation]`: volume integrals of the conserved quantities, their fluxes through the boundaries, and sources of
the sponges. With levels of refinement it also records the change of the integrals that fluxes and sources do not
explain."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Conservation as Spec
from hiresx.decomposition.quadrature import face_weights
from hiresx.device.interface import Calls
from hiresx.grid.patched import PATCHED
from hiresx.output.watch.columns import ColumnSums, all_volumes, dimension, level_weights, pad
from hiresx.output.watch.device_samples import DeviceMonitor
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.output.watch.watched_surface import FaceNodes, WatchedSurface, mask
from hiresx.solver import Solver

CONSERVED = ("mass", "momentum_x", "momentum_y", "momentum_z", "energy")
_SCALES = ("rho_ref", *("rho_ref c_ref",) * 3, "rho_ref c_ref^2")


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return the monitor of conserved integrals of the run `simulation` in a list, which is empty if the case has no
    table `[conservation]`."""
    if case.conservation is None:
        return []
    return [ConservationMonitor(case.conservation, simulation.solver, simulation.out)]


class ConservationMonitor(DeviceMonitor):
    """Monitor of the volume integrals of mass, momentum and energy. `spec`: the table [conservation]. It has a column
    for each quantity, for each flux out through a boundary (<quantity>_flux_<boundary>), and with sponges for each
    source (<quantity>_source). With levels of refinement, <quantity>_defect is the change since the first sample minus
    the change by fluxes and sources, which are integrated between samples by the trapezoidal rule."""

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        decomposition = solver.decomposition
        boundaries = list(solver.case.boundary)
        weights = level_weights(solver, kept=True)
        # The end of a level is not a boundary.
        patches = [p for p in decomposition.patches if weights is None or p.condition.type != PATCHED]
        patches += decomposition.step_edges
        # Patched connections of the grid need no table in the case.
        for patch in patches:
            boundaries += [patch.condition] if all(c is not patch.condition for c in boundaries) else []
        names = _names(boundaries)
        here, faces, groups = {state.part.whole for state in solver.states}, [], set()
        for patch in patches:
            group = next(n for n, c in enumerate(boundaries) if c is patch.condition)
            groups.add(group)
            if patch.block in here:
                if weights is None:
                    own = face_weights(decomposition, patch.block, patch.face, kept=True)
                else:
                    own = weights.faces[patch.block, patch.face]
                own = own * mask(decomposition, patch.block, patch.face, patch.range)
                faces.append(FaceNodes(patch.block, patch.face, own, group, patch.condition.kernel == "reflect"))
        self._surface = WatchedSurface(solver, faces, len(names))
        # Boundaries that are periodic, or normal to a direction with one node, have no flux.
        self._groups = sorted(groups)
        self._names = [names[group] for group in self._groups]

        scale = dimension(solver) - 1
        volume, area = ("L", "L^2", "L^3")[scale], ("", " L", " L^2")[scale]
        columns = [
            Column(name, f"integral of {name}", f"{scale} {volume}")
            for name, scale in zip(CONSERVED, _SCALES, strict=True)
        ]
        for boundary in self._names:
            columns += [
                Column(f"{name}_flux_{boundary}", f"{name} leaving through {boundary}", f"{scale} c_ref{area}")
                for name, scale in zip(CONSERVED, _SCALES, strict=True)
            ]
        self._has_sponges = bool(solver.comm.max(len(solver.sponges)))
        if self._has_sponges:
            columns += [
                Column(f"{name}_source", f"{name} added by the sponges", f"{scale} c_ref{area}")
                for name, scale in zip(CONSERVED, _SCALES, strict=True)
            ]
        self._defect = None if weights is None else _Defect()
        if self._defect is not None:
            columns += [
                Column(f"{name}_defect", f"{name} that appeared beside fluxes and sources", f"{scale} {volume}")
                for name, scale in zip(CONSERVED, _SCALES, strict=True)
            ]
        super().__init__(solver.comm, "conservation", "conservation", columns, spec.every, spec.every_time, out)
        volumes_of = []
        self._sponges: dict[int, tuple[Any, np.ndarray]] = {}
        of_parts = all_volumes(solver, weights, kept=True)
        for n, (state, counted) in enumerate(zip(solver.states, of_parts, strict=True)):
            volumes_of.append(pad(solver, state, counted))
            self._add_sponges(solver, n, counted)
        self._arguments = [
            {"weight": counted, "other": self._sponges.get(n, (counted,))[0], "both": int(n in self._sponges)}
            for n, counted in enumerate(volumes_of)
        ]
        self._totals = ColumnSums(solver, (2 if self._sponges else 1) * len(CONSERVED))
        self.count = self._totals.count + len(CONSERVED) * self._surface.chunks
        self.ghosts = self._surface.ghosts

    def _add_sponges(self, solver: Solver, n: int, volume: np.ndarray) -> None:
        """Rate and goal of all sponges of a part as one: the source is the integral of goal - rate q."""
        rate, goal = np.zeros(volume.shape), np.zeros(len(CONSERVED))
        for layer in solver.sponges:
            if layer.state is solver.states[n]:
                share = solver.backend.to_host(layer.sigma).astype(np.float64) * volume[layer.box]
                rate[layer.box] += share
                wanted = solver.backend.to_host(layer.goal).astype(np.float64)
                goal += wanted * share.sum() if wanted.ndim == 1 else (wanted * share).sum(axis=(1, 2, 3))
        if rate.any():
            self._sponges[n] = pad(solver, solver.states[n], rate), goal

    def calls(self, numbers: Any) -> Calls:
        """Return the kernel launches that sum the integrals and boundary fluxes over this rank's nodes and write the
        sums to the device array `numbers`, float64 (`count`,)."""
        count = self._totals.count
        totals = self._totals.calls("column_totals", self._arguments, numbers[:count])
        return [*totals, *self._surface.sum_calls("face_flux_sums", numbers[count:])]

    def values(self, numbers: np.ndarray, time: float) -> dict[str, float]:
        """Return the integrals of the conserved variables, the fluxes through the boundaries, the sources of sponges
        and the defects of conservation, by column, for the sample at `time`, in units of L / c_ref (length scale over
        sound speed). `numbers` (count,): the sums that the launches `calls` have computed on this rank. All ranks must
        call this method."""
        totals, source = np.zeros((2, len(CONSERVED)))
        for n, sums in enumerate(self._totals.by_part(numbers[: self._totals.count])):
            totals += sums[: len(CONSERVED)]
            if n in self._sponges:
                source += self._sponges[n][1] - sums[len(CONSERVED) :]
        fluxes = self._surface.by_group(numbers[self._totals.count :], len(CONSERVED))
        totals, source, *through = self._comm.sum(np.stack([totals, source, *fluxes]))
        values = dict(zip(CONSERVED, totals, strict=True))
        for group, boundary in zip(self._groups, self._names, strict=True):
            values |= {f"{name}_flux_{boundary}": f for name, f in zip(CONSERVED, through[group], strict=True)}
        if self._has_sponges:
            values |= {f"{name}_source": s for name, s in zip(CONSERVED, source, strict=True)}
        if self._defect is not None:
            leaving = sum(through[group] for group in self._groups) - source
            defects = self._defect.at(time, totals, leaving)
            values |= {f"{name}_defect": d for name, d in zip(CONSERVED, defects, strict=True)}
        return values

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the samples so far and, with levels of refinement, the defects of
        conservation."""
        return super().capture() | ({} if self._defect is None else self._defect.capture())

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the samples and, with levels of refinement, the defects of conservation from a checkpoint.
        `captured`: the result of `capture`."""
        super().restore(captured)
        if self._defect is not None:
            self._defect.restore(captured)

    def finish(self, solver: Solver) -> None:
        """Complete the history at the end of a run, and add a note about the defects of conservation with levels of
        refinement."""
        super().finish(solver)
        if self._defect is not None and (note := self._defect.note()) is not None:
            self.notes.append(note)


class _Defect:
    """The defects of conservation since the first sample: the changes of integrals that fluxes through boundaries and
    sources do not explain."""

    def __init__(self) -> None:
        # integrals at the first sample and at the last one, the rate of outflow, and the total outflow
        self._kept: np.ndarray | None = None
        self._time = 0.0

    def at(self, time: float, totals: np.ndarray, leaving: np.ndarray) -> np.ndarray:
        """Return the defects (n,) of n integrals at a sample: their changes since the first sample, plus what has left
        since then. `totals` (n,): the integrals at `time`. `leaving` (n,): what leaves per time, at this time. It is
        integrated over time by the trapezoidal rule between samples."""
        if self._kept is None:
            self._kept = np.stack([totals, totals, leaving, np.zeros(len(totals))])
        first, _, before, left = self._kept
        left = left + 0.5 * (before + leaving) * (time - self._time)
        self._kept, self._time = np.stack([first, totals, leaving, left]), time
        found: np.ndarray = totals - first + left
        return found

    def note(self) -> str | None:
        """Return the line on the defects that a run prints at its end; None before the second sample."""
        if self._kept is None:
            return None
        first, totals, _, left = self._kept
        mass, *momentum, energy = totals - first + left
        return (
            f"levels: beside what passed the boundaries mass changed by {mass / totals[0]:.1e} of it, energy by "
            f"{energy / totals[-1]:.1e}, momentum by {max(map(abs, momentum)):.1e}, from the first sample to the last"
        )

    def capture(self) -> dict[str, Any]:
        return {} if self._kept is None else {"defect": self._kept, "defect_time": self._time}

    def restore(self, captured: Mapping[str, Any]) -> None:
        if "defect" in captured:
            self._kept, self._time = np.asarray(captured["defect"]), float(captured["defect_time"])


def _names(boundaries: Sequence[Any]) -> list[str]:
    """A name for each [[boundary]]: its block, its region or faces, and its number where that is not enough."""
    plain = []
    for table in boundaries:
        faces = "all" if table.faces == "all" else "_".join(table.faces)
        where = table.range if isinstance(table.range, str) else faces
        plain.append("_".join(part for part in (table.block, where) if part is not None))
    numbered = [f"{name}_{n}" for n, name in enumerate(plain)]
    alone = [plain.count(name) == 1 and name not in numbered for name in plain]
    return [name if single else other for name, other, single in zip(plain, numbered, alone, strict=True)]
