"""The metrics and the Jacobian of a block, computed on its device."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hiresx.base.arrays import triple
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.blocks import Range
from hiresx.grid.quality import why_not_positive


def clear_inactive_areas(state: BlockState) -> None:
    """Set the area vectors of those index directions in which the block `state` has one node to 0, since there is no
    flux along them."""
    for d in set(range(DIRECTIONS)) - set(state.active):
        state.areas[d][...] = 0


def compute_in_box(
    backend: Backend, program: Program, state: BlockState, coordinates: tuple[np.ndarray, ...], box: Range
) -> None:
    """Compute area vectors and Jacobian (Ye et al. 2022, eqs 7 and 8) at the nodes in `box`, half-open index ranges (i,
    j, k), and the area vectors in the ghost layers behind the faces on which such nodes lie. `coordinates`: x, y, z
    with the ghost layers of `state` in every direction, also along directions with one node. Area vectors of directions
    with one node are not set (see `clear_inactive_areas`)."""
    halo = max(state.halo)
    around = tuple(slice(lo, hi + 2 * halo) for lo, hi in reversed(box))
    nodes = backend.to_device(np.stack([c[around] for c in coordinates]))
    xyz = {name: nodes[n] for n, name in enumerate("xyz")}
    _, _, rows, width = nodes.shape
    strides = (1, width, width * rows)
    start, coordinate_strides = halo * sum(strides), {"cj": strides[1], "ck": strides[2]}
    size = triple(hi - lo for lo, hi in box)
    first = state.origin + sum(lo * stride for (lo, _), stride in zip(box, state.strides, strict=True))
    for d in state.active:
        following, after = strides[(d + 1) % 3], strides[(d + 2) % 3]
        below, above = (halo * end for end in (box[d][0] == 0, box[d][1] == state.size[d]))
        ni, nj, nk = (n + (below + above if e == d else 0) for e, n in enumerate(size))
        program.launch(
            "metrics", (ni, nj, nk), c=start - below * strides[d], **coordinate_strides, s1=following, s2=after, **xyz,
            **(state.place | {"o": first - below * state.strides[d]}), sv=state.variable_stride, m=state.areas[d],
        )  # fmt: skip
    place = state.place | {"o": first}
    program.launch("jacobian", size, c=start, **coordinate_strides, **xyz, **place, result=state.jacobian)


def repeat_faces(state: BlockState) -> None:
    """Copy the Jacobian of the nodes on faces to the ghost nodes behind them, including the ghost nodes beyond edges
    and corners."""
    jacobian = state.jacobian
    for d, (n, h) in enumerate(zip(state.size, state.halo, strict=True)):
        for face, ghosts in ((h, slice(0, h)), (h + n - 1, slice(h + n, 2 * h + n))) if h else ():
            to, source = ([slice(None)] * 3 for _ in range(2))
            to[2 - d], source[2 - d] = ghosts, slice(face, face + 1)
            jacobian[tuple(to)] = jacobian[tuple(source)]


def check_volumes(backend: Backend, program: Program, states: Sequence[BlockState]) -> None:
    """Raise HiresxError if the Jacobian at a node of one of the blocks `states` is not positive. The message names the
    node with the smallest cell volume in the first such block."""
    if not states:
        return
    ends = np.cumsum([0, *(state.size[0] * state.size[1] for state in states)]).tolist()
    least = backend.empty((ends[-1],), states[0].real)
    for state, (a, b) in zip(states, pairwise(ends), strict=True):
        ni, nj, nk = state.size
        program.launch(
            "least_jacobian", (ni, nj, 1), **state.place, nodes=nk, jacobian=state.jacobian, width=ni, least=least[a:b]
        )  # fmt: skip
    positive = backend.to_host(least) > 0
    for state, (a, b) in zip(states, pairwise(ends), strict=True):
        if not positive[a:b].all():
            volume = 1 / backend.to_host(state.interior(state.jacobian)).astype(float)
            refuse_volumes(state.name, state.block, state.first, volume)


def refuse_volumes(name: str, block: Block, first: Sequence[int], volume: np.ndarray, plane: int = 0) -> None:
    """Raise HiresxError if one of the cell volumes `volume` (nk, nj, ni) is not positive. The message names the node
    with the smallest volume. `volume` begins at the plane k = `plane` of `block`. `first`: the indexes (i, j, k) of the
    first node of `block` in the block of the grid called `name`."""
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
