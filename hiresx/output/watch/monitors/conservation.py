"""`[conservation]`: volume integrals, what leaves through the boundaries, what the sponges add."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Conservation as Spec
from hiresx.output.watch.columns import Columns, dimension, pad, volumes
from hiresx.output.watch.history import Column
from hiresx.output.watch.quadrature import face_weights
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.output.watch.watched_surface import FaceNodes, WatchedSurface, mask
from hiresx.solver import Solver

CONSERVED = ("mass", "momentum_x", "momentum_y", "momentum_z", "energy")
_SCALES = ("rho_ref", *("rho_ref c_ref",) * 3, "rho_ref c_ref^2")


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Build the monitor of conserved integrals, if the case has `[conservation]`."""
    if case.conservation is None:
        return []
    return [ConservationMonitor(case.conservation, simulation.solver, simulation.out)]


class ConservationMonitor(Monitor):
    """Columns: every conserved quantity; <quantity>_flux_<boundary>, outward; with sponges <quantity>_source."""

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        decomposition = solver.decomposition
        boundaries = list(solver.case.boundary)
        # Patched connections of the grid need no table of the case.
        for patch in decomposition.patches:
            boundaries += [patch.condition] if all(c is not patch.condition for c in boundaries) else []
        names = _names(boundaries)
        here, faces, groups = {state.part.whole for state in solver.states}, [], set()
        for patch in decomposition.patches:
            group = next(n for n, c in enumerate(boundaries) if c is patch.condition)
            groups.add(group)
            if patch.block in here:
                weights = face_weights(decomposition, patch.block, patch.face, kept=True)
                weights *= mask(decomposition, patch.block, patch.face, patch.range)
                faces.append(FaceNodes(patch.block, patch.face, weights, group, patch.condition.kernel == "reflect"))
        self._surface = WatchedSurface(solver, faces, len(names))
        # Boundaries that are periodic, or normal to a direction of one node, have no flux.
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
        super().__init__(solver.comm, "conservation", "conservation", columns, spec.every, spec.every_time, out)
        volumes_of = []
        self._sponges: dict[int, tuple[Any, np.ndarray]] = {}
        for n, state in enumerate(solver.states):
            counted = volumes(solver, n, kept=True)
            volumes_of.append(pad(solver, state, counted))
            self._add_sponges(solver, n, counted)
        arguments = [
            {"weight": volume, "other": self._sponges.get(n, (volume,))[0], "both": int(n in self._sponges)}
            for n, volume in enumerate(volumes_of)
        ]
        self._totals = Columns(solver, 2 * len(CONSERVED)).prepare("column_totals", arguments)

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

    def measure(self, solver: Solver) -> dict[str, float]:
        totals, source = np.zeros((2, len(CONSERVED)))
        for n, found in enumerate(self._totals()):
            sums = found.sum(axis=(1, 2))
            totals += sums[: len(CONSERVED)]
            source += (self._sponges[n][1] if n in self._sponges else 0.0) - sums[len(CONSERVED) :]
        fluxes = self._surface.sums(self._surface.measure().fluxes)
        totals, source, *through = self._comm.sum(np.stack([totals, source, *fluxes]))
        values = dict(zip(CONSERVED, totals, strict=True))
        for group, boundary in zip(self._groups, self._names, strict=True):
            values |= {f"{name}_flux_{boundary}": f for name, f in zip(CONSERVED, through[group], strict=True)}
        if self._has_sponges:
            values |= {f"{name}_source": s for name, s in zip(CONSERVED, source, strict=True)}
        return values


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
