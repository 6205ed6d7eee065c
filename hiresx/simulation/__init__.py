"""A run from Python or from the command line.

`simulation`: build, step, what hangs on a run; `view`: a block of it; `continuation`: from which checkpoint it goes on,
and what it leaves in the next; `ends`: when it stops; `agreement`: what its ranks have to agree upon.
"""

from hiresx.estimate import estimate
from hiresx.simulation.block_view import BlockView
from hiresx.simulation.continuation import kept_case
from hiresx.simulation.simulation import Simulation

__all__ = ["BlockView", "Simulation", "estimate", "kept_case"]
