"""The tables `[output]` (which fields or parts of them are written, when, and in which format) and `[checkpoint]`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hiresx.case.model import Listed, Points, Positive, Table, case_error, choice, field_formats
from hiresx.equations import GAS_PRIMITIVE

Precision = Literal["fp64", "fp32"]
Variables = Annotated[tuple[str, ...], Listed, Field(min_length=1)]
# [first, last + 1] or [first, last + 1, stride]
Nodes = (
    Annotated[tuple[int, int | Literal["end"]], Listed] | Annotated[tuple[int, int | Literal["end"], Points], Listed]
)


class Clock(Table):
    """When something is written, besides the start and the end of the run."""

    every_time: Positive | None = Field(None, description="time between outputs, in L / c_ref")
    every_steps: Points | None = Field(None, description="steps between outputs")

    @model_validator(mode="after")
    def _one_clock(self) -> Self:
        if self.every_time is not None and self.every_steps is not None:
            raise case_error("output takes every_time or every_steps, not both")
        return self


class Subset(Clock):
    """A part of the fields (nodes, a plane or a line) that is written to its own files <name>_<step>."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")] = Field(description="name of its files")
    blocks: Annotated[tuple[str, ...], Listed, Field(min_length=1)] | None = Field(
        None, description="names of blocks; absent: every block"
    )
    range: dict[Literal["i", "j", "k"], Nodes] | None = Field(
        None,
        description="half-open ranges of node indexes [first, last + 1] or [first, last + 1, stride], where a "
        'negative index counts from the end and "end" is the number of nodes; a direction that is '
        "not named is included completely",
    )
    plane: dict[Literal["x", "y", "z"], float] | None = Field(
        None, description="plane { z = 0.0 } through a 3-D field, interpolated linearly along grid lines, in L"
    )
    line: dict[Literal["x", "y", "z"], float] | None = Field(
        None, description="line { y = 0.0 } through a 2-D field, { y = 0.0, z = 0.0 } through a 3-D one, in L"
    )
    variables: Variables | None = Field(None, description="absent: those of the output")
    precision: Precision | None = Field(None, description="absent: that of the output")

    @model_validator(mode="after")
    def _one_part(self) -> Self:
        if sum(part is not None for part in (self.range, self.plane, self.line)) != 1:
            raise case_error("a subset takes exactly one of range, plane and line")
        if self.plane is not None and len(self.plane) != 1:
            raise case_error("plane fixes one of x, y and z")
        if self.line is not None and not 1 <= len(self.line) <= 2:
            raise case_error("line fixes one of x and y in a 2-D field, two of x, y and z in a 3-D one")
        return self


class Output(Clock):
    """Fields, written in the background, and always at the start of a run and when it reaches its end."""

    variables: Variables = Field(
        GAS_PRIMITIVE,
        description="primitive variables, and derived ones such as T, mach, schlieren, vorticity, dilatation",
    )
    formats: Annotated[tuple[Annotated[str, choice(field_formats)], ...], Listed, Field(min_length=1)] = Field(
        ("netcdf",), description="netcdf for hiresx plot and any netCDF reader; vtk for ParaView and VisIt"
    )
    precision: Precision | None = Field(
        None,
        description="precision of the variables in the files (coordinates are fp64); absent: that of the arithmetic",
    )
    coordinates: Literal["once", "each"] = Field(
        "once",
        description="where netCDF files have the coordinates: once, in <name>_grid.nc, to which the other files link,"
        " or in each file",
    )
    subset: Annotated[tuple[Subset, ...], Listed] = Field(
        (), description="parts of the fields, which are written at intervals of their own"
    )

    def writes(self, name: str) -> bool:
        """Return whether the variable `name` is written, either with the whole fields or in a subset of them."""
        return name in self.variables or any(name in (part.variables or ()) for part in self.subset)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = ["fields", *(subset.name for subset in self.subset)]
        for name in names:
            if names.count(name) > 1:
                raise case_error(f'two outputs are called "{name}": give every subset a name of its own')
        return self


class Checkpoint(Table):
    """Checkpoints, from which `hiresx run --restart` continues to the last bit. One is always written before the first
    step and one after the last. Checkpoints change no time step: one is written after the first step that reaches its
    time."""

    keep: Annotated[int, Field(ge=0)] = Field(
        2, description="number of checkpoints to keep, the latest ones; 0: none is written"
    )
    every_wall: Positive | None = Field(
        None,
        description="wall-clock seconds between checkpoints. Absent: chosen so that at most 300 seconds are lost when "
        "a run is killed, or 100 times as long as writing a checkpoint takes, if that is longer",
    )
    every_steps: Points | None = Field(None, description="steps between checkpoints, besides every_wall")
    every_time: Positive | None = Field(None, description="time between checkpoints, in L / c_ref, besides every_wall")
