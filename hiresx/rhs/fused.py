"""The GPU's plan: the inviscid right-hand side of a direction in one kernel (kernels/fused.h)."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.grid.blocks import direction, side
from hiresx.rhs.chunks import line_chunk, row_chunk
from hiresx.rhs.inviscid import InviscidPlan, ordered


class Fused(InviscidPlan):
    """One launch for each direction; no work memory. Given `viscous_fluxes` (by direction 4, with ghosts), their
    differences too."""

    work_variables = 0

    @staticmethod
    def carried(precision: str) -> Set[int]:
        """The directions in which it takes the differences of viscous fluxes at little cost: on an H200 along i at a
        third of what a kernel of their own takes; across it in FP32 only, in FP64 the sweeps lose as much as the update
        gains."""
        return {0, 1, 2} if precision == "fp32" else {0}

    def __init__(
        self,
        program: Program,
        state: BlockState,
        interpolation: str,
        late: Set[int] = frozenset(),
        walls: Set[str] = frozenset(),
        viscous_fluxes: Mapping[int, Any] | None = None,
    ):
        s, sv = state, state.variable_stride
        self.early: list[Call] = []
        self.late: list[Call] = []
        carried = viscous_fluxes or {}
        for order, d in enumerate(ordered(state, late)):
            n = s.size[d]
            closed = sum(1 << (side(face) > 0) for face in walls if direction(face) == d)
            fields = {
                "sv": sv, "q": s.q, "m": s.areas[d], "viscous_flux": carried.get(d, s.metrics), "r": s.r,
                "first": int(order == 0), "walls": closed, "viscous": int(d in carried),
            }  # fmt: skip
            calls = self.late if d in late else self.early
            if s.strides[d] == 1:
                rows, planes = s.size[1:]
                elements = (rows - 1) * s.strides[1] + n
                chunk = row_chunk(elements, planes)
                extent = (-(-elements // chunk), 1, planes)
                calls.append(program.call("sweep_along", extent, **s.place, n=n, rows=rows, chunk=chunk, **fields))
            else:
                other = 3 - d
                chunk = line_chunk(n, s.size[0] * s.size[other], np.dtype(s.real).itemsize)
                extent = (s.size[0], s.size[other], -(-n // chunk))
                lines = {"o": s.origin, "s2": s.strides[other], "sd": s.strides[d]}
                calls.append(program.call("sweep_across", extent, **lines, n=n, chunk=chunk, **fields))
