"""The table of the grid about a wing."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hiresx.case.generator import Generator
from hiresx.case.model import Listed, Points, Positive, Stencil, case_error


class WingCH(Generator):
    """C-H-grid about half a swept, tapered wing without twist; scale L is its root chord.

    The root lies in the plane z = 0 with its chord on the x axis from 0 to 1, y is upwards. Beyond the last section
    the thickness decreases over the length `tip` to a straight sharp edge, or the wing ends in a `cap`. The section
    along the stream is that of the ONERA M6 wing with a closed trailing edge. i runs from the outflow along the lower
    side of the cut behind the trailing edge, around the section and back along the upper side; j from there to the
    outer boundary, a half ellipse in planes of constant z; k along the span. The two sides of the cut are connected.
    Beyond the tip the cut begins at the leading edge. Regions for the boundary conditions: "wing", "root", "far-field"
    and "outflow".
    """

    generator: Literal["wing-c-h"] = "wing-c-h"
    semi_span: Positive = Field(description="distance from the root to the last section with full thickness, in L")
    taper: Annotated[float, Field(gt=0.2, le=1)] = Field(description="chord of the section at `semi_span`, in L")
    sweep: Annotated[float, Field(ge=0, le=45)] = Field(description="sweep of the leading edge, in degrees")
    cap: bool = Field(
        False,
        description="whether the wing ends in a cap in place of a straight edge. The edge of the cap lies beyond the "
        "section at `semi_span` by the distance d = t^2/sqrt(t^2 + (0.012 c)^2), with the half thickness t and the "
        "chord c of this section. The thickness decreases to zero at the edge over the length sqrt(d^2 + tip^2); "
        "where the section is thick, the decrease is nearly that of an ellipse",
    )
    tip: Positive = Field(
        description="length over which the thickness decreases to zero, in L. Without a cap the decrease begins "
        "at the section at `semi_span`, with a cap before this section (see `cap`)"
    )
    n_airfoil: Annotated[int, Field(ge=8, multiple_of=2)] = Field(
        description="nodes on a section, from the trailing edge around to the trailing edge, an even number: the "
        "leading edge lies between two"
    )
    n_wake: Points = Field(description="nodes behind the trailing edge, on each side of the cut")
    n_normal: Stencil = Field(description="nodes from the wing to the outer boundary")
    cells: Annotated[tuple[Points, Points, Points], Listed] = Field(
        description="cells along the span: on the wing, over `tip`, and beyond it"
    )
    stretching: Annotated[float, Field(gt=1)] = Field(
        description="largest ratio of neighbouring spacings along the span from the tip to the root"
    )
    wake: Positive = Field(description="length of the cut behind the trailing edge, in L")
    far_field: Positive = Field(
        description="distance of the outer boundary ahead of the root, above and below the end of the cut, and of the "
        "last plane from the tip, in L"
    )
    first_spacing: Positive = Field(
        description="distance of the first node from the wing at the trailing edge of the root, in L. The distance "
        "is proportional to the local chord; at the leading edge it is a quarter of that at the trailing edge"
    )
    first_spacing_doubles: Positive | None = Field(
        None,
        description="distance d behind the trailing edge, in local chords, at which the first distance from the cut "
        "has doubled by an additional growth. The factor of the growth is (x/d)^2 + sqrt(1 + (z/h)^2) at the distance "
        "x behind the trailing edge, in local chords, and z beyond the tip. h is the spacing over the tip along the "
        "span. Cells beyond the tip are therefore as flat as those at the tip. Absent: no additional growth",
    )
    trailing_edge_spacing: Positive = Field(
        description="spacing along section and cut at the trailing edge of the root, in L"
    )

    @model_validator(mode="after")
    def _has_nodes(self) -> Self:
        if self.cells[0] < 4 or self.cells[1] < 2 or self.cells[2] < 5:
            raise case_error("cells: 4 or more on the wing, 2 or more over the tip, 5 or more beyond it")
        return self

    @property
    def nodes(self) -> int:
        """Number of nodes of the grid, known before the grid is made."""
        return (self.n_airfoil + 2 * self.n_wake) * self.n_normal * (sum(self.cells) + 1)
