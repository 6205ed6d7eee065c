"""Checkpoints and restarts: the same bits, when they are written, and how many are kept."""

import itertools
import json
import os
import re
import shutil

import numpy as np
import pytest
from checkpoint_cases import CHANNEL, bits, gust, swell, vortex
from vortices import taylor_green

from hiresx import Case, HiresxError, Simulation, load
from hiresx.output.fields import field_file as fields
from hiresx.output.saved import checkpoint

# A jet of 2000 points that has everything of the real one: four blocks, walls, a nozzle profile, sponges; and averages.
JET = (
    "grid.points_per_height=10", "grid.boundary_layer_points=1", "grid.exit_spacing=0.08", "grid.length=4.0",
    "grid.half_height=2.0", "grid.upstream=1.2", "grid.sponge_length=2.0", "grid.sponge_height=1.5",
    "grid.stretching=[1.1, 1.2]", "grid.sponge_stretching=1.2", "sponge.0.start=4.0", "sponge.0.end=6.0",
    "sponge.1.end=-1.2", "sponge.2.start=2.0", "sponge.2.end=3.5", "sponge.3.start=-2.0", "sponge.3.end=-3.5",
    "monitor.every=2", "average.every=1", "average.favre=true",
    "average.budget=true",
)  # fmt: skip


def channel(**changes) -> Case:
    return Case.from_dict(CHANNEL | changes)


STEADY = [{"faces": ["imin"], "type": "supersonic-inflow", "state": {"rho": 1.0, "u": 1.6, "p": 1 / 1.4}},
          *CHANNEL["boundary"][1:]]  # fmt: skip
CASES = {
    "vortex": lambda: (vortex(), {}),
    "jet": lambda: (load("planar-jet", "quick", JET), {}),
    "local": lambda: (channel(time={"steps": 6, "cfl": 0.5, "local": True}, boundary=STEADY), {}),
    "unsteady": lambda: (channel(), {"profiles": {"gust": gust}}),
    "waves": lambda: (channel(), {"profiles": {"gust": swell}}),
    "three-d": lambda: (taylor_green("grid.n=[12, 10, 8]", "monitor.every=2"), {}),
    "viscous-fp32": lambda: (load("couette", overrides=["scheme.precision='fp32'", "monitor.every=2"]), {}),
}
STEPS = {"jet": 4}


def every_step(case: Case, **changes) -> Case:
    """The case with a checkpoint after each step."""
    tables = case.model_dump()
    tables["checkpoint"] |= {"every_steps": 1, "keep": 1000}
    for table, entries in changes.items():
        tables[table] |= entries
    changed = Case.from_dict(tables, directory=case.directory)
    return changed


@pytest.mark.parametrize(
    ("name", "backend"),
    [pytest.param(name, "cpu", marks=pytest.mark.slow if name == "viscous-fp32" else ()) for name in CASES]
    + [pytest.param(name, "emulated", marks=pytest.mark.slow) for name in CASES],
)
def test_a_restart_after_any_step_gives_the_same_bits(name, backend, tmp_path):
    case, given = CASES[name]()
    steps = STEPS.get(name, 6)
    whole = Simulation(every_step(case), backend=backend, out=tmp_path / "run", **given)
    whole.run(steps=steps, progress=False)
    written = checkpoint.list_checkpoints(tmp_path / "run")
    assert len(written) == steps + 1
    plain = Simulation(case, backend=backend, **given)
    plain.run(steps=steps, progress=False)
    assert bits(plain) == bits(whole), "checkpoints change nothing"
    for path in written[1:]:
        copy = shutil.copy(path, tmp_path / "copy.hxc")
        again = Simulation(case, backend=backend, restart=copy, **given)
        assert again.out is None
        again.run(steps=steps - again.step_count, progress=False)
        assert bits(again) == bits(whole), path.name


def test_a_restored_state_is_the_stored_one_at_walls_and_inflows_too():
    """Also where it does not satisfy their conditions."""
    solver = Simulation(channel(boundary=STEADY), backend="cpu").solver
    stored = {piece.name: np.asarray(piece.array) + 0.01 for piece in solver.pieces()}
    solver.restore(solver.values(), lambda name, box: stored[name])
    for state in solver.states:
        assert np.array_equal(state.interior(state.q), stored[f"q.{state.part.whole}"])


def test_a_run_goes_on_in_its_directory_with_its_case(tmp_path):
    reference = Simulation(vortex(), backend="cpu", out=tmp_path / "whole")
    reference.run(progress=False)
    for steps in (5, 7, None):
        restart = None if steps == 5 else tmp_path / "parts"
        case = vortex() if steps == 5 else None
        simulation = Simulation(case, backend="cpu", out=None if restart else tmp_path / "parts", restart=restart)
        record = simulation.run(steps=steps, progress=False)
    assert bits(simulation) == bits(reference)
    assert [entry["step"] for entry in record["restarts"]] == [5, 12]
    assert record["restarts"][1]["before"]["status"] == "finished" and record["restarts"][1]["changed"] == {}
    kept = (json.loads((tmp_path / run / "run.json").read_text())["history"] for run in ("parts", "whole"))
    assert next(kept) == next(kept)
    last = [fields.read(fields.last(tmp_path / name)).blocks[0].state["rho"] for name in ("whole", "parts")]
    assert np.array_equal(*last)


def test_running_on_in_one_process_is_the_same(tmp_path):
    whole = Simulation(vortex(), backend="cpu")
    whole.run(steps=9, progress=False)
    parts = Simulation(vortex(), backend="cpu", out=tmp_path)
    for _ in range(3):
        parts.run(steps=3, progress=False)
    assert bits(parts) == bits(whole)


def test_a_branch_into_another_directory(tmp_path):
    first = Simulation(vortex(), backend="cpu", out=tmp_path / "a")
    first.run(steps=4, progress=False)
    branch = Simulation(backend="cpu", restart=tmp_path / "a", out=tmp_path / "b")
    branch.run(steps=2, progress=False)
    steps = [int(re.search(r"step_(\d+)", path.name)[1]) for path in checkpoint.list_checkpoints(tmp_path / "b")]
    assert steps == [6, 4] and (tmp_path / "b/case/case.toml").is_file()
    assert len(checkpoint.list_checkpoints(tmp_path / "a")) == 2


def test_the_last_ones_are_kept(tmp_path):
    case = vortex(checkpoint__every_steps=2, checkpoint__keep=3)
    Simulation(case, backend="cpu", out=tmp_path).run(steps=9, progress=False)
    names = [path.name for path in checkpoint.list_checkpoints(tmp_path)]
    assert names == [f"checkpoint_{n:06d}_step_{step:06d}.hxc" for n, step in ((6, 9), (5, 8), (4, 6))]


def test_a_new_run_in_a_directory_drops_the_checkpoints_of_the_old_one(tmp_path):
    for steps in (9, 5):
        Simulation(vortex(), backend="cpu", out=tmp_path).run(steps=steps, progress=False)
    assert [path.stem[-6:] for path in checkpoint.list_checkpoints(tmp_path)] == ["000005", "000000"]


def test_none_is_written_if_none_is_kept(tmp_path):
    Simulation(vortex(checkpoint__keep=0), backend="cpu", out=tmp_path).run(steps=2, progress=False)
    assert not (tmp_path / "checkpoints").exists()
    with pytest.raises(HiresxError, match="no checkpoint"):
        checkpoint.find(tmp_path)


def test_an_interval_of_time_moves_no_step(tmp_path):
    plain = Simulation(vortex(), backend="cpu")
    plain.run(steps=12, progress=False)
    timed = Simulation(vortex(checkpoint__every_time=0.13, checkpoint__keep=99), backend="cpu", out=tmp_path)
    timed.run(steps=12, progress=False)
    assert bits(timed) == bits(plain)
    times = sorted(checkpoint.describe(path)["time"] for path in checkpoint.list_checkpoints(tmp_path))
    passed = [np.floor(time / 0.13) for time in times[:-1]]
    assert passed == list(range(len(passed))) and len(passed) > 2


class Steps:
    """What a checkpoint asks of a solver, without one."""

    time, steps = 0.0, 0


def stepping(tmp_path, spec, steps: int, step: float, cost: float) -> list[tuple[int, float, float]]:
    """Of every checkpoint of a run by a clock of its own: its step, and when it was begun and written. A step takes
    `step` seconds, a checkpoint `cost` (a function of the time)."""
    now, found = [100.0], []
    solver = Steps()

    def contents():
        found.append((solver.steps, now[0] - 100.0, now[0] + cost(now[0]) - 100.0))
        now[0] += cost(now[0])
        return {}, ()

    writer = checkpoint.Checkpoints(tmp_path, spec, contents, lambda: None, clock=lambda: now[0])
    writer.start(solver, None, new=True)
    solver.steps = 0
    for _ in range(steps):
        due = writer.is_due()
        now[0] += step
        solver.steps += 1
        writer.after_step(solver, due)
    assert [n for n, _, _ in found][-9:] == sorted(
        int(path.stem[-6:]) for path in checkpoint.list_checkpoints(tmp_path)
    )[-9:]
    return found


def test_an_interval_of_the_wall_clock(tmp_path):
    spec = vortex(checkpoint__every_wall=10.0, checkpoint__keep=9).checkpoint
    found = stepping(tmp_path, spec, 35, 1.0, lambda now: 0.0)
    assert [n for n, _, _ in found] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    ("step", "cost"), [(0.01, 0.1), (1.0, 2.9), (70.0, 1.0), (400.0, 0.5)], ids=["quick", "dear", "slow", "very slow"]
)
def test_five_minutes_are_lost_at_most_where_that_costs_a_hundredth(tmp_path, step, cost):
    spec = vortex(checkpoint__keep=9).checkpoint
    assert spec.every_wall is None
    found = stepping(tmp_path, spec, int(4000 / step), step, lambda now: cost)
    lost = [after[2] - before[1] for before, after in itertools.pairwise(found)]
    # Beyond that only one step, where a step takes as long.
    # How long a step takes shows when the first is done.
    assert len(lost) >= 4 and max(lost[1:]) <= max(300.0, 2 * cost + step) + 1e-6
    assert min(lost) > 280 - 2 * step or step > 100, "no oftener than that"
    assert cost * len(found[1:]) <= 0.01 * found[-1][2]


def test_a_dear_checkpoint_is_written_less_often(tmp_path):
    spec = vortex(checkpoint__keep=9).checkpoint
    found = stepping(tmp_path, spec, 40000, 1.0, lambda now: 20.0)
    every = [after[1] - before[1] for before, after in itertools.pairwise(found)]
    assert len(every) > 10 and all(1970 <= seconds <= 2010 for seconds in every), every


def test_a_file_system_that_is_slow_once_puts_no_checkpoint_off(tmp_path):
    spec = vortex(checkpoint__keep=9).checkpoint
    found = stepping(tmp_path, spec, 4000, 1.0, lambda now: 60.0 if 800 < now < 1100 else 0.5)
    every = [after[1] - before[1] for before, after in itertools.pairwise(found)]
    assert len(every) > 9 and max(every) <= 301


def test_the_clock_changes_no_result(tmp_path):
    """Whatever it says, the run takes the same steps."""
    now = [0.0]

    def passes(simulation):
        now[0] += 400.0

    simulation = Simulation(vortex(checkpoint__keep=99), "cpu", out=tmp_path / "out", monitors=[passes])
    simulation._checkpoints._clock = lambda: now[0]
    simulation.run(steps=12, progress=False)
    plain = Simulation(vortex(), "cpu")
    plain.run(steps=12, progress=False)
    assert bits(simulation) == bits(plain) and len(checkpoint.list_checkpoints(tmp_path / "out")) > 4


def test_a_clock_that_goes_backwards_is_harmless(tmp_path, monkeypatch):
    now = [2e9]

    def backwards() -> float:
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr("time.time", backwards)
    case = vortex(checkpoint__every_steps=2, checkpoint__keep=9, time__wall_limit=1000)
    record = Simulation(case, backend="cpu", out=tmp_path).run(steps=6, progress=False)
    assert record["status"] == "finished"
    for n, path in enumerate(checkpoint.list_checkpoints(tmp_path)):
        os.utime(path, (1e9 + n, 1e9 + n))  # the newest seems to be the oldest
    assert checkpoint.find(tmp_path).container.values["solver"]["steps"] == 6
    assert Simulation(backend="cpu", restart=tmp_path).step_count == 6


def test_the_wall_clock_limit_stops_in_order(tmp_path):
    case = vortex(time__wall_limit=1e-3)
    record = Simulation(case, backend="cpu", out=tmp_path).run(progress=False)
    assert record["status"] == "stopped" and "time.wall_limit = 0.001 s" in record["error"]
    assert record["steps"] == 1 == checkpoint.find(tmp_path).container.values["solver"]["steps"]
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "stopped"


def test_a_run_that_has_written_no_checkpoint_expects_no_time_for_one(tmp_path):
    assert checkpoint.Checkpoints(tmp_path, None, dict, lambda: None).seconds == 0.0
