"""The body force: a given acceleration, and the one that keeps the mass flow."""

import numpy as np
import pytest
from ranks import run_ranks
from wholes import whole

from hiresx import Case, HiresxError, Simulation
from hiresx.grid import Block, Connection, Grid
from hiresx.grid.blocks import face_range
from hiresx.grid.orientation import opposite
from hiresx.output.watch import history
from hiresx.simulation import simulation as simulations

FORCE = [0.1, -0.2, 0.05]
KEEP = {"keep": "mass_flow", "response": 0.2, "every": 1}
REYNOLDS, SPEED = 20.0, 0.1


def box(**tables) -> Case:
    grid = {"generator": "wavy", "n": [10, 9, 8], "lower": [0, 0, 0], "upper": [1, 1, 1], "periodic": [*"xyz"]}
    grid |= {"amplitude": [0.03, 0.02, 0.02]}
    state = {"rho": 0.8, "u": 0.3, "v": 0.1, "w": -0.2, "p": 0.7}
    given = {"grid": grid, "initial": {"state": state}, "time": {"steps": 5, "dt": 0.02}}
    return Case.from_dict(given | {"boundary": [{"faces": "all", "type": "periodic"}]} | tables)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_directions_are_those_of_the_acceleration_and_of_the_flow_that_is_kept(axis):
    kept = tuple(float(name == axis) for name in "xyz")
    along = tuple(0.9 * n for n in kept)
    asked = (
        {"acceleration": [2.0, -1.0, 2.0]},
        {"acceleration": along, "keep": "mass_flow", "axis": axis},
        {"keep": "mass_flow", "axis": axis},
    )
    found = [box(body_force=force).body_force.directions for force in asked]
    assert found == [((2 / 3, -1 / 3, 2 / 3),), (kept, kept), (kept,)]


def channel(force=KEEP, steps: int = 150, **tables) -> Case:
    """Flow between plates at y = -1 and 1 that is periodic along x."""
    grid = {"generator": "box", "n": [8, 17, 1], "lower": [0, -1, 0], "upper": [1, 1, 0], "periodic": ["x"]}
    boundary = [
        {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0},
        {"faces": ["imin", "imax"], "type": "periodic"},
    ]
    given = {"grid": grid, "boundary": boundary, "gas": {"reynolds": REYNOLDS}, "body_force": force}
    return Case.from_dict(given | {"time": {"steps": steps, "cfl": 0.6}} | tables)


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


def looks(run: Simulation) -> int:
    """How often the host reads from the device until the end of `run`."""
    device, count = run.solver.backend, [0]
    to_host = device.to_host

    def looked(array):
        count[0] += 1
        return to_host(array)

    device.to_host = looked
    run.run(progress=False)
    device.to_host = to_host
    return count[0]


def test_a_device_keeps_it_without_the_host(monkeypatch):
    """The host looks as often as with a force that is given, where it does not look earlier to hear of signals: that
    follows the wall-clock time of the steps, which a busy machine changes."""
    monkeypatch.setattr(simulations, "HEARING", 1e9)
    kept, given = KEEP | {"every": 40}, {"acceleration": FORCE, "every": 40}
    runs = [Simulation(channel(force, steps=40), "emulated", initial=parabola) for force in (kept, given)]
    assert looks(runs[0]) == looks(runs[1]) < 20
    assert all(run.solver.device_resident_steps.possible for run in runs)


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_steps_with_and_without_samples_are_the_same(precision):
    """The acceleration of a step is found once, however often it is asked for."""
    found = []
    for every in (1, 40):
        case = channel(KEEP | {"every": every}, steps=20, scheme={"precision": precision})
        run = Simulation(case, "emulated", initial=parabola)
        run.run(progress=False)
        found.append(whole(run.solver))
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_two_blocks_have_the_force_of_one(backend):
    whole_run = Simulation(channel(steps=20), backend, initial=parabola)
    block = whole_run.blocks[0]
    halves = [
        Block(name, *(c[:, rows].copy() for c in (block.x, block.y, block.z)))
        for name, rows in (("lower", slice(9)), ("upper", slice(9, None)))
    ]
    join = Connection(0, "jmax", face_range("jmax", halves[0].size), 1, offset=(0, -9, 0))
    period = ({"i": (1.0, 0.0, 0.0)},) * 2
    walls = [
        {"block": name, "faces": [face], "type": "no-slip-wall", "temperature": 1.0}
        for name, face in (("lower", "jmin"), ("upper", "jmax"))
    ]
    boundary = [*walls, {"faces": ["imin", "imax"], "type": "periodic"}]
    case = channel(steps=20, grid={"file": "none"}, boundary=boundary)
    grid = Grid(halves, (join, opposite(join, halves)), period)
    parts = Simulation(case, backend, grid=grid, initial=parabola)
    for run in (whole_run, parts):
        run.run(progress=False)
    together = np.concatenate([half.state("u") for half in parts.blocks], axis=1)
    np.testing.assert_allclose(together, whole_run.blocks[0].state("u"), rtol=0, atol=1e-13)


def on_ranks(comm, backend: str, transport: str) -> tuple[list[np.ndarray], bool]:
    run = Simulation(channel(steps=20), backend, initial=parabola, comm=comm, transport=transport)
    run.run(progress=False)
    found = whole(run.solver), run.solver.device_resident_steps.possible
    run.solver.halo.close()
    return found


@pytest.mark.slow
def test_ranks_and_the_form_of_a_gpu():
    """Two ranks, whose sums meet on the host or on the device, and the device's form have what one rank of the CPU
    has."""
    alone = {}
    for backend in ("cpu", "emulated"):
        run = Simulation(channel(steps=20), backend, initial=parabola)
        run.run(progress=False)
        alone[backend] = whole(run.solver)
    by_host, by_device = (run_ranks(2, on_ranks, *how) for how in (("cpu", "window"), ("emulated", "signals")))
    assert all(possible for _, possible in by_device)
    for others in (alone["emulated"], *(found for found, _ in (*by_host, *by_device))):
        np.testing.assert_allclose(others, alone["cpu"], rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("force", "said"),
    [
        ({}, "does nothing"),
        ({"acceleration": FORCE, "mass_flow": 1.0}, "no effect without body_force.keep"),
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


def test_a_mass_flow_against_a_wall_is_refused():
    """A wall closes a face as a whole; one with holes, or with gas blown through it, does not."""
    with pytest.raises(HiresxError, match=r"keep: no mass flow along y .* no-slip-wall closes the face jmin"):
        channel(KEEP | {"axis": "y"})
    blown = {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0, "velocity": [0, 0.01, 0]}
    part = {"faces": ["jmin", "jmax"], "type": "slip-wall", "range": {"i": [0, 4]}}
    for wall in (blown, part):
        boundary = [wall, {"faces": "all", "type": "periodic"}]
        assert channel(KEEP | {"axis": "y"}, boundary=boundary).body_force.axis == "y"


def test_a_force_that_keeps_the_mass_flow_acts_along_its_axis_alone():
    assert channel().body_force.directions == ((1.0, 0.0, 0.0),)
