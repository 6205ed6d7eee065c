"""Which weights go with which interpolation."""

from collections.abc import Iterator

from pydantic_core import PydanticCustomError

from hiresx import kernels
from hiresx.case.model import case_error
from hiresx.equations.stencil import has_cutoff, suited_weights, weighted_nodes


def weights_errors(interpolation: str, weights: str, cutoff: float | None) -> Iterator[PydanticCustomError]:
    """What is wrong with the weights and their cut-off."""
    suited = suited_weights(interpolation)
    if weights not in suited:
        yield case_error(
            f'scheme.weights = "{weights}" does not weigh the {weighted_nodes(interpolation)} nodes of '
            f'scheme.interpolation = "{interpolation}"; take one of {", ".join(suited)}, or another interpolation'
        )
    if cutoff is not None and not has_cutoff(weights):
        cutting = [name for name in kernels.choices("weights") if has_cutoff(name)]
        yield case_error(
            f'scheme.cutoff: scheme.weights = "{weights}" has no cut-off; leave it out, or take {" or ".join(cutting)}'
        )
