"""Inviscid right-hand side: two plans that visit points in different ways and use the same point functions. Directions
whose ghosts come from another rank are `late`. The other directions are `early`: they are computed while these ghosts
are in transfer. Both are lists of launches. They also store the sums of mass fluxes behind the faces `walls`, where
conditions need them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Any

from hiresx import kernels
from hiresx.device.fields import Layout, declared_field
from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS, GAS, GAS_CONSERVED, Equations
from hiresx.grid.blocks import direction, side

# Conserved variables of the gas.
_GAS = len(GAS_CONSERVED)


def flux_fields(layout: Layout) -> dict[str, str]:
    """Return which fields (arrays at the nodes) the inviscid fluxes read besides the flow, in a run with the fields
    `layout`: a dictionary from the name of a parameter of their kernels to the name of the field. It has at most two
    keys:

    - `fields`: the entropic stress or pressure of the regularised scheme (`hiresx.rhs.terms.entropic_pressure`), or the
      node values that a numerical flux declares to read, such as the jumps of the eigenvalues for `roe_h`.
    - `sensor`: the shock sensor of the hybrid scheme.
    """
    before = "entropic_stress", "entropic_pressure", "jumps_across"
    of_flux = next((name for name in before if layout.has(name)), "flux_fields")
    read = {"fields": of_flux, "sensor": "shock_sensor"}
    return {argument: name for argument, name in read.items() if layout.has(name)}


def flux_arguments(state: BlockState, d: int) -> dict[str, Any]:
    """Return the device arrays of the block `state` that the inviscid fluxes along the index direction `d` read besides
    the flow, as a dictionary from the name of a parameter of their kernels (see `flux_fields`)."""
    return {
        argument: state.array(name)[d : d + 1] if declared_field(name).directed else state.array(name)
        for argument, name in flux_fields(state.layout).items()
    }


class InviscidPlan(ABC):
    """Base class of the plans, which are the ways to divide the inviscid terms of a block into launches.

    - `interpolation`: the name of the interpolation.
    - `late`: the directions that need ghosts of other ranks. The attribute `late` has their launches, and `early` the
      launches that need no such ghosts.
    - `walls`: the faces at which sums of the mass fluxes are stored.
    - `viscous_fluxes`: viscous fluxes with ghosts, by direction. In these directions the launches also add the
      differences of these fluxes to the rates `r`.
    - `work_variables`: reals of work memory per node, ghosts included, for the gas.
    - `stores_roughness`: whether one kernel stores the field `rough` for the next.
    - `crowd`: the number of nodes of all blocks whose launches are made together, divided by that of this block.
    """

    work_variables: int
    stores_roughness = False

    def with_sensor(self, sensor: Call) -> Call | None:
        """Return a launch that replaces `sensor`, the launch that computes the shock sensor, and also sets the
        right-hand side in all directions; None if this plan has no such launch."""
        return None

    def __init__(
        self,
        program: Program,
        state: BlockState,
        interpolation: str,
        late: Set[int] = frozenset(),
        walls: Set[str] = frozenset(),
        viscous_fluxes: Mapping[int, Any] | None = None,
        crowd: float = 1.0,
    ):
        self.crowd = crowd
        self.program, self.state, self.interpolation, self.walls = program, state, interpolation, walls
        self.viscous_fluxes = viscous_fluxes or {}
        early, behind = ([d for d in state.active if (d in late) == wanted] for wanted in (False, True))
        self.early: list[Call] = self.together(early, True)
        self.late: list[Call] = self.together(behind, not early)

    @staticmethod
    def chunks(state: BlockState, crowd: float) -> tuple[int, ...]:
        """Return, for each active index direction, the number of nodes of the segments into which the launches of the
        block `state` divide grid lines; nothing if the plan does not divide them. `crowd`: as for the class."""
        return ()

    def sums(self, d: int) -> Any:
        """Return the device array in which the launches along the index direction `d` store sums of mass fluxes for
        walls normal to `d`; None if the block has no such wall."""
        return self.state.array("wall_sums") if d in map(direction, self.walls) else None

    def together(self, directions: Sequence[int], first: bool) -> list[Call]:
        """Return the kernel launches that compute the inviscid terms along the index `directions`. If `first` is true,
        the first of them sets the right-hand side; all others add to it."""
        return [call for n, d in enumerate(directions) for call in self.launches(d, first and n == 0)]

    @abstractmethod
    def launches(self, d: int, first: bool) -> list[Call]:
        """Return the kernel launches that compute the inviscid terms along the index direction `d`. If `first` is true
        they set the right-hand side, otherwise they add to it."""

    @classmethod
    def work(cls, equations: Equations = GAS) -> int:
        """Return how many reals of temporary memory this plan needs per node, ghost nodes included, for the system
        `equations`."""
        return cls.work_variables

    @staticmethod
    def viscous_directions(precision: str) -> Set[int]:
        """Return the index directions (0, 1, 2) along which the kernel of the inviscid fluxes also computes the
        differences of the viscous fluxes. `precision`: the name of the floating-point precision."""
        return frozenset()


class Pencils(InviscidPlan):
    """Plan of the inviscid terms for CPUs: one kernel per direction, which processes one bundle of grid lines at a time
    in the cache."""

    work_variables = 0
    sweep = "inviscid_sweep"

    @staticmethod
    def viscous_directions(precision: str) -> Set[int]:
        """Return the index directions along which the kernel of the inviscid fluxes also computes the differences of
        the viscous fluxes: all three, in any precision."""
        return frozenset(range(DIRECTIONS))

    def launches(self, d: int, first: bool) -> list[Call]:
        """Return the one kernel launch that computes the inviscid terms along the index direction `d`. If `first` is
        true it sets the right-hand side, otherwise it adds to it."""
        s, carried = self.state, self.viscous_fluxes
        (s1, n1), (s2, n2) = sorted((s.strides[e], s.size[e]) for e in range(3) if e != d)
        return [
            self.program.call(
                self.sweep, None, q=s.q, m=s.areas[d], viscous_flux=carried.get(d), r=s.r, sums=self.sums(d),
                sv=s.variable_stride, o=s.origin, sd=s.strides[d], nd=s.size[d], s1=s1, n1=n1, s2=s2, n2=n2,
                first=int(first), **flux_arguments(s, d),
            )
        ]  # fmt: skip


class Decomposed(InviscidPlan):
    """Plan of the inviscid terms as in Ye et al. (2022), with one thread per point. Separate kernels compute the
    interpolation, the physical flux, the numerical flux and the difference."""

    # minus states, physical flux, pressure, plus states
    work_variables = 3 * _GAS + 1
    stores_roughness = True

    @classmethod
    def work(cls, equations: Equations = GAS) -> int:
        """Return how many reals of temporary memory this plan needs per node, ghost nodes included, for the system
        `equations`. The fluxes of scalars use the memory of the states on the plus side of half points."""
        return cls.work_variables + max(0, len(equations.scalars) - _GAS)

    def launches(self, d: int, first: bool) -> list[Call]:
        """Return the kernel launches that compute the inviscid terms along the index direction `d`, in order:
        interpolation, physical flux, numerical flux, difference. If `first` is true the last sets the right-hand side,
        otherwise it adds to it."""
        s, work = self.state, self.state.work
        minus, flux, pressure, plus = (
            work[:_GAS],
            work[_GAS : 2 * _GAS],
            work[2 * _GAS],
            work[2 * _GAS + 1 : 3 * _GAS + 1],
        )
        scalar_fluxes = work[2 * _GAS + 1 : 2 * _GAS + 1 + len(s.scalars)]
        sd, area = s.strides[d], s.areas[d]
        calls: list[Call] = []

        def visit(kernel: str, begin: int, end: int, **arguments: Any) -> None:
            """A kernel on the range begin..n-1+end in direction d."""
            ni, nj, nk = (n + (end - begin if e == d else 0) for e, n in enumerate(s.size))
            at = s.place | {"o": s.origin + begin * sd}
            calls.append(self.program.call(kernel, (ni, nj, nk), **at, sv=s.variable_stride, **arguments))

        def visit_walls(flux: Any, row: int = 0) -> None:
            for face in sorted(face for face in self.walls if direction(face) == d):
                extent, nodes = face_nodes(s, face)
                calls.append(self.program.call("face_mass", extent, **nodes, flux=flux, sums=self.sums(d)[row]))

        traits = "interpolates_nodes", "correction_reach"
        last, around = (kernels.trait("interpolation", self.interpolation, name) for name in traits)
        rough = {} if (marks := s.array("rough")) is None else {"rough": marks}
        visit("interpolate", -1, last, sd=sd, q=s.q, m=area, minus=minus, plus=plus, **rough)
        visit("physical_flux", -around, around, q=s.q, m=area, f=flux, pressure=pressure)
        states = {"minus": minus, "plus": plus} | rough | flux_arguments(s, d)
        visit("numerical_flux", -1, 0, sd=sd, q=s.q, m=area, f=flux, pressure=pressure, **states)
        visit("flux_difference", 0, 0, sd=sd, flux=minus, r=s.r, first=int(first))
        visit_walls(minus)
        if s.scalars:
            visit("scalar_flux", -1, 0, sd=sd, q=s.q, mass=minus, f=flux, pressure=pressure, flux=scalar_fluxes)
            rates = s.r[s.equations.scalar_rows]
            visit("scalar_difference", 0, 0, sd=sd, flux=scalar_fluxes, r=rates, first=int(first))
            for row, scalar_flux in enumerate(scalar_fluxes, _GAS):
                visit_walls(scalar_flux, row)
        return calls


def face_nodes(state: BlockState, face: str) -> tuple[tuple[int, int, int], dict[str, int]]:
    """Return what a kernel launch over the nodes of a face needs: the numbers of points (n1, n2, 1), and a dictionary
    of kernel arguments. These are the flat array index of the first node, and the strides along the face (s1, s2) and
    inwards (sn). `face`: its name, such as "imin"."""
    d = direction(face)
    tangents = [e for e in range(3) if e != d]
    first = state.origin + (state.size[d] - 1 if side(face) > 0 else 0) * state.strides[d]
    (n1, n2), (s1, s2) = ([sizes[e] for e in tangents] for sizes in (state.size, state.strides))
    return (n1, n2, 1), {"o": first, "s1": s1, "s2": s2, "sn": -side(face) * state.strides[d]}
