"""The viscous right-hand side: the launches before and after the ghosts of its fields are filled."""

from collections.abc import Callable, Iterator, Set
from typing import Any, NamedTuple

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.device.wrappers import tile
from hiresx.equations import DIRECTIONS
from hiresx.equations.stencil import DIFFERENCE_REACH as REACH
from hiresx.grid.blocks import FACES, Range
from hiresx.rhs.chunks import march_chunk


class Launches(NamedTuple):
    """Launches in two groups. Launches in `outer` need ghosts from other ranks, those in `inner` do not."""

    inner: list[Call]
    outer: list[Call]


class Viscous:
    """The launches `primitives`, `flux` and `difference` of one block, in this order. `w` (u, v, w, T and the scalars)
    and `fluxes[d]` (momentum, energy and the scalars) are views of the block's arrays.

    The ghosts of `w` are filled before the fluxes, the ghosts of `fluxes` before the differences. `reynolds`: the
    Reynolds number. `reach`: the number of nodes that the central differences read on each side. `remote`: the faces
    whose ghosts come from another rank; launches that need these ghosts are separate. `ahead`: whether the fluxes are
    computed before the inviscid terms. If so, the launches of the fluxes wait for ghosts of the state (`late`: the
    faces `remote`), and `w` uses the memory of the rates `r`, to which no term has written yet. Otherwise the launches
    of the differences wait for ghosts of the fluxes. `carried`: directions in which the inviscid terms also compute the
    viscous differences. `marches`: whether the launches of the fluxes compute the primitives, too, which are not stored
    (kernels/viscous_march.h); only for GPUs, and for blocks in which ghosts of the primitives are those of the state.
    """

    def __init__(
        self,
        program: Program,
        state: BlockState,
        reynolds: float,
        reach: int,
        remote: Set[str] = frozenset(),
        carried: Set[int] = frozenset(),
        ahead: bool = False,
        marches: bool = False,
    ):
        s, sv = state, state.variable_stride
        count = len(s.equations.gradients)
        first = 0 if ahead else count
        self.w = s.array("primitives") if ahead else s.work[:count]
        self.fluxes = tuple(s.work[first + count * d : first + count * (1 + d)] for d in range(DIRECTIONS))
        self.all_fluxes = s.work[first : first + count * DIRECTIONS]
        none: Set[str] = frozenset()
        self.late = remote if ahead else none
        self.inverse_reynolds = 1.0 / reynolds
        along, eddies = s.derivative_strides, s.eddy_model
        flow = {"q": s.q} if eddies else {}
        left = {name: 0 if d in carried else stride for d, (name, stride) in enumerate(along.items())}

        def place_of(box: Range) -> dict[str, int]:
            o = s.origin + sum(lo * stride for (lo, _), stride in zip(box, s.strides, strict=True))
            return s.place | {"o": o}

        def flux(box: Range) -> Call:
            if marches:
                ni, nj, n = extent(box)
                width, height = tile("viscous_march")
                chunk = march_chunk(n, -(-ni // width) * -(-nj // height))
                return program.call(
                    "viscous_march", (ni, nj, -(-n // chunk)), **place_of(box), n=n, chunk=chunk, sv=sv, q=s.q,
                    m=s.metrics, jacobian=s.jacobian, inverse_reynolds=self.inverse_reynolds, flux=self.all_fluxes,
                )  # fmt: skip
            return program.call(
                "viscous_flux", extent(box), **place_of(box), **along, sv=sv, w=self.w, m=s.metrics,
                jacobian=s.jacobian, inverse_reynolds=self.inverse_reynolds, **flow, **eddies,
                flux=self.all_fluxes,
            )  # fmt: skip

        def difference(box: Range) -> Call:
            return program.call(
                "viscous_difference", extent(box), **place_of(box), **left, sv=sv, flux=self.all_fluxes, r=s.r
            )

        padded = _size_with_ghosts(s)
        self.primitives = Launches([], [])
        if not marches:
            self.primitives = _launches(padded, self.late, lambda box: primitives(program, s, self.w, box), max(s.halo))
        self.flux = _launches(s.size, self.late, flux, reach)
        self.difference = Launches([], [])
        if any(left.values()):
            self.difference = _launches(s.size, none if ahead else remote, difference, reach)


def _launches(size: tuple[int, int, int], remote: Set[str], call: Callable[[Range], Call], depth: int) -> Launches:
    inner = inner_box(size, remote, depth)
    return Launches([call(inner)], [call(box) for box in shells(size, inner)])


def primitives(program: Program, state: BlockState, w: Any, box: Range | None = None) -> Call:
    """Return the kernel launch that computes velocity, temperature and the scalars and writes them to `w` (variables,
    k, j, i). It does so at all nodes and ghost nodes, or only in `box`: half-open index ranges (i, j, k) of the array
    with ghost layers."""
    padded = _size_with_ghosts(state)
    if box is None or padded == extent(box):
        # All memory is treated as one row. Its first entries, which belong to corners, are left out so that it begins
        # where rows of nodes do.
        lead = state.halo[0] if any(state.halo[1:]) else 0
        at, visited = {"o": lead, "sj": 0, "sk": 0}, (state.variable_stride - lead, 1, 1)
    else:
        first = sum(lo * stride for (lo, _), stride in zip(box, state.strides, strict=True))
        at, visited = state.place | {"o": first}, extent(box)
    return program.call("viscous_primitives", visited, **at, sv=state.variable_stride, q=state.q, w=w)


def _size_with_ghosts(state: BlockState) -> tuple[int, int, int]:
    """Return the number of nodes along i, j, k with ghosts."""
    i, j, k = (n + 2 * h for n, h in zip(state.size, state.halo, strict=True))
    return i, j, k


def inner_box(size: tuple[int, int, int], remote: Set[str], depth: int = REACH) -> Range:
    """Return the half-open index ranges (i, j, k) of those nodes of a block of `size` (ni, nj, nk) that lie at least
    `depth` nodes away from the faces `remote`, whose ghost nodes come from other ranks. With the default depth,
    differences at these nodes do not use such ghost nodes."""
    i, j, k = ((depth * (FACES[2 * d] in remote), n - depth * (FACES[2 * d + 1] in remote)) for d, n in enumerate(size))
    return i, j, k


def shells(size: tuple[int, int, int], inner: Range) -> Iterator[Range]:
    """Yield disjoint boxes, half-open index ranges (i, j, k), that cover the nodes of a block of `size` (ni, nj, nk)
    outside of the index box `inner`. Their rows along i are as long as possible."""
    box = [(0, n) for n in size]
    for d in (2, 1, 0):
        lo, hi = inner[d]
        for first, last in ((0, lo), (hi, size[d])):
            if first < last:
                i, j, k = ((first, last) if e == d else box[e] for e in range(3))
                yield i, j, k
        box[d] = (lo, hi)


def extent(box: Range) -> tuple[int, int, int]:
    """Return the number of nodes of a box, half-open index ranges (i, j, k), along i, j and k."""
    (i, i_end), (j, j_end), (k, k_end) = box
    return i_end - i, j_end - j, k_end - k
