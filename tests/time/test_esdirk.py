"""Implicit Runge-Kutta steps: their conditions of order, order in time, restarts, ranks, and what integrators say of
themselves."""

import numpy as np
import pytest
from ranks import run_ranks
from unsteady_flows import SCALARS, WALLS, after, blob, layer, line, parted, periodic
from wholes import whole

from hiresx import Simulation
from hiresx.case.implicit_table import UNSTEADY
from hiresx.case.model import integrators
from hiresx.device import backend
from hiresx.estimate import estimate
from hiresx.solver import Solver
from hiresx.time.esdirk import Esdirk, guess_weights
from hiresx.time.implicit_stages import Stages
from hiresx.time.integrators import esdirk3, esdirk4, integrator

SCHEMES = {"esdirk3": esdirk3.Esdirk3, "esdirk4": esdirk4.Esdirk4}


def trees(b, a, c, order: int) -> list[float]:
    """What the weights miss of the conditions of order: J. C. Butcher's, one for each rooted tree."""
    conditions = [
        (1, b.sum(), 1), (2, b @ c, 1 / 2), (3, b @ c**2, 1 / 3), (3, b @ a @ c, 1 / 6), (4, b @ c**3, 1 / 4),
        (4, (b * c) @ a @ c, 1 / 8), (4, b @ a @ c**2, 1 / 12), (4, b @ a @ a @ c, 1 / 24),
    ]  # fmt: skip
    return [found - wanted for of, found, wanted in conditions if of <= order]


@pytest.mark.parametrize(("name", "scheme"), SCHEMES.items())
def test_conditions_of_order_and_stability(name, scheme):
    tableau = scheme.tableau
    size = len(tableau.a) + 1
    a = np.zeros((size, size))
    for n, row in enumerate(tableau.a, 1):
        a[n, :n], a[n, n] = [float(x) for x in row], float(tableau.gamma)
    c = a.sum(axis=1)
    np.testing.assert_allclose(c, tableau.times, atol=1e-15)
    assert np.abs(trees(a[-1], a, c, scheme.order)).max() < 1e-14
    embedded = np.array([float(x) for x in tableau.embedded])
    assert np.abs(trees(embedded, a, c, scheme.order - 1)).max() < 1e-14
    assert np.abs(trees(embedded, a, c, scheme.order)).max() > 1e-4
    np.testing.assert_allclose((a @ c)[1:], c[1:] ** 2 / 2, atol=1e-14)  # stage order two

    def growth(z: complex) -> complex:
        """Of y' = lambda y in a step, z = lambda dt."""
        return 1 + z * a[-1] @ np.linalg.solve(np.eye(size) - z * a, np.ones(size))

    assert max(abs(growth(1j * y)) for y in np.geomspace(1e-3, 1e4, 300)) < 1 + 1e-12
    assert abs(growth(-1e6)) < 1e-4  # of which rounding is 1e-10


def test_a_guess_integrates_a_polynomial():
    times = [0.0, 0.5, 0.3, 0.8, 1.0]
    for stage in range(1, 5):
        for power in range(min(stage, 3)):
            found = sum(w * times[m] ** power for m, w in guess_weights(times, stage).items())
            assert found == pytest.approx(times[stage] ** (power + 1) / (power + 1))


@pytest.mark.parametrize(("name", "dt", "rate"), [("esdirk3", 0.05, 2.4), ("esdirk4", 0.1, 3.7)])
def test_order_in_a_stokes_layer(name, dt, rate):
    """In cells so thin that explicit steps are 100 times shorter and more. At walls that are given the order of an
    implicit Runge-Kutta scheme may be lower than its own."""
    given = dict(boundary=WALLS, stretch=25.0, n=33, end=0.4)
    explicit = after(line("ssp_rk3", time={"cfl": 0.9, "viscous_cfl": 0.4}, **given), layer)
    assert dt > 100 * 0.4 / explicit.steps
    errors = [
        np.abs(whole(after(line(name, time={"dt": dt / share}, **given), layer))[0] - whole(explicit)[0]).max()
        for share in (1, 2)
    ]
    assert errors[0] < 1e-5 and errors[0] / errors[1] > 2**rate


@pytest.mark.parametrize(("name", "dt", "rate"), [("esdirk3", 0.02, 2.8), ("esdirk4", 0.04, 3.7)])
def test_order_in_a_vortex(name, dt, rate):
    """With waves of sound beside it, which take 16 to 50 steps through the grid."""
    times = {"steps": None, "end": 0.2}
    explicit = after(periodic("carpenter_kennedy_rk4", time={**times, "dt": 0.0025}), blob)
    errors = [
        np.abs(whole(after(periodic(name, time={**times, "dt": dt / share}), blob))[0] - whole(explicit)[0]).max()
        for share in (1, 2)
    ]
    assert errors[0] / errors[1] > 2**rate


@pytest.mark.parametrize("name", SCHEMES)
def test_a_run_goes_on_to_the_last_bit(name, tmp_path):
    case = periodic(name, steps=4)
    through = Simulation(case, "cpu", initial=blob, out=tmp_path / "through")
    report = through.run(progress=False)["implicit"]
    Simulation(case, "cpu", initial=blob, out=tmp_path / "parts").run(steps=2, progress=False)
    rest = Simulation(restart=tmp_path / "parts", backend="cpu")
    assert rest.run(progress=False)["implicit"] == report
    for part in ("rho", "u", "p"):
        np.testing.assert_array_equal(rest.blocks[0].state(part), through.blocks[0].state(part))
    assert report["assemblies"] == 1 and report["newton"] >= len(SCHEMES[name].tableau.a)


@pytest.mark.parametrize(("where", "parts"), [("cpu", 2), pytest.param("emulated", 1, marks=pytest.mark.slow)])
def test_cuts_and_backends_agree(where, parts):
    found, one = (parted(*how, name="esdirk4") for how in ((where, parts), ("cpu", 1)))
    np.testing.assert_allclose(found, one, rtol=0, atol=1e-12)


def off_on_ranks(comm) -> float:
    of_ranks, of_one = parted("cpu", comm.size, comm, "esdirk3"), parted("cpu", 1, name="esdirk3")
    return float(np.abs(of_ranks - of_one).max())


@pytest.mark.slow
def test_ranks_agree():
    assert max(run_ranks(2, off_on_ranks)) < 1e-12


@pytest.mark.parametrize("name", SCHEMES)
def test_memory_is_told(name):
    case = periodic(name, scalar=SCALARS)
    solver = Solver(case, backend("cpu"))
    solver.initialize(blob)
    solver.step(0.002)
    assert 0 <= solver.bytes - estimate(case)["memory_bytes"] <= 8


def test_integrators_say_what_they_are():
    """The case reads in their files which of them make implicit steps of unsteady flow."""
    assert set(UNSTEADY) == {name for name in integrators() if isinstance(integrator(name), Stages)}
    assert {"bdf2", *SCHEMES} <= set(UNSTEADY)
    assert all(issubclass(scheme, Esdirk) for scheme in SCHEMES.values())


def test_short_steps_at_an_adiabatic_wall_are_those_of_an_explicit_run():
    """A heat flux into gas at rest, with time steps below those that an explicit integrator may make. The wall removes
    energy at a rate proportional to the length of explicit steps, which is 0.0005 in the run beside it."""
    walls = [{"faces": ["imin"], "type": "no-slip-wall", "heat_flux": "0.1 * sin(30 * t)"}, WALLS[1]]
    rest = dict(boundary=walls, stretch=1.0, n=15, end=0.04)
    tables = {"implicit": {"newton_drop": 1e8, "newton_steps": 12}}
    explicit, steps = (
        whole(after(line(name, time={"dt": dt}, **rest, **more), lambda x, y, z: (1.0, 0.0, 0.0, 0.0, 1 / 1.4)))
        for name, dt, more in (("ssp_rk3", 0.0005, {}), ("esdirk4", 0.004, tables))
    )
    assert np.abs(steps[0] - explicit[0]).max() < 3e-7
