"""Taylor-Green until its largest rate of decay, on an eighth of its box: the flow is symmetric about the planes x, y
and z = 0 and pi, and on nodes in these planes so is the scheme. What 64^3 points of the box give comes from 33^3."""

from types import SimpleNamespace

import numpy as np
import pytest
from vortices import PRANDTL

from hiresx.device import backend
from hiresx.solver import Solver
from hiresx.verify.checks import CheckRun, CompletedRun
from hiresx.verify.groups import taylor_green

WHOLE = ('scheme.weights="js"', taylor_green.CFL)


def eighth(half: int) -> tuple[str, ...]:
    """What makes of the box of (2 `half`)^3 points the part between its planes of symmetry."""
    return (
        f"grid.n={[half + 1] * 3}", "grid.lower=[0.0,0.0,0.0]", f"grid.upper={[np.pi] * 3}", "grid.periodic=[]",
        'boundary=[{faces="all",type="symmetry"}]',
    )  # fmt: skip


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_the_eighth_is_the_whole(where):
    """At symmetry planes, their edges and corners; on 16^3 points differences of round-off have grown to 1e-15."""
    solvers = [
        Solver(CheckRun("taylor-green", None, (*WHOLE, PRANDTL, *sets)).loaded_case, backend(where))
        for sets in (("grid.n=[16,16,16]",), eighth(8))
    ]
    for solver in solvers:
        solver.initialize()
        for _ in range(40):
            solver.step()
    assert solvers[1].time == pytest.approx(solvers[0].time, rel=1e-13)
    whole, part = (solver.primitives(0) for solver in solvers)
    for name in whole:
        assert np.max(np.abs(part[name][:8, :8, :8] - whole[name][8:, 8:, 8:])) < 1e-13, name


@pytest.mark.slow
def test_taylor_green_until_its_peak():
    sets = (*WHOLE, *eighth(32), "time.end=70.0", "kinetic_energy.every=20")
    finished = CompletedRun(CheckRun("taylor-green", None, sets), "cpu")
    found, mach = finished.history("kinetic_energy"), float(finished.case.parameters["mach"])
    t, energy = found["time"] * mach, found["kinetic_energy"] / mach**2
    rate = -np.gradient(energy, t)
    at_peak = rate.argmax()
    limits = {check.name: check.limit for check in taylor_green.CHECKS}
    assert limits["JS: largest -dE/dt"].holds(rate[at_peak]), rate[at_peak]
    assert limits["JS: turnover times at which it is reached"].holds(t[at_peak]), t[at_peak]
    # Resolved and numerical dissipation together are what the energy loses, except for what the pressure exchanges.
    resolved, numerical = found["dissipation"] / mach**3, found["dissipation_numerical"][1:] / mach**3
    middle = 0.5 * (resolved[1:] + resolved[:-1])
    lost = (middle + numerical) * np.diff(t)
    assert lost[:at_peak].sum() == pytest.approx(energy[0] - energy[at_peak], rel=0.03)
    # The weights dissipate more than what is resolved.
    assert numerical[at_peak] > 1.5 * middle[at_peak]


def test_the_rate_is_that_of_decay_in_turnover_times():
    samples = {"time": np.array([0.0, 10.0, 20.0]), "energy": np.array([1.0, 0.9, 0.7])}
    run = SimpleNamespace(samples=samples.get, case=SimpleNamespace(parameters={"mach": 0.1}))
    found = taylor_green.history(run)
    np.testing.assert_allclose(found["t"], [0.0, 1.0, 2.0])
    np.testing.assert_allclose(found["rate"], [0.1, 0.15, 0.2])
