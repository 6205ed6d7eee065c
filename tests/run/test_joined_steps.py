"""Steps of a CPU that are one call: the same to the last bit as task by task, and how often Python is in between."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.case import load
from hiresx.device import backend
from hiresx.device.native import NativeProgram, _PreparedLaunches
from hiresx.simulation import Simulation
from hiresx.solver import Solver, batched_steps
from hiresx.solver.batched_steps import BatchedSteps
from hiresx.time.stopwatch import SAMPLED, Stopwatch

JET = ["grid.points_per_height=12", "grid.exit_spacing=0.09", "grid.half_height=2.0", "grid.length=3.0"]
STEPS = SAMPLED + 3


@pytest.fixture
def task_by_task(monkeypatch):
    return lambda: monkeypatch.setattr(BatchedSteps, "possible", False)


def jet(*more: str):
    return load("planar-jet", "quick", overrides=[*JET, *more])


def taken(case, count: int, threads: int = 2, initial=None) -> tuple:
    """What `count` steps leave behind."""
    cpu = backend("cpu")
    cpu.threads = threads
    solver = Solver(case, cpu)
    solver.initialize(initial)
    while solver.steps < count:
        solver.step()
    return solver, [np.array(array) for s in solver.states for array in (s.q, *s.registers, s.r, s.dt)]


def same(one: tuple, other: tuple) -> None:
    assert (one[0].time, one[0].steps, one[0].dt) == (other[0].time, other[0].steps, other[0].dt)
    assert one[0].retaken == other[0].retaken
    for a, b in zip(one[1], other[1], strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "time",
    [{}, {"dt": 1e-3, "cfl": None}, {"local": True, "end": None, "steps": 99}, {"integrator": "williamson_rk3"}],
    ids=["cfl", "dt", "local", "low-storage"],
)
def test_the_same_bits_as_task_by_task(time, task_by_task):
    case = jet()
    case = case.model_copy(update={"time": case.time.model_copy(update=time)})
    joined = taken(case, STEPS)
    assert joined[0].batched_steps.possible
    task_by_task()
    same(joined, taken(case, STEPS, threads=1))


def test_a_step_that_fails_is_taken_again(task_by_task):
    case = jet("time.cfl=4.0")

    def jump(x, y, z):
        return [1.0 + 0 * x, 3.0 * (x > x.mean()), 0 * x, 0 * x, 1.0 + 99.0 * (x > x.mean())]

    joined = taken(case, 6, initial=jump)
    task_by_task()
    single = taken(case, 6, initial=jump)
    assert joined[0].retaken > 0
    same(joined, single)


def test_a_step_is_one_call(monkeypatch):
    made = []

    def noting(known):
        def note(*given, **named):
            made.append(known)
            return known(*given, **named)

        return note

    for kind, name in ((_PreparedLaunches, "run"), (NativeProgram, "run"), (NativeProgram, "launch")):
        monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
    solver = Solver(jet(), backend("cpu"))
    solver.initialize()
    counts = []
    for _ in range(2 * SAMPLED + 1):
        made.clear()
        solver.step()
        counts.append(len(made))
    # What is prepared at the first one of its kind notes its launches once.
    assert counts[2:SAMPLED] == [1] * (SAMPLED - 2) and counts[SAMPLED + 1 : -1] == [1] * (SAMPLED - 1)
    assert min(counts[0], counts[SAMPLED], counts[-1]) > 20, "of every so many steps the parts are timed"


def test_a_part_within_another_counts_as_that_one():
    class Clock:
        time = 0.0

        def record(self):
            self.at = Clock.time

        def elapsed_time(self, start):
            return self.at - start.at

    stopwatch = Stopwatch(SimpleNamespace(event=Clock, synchronize=lambda: None))
    with stopwatch("outer"):
        Clock.time += 1.0
        with stopwatch("inner"):
            Clock.time += 2.0
    with stopwatch("inner"):
        Clock.time += 4.0
    with pytest.raises(FloatingPointError), stopwatch("outer"), stopwatch("inner"):
        raise FloatingPointError
    with stopwatch("inner"):
        Clock.time += 8.0
    assert stopwatch.seconds == {"outer": 3.0, "inner": 12.0}


def test_what_parts_take_is_told_all_the_same():
    solver = Solver(jet(), backend("cpu"))
    solver.initialize()
    solver.stopwatch.reset()
    solver.step()
    apart = solver.stopwatch.seconds
    assert {"boundary", "inviscid", "viscous", "exchange", "update", "time step"} <= set(apart)
    for _ in range(4):
        solver.step()
    found = solver.stopwatch.seconds
    assert set(found) == set(apart)
    share = found["inviscid"] / apart["inviscid"]
    assert share > 1 and all(found[name] == pytest.approx(share * apart[name]) for name in apart)


def test_where_the_host_has_something_to_do_tasks_stay_apart(monkeypatch):
    solver = Solver(jet(), backend("cpu"))
    assert not solver.batched_steps.possible, "a profile that was not evaluated yet"
    solver.initialize()
    assert solver.batched_steps.possible
    with monkeypatch.context() as poles:
        poles.setattr(solver._conditions.poles, "any", True)
        assert not solver.batched_steps.possible
    monkeypatch.setattr(batched_steps, "LARGE", solver.points - 1)
    assert not solver.batched_steps.possible


def test_a_run_goes_on_as_it_would_have(tmp_path, task_by_task):
    """Which steps are joined is no part of the state: a run that was stopped takes other ones apart."""
    case = jet("time.end=0.05", "output.every_time=0.05", "monitor.every=3")
    whole = Simulation(case, "cpu", out=tmp_path / "whole")
    whole.run(progress=False)
    first = Simulation(case, "cpu", out=tmp_path / "first")
    first.run(steps=3, progress=False)
    second = Simulation(restart=tmp_path / "first", backend="cpu")
    second.run(progress=False)
    assert repr(whole.history) == repr(second.history)
    for a, b in zip(whole.solver.states, second.solver.states, strict=True):
        assert np.array_equal(a.q, b.q)
