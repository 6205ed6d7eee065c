"""Inviscid right-hand side: the two plans of visiting the same point functions.

Directions whose ghosts come from another rank are `late`: the others, `early` ones, can be done while these ghosts are
on their way. Both are lists of launches. Behind the faces `walls` the sums of mass fluxes are left that their
conditions ask for.
"""

from collections.abc import Set

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.equations import GAS, GAS_CONSERVED, Equations
from hiresx.grid.blocks import direction, side

# Conserved variables of the gas.
_GAS = len(GAS_CONSERVED)


class Plan:
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


class Pencils(Plan):
    """CPU plan: a bundle of grid lines in cache, one kernel per direction."""

    work_variables = 0
    carries_scalars = True

    def __init__(
        self, state: BlockState, interpolation: str, late: Set[int] = frozenset(), walls: Set[str] = frozenset()
    ):
        self.early: list[Call] = []
        self.late: list[Call] = []
        for order, d in enumerate(ordered(state, late)):
            others = sorted((state.strides[e], state.size[e]) for e in range(3) if e != d)
            (self.late if d in late else self.early).append(
                (
                    "inviscid_sweep", None,
                    state.q, state.areas[d], state.r, state.variable_stride, state.origin, state.strides[d],
                    state.size[d], *others[0], *others[1], int(order == 0), int(d in map(direction, walls)),
                )
            )  # fmt: skip


class Decomposed(Plan):
    """The paper's plan, a thread per point: interpolate, physical flux, numerical flux, difference."""

    # minus states, physical flux, pressure, plus states
    work_variables = 3 * _GAS + 1
    carries_scalars = True

    @classmethod
    def work(cls, equations: Equations = GAS) -> int:
        """Fluxes of the scalars stand where the plus states were."""
        return cls.work_variables + max(0, len(equations.scalars) - _GAS)

    def __init__(
        self, state: BlockState, interpolation: str, late: Set[int] = frozenset(), walls: Set[str] = frozenset()
    ):
        minus, flux = state.work[:_GAS], state.work[_GAS : 2 * _GAS]
        pressure, plus = state.work[2 * _GAS], state.work[2 * _GAS + 1 : 3 * _GAS + 1]
        first_flux = 2 * _GAS + 1
        scalar_fluxes = state.work[first_flux : first_flux + len(state.scalars)]
        interpolates_nodes = interpolation == "modified"
        s, sv = state, state.variable_stride
        across = (s.strides[1], s.strides[2])
        self.early: list[Call] = []
        self.late: list[Call] = []
        for order, d in enumerate(ordered(state, late)):
            sd, area = s.strides[d], s.areas[d]
            calls = self.late if d in late else self.early

            def nodes(first: int, last: int, d: int = d) -> tuple[tuple[int, int, int], int]:
                """Extent and first index of the range first..n-1+last in direction d."""
                extent = tuple(n + (last - first if e == d else 0) for e, n in enumerate(s.size))
                return extent, s.origin + first * s.strides[d]

            extent, o = nodes(-1, 1 if interpolates_nodes else 0)
            calls.append(("interpolate", extent, o, *across, sd, sv, s.q, area, minus, plus))
            extent, o = nodes(-3, 3)
            calls.append(("physical_flux", extent, o, *across, sv, s.q, area, flux, pressure))
            extent, o = nodes(-1, 0)
            calls.append(("numerical_flux", extent, o, *across, sd, sv, s.q, area, flux, pressure, minus, plus))
            extent, o = nodes(0, 0)
            calls.append(("flux_difference", extent, o, *across, sd, sv, minus, s.r, int(order == 0)))
            for face in sorted(face for face in walls if direction(face) == d):
                calls.append(("face_mass", *_face(s, face), minus, s.r))
            if not s.scalars:
                continue
            extent, o = nodes(-1, 0)
            calls.append(("scalar_flux", extent, o, *across, sd, sv, s.q, minus, flux, pressure, scalar_fluxes))
            extent, o = nodes(0, 0)
            rates = s.r[s.equations.scalar_rows]
            calls.append(("scalar_difference", extent, o, *across, sd, sv, scalar_fluxes, rates, int(order == 0)))
            for face in sorted(face for face in walls if direction(face) == d):
                for (_, rate), scalar_flux in zip(s.scalars, scalar_fluxes, strict=True):
                    calls.append(("face_mass", *_face(s, face), scalar_flux, rate))


def ordered(state: BlockState, late: Set[int]) -> list[int]:
    """The directions of a block, late ones last."""
    return sorted(state.active, key=lambda d: (d in late, d))


def _face(state: BlockState, face: str) -> tuple:
    """Extent of a face, index of its first node, strides along it and inwards."""
    d = direction(face)
    tangents = [e for e in range(3) if e != d]
    first = state.origin + (state.size[d] - 1 if side(face) > 0 else 0) * state.strides[d]
    strides = (state.strides[e] for e in tangents)
    return (*(state.size[e] for e in tangents), 1), first, *strides, -side(face) * state.strides[d]
