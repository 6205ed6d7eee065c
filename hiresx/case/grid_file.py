"""The `[grid]` table with the key `file`: what is read from a grid file, and how the grid is then changed."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hiresx.case.model import Axis, Listed, Positive, Stencil, Table, Vector, case_error


class Rotation(Table):
    """A rotation about an axis, and a translation after it."""

    axis: Vector = Field(description="direction [x, y, z] of the axis; the rotation is right-handed about it")
    angle: float = Field(ge=-360, le=360, description="angle, in degrees")
    centre: Vector = Field((0.0, 0.0, 0.0), description="a point [x, y, z] on the axis, in L")
    translation: Vector = Field((0.0, 0.0, 0.0), description="translation [x, y, z] after the rotation, in L")

    @field_validator("axis")
    @classmethod
    def _turns(cls, axis: tuple[float, ...]) -> tuple[float, ...]:
        if not any(axis):
            raise case_error("must not be zero")
        return axis


# Of `extrude` and `revolve`.
SWEPT_PERIOD = Field(
    True,
    description="true: the length or angle is a period along k, so the last node lies one spacing before its end. "
    "false: there are nodes at both ends, for conditions other than periodic",
)


class Extrusion(Table):
    """Extrusion of a plane grid along z."""

    n: Stencil = Field(description="nodes along k")
    length: Positive = Field(description="length along z, in L")
    periodic: bool = SWEPT_PERIOD


class Revolution(Table):
    """Revolution of a plane grid about the x axis."""

    n: Stencil = Field(description="nodes along k")
    angle: float = Field(gt=0, le=360, description="angle of the revolution, in degrees")
    periodic: bool = SWEPT_PERIOD


class GridFile(Table):
    """Grid read from a Plot3D file, with or without a connectivity file beside it, or from a CGNS file.

    If no file says how blocks are connected, faces (or parts of them) with coincident nodes are connected. The keys
    from `plane` to `revolve` are applied in the order of this list, to nodes, connections and regions. Indexes in the
    connectivity file refer to the grid of the file, indexes in the case to the resulting grid."""

    file: str = Field(
        description="Plot3D file (text, unformatted or binary) or CGNS file (HDF5 or ADF), relative to the case file"
    )
    connectivity: str | None = Field(
        None,
        description="connectivity file of a Plot3D file, relative to the case file: names of blocks and "
        "regions, and the connections",
    )
    drop: Annotated[tuple[str, ...], Listed] = Field(
        (), description="broken boundary patches and connections of a CGNS file to leave out, PATCH or ZONE/PATCH"
    )
    period: dict[Literal["i", "j", "k"], Vector | Rotation] = Field(
        {},
        description="motion from the min to the max face of each periodic direction: a translation [x, y, z], in L, or "
        "a rotation {axis, angle, centre, translation}",
    )
    plane: Literal["auto", "keep"] = Field(
        "auto",
        description="auto: a grid with 1 or 2 nodes in some direction becomes one plane in x-y with the directions i "
        "and j, or one line along x. keep: the grid remains as it is in the file",
    )
    reverse: Literal["auto", "keep"] | Annotated[tuple[str, ...], Listed] = Field(
        "auto",
        description="blocks that are reversed in i; auto: left-handed ones; keep: none; left-handed ones are refused",
    )
    scale: Positive = Field(
        1.0, description="factor by which all coordinates are multiplied: L is 1/scale units of the file"
    )
    rotate: Rotation | None = Field(None, description="rotation {axis, angle, centre, translation}")
    translate: Vector = Field((0.0, 0.0, 0.0), description="translation [x, y, z], in L")
    coarsen: int = Field(
        0, ge=0, description="number of times that every second node is left out, in directions whose counts allow it"
    )
    mirror: Annotated[tuple[Axis, ...], Listed] = Field(
        (),
        description='axes along which the grid and its image behind 0 are joined: ["y"] turns a half model into a '
        "whole one",
    )
    extrude: Extrusion | None = Field(None, description="a plane grid is extruded along z: {n, length}")
    revolve: Revolution | None = Field(None, description="a plane grid is revolved about the x axis: {n, angle}")

    @model_validator(mode="after")
    def _one_third_dimension(self) -> Self:
        if self.extrude and self.revolve:
            raise case_error("takes either extrude or revolve, not both")
        if len(set(self.mirror)) < len(self.mirror):
            raise case_error("mirror: name each axis once")
        return self
