"""The explicit filter of the flow (kernels/spatial_filter.h): how far it reaches at each node, and its launches."""

from collections.abc import Sequence

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Patch
from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.blocks import direction, side, slices
from hiresx.rhs.terms import SHOCK_SENSOR


def check(case: Case, blocks: Sequence[Block]) -> None:
    """Raise HiresxError if the explicit filter of `case` is so strong that it would reverse the sign of the shortest
    waves of the grid."""
    directions = max(len(block.active) for block in blocks)
    # one third as a decimal number may be rounded up
    if case.filter is not None and case.filter.strength * directions > 1 + 1e-3:
        raise HiresxError(
            f"filter.strength = {case.filter.strength:g} along {directions} directions reverses the sign "
            "of the shortest waves of the grid",
            f"set filter.strength to {1 / directions:.3g} at most",
        )


def reaches(state: BlockState, patches: Sequence[Patch], reach: int) -> np.ndarray:
    """Return the half-width of the explicit filter, in nodes, at each node of a block along i, j and k: (3, nk, nj,
    ni). In the interior it is `reach`, for the order 2 `reach`. At nodes less than `reach` nodes from one of the
    boundary `patches` it is the distance from the patch, with a negative sign at the upper end of a grid line. On a
    patch it is 0, because the boundary condition sets the nodes."""
    shape = tuple(reversed(state.size))
    found, on_faces = np.zeros((DIRECTIONS, *shape)), np.zeros(shape, dtype=bool)
    for d in state.active:
        found[d] = reach
    for patch in patches:
        if patch.block != state.index:
            continue
        d = direction(patch.face)
        lines = list(patch.range)
        lines[d] = (0, state.size[d])
        distance = np.arange(state.size[d], dtype=float)
        if side(patch.face) > 0:
            distance = -distance[::-1]
        there = found[d][slices((lines[0], lines[1], lines[2]))]
        axes = [1, 1, 1]
        axes[DIRECTIONS - 1 - d] = -1
        distance = distance.reshape(axes)
        there[...] = np.where(abs(distance) < reach, distance, there)
        on_faces[slices(patch.range)] = True
    found[:, on_faces] = 0.0
    return found


def filter_calls(
    case: Case, backend: Backend, program: Program, states: Sequence[BlockState], patches: Sequence[Patch]
) -> list[list[Call]]:
    """Return the kernel launches that apply the explicit filter to the blocks `states`, as two lists of independent
    launches: the first compute the changes, the second add them to the state. With the hybrid scheme they read the
    shock sensor of the last stage, whose ghost layers must be filled. `patches`: the boundary patches of these blocks
    at which the filter ends."""
    assert case.filter is not None
    changes, sums = [], []
    for state in states:
        reach, change = state.array("filter_reach"), state.array("filter_change")
        values = reaches(state, patches, case.filter.reach).astype(state.storage.work)
        backend.copy(state.interior(reach), backend.to_device(values))
        place = state.place | {"sv": state.variable_stride}
        sensor = state.array(SHOCK_SENSOR)
        kernel = "filter_change" if sensor is None else "filter_change_with_sensor"
        read = {} if sensor is None else {"sensor": sensor}
        changes.append(
            program.call(
                kernel, state.size, **place, **state.derivative_strides, **read, q=state.q, reach=reach,
                half=case.filter.reach, strength=case.filter.strength, change=change,
            )
        )  # fmt: skip
        sums.append(program.call("add_filter_change", state.size, **place, change=change, q=state.q))
    return [changes, sums]
