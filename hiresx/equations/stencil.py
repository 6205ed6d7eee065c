"""How far what is computed at a point reaches along the grid, and how many ghost layers a run holds for that.

The numbers are declared in the kernels' headers, beside what they are true of, and read from there.
"""

from dataclasses import dataclass
from pathlib import Path

from hiresx import kernels
from hiresx.errors import HiresxError

_HEADER = "central_difference"


# Nodes to each side that the 6th-order central difference reads, and what the difference of the values 1, 2, ... nodes
# ahead and behind weighs in the derivative, unit spacing.
DIFFERENCE_REACH = kernels.trait("", _HEADER, "difference_reach")
DIFFERENCE_WEIGHTS = kernels.fractions("", _HEADER, "difference_weights")
# The same as the weights of the nodes from the farthest behind to the farthest ahead.
CENTRAL_DIFFERENCE = (*(-w for w in reversed(DIFFERENCE_WEIGHTS)), 0.0, *DIFFERENCE_WEIGHTS)


@dataclass(frozen=True)
class Stencil:
    """The flux at half point h + 1/2 reads the nodes h + 1 - `interpolation_reach` to h + `interpolation_reach`;
    central differences read `difference_reach` nodes to each side."""

    interpolation_reach: int = DIFFERENCE_REACH
    difference_reach: int = DIFFERENCE_REACH

    @property
    def halo(self) -> int:
        """Ghost layers that every block holds beyond a face."""
        return max(self.interpolation_reach, self.difference_reach)


# Ghost layers that arrays hold today, whatever is chosen.
HELD = Stencil().halo


def stencil(interpolation: str, root: Path = kernels.ROOT) -> Stencil:
    """That of runs with the header `interpolation` of kernels/interpolation/. Raises ValueError where it does not
    declare its reach, HiresxError where it reaches farther than the ghost layers that arrays hold."""
    found = Stencil(kernels.trait("interpolation", interpolation, "interpolation_reach", root))
    if found.halo != HELD:
        raise HiresxError(
            f'scheme.interpolation = "{interpolation}" reaches {found.interpolation_reach} nodes, arrays hold {HELD} '
            "ghost layers",
            f"choose an interpolation that reaches {HELD} nodes or fewer",
        )
    return found
