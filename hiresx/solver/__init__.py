"""The solver proper: the local blocks of a rank on its device, and one time step as an ordered list of named tasks.

`blocks`: kernels and fields; `ghosts`: what comes from other blocks; `conditions`: physical faces and sponges; `terms`:
the right-hand side put together; `step_size`; `solver`: stages and steps, and going back after one that failed.
"""

from hiresx.rhs.plans import PLANS, default_plan, work_variables
from hiresx.solver.choices import configuration
from hiresx.solver.solver import Solver

__all__ = ["PLANS", "Solver", "configuration", "default_plan", "work_variables"]
