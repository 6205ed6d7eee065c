"""The solver: the local blocks of a rank on its device, and a time step as an ordered list of named tasks.

`block_states`: kernels and fields; `ghosts`: data from other blocks; `conditions`: physical faces and sponges; `terms`:
the assembled right-hand side; `step_size`; `flow_system`: the interface for time integrators, with `vectors` and a
`state_history`; `state_cache`: derived data of the current state. The integrator defines a step in terms of the system.
The step is executed task by task (`solver`), in one call on a CPU (`batched_steps`) or recorded on a device
(`device_resident_steps`).
"""

from hiresx.rhs.plans import PLANS, default_plan, work_variables
from hiresx.solver.case_configuration import configuration
from hiresx.solver.solver import Solver

__all__ = ["PLANS", "Solver", "configuration", "default_plan", "work_variables"]
