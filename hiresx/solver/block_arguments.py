"""Arguments of the kernels in kernels/implicit/ that compute the blocks of the preconditioner."""

from typing import Any

from hiresx.device.state import BlockState


def of_flow(s: BlockState) -> dict[str, Any]:
    """Return values for the parameters, by name, of kernels that read the flow at the nodes of the block `s`: the
    device arrays with its state, its metrics and the fields of its turbulence model, and their strides."""
    return {
        **s.derivative_strides, "q": s.q, "m": s.metrics, "jacobian": s.jacobian,
        **({"wall_distance": s.array("wall_distance")} if s.layout.has("transported_source") else {}),
        **({"grid_spacings": s.array("grid_spacings")} if s.layout.has("grid_spacings") else {}),
        **s.eddy_arguments,
    }  # fmt: skip
