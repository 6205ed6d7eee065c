"""hiresx sweep: its runs and names, that it goes on after a kill, what it refuses, its table."""

import csv
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import command
from file_limits import largest_file
from launching import HIRESX, write_program
from plotted import picture
from swept_case import CASE, FUNCTIONS, LOOK, SET, written

import hiresx
from hiresx.cli import terminal
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, write_plot3d
from hiresx.sweeps.folder import claim, named_by, others, read_entries
from hiresx.sweeps.member import need
from hiresx.sweeps.member import status as run_status
from hiresx.sweeps.members import SweepPlan, plan
from hiresx.sweeps.run_numbers import column


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def case(tmp_path):
    return written(tmp_path / "tube")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A sweep that ran to its end, its case beside it."""
    folder = tmp_path_factory.mktemp("done")
    status, out, err = command("sweep", written(folder / "tube"), *SET, *LOOK, "--out", folder / "sweep")
    assert status == 0, err
    return folder, out, err


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "table.csv").open() as stream:
        found = list(csv.DictReader(stream))
    return [{key: value for key, value in row.items() if key != "wall_s"} for row in found]


# ---- what is varied


def test_names_of_runs_are_short_and_their_own(case):
    of = plan(case, {"parameters.strength": [0.1, 0.2], "time.steps": [5], "grid.n": [[21, 1, 1], [41, 1, 1]]})
    assert [one.name for one in of.members][:2] == ["strength=0.1_n=21_1_1", "strength=0.1_n=41_1_1"]
    assert of.members[1].words == (
        "--set", "parameters.strength=0.1", "--set", "time.steps=5", "--set", "grid.n=[41, 1, 1]",
    )  # fmt: skip
    same = [one.name for one in plan(case, {"title": ["a b", "a_b"], "time.steps": [1, 2]}).members]
    assert len(set(same)) == 4
    (long,) = (one.name for one in plan(case, {"description": ["x" * 900]}).members)
    assert len(long) < 120
    both = plan(case, {"grid.lower": [[0.0, 0.0, 0.0]], "time.steps": [3]}, ["fine"]).members
    assert both[0].words[:2] == ("--preset", "fine") and both[0].case["grid"]["n"] == [61, 1, 1]


def test_values_are_shown_as_they_are_written_in_a_case():
    """A table of a case among them, as `--set boundary.0.state='{ rho = 1.0 }'` sweeps over."""
    assert terminal.text({"rho": 1.0, "at": [0.5, True]}) == "rho = 1, at = 0.5, yes"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("--set", "time.stpes=1,2"), "unknown key", 'did you mean "steps"'),
        (("--set", "time.steps=1,-2"), "time.steps = -2", "steps to stop after"),
        (("--set", "time.steps=1,2,1"), "time.steps=1 is there twice", "give each value once"),
        (("--set", "time.cfl=1,1.0"), "cfl=1 and cfl=1.0 are the same case", "give each value once"),
        (("--set", "time.steps=1", "--set", "time.steps=2"), "time.steps is given twice", "time.steps=V,V"),
        (("--preset", "fine", "--preset", "fine"), "--preset is given twice", "--preset P,P"),
        (("--preset", "fien"), 'no preset "fien"', 'did you mean "fine"'),
        ((), "nothing to sweep over", "--set"),
        ((*SET, "--plot", "strength"), "does not name two columns", "--plot"),
        ((*SET, "--plot", "strenght,steps"), 'no column "strenght"', "strength"),
        ((*SET, "--column", "residual"), "not of the form HISTORY.QUANTITY", "residual.rho"),
        ((*SET, "--column", "residual.rho:most"), 'no "most"', "max"),
        ((*SET, "--collect", "jett"), 'no command "jett"', 'did you mean "jet"'),
        ((*SET, "--table"), "holds no sweep", "--table"),
        ((*SET, "--zip", "--set", "time.steps=1,2"), "different numbers", "one"),
    ],
)
def test_sweeps_that_cannot_be_are_refused_before_anything_is_run(case, words, message, hint):
    status, out, err = command("sweep", "tube", *words, "--out", "sweep", cwd=case.parent)
    assert status == 2 and message in err and hint in err and not out
    assert not (case.parent / "sweep").exists()


# ---- a sweep


def test_a_sweep_leaves_its_runs_a_table_and_a_picture(done):
    folder, out, err = done
    sweep = folder / "sweep"
    found = rows(sweep)
    assert [row["run"] for row in found] == ["strength=0.1", "strength=0.2", "strength=0.3"]
    assert {row["status"] for row in found} == {"finished"} and {row["steps"] for row in found} == {"40"}
    assert {row["wait.passed:mean"] for row in found} == {"20.0"}  # of 0 to 40
    for row in found:
        largest = hiresx.open(sweep / row["run"]).history("residual")["rho"].max()
        assert float(row["residual.rho:max"]) == largest
    assert json.loads((sweep / "table.json").read_text())["runs"][2]["parameters.strength"] == 0.3
    assert "[2/3] strength=0.2: 2 left, about 0:" in err and "strength=0.3" in out
    before = {path: path.stat().st_mtime_ns for path in sweep.glob("*/run.json")}
    plot = ("--plot", "strength,residual.rho:max")
    status, out, err = command("sweep", folder / "tube", *SET, *LOOK, *plot, "--out", sweep, "--json")
    assert status == 0 and "3 finished, 0 to do" in err
    assert [row["parameters.strength"] for row in json.loads(out)["runs"]] == [0.1, 0.2, 0.3]
    assert before == {path: path.stat().st_mtime_ns for path in sweep.glob("*/run.json")}
    assert picture(sweep / "table.png").size and rows(sweep) == found


def test_what_is_to_do_is_listed(done):
    folder, *_ = done
    more = ("--set", "parameters.strength=0.3,0.4")
    status, out, _ = command("sweep", folder / "tube", *more, "--out", folder / "sweep", "--dry-run", "--json")
    runs = json.loads(out)["runs"]
    assert status == 0 and [run["to_do"] for run in runs] == ["nothing", "begin"]
    assert "parameters.strength=0.4" in runs[1]["command"]
    assert "strength=0.4" not in (folder / "sweep" / "sweep.json").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda case: replace(case / "case.toml", "dt = 1e-3", "dt = 2e-3"), "time.dt is 0.002, there 0.001"),
        (lambda case: replace(case / "case.py", "-100 *", "-90 *"), "case.py was changed"),
    ],
)
def test_a_changed_case_is_refused_by_its_difference(done, tmp_path, change, message):
    folder, *_ = done
    case = written(tmp_path / "tube")
    change(case)
    table = (folder / "sweep" / "table.csv").read_bytes()
    for more in ((), ("--dry-run",), ("--table",)):
        status, _, err = command("sweep", case, *SET, *more, "--out", folder / "sweep")
        assert status == 2 and "is of another case" in err and message in err
    assert (folder / "sweep" / "table.csv").read_bytes() == table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "time.steps=4,5"), "is a sweep over parameters.strength, not over time.steps"),
        ((*SET, "--set", "time.steps=4"), "is a sweep over parameters.strength, not over"),
    ],
)
def test_another_sweep_is_refused(done, words, message):
    folder, *_ = done
    status, _, err = command("sweep", folder / "tube", *words, "--out", folder / "sweep")
    assert status == 2 and message in err


def test_a_run_of_another_case_in_a_folder_of_the_sweep_is_marked_and_left_out(done, tmp_path):
    folder, *_ = done
    sweep = tmp_path / "sweep"
    shutil.copytree(folder / "sweep", sweep)
    path = sweep / "strength=0.2" / "run.json"
    record = json.loads(path.read_text())
    record["case"]["time"]["dt"] = 2e-3  # as hiresx run --restart with --set leaves it
    path.write_text(json.dumps(record))
    for more in ((), ("--table",)):
        status, _, _ = command("sweep", folder / "tube", *SET, *LOOK, *more, "--out", sweep)
        row = rows(sweep)[1]
        assert status == 3 and [one["status"] for one in rows(sweep)] == ["finished", "other case", "finished"]
        assert f"{sweep}/strength=0.2 is of another case: time.dt is 0.001, there 0.002; remove" in row["error"]
        assert not row["residual.rho:max"] and rows(sweep)[2]["residual.rho:max"]
    status, out, _ = command("sweep", folder / "tube", *SET, "--out", sweep, "--dry-run")
    assert status == 0 and "removal: " not in out and f"remove {sweep}/strength=0.2, and" in out
    shutil.rmtree(sweep / "strength=0.2")
    status, _, _ = command("sweep", folder / "tube", *SET, *LOOK, "--out", sweep)
    assert status == 0 and rows(sweep) == rows(folder / "sweep")


def test_grid_files_are_found_from_the_copy_of_the_case_and_may_not_change(tmp_path):
    case, sweep = tmp_path / "hill", tmp_path / "sweep"
    case.mkdir()
    nodes = np.linspace(0.0, 1.0, 9)
    z, y, x = np.meshgrid([0.0], nodes, nodes, indexing="ij")
    for name, height in (("a.xyz", 1.0), ("b.xyz", 2.0)):
        write_plot3d(case / name, Grid([Block("hill", x, height * y, z)]))
    boundary = '[[boundary]]\nfaces = "all"\ntype = "slip-wall"\n'
    text = '[grid]\nfile = "a.xyz"\n[time]\nsteps = 1\n[initial]\nstate = { rho = 1.0, p = 1.0 }\n'
    (case / "case.toml").write_text(text + boundary)
    of = plan(case, {"time.steps": [1, 2]})
    claim(sweep, case, of)
    claim(sweep, case, of)
    assert hiresx.load(sweep / "case").grid.file == str(case / "a.xyz")
    both = plan(case, {"grid.file": ["a.xyz", "b.xyz"]})
    assert [one.name for one in both.members] == ["file=a.xyz", "file=b.xyz"]
    assert both.members[1].words == ("--set", f'grid.file="{case / "b.xyz"}"')
    # a file that only runs read which are left out this time is still the sweep's
    files, one = tmp_path / "files", plan(case, {"grid.file": ["a.xyz"]}, named_by=["grid.file"])
    claim(files, case, both)
    claim(files, case, one)
    assert set(read_entries(files)["grid_files"]) == {str(case / name) for name in ("a.xyz", "b.xyz")}
    whole = (case / "b.xyz").read_bytes()
    (case / "b.xyz").write_bytes(whole + b" ")
    with pytest.raises(HiresxError, match=r"is of another case: .*b\.xyz was changed"):
        claim(files, case, both)
    (case / "b.xyz").write_bytes(whole)
    shutil.copy(case / "b.xyz", case / "a.xyz")
    with pytest.raises(HiresxError, match=r"is of another case: .*a\.xyz was changed"):
        claim(sweep, case, of)


def test_a_sweep_in_which_other_keys_vary_is_refused_by_the_key_that_does(case, tmp_path):
    def of(*sizes: float) -> object:
        return plan(case, {"parameters.strength": list(sizes), "time.steps": [4]})

    def steps(*numbers: int) -> object:
        values = {"parameters.strength": [0.1, 0.2], "time.steps": list(numbers)}
        return plan(case, values, named_by=named_by(tmp_path / "several"))

    claim(tmp_path / "several", case, of(0.1, 0.2))
    with pytest.raises(HiresxError, match=r"time\.steps is 5, there 4"):
        claim(tmp_path / "several", case, steps(5))
    with pytest.raises(HiresxError, match=r"time\.steps has one value there, here 2") as refused:
        claim(tmp_path / "several", case, steps(4, 5))
    assert "parameters.strength" in refused.value.hint


def test_a_sweep_may_be_narrowed_to_one_value_and_widened_again(case, tmp_path):
    """The names of the runs stay, and so do the others."""
    out = tmp_path / "sweep"

    def of(strengths: list[float], steps: list[int]) -> SweepPlan:
        return plan(case, {"parameters.strength": strengths, "time.steps": steps}, named_by=named_by(out))

    whole = of([0.1, 0.2], [4, 5])
    claim(out, case, whole)
    narrow = of([0.2], [5])
    assert [one.name for one in narrow.members] == ["strength=0.2_steps=5"]
    claim(out, case, narrow)
    assert others(out, narrow) == [one.name for one in whole.members if one.name != "strength=0.2_steps=5"]
    wider = of([0.1, 0.2, 0.3], [4])
    claim(out, case, wider)
    assert [one.name for one in wider.members] == [f"strength={s}_steps=4" for s in (0.1, 0.2, 0.3)]
    assert read_entries(out)["keys"] == {"parameters.strength": [0.1, 0.2, 0.3], "time.steps": [4, 5]}
    assert len(read_entries(out)["runs"]) == 5


def test_a_run_whose_sponge_lies_at_a_region_is_known_again(tmp_path):
    """Its record has the number that the region came to."""
    case = tmp_path / "open"
    case.mkdir()
    sponge = '[[sponge]]\naxis = "x"\nstart = 0.5\nend = { face = "imax" }\nstrength = 1.0\nstate = { p = 1.0 }\n'
    (case / "case.toml").write_text(CASE.replace('monitors = ["wait"]', "") + sponge.replace("{ p", "{ rho = 1.0, p"))
    (case / "case.py").write_text(FUNCTIONS.partition("def wait")[0])
    of = plan(case, {"time.steps": [1]})
    run = tmp_path / "sweep" / of.members[0].name
    hiresx.Simulation(hiresx.load(case, overrides=["time.steps=1"]), backend="cpu", out=run).run(progress=False)
    assert json.loads((run / "run.json").read_text())["case"]["sponge"][0]["end"] == 1.0
    assert need(tmp_path / "sweep", of.members[0]) == "nothing"
    moved = plan(case, {"time.steps": [1], "sponge.0.start": [0.6]}).members[0]
    moved = dataclasses.replace(moved, name=run.name)
    assert need(tmp_path / "sweep", moved) == "removal"
    assert "sponge.0.start is 0.6, there 0.5" in run_status(tmp_path / "sweep", moved)[1]


def test_a_title_is_no_other_case(done, tmp_path):
    folder, *_ = done
    case = tmp_path / "tube"
    shutil.copytree(folder / "tube", case)
    text = (case / "case.toml").read_text()
    (case / "case.toml").write_text('description = "more"\n' + text.replace("A pulse in a tube", "Said otherwise"))
    status, out, err = command("sweep", case, *SET, "--dry-run", "--out", folder / "sweep")
    assert status == 0 and out.count("finished") == 3, err


def test_a_title_of_a_preset_is_no_other_case(case, tmp_path):
    replace(case / "case.toml", "[presets.fine]", '[presets.fine]\ntitle = "Fine"')
    of = plan(case, {"time.steps": [1]}, ["fine"])
    claim(tmp_path / "sweep", case, of)
    replace(case / "case.toml", '"Fine"', '"Said otherwise"')
    claim(tmp_path / "sweep", case, plan(case, {"time.steps": [1]}, ["fine"]))
    replace(case / "case.toml", "61", "81")
    with pytest.raises(HiresxError, match=r"is of another case: grid.n is"):
        claim(tmp_path / "sweep", case, plan(case, {"time.steps": [1]}, ["fine"]))


def test_runs_that_wait_are_told_by_that(case, tmp_path):
    claim(tmp_path / "sweep", case, plan(case, {"time.steps": [1, 2]}))
    place = tmp_path / "sweep" / "steps=1"
    place.mkdir()
    (place / "run.json").write_text('{"status": "interrupted"}')
    status, _, err = command("sweep", case, "--set", "time.steps=1,2", "--out", tmp_path / "sweep", "--table")
    assert status == 3 and "2 of 2 runs are incomplete: 1 interrupted, 1 waiting\n" in err, err


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("held", "message"),
    [("run.json", "holds a run, not a sweep"), ("thesis.tex", "something else than a sweep: thesis.tex")],
)
def test_a_folder_that_holds_something_else_is_left_alone(case, tmp_path, held, message):
    sweep = tmp_path / "mine"
    sweep.mkdir()
    (sweep / held).write_text("mine")
    status, _, err = command("sweep", case, *SET, "--out", sweep)
    assert status == 2 and message in err and [path.name for path in sweep.iterdir()] == [held]


def test_a_file_in_place_of_the_folder(case, tmp_path):
    (tmp_path / "file").write_text("")
    status, _, err = command("sweep", case, *SET, "--out", tmp_path / "file")
    assert status == 2 and "a file, not a directory" in err


# ---- ends


@pytest.mark.slow
def test_a_run_that_fails_does_not_stop_the_others(case, tmp_path):
    sweep = tmp_path / "sweep"
    found = hiresx.sweep(case, {"time.dt": [50.0, 1e-3], "time.steps": [3]}, sweep, progress=False)
    assert [row["status"] for row in found.rows] == ["failed", "finished"]
    assert "time" in found.unfinished_rows[0]["error"] and len(found.unfinished_rows) == 1
    status, _, err = command("sweep", case, "--set", "time.dt=50.0,1e-3", "--set", "time.steps=3", "--out", sweep)
    assert (
        status == 3
        and "1 of 2 runs is incomplete: 1 failed; see the column error" in err
        and "1 finished, 1 to do" in err
        and "--restart" not in err
        and f"one of the sweep in {sweep}: try time.dt=" in err
    )


def test_a_full_disk_fails_a_run_which_goes_on_when_there_is_space(done, case, tmp_path):
    folder, *_ = done
    sweep, values = tmp_path / "sweep", {"parameters.strength": [0.1]}
    with largest_file(20), pytest.raises(HiresxError, match=r"cannot write .*sweep.json"):
        hiresx.sweep(case, values, sweep, progress=False)
    columns = ("residual.rho:max", "wait.passed:mean")
    with largest_file(9_000):
        (row,) = hiresx.sweep(case, values, sweep, columns=columns, progress=False).rows
    assert row["status"] == "failed" and "cannot write" in row["error"]
    assert hiresx.sweep(case, values, sweep, columns=columns, progress=False).unfinished_rows == []
    assert rows(sweep) == rows(folder / "sweep")[:1]


def started(case: Path, sweep: Path) -> subprocess.Popen:
    """A sweep whose second run waits, after it has written a checkpoint, as long as the file `hold` is there."""
    line = [*HIRESX, "sweep", str(case), *SET, *LOOK, "--out", str(sweep)]
    hold(case).touch()
    environment = os.environ | {"HOLD": str(hold(case))}
    # a shell's background job, which this test may be, has SIGINT ignored
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, **heard)


def hold(case: Path) -> Path:
    return case.parent / "hold"


def await_(what, process: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while not what():
        assert process.poll() is None and time.monotonic() < end, process.stdout.read()
        time.sleep(0.02)


def in_the_second(sweep: Path):
    """Whether the second run has a checkpoint of step 10 or later."""
    kept = sweep / "strength=0.2" / "checkpoints"
    return lambda: any(int(path.stem.rpartition("_")[2]) >= 10 for path in kept.glob("*.hxc"))


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True], ids=["the sweep alone", "with its run"])
def test_a_killed_sweep_goes_on_and_ends_in_the_same_table(done, tmp_path, both):
    folder, *_ = done
    case, sweep = written(tmp_path / "tube"), tmp_path / "sweep"
    process = started(case, sweep)
    await_(in_the_second(sweep), process)
    process.kill()
    process.wait()
    if not both:
        hold(case).unlink()
    else:
        keeper = json.loads((sweep / "strength=0.2" / "run.json").read_text())["process"]["pid"]
        os.kill(keeper, signal.SIGKILL)
        hold(case).unlink()
    assert not (sweep / "strength=0.3").exists()
    first = (sweep / "strength=0.1" / "run.json").stat().st_mtime_ns
    status, _, err = command("sweep", case, *SET, *LOOK, "--out", sweep)
    assert status == 0, err
    assert "1 finished, 2 to do" in err and "strength=0.2 (go on)" in err
    assert (sweep / "strength=0.1" / "run.json").stat().st_mtime_ns == first
    restarts = json.loads((sweep / "strength=0.2" / "run.json").read_text())["restarts"]
    assert len(restarts) == 1 and restarts[0]["before"]["status"] == ("lost" if both else "interrupted")
    assert rows(sweep) == rows(folder / "sweep")


@pytest.mark.slow
def test_ctrl_c_ends_a_sweep_with_its_run_at_a_checkpoint_and_a_second_sweep_is_refused(case, tmp_path):
    sweep = tmp_path / "sweep"
    process = started(case, sweep)
    await_(in_the_second(sweep), process)
    second, _, err = command("sweep", case, *SET, "--out", sweep)
    assert second == 2 and "another process is running in" in err
    process.send_signal(signal.SIGINT)
    hold(case).unlink()
    out, _ = process.communicate()
    assert process.returncode == 130 and "2 of 3 runs are not finished" in out and "repeat the command" in out
    assert [row["status"] for row in rows(sweep)] == ["finished", "interrupted", "waiting"]


# ---- numbers of a run


def test_columns_that_a_run_lacks_are_told_in_its_row(done):
    folder, *_ = done
    found = [column(text) for text in ("residual.rho", "residual.rh:min", "resdual.rho")]
    assert found[0].value(folder / "sweep" / "strength=0.1") > 0
    for wrong, message in zip(found[1:], ('no column "rh"', 'no history "resdual"'), strict=True):
        with pytest.raises(HiresxError, match=message):
            wrong.value(folder / "sweep" / "strength=0.1")
    late = column("residual.rho:mean", start=1e6)
    with pytest.raises(HiresxError, match=r"no sample from time 1e\+06 on"):
        late.value(folder / "sweep" / "strength=0.1")


@pytest.mark.slow
def test_numbers_of_an_analysis_become_columns(done):
    folder, *_ = done
    out, post = folder / "sweep", "spectrum residual.rho --segments 2"
    status, said, err = command(
        "sweep", folder / "tube", "--set", "parameters.strength=0.1", "--table", "--out", out, "--json",
        "--collect", post, "--collect", "jet",
    )  # fmt: skip
    (first,) = json.loads(said)["runs"]
    alone = json.loads(command("post", "spectrum", out / "strength=0.1", *post.split()[1:], "--json")[1])
    assert first["spectrum.resolution"] == alone["resolution"]
    assert status == 3 and "1 of 1 run is incomplete" in err and first["status"] == "finished"
    assert "hiresx post jet: the case of" in first["error"] and "no parameter pressure_ratio" in first["error"]


# ---- job arrays


def test_a_job_array_runs_each_of_them(case, tmp_path):
    size = ("--ranks-per-node", "2", "--cpus-per-rank", "4")
    words = ("sweep", "tube", *SET, "--out", "my sweep", "--slurm", "a.slurm", "--pbs", "a.pbs", *size)
    status, out, err = command(*words, cwd=tmp_path)
    assert status == 0 and "3 of 3 runs" in out, err
    assert "#PBS -J 0-2" in (tmp_path / "a.pbs").read_text().splitlines()
    text = (tmp_path / "a.slurm").read_text()
    assert {"#SBATCH --array=0-2", "#SBATCH --output=%x-%A_%a.out"} <= set(text.splitlines())
    assert "# Written by hiresx sweep." in text and "# Written by hiresx sweep." in (tmp_path / "a.pbs").read_text()
    # Of one task SLURM_JOB_ID is that of the whole array.
    task = '"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"'
    assert f"scancel --signal=TERM {task}" in text and f"scontrol requeue {task}" in text
    assert "SLURM_JOB_ID" not in text
    write_program(tmp_path / "bin" / "srun", "printf '%s\\n' \"$@\"\n")
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    def ran(number: int) -> tuple[int, list[str]]:
        line = ["bash", "a.slurm"]
        outer = environment | {"SLURM_ARRAY_TASK_ID": str(number)}
        without = "\n".join(line for line in text.splitlines() if not line.startswith(("source ", "export PATH")))
        (tmp_path / "a.slurm").write_text(without)
        ended = subprocess.run(line, cwd=tmp_path, env=outer, capture_output=True, text=True)
        return ended.returncode, ended.stdout.splitlines()

    own = ["--set", "parameters.strength=0.2", "--out", "my sweep/strength=0.2"]
    assert ran(1)[1][-9:] == ["hiresx", "run", "my sweep/case", "--backend", "cpu", *own]
    kept = tmp_path / "my sweep" / "strength=0.2" / "checkpoints"
    kept.mkdir(parents=True)
    (kept / "checkpoint_1_step_5.hxc").write_text("")
    assert ran(1)[1][-6:] == ["hiresx", "run", "--restart", "my sweep/strength=0.2", "--backend", "cpu"]
    assert ran(3)[0] == 2
