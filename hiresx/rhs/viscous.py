"""Viscous right-hand side: the launches between which the ghosts are filled."""

from collections.abc import Iterator, Set
from typing import Any

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS, GHOSTS
from hiresx.grid.blocks import FACES, Range

# Nodes to each side that the central difference reaches.
REACH = GHOSTS


class Viscous:
    """The launches `primitives`, `flux`, `inner_difference` and `outer_difference` of one block; `w`
    (u, v, w, T and the scalars) and `fluxes[d]` (momentum, energy and the scalars) are views of its work array.

    The ghosts of `w` are filled before the fluxes, those of `fluxes` before the differences; on the faces `remote`,
    whose ghosts come from another rank, before the outer differences only. The differences in the directions `carried`
    are somebody else's.
    """

    def __init__(
        self,
        program: Program,
        state: BlockState,
        reynolds: float,
        remote: Set[str] = frozenset(),
        carried: Set[int] = frozenset(),
    ):
        s, sv = state, state.variable_stride
        count = len(s.equations.gradients)
        self.w = s.work[:count]
        self.fluxes = tuple(s.work[count * (1 + d) : count * (2 + d)] for d in range(DIRECTIONS))
        self.all_fluxes = s.work[count : count * (1 + DIRECTIONS)]
        along = s.derivative_strides
        self.primitives: list[Call] = [primitives(program, s, self.w)]
        self.flux: list[Call] = [
            program.call(
                "viscous_flux", s.size, **s.place, **along, sv=sv, w=self.w, m=s.metrics, jacobian=s.jacobian,
                inverse_reynolds=1.0 / reynolds, flux=self.all_fluxes,
            )
        ]  # fmt: skip

        left = {name: 0 if d in carried else stride for d, (name, stride) in enumerate(along.items())}

        def difference(box: Range) -> Call:
            ni, nj, nk = (hi - lo for lo, hi in box)
            o = s.origin + sum(lo * stride for (lo, _), stride in zip(box, s.strides, strict=True))
            at = s.place | {"o": o}
            return program.call("viscous_difference", (ni, nj, nk), **at, **left, sv=sv, flux=self.all_fluxes, r=s.r)

        inner = inner_box(s.size, remote)
        self.inner_difference = [difference(inner)] if any(left.values()) else []
        self.outer_difference = [difference(box) for box in shells(s.size, inner)] if any(left.values()) else []


def primitives(program: Program, state: BlockState, w: Any) -> Call:
    """Velocity, temperature and the scalars of every padded node into `w`."""
    at, (nk, nj, ni) = state.place | {"o": 0}, state.shape
    return program.call("viscous_primitives", (ni, nj, nk), **at, sv=state.variable_stride, q=state.q, w=w)


def inner_box(size: tuple[int, int, int], remote: Set[str]) -> Range:
    """The nodes of a block of `size` (ni, nj, nk) whose differences need no ghosts of the faces `remote`."""
    i, j, k = ((REACH * (FACES[2 * d] in remote), n - REACH * (FACES[2 * d + 1] in remote)) for d, n in enumerate(size))
    return i, j, k


def shells(size: tuple[int, int, int], inner: Range) -> Iterator[Range]:
    """Disjoint boxes that cover what `inner` leaves of the block: rows along i as long as can be."""
    box = [(0, n) for n in size]
    for d in (2, 1, 0):
        lo, hi = inner[d]
        for first, last in ((0, lo), (hi, size[d])):
            if first < last:
                i, j, k = ((first, last) if e == d else box[e] for e in range(3))
                yield i, j, k
        box[d] = (lo, hi)
