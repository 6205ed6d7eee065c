"""The GPU's plan: the inviscid right-hand side of a direction in one kernel (kernels/fused.h)."""

from collections.abc import Sequence, Set

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.grid.blocks import direction, side
from hiresx.rhs.chunks import line_chunk, row_chunk
from hiresx.rhs.inviscid import ordered


class Fused:
    """One launch for each direction; no work memory. Given `viscous_fluxes` (for each direction 4, with ghosts), their
    differences too, which then no kernel of their own takes."""

    work_variables = 0
    carries_viscous = True

    def __init__(
        self,
        state: BlockState,
        interpolation: str,
        late: Set[int] = frozenset(),
        walls: Set[str] = frozenset(),
        viscous_fluxes: Sequence | None = None,
    ):
        s, sv = state, state.variable_stride
        self.early: list[Call] = []
        self.late: list[Call] = []
        for order, d in enumerate(ordered(state, late)):
            n = s.size[d]
            closed = sum(1 << (side(face) > 0) for face in walls if direction(face) == d)
            carried = viscous_fluxes is not None
            flux = viscous_fluxes[d] if carried else s.q
            fields = (sv, s.q, s.areas[d], flux, s.r, int(order == 0), closed, int(carried))
            calls = self.late if d in late else self.early
            if s.strides[d] == 1:
                chunk = row_chunk(n, s.size[1] * s.size[2])
                extent = (-(-n // chunk), s.size[1], s.size[2])
                calls.append(("sweep_along", extent, s.origin, *s.strides[1:], n, chunk, *fields))
            else:
                other = 3 - d
                chunk = line_chunk(n, s.size[0] * s.size[other])
                extent = (s.size[0], s.size[other], -(-n // chunk))
                calls.append(("sweep_across", extent, s.origin, s.strides[other], s.strides[d], n, chunk, *fields))
