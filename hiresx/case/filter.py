"""The `[filter]` table: an explicit filter of the flow behind time steps."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from hiresx.case.model import Points, Table


class Filter(Table):
    """A filter of the conserved variables along i, j and k behind a time step.

    A wave along a grid line of the phase k from node to node is multiplied with 1 - strength sin(k/2)^order: what a
    grid cannot carry is taken away, the rest is left. It is made of squares of differences of order/2 + 1 nodes in a
    row, of which none reaches behind physical faces (and patched ones, poles and the axis): the filter damps up to
    them, and leaves polynomials of degree order/2 - 1 as they are. Nodes on such faces keep what their condition gives
    them. Order 8 needs four ghost layers, order 10 five. A uniform flow is not changed. With
    `scheme.inviscid = "hybrid"` shocks are left alone, by the field `shock_sensor`. Other schemes filter them like
    the rest; beside strong ones that can take pressure below zero.
    """

    order: Literal[6, 8, 10] = Field(8, description="order of the filter: it reads order/2 nodes to each side")
    strength: Annotated[float, Field(ge=0, le=1)] = Field(
        0.1,
        description="fraction of the shortest wave along a grid line that one filtering removes; at most 1 over the "
        "number of directions of the grid; 0: no filter",
    )
    every: Points = Field(1, description="steps from one filtering to the next")

    def needed_fields(self, case: Any) -> Mapping[str, int]:
        return {"filter_reach": 1, "filter_change": 1}

    @property
    def reach(self) -> int:
        """Number of nodes that the filter reads on each side."""
        return self.order // 2
