"""Positions along an axis, given as numbers or by the names of parts of the grid."""

from typing import Literal, Self

from pydantic import Field, model_validator

from hiresx.case.boundaries import Face
from hiresx.case.model import Table, case_error


class Position(Table):
    """Where a region of the grid, or a face of its blocks, lies along an axis."""

    region: str | None = Field(None, description="name of a region of the grid")
    face: Face | None = Field(None, description="face of blocks, instead of region")
    block: str | None = Field(None, description="name of the block; absent: every block that has such a region or face")
    side: Literal["least", "largest"] | None = Field(
        None, description="which of its coordinates is used; required if they are not all equal"
    )
    offset: float = Field(0.0, description="distance that is added to the coordinate, in L")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.region is None) == (self.face is None):
            raise case_error("takes exactly one of region and face")
        return self
