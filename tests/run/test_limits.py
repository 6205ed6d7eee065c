"""Numbers beyond what can be computed or started: refused, or told, by `check`, `run` and `launch --dry-run` alike."""

import os
import resource
import subprocess
import sys

import pytest
from case_texts import boundary, box
from command_line import command

from hiresx.base.threads import MOST_ON_A_CORE
from hiresx.cli.import_errors import describe

REST = "[initial]\nstate = { rho = 1.0, p = 0.7142857142857143 }"


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case.toml").write_text(box("[16, 16, 1]", "[1.0, 1.0, 0.0]", "steps = 2", REST, boundary("slip-wall")))


@pytest.mark.parametrize("verb", ["check", "run"])
@pytest.mark.parametrize(
    ("length", "precision", "least"),
    [("1e-160", "fp64", "2.2e-308"), ("1e-20", "fp32", "1.2e-38"), ("1e-20", "mixed", "1.2e-38")],
)
def test_a_cell_volume_below_the_smallest_number(case, verb, length, precision, least):
    sets = ("--set", f"grid.upper=[{length},{length},0.0]", "--set", f"scheme.precision={precision}")
    status, _, err = command(verb, "case.toml", *sets)
    assert status == 2 and "cell volume" in err and f"is below {least}, the smallest number of float" in err


def test_the_smallest_cells_that_can_be(case):
    assert command("check", "case.toml", "--set", "grid.upper=[3e-153,3e-153,0.0]")[0] == 0
    sets = ("--set", "grid.upper=[3e-18,3e-18,0.0]", "--set", "scheme.precision=fp32")
    assert command("check", "case.toml", *sets)[0] == 0


def test_a_constant_step_beyond_stability_is_told(case):
    told = 'time.dt = 5 is above 0.0458, up to which "ssp_rk3" is stable with this flow'
    _, out, _ = command("check", "case.toml", "--set", "time.dt=5.0")
    assert f"note: {told}\n" in out
    _, out, err = command("run", "case.toml", "--set", "time.dt=5.0", "--steps", "1", "--backend", "cpu", "--out", "r")
    assert told in out + err
    _, out, err = command("run", "case.toml", "--set", "time.dt=0.04", "--steps", "1", "--backend", "cpu", "--out", "s")
    assert "is above" not in out + err and "is above" not in command("check", "case.toml", "--set", "time.dt=0.04")[1]


def test_a_sponge_too_strong_for_the_step_is_told(case):
    """A decay rate times the step of up to 2.51 is stable."""
    layer = "{{axis='x', start=0.5, end=1.0, strength={}, state={{rho=1.0, p=0.7142857142857143}}}}"
    sets = ("--set", f"sponge=[{layer.format(150)}, {layer.format(152)}]", "--set", "time.cfl=0.5")
    told = 'sponge.1.strength = 152 is above 151, up to which "ssp_rk3" is stable with steps of 0.0167'
    _, out, _ = command("check", "case.toml", *sets)
    assert f"note: {told}\n" in out and "sponge.0.strength" not in out
    _, out, err = command("run", "case.toml", *sets, "--steps", "1", "--backend", "cpu", "--out", "r")
    assert told in out + err and "sponge.0.strength" not in out + err


@pytest.mark.parametrize("key", ["time.cfl", "time.viscous_cfl"])
def test_a_cfl_number_that_moves_nothing(case, key):
    for verb in ("check", "run"):
        status, _, err = command(verb, "case.toml", "--set", f"{key}=1e-300")
        assert status == 2 and f"{key} = 1e-300: must be" in err


@pytest.mark.parametrize("words", [("run", "case.toml"), ("bench",), ("launch", "-n", "1", "--dry-run", "case.toml")])
def test_far_more_threads_than_cores(case, words):
    status, _, err = command(*words, "--threads", "1000000")
    most = MOST_ON_A_CORE * len(os.sched_getaffinity(0))
    assert status == 2 and f"give {most} or fewer" in err and "Traceback" not in err
    assert command("launch", "-n", "1", "--dry-run", "case.toml", "--threads", str(most))[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sodd",), 'no bundled case "sodd"'),
        (("case.toml", "--set", "time.ned=1"), "unknown key"),
        (("case.toml", "--set", "output.variables=['mahc']"), "mahc"),
        (("case.toml", "--set", 'boundary=[{faces=["imin"], type="slip-wall"}]'), "no boundary condition"),
        (("case.toml", "--weights", "1,2,3"), "weights"),
        (("case.toml", "--transport", "pigeon"), 'there is no transport "pigeon"'),
        (("case.toml", "--rebalance", "often"), "rebalance"),
        (("case.toml", "--out", "there"), "holds a run already"),
        (("case.toml", "--set", "grid.n=[7,7,1]"), "ranks are too many"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would(case, tmp_path, monkeypatch, words, message):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "run.json").write_text("{}")
    monkeypatch.setattr("hiresx.launch.mpi_library.find", lambda given=None: (None, None))
    status, out, err = command("launch", "-n", "2", "--backend", "cpu", "--dry-run", *words)
    assert status == 2 and message in err and out == ""


def test_the_limit_on_open_files_is_named(case):
    code = "from hiresx.cli import main\nheld = []\n"
    code += "while True:\n try: held.append(open('case.toml'))\n except OSError: break\n"
    code += "for file in held[-3:]: file.close()\nmain(['run', 'case.toml', '--backend', 'cpu'])"
    limit = (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
    )  # fmt: skip
    assert done.returncode == 2 and "too many files are open" in done.stderr and "ulimit -n" in done.stderr


def test_a_library_that_the_limit_on_open_files_stops():
    error = describe(ImportError("libblas.so.3: cannot open shared object file: Too many open files", name="numpy"))
    assert error is not None and error.message == "too many files are open" and "ulimit -n" in error.hint
