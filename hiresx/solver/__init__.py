"""The solver proper: the local blocks of a rank on its device, and one time step as an ordered list of named tasks.

`blocks`: kernels and fields; `ghosts`: what comes from other blocks; `conditions`: physical faces and sponges; `terms`:
the right-hand side put together; `step_size`; `flow_system`: what a time integrator sees, of `vectors` and a `history`;
`known`: what is known of the state as it is. A step is what the integrator makes of the system. It is executed task by
task (`solver`), in one call on a CPU (`batched_steps`) or recorded on a device (`device_resident_steps`).
"""

from hiresx.rhs.plans import PLANS, default_plan, work_variables
from hiresx.solver.case_configuration import configuration
from hiresx.solver.solver import Solver

__all__ = ["PLANS", "Solver", "configuration", "default_plan", "work_variables"]
