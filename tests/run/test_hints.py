"""Errors whose hint can be followed: threads and weights, files that may not be read, fields and averages that a run
has in another form or not yet."""

import errno
import json
import os
import sys
import types

import pytest
from command_line import command
from swept_case import SET, written

from hiresx.case import functions, loader
from hiresx.errors import HiresxError
from hiresx.launch import job
from hiresx.launch.command import LAUNCHED_BY
from hiresx.output.saved import checkpoint, files, record
from hiresx.post import modes


@pytest.mark.parametrize(
    ("threads", "message"),
    [
        ("100000", "OMP_NUM_THREADS=100000 is too many for"),
        ("0", "OMP_NUM_THREADS=0 is no number of threads"),
        ("abc", "OMP_NUM_THREADS=abc is no number of threads"),
    ],
)
def test_threads_of_the_environment_are_checked(monkeypatch, tmp_path, threads, message):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    status, _, err = command("run", "sod", "--steps", "1", "--backend", "cpu", cwd=tmp_path)
    assert status == 2 and message in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("weights", ["0,nan,-3", "1,2", "nan"])
def test_weights_of_one_rank_are_checked(monkeypatch, tmp_path, weights):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    status, _, err = command("run", "sod", "--steps", "1", "--backend", "cpu", "--weights", weights, cwd=tmp_path)
    assert status == 2 and "not a positive number for each of 1 rank" in err


def test_what_cannot_be_read_is_not_to_be_written_elsewhere(tmp_path):
    denied = PermissionError(errno.EACCES, "Permission denied")
    error = files.io_error(tmp_path / "run.json", denied, "read")
    assert error.message.endswith("run.json: permission denied") and "permissions" in error.hint
    assert "--out" not in error.hint and "--out" in files.io_error(tmp_path / "x.nc", denied).hint


def test_a_case_that_may_not_be_read_is_not_called_absent(monkeypatch, tmp_path):
    """Root may read everything, so the refusal of the system is stood in for."""

    def locked(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "case.toml").touch()
    isdir = os.path.isdir
    paths = types.SimpleNamespace(isfile=lambda path: False, isdir=isdir, path=None)
    monkeypatch.setattr(loader, "os", types.SimpleNamespace(path=paths, stat=locked))
    for name in (tmp_path, tmp_path / "case.toml"):
        with pytest.raises(HiresxError, match="permission denied") as error:
            loader.find(name)
        assert "permissions" in error.value.hint
    monkeypatch.undo()
    (tmp_path / "case.py").write_text("def initial(): ...\n")
    monkeypatch.setattr(functions.Path, "read_text", locked)
    with pytest.raises(HiresxError, match=r"case\.py: permission denied") as error:
        functions.public_functions(tmp_path)
    assert "correct" not in error.value.hint


def test_a_case_without_a_name_is_none():
    with pytest.raises(HiresxError, match="the name of the case is empty"):
        loader.find("")


def test_blocks_of_snapshots_that_are_too_short_are_to_be_longer():
    with pytest.raises(HiresxError, match="blocks of 1 snapshot are too short: 4 are needed") as error:
        modes.starts(21, 1, 0.5)
    assert error.value.hint == "give longer blocks"
    with pytest.raises(HiresxError, match="make 1 realisation") as error:
        modes.starts(21, 20, 0.5)
    assert "shorter blocks" in error.value.hint


def test_fields_for_paraview_alone_are_not_called_absent(tmp_path):
    (tmp_path / "fields.pvd").touch()
    (tmp_path / "run.json").write_text(json.dumps({"status": "finished", "case": {}}))
    for words in (("plot", tmp_path), ("diff", tmp_path, tmp_path)):
        status, _, err = command(*words)
        assert status == 2 and "holds fields of the format vtk only" in err
        assert f"open {tmp_path / 'fields.pvd'} in ParaView" in " ".join(err.split())


def test_averages_that_have_not_begun_are_not_to_be_added(tmp_path):
    kept = {"status": "finished", "time": 2.0, "case": {"average": {"start": 10.0, "every": 1}}}
    (tmp_path / "run.json").write_text(json.dumps(kept))
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "checkpoint_000001_step_000009.hxc").touch()
    for words in (("post", "profile", tmp_path, "y=0.5"), ("plot", tmp_path / "averages.nc")):
        status, _, err = command(*words)
        said = " ".join(err.split())
        assert status == 2 and "has no averages yet: the run is at time 2, and average.start is 10" in said
        assert f"hiresx run --restart {tmp_path}" in said


def test_a_column_of_no_history_is_refused_before_anything_is_run(tmp_path):
    case = written(tmp_path / "tube")
    for column, message in (
        ("residul.rho:last", 'no history "residul" did you mean "residual"?'),
        ("residual.rhoo", 'residual has no column "rhoo"'),
    ):
        status, _, err = command("sweep", case, *SET, "--column", column, "--out", tmp_path / "sweep")
        assert status == 2 and message in " ".join(err.split()).replace("'", '"'), err
    assert not (tmp_path / "sweep").exists()


def test_options_that_are_not_alike_are_not_proposed():
    assert "did you mean" not in command("run", "sod", "--bogus")[2]
    assert "did you mean --restart or" in command("run", "sod", "--restat")[2]


def test_a_small_bound_is_written_short(tmp_path):
    _, _, err = command("check", "sod", "--set", "time.cfl=1e-12", cwd=tmp_path)
    assert "greater than or equal to 1e-09" in err


def test_a_link_that_leads_nowhere_is_called_that(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    error = files.io_error(tmp_path / "link", FileExistsError(errno.EEXIST, "File exists"))
    assert error.message.endswith("it is a symbolic link that leads to no directory")


def test_a_restart_is_proposed_only_to_a_run_with_a_checkpoint(tmp_path):
    keeps_none = ["--backend", "cpu", "--set", "checkpoint.keep=0"]
    status, _, err = command("run", "sod", *keeps_none, "--set", "time.dt=10", "--out", "gone", cwd=tmp_path)
    assert status == 3 and "at node" in err and "--restart" not in err
    status, _, err = command("run", "sod", "--out", "gone", cwd=tmp_path)
    assert status == 2 and "holds a run already" in err and "--restart" not in err
    words = ("--set", "time.steps=1", "--set", "average={start=9.0, every=1}")
    status, out, err = command("run", "sod", *keeps_none, *words, "--steps", "2", "--out", "short", cwd=tmp_path)
    assert status == 0 and "ended at time.steps = 1" in err and "--restart" not in err
    with pytest.raises(HiresxError) as error:
        raise record.no_averages(tmp_path / "short")
    assert "run it again" in error.value.hint
    kept = json.loads((tmp_path / "short" / "run.json").read_text())
    kept |= {"status": "running", "process": kept["process"] | {"since": 1}}
    (tmp_path / "short" / "run.json").write_text(json.dumps(kept))
    status, out, _ = command("info", "short", "--json", cwd=tmp_path)
    assert json.loads(out)["status"] == "lost" and "to go on" not in json.loads(out)


def test_no_restart_is_proposed_where_the_case_must_change(tmp_path):
    """A restart computes with the formula that the run has."""
    source = 'source.e="1 / (t - t)"'
    status, _, err = command("run", "sod", "--backend", "cpu", "--set", source, "--out", "run", cwd=tmp_path)
    assert status == 3 and "change the formula" in err and "--restart" not in err
    assert list((tmp_path / "run" / "checkpoints").iterdir())


def test_the_command_that_continues_a_run_is_that_which_started_it(tmp_path, monkeypatch, capfd):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "checkpoint_000001_step_000009.hxc").touch()
    monkeypatch.delenv(LAUNCHED_BY, raising=False)
    assert checkpoint.command_to_continue(tmp_path) == f"hiresx run --restart {tmp_path}"
    code = "import sys; from hiresx.output.saved import checkpoint; print(checkpoint.command_to_continue(sys.argv[1]))"
    assert job.run([sys.executable, "-c", code, str(tmp_path)], launched_by="hiresx launch -n 2").status == 0
    assert capfd.readouterr().out == f"hiresx launch -n 2 --restart {tmp_path}\n"
