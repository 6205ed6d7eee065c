"""The `[[boundary]]` tables. Every subclass of Condition is a type of boundary condition. Its `kernel` names the header
`kernels/boundary/<kernel>.h`."""

import operator
from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from hiresx.case.face_formulas import FaceValue
from hiresx.case.far_field_vortex import Vortex
from hiresx.case.model import Listed, Positive, State, Table, Vector, case_error
from hiresx.case.scalars import ScalarName, ScalarValue
from hiresx.case.synthetic_turbulence import SyntheticTurbulence

Face = Literal["imin", "imax", "jmin", "jmax", "kmin", "kmax"]
Faces = Literal["all"] | Annotated[tuple[Face, ...], Listed, Field(min_length=1)]
Interval = Annotated[tuple[int, int | Literal["end"]], Listed]


class Place(Table):
    """Base class of tables that select nodes on the faces of blocks."""

    faces: Faces = Field(description='faces of the block, or "all": every face that has no other condition')
    block: str | None = Field(None, description="name of the block; absent: every block")
    range: str | dict[Literal["i", "j", "k"], Interval] = Field(
        {},
        description="part of the face: the name of a region of the grid, or half-open ranges of node indexes "
        '[first, last + 1], where a negative index counts from the end and "end" is the number of nodes; '
        "absent: the whole face",
    )

    @model_validator(mode="after")
    def _along_the_face(self) -> Self:
        for direction in self.range if isinstance(self.range, dict) else ():
            normal = [face for face in self.faces if face.startswith(direction)] if self.faces != "all" else ["all"]
            if normal:
                raise case_error(f"range.{direction} does not lie along the face {normal[0]}")
        return self


class Condition(Place):
    """Base class of the entries of `[[boundary]]`: a boundary condition, and the nodes at which it is applied."""

    kernel: ClassVar[str | None]
    if TYPE_CHECKING:  # every condition defines its own key

        @property
        def type(self) -> str:
            """Name of the type of the boundary condition, such as "slip-wall"."""
            ...


class Scalars(Table):
    """Base class of the boundary conditions that may prescribe values of passive scalars."""

    scalars: dict[ScalarName, ScalarValue] = Field(
        {},
        description="passive scalars by name: a number or a function of case.py, f(x, y, z, t, *, <parameters>) -> s. "
        "An inflow or far-field needs the value of every scalar. At a no-slip wall it is the value at the wall "
        "(absent: no flux through it), elsewhere the value of gas that enters (absent: the value inside)",
    )


class Periodic(Condition):
    """The periodic condition: the flow continues at the opposite face, which is one period of the grid away."""

    kernel = None
    type: Literal["periodic"] = "periodic"


class PatchedFace(Condition):
    """An interface with other blocks whose nodes differ from those of the face. The flow behind the face is
    interpolated."""

    kernel = "patched"
    type: Literal["patched"] = "patched"


class SlipWall(Condition):
    """An impermeable wall without friction."""

    kernel = "reflect"
    type: Literal["slip-wall"] = "slip-wall"


class Symmetry(Condition):
    """A plane of symmetry: the flow behind the face is the mirror image of the flow before it."""

    kernel = "reflect"
    type: Literal["symmetry"] = "symmetry"


class Axis(Condition):
    """The axis of axisymmetric flow, which is the line y = 0."""

    kernel = "axis"
    type: Literal["axis"] = "axis"


class Pole(Condition):
    """A face of a three-dimensional block that has collapsed to a line, ring by ring; the flow crosses the line. The
    blocks must close around the line with an even number of nodes, or form half a ring between planes of symmetry."""

    kernel = "pole"
    type: Literal["pole"] = "pole"


class NoSlipWall(Condition, Scalars):
    """A no-slip wall: adiabatic, of given temperature or of given heat flux. Gas may be blown or sucked through it.
    Heat flux, normal velocity and mass flux are numbers, or formulas of x, y, z, t, the numeric [parameters] and gamma
    as in `[source]`, positive into the gas."""

    kernel = "no_slip"
    type: Literal["no-slip-wall"] = "no-slip-wall"
    temperature: Positive | None = Field(
        None,
        description="temperature of the wall / reference temperature; if this and heat_flux are absent, the wall is "
        "adiabatic",
    )
    heat_flux: FaceValue | None = Field(
        None,
        description="heat flux from the wall into the gas, in rho_ref c_ref^3: a number or a formula; the number "
        "0 is the adiabatic wall",
    )
    velocity: Vector = Field(
        (0.0, 0.0, 0.0),
        description="velocity of the wall [u, v, w] / reference sound speed; a component normal to it blows gas",
    )
    normal_velocity: FaceValue | None = Field(
        None,
        description="normal velocity of the gas through the wall, in c_ref: positive if gas is blown in, which needs "
        "temperature; negative if it is sucked out",
    )
    mass_flux: FaceValue | None = Field(
        None, description="mass of this gas per area and time, in rho_ref c_ref, instead of normal_velocity"
    )

    @property
    def through(self) -> str:
        """Name of the key that gives the blowing or suction through the wall: "mass_flux" if that key is set, otherwise
        "normal_velocity"."""
        return "normal_velocity" if self.mass_flux is None else "mass_flux"

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for one, other in (("temperature", "heat_flux"), ("normal_velocity", "mass_flux")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise case_error(f"takes {one} or {other}, not both")
        return self


class ModelledWall(Condition):
    """A no-slip wall with a wall model, for a boundary layer that the grid does not resolve. The velocity at the nodes
    of the wall is tangential and not zero. Friction and heat flux are those of an equilibrium boundary layer between
    the wall and a node further inside, the exchange node (Kawai & Larsson 2012)."""

    kernel = "reflect"
    type: Literal["modelled-wall"] = "modelled-wall"
    temperature: Positive | None = Field(
        None, description="temperature of the wall / reference temperature; absent: adiabatic"
    )
    velocity: Vector = Field(
        (0.0, 0.0, 0.0),
        description="velocity of the wall [u, v, w] / reference sound speed; a component normal to it has no effect",
    )
    exchange_nodes: int | None = Field(
        None,
        ge=2,
        description="number of the exchange node, counted from the wall, best the third to the fifth; absent: the "
        "fourth",
    )
    exchange_height: Positive | None = Field(
        None, description="the exchange node is the first one at this distance from the wall or beyond, in L"
    )

    @model_validator(mode="after")
    def _one_exchange(self) -> Self:
        if self.exchange_height is not None and self.exchange_nodes is not None:
            raise case_error("takes exchange_nodes or exchange_height, not both")
        return self


def modelled_wall_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield an error for each boundary condition `modelled-wall` of `case` if the flow is inviscid or axisymmetric, for
    which wall models are not supported."""
    for n, wall in enumerate(case.boundary):
        if not isinstance(wall, ModelledWall):
            continue
        place = f'boundary.{n}: type = "{wall.type}"'
        if case.gas.reynolds is None:
            yield case_error(f'{place} needs viscosity: give gas.reynolds, or take "slip-wall"')
        if case.axisymmetric:
            yield case_error(f'{place} is not supported in axisymmetric flow; take "no-slip-wall"')


class SupersonicInflow(Condition, Scalars):
    """A supersonic inflow, at which all variables are prescribed."""

    kernel = "prescribe"
    type: Literal["supersonic-inflow"] = "supersonic-inflow"
    state: State = Field(description="state of the entering flow")
    turbulence: SyntheticTurbulence | None = Field(None, description="synthetic turbulence that is added to the state")


class ProfileInflow(Condition, Scalars):
    """An inflow at which all variables are prescribed by a function of place and time in case.py."""

    kernel = "prescribe"
    type: Literal["profile-inflow"] = "profile-inflow"
    function: str = Field(description="function of case.py: f(x, y, z, t, *, <parameters>) -> (rho, u, v, w, p)")
    steady: bool = Field(
        True,
        description="true: evaluated once, at the start; false: at every stage of every step. A function that returns"
        " waves is evaluated once",
    )
    turbulence: SyntheticTurbulence | None = Field(
        None, description="synthetic turbulence that is added to the result of the function, which must be steady"
    )


class PrecursorInflow(Condition, Scalars):
    """An inflow at which all variables are prescribed by planes that another run recorded, interpolated in place and
    time. The planes are the samples of a `[[surface]]` of nodes on one plane."""

    kernel = "precursor"
    type: Literal["precursor-inflow"] = "precursor-inflow"
    file: str = Field(
        min_length=1,
        description="netCDF file of the planes, surfaces/<name>.nc of the other run, relative to the case file",
    )
    start: float | None = Field(
        None, description="time in the file at which this run begins, in L / c_ref; absent: that of its first plane"
    )
    repeat: bool = Field(
        False,
        description="true: after the last plane and a mean interval the planes repeat; false: the file must "
        "contain planes up to time.end",
    )
    shift: Vector = Field((0.0, 0.0, 0.0), description="vector that is added to the coordinates of the planes, in L")
    period: dict[Literal["x", "y", "z"], Positive] = Field(
        {}, description="lengths after which the planes repeat along axes, in L; absent: the planes do not repeat"
    )
    interpolation: Literal["cubic", "linear"] = Field(
        "cubic",
        description="interpolation between the nodes of a plane: cubic is of fourth order, linear does not overshoot",
    )
    planes: int | None = Field(
        None,
        ge=8,
        description="number of planes in the memory of the device; absent: as many as fit into 256 MiB",
    )


class RecyclingInflow(Condition, Scalars):
    """An inflow at which all variables are prescribed: a mean flow plus the fluctuations in a plane of nodes
    downstream. The fluctuations are rescaled if a boundary layer grows between that plane and the inflow (Lund, Wu &
    Squires 1998; Urbin & Knight 2001)."""

    kernel = "precursor"
    type: Literal["recycling-inflow"] = "recycling-inflow"
    function: str = Field(
        description="mean flow, a function of case.py: f(x, y, z, *, <parameters>) -> (rho, u, v, w, p)"
    )
    distance: Positive = Field(
        description="distance of the plane from the face, along the grid line of the face's first node, in L; the "
        "nearest nodes are used"
    )
    span: Literal["i", "j", "k"] = Field(
        "k", description="direction along which the flow is homogeneous; the block is periodic along it"
    )
    shift: float = Field(
        0.5, ge=0, lt=1, description="fraction of the span by which fluctuations are shifted on their way to the face"
    )
    amplitude: float = Field(1.0, ge=0, le=2, description="factor of all fluctuations")
    wall: Face | None = Field(
        None, description="face of the block below the boundary layer; absent: nothing is rescaled"
    )
    thickness: Positive | None = Field(
        None, description="thickness of the boundary layer at the face, in L; needs wall"
    )
    growth: float = Field(1.0, ge=1, le=10, description="thickness at the plane over that at the face; needs wall")
    friction: Positive | None = Field(
        None, description="friction velocity at the face over that at the plane; absent: growth^(1/8)"
    )

    @model_validator(mode="after")
    def _layer(self) -> Self:
        if (self.wall is None) != (self.thickness is None):
            here, other = ("thickness", "wall") if self.wall is None else ("wall", "thickness")
            raise case_error(f"{here} needs {other}: both describe the boundary layer that is rescaled")
        if self.wall is None and (self.growth != 1 or self.friction is not None):
            key = "growth" if self.growth != 1 else "friction"
            raise case_error(f"{key} needs wall and thickness: the boundary layer that is rescaled")
        return self


class SupersonicOutflow(Condition, Scalars):
    """A supersonic outflow, at which nothing is prescribed. A run reports places where the velocity normal to the face
    is below the sound speed."""

    kernel = "extrapolate"
    type: Literal["supersonic-outflow"] = "supersonic-outflow"


class CharacteristicInflow(Condition, Scalars):
    """A subsonic non-reflecting inflow. Incoming characteristic waves have the amplitudes of the given state, and
    outgoing ones those of the flow inside."""

    kernel = "characteristic"
    type: Literal["characteristic-inflow"] = "characteristic-inflow"
    state: State | None = Field(None, description="state that enters; or give function")
    function: str | None = Field(
        None,
        description="function of case.py with the state that enters: f(x, y, z, t, *, <parameters>) -> "
        "(rho, u, v, w, p)",
    )
    steady: bool = Field(
        True, description="true: the function is evaluated once, at the start; false: at every stage of every step"
    )

    @model_validator(mode="after")
    def _state_or_function(self) -> Self:
        if (self.state is None) == (self.function is None):
            raise case_error("takes exactly one of state and function")
        if self.function is None and not self.steady:
            raise case_error("steady = false is for a function: leave it out, or give one")
        return self


class TotalPressureInflow(Condition, Scalars):
    """A subsonic inflow from a reservoir: total pressure, total temperature and direction are given, and the outgoing
    acoustic wave determines the velocity. Gas cannot leave through it."""

    kernel = "total_inflow"
    type: Literal["total-pressure-inflow"] = "total-pressure-inflow"
    total_pressure: Positive = Field(description="total pressure / (reference density x reference sound speed^2)")
    total_temperature: Positive = Field(1.0, description="total temperature / reference temperature")
    direction: Vector | None = Field(
        None,
        description="direction of the flow [x, y, z], of any length; absent: normal to the face at every node. At "
        "nodes on slip walls it is projected onto the walls",
    )

    @model_validator(mode="after")
    def _a_direction(self) -> Self:
        if self.direction is not None and not any(self.direction):
            raise case_error("direction = [0, 0, 0] is not a direction: leave it out for a flow normal to the face")
        return self


class CharacteristicOutflow(Condition, Scalars):
    """A subsonic non-reflecting outflow. The pressure relaxes towards a given value."""

    kernel = "outflow"
    type: Literal["characteristic-outflow"] = "characteristic-outflow"
    pressure: Positive = Field(description="pressure far away / (reference density x reference sound speed^2)")
    relaxation: float | None = Field(
        None,
        ge=0,
        description="rate of the relaxation towards that pressure, per L. 0: none. Absent: 0.05 divided by the "
        "diameter of the grid, which is twice the largest distance of a node from the mean position of all nodes, "
        "images in planes of symmetry and over rotational periods included. A pulse shorter than 0.4 of this diameter "
        "is then reflected with less than 1 % of its amplitude. Oblique waves are reflected by up to 17 % at any rate",
    )


class PressureOutflow(Condition, Scalars):
    """A subsonic outflow of a duct: either the static pressure is given, or the mass flow is given and the pressure
    follows from it. A steady inviscid flow has exactly this pressure or mass flow, whatever its gradients. (At a
    characteristic outflow the gradients change the pressure.) Viscous terms at the face change it; a larger
    `relaxation` reduces this change. Sound that propagates along the normal leaves, except for a reflection that the
    relaxation causes. Vortices that leave make more noise than at a characteristic outflow."""

    kernel = "outflow"
    type: Literal["pressure-outflow"] = "pressure-outflow"
    pressure: Positive | None = Field(
        None, description="static pressure / (reference density x reference sound speed^2); this or mass_flux"
    )
    mass_flux: Positive | None = Field(
        None,
        description="mass flow out of the face divided by its area, in rho_ref c_ref. The faces of several "
        "blocks that this table names are one face",
    )
    relaxation: Positive | None = Field(
        None,
        description="rate of the relaxation of the pressure, per L: towards the given pressure or, with "
        "mass_flux, towards the pressure with which the mass flow is reached. Absent: 0.5 divided "
        "by the diameter of the grid. In viscous flow the mass flow may then differ by 10 % and more, and the pressure "
        "in a boundary layer by several percent of the dynamic pressure",
    )

    @model_validator(mode="after")
    def _pressure_or_mass_flux(self) -> Self:
        if (self.pressure is None) == (self.mass_flux is None):
            raise case_error("takes exactly one of pressure and mass_flux")
        return self


class FarField(Condition, Scalars):
    """An inflow or outflow, depending on the local flow. The state far away is given."""

    kernel = "characteristic"
    type: Literal["far-field"] = "far-field"
    state: State = Field(description="state far away")
    vortex: Vortex | None = Field(
        None,
        description="vortex with the circulation of a lifting airfoil, which is added to the state; absent: no vortex",
    )


if TYPE_CHECKING:  # type checkers need a plain type in place of the computed union
    Boundary = Condition


def __getattr__(name: str) -> Any:
    """Return `Boundary`, the union of all conditions of this file, in any order."""
    if name == "Boundary":
        return Annotated[reduce(operator.or_, Condition.__subclasses__()), Field(discriminator="type")]
    raise AttributeError(f"module {__name__} has no attribute {name}")
