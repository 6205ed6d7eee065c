"""Metrics and Jacobian of a block on its device."""

from collections.abc import Sequence

import numpy as np

from hiresx.decomposition import Patch
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.quality import why_not_positive
from hiresx.rhs.pole import set_pole_metrics


def compute_metrics(
    backend: Backend,
    program: Program,
    state: BlockState,
    coordinates: tuple[np.ndarray, ...],
    patches: Sequence[Patch] = (),
) -> None:
    """Compute `state.metrics` (with ghosts in the direction of each area) and `state.jacobian` (eqs 7 and 8).
    `coordinates`: x, y, z with the ghost layers of `state` in every direction, singleton ones included. The ghosts of
    the Jacobian have the value of the face's node. On the poles among `patches` the metrics are those of the next
    nodes. Raises HiresxError, which names the worst node, if a cell volume is not positive."""
    xyz = {name: backend.to_device(c) for name, c in zip("xyz", coordinates, strict=True)}
    _, rows, width = coordinates[0].shape
    strides = (1, width, width * rows)
    halo = max(state.halo)
    start, coordinate_strides = halo * sum(strides), {"cj": strides[1], "ck": strides[2]}
    for d in set(range(DIRECTIONS)) - set(state.active):
        state.areas[d][...] = 0  # nothing goes through there
    for d in state.active:
        following, after = strides[(d + 1) % 3], strides[(d + 2) % 3]
        ni, nj, nk = (n + (2 * halo if e == d else 0) for e, n in enumerate(state.size))
        program.launch(
            "metrics", (ni, nj, nk), c=start - halo * strides[d], **coordinate_strides, s1=following, s2=after, **xyz,
            **(state.place | {"o": state.origin - halo * state.strides[d]}), sv=state.variable_stride,
            m=state.areas[d],
        )  # fmt: skip
    program.launch("jacobian", state.size, c=start, **coordinate_strides, **xyz, **state.place, result=state.jacobian)
    set_pole_metrics(backend, state, patches)
    _check(backend, program, state)
    repeat_faces(state)


def repeat_faces(state: BlockState) -> None:
    """Fill the ghosts of the Jacobian, edges and corners included, with that of the next node on a face."""
    jacobian = state.jacobian
    for d, (n, h) in enumerate(zip(state.size, state.halo, strict=True)):
        for face, ghosts in ((h, slice(0, h)), (h + n - 1, slice(h + n, 2 * h + n))) if h else ():
            to, source = ([slice(None)] * 3 for _ in range(2))
            to[2 - d], source[2 - d] = ghosts, slice(face, face + 1)
            jacobian[tuple(to)] = jacobian[tuple(source)]


def _check(backend: Backend, program: Program, state: BlockState) -> None:
    ni, nj, nk = state.size
    least = backend.empty((nj, ni), state.real)
    program.launch(
        "least_jacobian", (ni, nj, 1), **state.place, nodes=nk, jacobian=state.jacobian, width=ni, least=least
    )  # fmt: skip
    if (backend.to_host(least) > 0).all():
        return
    volume = 1 / backend.to_host(state.interior(state.jacobian)).astype(float)
    refuse_volumes(state.name, state.block, state.first, volume)


def refuse_volumes(name: str, block: Block, first: Sequence[int], volume: np.ndarray, plane: int = 0) -> None:
    """Raises HiresxError, which names the worst node, if one of the cell volumes (nk, nj, ni) is not positive. `volume`
    begins at the plane k = `plane` of `block`. `first`: the indexes of the first node of `block` in the whole block
    `name`."""
    if (volume > 0).all():
        return
    k, j, i = (int(n) for n in np.unravel_index(np.nanargmin(volume), volume.shape))
    least, node = volume[k, j, i], (i, j, k + plane)
    x, y, z = block.node(*node)
    what, hint = why_not_positive(block, node)
    raise HiresxError(
        f"block '{name}': cell volume {least:.3g} at node (i, j, k) = "
        f"{tuple(n + m for n, m in zip(node, first, strict=True))}, (x, y, z) = ({x:.6g}, {y:.6g}, {z:.6g}): {what}",
        hint,
    )
