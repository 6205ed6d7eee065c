"""The `[[surface]]` tables: surfaces on which a run stores the flow, from which `hiresx post farfield` computes the far
field."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from hiresx.case.boundaries import Faces, Place
from hiresx.case.model import Counts, Listed, Positive, Table, Vector, case_error
from hiresx.case.monitors import Name, Precision, SampledTable

if TYPE_CHECKING:
    from hiresx.case.schema import Case

End = Literal["xmin", "xmax"]
Side = Literal["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"]


class Nodes(Place):
    """Nodes on surfaces of constant index. The outward normal points in the same direction as that of the face."""

    faces: Faces = Field(
        description="faces of the block on which the surface lies, or a face of the same direction; the normals"
        " are those of the faces"
    )
    index: int | None = Field(
        None, description="node index of the surface, negative ones from the end; absent: that of the face itself"
    )

    @model_validator(mode="after")
    def _one_face(self) -> Self:
        if self.index is not None and (self.faces == "all" or len(self.faces) != 1):
            raise case_error("index needs exactly one face, which says along which direction it counts")
        return self


class CellSurface(Table):
    """Keys that a box and a cylinder have in common."""

    spacing: Positive | None = Field(None, description="largest length of a cell of the surface, in L; or give cells")
    caps: Annotated[tuple[float, ...], Listed] = Field(
        (),
        description="further positions x of the downstream end, in L. Each closes a surface of its own; the far fields "
        "of all surfaces are averaged",
    )


class BoxSurface(CellSurface):
    """The faces of a box, divided into cells; the flow is interpolated at their centres. In two dimensions z is
    ignored."""

    lower: Vector = Field(description="lower corner [x, y, z], in L")
    upper: Vector = Field(description="upper corner [x, y, z], in L")
    cells: Counts | None = Field(None, description="cells along x, y, z; or give spacing")
    open: Annotated[tuple[Side, ...], Listed] = Field((), description="sides that are left out")

    @model_validator(mode="after")
    def _some_box(self) -> Self:
        _one_size(self)
        if not all(a < b for a, b in zip(self.lower[:2], self.upper[:2], strict=True)) or self.lower[2] > self.upper[2]:
            raise case_error("lower must lie below upper")
        if len(set(self.open)) == 6:
            raise case_error("a box cannot be open on all sides")
        _caps_inside(self.caps, self.lower[0], self.upper[0])
        return self


class CylinderSurface(CellSurface):
    """A cylinder, or part of a cone, around a line along x, divided into cells; the flow is interpolated at their
    centres."""

    start: float = Field(description="x of the upstream end, in L")
    end: float = Field(description="x of the downstream end, in L")
    radius: Positive = Field(description="radius at the upstream end, in L")
    end_radius: Positive | None = Field(None, description="radius at the downstream end, in L; absent: the same")
    centre: Annotated[tuple[float, float], Listed] = Field((0.0, 0.0), description="y and z of the line, in L")
    cells: Counts | None = Field(
        None, description="cells along x, around, and along the radius of an end; or give spacing"
    )
    open: Annotated[tuple[End, ...], Listed] = Field((), description="ends that are left out")

    @model_validator(mode="after")
    def _some_cylinder(self) -> Self:
        _one_size(self)
        if not self.start < self.end:
            raise case_error("start must lie below end")
        if self.cells is not None and self.cells[1] < 3:
            raise case_error("a cylinder has 3 or more cells around")
        _caps_inside(self.caps, self.start, self.end)
        return self


def _one_size(table: BoxSurface | CylinderSurface) -> None:
    if (table.spacing is None) == (table.cells is None):
        raise case_error("takes exactly one of spacing and cells")


def _caps_inside(caps: tuple[float, ...], start: float, end: float) -> None:
    if any(not start < x < end for x in caps) or len(set(caps)) < len(caps):
        raise case_error(f"caps must lie between the ends, above {start:g} and below {end:g}, at different places")


class Surface(SampledTable):
    """The flow (rho, u, v, w, p) on a surface, sample by sample, in surfaces/<name>.nc.

    Exactly one of nodes, box and cylinder defines its shape. For a far field the surface must enclose all sources of
    sound and have 8 cells or more per wavelength, and the samples must be at equal intervals of time: `every_time`, or
    `every` and a constant dt.
    """

    own_history = False

    name: Name = Field(description="name of the surface")
    nodes: Annotated[tuple[Nodes, ...], Listed, Field(min_length=1)] | None = Field(
        None, description="surfaces of constant index of blocks, which together make the surface"
    )
    box: BoxSurface | None = Field(None, description="a box { lower = [...], upper = [...], spacing = ... }")
    cylinder: CylinderSurface | None = Field(
        None, description="a cylinder along x { start = ..., end = ..., radius = ..., spacing = ... }"
    )
    precision: Precision = Field(
        "fp64", description="precision of the numbers in the file; fp32 rounds a pressure of 101325 Pa by up to .005 Pa"
    )

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(form is not None for form in (self.nodes, self.box, self.cylinder)) != 1:
            raise case_error("takes exactly one of nodes, box and cylinder")
        return self


def surface_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield an error for each table `[[surface]]` of `case` that has the same name as an earlier one."""
    taken: set[str] = set()
    for n, surface in enumerate(case.surface):
        if surface.name in taken:
            yield case_error(f'surface.{n}.name = "{surface.name}": there is a surface of that name; choose another')
        taken.add(surface.name)
