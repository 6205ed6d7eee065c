"""The plan for GPUs: one kernel computes the inviscid right-hand side along a direction (kernels/fused.h)."""

import math
from collections.abc import Set

import numpy as np

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.grid.blocks import direction, side
from hiresx.rhs.chunks import line_chunk, row_chunk
from hiresx.rhs.inviscid import InviscidPlan, flux_arguments


class Fused(InviscidPlan):
    """Plan of the inviscid terms for GPUs: one kernel launch for each direction, without work memory."""

    work_variables = 0

    @staticmethod
    def viscous_directions(precision: str) -> Set[int]:
        """Return the index directions (0, 1, 2) along which the kernel of the inviscid fluxes also computes the
        differences of the viscous fluxes, for a floating-point `precision`. Along the other directions a separate
        kernel computes them. On an H200 the combined kernel adds a third of the time that the separate one takes along
        i. Along j and k the combined kernel is faster in FP32. In FP64 it is not, since the inviscid fluxes become
        slower."""
        return {0, 1, 2} if precision == "fp32" else {0}

    @staticmethod
    def chunks(state: BlockState, crowd: float) -> tuple[int, ...]:
        """Return, for each active index direction, the number of nodes of the segments into which the launches of the
        block `state` divide grid lines. `crowd`: the number of nodes of all blocks whose launches are made together,
        divided by that of this block."""
        return tuple(chunk_along(state, d, crowd) for d in state.active)

    def launches(self, d: int, first: bool) -> list[Call]:
        """Return the one kernel launch that computes the inviscid terms along the index direction `d`. If `first` is
        true it sets the right-hand side, otherwise it adds to it."""
        return [self.sweep(d, first, self.walls)]

    def sweep(self, d: int, first: bool, walls: Set[str]) -> Call:
        """Return the kernel launch that computes the inviscid terms along the index direction `d`. If `first` is true
        it sets the right-hand side, otherwise it adds to it. `walls`: names of faces, such as "imin"; behind those
        normal to `d` the launch also stores sums of mass fluxes, which walls need for conservation."""
        s, carried = self.state, self.viscous_fluxes
        n = s.size[d]
        fields = {
            "sv": s.variable_stride, "q": s.q, "m": s.areas[d], "viscous_flux": carried.get(d), "r": s.r,
            "first": int(first), "sums": self.sums(d) if walls else None,
            "walls": sum(1 << (side(face) > 0) for face in walls if direction(face) == d),
            **flux_arguments(s, d),
        }  # fmt: skip
        chunk = chunk_along(s, d, self.crowd)
        if s.strides[d] == 1:
            rows, planes = s.size[1:]
            extent = (-(-((rows - 1) * s.strides[1] + n) // chunk), 1, planes)
            return self.program.call("sweep_along", extent, **s.place, n=n, rows=rows, chunk=chunk, **fields)
        other = 3 - d
        extent = (s.size[0], s.size[other], -(-n // chunk))
        lines = {"o": s.origin, "s2": s.strides[other], "sd": s.strides[d]}
        return self.program.call("sweep_across", extent, **lines, n=n, chunk=chunk, **fields)


def chunk_along(state: BlockState, d: int, crowd: float) -> int:
    """Return the number of nodes of the segments into which the launches of the block `state` divide grid lines along
    the index direction `d`. `crowd`: as for `Fused.chunks`."""
    (ni, nj, nk), n = state.size, state.size[d]
    if state.strides[d] == 1:
        return row_chunk((nj - 1) * state.strides[1] + n, math.ceil(nk * crowd))
    return line_chunk(n, math.ceil(ni * state.size[3 - d] * crowd), np.dtype(state.real).itemsize)
