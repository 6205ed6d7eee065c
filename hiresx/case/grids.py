"""The `[grid]` table: one class for each generator (`hiresx/grid/generators/<name>.py`), and one for a grid file.

All lengths are in units of the reference length L. Numbers of nodes are `[ni, nj, nk]`. A direction with one node is
not computed: 2-D grids have nk = 1, 1-D grids nj = nk = 1.
"""

import math
import operator
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import asinh, log
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from hiresx.case.generator import Generator
from hiresx.case.grid_file import GridFile
from hiresx.case.model import Axis, Counts, Listed, Points, Positive, Stencil, Table, Vector, case_error
from hiresx.case.wing import WingCH as WingCH

AXES: tuple[Axis, ...] = ("x", "y", "z")
Stretching = Annotated[float, Field(gt=1)]
Slope = Annotated[float, Field(gt=-60, lt=60)]
NOZZLE = 8  # least number of cells across a nozzle
# Description of a key of grids between a body and its bow shock.
StandoffAxis = Annotated[Positive, Field(description="distance from the wall to the outer boundary on the axis, in L")]
StandoffSide = Annotated[
    Positive, Field(description="distance from the wall to the outer boundary at 90 degrees, in L")
]
SpacingOnAxis = Annotated[
    Positive | None,
    Field(
        description="distance of the first node from the wall on the axis, elsewhere in proportion to the stand-off, "
        "in L; absent: uniform"
    ),
]
# tag of the table without a generator; it must differ from all keys, so that errors can be attributed
FILE = "Plot3D file"


def _check_cells(cells: Sequence[int]) -> None:
    if sum(cells) < 6:
        raise case_error("cells: 6 or more in all")


class Stretch(Table):
    """Clustering of nodes along one axis."""

    cluster: Literal["lower", "upper", "both", "centre"] = Field(description="where the nodes are clustered")
    ratio: float = Field(ge=1, description="largest spacing over the smallest one; 1 is uniform")


class _Bounds(Generator):
    n: Counts = Field(description="nodes [ni, nj, nk] along x, y, z")
    lower: Vector = Field(description="lower corner [x, y, z], in L")
    upper: Vector = Field(description="upper corner [x, y, z], in L; equal to the lower one where a count is 1")
    periodic: Annotated[tuple[Axis, ...], Listed] = Field(
        (),
        description="periodic axes: these have n unique nodes and no node at the upper end, "
        "the others have nodes at both ends",
    )

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        for axis, n, lower, upper in zip(AXES, self.n, self.lower, self.upper, strict=True):
            if self.periodic.count(axis) > 1:
                raise case_error(f'periodic names "{axis}" twice; name it once')
            if n > 1 and not upper > lower:
                raise case_error(
                    f"upper must lie above lower along {axis} (lower {lower:g}, upper {upper:g}, {n} nodes)"
                )
        return self


class Box(_Bounds):
    """Rectangular box, uniform or stretched along each axis."""

    generator: Literal["box"] = "box"
    stretch: dict[Axis, Stretch] = Field({}, description="stretching by axis, uniform where absent")


class Wavy(_Bounds):
    """Box whose nodes are displaced by a product of sine waves. Metrics and the preservation of a uniform flow are
    tested on it.

    Displacement of coordinate c at the node that would lie at X: amplitude_c * product over the directions d with more
    than one node of sin(2 pi waves_d (X_d - lower_d) / L_d).
    """

    generator: Literal["wavy"] = "wavy"
    amplitude: Vector = Field(description="largest displacement [x, y, z], in L")
    waves: Vector = Field((1.0, 1.0, 1.0), description="number of waves along each side of the box [x, y, z]")


class Plate(Generator):
    """Flat plate along y = 0 with a stretch of free flow ahead of its leading edge.

    Regions of the face jmin for the boundary conditions: "upstream" and "plate" (with the node of the leading edge).
    """

    generator: Literal["plate"] = "plate"
    n: Counts = Field(description="nodes [ni, nj, nk] along x, y, z")
    leading_edge: float = Field(0.0, description="x of the leading edge, in L")
    upstream: Positive = Field(description="length of the domain ahead of the leading edge, in L")
    length: Positive = Field(description="length of the plate, in L")
    height: Positive = Field(description="height of the domain, in L")
    first_spacing: Positive = Field(description="distance of the first node from the wall, in L")
    leading_edge_spacing: Positive = Field(description="spacing along x at the leading edge, in L")
    width: Positive = Field(1.0, description="period along z, in L; no effect when nk = 1")


class Cylinder(Generator):
    """Body-fitted grid of the windward side of a circular cylinder with centre at the origin, for its bow shock.

    i runs along the wall, j from the wall (jmin) to the outer boundary (jmax), k along the span.
    The outer boundary is an ellipse; standoff_axis and standoff_side are its distances from the wall.
    """

    generator: Literal["cylinder"] = "cylinder"
    radius: Positive = Field(1.0, description="radius, in L")
    n_around: Points = Field(description="nodes along the wall")
    n_normal: Points = Field(description="nodes from the wall to the outer boundary")
    angle: Annotated[tuple[float, float], Listed] = Field(
        (-90.0, 90.0), description="first and last angle in degrees, from the stagnation line (the negative x axis)"
    )
    standoff_axis: StandoffAxis
    standoff_side: StandoffSide
    first_spacing: SpacingOnAxis = None
    n_span: Points = Field(1, description="nodes along the span")
    span: Positive = Field(1.0, description="period along z, in L; no effect when n_span = 1")

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not self.angle[1] > self.angle[0]:
            raise case_error("angle must rise from its first to its last value")
        return self


class CylinderO(Generator):
    """O-grid around a whole circular cylinder with centre at the origin.

    i runs around the cylinder and closes on itself, j from the wall (jmin) to the outer circle (jmax), k along the
    span. Regions for the boundary conditions: "wall" and "far-field".
    """

    generator: Literal["cylinder-o"] = "cylinder-o"
    radius: Positive = Field(0.5, description="radius, in L")
    outer_radius: Positive = Field(description="radius of the outer boundary, in L")
    n_around: Stencil = Field(description="nodes around the cylinder, all different")
    n_normal: Stencil = Field(description="nodes from the wall to the outer boundary")
    first_spacing: Positive | None = Field(
        None, description="distance of the first node from the wall, in L; absent: uniform"
    )
    blocks: Points = Field(1, description="number of blocks into which the grid is divided along i")
    n_span: Points = Field(1, description="nodes along the span")
    span: Positive = Field(1.0, description="period along z, in L; no effect when n_span = 1")

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not self.outer_radius > self.radius:
            raise case_error(f"outer_radius must be larger than the radius {self.radius:g}")
        return self


class AirfoilC(Generator):
    """C-grid around a NACA four-digit airfoil with sharp trailing edge; scale L is its chord.

    The chord lies on the x axis from 0 to 1. The direction of the flow sets the angle of attack. i runs from the
    outflow along the lower side of the cut behind the trailing edge, around the airfoil and back along the upper side.
    The two sides of the cut are connected. j runs from there to the outer boundary, a half ellipse.
    Regions for the boundary conditions: "wall", "far-field" and "outflow".
    """

    generator: Literal["airfoil-c"] = "airfoil-c"
    naca: str = Field(pattern=r"^\d{2}(0[1-9]|[1-3]\d|40)$", description='the four digits, as text: "0012"')
    thickness: Annotated[float, Field(gt=0, le=0.4)] | None = Field(
        None, description="thickness, in chords; absent: that of the last two digits"
    )
    camber: Annotated[float, Field(ge=-0.1, le=0.1)] | None = Field(
        None,
        description="largest height of the mean line, in chords. It is at the place given by the second digit, or at "
        "0.4 if that is 0. Absent: the height given by the first digit",
    )
    trailing_edge: Literal["coefficient", "extended"] = Field(
        "coefficient",
        description="how the section is closed. coefficient: the last coefficient of its thickness is -0.1036 in place "
        "of -0.1015. extended: the section is extended to the place where its thickness vanishes, and then scaled to "
        "the chord",
    )
    n_airfoil: Stencil = Field(description="nodes on the airfoil, from the trailing edge around to the trailing edge")
    n_wake: Points = Field(description="nodes behind the trailing edge, on each side of the cut")
    n_normal: Stencil = Field(description="nodes from the airfoil to the outer boundary")
    wake: Positive = Field(description="length of the cut behind the trailing edge, in chords")
    far_field: Positive = Field(
        description="distance of the outer boundary ahead of the leading edge, and above and below the end of the cut, "
        "in chords"
    )
    first_spacing: Positive = Field(
        description="distance of the first node from the airfoil at the trailing edge, in chords. At the "
        "leading edge the distance is about this value times twice the thickness (a quarter of it "
        "for 12 %). It grows behind the airfoil"
    )
    first_spacing_doubles: Positive | None = Field(
        None,
        description="distance d behind the trailing edge, in chords, at which the first distance from the cut has "
        "doubled by an additional growth: its factor at the distance x behind the edge is 1 + (x/d)^2. Absent: no "
        "additional growth",
    )
    trailing_edge_spacing: Positive = Field(
        description="spacing along airfoil and cut at the trailing edge, in chords; at the leading edge it follows "
        "from n_airfoil"
    )
    blocks: Points = Field(1, description="number of blocks into which the grid is divided along i")
    n_span: Points = Field(1, description="nodes along the span")
    span: Positive = Field(1.0, description="period along z, in chords; no effect when n_span = 1")

    @property
    def nodes(self) -> int:
        """Number of nodes of the grid, known before the grid is made."""
        return (self.n_airfoil + 2 * self.n_wake) * self.n_normal * self.n_span


class ChannelBump(Generator):
    """H-grid of a channel with a bump on its lower wall, from x = 0 to 1; scale L is the chord of the bump.

    i runs along the channel, j from the lower to the upper wall.
    Regions for the boundary conditions: "inlet", "outlet", "lower-wall", "upper-wall", and "bump", which is the part of
    the lower wall on the bump.
    """

    generator: Literal["channel-bump"] = "channel-bump"
    shape: Literal["sine-squared", "circular-arc", "sine-fourth"] = Field(
        "sine-squared",
        description="thickness sin^2(pi x), whose slope is continuous at its ends; a circular arc; or thickness"
        " sin^4(pi (x - 0.2)/0.6) from 0.2 to 0.8 between flat pieces: the bump of NASA's "
        "Turbulence Modeling Resource",
    )
    thickness: Positive = Field(0.1, lt=0.5, description="height of the bump, in chords")
    height: Positive = Field(1.0, description="height of the channel, in chords")
    upstream: Positive = Field(1.0, description="length of the channel ahead of the bump, in chords")
    downstream: Positive = Field(1.0, description="length of the channel behind the bump, in chords")
    cells: Counts = Field(description="cells ahead of the bump, on it, and behind it")
    end_spacing: Positive | None = Field(
        None, description="spacing along x at both ends of the bump, in chords; absent: uniform on the bump"
    )
    n_normal: Stencil = Field(description="nodes from the lower to the upper wall")
    first_spacing: Positive | None = Field(
        None, description="distance of the first node from the lower wall, in chords; absent: uniform"
    )
    first_spacing_doubles: Positive | None = Field(
        None,
        description="distance d ahead of the bump and behind it, in chords, at which the first distance from the wall "
        "has doubled: its factor at the distance x is 1 + (x/d)^2. Absent: no growth",
    )
    blocks: Literal[1, 3] = Field(1, description='1: the block "channel"; 3: "upstream", "bump" and "downstream"')
    nk: Points = Field(1, description="nodes along z, periodic when more than 1")
    width: Positive = Field(1.0, description="period along z, in chords; no effect when nk = 1")

    @property
    def nodes(self) -> int:
        """Number of nodes of the grid, known before the grid is made."""
        return (sum(self.cells) + 1) * self.n_normal * self.nk


class BackwardStep(Generator):
    """Backward-facing step: a channel whose lower wall drops by a step of 90 degrees at the edge x = y = 0; nodes are
    equally spaced.

    Blocks: channel (x <= 0), above and below (x >= 0, over and under the height of the edge). Regions for the boundary
    conditions: "inlet", "outlet", "top", "bottom", and "step", the walls that meet in the edge.
    """

    generator: Literal["backward-step"] = "backward-step"
    spacing: Positive = Field(
        description="spacing of the nodes along x and y, in L; the lengths must be multiples of it"
    )
    upstream: Positive = Field(description="length of the channel ahead of the edge, in L")
    length: Positive = Field(description="length of the domain behind the edge, in L")
    height: Positive = Field(description="height of the domain above the edge, in L")
    depth: Positive = Field(description="depth of the domain below the edge, in L")

    @model_validator(mode="after")
    def _has_nodes(self) -> Self:
        for name in ("upstream", "length", "height", "depth"):
            if getattr(self, name) < 5.5 * self.spacing:
                raise case_error(f"{name} = {getattr(self, name):g} is less than 6 of spacing = {self.spacing:g}")
        return self

    @property
    def nodes(self) -> int:
        """Approximate number of nodes of the grid, known before the grid is made: the area of the domain divided by the
        square of the spacing."""
        behind = self.length * (self.height + self.depth)
        return round((self.upstream * self.height + behind) / self.spacing**2)


class Cone(Generator):
    """Pointed cone about the x axis with its tip at the origin, and the axis ahead of it, for axisymmetric flow.

    i runs along axis and cone, j from there to a straight outer boundary.
    Regions for the boundary conditions: "axis", "cone", "inlet", "outlet", "outer".
    """

    generator: Literal["cone"] = "cone"
    half_angle: Positive = Field(lt=60, description="angle between the axis and the cone, in degrees")
    length: Positive = Field(1.0, description="length of the cone along x, in L")
    upstream: Positive = Field(description="length of the domain ahead of the tip, in L")
    height: Positive = Field(description="distance of the outer boundary from the axis at the inlet, in L")
    end_height: Positive = Field(description="distance of the outer boundary from the axis at the outlet, in L")
    cells: Annotated[tuple[Points, Points], Listed] = Field(description="cells ahead of the tip and on the cone")
    n_normal: Stencil = Field(description="nodes from the axis to the outer boundary")
    first_spacing: Positive | None = Field(
        None, description="distance of the first node from the axis at the inlet, in L; absent: uniform"
    )

    @model_validator(mode="after")
    def _outside(self) -> Self:
        if self.end_height <= self.length * math.tan(math.radians(self.half_angle)):
            raise case_error("end_height must lie above the end of the cone")
        _check_cells(self.cells)
        return self

    @property
    def nodes(self) -> int:
        """Number of nodes of the grid, known before the grid is made."""
        return (sum(self.cells) + 1) * self.n_normal


class Inlet(Generator):
    """Plane inlet between two boundaries of straight segments with corners at the same x.

    i runs along x, uniform between corners, j from the lower wall to the upper boundary. The upper boundary is a wall
    only behind the lip, which is the last corner but one.
    Regions for the boundary conditions: "inflow", "outflow", "lower-wall", "above" (ahead of the lip), "cowl".
    """

    generator: Literal["inlet"] = "inlet"
    corners: Annotated[tuple[float, ...], Listed, Field(min_length=3)] = Field(
        description="x of the inflow, of the corners of the walls, of the lip and of the outflow, in ascending "
        "order, in L"
    )
    cells: Annotated[tuple[Points, ...], Listed] = Field(description="cells along x between one corner and the next")
    lower_angles: Annotated[tuple[Slope, ...], Listed] = Field(
        description="angle of the lower wall between corners, in degrees, positive upwards"
    )
    upper_angles: Annotated[tuple[Slope, ...], Listed] = Field(
        description="angle of the upper boundary between corners, in degrees, positive upwards"
    )
    height: Positive = Field(description="distance of the walls at the inflow, in L")
    n_normal: Stencil = Field(description="nodes from the lower wall to the upper one")

    @model_validator(mode="after")
    def _pieces(self) -> Self:
        if any(b <= a for a, b in pairwise(self.corners)):
            raise case_error("corners must rise")
        for key in ("cells", "lower_angles", "upper_angles"):
            if len(getattr(self, key)) != len(self.corners) - 1:
                raise case_error(f"{key} needs {len(self.corners) - 1} values, one less than corners has")
        _check_cells(self.cells)
        return self

    @property
    def nodes(self) -> int:
        """Number of nodes of the grid, known before the grid is made."""
        return (sum(self.cells) + 1) * self.n_normal


class Sphere(Generator):
    """Body-fitted O-grid in three dimensions around a sphere with centre at the origin, or around its windward side.

    i runs along meridians from the upstream pole on the negative x axis, j from the wall to the outer boundary, k
    around the x axis. The poles need the condition `pole`.
    Regions for the boundary conditions: "wall", "outer", "upstream-pole", and "downstream-pole" or, of a part of a
    sphere, "outlet".
    """

    generator: Literal["sphere"] = "sphere"
    radius: Positive = Field(1.0, description="radius, in L")
    angle: float = Field(180.0, gt=0, le=180, description="angle at the centre from pole to last ring, in degrees")
    n_meridian: Stencil = Field(description="nodes along a meridian")
    n_normal: Stencil = Field(description="nodes from the wall to the outer boundary")
    n_around: Annotated[int, Field(ge=8, multiple_of=2)] = Field(description="nodes around the x axis, an even number")
    standoff_axis: StandoffAxis
    standoff_side: StandoffSide
    first_spacing: SpacingOnAxis = None


class _Jet(Generator):
    """A nozzle whose exit plane is x = 0, the flow behind it, and sponges around the flow. L is the height h or the
    diameter D of the nozzle."""

    boundary_layer_thickness: Positive = Field(
        0.05, description="thickness of the boundary layer at the inner wall of the nozzle, in L"
    )
    boundary_layer_points: Points = Field(
        description="cells within this boundary layer; the spacing along the lip is about the same"
    )
    lip_thickness: Positive = Field(description="thickness of the nozzle's lip, in L")
    exit_spacing: Positive = Field(description="spacing along x at the nozzle's exit, in L")
    length: Positive = Field(description="extent of the physical domain downstream of the exit, in L")
    nozzle_length: Positive = Field(0.6, description="length of the nozzle inside the domain, in L")
    upstream: Positive = Field(0.6, description="extent of the domain ahead of the exit, outside the nozzle, in L")
    stretching: Annotated[tuple[Stretching, Stretching], Listed] = Field(
        description="largest ratio of neighbouring spacings in the physical domain, along x and, outside of the"
        " lip, normal to it"
    )
    sponge_length: Positive = Field(description="length of the sponge layer downstream, in L")
    sponge_height: Positive = Field(description="thickness of the sponge layers to the sides, in L")
    sponge_stretching: Stretching = Field(description="largest ratio of neighbouring spacings in the sponge")

    @property
    def _cells_along(self) -> int:
        """Return the number of cells behind the nozzle along x, where the spacing is sqrt(exit_spacing^2 + (b x)^2)."""
        b = log(self.stretching[0])
        return int(asinh(b * self.length / self.exit_spacing) / b)


class PlanarJet(_Jet):
    """Multi-block grid of a planar jet that leaves a nozzle; scale L is the height h of the nozzle.

    The nozzle's exit plane is x = 0, its axis y = 0. Blocks: jet (x >= 0), nozzle, above, below (x < 0). The physical
    domain is followed by sponge layers downstream and on both sides, where the spacing grows. The defaults of
    boundary_layer_thickness and nozzle_length are those of Ye et al. (2022).
    Regions for the boundary conditions: "walls", "inlet", "upstream", "outlet", "sides".
    """

    generator: Literal["planar-jet"] = "planar-jet"
    points_per_height: Points = Field(description="cells across the nozzle height, an even number")
    half_height: Positive = Field(description="extent of the physical domain to each side of the axis, in L")
    nk: Points = Field(1, description="nodes along z, periodic when more than 1")
    width: Positive = Field(1.0, description="period along z, in L; no effect when nk = 1")

    @model_validator(mode="after")
    def _is_a_nozzle(self) -> Self:
        if self.points_per_height < NOZZLE:
            raise case_error(
                f"points_per_height = {self.points_per_height}: a nozzle of fewer than {NOZZLE} cells is narrower than "
                f"the stencils of both its shear layers; give {NOZZLE} or more"
            )
        if self.boundary_layer_thickness >= 0.5:
            raise case_error(
                f"boundary_layer_thickness = {self.boundary_layer_thickness:g}: the layers of both walls meet in the "
                "nozzle, which is 1 high; give less than 0.5"
            )
        return self

    @property
    def nodes(self) -> int:
        """Lower bound of the number of nodes of the grid: the nodes downstream of the nozzle and within its height."""
        return self._cells_along * self.points_per_height * self.nk


class RoundJet(_Jet):
    """Multi-block grid of a round jet that leaves a nozzle; scale L is the diameter D of the nozzle.

    The nozzle's exit plane is x = 0, the x axis its axis. Blocks: core (around the axis, a square in its section), jet
    (around it, x >= 0), nozzle and outside (x < 0). The physical domain is followed by sponge layers downstream and
    around it, where the spacing grows.
    Regions for the boundary conditions: "walls", "inlet", "upstream", "outlet", "sides".
    """

    generator: Literal["round-jet"] = "round-jet"
    points_around: Annotated[int, Field(ge=32, multiple_of=8)] = Field(
        description="nodes around the axis, a multiple of 8; a quarter of them are the cells across the core"
    )
    points_per_diameter: Points = Field(
        description="cells across the nozzle: the cells across the core plus twice the number of layers around it"
    )
    radius: Positive = Field(description="extent of the physical domain from the axis, in L")

    @property
    def nodes(self) -> int:
        """Lower bound of the number of nodes of the grid: the nodes downstream of the nozzle and within its radius."""
        return self._cells_along * self.points_around * max(self.points_per_diameter // 2, 1)


def _kind(value: Any) -> str | None:
    if isinstance(value, dict):
        generator = value.get("generator")
        return FILE if "file" in value else generator if generator is None else str(generator)
    return FILE if isinstance(value, GridFile) else getattr(value, "generator", None)


if TYPE_CHECKING:
    GENERATORS: dict[str, type[Table]]
    GridTable = Generator | GridFile  # at run time the union of all tables


def __getattr__(name: str) -> Any:
    """Return GENERATORS, the tables of all generators by name, or GridTable, the union of these tables and that of grid
    files."""
    tables = [m for m in list(globals().values()) if isinstance(m, type) and issubclass(m, Generator)]
    found = {m.model_fields["generator"].default: m for m in tables if "generator" in m.model_fields}
    if name == "GENERATORS":
        return found
    if name == "GridTable":
        tagged = (Annotated[m, Tag(tag)] for tag, m in (*found.items(), (FILE, GridFile)))
        return Annotated[reduce(operator.or_, tagged), Discriminator(_kind)]
    raise AttributeError(f"module {__name__} has no attribute {name}")
