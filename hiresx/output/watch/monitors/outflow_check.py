"""A warning if the flow through a `supersonic-outflow` is subsonic."""

from collections.abc import Sequence

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Patch
from hiresx.decomposition.quadrature import face_weights
from hiresx.output.saved.attachment import Attachment
from hiresx.output.watch.watched import WatchedRun
from hiresx.output.watch.watched_surface import FaceNodes, WatchedSurface, mask
from hiresx.solver import Solver

TYPE = "supersonic-outflow"
# Relative change of the pressure at a node from which on the flow there no longer counts as the initial one.
ARRIVED = 1e-4


def build(case: Case, simulation: WatchedRun) -> list[Attachment]:
    """Return the check of supersonic outflows of the run `simulation` in a list, which is empty if the case has no such
    boundary condition."""
    solver = simulation.solver
    patches = [patch for patch in solver.decomposition.patches if patch.condition.type == TYPE]
    return [SubsonicOutflow(solver, patches)] if patches else []


def _face(solver: Solver, patch: Patch, group: int) -> FaceNodes:
    """Return the nodes of a patch. While tiles change, those of a block whose nodes and connections stay are kept."""
    whole, b = solver.decomposition, patch.block
    key = None
    if whole.levels is not None:
        tiles = whole.levels.tiles
        around = (
            (c.face, c.range, tiles[c.donor], c.matrix, c.offset, c.over_a_pole)
            for c in whole.connections
            if c.block == b
        )
        key = "subsonic outflow", tiles[b], patch.face, patch.range, *around

    def weights() -> np.ndarray:
        found: np.ndarray = face_weights(whole, b, patch.face) * mask(whole, b, patch.face, patch.range)
        return found

    return FaceNodes(b, patch.face, weights() if key is None else solver.kept(key, (), weights), group, key=key)


class SubsonicOutflow(Attachment):
    """Check of all nodes on supersonic outflows every `monitor.every` steps. It reports, once for each condition, where
    the velocity normal to the face is below the speed of sound, since the condition reflects waves there. Nodes where
    the flow still has its initial state are not reported. `patches`: the regions of block faces with this boundary
    condition."""

    name = "subsonic outflow"

    def __init__(self, solver: Solver, patches: Sequence[Patch]):
        self._every = solver.case.monitor.every
        self._comm = solver.comm
        conditions = list(solver.case.boundary)
        self._names = {n: f"boundary.{n} ({TYPE})" for n, c in enumerate(conditions) if c.type == TYPE}
        here, faces = {state.part.whole for state in solver.states}, []
        for patch in patches:
            if patch.block in here:
                group = next(n for n, c in enumerate(conditions) if c is patch.condition)
                faces.append(_face(solver, patch, group))
        self._surface = WatchedSurface(solver, faces, len(conditions), viscous=False)
        self._areas = self._comm.sum(self._surface.areas())
        self._first: np.ndarray | None = None
        self._notes: list[str] = []

    @property
    def notes(self) -> list[str]:
        """Warnings about subsonic flow through outflow boundaries. The caller prints them and empties the list."""
        return self._notes

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Store the pressure at the outflow boundaries before the first time step of a run or of its continuation."""
        self._first = self._surface.measure().p

    def steps_left(self, solver: Solver) -> int:
        """Return the number of time steps until the next check of the outflow boundaries."""
        return self._every - solver.steps % self._every

    def after_step(self, solver: Solver) -> None:
        """Check the Mach number normal to the outflow boundaries if a check is due, and add a note where it is below 1.
        All ranks must call this method."""
        if solver.steps % self._every or not self._names or self._first is None:
            return
        flow = self._surface.measure()
        changed = np.abs(flow.p - self._first) > ARRIVED * self._first
        slow = changed & (flow.mach < 1)
        areas = np.linalg.norm(flow.push, axis=0)
        share, weighted = self._comm.sum(self._surface.sums(np.stack([areas * slow, areas * slow * flow.mach]))).T
        for n in [n for n in self._names if share[n] > 0]:
            part, mach = share[n] / self._areas[n], weighted[n] / share[n]
            self._notes.append(
                f"{self._names.pop(n)}: at time {solver.time:.4g} the Mach number normal to the face is below 1 on "
                f"{100 * part:.0f} % of it, {mach:.2f} on the mean, and the condition reflects waves there; "
                'type = "characteristic-outflow" is a non-reflecting outflow for subsonic flow'
            )
