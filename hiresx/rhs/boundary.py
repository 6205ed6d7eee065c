"""Physical boundary conditions on their patches: the kernels, the nodes and the prescribed values.

In each stage, first the nodes on all faces are set, then halos are exchanged, and then ghosts are filled, so that
ghosts and neighbours use the final values of the nodes. A new condition needs a model in hiresx/case/boundaries.py and,
if its kernel is new, a header in kernels/boundary/ and a class here that names it.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, cast

import numpy as np

from hiresx.case import Case
from hiresx.case.boundaries import CharacteristicInflow, FarField, ProfileInflow, SupersonicInflow
from hiresx.case.model import State
from hiresx.decomposition import Patch
from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED, GAS_GRADIENTS
from hiresx.equations.gas import conservative
from hiresx.errors import HiresxError
from hiresx.grid.blocks import direction
from hiresx.rhs import wall_corners
from hiresx.rhs.face_condition import Face, FaceCondition, place_of
from hiresx.rhs.modelled_wall import ModelledWall
from hiresx.rhs.no_slip import NoSlip
from hiresx.rhs.precursor import PrecursorInflow as PrecursorInflow
from hiresx.rhs.prescribed_waves import OTHER_TIME, FaceWaves, InTime
from hiresx.rhs.recycling import RecyclingInflow
from hiresx.rhs.sponge import moments
from hiresx.rhs.subsonic_face import SubsonicFace
from hiresx.rhs.synthetic_inflow import SyntheticTurbulence
from hiresx.rhs.total_inflow import TotalInflow as TotalInflow

# Names of the variables whose gradients and viscous fluxes the gas has.
_GRADIENTS = len(GAS_GRADIENTS)


class Reflect(FaceCondition):
    """The boundary condition of a slip wall. The nodes have no velocity normal to the wall, and the ghosts mirror the
    flow."""

    kernel: str | None = "reflect"
    rank = 1
    continued = False

    def node(self) -> None:
        """Remove the velocity normal to the wall at the nodes on the face."""
        m = self.state.areas[self._direction]
        self._launch("reflect_node", self._box, **self._face, **self.corner_arguments, m=m, q=self.state.q)

    def ghost(self) -> None:
        """Set the ghost nodes behind the wall to the mirror image of the flow before it."""
        self._launch("reflect_ghost", self._box, **self._face, m=self.state.areas[self._direction], q=self.state.q)

    def stress(self) -> None:
        """Set the field `entropic_stress` of the regularised scheme, a symmetric tensor that spreads shocks, in the
        ghost nodes behind the wall to its mirror image."""
        stress = self.state.array("entropic_stress")
        self._launch(
            "reflect_entropic_stress", self._box, **self._face, m=self.state.areas[self._direction], stress=stress
        )

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the viscous fluxes behind the wall to their mirror image. `fluxes[d]` (variables, k,
        j, i): the fluxes along index direction d, with ghost layers."""
        d = self._direction
        self._launch("viscous_reflect", self._box, **self._face, m=self.state.areas[d], flux=fluxes[d])


class MirroredPlaces(Reflect):
    """The boundary condition of a slip wall that is curved or not normal to the grid lines. Ghosts of the state are
    interpolated at the mirror images of their own positions (`hiresx.exchange.patched_ghosts`). Ghosts of the viscous
    fluxes are extrapolated by parabolas, except at discontinuities."""

    kernel = None

    def ghost(self) -> None:
        """Do nothing: the ghost nodes are interpolated at mirrored points by `hiresx.exchange.patched_ghosts`."""

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the viscous fluxes, `fluxes[d]` (variables, k, j, i) along index direction d:
        extrapolated by parabolas, and near discontinuities of the flow drawn towards the mirrored fluxes of the same
        grid line."""
        d = self._direction
        self._launch("viscous_mirrored", self._box, **self._face, m=self.state.areas[d], q=self.state.q, flux=fluxes[d])


class PatchedCondition(FaceCondition):
    """The boundary condition of a patched face. All of its ghosts are interpolated in other blocks
    (`hiresx.exchange.patched_ghosts`)."""

    kernel = "patched"
    continued = False

    def viscous_flux(self, fluxes: Any) -> None:
        """Do nothing: `hiresx.exchange.patched_ghosts` interpolates these ghosts between nodes of other blocks."""


class AxisCondition(FaceCondition):
    """The boundary condition of the axis in axisymmetric flow. `hiresx.rhs.axisymmetric` has the source term on the
    axis."""

    kernel: str | None = "axis"
    rank = 1
    continued = False
    # Whether quantities that are even or odd in y are not so along grid lines.
    leaning = 0

    def node(self) -> None:
        """Set the radial velocity and the swirl at the nodes on the axis to zero."""
        self._launch("axis_node", self._box, **self._face, q=self.state.q)

    def ghost(self) -> None:
        """Set the ghost nodes beyond the axis to the mirror image of the flow."""
        self._launch("axis_ghost", self._box, **self._face, q=self.state.q)

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the viscous fluxes of the ghost nodes beyond the axis, `fluxes[d]` (variables, k, j, i) along index
        direction d, by symmetry."""
        self._launch("axis_flux", self._box, **self._face, flux=fluxes[self._direction])

    def limit(self, inverse: Any) -> None:
        """Subtract the source term of axisymmetric flow from the right-hand side at the nodes on the axis, with the
        limit dv/dy in place of v/y (v: radial velocity). `inverse`: the device array of 1/y (k, j, i) with ghost
        layers, `state.inverse_radius`."""
        s = self.state
        area = s.areas[self._direction]
        self._launch(
            "axisymmetric_limit", self._box, **self._face, direction=self._inward, m=area, jacobian=s.jacobian,
            inverse=inverse, q=s.q, r=s.r,
        )  # fmt: skip

    def step_limit(self) -> None:
        """Limit the local time step of the nodes on the axis to the local time step of the neighbouring nodes off the
        axis."""
        self._launch("axisymmetric_step_limit", self._box, **self._face, dt=self.state.dt)

    def friction_limit(self, fluxes: Any, inverse: Any) -> None:
        """Add the viscous source term of axisymmetric flow to the right-hand side at the nodes on the axis,
        extrapolated from the neighbouring nodes. `fluxes`: one device array with the viscous fluxes along all index
        directions. `inverse`: the device array of 1/y (k, j, i), `state.inverse_radius`. Both have ghost layers."""
        s = self.state
        self._launch(
            "axisymmetric_friction_limit", self._box, **self._face, flux=fluxes, m=s.metrics, jacobian=s.jacobian,
            inverse=inverse, leaning=self.leaning, r=s.r,
        )  # fmt: skip


class MirroredAxis(AxisCondition):
    """The boundary condition of an axis that is not normal to the grid lines, with the ghosts of `MirroredPlaces`."""

    kernel = None
    flux_degree = 2
    leaning = 1

    def ghost(self) -> None:
        """Do nothing: the ghost nodes are interpolated at mirrored points by `hiresx.exchange.patched_ghosts`."""

    def viscous_flux(self, fluxes: Any) -> None:
        """Extrapolate the viscous fluxes `fluxes[d]` (variables, k, j, i) along direction d to the ghosts by
        parabolas."""
        FaceCondition.viscous_flux(self, fluxes)


class PoleCondition(FaceCondition):
    """The boundary condition of a pole. `hiresx.rhs.pole` sets its nodes after all other faces, and the exchange of
    halos fills its ghosts with nodes of the opposite side."""

    kernel = "pole"
    continued = False

    def viscous_flux(self, fluxes: Any) -> None:
        """Do nothing: the exchange between blocks fills the ghost nodes with the nodes of the opposite side of the
        pole."""


def _inverse_reynolds(case: Case) -> float:
    """Return 1/Re_c; 0 in inviscid flow."""
    return 1 / (case.gas.reynolds or np.inf)


class Extrapolate(FaceCondition):
    """The boundary condition of an outflow whose ghosts are extrapolated."""

    of_patch = False

    def __init__(self, face: Face):
        super().__init__(face)
        self._inverse_reynolds = _inverse_reynolds(face.case)

    def ghost(self) -> None:
        """Extrapolate the flow to the ghost nodes behind the outflow."""
        s, rated = self.state, int(self.patch.condition.kernel == "outflow")
        self._launch(
            "extrapolate", self._box, **self._face, direction=self._inward, rated=rated,
            inverse_reynolds=self._inverse_reynolds, m=s.areas[self._direction], jacobian=s.jacobian, q=s.q,
        )  # fmt: skip


class SubsonicOutflow(SubsonicFace, Extrapolate):
    """The boundary condition of a subsonic outflow. Its incoming waves change the rates (`hiresx.rhs.outflow`)."""

    kernel = "outflow"


class SupersonicOutflow(Extrapolate):
    """The boundary condition of a supersonic outflow. Its viscous fluxes are computed from the extrapolated flow."""

    kernel = "extrapolate"
    continued = False

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the viscous fluxes of the ghost nodes, `fluxes[d]` (variables, k, j, i) along index direction d, computed
        from the extrapolated flow."""
        self._leaving_flux(fluxes[self._direction], _GRADIENTS, self._inverse_reynolds)


class Profile(FaceCondition):
    """An inflow with a uniform state, or with a state (rho, u, v, w, p) that is a function of x, y, z, t. If the case
    says that it is steady, the function is evaluated once. Otherwise it is evaluated before every stage whose time
    differs from that of the stage before. (The last stages of a step and the first of the next often have the same
    time.) A function that returns `Waves` is evaluated once, and the device computes the state at each time."""

    of_patch = False

    def __init__(self, face: Face):
        super().__init__(face)
        state, patch, spec = face.state, face.patch, face.patch.condition
        self._case, self._where = face.case, place_of(patch, state.name)
        self._places = np.stack(self._coordinates(face.extended, 1 + self._halo))
        self._gamma, places, steady = face.case.gas.gamma, tuple(self._places), True
        if isinstance(spec, SupersonicInflow):
            profile: Callable[..., Any] = partial(_uniform, spec.state)
        else:
            given = cast(ProfileInflow | CharacteristicInflow, spec)
            profile, steady = face.profile(given.function or ""), given.steady
        self._given = InTime(profile, places, steady, f"the {spec.type} on {patch.face}")
        self._target = face.backend.zeros((len(GAS_CONSERVED), *places[0].shape), state.real)
        self._waves: FaceWaves | SyntheticTurbulence | None = None
        self._of_waves: np.ndarray | None = None
        self._time: float | None = None
        # The prescribed values at the last two times, on the device.
        self._made: dict[float, Any] = {}

    @property
    def function_moments(self) -> np.ndarray | None:
        """The number of nodes, including ghost nodes, and the sums and sums of squares over them of the prescribed
        conservative variables of this patch, (1 + 2 variables,). Waves are taken at one fixed time. None if the
        variables change in time otherwise."""
        fixed = self._given.fixed and self._of_waves is None
        return moments(self._backend.to_host(self._target)) if fixed else self._of_waves

    @property
    def is_prepared(self) -> bool:
        """Whether the prescribed state is already on the device and never has to be computed by the host again."""
        return self._given.known

    @property
    def moves(self) -> bool:
        """Whether the prescribed state changes in time and is computed on the device."""
        return self._waves is not None

    @property
    def shared_function(self) -> str | None:
        """The name of the function of the case that prescribes a state that depends on time; None if the prescribed
        state is steady. Patches with the same function can be served by one call of it."""
        return None if self._given.fixed else getattr(self.patch.condition, "function", None)

    def share(self) -> tuple[InTime, Any]:
        """Return two things: an object that evaluates the function of the prescribed state at the nodes and ghost nodes
        of this patch, and the device array that receives the prescribed conservative variables."""
        return self._given, self._target

    def prescribe_in(self, target: Any) -> None:
        """Use `target`, with the shape of the second result of `share`, as device array of the prescribed conservative
        variables. Call this before launches of this condition are recorded, since they contain its address."""
        self._target = target

    def prepare(self, time: float) -> None:
        """Evaluate the prescribed state on the host at `time`, in L / c_ref, and copy it to the device, unless it is
        there already."""
        if self.is_prepared or time == self._time:
            return
        made = self._made.pop(time, None)
        if made is None:
            values = np.stack(conservative(self._gamma, *self._given.values(time)))
            made = self._backend.to_device(values.astype(self._target.dtype))
        self._backend.copy(self._target, made)
        self._time = time
        if self._given.known:
            if not self._given.fixed:
                then = conservative(self._gamma, *self._given.values(OTHER_TIME))
                self._of_waves = moments(np.stack(then))
            self._waves = self._turbulence() or self._given.on_device(self._backend, self._target)
        else:
            self._made = {**dict(list(self._made.items())[-1:]), time: made}

    def _turbulence(self) -> SyntheticTurbulence | None:
        """Return the synthetic turbulence of the condition, around the present target."""
        spec = getattr(self.patch.condition, "turbulence", None)
        if spec is None:
            return None
        given = spec.velocity
        if given is None:
            state = cast(SupersonicInflow, self.patch.condition).state
            given = (state.u, state.v, state.w)
        mean = np.stack(self._given.values(0.0))
        self._of_waves = moments(np.stack(conservative(self._gamma, *mean)))
        return SyntheticTurbulence(
            self._backend, self._case, spec, given, mean, self._places, self._target, self._where
        )

    def move(self, clock: Any, share: float) -> None:
        """Compute the prescribed state on the device, if it is a sum of waves or contains synthetic turbulence. Its
        time is the start of the time step plus the fraction `share` of the size of the step. `clock`: the device array
        that contains start and size (`hiresx.time.step_clock.DeviceClock`)."""
        if self._waves is not None:
            self._waves.launch(self._launch, clock, share)


def _uniform(s: State, x: np.ndarray, y: np.ndarray, z: np.ndarray, t: float) -> list[np.ndarray]:
    return [np.full(x.shape, value) for value in (s.rho, s.u, s.v, s.w, s.p)]


class Prescribe(Profile):
    """The boundary condition of an inflow whose nodes and ghosts have the prescribed state."""

    kernel = "prescribe"
    gives_nodes = True
    continued = False
    flux_degree = 3

    def node(self) -> None:
        """Set the nodes on the face and the ghost nodes to the prescribed state."""
        n1, n2 = self.extent
        self._launch("prescribe", self._box, **self._face, n1=n1, n2=n2, state=self._target, q=self.state.q)


def _characteristic_ghosts(condition: "CharacteristicProfile | Characteristic", case: Case, target: Any) -> None:
    """Set the ghosts of `condition`: entering waves have the state `target`, leaving waves that of the flow."""
    s, (n1, n2) = condition.state, condition.extent
    condition._launch(
        "characteristic", condition._box, **condition._face, n1=n1, n2=n2, direction=condition._inward,
        inverse_reynolds=_inverse_reynolds(case), target=target, m=s.areas[condition._direction],
        jacobian=s.jacobian, q=s.q,
    )  # fmt: skip


class CharacteristicProfile(SubsonicFace, Profile):
    """The boundary condition of a subsonic inflow whose incoming characteristic waves have the amplitudes of the given
    state."""

    def ghost(self) -> None:
        """Set the ghost nodes such that entering characteristic waves have the prescribed state, and leaving waves the
        state of the flow."""
        _characteristic_ghosts(self, self._case, self._target)


class Characteristic(SubsonicFace):
    """The boundary condition of a far field. Incoming characteristic waves have the amplitudes of the state of the
    case, and outgoing waves have the amplitudes of the flow. `vortex`: the vortex in the far field, or None. Its
    `circulation` is 0 at first."""

    kernel = "characteristic"
    of_patch = False

    def __init__(self, face: Face):
        super().__init__(face)
        self._case, self._gamma = face.case, face.case.gas.gamma
        self.vortex = getattr(face.patch.condition, "vortex", None)
        n1, n2 = self.extent
        # The positions of the ghosts: beyond the last node of a coarse grid the vortex is weaker than at it.
        places = np.zeros((2, 1 + self._halo, n2, n1))
        if self.vortex is not None:
            places = np.stack(self._coordinates(face.extended, 1 + self._halo)[:2])
        self._x, self._y = places
        self._target = face.backend.zeros((len(GAS_CONSERVED), 1 + self._halo, n2, n1), face.state.real)
        self.circulate(0.0)

    def circulate(self, circulation: float) -> None:
        """Set the prescribed state of the far field to the uniform stream, with a vortex of the given `circulation` (in
        c_ref L) if the case has a vortex in the far field."""
        s = cast(FarField, self.patch.condition).state
        rho, u, v, p = np.array([s.rho, s.u, s.v, s.p]).reshape(4, 1, 1, 1) + np.zeros(self._x[1:].shape)
        if self.vortex is not None:
            rho, u, v, p = self.vortex.flow(s, self._gamma, circulation, self._x[1:], self._y[1:])
        ghosts = np.stack(conservative(self._gamma, rho, u, v, np.full(rho.shape, s.w), p))
        target = np.concatenate([ghosts[:, :1], ghosts], axis=1)  # no kernel reads the layer of the face
        self._backend.copy(self._target, self._backend.to_device(target.astype(self._target.dtype)))

    @property
    def largest_circulation(self) -> float:
        """Largest accepted circulation of the vortex in the far field, in c_ref L: it changes the velocity at this
        patch by at most half the speed of the stream. Infinite without a vortex."""
        state = cast(FarField, self.patch.condition).state
        return np.inf if self.vortex is None else self.vortex.largest(state, self._gamma, self._x, self._y)

    def ghost(self) -> None:
        """Set the ghost nodes such that entering characteristic waves have the state of the far field, and leaving
        waves the state of the flow."""
        _characteristic_ghosts(self, self._case, self._target)


def share_corners(conditions: Sequence[FaceCondition]) -> None:
    """Find the nodes at which walls of a block meet other walls or total-pressure inflows, and store in each of these
    `conditions` the weights, or directions of velocity, by which it sets them (`hiresx.rhs.wall_corners`). Blocks whose
    conditions an earlier call has treated are left unchanged."""
    of_state: dict[BlockState, list[FaceCondition]] = {}
    for c in conditions:
        of_state.setdefault(c.state, []).append(c)
    for state, here in of_state.items():
        if all(c.has_met for c in here):
            continue
        sticking = [c for c in here if isinstance(c, NoSlip)]
        patches, held = [c.patch for c in sticking], [c.holds for c in sticking]
        found = wall_corners.shares(state.size, state.strides, patches, held)
        for c, corner in zip(sticking, found, strict=True):
            if corner is not None:
                others = [p for p in patches if direction(p.face) != direction(c.patch.face)]
                c.set_shares(corner, wall_corners.beside_walls(state.size, others))
        # on the axis the normal velocity is zero, too
        slipping = [c for c in here if isinstance(c, Reflect | ModelledWall | AxisCondition)]
        walls = [c.patch for c in slipping]
        corners = wall_corners.slip_corners(state.size, walls, here[0].areas)
        for slip, oblique in zip(slipping, corners, strict=True):
            if oblique is not None:
                slip.meet_slip_walls(oblique.which, oblique.left)
        for c in here:
            if isinstance(c, TotalInflow):
                c.turn_along(walls)
            c.has_met = True


def together(conditions: Sequence[FaceCondition], method: str, *arguments: Any) -> list[list[Call]]:
    """Return the kernel launches that the method called `method` makes for all `conditions`, without making them.
    `arguments`: the arguments of the method. The result is a list of lists, which must be executed one after the other.
    The launches within one list act on disjoint nodes, so that they can run at the same time."""
    order = attrgetter("order")
    groups = groupby(sorted(conditions, key=order), key=order)
    return [calls for _, group in groups if (calls := [call for c in group for call in c.calls(method, *arguments)])]


def rates(conditions: Sequence[FaceCondition]) -> list[list[Call]]:
    """Return the kernel launches by which the boundary conditions `conditions` correct the inviscid right-hand side on
    faces, and then at the edges of faces, as lists of independent launches."""
    edges = [calls for edge in range(4) for calls in together(conditions, "edge_rate", edge)]
    return together(conditions, "rate") + edges


@cache
def _kinds() -> dict[str, type[FaceCondition]]:
    """Return a dictionary from each kernel to the class of its condition."""
    kinds = list(FaceCondition.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {kind.kernel: kind for kind in kinds if kind.kernel is not None}


def check(patches: Sequence[Patch]) -> None:
    """Raise HiresxError for the first of `patches`, boundary patches, whose condition names a kernel for which this
    module has no class."""
    known = _kinds()
    for patch in patches:
        kernel = patch.condition.kernel
        if kernel not in known:
            raise HiresxError(
                f'boundary type = "{patch.condition.type}": no class in hiresx/rhs/boundary.py has kernel = "{kernel}"',
                f"write one there, or take one of the kernels that are there: {', '.join(sorted(known))}",
            )


def _kind(patch: Patch, mirrored: bool) -> type[FaceCondition]:
    spec = patch.condition
    if spec.type == "modelled-wall":
        return ModelledWall
    if mirrored:
        return MirroredAxis if spec.kernel == "axis" else MirroredPlaces
    if spec.type == "recycling-inflow":
        return RecyclingInflow
    if getattr(spec, "function", None) and spec.kernel == "characteristic":
        return CharacteristicProfile
    return _kinds()[spec.kernel or ""]


def is_of_patch(patch: Patch) -> bool:
    """Return whether the boundary condition of `patch` depends only on the patch and on the state of its block. Only
    then can the next solver of a run use the same object again."""
    return _kind(patch, False).of_patch


def condition(face: Face) -> FaceCondition:
    """Return the boundary condition of `face`, an object that sets its nodes and ghosts. Its class follows from the
    type of the condition in the case."""
    return _kind(face.patch, face.mirrored)(face)
