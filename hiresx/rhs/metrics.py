"""Metrics and Jacobian of a block on its device."""

import numpy as np

from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import GHOSTS
from hiresx.errors import HiresxError
from hiresx.grid.quality import why_not_positive
from hiresx.rhs.pole import mend_metrics

HALO = GHOSTS


def compute_metrics(
    backend: Backend, program: Program, state: BlockState, coordinates: tuple[np.ndarray, ...], patches=()
) -> None:
    """Fill `state.metrics` (with ghosts in each area's own direction) and `state.jacobian` (eqs 7 and 8).

    `coordinates`: x, y, z with 3 ghost layers in every direction, (nk + 6, nj + 6, ni + 6). Ghosts of the Jacobian
    repeat the face's node. On the poles among `patches` they are those of the next nodes. Raises HiresxError naming the
    worst node if a cell volume is not positive.
    """
    x, y, z = (backend.to_device(c) for c in coordinates)
    _, nj, ni = coordinates[0].shape
    strides = (1, ni, ni * nj)
    start = HALO * sum(strides)
    for d in state.active:
        following, after = strides[(d + 1) % 3], strides[(d + 2) % 3]
        extent = [n + (2 * HALO if e == d else 0) for e, n in enumerate(state.size)]
        program.launch(
            "metrics", tuple(extent), start - HALO * strides[d], strides[1], strides[2], following, after, x, y, z,
            state.origin - HALO * state.strides[d], state.strides[1], state.strides[2], state.variable_stride,
            state.areas[d],
        )  # fmt: skip
    program.launch("jacobian", state.size, start, strides[1], strides[2], x, y, z, *state.place, state.jacobian)
    mend_metrics(backend, state, patches)
    _check(backend, state)
    jacobian = backend.to_host(state.interior(state.jacobian))
    widths = [(h, h) for h in reversed(state.halo)]
    backend.copy(state.jacobian, backend.to_device(np.pad(jacobian, widths, mode="edge")))


def _check(backend: Backend, state: BlockState) -> None:
    volume = 1 / backend.to_host(state.interior(state.jacobian)).astype(float)
    if not (volume > 0).all():
        k, j, i = np.unravel_index(np.nanargmin(volume), volume.shape)
        x, y, z = state.block.node(i, j, k)
        node = tuple(int(n) + first for n, first in zip((i, j, k), state.first, strict=True))
        what, mend = why_not_positive(state.block, (i, j, k))
        raise HiresxError(
            f"block '{state.name}': cell volume {volume[k, j, i]:.3g} at node (i, j, k) = {node}, "
            f"(x, y, z) = ({x:.6g}, {y:.6g}, {z:.6g}): {what}",
            mend,
        )
