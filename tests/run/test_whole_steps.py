"""Steps that a device takes on its own, many at a time: the same to the last bit as one by one under the host's eyes.
The emulated backend makes the same launches as a GPU does."""

import numpy as np
import pytest

from hiresx.bench import rhs
from hiresx.case import load
from hiresx.device import backend
from hiresx.output.saved import checkpoint
from hiresx.simulation import Simulation
from hiresx.simulation import simulation as simulations
from hiresx.simulation.blow_up_error import BlowUp
from hiresx.solver import Solver
from hiresx.solver.device_resident_steps import DeviceResidentSteps
from hiresx.time.step_recording import StepRecording

JET = ["grid.points_per_height=12", "grid.exit_spacing=0.09", "grid.half_height=2.0", "grid.length=3.0"]


@pytest.fixture
def one_by_one(monkeypatch):
    return lambda: monkeypatch.setattr(DeviceResidentSteps, "possible", False)


def jet(*more: str):
    return load("planar-jet", "quick", overrides=[*JET, *more])


def taken(case, count: int, until: float = np.inf) -> tuple:
    """What `count` steps leave behind, asked for all at once."""
    solver = Solver(case, backend("emulated"))
    solver.initialize()
    while solver.steps < count and solver.time < until:
        solver.advance(count - solver.steps, until)
    fields = [array for s in solver.states for array in (s.q, s.q0, s.r)]
    return solver, [solver.backend.to_host(array) for array in fields]


def same(one: tuple, other: tuple) -> None:
    assert (one[0].time, one[0].steps, one[0].dt) == (other[0].time, other[0].steps, other[0].dt)
    assert one[0].retaken == other[0].retaken
    for a, b in zip(one[1], other[1], strict=True):
        assert np.array_equal(a, b, equal_nan=True)  # in the ghosts of a step that failed


@pytest.mark.parametrize("precision", ["fp64", pytest.param("fp32", marks=pytest.mark.slow)])
def test_the_same_bits_as_one_by_one(precision, one_by_one):
    case = jet(f'scheme.precision="{precision}"')
    many = taken(case, 6)
    assert many[0].device_resident_steps.possible
    end = 0.7 * many[0].time  # in the midst of a step: what was launched behind it leaves everything as it is
    to_the_end = taken(case, 20, end)
    assert to_the_end[0].time == pytest.approx(end, rel=1e-15) and to_the_end[0].steps < 6
    one_by_one()
    same(many, taken(case, 6))
    same(to_the_end, taken(case, 20, end))


@pytest.mark.parametrize("integrator", ["ssp_rk3", "carpenter_kennedy_rk4"])
def test_a_fixed_step_and_other_integrators(integrator, one_by_one):
    base = rhs.flow(9, True, "fp64")
    case = base.model_copy(
        update={"time": base.time.model_copy(update={"integrator": integrator, "dt": 0.01, "cfl": None})}
    )
    many = taken(case, 4)
    one_by_one()
    same(many, taken(case, 4))


@pytest.mark.parametrize("size", ["time.cfl=0.5", pytest.param("time.dt=1e-3", marks=pytest.mark.slow)])
def test_hardly_more_steps_are_launched_than_lead_to_a_sample(size, monkeypatch):
    launched, taken_by_one = [], StepRecording.__call__

    def noted(recorded, count, *arguments, **named):
        complete = taken_by_one(recorded, count, *arguments, **named)

        def completed():
            found = complete()
            launched.append((count, found.count))
            return found

        return completed

    monkeypatch.setattr(StepRecording, "__call__", noted)
    monkeypatch.setattr(simulations, "HEARING", 100.0)
    probe = 'probe=[{name="one",x=1.0,y=0.0,every_time=0.05,filter="none"}]'
    simulation = Simulation(jet("surface=[]", probe, size, "monitor.every=1000"), "emulated")
    simulation.run(steps=60, progress=False)
    assert sum(count for _, count in launched) == 60
    known = launched[2:]  # the first ones are launched before it is known how long steps are
    assert max(count for _, count in known) > 5
    assert sum(count for count, _ in known) <= 1.25 * sum(count for _, count in known)


@pytest.mark.slow
def test_the_device_comes_to_the_samples_of_a_filter_by_itself(tmp_path, monkeypatch):
    one, other = 'name="a",x=1.0,y=0.0', 'name="b",x=1.5,y=0.3,variables=["p","mach"]'
    probes = f"probe=[{{{one},every_time=0.02}},{{{other},every_time=0.02}}]"
    case = jet("surface=[]", probes, "monitor.every=1000", "checkpoint.every_steps=25")
    monkeypatch.setattr(simulations, "HEARING", 100.0)
    looks, by_one = [], StepRecording.__call__
    monkeypatch.setattr(
        StepRecording, "__call__", lambda *given, **named: (looks.append(1), by_one(*given, **named))[1]
    )
    found, number = {}, {}
    for name in ("by itself", "by the host"):
        if name == "by the host":
            monkeypatch.setattr(DeviceResidentSteps, "take_samples_of", lambda steps, sampler: None)
        looks.clear()
        simulation = Simulation(case, "emulated", out=tmp_path / name)
        simulation.run(steps=60, progress=False)
        number[name] = len(looks)
        Simulation(restart=checkpoint.list_checkpoints(tmp_path / name)[1], backend="emulated").run(
            steps=35, progress=False
        )
        files = sorted((tmp_path / name / "history").glob("*.nc"))
        found[name] = [file.read_bytes() for file in files], simulation.step_count, simulation.time
    assert len(found["by itself"][0]) == 3 and found["by itself"] == found["by the host"]
    assert number["by itself"] < 8 < 15 < number["by the host"]


def test_what_fails_beside_the_steps_leaves_them_taken(one_by_one):
    def fails():
        raise OSError("the disk is full")

    solver, _ = taken(jet(), 2)
    solver.device_resident_steps.beside(fails)
    with pytest.raises(OSError, match="the disk is full"):
        solver.advance(3)
    assert solver.steps == 5
    same((solver, [solver.backend.to_host(s.q) for s in solver.states]), (lambda t: (t[0], t[1][::3]))(taken(jet(), 5)))
    one_by_one()
    with pytest.raises(OSError, match="the disk is full"):
        solver.device_resident_steps.beside(fails)


def impulsive(factor: float):
    """A case whose steps fail at first: a strong jump and CFL numbers far too large."""
    return load("free-stream", overrides=["grid.n=[24,1,1]", f"time.cfl={factor}"])


def jump(x, y, z):
    return [1.0 + 0 * x, 3.0 * (x > x.mean()), 0 * x, 0 * x, 1.0 + 9.0 * (x > x.mean())]


def test_a_step_that_fails_is_taken_again(one_by_one):
    def run(steps):
        solver = Solver(impulsive(7.5), backend("emulated"))
        solver.initialize(jump)
        try:
            while solver.steps < steps:
                solver.advance(steps - solver.steps)
        except FloatingPointError as error:
            return solver, [solver.backend.to_host(s.q) for s in solver.states], str(error)
        return solver, [solver.backend.to_host(s.q) for s in solver.states], ""

    many = run(12)
    one_by_one()
    single = run(12)
    assert many[0].retaken > 0 and many[2] == single[2]
    same(many[:2], single[:2])


@pytest.mark.slow
def test_a_run_with_outputs_and_monitors(tmp_path, one_by_one):
    case = jet("time.end=0.05", "output.every_time=0.02", "monitor.every=3")

    def run(name):
        simulation = Simulation(case, "emulated", out=tmp_path / name)
        asked = []
        advance = simulation.solver.advance
        simulation.solver.advance = lambda count, until: asked.append(count) or advance(count, until)
        record = simulation.run(progress=False)
        fields = sorted(path.name for path in (tmp_path / name).glob("fields_0*.nc"))
        return simulation, record, fields, asked

    many, one = run("many"), None
    one_by_one()
    one = run("one")
    assert many[0].time == one[0].time == 0.05
    assert many[2] == one[2] and len(many[2]) == 4
    assert repr(many[0].history) == repr(one[0].history)  # to the last bit, and nan where nothing was measured
    assert max(many[3]) <= 3
    for a, b in zip(many[0].blocks, one[0].blocks, strict=True):
        assert np.array_equal(a.state("rho"), b.state("rho"))


def test_a_blow_up_is_named_as_ever(one_by_one):
    case = load("free-stream", overrides=["grid.n=[24,1,1]", "time.dt=0.4", "monitor.every=7", "time.steps=30"])

    def run():
        with pytest.raises(BlowUp) as found:
            Simulation(case, "emulated", initial=jump).run(progress=False)
        return found.value.message

    message = run()
    one_by_one()
    assert message == run() and "step" in message
