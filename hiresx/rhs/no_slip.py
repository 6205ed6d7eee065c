"""No-slip walls: adiabatic, or of given temperature or heat flux, with or without blowing and suction
(kernels/boundary/no_slip.h)."""

from typing import Any, cast

import numpy as np

from hiresx.case.boundaries import NoSlipWall
from hiresx.equations import GAS_GRADIENTS
from hiresx.errors import HiresxError
from hiresx.rhs.face_condition import Face, FaceCondition
from hiresx.rhs.face_values import FaceValues
from hiresx.rhs.inviscid import flux_arguments
from hiresx.rhs.wall_corners import CornerShares, apart_from_walls
from hiresx.rhs.wall_ends import slip_edges, takers, wall_arguments


class NoSlip(FaceCondition):
    """The boundary condition of a no-slip wall: adiabatic, of given temperature or of given heat flux, with or without
    gas that is blown or sucked through it.

    Raises HiresxError if gas is blown in and the wall has no given temperature.
    """

    kernel = "no_slip"
    rank = 2
    closed = True
    primitive_degree = 4
    of_patch = False

    def __init__(self, face: Face):
        super().__init__(face)
        backend, state, patch, case, cut = face.backend, face.state, face.patch, face.case, face.cut
        spec = cast(NoSlipWall, patch.condition)
        self._wall = dict(zip("uvw", spec.velocity, strict=True))
        self._temperature, self._curved = spec.temperature or 0.0, face.curved
        (places,) = np.swapaxes(self._coordinates(face.extended, 1), 0, 1)
        where = f"{spec.type} on {patch.face} of block '{state.name}'"

        def on_face(key: str) -> FaceValues | None:
            value = getattr(spec, key)
            return None if value is None else FaceValues(backend, state.real, case, value, places, f"{key} of {where}")

        # a flux of 0 is that of an adiabatic wall, whose equations at the node are simpler
        through, heat = on_face(spec.through), None if spec.heat_flux == 0 else on_face("heat_flux")
        if through is not None and not self._temperature and through.largest > 0:
            raise HiresxError(
                f"{spec.through} of {where}: the gas that is blown in has no temperature",
                "give the temperature of the wall, or a formula that is nowhere positive",
            )
        self._values = [values for values in (through, heat) if values is not None]
        self._gas: dict[str, Any] = {"n1": self.extent[0], "direction": self._inward, **self._wall}
        self._gas |= {"blown": through and through.array, "of_mass": int(spec.through == "mass_flux")}
        self._heat = heat and heat.array
        # q = -conduction mu dT/dn
        conduction = 1 / ((case.gas.reynolds or np.inf) * case.gas.prandtl * (case.gas.gamma - 1))
        self._heating = {"heat": self._heat, "conduction": float(conduction), "jacobian": state.jacobian}
        self._along = wall_arguments(backend, state, patch, cut)
        self._edges = list(slip_edges(state, patch, cut))
        self._takers = takers(state, patch, cut)
        count = self.extent[0] * self.extent[1]
        self._corner: dict[str, Any] = {"corner": None, "inward": None}
        # On the edge of a step the bounds of an adiabatic temperature are those of the node itself, since the copies of
        # the node in other blocks have other nodes before the wall.
        self._own_nodes = backend.to_device(np.zeros(count, np.int32)) if self.is_edge else None
        # for each node whether another no-slip wall has it, too
        self.meets = np.zeros(count, bool)
        self._count = {"count": count}

    @property
    def holds(self) -> bool:
        """Whether the case gives the temperature of the wall."""
        return self._temperature > 0

    @property
    def heat(self) -> Any | None:
        """The heat flux into the gas that the case gives, at the nodes of the wall, in rho_ref c_ref^3: a device array
        (n2, n1), evaluated at the time of the last `move`; None if the case gives no heat flux."""
        return self._heat

    @property
    def rests(self) -> bool:
        """Whether the gas at this wall is at rest: the wall does not move, and no gas passes it."""
        return not any(self._wall.values()) and self._gas["blown"] is None

    @property
    def own_velocity(self) -> dict[str, Any]:
        """The arguments, by name, from which kernels compute the velocity of the gas at this wall alone, also where it
        meets other walls (`gas_at_wall` of kernels/wall_velocity.h)."""
        gas = {name: value for name, value in self._gas.items() if name != "n1"}
        return gas | {"m": self.state.areas[self._direction], "sv": self.state.variable_stride}

    def set_shares(self, found: CornerShares, walls: np.ndarray) -> None:
        """Store the weights `found` by which this wall sets nodes on edges and corners that it shares with other
        no-slip walls. `walls`: a mask [k, j, i] over the nodes of the block, true on the no-slip walls that lie on
        faces of other index directions."""
        real, put = self.state.real, self._backend.to_device
        rows = np.stack([found.velocity, found.held, found.walls])
        self._corner = {"corner": put(rows.astype(real)), "inward": put(found.inward.astype(np.int32))}
        self.meets = found.walls.ravel() > 1
        near = self._backend.to_host(self._along["near"]).copy()
        self._along["near"] = put(apart_from_walls(near, self.patch, walls).astype(real))

    @property
    def moves(self) -> bool:
        """Whether heat flux, blowing or suction is a formula that contains the time."""
        return any(values.timed for values in self._values)

    def move(self, clock: Any, share: float) -> None:
        """Compute heat flux, blowing and suction on the device, if they depend on time, at the start of the time step
        plus the fraction `share` of its size, both read from the device array `clock`."""
        for values in self._values:
            values.launch(self._launch, clock, share)

    def node(self) -> None:
        """Set velocity and temperature at the nodes of the wall in a state that a caller has given, for instance the
        initial one. If the case gives no wall temperature, it is computed from the nodes inside and the given heat flux
        (or zero)."""
        if self._temperature or self.is_edge:
            self.stage_node()
            return
        area = self.state.areas[self._direction]
        self._launch(
            "no_slip_start", self._box, **self._face, **(self._gas | self._along), **self._heating, **self._corner,
            m=area, q=self.state.q,
        )  # fmt: skip

    def stage_node(self) -> None:
        """Set the velocity at the nodes of the wall, and the temperature if the case gives it, after a stage of a time
        step has computed the state."""
        area = self.state.areas[self._direction]
        corner = self._corner | ({"inward": self._own_nodes} if self.is_edge else {})
        self._launch(
            "no_slip_node", self._box, **self._face, **self._gas, **self._heating, temperature=self._temperature,
            **self._count, **corner, m=area, q=self.state.q,
        )  # fmt: skip

    def ghost(self) -> None:
        """Set the ghost nodes behind the wall to the mirrored flow with reversed velocity."""
        area = self.state.areas[self._direction]
        self._launch("no_slip_ghost", self._box, **self._face, **self._gas, m=area, q=self.state.q)

    def bend(self) -> None:
        """Correct the mirrored ghost nodes, in smooth flow, by the slope and the curvature of the flow at the wall
        (kernels/boundary/no_slip.h)."""
        given = {"cubic": int(self._curved or self._heat is not None), "m": self.state.areas[self._direction]}
        self._launch("no_slip_bend", self._box, **self._face, **self._gas, **given, q=self.state.q)

    def rate(self) -> None:
        """Correct the inviscid right-hand side at the nodes next to the wall, so that the scheme conserves mass
        there."""
        s = self.state
        self._launch(
            "no_slip_mass", self._box, **self._face, **self._gas, m=s.areas[self._direction], q=s.q,
            sums=s.array("wall_sums"), takers=self._takers, r=s.r,
        )  # fmt: skip

    def edge_rate(self, edge: int) -> None:
        """Correct the inviscid right-hand side at one of the four edges of the wall, if a slip wall continues the face
        there. `edge`: 2 t + u. t: 0 if the first index direction of the face crosses the edge, 1 if the second does. u:
        1 for the edge at the upper end of this direction, else 0."""
        s = self.state
        for e in self._edges:
            if (e.tangent, e.upper) == divmod(edge, 2):
                self._launch(
                    "wall_edge", (e.nodes, 1, 1), **self._wall, o=s.origin + np.dot(e.first, s.strides),
                    s1=s.strides[e.along], sn=self._nodes["sn"], sd=s.strides[e.across], upper=int(e.upper),
                    sv=s.variable_stride, m=s.areas[e.across], q=s.q, r=s.r, **flux_arguments(s, e.across),
                )  # fmt: skip

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the viscous fluxes, `fluxes[d]` (variables, k, j, i) along index direction d:
        extrapolated for a given temperature, otherwise such that the heat flux at the wall has its given value or
        zero."""
        if self._temperature:
            # For Couette flow between planes, a cubic for the stress doubles the errors of u, and a quartic for the
            # energy those of T.
            rows = fluxes[self._direction]
            for part, count, degree in ((rows[:3], 3, 4), (rows[3:], len(GAS_GRADIENTS) - 3, 4 if self._curved else 3)):
                self._launch("viscous_extrapolate", self._box, **self._face, variables=count, degree=degree, w=part)
        else:
            s, d = self.state, self._direction
            given = {"heat": self._heat, "m": s.areas[d], "q": s.q, "flux": fluxes[d]}
            self._launch("no_slip_heat", self._box, **self._face, **self._gas, **given)
