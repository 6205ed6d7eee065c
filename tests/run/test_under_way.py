"""Runs that are at their end already, that go on in small pieces, and that are looked at while they are under way."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from hiresx import Simulation
from hiresx.case import Case
from hiresx.case.toml import dumps
from hiresx.cli import execute
from hiresx.output.fields import field_file as fields
from hiresx.output.saved import checkpoint, process, record
from hiresx.output.show.describe import describe
from hiresx.output.show.run_status import run_status

TABLES = {
    "title": "box",
    "grid": {"generator": "box", "n": [8, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x", "y"]},
    "time": {"steps": 6},
    "monitor": {"every": 1},
    "initial": {"state": {"rho": 1.0, "u": 0.1, "p": 0.7}},
    "boundary": [{"faces": ["imin", "imax", "jmin", "jmax"], "type": "periodic"}],
}


def begun(out, steps=None, **tables) -> Simulation:
    simulation = Simulation(Case.from_dict(TABLES | tables), "cpu", out=out)
    simulation.run(steps=steps, progress=False)
    return simulation


# --- at its end already


@pytest.mark.parametrize(("time", "end"), [({"steps": 6}, "time.steps = 6"), ({"end": 0.1}, "time.end = 0.1")])
def test_a_restart_of_a_run_at_its_end_says_so_and_does_nothing(tmp_path, capsys, time, end):
    out = tmp_path / "out"
    begun(out, time=time)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for also in ([], ["--steps", "3"], ["--json"]):
        assert execute(["run", "--restart", str(out), "--backend", "cpu", *also]) == 0
        said = capsys.readouterr()
        assert f"already at {end}: nothing was done" in said.err
        assert f"--restart {out} --set {end.split()[0]}=..." in said.err
        assert "wrote" not in said.out
        assert not also or also[0] != "--json" or json.loads(said.out)["status"] == "finished"
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    earlier = "time.steps=4" if "steps" in time else "time.end=0.05"
    assert execute(["run", "--restart", str(out), "--backend", "cpu", "--set", earlier]) == 0
    assert f"past {earlier.replace('=', ' = ')}: nothing was done" in capsys.readouterr().err
    later = "time.steps=8" if "steps" in time else "time.end=0.2"
    assert execute(["run", "--restart", str(out), "--backend", "cpu", "--set", later]) == 0
    assert "wrote" in capsys.readouterr().out
    assert len(record.read(out)["restarts"]) == 1


def test_a_restart_that_has_something_to_do_does_it(tmp_path, capsys):
    """Short of its end, though its record says finished; at its end, though its record says otherwise; elsewhere."""
    begun(tmp_path / "short", steps=3)
    for more, fewer in (("1", ""), ("9", "ended at time.steps = 6 after 2 of the 9 steps of --steps")):
        assert execute(["run", "--restart", str(tmp_path / "short"), "--backend", "cpu", "--steps", more]) == 0
        said = capsys.readouterr().err
        assert fewer in said and ("--set time.steps=..." in said) == bool(fewer)
    assert record.read(tmp_path / "short")["steps"] == 6
    begun(tmp_path / "killed")
    entries = json.loads((tmp_path / "killed" / "run.json").read_text())
    (tmp_path / "killed" / "run.json").write_text(json.dumps(entries | {"status": "interrupted"}))
    capsys.readouterr()
    assert execute(["run", "--restart", str(tmp_path / "killed"), "--backend", "cpu"]) == 0
    assert "killed is already at time.steps = 6: no step is taken" in capsys.readouterr().err
    assert record.read(tmp_path / "killed")["status"] == "finished"
    there = ["--out", str(tmp_path / "there")]
    assert execute(["run", "--restart", str(tmp_path / "short"), "--backend", "cpu", *there]) == 0
    assert (tmp_path / "there" / "run.json").is_file()
    capsys.readouterr()


def test_a_restart_leaves_out_what_is_removed(tmp_path, capsys):
    """Of the case that the run keeps, and of a case by name; a key that is not there ends it."""
    begun(tmp_path / "out", steps=2)
    again = ["run", "--restart", str(tmp_path / "out"), "--backend", "cpu"]
    assert execute([*again, "--unset", "monitor.evry"]) == 2
    assert "--unset monitor.evry: neither the case nor a chosen preset gives monitor.evry" in capsys.readouterr().err
    assert execute([*again, "--unset", "monitor", "--unset", "time", "--set", "time.steps=4"]) == 0
    found = record.read(tmp_path / "out")
    assert found["steps"] == 4 and found["case"]["monitor"]["every"] != 1
    assert execute(["check", "sod", "--unset", "time.end", "--set", "time.steps=3", "--json"]) == 0
    assert '"steps": 3' in capsys.readouterr().out


def test_another_case_is_refused_though_the_run_is_at_its_end(tmp_path, capsys):
    begun(tmp_path / "out")
    (tmp_path / "other.toml").write_text(dumps(TABLES | {"gas": {"gamma": 1.3}}))
    assert execute(["run", str(tmp_path / "other.toml"), "--restart", str(tmp_path / "out"), "--backend", "cpu"]) == 2
    assert "gas.gamma" in capsys.readouterr().err


# --- piece by piece


def test_a_run_in_pieces_writes_what_the_clocks_ask_for(tmp_path):
    pieces, whole = tmp_path / "pieces", tmp_path / "whole"
    tables = {"output": {"every_steps": 4}, "checkpoint": {"keep": 9}}
    begun(whole, **tables)
    simulation = Simulation(Case.from_dict(TABLES | tables), "cpu", out=pieces)
    for _ in range(6):
        simulation.run(steps=1, progress=False, write_last=False)
    assert list(fields.frames(pieces)) == list(fields.frames(whole)) == [0, 4, 6]
    assert [path.name for path in checkpoint.list_checkpoints(pieces)] == [
        path.name for path in checkpoint.list_checkpoints(whole)
    ]
    last = [fields.read(fields.frames(out)[6]).blocks[0].state for out in (pieces, whole)]
    np.testing.assert_array_equal(last[0]["u"], last[1]["u"])
    # otherwise every return is an end that a run can go on from
    begun(tmp_path / "once", steps=3, **tables)
    assert list(fields.frames(tmp_path / "once")) == [0, 3]
    assert checkpoint.list_checkpoints(tmp_path / "once")[0].name.endswith("step_000003.hxc")


# --- under way


def _under_way(out, **more) -> dict:
    """The record as it was when the run began, of a process that is there: this one."""
    entries = json.loads((out / "run.json").read_text())
    entries |= {
        "status": "running",
        "steps": 0,
        "time": 0.0,
        "ended": None,
        "process": process.current_process(),
        **more,
    }
    (out / "run.json").write_text(json.dumps(entries))
    return entries


def test_info_of_a_run_under_way_takes_the_newest_sample(tmp_path, capsys):
    out = tmp_path / "out"
    run = begun(out, steps=3, time={"steps": 12})
    _under_way(out, last_step=12)
    told = describe(out)
    assert (told["steps"], told["time"], told["percent"]) == (3, pytest.approx(run.time), 25.0)
    assert execute(["info", str(out)]) == 0
    assert "percent" in capsys.readouterr().out
    # by the time, where that ends it first
    entries = _under_way(out, last_step=12)
    entries["case"]["time"]["end"] = 2 * run.time
    assert run_status(out, entries)["percent"] == 50.0
    # nothing of what is not known, or not under way
    entries["case"]["time"]["end"] = None
    assert "percent" not in run_status(out, entries | {"last_step": None})
    assert run_status(out, entries | {"status": "finished"}) == {}
    assert run_status(out, entries | {"status": "lost"}) == {"steps": 3, "time": pytest.approx(run.time)}


def test_the_time_left_is_that_of_the_rate_so_far(tmp_path):
    out = tmp_path / "out"
    begun(out, steps=3, time={"steps": 12})
    seen = (out / "history" / "residual.nc").stat().st_mtime
    entries = _under_way(out, last_step=12)
    entries["started"] = datetime.fromtimestamp(seen - 100, UTC).isoformat()
    # a quarter took 100 s, and 20 s have gone by since
    assert run_status(out, entries, now=seen + 20)["left_s"] == pytest.approx(280, abs=1)
    # two of the three steps were another process's
    entries["restarts"] = [{"step": 2, "time": 0.0}]
    assert run_status(out, entries, now=seen)["left_s"] == pytest.approx(900, abs=1)
    entries["started"] = datetime.fromtimestamp(seen - 0.5, UTC).isoformat()
    assert "left_s" not in run_status(out, entries, now=seen)


def test_the_record_knows_the_last_step(tmp_path):
    begun(tmp_path / "a", steps=3)
    begun(tmp_path / "b")
    begun(tmp_path / "c", time={"end": 0.05})
    assert [record.read(tmp_path / name)["last_step"] for name in "abc"] == [3, 6, None]
