"""Viscous right-hand side: the launches between which the ghosts are filled."""

from collections.abc import Iterator, Set

from hiresx.arrays import triple
from hiresx.device.interface import Call
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
        self, state: BlockState, reynolds: float, remote: Set[str] = frozenset(), carried: Set[int] = frozenset()
    ):
        s, sv = state, state.variable_stride
        count = len(s.equations.gradients)
        self.w = s.work[:count]
        self.fluxes = tuple(s.work[count * (1 + d) : count * (2 + d)] for d in range(DIRECTIONS))
        self.all_fluxes = s.work[count : count * (1 + DIRECTIONS)]
        derivative_strides = tuple(stride if n > 1 else 0 for stride, n in zip(s.strides, s.size, strict=True))
        padded = tuple(reversed(s.shape))
        all_fluxes = self.all_fluxes
        self.primitives: list[Call] = [("viscous_primitives", padded, 0, s.strides[1], s.strides[2], sv, s.q, self.w)]
        self.flux: list[Call] = [
            (
                "viscous_flux", s.size, *s.place, *derivative_strides, sv, self.w, s.metrics, s.jacobian,
                1.0 / reynolds, all_fluxes,
            )
        ]  # fmt: skip

        left = tuple(0 if d in carried else stride for d, stride in enumerate(derivative_strides))

        def difference(box: Range) -> Call:
            extent = tuple(hi - lo for lo, hi in box)
            o = s.origin + sum(lo * stride for (lo, _), stride in zip(box, s.strides, strict=True))
            return ("viscous_difference", extent, o, *s.place[1:], *left, sv, all_fluxes, s.r)

        inner = inner_box(s.size, remote)
        self.inner_difference = [difference(inner)] if any(left) else []
        self.outer_difference = [difference(box) for box in shells(s.size, inner)] if any(left) else []


def inner_box(size: tuple[int, int, int], remote: Set[str]) -> Range:
    """The nodes of a block of `size` (ni, nj, nk) whose differences need no ghosts of the faces `remote`."""
    return triple(
        (REACH * (FACES[2 * d] in remote), n - REACH * (FACES[2 * d + 1] in remote)) for d, n in enumerate(size)
    )


def shells(size: tuple[int, int, int], inner: Range) -> Iterator[Range]:
    """Disjoint boxes that cover what `inner` leaves of the block: rows along i as long as can be."""
    box = [(0, n) for n in size]
    for d in (2, 1, 0):
        lo, hi = inner[d]
        for first, last in ((0, lo), (hi, size[d])):
            if first < last:
                yield triple((first, last) if e == d else box[e] for e in range(3))
        box[d] = (lo, hi)
