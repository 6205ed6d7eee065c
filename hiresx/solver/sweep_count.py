"""The number of sweeps in a preconditioning, found by the growth of their corrections."""

import math

from hiresx.case.implicit_table import MOST_SWEEPS
from hiresx.solver.sweeps import Sweeps
from hiresx.time.ode_system import System, Vector

# Corrections of the update may become so many times the smallest one before.
GROWTH = 20.0


def count_sweeps(sweeps: Sweeps, system: System, right: Vector, into: Vector, work: Vector) -> int:
    """Solve the linear equations of the preconditioner approximately by sweeps, and return the number of sweeps up to
    which they do not diverge, at most a fixed number (`MOST_SWEEPS`).

    Sweeps diverge where the matrix blocks are not diagonally dominant. The parts of the solution that they amplify then
    hide all others, and GMRES stops when it has removed these parts. Sweeps are made in rounds, of one sweep along each
    direction of lines. They end with the last round in which the norm of the correction is at most a fixed multiple
    (`GROWTH`) of the smallest one before. `right`: the right-hand side. `into`: the vector that receives the solution.
    `work`: a vector that is overwritten. `system`: the operations on vectors. Collective."""
    least, good = math.inf, 0
    for count in sweeps.rounds(right, into, MOST_SWEEPS):
        if good:
            system.combine(1.0, into, -1.0, work)
        correction = system.norm(work if good else into)
        if good and not correction <= GROWTH * least:
            sweeps(right, into, good)
            return good
        least, good = min(least, correction), count
        system.copy(into, work)
    return good
