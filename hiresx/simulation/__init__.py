"""A run from Python or from the command line.

`simulation`: construction and steps, with the attachments of a run. `block_view`: a view of one block. `continuation`:
the checkpoint from which a run continues. `ends`: the conditions at which it stops. `agreement`: the settings that must
be the same on all ranks.
"""

from hiresx.estimate import estimate
from hiresx.simulation.block_view import BlockView
from hiresx.simulation.continuation import kept_case
from hiresx.simulation.simulation import Simulation

__all__ = ["BlockView", "Simulation", "estimate", "kept_case"]
