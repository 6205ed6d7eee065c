"""Poles: what stands for metrics on a line where a ring of nodes has collapsed, and the state there."""

from collections.abc import Sequence

import numpy as np

from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED
from hiresx.grid.blocks import direction, side, slices
from hiresx.grid.singular import Ring, ring

# What is left of the area vector of the collapsed face, of that of the next nodes: no flux, but a direction.
TRACE = {"float64": 1e-13, "float32": 1e-7}

# Conserved variables of the gas.
_VARIABLES = len(GAS_CONSERVED)


def mend_metrics(backend, state: BlockState, patches: Sequence) -> None:
    """On the poles among `patches` put the Jacobian and the areas of the two other directions that the next nodes have,
    and for the collapsed face a trace of theirs. Only the nodes of the poles themselves, which obey no equation, and
    the direction of their characteristic fields are concerned."""
    patches = [p for p in patches if p.block == state.index and p.condition.kernel == "pole"]
    if not patches:
        return
    metrics, jacobian = (backend.to_host(array).copy() for array in (state.metrics, state.jacobian))
    areas, volumes = state.interior(metrics), state.interior(jacobian)
    for patch in patches:
        d = direction(patch.face)
        here, next_ = at_and_next(patch)
        for e in range(3):
            share = TRACE[str(metrics.dtype)] if e == d else 1.0
            areas[(slice(3 * e, 3 * e + 3), *here)] = share * areas[(slice(3 * e, 3 * e + 3), *next_)]
        volumes[here] = volumes[next_]
    backend.copy(state.metrics, backend.to_device(metrics))
    backend.copy(state.jacobian, backend.to_device(jacobian))


def at_and_next(patch) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Indexes [k, j, i] of the nodes of a patch and of those behind them."""
    d = direction(patch.face)
    inner = tuple(
        (lo - side(patch.face), hi - side(patch.face)) if e == d else (lo, hi) for e, (lo, hi) in enumerate(patch.range)
    )
    return slices(patch.range), slices(inner)


class Poles:
    """The state on all poles: calling it puts a mean of the three rings around into every node, (15 m1 - 6 m2 + m3)/10
    of their means, of 6th order since a smooth flow's ring means are even in the distance; where they jump, the first
    ring's. Collective, as a ring may be cut. `rest` are launches that take the nodes out of the equations. `any`:
    whether a rank has poles."""

    def __init__(self, backend, program, team, whole, cut, states: Sequence[BlockState], gamma: float):
        self._backend, self._team, self._gamma = backend, team, gamma
        places = [n for n, patch in enumerate(whole.patches) if patch.condition.kernel == "pole"]
        self.any = bool(places)
        self.rest: list = []
        if not places:
            return
        rings: dict[int, Ring] = {}
        first, self._length, counts = {}, 0, []
        for n in places:
            patch = whole.patches[n]
            found = rings[n] = ring("pole", whole.blocks, whole.connections, patch.block, patch.face)
            lo, hi = patch.range[_line(patch, found)]
            first[n], self._length = self._length, self._length + hi - lo
            counts += [found.nodes] * (hi - lo)
        self._counts = np.array(counts, dtype=float)
        sums, nodes, self._pieces = [], [], []
        for state in states:
            for p in cut.patches:
                if p.block != state.index or p.place not in rings:
                    continue
                found, box = rings[p.place], state.part.box
                line, around = _line(p, found), found.direction
                (lo, hi), (start, stop) = p.range[line], p.range[around]
                whole_start, whole_stop = start + box[around][0], stop + box[around][0]
                shares = (
                    0.5 if found.doubled and whole_start == 0 else 1.0,
                    0.5 if found.doubled and whole_stop == found.nodes + 1 else 1.0,
                )
                d = direction(p.face)
                o = state.origin + sum(r[0] * stride for r, stride in zip(p.range, state.strides, strict=True))
                strides = (state.strides[line], state.strides[around], -side(p.face) * state.strides[d])
                face = (o, *strides, state.variable_stride)
                real = str(state.q.dtype)
                found_sums, target = (backend.zeros((rows, hi - lo), real) for rows in (3 * _VARIABLES, _VARIABLES))
                offset = first[p.place] + lo + box[line][0] - whole.patches[p.place].range[line][0]
                self._pieces.append((slice(offset, offset + hi - lo), found_sums, target))
                sums.append(("pole_sums", (hi - lo, 1, 1), *face, stop - start, hi - lo, *shares, state.q, found_sums))
                extent = (hi - lo, stop - start, 1)
                nodes.append(("pole_node", extent, *face, hi - lo, target, state.q))
                self.rest.append(("pole_rest", extent, *face, state.r))
        self._sums, self._nodes = program.prepare(sums), program.prepare(nodes)

    def __call__(self) -> None:
        self._sums()
        total = np.zeros((15, self._length))
        for line, sums, _ in self._pieces:
            total[:, line] += self._backend.to_host(sums)
        mean = (self._team.sum(total) / self._counts).reshape(3, _VARIABLES, -1)
        state = self._limited(mean)
        for line, _, target in self._pieces:
            self._backend.copy(
                target, self._backend.to_device(np.ascontiguousarray(state[:, line].astype(target.dtype)))
            )
        self._nodes()

    def _limited(self, mean: np.ndarray) -> np.ndarray:
        """States (5, n) on the lines from ring means (3, 5, n)."""
        with np.errstate(all="ignore"):
            density, pressure = mean[:, 0], self._pressure(mean.swapaxes(0, 1))
            jump = np.max([abs(f[0] - 2 * f[1] + f[2]) / (f[0] + 2 * f[1] + f[2]) for f in (density, pressure)], axis=0)
            share = 1 / (1 + (5 * jump) ** 4)
            state = mean[0] + share * (5 * mean[0] - 6 * mean[1] + mean[2]) / 10
            low = (state[0] > 0.2 * density[0]) & (self._pressure(state) > 0.2 * pressure[0])
        return np.where(low, state, mean[0])

    def _pressure(self, q: np.ndarray) -> np.ndarray:
        return (self._gamma - 1) * (q[4] - (q[1] ** 2 + q[2] ** 2 + q[3] ** 2) / (2 * q[0]))


def _line(patch, found: Ring) -> int:
    """The direction of the nodes along a pole."""
    return 3 - direction(patch.face) - found.direction
