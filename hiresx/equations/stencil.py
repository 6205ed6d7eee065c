"""The widths of stencils along grid lines, and the number of ghost layers that a run needs for them. The widths are
declared in the kernels' headers, next to the stencils, and read from there. Headers of weights also declare for which
stencils they have weights.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hiresx import kernels
from hiresx.errors import HiresxError

_HEADER = "central_difference"


def _nodes(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Return the weights of the nodes, from the farthest behind to the farthest ahead."""
    return (*(-w for w in reversed(weights)), 0.0, *weights)


# Number of nodes on each side that the sixth-order central difference reads, and the weights of the values 1, 2, ...
# nodes ahead minus behind, for unit spacing.
DIFFERENCE_REACH = kernels.trait("", _HEADER, "difference_reach")
DIFFERENCE_WEIGHTS = kernels.fractions("", _HEADER, "difference_weights")
CENTRAL_DIFFERENCE = _nodes(DIFFERENCE_WEIGHTS)
# Number of nodes of that difference.
DIFFERENCE_NODES = 2 * DIFFERENCE_REACH + 1
# For ends without nodes beyond: the sixth-order derivative at the nodes 0, 1, 2 from the nodes 0 to 6, times 60
# (Lagrange polynomial of degree 6, differentiated). At the other end it is the mirror image with the opposite sign.
ONE_SIDED_DIFFERENCES = (
    (-147.0, 360.0, -450.0, 400.0, -225.0, 72.0, -10.0),
    (-10.0, -77.0, 150.0, -100.0, 50.0, -15.0, 2.0),
    (2.0, -24.0, -35.0, 80.0, -30.0, 8.0, -1.0),
)
# Central differences by their reach: for metrics, whose reach is that of the correction of the fluxes, and for viscous
# terms.
CENTRAL_DIFFERENCES = {
    len(weights): _nodes(weights) for weights in (DIFFERENCE_WEIGHTS, kernels.fractions("", _HEADER, "wide_weights"))
}


@dataclass(frozen=True)
class Stencil:
    """Widths of the stencils of a run, as numbers of nodes on each side. Two stencils are centred at a half point:
    `interpolation_reach` is the width of the interpolation, and `correction_reach` the width of the correction of the
    interpolated flux and of the differences of the metrics. Two stencils are centred at a node: `difference_reach` is
    the width of the central differences of the viscous terms, and `filter_reach` the width of the explicit filter (0:
    none)."""

    interpolation_reach: int = DIFFERENCE_REACH
    correction_reach: int = DIFFERENCE_REACH
    difference_reach: int = DIFFERENCE_REACH
    filter_reach: int = 0

    @cached_property
    def halo(self) -> int:
        """Number of ghost layers of every block beyond each of its faces."""
        return max(self.interpolation_reach, self.correction_reach, self.difference_reach, self.filter_reach)

    @property
    def metric_difference(self) -> tuple[float, ...]:
        """Weights of the central difference by which metrics are computed, from the lowest to the highest node
        index."""
        return CENTRAL_DIFFERENCES[self.correction_reach]

    @property
    def least_nodes(self) -> int:
        """Least number of nodes in each direction (with more than one node) of a block, or of the part of a block that
        one rank computes."""
        return 2 * self.halo + 1


def stencil(
    interpolation: str, root: Path = kernels.ROOT, filter_reach: int = 0, viscous_reach: int = DIFFERENCE_REACH
) -> Stencil:
    """Return the widths of the stencils of a run. `interpolation`: the name of a header in kernels/interpolation/.
    `filter_reach`: number of nodes that the explicit filter reads on each side, 0 without a filter. `viscous_reach`:
    the number that the central differences of the viscous terms read on each side. `root`: the folder of the kernels.
    Raises FileNotFoundError if there is no such header, ValueError if it does not declare the widths of its stencils,
    and HiresxError if the correction of the interpolated flux (`Stencil.correction_reach`) has a width that is not
    implemented."""
    reach, correction = (
        kernels.trait("interpolation", interpolation, what, root)
        for what in ("interpolation_reach", "correction_reach")
    )
    if correction not in CENTRAL_DIFFERENCES:
        raise HiresxError(
            f'scheme.interpolation = "{interpolation}" asks for a correction that reaches {correction} nodes; those '
            f"written reach {' and '.join(map(str, sorted(CENTRAL_DIFFERENCES)))}",
            f"set correction_reach in kernels/interpolation/{interpolation}.h to one of these",
        )
    return Stencil(reach, correction, viscous_reach, filter_reach)


def largest_diffusion(reach: int) -> float:
    """Return the largest eigenvalue of the discrete operator -d^2/dx^2 that applies the central difference twice, for
    unit spacing. `reach`: the number of nodes that the difference uses on each side."""
    weights = CENTRAL_DIFFERENCES[reach][reach + 1 :]
    angles = (math.pi * n / 1000 for n in range(1001))
    return max(sum(2 * w * math.sin(m * angle) for m, w in enumerate(weights, 1)) ** 2 for angle in angles)


# What a header of weights/ declares if it has weights for this number of nodes. All headers have weights for five
# nodes.
_WEIGHS = {6: "weighs_six_nodes", 7: "weighs_seven_nodes"}


def weighted_nodes(interpolation: str, root: Path = kernels.ROOT) -> int:
    """Return the number of nodes in the stencil over which an interpolation needs nonlinear weights; 0 for a linear
    interpolation, which needs none. `interpolation`: the name of a header in kernels/interpolation/. `root`: the folder
    of the kernels."""
    return kernels.trait("interpolation", interpolation, "weighted_nodes", root, silent=0)


def suited_weights(interpolation: str, root: Path = kernels.ROOT) -> list[str]:
    """Return the names of the nonlinear weights (headers of kernels/weights/) that support the stencil of
    `interpolation`, the name of a header in kernels/interpolation/. `root`: the folder of the kernels."""
    says = _WEIGHS.get(weighted_nodes(interpolation, root))
    known = kernels.choices("weights", root)
    return [name for name in known if says is None or kernels.trait("weights", name, says, root, silent=0)]


def has_cutoff(weights: str, root: Path = kernels.ROOT) -> bool:
    """Return whether the nonlinear weights called `weights`, a header in kernels/weights/, use the threshold that the
    key `scheme.cutoff` of a case gives. `root`: the folder of the kernels."""
    return bool(kernels.trait("weights", weights, "has_cutoff", root, silent=0))


def sensor_has_cutoff(sensor: str, root: Path = kernels.ROOT) -> bool:
    """Return whether the shock sensor called `sensor`, a header in kernels/sensor/, uses the threshold that the key
    `scheme.cutoff` of a case gives. `root`: the folder of the kernels."""
    return bool(kernels.trait("sensor", sensor, "sensor_has_cutoff", root, silent=0))
