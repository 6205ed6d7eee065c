"""Sponge layers: a source term that draws the flow to a given state."""

from collections.abc import Callable

import numpy as np

from hiresx.device.state import BlockState
from hiresx.rhs.gas import conservative


class SpongeLayer:
    """One [[sponge]] of the case in one block, over the index box that holds its nodes; None-like if it has none."""

    def __init__(self, backend, program, state: BlockState, spec, gamma: float, reference: Callable | None):
        block = state.block
        self.block, self.state = block.name, state
        c = getattr(block, spec.axis)
        share = np.clip((c - spec.start) / (spec.end - spec.start), 0, 1)
        inside = np.argwhere(share > 0)
        self.empty = len(inside) == 0
        if self.empty:
            return
        (k0, j0, i0), (k1, j1, i1) = inside.min(axis=0), inside.max(axis=0) + 1
        box = self.box = (slice(k0, k1), slice(j0, j1), slice(i0, i1))
        real = state.q.dtype
        sigma = self.sigma = backend.to_device((spec.strength * share[box] ** spec.power).astype(real))
        if reference is None:
            goal = np.array(conservative(gamma, *(getattr(spec.state, n) for n in ("rho", "u", "v", "w", "p"))))
        else:
            goal = np.stack(conservative(gamma, *reference(block.x[box], block.y[box], block.z[box])))
        goal = self.goal = backend.to_device(goal.astype(real))
        self.bytes = sigma.nbytes + goal.nbytes
        extent = (int(i1 - i0), int(j1 - j0), int(k1 - k0))
        o = state.origin + int(i0 * state.strides[0] + j0 * state.strides[1] + k0 * state.strides[2])
        self._call = (
            "sponge", extent, o, state.strides[1], state.strides[2], extent[0], extent[1], int(np.prod(extent)),
            state.variable_stride, state.q, state.jacobian, sigma, goal, int(reference is not None), state.r,
        )  # fmt: skip
        self._launch = program.launch

    def __call__(self) -> None:
        self._launch(*self._call)
