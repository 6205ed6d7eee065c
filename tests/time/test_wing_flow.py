"""The bundled wing by the implicit integrator: Newton's method converges over the shock, and at the root too, where the
wing and the plane of symmetry meet at an angle that is not right."""

import pytest

from hiresx import Simulation, load
from hiresx.output.watch.monitors.force import ForceMonitor


@pytest.mark.slow
def test_newtons_method_converges_on_the_wing():
    """With the condition of one wall after the other at the root's edge the residual stays at 4e-4 of the first one."""
    case = load("onera-m6", overrides=["parameters.resolution=0.8", "implicit.drop=1e6", "time.steps=50"])
    simulation = Simulation(case, backend="cpu")
    simulation.run(progress=False)
    assert simulation.solver.integrator.report["drop"] > 1e6
    (wing,) = (monitor for monitor in simulation.attachments if isinstance(monitor, ForceMonitor))
    found = wing.measure(simulation.solver)
    assert 0.2970 < found["lift_coefficient"] < 0.3018 and 0.0124 < found["drag_coefficient"] < 0.0132
