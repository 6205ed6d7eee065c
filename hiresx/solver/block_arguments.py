"""Arguments of the kernels in kernels/implicit/ that compute the blocks of the preconditioner."""

from typing import Any

from hiresx.device.state import BlockState


def of_flow(s: BlockState) -> dict[str, Any]:
    """Return the arguments, by name, of kernels that read the state, the metrics and the fields of a turbulence model
    at the nodes of the block `s`."""
    return {
        **s.derivative_strides, "q": s.q, "m": s.metrics, "jacobian": s.jacobian,
        **({"wall_distance": s.array("wall_distance")} if s.layout.has("transported_source") else {}),
        **({"grid_spacings": s.array("grid_spacings")} if s.layout.has("grid_spacings") else {}),
        **s.eddy_arguments,
    }  # fmt: skip
