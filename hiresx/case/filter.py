"""The `[filter]` table: an explicit filter of the flow, applied after time steps."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from hiresx.case.model import Points, Table


class Filter(Table):
    """A filter of the conserved variables along i, j and k after a time step.

    A wave along a grid line with the phase difference k from node to node is multiplied by 1 - strength sin(k/2)^order.
    So the filter removes what the grid cannot represent, and changes other waves little. It is built from differences
    of order/2 + 1 nodes in a row. Behind a plane of symmetry a row continues with the mirror images of nodes. No row
    reaches behind another physical face, a patched face, a pole or the axis: the filter acts up to these faces, and
    leaves polynomials of degree order/2 - 1 unchanged. Nodes on such faces keep the values of their boundary condition.
    Order 8 needs four ghost layers, order 10 five. A uniform flow is not changed. With `scheme.inviscid = "hybrid"` the
    filter does not act at shocks, which the field `shock_sensor` marks. With other schemes it acts there as well, and
    may make the pressure negative beside strong shocks."""

    order: Literal[6, 8, 10] = Field(8, description="order of the filter: it reads order/2 nodes to each side")
    strength: Annotated[float, Field(ge=0, le=1)] = Field(
        0.1,
        description="fraction of the amplitude of the shortest wave along a grid line that one application of "
        "the filter removes; at most 1 over the number of directions of the grid; 0: no filter",
    )
    every: Points = Field(1, description="steps from one application of the filter to the next")

    def needed_fields(self, case: Any) -> Mapping[str, int]:
        """Return {"filter_reach": 1, "filter_change": 1}: the arrays at the nodes of each block that the filter
        needs."""
        return {"filter_reach": 1, "filter_change": 1}

    @property
    def reach(self) -> int:
        """Number of nodes on each side of a node from which its filtered value is computed."""
        return self.order // 2
