"""Inviscid right-hand side: the two plans of visiting the same point functions.

Directions whose ghosts come from another rank are `late`: the others, `early` ones, can be done while these ghosts are
on their way. Both are lists of launches. Behind the faces `walls` the sums of mass fluxes are left that their
conditions ask for.
"""

from collections.abc import Mapping, Set
from typing import Any

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS, GAS, GAS_CONSERVED, Equations
from hiresx.grid.blocks import direction, side

# Conserved variables of the gas.
_GAS = len(GAS_CONSERVED)


class InviscidPlan:
    """Launches of the inviscid terms of one block: `early` and `late` ones. `work_variables`: reals of work memory per
    padded point for the gas. `carries_scalars`: whether passive scalars may be among the equations."""

    work_variables: int
    carries_scalars = False
    early: list[Call]
    late: list[Call]

    @classmethod
    def work(cls, equations: Equations = GAS) -> int:
        """Reals of work memory per padded point."""
        return cls.work_variables

    @staticmethod
    def carried(precision: str) -> Set[int]:
        """The directions in which it could take the differences of viscous fluxes as well."""
        return frozenset()


class Pencils(InviscidPlan):
    """CPU plan: a bundle of grid lines in cache, one kernel per direction. Given `viscous_fluxes` (by direction, with
    ghosts), their differences too, while `r` is there."""

    work_variables = 0
    carries_scalars = True

    @staticmethod
    def carried(precision: str) -> Set[int]:
        """All."""
        return frozenset(range(DIRECTIONS))

    def __init__(
        self,
        program: Program,
        state: BlockState,
        interpolation: str,
        late: Set[int] = frozenset(),
        walls: Set[str] = frozenset(),
        viscous_fluxes: Mapping[int, Any] | None = None,
    ):
        carried = viscous_fluxes or {}
        no_flux = state.q.view(state.metrics.dtype)  # that a kernel may be given and does not look at
        self.early: list[Call] = []
        self.late: list[Call] = []
        for order, d in enumerate(ordered(state, late)):
            (s1, n1), (s2, n2) = sorted((state.strides[e], state.size[e]) for e in range(3) if e != d)
            (self.late if d in late else self.early).append(
                program.call(
                    "inviscid_sweep", None, q=state.q, m=state.areas[d], viscous_flux=carried.get(d, no_flux),
                    r=state.r, sv=state.variable_stride, o=state.origin, sd=state.strides[d], nd=state.size[d], s1=s1,
                    n1=n1, s2=s2, n2=n2, first=int(order == 0), walls=int(d in map(direction, walls)),
                    viscous=int(d in carried),
                )
            )  # fmt: skip


class Decomposed(InviscidPlan):
    """The paper's plan, a thread per point: interpolate, physical flux, numerical flux, difference."""

    # minus states, physical flux, pressure, plus states
    work_variables = 3 * _GAS + 1
    carries_scalars = True

    @classmethod
    def work(cls, equations: Equations = GAS) -> int:
        """Fluxes of the scalars stand where the plus states were."""
        return cls.work_variables + max(0, len(equations.scalars) - _GAS)

    def __init__(
        self,
        program: Program,
        state: BlockState,
        interpolation: str,
        late: Set[int] = frozenset(),
        walls: Set[str] = frozenset(),
    ):
        minus, flux = state.work[:_GAS], state.work[_GAS : 2 * _GAS]
        pressure, plus = state.work[2 * _GAS], state.work[2 * _GAS + 1 : 3 * _GAS + 1]
        first_flux = 2 * _GAS + 1
        scalar_fluxes = state.work[first_flux : first_flux + len(state.scalars)]
        interpolates_nodes = interpolation == "modified"
        s, sv = state, state.variable_stride
        self.early: list[Call] = []
        self.late: list[Call] = []
        for order, d in enumerate(ordered(state, late)):
            sd, area, first = s.strides[d], s.areas[d], int(order == 0)
            calls = self.late if d in late else self.early

            def visit(
                kernel: str, begin: int, end: int, d: int = d, calls: list[Call] = calls, **arguments: Any
            ) -> None:
                """A kernel on the range begin..n-1+end in direction d."""
                ni, nj, nk = (n + (end - begin if e == d else 0) for e, n in enumerate(s.size))
                at = s.place | {"o": s.origin + begin * s.strides[d]}
                calls.append(program.call(kernel, (ni, nj, nk), **at, sv=sv, **arguments))

            def visit_walls(flux: Any, r: Any, d: int = d, calls: list[Call] = calls) -> None:
                for face in sorted(face for face in walls if direction(face) == d):
                    extent, nodes = _face(s, face)
                    calls.append(program.call("face_mass", extent, **nodes, flux=flux, r=r))

            last = 1 if interpolates_nodes else 0
            visit("interpolate", -1, last, sd=sd, q=s.q, m=area, minus=minus, plus=plus)
            visit("physical_flux", -3, 3, q=s.q, m=area, f=flux, pressure=pressure)
            visit(
                "numerical_flux", -1, 0, sd=sd, q=s.q, m=area, f=flux, pressure=pressure, minus=minus, plus=plus
            )  # fmt: skip
            visit("flux_difference", 0, 0, sd=sd, flux=minus, r=s.r, first=first)
            visit_walls(minus, s.r)
            if not s.scalars:
                continue
            visit("scalar_flux", -1, 0, sd=sd, q=s.q, mass=minus, f=flux, pressure=pressure, flux=scalar_fluxes)
            visit("scalar_difference", 0, 0, sd=sd, flux=scalar_fluxes, r=s.r[s.equations.scalar_rows], first=first)
            for (_, rate), scalar_flux in zip(s.scalars, scalar_fluxes, strict=True):
                visit_walls(scalar_flux, rate)


def ordered(state: BlockState, late: Set[int]) -> list[int]:
    """The directions of a block, late ones last."""
    return sorted(state.active, key=lambda d: (d in late, d))


def _face(state: BlockState, face: str) -> tuple[tuple[int, int, int], dict[str, int]]:
    """Extent of a face; index of its first node, strides along it and inwards."""
    d = direction(face)
    tangents = [e for e in range(3) if e != d]
    first = state.origin + (state.size[d] - 1 if side(face) > 0 else 0) * state.strides[d]
    (n1, n2), (s1, s2) = ([sizes[e] for e in tangents] for sizes in (state.size, state.strides))
    return (n1, n2, 1), {"o": first, "s1": s1, "s2": s2, "sn": -side(face) * state.strides[d]}
