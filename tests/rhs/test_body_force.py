"""The body force: a given acceleration, and the one that keeps the mass flow."""

import numpy as np
import pytest
from ranks import run_ranks
from wholes import whole

from hiresx import Case, HiresxError, Simulation
from hiresx.output.watch import history

FORCE = [0.1, -0.2, 0.05]
KEEP = {"keep": "mass_flow", "response": 0.2, "every": 1}
REYNOLDS, SPEED = 20.0, 0.1


def box(**tables) -> Case:
    grid = {"generator": "wavy", "n": [10, 9, 8], "lower": [0, 0, 0], "upper": [1, 1, 1], "periodic": [*"xyz"]}
    grid |= {"amplitude": [0.03, 0.02, 0.02]}
    state = {"rho": 0.8, "u": 0.3, "v": 0.1, "w": -0.2, "p": 0.7}
    given = {"grid": grid, "initial": {"state": state}, "time": {"steps": 5, "dt": 0.02}}
    return Case.from_dict(given | {"boundary": [{"faces": "all", "type": "periodic"}]} | tables)


def channel(force=KEEP, steps: int = 150) -> Case:
    """Flow between plates at y = -1 and 1 that is periodic along x."""
    grid = {"generator": "box", "n": [8, 17, 1], "lower": [0, -1, 0], "upper": [1, 1, 0], "periodic": ["x"]}
    boundary = [
        {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0},
        {"faces": ["imin", "imax"], "type": "periodic"},
    ]
    given = {"grid": grid, "boundary": boundary, "gas": {"reynolds": REYNOLDS}, "body_force": force}
    return Case.from_dict(given | {"time": {"steps": steps, "cfl": 0.6}})


def parabola(x, y, z):
    return 1 + 0 * x, 1.5 * SPEED * (1 - y * y), 0 * x, 0 * x, 1 / 1.4 + 0 * x


def table(folder) -> dict[str, np.ndarray]:
    return history.read(history.histories(folder)["body_force"]).data


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_uniform_flow_is_accelerated_as_a_body(backend):
    """Velocities grow as the acceleration says; density and pressure stay: the energy gains the work alone."""
    run = Simulation(box(body_force={"acceleration": FORCE}), backend)
    run.run(progress=False)
    for name, start, rate in zip("uvw", (0.3, 0.1, -0.2), FORCE, strict=True):
        np.testing.assert_allclose(run.blocks[0].state(name), start + 0.1 * rate, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.blocks[0].state("rho"), 0.8, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.blocks[0].state("p"), 0.7, rtol=0, atol=1e-13)


def test_the_mass_flow_of_a_channel_is_kept(tmp_path):
    """The force grows from nothing to 3 mu U/h^2, what the plates take, and the flow that was lost comes back."""
    run = Simulation(channel(), "cpu", initial=parabola, out=tmp_path / "run")
    run.run(progress=False)
    found = table(tmp_path / "run")
    assert found["mass_flow"][0] == pytest.approx(SPEED, rel=1e-12)
    assert found["force"][0] == 0.0
    assert found["force"][-1] == pytest.approx(3 * SPEED / REYNOLDS, rel=2e-3)
    assert abs(found["mass_flow"] / SPEED - 1).max() > 1e-4
    assert found["mass_flow"][-1] == pytest.approx(SPEED, rel=1e-6)
    # the deficit goes as exp(-t/T)
    lost, t = SPEED - found["mass_flow"], found["time"]
    first = int(np.argmax(lost))
    later = int(np.searchsorted(t, t[first] + 0.2))
    assert lost[later] / lost[first] == pytest.approx(np.exp(-(t[later] - t[first]) / 0.2), rel=0.3)


def test_another_mass_flow_is_reached():
    run = Simulation(channel(KEEP | {"mass_flow": 1.2 * SPEED, "response": 0.05}), "cpu", initial=parabola)
    run.run(progress=False)
    y, rho_u = run.blocks[0].y[0, :, 0], (run.blocks[0].state("rho") * run.blocks[0].state("u"))[0, :, 0]
    assert np.trapezoid(rho_u, y) / 2 == pytest.approx(1.2 * SPEED, rel=0.01)


def test_a_restart_goes_on_to_the_last_bit(tmp_path):
    through = Simulation(channel(steps=40), "cpu", initial=parabola, out=tmp_path / "through")
    through.run(progress=False)
    first = Simulation(channel(steps=40), "cpu", initial=parabola, out=tmp_path / "run")
    first.run(steps=17, progress=False)
    rest = Simulation(restart=tmp_path / "run", backend="cpu")
    rest.run(progress=False)
    assert all(np.array_equal(a, b) for a, b in zip(whole(through.solver), whole(rest.solver), strict=True))
    for name, values in table(tmp_path / "through").items():
        assert np.array_equal(values, table(tmp_path / "run")[name])


def on_ranks(comm) -> list[np.ndarray]:
    run = Simulation(channel(steps=20), "cpu", initial=parabola, comm=comm)
    run.run(progress=False)
    return whole(run.solver)


def test_ranks_and_the_form_of_a_gpu():
    """Two ranks, and the device's form, have what one rank of the CPU has."""
    alone = {}
    for backend in ("cpu", "emulated"):
        run = Simulation(channel(steps=20), backend, initial=parabola)
        run.run(progress=False)
        alone[backend] = whole(run.solver)
    for others in (alone["emulated"], *run_ranks(2, on_ranks)):
        np.testing.assert_allclose(others, alone["cpu"], rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("force", "said"),
    [
        ({}, "does nothing"),
        ({"acceleration": FORCE, "mass_flow": 1.0}, "of no effect without body_force.keep"),
        ({"keep": "pressure"}, "mass_flow"),
    ],
)
def test_what_cannot_be_is_refused(force, said):
    with pytest.raises(HiresxError) as error:
        box(body_force=force)
    assert said in str(error.value)


def test_axes_and_local_steps_are_refused():
    with pytest.raises(HiresxError, match="acts along x alone"):
        box(body_force={"acceleration": FORCE}, axisymmetric=True)
    with pytest.raises(HiresxError, match="no common time"):
        box(body_force=KEEP, time={"steps": 3, "cfl": 0.5, "local": True})
