"""A profile that changes in time is asked for once for each time: stages and steps that have one in common share it."""

import numpy as np
from checkpoint_cases import CHANNEL, gust

from hiresx import Case, Simulation


def test_two_times_a_step_are_asked_for():
    """SSP-RK3 wants the boundary at t + dt, t + dt/2 and t + dt: two evaluations a step, and the same flow."""
    times, flows = [], []

    def counted(x, y, z, t):
        times.append(t)
        return gust(x, y, z, t)

    for profile in (gust, counted):
        simulation = Simulation(Case.model_validate(CHANNEL), backend="cpu", profiles={"gust": profile})
        simulation.run()
        flows.append(np.array([simulation.blocks[0].state(name) for name in ("rho", "u", "p")]))
    np.testing.assert_array_equal(*flows)
    assert len(times) == len(set(times)) == 1 + 2 * CHANNEL["time"]["steps"]
    assert np.ptp(flows[0][1][:, :, 0]) > 1e-3, "the gust came in"


def test_a_run_that_goes_on_asks_for_no_time_before_the_beginning(tmp_path):
    """Where a profile need not be defined."""
    times = []

    def counted(x, y, z, t):
        times.append(t)
        return gust(x, y, z, t)

    case = Case.model_validate(CHANNEL | {"checkpoint": {}})
    Simulation(case, backend="cpu", profiles={"gust": gust}, out=tmp_path).run(progress=False)
    Simulation(case, backend="cpu", profiles={"gust": counted}, restart=tmp_path)
    assert min(times) == 0.0
