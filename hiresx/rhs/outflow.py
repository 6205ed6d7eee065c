"""Non-reflecting outflow: the rates of change of what enters, at all nodes on `characteristic-outflow` faces.

It comes after the inviscid terms, when all ghosts are there: unlike a ghost it needs the neighbours along the face. A
node where several such faces meet obeys all of them at once, so no order of faces matters.
"""

from collections.abc import Sequence

import numpy as np

from hiresx.decomposition import Decomposition
from hiresx.device.state import BlockState
from hiresx.grid import Grid
from hiresx.grid.blocks import direction, intersection, side

# Per patch: pressure far away, relaxation, velocities of what leaves (outflow_given in kernels/boundary/outflow.h).
GIVEN = 8
# Sums that a device leaves to the host, per patch.
THREADS = 4096
# Poinsot & Lele's sigma where a case gives no relaxation.
SIGMA = 0.05


def default_relaxation(grid: Grid) -> float:
    """SIGMA over the largest extent of the grid along x, y or z."""
    bounds = [(c.min(), c.max()) for block in grid.blocks for c in (block.x, block.y, block.z)]
    low = np.reshape([lo for lo, _ in bounds], (-1, 3)).min(axis=0)
    high = np.reshape([hi for _, hi in bounds], (-1, 3)).max(axis=0)
    return SIGMA / float((high - low).max())


class Outflow:
    """All outflow patches of this rank. Calling it corrects `r` of their nodes; `convection()` before that finds the
    velocity at which things leave, and is collective. `any`: whether a rank has such patches."""

    def __init__(self, backend, program, team, grid: Grid, whole: Decomposition, cut: Decomposition, states):
        self._backend, self._team = backend, team
        places = [n for n, patch in enumerate(whole.patches) if patch.condition.kernel == "outflow"]
        self.any = bool(places)
        if not places:
            return
        number = {place: n for n, place in enumerate(places)}
        self._whole_face = _joined(whole, places)
        relaxation = default_relaxation(grid)
        self._given = np.zeros((len(places), GIVEN))
        for n, place in enumerate(places):
            spec = whole.patches[place].condition
            self._given[n, :2] = spec.pressure, relaxation if spec.relaxation is None else spec.relaxation
        self._dtype = states[0].q.dtype if states else np.dtype(float)
        self._device = backend.to_device(self._given.astype(self._dtype))
        rates, sums = [], []
        for state in states:
            patches = [p for p in cut.patches if p.block == state.index and p.place in number]
            if not patches:
                continue
            strides = [stride if n > 1 else 0 for stride, n in zip(state.strides, state.size, strict=True)]
            fields = (state.variable_stride, *strides, state.q, state.metrics, state.jacobian)
            nodes, faces = _faces_of_nodes(state, [(number[p.place], p) for p in patches])
            rates.append(
                (
                    "outflow_rates", (len(nodes), 1, 1), len(nodes), backend.to_device(nodes),
                    backend.to_device(faces), self._device, *fields, state.r,
                )
            )  # fmt: skip
            for p in patches:
                own = _nodes(state, p)
                sums.append((number[p.place], backend.to_device(own), len(own), _code(p), fields))
        self._partial = backend.zeros((max(len(sums), 1), 8, THREADS), str(self._dtype))
        self._numbers = [n for n, *_ in sums]
        self._rates = program.prepare(rates)
        self._sums = program.prepare(
            [
                ("outflow_sums", (THREADS, 1, 1), THREADS, width, nodes, face, *fields, self._partial[at])
                for at, (_, nodes, width, face, fields) in enumerate(sums)
            ]
        )

    def convection(self) -> None:
        self._sums()
        total = np.zeros((len(self._given), 8))
        if self._numbers:
            partial = self._backend.to_host(self._partial).astype(float).sum(axis=2)
            np.add.at(total, self._numbers, partial)
        faces = np.zeros_like(total)
        np.add.at(faces, self._whole_face, self._team.sum(total))
        for means, sums in zip((slice(2, 5), slice(5, 8)), np.split(faces[self._whole_face], 2, axis=1), strict=True):
            weight = sums[:, 3:]
            np.divide(sums[:, :3], weight, out=self._given[:, means], where=weight > 0)
        self._backend.copy(self._device, self._backend.to_device(self._given.astype(self._dtype)))

    def __call__(self) -> None:
        self._rates()


def _joined(whole: Decomposition, places: Sequence[int]) -> list[int]:
    """Per outflow patch the number of the first one of its face: where a face goes on from block to block, through a
    connection that it crosses, it is one, so that nothing depends on how a grid is cut into blocks."""
    first = list(range(len(places)))
    patches = [whole.patches[place] for place in places]
    for c in whole.connections:
        d = direction(c.face)
        for a, own in enumerate(patches):
            rim = intersection(own.range, c.range) if own.block == c.block and direction(own.face) != d else None
            if rim is None:
                continue
            corners = np.array([[lo, hi - 1] for lo, hi in rim])
            corners[d] += side(c.face)  # the first ghosts
            there = c.donors(corners)
            for b, other in enumerate(patches):
                if other.block == c.donor and all(
                    min(ends) >= lo and max(ends) < hi for ends, (lo, hi) in zip(there, other.range, strict=True)
                ):
                    low, high = sorted((first[a], first[b]))
                    first = [low if n == high else n for n in first]
    return first


def _code(patch) -> int:
    """2 d + (0: first, 1: last node) of the face, as the kernels take it."""
    return 2 * direction(patch.face) + (side(patch.face) > 0)


def _nodes(state: BlockState, patch) -> np.ndarray:
    """Indexes of the patch's nodes in the padded arrays."""
    i, j, k = (np.arange(lo, hi) * stride for (lo, hi), stride in zip(patch.range, state.strides, strict=True))
    return (state.origin + k[:, None, None] + j[:, None] + i).ravel().astype(np.int32)


def _faces_of_nodes(state: BlockState, patches: Sequence) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of all patches once each, (n,), and 8 x number + face of up to three patches each lies on, (3, n),
    -1 for none. `patches`: (number, patch)."""
    own = [_nodes(state, p) for _, p in patches]
    nodes = np.unique(np.concatenate(own))
    faces = np.full((3, len(nodes)), -1, np.int32)
    for (number, patch), mine in zip(patches, own, strict=True):
        at = np.searchsorted(nodes, mine)
        free = (faces[:, at] < 0).argmax(axis=0)
        faces[free, at] = 8 * number + _code(patch)
    return nodes, faces
