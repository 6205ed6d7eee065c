"""The `[filter]` table: an explicit filter of the flow behind time steps."""

from typing import Annotated, Literal

from pydantic import Field

from hiresx.case.model import Points, Table


class Filter(Table):
    """A filter of the conserved variables along i, j and k behind a time step.

    A wave along a grid line of the phase k from node to node is multiplied with 1 - strength sin(k/2)^order: what a
    grid cannot carry is taken away, the rest is left. Along the way to physical faces (and patched ones, poles and
    the axis) the order falls by two from node to node; nodes on such faces keep what their condition gives them.
    Order 8 needs four ghost layers, order 10 five. A uniform flow is not changed. Within order/2 nodes of a wall or a
    plane of symmetry nothing is filtered along the lines that leave it, so that friction and mass stay. With
    `scheme.inviscid = "hybrid"` shocks are left alone, by the field `shock_sensor`. Other schemes filter them like
    the rest; beside strong ones that can take pressure below zero.
    """

    order: Literal[6, 8, 10] = Field(8, description="order of the filter: it reads order/2 nodes to each side")
    strength: Annotated[float, Field(gt=0, le=1)] = Field(
        0.1,
        description="share of the shortest wave along a grid line that is taken away at a time; at most 1 over the "
        "number of directions of the grid",
    )
    every: Points = Field(1, description="steps from one filtering to the next")

    @property
    def reach(self) -> int:
        """Nodes to each side that it reads."""
        return self.order // 2
