"""The GPU's plan: the inviscid right-hand side of a direction in one kernel (kernels/fused.h)."""

from collections.abc import Set

import numpy as np

from hiresx.device.interface import Call
from hiresx.grid.blocks import direction, side
from hiresx.rhs.chunks import line_chunk, row_chunk
from hiresx.rhs.inviscid import InviscidPlan


class Fused(InviscidPlan):
    """One launch for each direction; no work memory."""

    work_variables = 0

    @staticmethod
    def carried(precision: str) -> Set[int]:
        """The directions in which it takes the differences of viscous fluxes at little cost: on an H200 along i at a
        third of what a kernel of their own takes; across it in FP32 only, in FP64 the sweeps lose as much as the update
        gains."""
        return {0, 1, 2} if precision == "fp32" else {0}

    def launches(self, d: int, first: bool) -> list[Call]:
        s, carried = self.state, self.viscous_fluxes
        n = s.size[d]
        fields = {
            "sv": s.variable_stride, "q": s.q, "m": s.areas[d], "viscous_flux": carried.get(d), "r": s.r,
            "first": int(first), "sums": self.sums(d),
            "walls": sum(1 << (side(face) > 0) for face in self.walls if direction(face) == d),
            **self.flux_arguments,
        }  # fmt: skip
        if s.strides[d] == 1:
            rows, planes = s.size[1:]
            elements = (rows - 1) * s.strides[1] + n
            chunk = row_chunk(elements, planes)
            extent = (-(-elements // chunk), 1, planes)
            return [self.program.call("sweep_along", extent, **s.place, n=n, rows=rows, chunk=chunk, **fields)]
        other = 3 - d
        chunk = line_chunk(n, s.size[0] * s.size[other], np.dtype(s.real).itemsize)
        extent = (s.size[0], s.size[other], -(-n // chunk))
        lines = {"o": s.origin, "s2": s.strides[other], "sd": s.strides[d]}
        return [self.program.call("sweep_across", extent, **lines, n=n, chunk=chunk, **fields)]
