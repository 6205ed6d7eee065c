"""The `[grid]` table: one class per generator (`hiresx/grid/generators/<name>.py`) and one for a grid file.

All lengths are in units of the reference length L. Node counts are `[ni, nj, nk]`; a count of 1 makes the direction
singleton: 2-D grids have nk = 1, 1-D grids nj = nk = 1.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from hiresx.case.model import Counts, Listed, Points, Positive, Table, Vector, fault

Axis = Literal["x", "y", "z"]
AXES = ("x", "y", "z")
Stretching = Annotated[float, Field(gt=1)]
FILE = "Plot3D file"  # tag of the table without a generator: no name of a key, or errors could not tell them apart


class Stretch(Table):
    """Clustering of nodes along one axis."""

    cluster: Literal["lower", "upper", "both", "centre"] = Field(description="where the nodes are drawn together")
    ratio: float = Field(ge=1, description="largest spacing over the smallest one; 1 is uniform")


class _Bounds(Table):
    n: Counts = Field(description="nodes [ni, nj, nk] along x, y, z")
    lower: Vector = Field(description="lower corner [x, y, z], in L")
    upper: Vector = Field(description="upper corner [x, y, z], in L; equal to the lower one where a count is 1")
    periodic: Annotated[tuple[Axis, ...], Listed] = Field(
        (),
        description="periodic axes: these have n unique nodes and no node at the upper end, "
        "the others have nodes at both ends",
    )

    @model_validator(mode="after")
    def _ordered(self):
        for axis, n, lower, upper in zip(AXES, self.n, self.lower, self.upper, strict=True):
            if n > 1 and not upper > lower:
                raise fault(f"upper must lie above lower along {axis} (lower {lower:g}, upper {upper:g}, {n} nodes)")
        return self


class Box(_Bounds):
    """Rectangular box, uniform or stretched along each axis."""

    generator: Literal["box"] = "box"
    stretch: dict[Axis, Stretch] = Field({}, description="stretching by axis, uniform where absent")


class Wavy(_Bounds):
    """Box whose nodes are displaced by a product of sine waves: the grid that metrics and free stream are tested on.

    Displacement of coordinate c at the node that would lie at X:
    amplitude_c * product over the directions d with more than one node of sin(2 pi waves_d (X_d - lower_d) / L_d).
    """

    generator: Literal["wavy"] = "wavy"
    amplitude: Vector = Field(description="largest displacement [x, y, z], in L")
    waves: Vector = Field((1.0, 1.0, 1.0), description="waves along the box [x, y, z]")


class Plate(Table):
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
    width: Positive = Field(1.0, description="period along z, in L; meaningless when nk = 1")


class Cylinder(Table):
    """Body-fitted grid of the windward side of a circular cylinder with centre at the origin, for its bow shock.

    i runs along the wall, j from the wall (jmin) to the outer boundary (jmax), k along the span.
    The outer boundary is the ellipse through the stand-off on the axis and the one at 90 degrees.
    """

    generator: Literal["cylinder"] = "cylinder"
    radius: Positive = Field(1.0, description="radius, in L")
    n_around: Points = Field(description="nodes along the wall")
    n_normal: Points = Field(description="nodes from the wall to the outer boundary")
    angle: Annotated[tuple[float, float], Listed] = Field(
        (-90.0, 90.0), description="first and last angle in degrees, from the stagnation line (the negative x axis)"
    )
    standoff_axis: Positive = Field(description="distance from the wall to the outer boundary on the axis, in L")
    standoff_side: Positive = Field(description="distance from the wall to the outer boundary at 90 degrees, in L")
    first_spacing: Positive | None = Field(
        None,
        description="distance of the first node from the wall on the axis, elsewhere in proportion to the stand-off, "
        "in L; absent: uniform",
    )
    n_span: Points = Field(1, description="nodes along the span")
    span: Positive = Field(1.0, description="period along z, in L; meaningless when n_span = 1")

    @model_validator(mode="after")
    def _ordered(self):
        if not self.angle[1] > self.angle[0]:
            raise fault("angle must rise from its first to its last value")
        return self


class PlanarJet(Table):
    """Multi-block grid of a planar jet that leaves a nozzle; scale L is the height h of the nozzle.

    The nozzle's exit plane is x = 0, its axis y = 0. Blocks: jet (x >= 0), nozzle, above, below (x < 0). The physical
    domain is followed by sponge layers downstream and on both sides, where the spacing grows.
    Regions for the boundary conditions: "walls", "inlet", "upstream", "outlet", "sides".
    """

    generator: Literal["planar-jet"] = "planar-jet"
    points_per_height: Points = Field(description="cells across the nozzle height, an even number")
    boundary_layer_thickness: Positive = Field(0.05, description="layer at the nozzle's inner wall, in h (the paper's)")
    boundary_layer_points: Points = Field(description="cells within that layer; the lip has about the same spacing")
    lip_thickness: Positive = Field(description="thickness of the nozzle's lip, in h")
    exit_spacing: Positive = Field(description="spacing along x at the nozzle's exit, in h")
    length: Positive = Field(description="extent of the physical domain downstream of the exit, in h")
    half_height: Positive = Field(description="extent of the physical domain to each side of the axis, in h")
    nozzle_length: Positive = Field(0.6, description="length of the nozzle inside the domain, in h (the paper's)")
    upstream: Positive = Field(0.6, description="extent of the domain ahead of the exit, outside the nozzle, in h")
    stretching: Annotated[tuple[Stretching, Stretching], Listed] = Field(
        description="largest ratio of neighbouring spacings in the physical domain, along x and y"
    )
    sponge_length: Positive = Field(description="length of the sponge layer downstream, in h")
    sponge_height: Positive = Field(description="thickness of the sponge layer on each side, in h")
    sponge_stretching: Stretching = Field(description="largest ratio of neighbouring spacings in the sponge")
    nk: Points = Field(1, description="nodes along z, periodic when more than 1")
    width: Positive = Field(1.0, description="period along z, in h; meaningless when nk = 1")


class GridFile(Table):
    """Grid read from a Plot3D file."""

    file: str = Field(description="Plot3D file, ASCII or unformatted, relative to the case file")
    period: dict[Literal["i", "j", "k"], Vector] = Field(
        {}, description="translation [x, y, z] from the min to the max face of directions that may be periodic, in L"
    )


GENERATORS: dict[str, type[Table]] = {
    model.model_fields["generator"].default: model for model in (Box, Wavy, Plate, Cylinder, PlanarJet)
}


def _kind(value: Any) -> str | None:
    if isinstance(value, dict):
        return FILE if "file" in value else value.get("generator")
    return FILE if isinstance(value, GridFile) else getattr(value, "generator", None)


GridTable = Annotated[
    Annotated[Box, Tag("box")]
    | Annotated[Wavy, Tag("wavy")]
    | Annotated[Plate, Tag("plate")]
    | Annotated[Cylinder, Tag("cylinder")]
    | Annotated[PlanarJet, Tag("planar-jet")]
    | Annotated[GridFile, Tag(FILE)],
    Discriminator(_kind),
]
