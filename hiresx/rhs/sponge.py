"""Sponge layers: a source term that damps the difference of the flow from a given state."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED, GAS_PRIMITIVE
from hiresx.equations.gas import conservative
from hiresx.rhs.layers import along, shares


def share_and_box(spec: Any, block: Any) -> tuple[np.ndarray, tuple[slice, slice, slice] | None]:
    """Return the depth of each node of `block` in a sponge, as a fraction from 0 to 1, an array (nk, nj, ni). The
    second result is the smallest index box that contains all nodes in the sponge, as slices [k, j, i], or None if no
    node lies in it. `spec`: the table [[sponge]]."""
    share = shares(spec, along(spec.axis, block.x, block.y, block.z))
    inside = np.argwhere(share > 0)
    if len(inside) == 0:
        return share, None
    ends = zip(inside.min(axis=0).tolist(), inside.max(axis=0).tolist(), strict=True)
    k, j, i = (slice(lo, hi + 1) for lo, hi in ends)
    return share, (k, j, i)


def layer_reals(spec: Any, block: Any) -> int:
    """Return the number of reals that the sponge of the table `spec` of the case stores in `block`, at the points of
    the smallest index box that contains the sponge: the strength sigma at each point, and the state towards which the
    flow is forced, either once or at each point."""
    share, box = share_and_box(spec, block)
    if box is None or not (spec.blocks is None or block.name in spec.blocks):
        return 0
    points = share[box].size
    return points + len(GAS_CONSERVED) * (1 if spec.function is None else points)


def moments(values: np.ndarray) -> np.ndarray:
    """Return an array (1 + 2 variables,) with the number of entries per variable, the sums and the sums of squares of
    `values` (variables, ...). Results of several arrays can be added."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    return np.concatenate([[flat.shape[1]], flat.sum(axis=1), (flat * flat).sum(axis=1)])


class SpongeLayer:
    """The part of a sponge that lies in one block. `call`: the launch of its kernel, over the index box of its nodes.
    `empty`: whether it has no nodes in the block.

    `spec`: the table [[sponge]] of the case, which is number `number`. `reference(x, y, z)`: a function that returns
    the flow towards which the sponge forces the state; without it this is the state of `spec`.
    """

    def __init__(
        self,
        backend: Backend,
        program: Program,
        state: BlockState,
        spec: Any,
        number: int,
        gamma: float,
        reference: Callable[[np.ndarray, np.ndarray, np.ndarray], Sequence[Any]] | None,
    ):
        block = state.block
        self.block, self.number, self.state = state.name, number, state
        share, box = share_and_box(spec, block)
        self.box = box
        self.empty = box is None
        if box is None:
            return
        real = np.dtype(state.real)
        sigma = self.sigma = backend.to_device((spec.strength * share[box] ** spec.power).astype(real))
        if reference is None:
            goal = np.array(conservative(gamma, *(getattr(spec.state, n) for n in GAS_PRIMITIVE)))
        else:
            goal = np.stack(conservative(gamma, *reference(block.x[box], block.y[box], block.z[box])))
        # For a flow that a function prescribes: the number of nodes, the sums and the sums of squares of the prescribed
        # values.
        self.moments = None if reference is None else moments(goal.astype(real)[:, share[box] > 0])
        goal = self.goal = backend.to_device(goal.astype(real))
        self.bytes = sigma.nbytes + goal.nbytes
        ni, nj, nk = (s.stop - s.start for s in reversed(box))
        o = state.origin + sum(s.start * n for s, n in zip(reversed(box), state.strides, strict=True))
        self.call = program.call(
            "sponge", (ni, nj, nk), **(state.place | {"o": o}), width=ni, height=nj, count=ni * nj * nk,
            sv=state.variable_stride, q=state.q, jacobian=state.jacobian, sigma=sigma,
            reference=goal, reference_stride=int(reference is not None), r=state.r,
        )  # fmt: skip
