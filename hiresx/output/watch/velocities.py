"""Velocity and temperature between steps, with the ghost nodes that are needed for their gradients."""

from typing import Any

from hiresx.device.interface import Calls
from hiresx.device.state import BlockState
from hiresx.rhs.scalar_conditions import ScalarCondition
from hiresx.rhs.viscous_plan import primitives
from hiresx.solver import Solver


class Velocities:
    """Device arrays with velocity and temperature (u, v, w, T) at the nodes of this rank, with the ghost nodes that the
    viscous terms need. `calls`: the launches that compute them as at the beginning of a stage. The halos of the state
    must have been exchanged (`Solver.settle`). They are written to work arrays, which are free between steps; an
    inviscid run on the CPU has no such arrays and allocates them."""

    def __init__(self, solver: Solver):
        reynolds = solver.case.gas.reynolds
        self._inverse_reynolds = 0.0 if reynolds is None else 1.0 / reynolds
        self._arrays = {}  # by the index of the part, as conditions know it
        for state in solver.states:
            count = len(state.equations.gradients)
            room = state.work is not None and len(state.work) >= count
            own = state.work[:count] if room else solver.backend.zeros((count, *state.shape), state.storage.work)
            self._arrays[state.index] = own
        program = solver.program
        faces = [c for c in solver.conditions if not isinstance(c, ScalarCondition)]
        # The launches of a list do not depend on each other: each writes behind a face of its own.
        self.calls: Calls = [
            [call for c in faces for call in c.calls("ghost")],
            [primitives(program, state, self._arrays[state.index]) for state in solver.states],
            [call for c in faces for call in c.calls("viscous_primitives", self._arrays[c.state.index])],
        ]

    def arguments(self, state: BlockState) -> dict[str, Any]:
        """Return by name those arguments of a kernel through which it receives velocity gradients and viscous stresses
        at the nodes of a box. `state`: the device state of the box."""
        return {
            **state.derivative_strides, **state.eddy_arguments, "w": self._arrays[state.index], "m": state.metrics,
            "jacobian": state.jacobian, "inverse_reynolds": self._inverse_reynolds,
        }  # fmt: skip
