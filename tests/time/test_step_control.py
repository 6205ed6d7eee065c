"""Implicit steps whose size follows their error."""

from functools import cache

import numpy as np
import pytest
from unsteady_flows import WALLS, after, blob, layer, line, periodic
from wholes import whole

from hiresx import Simulation
from hiresx.case.implicit_table import UNSTEADY
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.estimate import estimate
from hiresx.solver import Solver
from hiresx.time.integrators import bdf2, integrator

AT_A_WALL = dict(boundary=WALLS, stretch=25.0, n=33, end=0.4)


@cache
def by_short_steps() -> np.ndarray:
    return whole(after(line("esdirk4", time={"dt": 0.01}, **AT_A_WALL), layer))[0]


@pytest.mark.parametrize("name", UNSTEADY)
def test_steps_follow_the_tolerance(name):
    """A tenth of the tolerance makes more steps, and the error falls."""
    reference = by_short_steps()
    errors, steps = [], []
    for tolerance in (1e-5, 1e-6, 1e-7):
        solver = after(line(name, implicit={"tolerance": tolerance}, **AT_A_WALL), layer)
        errors.append(np.abs(whole(solver)[0] - reference).max())
        steps.append(solver.steps)
        assert solver.time == 0.4 and solver.integrator.memory["error"] <= tolerance
    assert steps[0] < steps[1] < steps[2] < 80
    assert errors[0] > 2 * errors[1] > 4 * errors[2] and errors[2] < (1e-5 if name == "bdf2" else 1e-6)


@pytest.mark.parametrize("name", ["esdirk3", "esdirk4"])
def test_the_estimate_has_the_order_of_the_embedded_scheme(name):
    found = []
    for dt in (0.02, 0.01):
        solver = Solver(
            periodic(name, time={"dt": dt}, implicit={"tolerance": 0.1, "newton_drop": 1e8}), backend("cpu")
        )
        solver.initialize(blob)
        solver.step()
        found.append(solver.integrator.memory["error"])
    order = integrator(name).error_order
    assert 2 ** (order - 0.3) < found[0] / found[1] < 2 ** (order + 0.3)


def test_a_step_that_is_too_long_is_repeated():
    """The run goes on by the step that was made, and its first error is below the tolerance all the same."""
    case = periodic("esdirk3", steps=3, time={"dt": 0.2}, implicit={"tolerance": 1e-5})
    simulation = Simulation(case, "cpu", initial=blob)
    report = simulation.run(progress=False)["implicit"]
    assert report["repeated"] > 0 and report["error"] <= 1e-5
    assert 0 < simulation.solver.time < 0.2  # three steps of 0.2 would make 0.6


def test_a_step_towards_a_sample_does_not_shorten_the_next():
    solver = Solver(periodic("esdirk3", time={"dt": 0.01}, implicit={"tolerance": 1e-4}), backend("cpu"))
    solver.initialize(blob)
    for _ in range(3):
        solver.step()
    wanted = solver.integrator.next_step
    solver.step(1e-3 * wanted)
    assert solver.dt == 1e-3 * wanted and solver.integrator.next_step == wanted


def test_a_jump_in_time_is_named():
    """Which no step is short enough for."""
    jump = [{**WALLS[0], "normal_velocity": "where(t > 0.01, 0.05, 0.0)"}, WALLS[1]]
    case = line("esdirk3", jump, 5.0, 17, 0.1, time={"dt": 0.02}, implicit={"tolerance": 1e-5})
    with pytest.raises(HiresxError, match=r"error stays at .* above implicit.tolerance"):
        Simulation(case, "cpu", initial=layer).run(progress=False)


def test_the_number_of_steps_is_not_estimated():
    times = {"end": 1.0, "steps": None}
    fixed, free = (estimate(periodic("esdirk3", time=times, implicit=i)) for i in ({}, {"tolerance": 1e-4}))
    assert (fixed["steps"], free["steps"]) == (20, None) and free["integrator"]["tolerance"] == 1e-4


def test_the_tolerance_is_for_unsteady_flow():
    with pytest.raises(HiresxError, match=r"implicit.tolerance is not for"):
        periodic("implicit", time={"integrator": "implicit", "dt": None}, implicit={"tolerance": 1e-4})


@pytest.mark.parametrize("name", UNSTEADY)
def test_a_run_goes_on_to_the_last_bit(name, tmp_path):
    case = periodic(name, steps=6, time={"dt": 0.01}, implicit={"tolerance": 1e-5})
    through = Simulation(case, "cpu", initial=blob, out=tmp_path / "through")
    report = through.run(progress=False)["implicit"]
    Simulation(case, "cpu", initial=blob, out=tmp_path / "parts").run(steps=4, progress=False)
    rest = Simulation(restart=tmp_path / "parts", backend="cpu")
    assert rest.run(progress=False)["implicit"] == report
    assert rest.time == through.time != pytest.approx(0.06)
    np.testing.assert_array_equal(rest.blocks[0].state("p"), through.blocks[0].state("p"))


def test_a_restart_without_the_tolerance_has_the_steps_of_the_case(tmp_path):
    free = periodic("esdirk3", steps=3, time={"dt": 0.01}, implicit={"tolerance": 1e-3})
    Simulation(free, "cpu", initial=blob, out=tmp_path / "run").run(progress=False)
    fixed = periodic("esdirk3", steps=5, time={"dt": 0.01})
    rest = Simulation(fixed, restart=tmp_path / "run", backend="cpu")
    rest.run(progress=False)
    assert rest.solver.dt == 0.01


@pytest.mark.parametrize("sizes", [(0.1, 0.1, 0.1), (0.2, 0.1, 0.3), (0.05, 0.2, 0.07)])
def test_the_estimate_of_bdf2(sizes):
    """Its step to `dt` and the parabola through three states are both off by the third derivative times a number."""
    dt, *before = sizes
    q = np.poly1d([1.3, -0.4, 0.7, 2.0])
    times = np.array([0.0, -before[0], -before[0] - before[1]])
    guess = np.polyval(np.polyfit(times, q(times), 2), dt)

    def derivative(x: float) -> float:
        """At `dt`, of the parabola through x and the last two states: it is that of the flow after the step."""
        return np.polyval(np.polyder(np.polyfit([dt, *times[:2]], [x, *q(times[:2])], 2)), dt)

    slope = derivative(1.0) - derivative(0.0)
    x = (np.polyder(q)(dt) - derivative(0.0)) / slope
    assert bdf2.error_ratio(dt, before) * (x - guess) == pytest.approx(q(dt) - x, rel=1e-9)
