"""Poles: metrics and state on a line to which rings of nodes have collapsed."""

from collections.abc import Sequence

import numpy as np

from hiresx.decomposition import Decomposition, Patch
from hiresx.decomposition.poles import pole_rings
from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import GAS, Equations
from hiresx.grid.blocks import direction, side, slices
from hiresx.grid.rings import Ring, RingBlock
from hiresx.mpi.communicator import Communicator

# Area vector of the collapsed face, as a fraction of that of the next nodes: it gives no flux, but a direction.
TRACE = {"float64": 1e-13, "float32": 1e-7}


def set_pole_metrics(backend: Backend, state: BlockState, patches: Sequence[Patch]) -> None:
    """Set the metrics at the poles (faces that have collapsed to a line) in `patches` from the neighbouring nodes
    inside the block: the Jacobian and the area vectors of the two other directions are the same, and the area vector of
    the collapsed face is a small fraction. These metrics are only used at the nodes of the poles, where the equations
    are not solved, and for the direction of the characteristic variables there."""
    patches = [patch for patch in patches if patch.block == state.index]
    if not patches:
        return
    metrics, jacobian = (backend.to_host(array).copy() for array in (state.metrics, state.jacobian))
    areas, volumes = state.interior(metrics), state.interior(jacobian)
    for patch in patches:
        d = direction(patch.face)
        here, next_ = at_and_next(patch)
        for e in range(3):
            own, other = areas[(slice(3 * e, 3 * e + 3), *here)], areas[(slice(3 * e, 3 * e + 3), *next_)]
            if e == d:
                # A ring that has not quite collapsed keeps its area, which is needed to preserve a uniform flow.
                other = TRACE[str(metrics.dtype)] * other
                other = np.where(np.square(own).sum(axis=0) > np.square(other).sum(axis=0), own, other)
            own[...] = other
        volumes[here] = volumes[next_]
    backend.copy(state.metrics, backend.to_device(metrics))
    backend.copy(state.jacobian, backend.to_device(jacobian))


def at_and_next(patch: Patch) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return two tuples of slices [k, j, i]: the nodes of the boundary patch `patch`, and the next nodes inside the
    block."""
    d, inward = direction(patch.face), -side(patch.face)
    i, j, k = ((lo + inward, hi + inward) if e == d else (lo, hi) for e, (lo, hi) in enumerate(patch.range))
    return slices(patch.range), slices((i, j, k))


class Poles:
    """The condition at all poles. A call of the object sets the state of their nodes. `whole`, `cut`: the blocks before
    and after their division among the ranks. `states`: those of this rank. Each node gets (15 m1 - 6 m2 + m3)/10, where
    m1, m2, m3 are the means over the three rings around the pole. This is of sixth order, since the ring means of a
    smooth flow are an even function of the distance. If they have a discontinuity, the node gets m1. Collective, since
    a ring may be divided among ranks and may continue in other blocks. `rest`: launches that set the rates of these
    nodes to zero. `any`: whether any rank has poles. `gamma`: ratio of specific heats. `equations`: the system of
    equations."""

    def __init__(
        self,
        backend: Backend,
        program: Program,
        comm: Communicator,
        whole: Decomposition,
        cut: Decomposition,
        states: Sequence[BlockState],
        gamma: float,
        equations: Equations = GAS,
    ):
        self._backend, self._comm, self._gamma, self._variables = backend, comm, gamma, equations.variables
        self.any = any(patch.condition.kernel == "pole" for patch in whole.patches)
        self.rest: list[Call] = []
        if not self.any:
            return
        # For each pole the position of its line among all lines, and for each of its blocks the ring and its position
        # in the ring.
        rings = pole_rings(whole.blocks, whole.connections, whole.patches, whole.stencil.halo)
        first, counts, self._length = [], [], 0
        self._mirrors: list[tuple[slice, np.ndarray]] = []
        for found in rings:
            length = whole.blocks[found.members[0].block].size[_line(found, found.members[0])]
            first.append(self._length)
            counts += [found.nodes] * length
            if found.mirror is not None:
                self._mirrors.append((slice(self._length, self._length + length), np.array(found.mirror.rotation)))
            self._length += length
        self._counts = np.array(counts, dtype=float)
        of_face = {(m.block, m.face): (n, found, m) for n, found in enumerate(rings) for m in found.members}
        sums, nodes, self._pieces = [], [], []
        for state in states:
            for p in cut.patches:
                if p.block != state.index or p.condition.kernel != "pole":
                    continue
                n, found, member = of_face[state.part.whole, p.face]
                size, box = whole.blocks[member.block].size, state.part.box
                d = direction(p.face)
                line = _line(found, member)
                around = 3 - d - line
                (lo, hi), (start, stop) = p.range[line], p.range[around]
                ends = found.shares(member)
                ends = ends if member.matrix[around, found.around] > 0 else ends[::-1]
                shares = (
                    ends[0] if start + box[around][0] == 0 else 1.0,
                    ends[1] if stop + box[around][0] == size[around] else 1.0,
                )
                o = state.origin + sum(r[0] * stride for r, stride in zip(p.range, state.strides, strict=True))
                face = {
                    "o": o, "s1": state.strides[line], "s2": state.strides[around],
                    "sn": -side(p.face) * state.strides[d], "sv": state.variable_stride,
                }  # fmt: skip
                real = state.real
                count = self._variables
                found_sums, target = (backend.zeros((rows, hi - lo), real) for rows in (3 * count, count))
                at = np.arange(lo, hi) + box[line][0]
                places = first[n] + (at if member.matrix[line, found.along] > 0 else size[line] - 1 - at)
                self._pieces.append((places, found_sums, target))
                width, height = hi - lo, stop - start
                sums.append(
                    program.call(
                        "pole_sums", (width, 1, 1), **face, height=height, width=width, first_share=shares[0],
                        last_share=shares[1], q=state.q, sums=found_sums,
                    )
                )  # fmt: skip
                extent = (width, height, 1)
                nodes.append(program.call("pole_node", extent, **face, width=width, target=target, q=state.q))
                self.rest.append(program.call("pole_rest", extent, **face, r=state.r))
        self._sums, self._nodes = program.prepare(sums), program.prepare(nodes)

    def __call__(self) -> None:
        self._sums()
        total = np.zeros((3 * self._variables, self._length))
        for line, sums, _ in self._pieces:
            total[:, line] += self._backend.to_host(sums)
        mean = (self._comm.sum(total) / self._counts).reshape(3, self._variables, -1)
        for line, mirror in self._mirrors:  # in a half model, the mean with the mirror image
            momentum = mean[:, 1:4, line]
            mean[:, 1:4, line] = (momentum + np.einsum("ab,rbn->ran", mirror, momentum)) / 2
        state = self._state_on_line(mean)
        for line, _, target in self._pieces:
            self._backend.copy(
                target, self._backend.to_device(np.ascontiguousarray(state[:, line].astype(target.dtype)))
            )
        self._nodes()

    def _state_on_line(self, mean: np.ndarray) -> np.ndarray:
        """Return the states (variables, n) on the lines, from ring means (3, variables, n)."""
        with np.errstate(all="ignore"):
            density, pressure = mean[:, 0], self._pressure(mean.swapaxes(0, 1))
            jump = np.max([abs(f[0] - 2 * f[1] + f[2]) / (f[0] + 2 * f[1] + f[2]) for f in (density, pressure)], axis=0)
            share = 1 / (1 + (5 * jump) ** 4)
            state = mean[0] + share * (5 * mean[0] - 6 * mean[1] + mean[2]) / 10
            low = (state[0] > 0.2 * density[0]) & (self._pressure(state) > 0.2 * pressure[0])
        limited: np.ndarray = np.where(low, state, mean[0])
        return limited

    def _pressure(self, q: np.ndarray) -> np.ndarray:
        p: np.ndarray = (self._gamma - 1) * (q[4] - (q[1] ** 2 + q[2] ** 2 + q[3] ** 2) / (2 * q[0]))
        return p


def _line(found: Ring, member: RingBlock) -> int:
    """Return the direction of a block's own indexes along the line of its pole."""
    return int(np.flatnonzero(member.matrix[:, found.along])[0])
