"""Samples that the device leaves as a few numbers, and the host reads while the device goes on."""

import numpy as np
import pytest
from watched_runs import SLIP, pulse, tables, watched

from hiresx import Case, Simulation
from hiresx.case import load
from hiresx.output.saved.attachment import Attachment
from hiresx.output.watch import history, monitors
from hiresx.output.watch.device_samples import DeviceMonitor, DeviceSamples
from hiresx.simulation import simulation as simulations
from hiresx.solver import Solver
from hiresx.solver.step_size import StepSize

EVERY = 5
WATCHED = {
    "conservation": {"every": EVERY},
    "kinetic_energy": {"every": EVERY},
    "extrema": {"every": EVERY},
    "force": [
        {"name": "low", "faces": ["jmin"], "every": EVERY, "coefficients": {"velocity": [0.5, 0.1, 0.0]}},
        {"name": "all", "every": 2},
    ],
    "surface": [{"name": "around", "nodes": [{"faces": ["imax"], "index": 3}], "every": EVERY, "precision": "fp64"}],
}
NAMES = ("conservation", "kinetic_energy", "extrema", "low", "all")


def viscous(n=(40, 34, 1), **changes) -> Case:
    """Between a warm wall, one that heats and slip walls."""
    walls = [
        {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.1},
        {"faces": ["jmax"], "type": "no-slip-wall", "heat_flux": 0.02},
        SLIP | {"faces": ["imin", "imax"]},
    ]
    given = {
        "gas": {"reynolds": 200.0},
        "boundary": walls,
        "monitor": {"every": 100},
        "time": {"steps": 13, "cfl": 0.5},
    }
    made = tables(n, amplitude=0.03, **given) | WATCHED | changes
    made["grid"]["lower"] = [0.0, 0.2, 0.0]
    return Case.from_dict({key: value for key, value in made.items() if value is not None})


def taken(out) -> dict[str, dict[str, np.ndarray]]:
    return {name: history.read(out / "history" / f"{name}.nc").data for name in NAMES}


def opened(tmp_path) -> tuple[list[DeviceMonitor], Solver, list[Attachment]]:
    """The monitors of a run on a device before its first step, its solver, and all that looks at it."""
    simulation = Simulation(viscous(), "emulated", initial=pulse, out=tmp_path)
    found = monitors.build(simulation.case, simulation)
    for attachment in found:
        attachment.begin(simulation.solver, False)
    known = [one for one in found if isinstance(one, DeviceMonitor)]
    assert simulation.solver.device_resident_steps.possible and len(known) == 6
    return known, simulation.solver, found


def test_a_sample_is_fetched_and_nothing_waits_for_it(tmp_path, monkeypatch):
    """All numbers come in one copy, a surface in one of its own; nothing is sent to the device."""
    known, solver, found = opened(tmp_path)
    solver.advance(EVERY)
    assert solver.steps == EVERY
    fetched, backend = [], solver.backend

    def fetch(array):
        fetched.append(array.size)
        copy = array.copy()
        return lambda: copy

    with monkeypatch.context() as patched:
        patched.setattr(backend, "fetch", fetch)
        for name in ("to_host", "to_device", "copy", "synchronize"):
            patched.setattr(backend, name, lambda *_: pytest.fail("the sample waits"))
        for attachment in found:
            if attachment in known or isinstance(attachment, DeviceSamples):
                attachment.after_step(solver)
    assert len(fetched) == 2 and max(fetched) < 5000 and {one.history.samples for one in known} == {1}
    seen, fetch_steps = [], backend.fetch

    def look(array):
        wait = fetch_steps(array)
        return lambda: (seen.append({one.history.name: one.history.samples for one in known}), wait())[1]

    monkeypatch.setattr(backend, "fetch", look)
    solver.advance(1)
    # stored before the host waits for the step
    assert seen[0] == dict.fromkeys((*NAMES, "around"), 2) | {"all": 1}


@pytest.fixture
def launched(monkeypatch) -> list[tuple[int, bool]]:
    """The numbers of steps that were known when samples were launched."""
    found, launch = [], DeviceSamples._launch
    monkeypatch.setattr(
        DeviceSamples, "_launch", lambda self, due: (found.append(self._solver.steps), launch(self, due))[1]
    )
    return found


def histories(case, out, initial) -> dict[str, bytes]:
    simulation = Simulation(case, "emulated", initial=initial, out=out)
    simulation.run(progress=False)
    return {path.name: path.read_bytes() for path in sorted((out / "history").iterdir())}


def test_samples_after_known_steps_are_launched_before_the_host_waits(tmp_path, monkeypatch, launched):
    """The norms of `monitor.every` too. All numbers are those of samples that are launched after the host waited."""
    norms, seek = [], StepSize.seek_norms
    monkeypatch.setattr(StepSize, "seek_norms", lambda self: (norms.append(1), seek(self))[1])
    monkeypatch.setattr(simulations, "HEARING", 100.0)
    case = viscous(monitor={"every": 5}, average={"every": 2})
    ahead = histories(case, tmp_path / "ahead", pulse)
    # those of steps 0, 2, 4, 5, 6 and so on; the first step is made alone
    assert launched == [0, 1, 2, 4, 5, 6, 8, 10] and len(norms) == 2
    launched.clear()
    monkeypatch.setattr(Simulation, "_launch_ahead", lambda self, count: None)
    assert histories(case, tmp_path / "behind", pulse) == ahead and len(ahead) == 6
    assert launched == [0, 2, 4, 5, 6, 8, 10, 12]


def test_what_was_launched_behind_a_step_that_fails_is_discarded(tmp_path, monkeypatch):
    """A strong jump and CFL numbers that are far too large: steps are taken again, with a part of their size."""

    def jump(x, y, z):
        beyond = x > x.mean()
        return 1.0, 3.0 * beyond, 0.0, 0.0, 1.0 + 9.0 * beyond

    given = ["grid.n=[24,1,1]", "time.cfl=7.5", "time.steps=5", "conservation.every=1", "monitor.every=1"]
    retaken, rewind = [], Solver.rewind
    monkeypatch.setattr(Solver, "rewind", lambda self: (retaken.append(self.steps), rewind(self))[1])
    ahead = histories(load("free-stream", overrides=given), tmp_path / "ahead", jump)
    assert retaken
    monkeypatch.setattr(Simulation, "_launch_ahead", lambda self, count: None)
    assert histories(load("free-stream", overrides=given), tmp_path / "behind", jump) == ahead


def test_histories_of_device_and_host_are_the_same(tmp_path):
    found = []
    for backend in ("cpu", "emulated"):
        Simulation(viscous(), backend, initial=pulse, out=tmp_path / backend).run(progress=False)
        found.append(taken(tmp_path / backend))
    for name in NAMES:
        on_host, on_device = (one[name] for one in found)
        assert on_host["step"].tolist() == [*range(0, 14, 2 if name == "all" else EVERY)]
        for column, values in on_host.items():
            scale = max(np.nanmax(np.abs(values)), 1e-3)
            np.testing.assert_allclose(
                on_device[column], values, rtol=0, atol=1e-12 * scale, err_msg=f"{name} {column}"
            )


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_a_run_that_is_continued_has_the_history_of_one_that_is_not(tmp_path, backend):
    """Also where the last sample before the checkpoint is still on the device."""
    Simulation(viscous(), backend, initial=pulse, out=tmp_path / "whole").run(progress=False)
    first = Simulation(viscous(), backend, initial=pulse, out=tmp_path / "two")
    first.run(steps=10, progress=False)
    assert len(taken(tmp_path / "two")["low"]["step"]) == 3
    Simulation(restart=tmp_path / "two", backend=backend).run(progress=False)
    whole, two = taken(tmp_path / "whole"), taken(tmp_path / "two")
    for name in NAMES:
        for column, values in whole[name].items():
            np.testing.assert_array_equal(two[name][column], values, err_msg=f"{name} {column}")


def test_a_sample_before_a_failure_is_kept(tmp_path, monkeypatch):
    """A run fails behind the sample of step 5, before it takes another step."""
    simulation = Simulation(viscous(), "emulated", initial=pulse, out=tmp_path)

    def fail(*_):
        if simulation.step_count == EVERY:
            raise RuntimeError("something else")

    monkeypatch.setattr(simulation, "_rebalance", fail)
    with pytest.raises(RuntimeError, match="something else"):
        simulation.run(progress=False)
    assert simulation.step_count == EVERY
    for name, kept in taken(tmp_path).items():
        assert kept["step"].tolist() == ([0, 2, 4] if name == "all" else [0, EVERY])


@pytest.mark.parametrize("axisymmetric", [False, True])
@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_integrals_over_walls_are_the_sums_of_what_nodes_add(backend, axisymmetric):
    """On walls of more nodes than the device sums up at a time."""
    force = {"name": "low", "faces": ["jmin", "jmax"], "pressure": 0.3}
    if not axisymmetric:
        force["coefficients"] = {"velocity": [0.5, 0.1, 0.0], "centre": [0.2, 0.1, 0.0], "length": 0.7}
    more = {"axisymmetric": True, "kinetic_energy": None} if axisymmetric else {}
    case = viscous((150, 34, 1), force=[force], surface=[], **more)

    def flow(x, y, z):
        rho, u, v, w, p = pulse(x, y, z)
        return rho, u, v + 0.1 * np.sin(x), w + 0.2 * y * axisymmetric, p

    simulation, found = watched(case, backend=backend, initial=flow)
    values, nodes = found["low"].measure(simulation.solver), found["low"].shares().values
    assert len(values) == len(nodes) + 1 and found["low"]._surface.chunks > 2
    for name, added in nodes.items():
        assert values[name] == pytest.approx(added.sum(), rel=1e-12, abs=1e-13 * np.abs(added).sum()), name
        assert np.abs(added).max() > 0 or name.endswith("_z"), name


def test_surfaces_are_located_once_for_a_grid(tmp_path, monkeypatch):
    located = []
    of_surface = monitors.surface._find_surface
    monkeypatch.setattr(monitors.surface, "_find_surface", lambda *given: (located.append(1), of_surface(*given))[1])
    simulation = Simulation(viscous(), "cpu", initial=pulse, out=tmp_path)
    for _ in range(3):
        simulation.run(steps=2, progress=False)
    assert len(located) == 1
