"""Passive scalars at physical faces and in sponges. Every boundary condition of the gas has a corresponding one for
each scalar. These are applied after all conditions of the gas (`rank`), because ghosts of rho s depend on the density
of the gas there."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from hiresx.case import Case
from hiresx.case.boundaries import NoSlipWall
from hiresx.case.turbulence_table import transported_values
from hiresx.case.wave_sums import Quantity
from hiresx.decomposition import Patch
from hiresx.device.interface import Call, Program
from hiresx.equations import GAS_CONSERVED, GAS_GRADIENTS, equations
from hiresx.errors import HiresxError
from hiresx.rhs.face_condition import Face, FaceCondition
from hiresx.rhs.prescribed_waves import FaceWaves, InTime
from hiresx.rhs.sponge import SpongeLayer
from hiresx.rhs.wall_corners import held_shares
from hiresx.rhs.wall_ends import takers

# Values of s at places and a time: f(x, y, z, t), of the shape of x.
Value = Callable[[np.ndarray, np.ndarray, np.ndarray, float], Quantity]

# Conditions of scalars write after those of the gas.
_BEHIND = 10


class ScalarCondition(FaceCondition):
    """Boundary condition of passive scalar number `number` on one boundary patch, `face`. `value`: the prescribed value
    of the case, or None. `steady`: whether it is evaluated only once; otherwise it is evaluated before every stage."""

    # Whether the value is also needed in the ghosts behind the face.
    in_ghosts = False

    def __init__(self, face: Face, number: int, value: Value | None, steady: bool):
        super().__init__(face)
        state, patch, case = face.state, face.patch, face.case
        # The larger of those of the gas and of the scalar.
        self._inverse_reynolds = max(1.0, 1 / case.all_scalars[number].schmidt) / (case.gas.reynolds or np.inf)
        self.rank = _BEHIND + type(self).rank
        self._scalar, self._rate = state.scalars[number]
        self._number, self._row = number, len(GAS_GRADIENTS) + number
        places = self._coordinates(face.extended, 1 + self._halo * self.in_ghosts)
        where = f"a passive scalar at the {patch.condition.type} on {patch.face}"
        self._given = None if value is None else InTime(lambda *at: [value(*at)], places, steady, where)
        self._time: float | None = None
        # Values of s at these places, if they are given.
        self._target: Any = None if value is None else face.backend.zeros(places[0].shape, state.real)
        self._waves: FaceWaves | None = None
        # Weights of walls that prescribe a value: see `hiresx.rhs.wall_corners.held_shares`.
        self.share: Any = None

    def to_device(self, values: np.ndarray) -> Any:
        """Return a copy of the host array `values` on the device, in the floating-point type of the block."""
        return self._backend.to_device(np.ascontiguousarray(values.astype(self.state.real)))

    @property
    def number(self) -> int:
        """The index of the scalar among the scalars of the system of equations, from 0."""
        return self._number

    @property
    def holds(self) -> bool:
        """Whether the case prescribes a value of the scalar at this patch."""
        return self._given is not None

    @property
    def is_prepared(self) -> bool:
        """Whether the prescribed value of the scalar never has to be computed by the host again."""
        return self._given is None or self._given.known

    @property
    def moves(self) -> bool:
        """Whether the prescribed value changes in time and is computed on the device."""
        return self._waves is not None

    def prepare(self, time: float) -> None:
        """Evaluate the prescribed value on the host at `time`, in L / c_ref, and copy it to the device, unless it is
        there."""
        if self._given is None or self._given.known or time == self._time:
            return
        values = self._given.values(time)[0].astype(self._target.dtype)
        self._backend.copy(self._target, self._backend.to_device(np.ascontiguousarray(values)))
        self._time = time
        self._waves = self._given.on_device(self._backend, self._target)

    def move(self, clock: Any, share: float) -> None:
        """Compute the prescribed value on the device, if it is a sum of waves. Its time is the start of the time step
        plus the fraction `share` of the size of the step. `clock`: the device array that contains start and size
        (`hiresx.time.step_clock.DeviceClock`)."""
        if self._waves is not None:
            self._waves.launch(self._launch, clock, share)

    def viscous_primitives(self, w: Any) -> None:
        """Extrapolate the scalar in `w` (variables, k, j, i), the primitive variables of the viscous terms, to the
        ghost layers."""
        if self.continued:
            rows, degree = w[self._row : self._row + 1], self.primitive_degree
            self._launch("viscous_extrapolate", self._box, **self._face, variables=1, degree=degree, w=rows)

    def viscous_state(self) -> None:
        """Extrapolate the conservative variable rho s of the scalar to the ghost layers, for the viscous terms."""
        if self.continued:
            degree, q, scalar = self.primitive_degree, self.state.q, self._scalar
            self._launch("scalar_ghost_state", self._box, **self._nodes, degree=degree, q=q, scalar=scalar)

    def viscous_flux(self, fluxes: Any) -> None:
        """Extrapolate the diffusive flux of the scalar normal to the face to the ghost layers. `fluxes[d]` (variables,
        k, j, i): the viscous fluxes along index direction d, with ghost layers."""
        rows = fluxes[self._direction][self._row : self._row + 1]
        self._launch("viscous_extrapolate", self._box, **self._face, variables=1, degree=self.flux_degree, w=rows)

    def _close(self, fluxes: Any) -> None:
        self._launch("scalar_closed", self._box, **self._nodes, flux=fluxes[self._direction][self._row])

    def _hold_nodes(self) -> None:
        nodes = {name: self._nodes[name] for name in ("o", "s1", "s2")}
        self._launch(
            "scalar_held", self._box, **nodes, n1=self.extent[0], target=self._target, share=self.share, q=self.state.q,
            scalar=self._scalar,
        )  # fmt: skip

    def _wall_ghosts(self) -> None:
        self._launch(
            "scalar_wall", self._box, **self._nodes, n1=self.extent[0], target=self._target, q=self.state.q,
            scalar=self._scalar,
        )  # fmt: skip


class ScalarSymmetry(ScalarCondition):
    """The condition of a passive scalar at slip walls and planes of symmetry: its flux through the face is zero."""

    rank = 1
    continued = False

    def ghost(self) -> None:
        """Set the scalar in the ghost layers behind the slip wall or plane of symmetry to its mirror image."""
        self._wall_ghosts()

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the diffusive flux of the scalar normal to the face such that no scalar crosses the
        face. `fluxes[d]` (variables, k, j, i): the viscous fluxes along index direction d, with ghost layers."""
        self._close(fluxes)


class ScalarSymmetryPlaces(ScalarSymmetry):
    """The condition of a passive scalar at slip walls whose ghost nodes take their values at mirrored points. They are
    filled together with the ghost nodes of the gas."""

    def ghost(self) -> None:
        """Do nothing: the ghost nodes of the scalar are interpolated at mirrored points together with those of the
        gas."""
        pass


class ScalarWall(ScalarCondition):
    """The condition of a passive scalar at no-slip walls: either its flux is zero, or its value is prescribed.
    `number`, `value`, `steady`: the number of the scalar, its prescribed value or None, and whether this is evaluated
    only once."""

    rank = 2
    primitive_degree, flux_degree = 4, 3

    def __init__(self, face: Face, number: int, value: Value | None, steady: bool):
        super().__init__(face, number, value, steady)
        self._takers = takers(face.state, face.patch, face.cut)

    def node(self) -> None:
        """Set the scalar at the nodes of the wall to its prescribed value, if there is one."""
        if self._given is not None:
            self._hold_nodes()

    def ghost(self) -> None:
        """Set the scalar in the ghost layers behind the wall to its mirror image, even about the wall, or odd about its
        value there if the case prescribes this value."""
        self._wall_ghosts()

    def rate(self) -> None:
        """Correct the inviscid right-hand side of the scalar at the nodes next to the wall, so that the scheme
        conserves it."""
        u, v, w = cast(NoSlipWall, self.patch.condition).velocity
        self._launch(
            "no_slip_scalar", self._box, **self._face, direction=self._inward, u=u, v=v, w=w,
            m=self.state.areas[self._direction], q=self.state.q, scalar=self._scalar,
            sums=self.state.array("wall_sums")[len(GAS_CONSERVED) + self._number], takers=self._takers,
            r=self._rate,
        )  # fmt: skip

    def viscous_node(self, fluxes: Any) -> None:
        """Set the diffusive flux of the scalar normal to the wall at its nodes to zero, unless the case prescribes the
        value of the scalar. `fluxes[d]` (variables, k, j, i): the viscous fluxes along index direction d, with ghost
        layers."""
        if self._given is None:
            self._launch("scalar_shut", self._box, **self._nodes, flux=fluxes[self._direction][self._row])

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the diffusive flux of the scalar normal to the wall: extrapolated if the case
        prescribes the value of the scalar, otherwise for zero flux at the wall. `fluxes[d]` (variables, k, j, i): the
        viscous fluxes along index direction d, with ghost layers."""
        if self._given is None:
            self._launch("scalar_behind", self._box, **self._nodes, flux=fluxes[self._direction][self._row])
        else:
            super().viscous_flux(fluxes)


class Prescription(ScalarCondition):
    """The condition of a passive scalar at inflows with a prescribed state."""

    gives_nodes = True
    in_ghosts = True
    continued = False
    flux_degree = 3

    def node(self) -> None:
        """Set the scalar at the nodes on the face and in the ghost layers to its prescribed value."""
        n1, n2 = self.extent
        self._launch(
            "scalar_given", self._box, **self._nodes, n1=n1, n2=n2, target=self._target, q=self.state.q,
            scalar=self._scalar,
        )  # fmt: skip


class OpenFace(ScalarCondition):
    """The condition of a passive scalar at inflows and outflows at whose nodes the flow equations are solved. Entering
    gas has the prescribed value or the value of the node."""

    @property
    def _transported(self) -> int:
        """Return 1 for a variable of the turbulence model, else 0."""
        s = self.state
        return int(self._number >= len(s.scalars) - s.layout.needed.get("transported_source", 0))

    def ghost(self) -> None:
        """Set the scalar in the ghost layers. Where gas enters they get the prescribed value, or the value at the node
        on the face if the case prescribes none."""
        s = self.state
        self._launch(
            "scalar_open", self._box, **self._face, n1=self.extent[0], direction=self._inward, target=self._target,
            transported=self._transported, m=s.areas[self._direction], q=s.q, scalar=self._scalar,
        )  # fmt: skip

    def hold(self) -> None:
        """Store the right-hand side of rho s minus s times the right-hand side of the density, where s is the scalar,
        before an outflow changes the latter."""
        self._following("scalar_hold")

    def follow(self) -> None:
        """Set the right-hand side of rho s to the values that `hold` stored plus s times the right-hand side of the
        density, which the outflow has set. s is the scalar."""
        self._following("scalar_follow")

    def _following(self, kernel: str) -> None:
        if self.patch.condition.kernel == "outflow":
            s = self.state
            held = s.array("held_rates")[self._number]
            self._launch(
                kernel, self._box, **self._nodes, q=s.q, scalar=self._scalar, r=s.r[0], rate=self._rate, held=held
            )


class SubsonicOpenFace(OpenFace):
    """An `OpenFace` through which the gas flows at less than the speed of sound (`hiresx.rhs.subsonic_face`)."""

    def _close_subsonic(self, kernel: str, **row: Any) -> None:
        transported, q, scalar = self._transported, self.state.q, self._scalar
        self._launch(kernel, self._box, **self._face, transported=transported, q=q, scalar=scalar, **row)

    def viscous_primitives(self, w: Any) -> None:
        """Set the ghost layers of the scalar in `w` (variables, k, j, i), the primitive variables of the viscous terms,
        for zero derivative of the diffusive flux along the grid line at the face."""
        self._close_subsonic("subsonic_scalar", w=w[self._row : self._row + 1])

    def viscous_state(self) -> None:
        """Set the ghost layers of the conservative variable rho s of the scalar for the viscous terms, for zero
        derivative of the diffusive flux along the grid line at the face."""
        self._close_subsonic("subsonic_scalar_state")

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the diffusive flux of the scalar normal to the face such that its derivative along
        the grid line is zero at the face. `fluxes[d]` (variables, k, j, i): the viscous fluxes along index direction
        d."""
        metrics = {"m": self.state.areas[self._direction], "jacobian": self.state.jacobian}
        rows = fluxes[self._direction][self._row : self._row + 1]
        self._close_subsonic("subsonic_scalar_flux", **metrics, flux=rows)


class ScalarSupersonicOutflow(OpenFace):
    """The condition of a passive scalar at supersonic outflows."""

    continued = False

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the diffusive flux of the scalar normal to the face, computed from the extrapolated
        flow. `fluxes[d]` (variables, k, j, i): the viscous fluxes along index direction d, with ghost layers."""
        self._leaving_flux(fluxes[self._direction][self._row : self._row + 1], 1, self._inverse_reynolds)


class PrescribedInflow(SubsonicOpenFace):
    """The condition of a passive scalar at inflows that prescribe the scalar at their nodes, where the equations of the
    gas are solved."""

    gives_nodes = True

    def node(self) -> None:
        """Set the scalar at the nodes on the face to its prescribed value."""
        self._hold_nodes()


class WithTheGas(ScalarCondition):
    """The condition of a passive scalar at patched faces, poles and the axis, where it is treated together with the
    gas."""

    rank = 1
    continued = False

    def viscous_flux(self, fluxes: Any) -> None:
        """Do nothing: the ghost layers of the scalar's flux are set together with the ghost layers of the fluxes of the
        gas."""
        pass


class LeaningAxis(WithTheGas):
    """The condition of a passive scalar at the axis of axisymmetric flow where the grid lines do not meet the axis at
    right angles. The mirror images of ghosts are then not nodes. Ghosts of the scalar are interpolated together with
    those of the gas; ghosts of its diffusive flux are extrapolated."""

    flux_degree = 2

    def viscous_flux(self, fluxes: Any) -> None:
        """Extrapolate the diffusive flux of the scalar normal to the axis to the ghost layers behind the axis, by
        parabolas. `fluxes[d]` (variables, k, j, i): the viscous fluxes of momentum (3 components), energy and each
        scalar along index direction d, with ghost layers."""
        ScalarCondition.viscous_flux(self, fluxes)


_KINDS: dict[str, type[ScalarCondition]] = {
    "reflect": ScalarSymmetry,
    "no_slip": ScalarWall,
    "prescribe": Prescription,
    "characteristic": SubsonicOpenFace,
    "total_inflow": PrescribedInflow,
    "precursor": PrescribedInflow,
    "extrapolate": ScalarSupersonicOutflow,
    "outflow": SubsonicOpenFace,
    "patched": WithTheGas,
    "pole": WithTheGas,
    "axis": WithTheGas,
}
# Conditions whose ghosts take values at mirrored places.
_MIRRORED: dict[str, type[ScalarCondition]] = {"reflect": ScalarSymmetryPlaces, "axis": LeaningAxis}


def check(case: Case, patches: Sequence[Patch]) -> None:
    """Raise HiresxError if `case` has passive scalars and a boundary patch in `patches` has a condition that is not
    defined for scalars."""
    if not case.all_scalars:
        return
    for patch in patches:
        if patch.condition.kernel not in _KINDS:
            raise HiresxError(
                f'[[scalar]]: nothing says what a scalar does at the "{patch.condition.type}" face',
                f'name the kernel "{patch.condition.kernel}" in _KINDS of hiresx/rhs/scalar_conditions.py',
            )


def conditions(face: Face, function: Callable[[str, str], Value]) -> Iterator[ScalarCondition]:
    """Yield the boundary conditions of all passive scalars, and of the variables of a turbulence model, on one boundary
    face of the gas. `function(name, given)`: returns the prescribed value of the scalar called `name` as a function of
    x, y, z and t (`Value`). It is called if the case prescribes this value by a function of case.py; `given` is the
    name of that function."""
    case, spec = face.case, face.patch.condition
    assert spec.kernel is not None  # `check` has ensured this
    values = getattr(spec, "scalars", {}) | transported_values(case, spec)
    for number, name in enumerate(equations(case).scalars):
        value = values.get(name)
        if value is not None:
            value = function(name, value) if isinstance(value, str) else partial(_uniform, float(value))
        steady = getattr(spec, "steady", True) or not isinstance(values.get(name), str)
        yield (_MIRRORED if face.mirrored else _KINDS)[spec.kernel](face, number, value, steady)


def share_corners(conditions: Sequence[FaceCondition]) -> None:
    """Set the weights (the attribute `share`) with which no-slip walls that prescribe the same scalar set the nodes
    where several of them meet (`hiresx.rhs.wall_corners`). `conditions`: all boundary conditions."""
    walls = [c for c in conditions if isinstance(c, ScalarWall) and c.holds]
    for state, number in {(id(c.state), c.number): (c.state, c.number) for c in walls}.values():
        here = [c for c in walls if c.state is state and c.number == number]
        for c, share in zip(here, held_shares(state.size, [c.patch for c in here]), strict=True):
            c.share = None if share is None else c.to_device(share)


def _uniform(value: float, x: np.ndarray, y: np.ndarray, z: np.ndarray, t: float) -> np.ndarray:
    return np.full(x.shape, value)


def sponge_calls(program: Program, case: Case, layer: SpongeLayer) -> list[Call]:
    """Return the kernel launches, one for each passive scalar, that add the source term of the sponge `layer` of one
    block to its right-hand side: towards the value in the table of the sponge of `case`, or without a value there such
    that the mass which the sponge adds or takes has the scalar of the node."""
    of_gas, scalars = layer.call, case.sponge[layer.number].scalars
    alike = {name: value for name, value in of_gas.arguments.items() if name not in ("count", "sv", "r")}
    return [
        program.call(
            "scalar_sponge", of_gas.extent, **alike, scalar=rho_s, drawn=int(name in scalars),
            goal=float(scalars.get(name, 0.0)), r=rate,
        )
        for name, (rho_s, rate) in zip(equations(case).scalars, layer.state.scalars, strict=True)
    ]  # fmt: skip
