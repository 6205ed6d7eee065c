"""Tables of the monitors: probes, forces, averages and others, each with a history of its own.

Every table says when it samples; the histories are written to `<run>/history/<name>.nc` (see `hiresx history`).
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hiresx.case.boundaries import Faces, Place
from hiresx.case.model import Listed, Points, Positive, Table, Vector, case_error
from hiresx.equations import GAS_PRIMITIVE

# Number of steps between samples if the case gives neither `every` nor `every_time`, as in [monitor].
EVERY = 10
# The history that every run writes.
RESIDUAL = "residual"

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$")]
Variables = Annotated[tuple[str, ...], Listed, Field(min_length=1)]
Precision = Literal["fp64", "fp32"]


class Monitor(Table):
    """Residual norms, printed and recorded. The functions that the key `monitors` of the case names are called at the
    same steps."""

    every: Points = Field(EVERY, description="steps between records")


class SampledTable(Table):
    """When a monitor samples: at steps that are multiples of `every`, or at times that are multiples of `every_time`.
    `own_history`: whether it has a history with the name of its table."""

    own_history: ClassVar[bool] = True

    every: Points | None = Field(
        None, description=f"steps between samples; {EVERY} where neither every nor every_time is given"
    )
    every_time: Positive | None = Field(None, description="time between samples, in L / c_ref; steps end there exactly")

    @model_validator(mode="before")
    @classmethod
    def _default_every(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("every") is None and data.get("every_time") is None:
            return {**data, "every": EVERY}
        return data

    @model_validator(mode="after")
    def _one_clock(self) -> Self:
        if self.every is not None and self.every_time is not None:
            raise case_error("takes either every or every_time, not both")
        return self


class Line(Table):
    """Places at equal distances along a straight line, both ends included."""

    start: Vector = Field(description="first place [x, y, z], in L")
    end: Vector = Field(description="last place [x, y, z], in L")
    n: Annotated[int, Field(ge=2)] = Field(description="number of places")


class Arc(Table):
    """Places at equal angles on an arc of a circle, both ends included."""

    centre: Vector = Field((0.0, 0.0, 0.0), description="centre [x, y, z], in L")
    radius: Positive = Field(description="radius, in L")
    angles: Annotated[tuple[float, float], Listed] = Field(
        description="first and last angle in degrees, from the x axis towards y (from y towards z)"
    )
    n: Annotated[int, Field(ge=2)] = Field(description="number of places")
    plane: Literal["xy", "yz"] = Field("xy", description="plane of the circle, through its centre")

    @property
    def places(self) -> list[tuple[float, float, float]]:
        """All points (x, y, z) of the arc, in units of the length scale L."""
        (x, y, z), first, last = self.centre, *self.angles
        turns = [math.radians(first + (last - first) * m / (self.n - 1)) for m in range(self.n)]
        on = [(self.radius * math.cos(turn), self.radius * math.sin(turn)) for turn in turns]
        return [(x + a, y + b, z) if self.plane == "xy" else (x, y + a, z + b) for a, b in on]


class Probe(SampledTable):
    """The flow at places anywhere in the grid: one (x, y, z), several (points), a line or an arc.

    Values are interpolated in index space with six nodes per direction, to sixth order where the flow is smooth. In two
    dimensions z is ignored, in one dimension y and z."""

    name: Name = Field(description="name of the history")
    x: float | None = Field(None, description="coordinate of a single place, in L")
    y: float | None = Field(None, description="coordinate of a single place, in L; absent: 0")
    z: float | None = Field(None, description="coordinate of a single place, in L; absent: 0")
    points: Annotated[tuple[Vector, ...], Listed, Field(min_length=1)] | None = Field(
        None, description="places [[x, y, z], ...], in L"
    )
    line: Line | None = Field(None, description="places along a line { start = [...], end = [...], n = ... }")
    arc: Arc | None = Field(None, description="places on an arc { radius = ..., angles = [...], n = ... }")
    variables: Variables = Field(
        GAS_PRIMITIVE,
        description="variables that follow from the state at a point: rho, u, v, w, p, T, speed, mach, entropy, ...",
    )
    filter: Literal["running-means", "none"] = Field(
        "running-means",
        description="running-means: a sample is the flow averaged over time, by four running means over the sampling "
        "interval, so that tones above half the sampling rate do not appear as lower ones. none: a sample is the flow "
        "at that time",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        single = any(c is not None for c in (self.x, self.y, self.z))
        if single + sum(kind is not None for kind in (self.points, self.line, self.arc)) != 1:
            raise case_error("takes exactly one of x, y, z or points or line or arc")
        if single and self.x is None:
            raise case_error("has y or z but no x")
        return self

    @property
    def count(self) -> int:
        """Number of points at which the probe samples the flow."""
        if self.points is not None:
            return len(self.points)
        along = self.line or self.arc
        return 1 if along is None else along.n

    @property
    def places(self) -> list[tuple[float, float, float]]:
        """All points (x, y, z) at which the probe samples the flow, in units of the length scale L."""
        if self.points is not None:
            return list(self.points)
        if self.line is not None:
            first, last, n = self.line.start, self.line.end, self.line.n
            x, y, z = ([a + (b - a) * m / (n - 1) for m in range(n)] for a, b in zip(first, last, strict=True))
            return list(zip(x, y, z, strict=True))
        if self.arc is not None:
            return self.arc.places
        return [(self.x or 0.0, self.y or 0.0, self.z or 0.0)]


class Coefficients(Table):
    """Coefficients of a force, divided by rho V^2/2 of the stream and by the reference area: columns
    `lift_coefficient`, `drag_coefficient`, in three dimensions `side_coefficient`, and `moment_coefficient`.

    Drag is the component along the velocity of the stream. Lift is normal to it, in the plane of the velocity and `up`.
    The side force is normal to both. The pitching moment is about the axis of the side force through `centre`. It is
    also divided by the reference length, and is positive if it turns the upstream side upwards."""

    velocity: Vector | None = Field(
        None, description="velocity [u, v, w] of the stream, in c_ref; absent: that of initial.state"
    )
    rho: Positive | None = Field(
        None, description="density of the stream, in rho_ref; absent: that of initial.state, 1 with velocity"
    )
    area: Positive = Field(1.0, description="reference area, in L^2; in plane flow the chord, in L")
    length: Positive = Field(1.0, description="reference length of the moment, in L")
    centre: Vector = Field((0.0, 0.0, 0.0), description="centre [x, y, z] of the moment, in L")
    up: Literal["x", "y", "z"] = Field("y", description="axis towards which lift is positive")


class Distribution(SampledTable):
    """Pressure, shear stress (a vector), heat flux and y+ at every node of the walls of the force, sample by sample, in
    walls/<name of the force>.nc, for `hiresx post wall` and `hiresx.open(RUN).wall(NAME)`.

    y+ is the distance of the first node in wall units, with the density and the viscosity at the wall. At modelled
    walls friction and heat flux are those of the model. At slip walls, and in inviscid flow, only the pressure is
    computed, and the others are 0."""

    own_history = False

    precision: Precision = Field("fp64", description="precision of the numbers in the file")


class Force(SampledTable, Place):
    """Force of the gas on walls by pressure and friction, and heat flow into them.

    The integral is over all walls (no-slip or slip) among the nodes that `faces`, `block` and `range` select. In two
    dimensions it is per unit length along z. The force is in rho_ref c_ref^2 L^2, the heat flow in rho_ref c_ref^3 L^2.
    In axisymmetric flow force_y is the sum of the radial components, force_z the sum of the components along the swirl,
    and torque the moment of the latter about the axis, in rho_ref c_ref^2 L^3. The area of a `range` ends at its last
    nodes. An exception is a range up to the last node of a block that continues in another block one spacing further:
    half of that spacing counts as well, so the area depends on where blocks meet. With levels of refinement, friction
    and heat flux at a place are those of the finest level there. Where a level ends, they differ by truncation error
    from the fluxes of [conservation].
    """

    name: Name = Field(description="name of the history")
    faces: Faces = Field("all", description='faces of the block whose walls are included, or "all"')
    pressure: float = Field(
        0.0,
        description="pressure that is subtracted, in rho_ref c_ref^2; it has an effect if the walls do not "
        "enclose a body; the ambient pressure is 1/gamma",
    )
    coefficients: Coefficients | None = Field(
        None, description="coefficients of lift, drag and moment, as further columns; {}: with all defaults"
    )
    extrema: bool = Field(
        False,
        description="further columns: the largest y+ and friction, the least and the largest heat flux at a "
        "node of the walls, and the places of these: x, y, z, block and node i, j, k",
    )
    distribution: Distribution | None = Field(
        None, description="pressure, friction, heat flux and y+ at every node of the walls; {}: with all defaults"
    )


class Extrema(SampledTable):
    """Smallest and largest value of each variable with their places: x, y, z, block and node i, j, k."""

    variables: Annotated[tuple[str, ...], Listed, Field(min_length=1)] = Field(
        (*GAS_PRIMITIVE, "T", "mach"), description="variables, of rho, u, v, w, p, T, mach"
    )


class Conservation(SampledTable):
    """Volume integrals of mass, momentum and energy, the fluxes out through each [[boundary]], and the sources of the
    sponges.

    An integral changes by the sources minus the fluxes, to truncation error. If everything is periodic, the integrals
    are constant to round-off. On a wall where a level of refinement ends, friction and heat differ from those of a
    [[force]] by truncation error: [conservation] uses the fluxes of the nodes of both levels there, [[force]] only the
    friction of the finest level. In axisymmetric flow the balance holds only for mass, momentum_x and energy:
    momentum_y is the sum of radial components, momentum_z that of components along the swirl.
    """


class KineticEnergy(SampledTable):
    """Means over the volume of the whole grid: kinetic energy, enstrophy, dilatation, and the terms that change the
    energy.

    The columns are described in docs/outputs.md. In a closed or periodic domain without forces or sponges the kinetic
    energy changes by pressure dilatation and viscous dissipation. The rest of its rate of change is
    dissipation_numerical, the dissipation of the scheme. The sums are computed on the device; no field is copied to the
    host."""


class Average(SampledTable):
    """Time averages, in which every sample is weighted with the time that it represents. They are stored in float64.

    They are means of rho, u, v, w, p, T and their second moments, and Favre (mass-weighted) means of u, v, w, T,
    stresses and heat flux. `budget` adds the terms of the budget of the turbulent kinetic energy: mean stresses and
    velocity gradients, covariances with the pressure, third moments (`hiresx post turbulence`). `stress_budgets`
    replaces `budget`, and adds these terms for each component of the Reynolds stress. Averages are written to
    averages.nc whenever fields are written, and stored in checkpoints. They take 15 (Reynolds), 14 (Favre) and 26
    (budget) or 58 (stress_budgets) numbers of 8 bytes per point.

    `over` also averages over homogeneous index directions, for instance `over = ["i", "k"]` in a channel. For each
    block only a profile or a plane is stored, and the moments are those of all nodes along these directions. Each block
    must continue at both ends of such a direction, in itself or in another block, and have equal steps along it."""

    own_history = False

    start: float = Field(0.0, ge=0, description="time at which averaging begins, in L / c_ref")
    reynolds: bool = Field(True, description="unweighted means and second moments")
    favre: bool = Field(True, description="mass-weighted means and second moments")
    budget: bool = Field(
        False, description="the moments for the budget of the turbulent kinetic energy; needs reynolds and favre"
    )
    stress_budgets: bool = Field(
        False,
        description="the moments for the budgets of all Reynolds stresses and of the turbulent kinetic energy; "
        "replaces budget",
    )

    over: Annotated[tuple[Literal["i", "j", "k"], ...], Listed] = Field(
        (), description="homogeneous index directions over which each block is averaged as well"
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if len(set(self.over)) < len(self.over):
            raise case_error("average.over names a direction twice")
        if not (self.reynolds or self.favre):
            raise case_error("averages need reynolds or favre")
        for name in ("budget", "stress_budgets"):
            if getattr(self, name) and not (self.reynolds and self.favre):
                raise case_error(f"average.{name} needs reynolds and favre; leave them true")
        return self
