"""The command line: commands, exit statuses, JSON, errors in one form. Simulation, verify, bench are stood in for."""

import dataclasses
import errno
import importlib
import inspect
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import types

import pytest

import hiresx
import hiresx.simulation.watchdog  # stays where `simulation` is stood in for
from hiresx import cli
from hiresx.case.toml import dumps
from hiresx.cli import doctor, post, terminal
from hiresx.cli.app import COMMANDS
from hiresx.cli.look_options import LookOptions
from hiresx.errors import HiresxError
from hiresx.launch import mpi_library

CASE = {
    "title": "box",
    "grid": {"generator": "box", "n": [8, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x", "y"]},
    "time": {"end": 1.0},
    "initial": {"state": {"rho": 1, "p": 0.7}},
    "boundary": [{"faces": ["imin", "imax", "jmin", "jmax"], "type": "periodic"}],
    "presets": {"quick": {"time": {"end": 0.1}}},
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty working folder that holds the case `box`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "case.toml").write_text(dumps(CASE))
    return tmp_path


@pytest.fixture
def hiresx_command(capsys):
    """Runs a command line in this process: (exit status, stdout, stderr)."""

    def run(*arguments):
        status = cli.execute([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


def stand_in(monkeypatch, name, **content):
    module = types.ModuleType(f"hiresx.{name}")
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, f"hiresx.{name}", module)
    monkeypatch.setattr(hiresx, name, module, raising=False)


def simulation(monkeypatch, status="finished", error=None, before=None):
    """Stands in for hiresx.simulation; returns what it was asked."""
    asked = {}

    class Simulation:
        def __init__(
            self, case, backend="auto", out=None, comm=None, transport="auto", weights=None, bind=True, rebalance="auto"
        ):
            listening = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(listening)
            asked.update(case=case, backend=backend, out=out, heard=listening != -1)
            self.case, self.out, self.step_count = case, out, 0
            if before is not None:
                raise before
            print("compiling")

        def run(self, steps=None):
            asked["steps"] = steps
            self.step_count += steps or 7
            (asked["out"] / "run.json").write_text(json.dumps({"status": status, "steps": steps or 7}))
            if error is not None:
                raise error

    plan = {
        "points": 64, "reals_per_padded_point": 41, "bytes_per_point": 376, "memory_bytes": 18089752, "dt": 0.01,
        "variables": ["rho", "rho_u"], "plans": {"cpu": "pencils", "cuda": "fused"}, "notes": [], "additions": [],
        "compact_bytes_per_point": 268.0,
        "integrator": {
            "name": "ssp_rk3", "order": 3, "stages": 3, "reals_per_padded_point": 5, "cfl": 1.375, "viscous_cfl": 0.998,
            "steady": False,
            "implicit": False,
        },
        "steps": 12345, "ns_per_point_rhs": 12.5, "rate_from": "hiresx bench", "seconds": 283.816,
    }  # fmt: skip
    monkeypatch.setattr("hiresx.estimate.estimate", lambda case, grid=None: plan)
    stand_in(monkeypatch, "simulation", Simulation=Simulation)
    return asked


# --- start


def test_help_imports_nothing_heavy():
    """What makes it quick; how long it takes is the machine's."""
    command = [sys.executable, "-c", "from hiresx.cli import main; main(['--help'])"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"})
    assert done.returncode == 0 and all(name in done.stdout for name in COMMANDS)
    listing = "import sys; from hiresx.cli import execute; execute(['--help']); print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True).stderr.split()
    heavy = {"numpy", "scipy", "pydantic", "netCDF4", "h5py", "matplotlib", "cupy", "cffi", "mpi4py", "vtk"}
    assert not heavy & set(loaded)
    # of the project itself only what the command line is made of
    own = {name.split(".")[1] for name in loaded if name.startswith("hiresx.")}
    assert "cli" in own and not own & {"case", "grid", "decomposition", "device", "output", "solver", "simulation"}, own


def test_import_is_light_and_names_resolve_on_use():
    code = "import sys, hiresx; print('numpy' in sys.modules, hiresx.Case.__name__, hiresx.load.__name__, dir(hiresx))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("False Case load") and "Simulation" in done.stdout
    with pytest.raises(AttributeError):
        hiresx.nothing  # noqa: B018


def test_version_and_bare_command(hiresx_command):
    assert hiresx_command("--version") == (0, f"hiresx {hiresx.__version__}\n", "")
    status, out, _ = hiresx_command()
    assert status == 0 and "planar-jet" in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rnu"], ['no command "rnu"', 'did you mean "run"?']),
        (["run", "sod", "--presett", "a"], ['no option "--presett"', "--preset"]),
        (["verify", "--zzz"], ['no option "--zzz"', "see hiresx verify --help"]),
        (["run"], ["Missing argument", "see hiresx run --help"]),
        (["post", "slice"], ["Missing argument", "see hiresx post slice --help"]),
        (["post", "slice", "a", "p", "--zzz"], ["--zzz", "see hiresx post slice --help"]),
        (["post", "slyce"], ['no command "slyce"', 'did you mean "slice"']),
        (["run", "sod", "--steps", "few"], ["--steps", "see hiresx run --help"]),
        (["check", "sod", "--set", "scheme.flux=hll"], ['did you mean "hllc"? choices: hllc, ', "van_leer"]),
        (["check", "sod", "--set", "scheme.plan=fused"], ["did you mean plan, which belongs to no table?"]),
        (["post", "jet", "a", "--from", "nan"], ["--from nan is not a finite number", "leave the option out"]),
        (["plot", "a", "--width", "inf"], ["--width inf is not a finite number"]),
        (["run", "sodd"], ['no bundled case "sodd"', 'did you mean "sod"?']),
        (["run", "sod", "--set", "time.ned=1"], ["--set time.ned = 1: unknown key", 'did you mean "end"?']),
        (["run", "sod", "--set", "output.variables=['mahc']"], ["mahc", "mach"]),
        (["new", "sodd"], ['did you mean "sod"?']),
        (["plot", "nowhere"], ["nowhere"]),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_faults(hiresx_command, monkeypatch, place, arguments, expected, as_json):
    simulation(monkeypatch)
    status, out, err = hiresx_command(*arguments, *["--json"] * as_json)
    assert status == 2 and not (place / "runs").exists()
    if as_json:
        fault = json.loads(out)
        assert set(fault) == {"error", "hint", "mend"} and fault["mend"] == fault["hint"]
        text = f"{fault['error']} {fault['hint']}"
    else:
        assert out == "" and err.startswith("error: ")
        text = err
    assert all(part in text for part in expected), text


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("a valid integer, unable to parse string as an integer", "a whole number"),
        ("a valid number, unable to parse string as a number", "a number"),
        ("greater than or equal to 1", "at least 1"),
    ],
)
def test_wrong_numbers_of_options_are_described_plainly(theirs, ours):
    """By whatever version of Typer is here, some of which hand on pydantic's words."""
    error = types.SimpleNamespace(format_message=lambda: f"Invalid value for '--steps': Input should be {theirs}")
    assert cli._usage(error, ["run"]) == (f"Invalid value for '--steps': must be {ours}", "see hiresx run --help")


def test_a_command_of_a_command_that_is_not_given(hiresx_command):
    status, out, err = hiresx_command("post")
    assert status == 2 and "error: no command is given\n  see hiresx post --help" in out + err


# --- run


def test_run_makes_a_folder_of_its_own(hiresx_command, monkeypatch, place):
    asked = simulation(monkeypatch)
    status, out, _ = hiresx_command("run", "box", "--preset", "quick", "--backend", "cpu", "--steps", 5)
    assert status == 0 and "hiresx plot runs/box-quick-1" in out
    assert asked["backend"] == "cpu" and asked["steps"] == 5 and asked["case"].time.end == 0.1
    assert asked["heard"], "one signal ends a rank that waits for another one while the run is set up, too"
    assert hiresx_command("run", "box", "--preset", "quick")[0] == 0
    assert hiresx_command("run", "box")[0] == 0
    assert sorted(path.name for path in (place / "runs").iterdir()) == ["box-1", "box-quick-1", "box-quick-2"]


def test_run_never_overwrites_a_run(hiresx_command, monkeypatch, place):
    simulation(monkeypatch)
    assert hiresx_command("run", "box", "--out", place / "here")[0] == 0
    status, _, err = hiresx_command("run", "box", "--out", place / "here")
    assert status == 2 and "holds a run already" in err


def test_run_json_is_the_record(hiresx_command, monkeypatch, place):
    simulation(monkeypatch)
    status, out, err = hiresx_command("run", "box", "--json")
    assert status == 0 and json.loads(out) == {"directory": "runs/box-1", "status": "finished", "steps": 7}
    assert "compiling" in err


def test_run_that_blows_up(hiresx_command, monkeypatch, place):
    simulation(monkeypatch, "failed", HiresxError("density is negative at step 3", "take a smaller cfl"))
    status, _, err = hiresx_command("run", "box")
    assert status == 3 and "density is negative" in err and "Traceback" not in err
    status, out, _ = hiresx_command("run", "box", "--json")
    assert status == 3 and json.loads(out)["directory"] == "runs/box-2"
    simulation(monkeypatch, "failed")
    status, _, err = hiresx_command("run", "box")
    assert status == 3 and "the run is failed" in err and "runs/box-3" in err


def test_run_that_cannot_begin_leaves_nothing(hiresx_command, monkeypatch, place):
    simulation(monkeypatch, before=HiresxError("no C++ compiler", "apt install g++"))
    status, _, err = hiresx_command("run", "box", "--out", "here")
    assert status == 2 and "apt install g++" in err and not (place / "here").exists()


def test_interruption(hiresx_command, monkeypatch, place):
    """Of this process, or of another rank, of which the record alone knows."""
    for number, error in enumerate((KeyboardInterrupt(), None), 1):
        simulation(monkeypatch, "interrupted", error)
        status, _, err = hiresx_command("run", "box")
        assert status == 130 and f"what was computed is in runs/box-{number}" in err
    simulation(monkeypatch, before=KeyboardInterrupt())
    status, out, _ = hiresx_command("run", "box", "--out", "box", "--json")
    assert (place / "box" / "case.toml").exists() and status == 130 and json.loads(out)["error"] == "interrupted"


def test_output_folder_that_cannot_be_written(hiresx_command, monkeypatch, place):
    asked = simulation(monkeypatch)
    (place / "file").write_text("")
    status, _, err = hiresx_command("run", "box", "--out", place / "file" / "sub")
    assert status == 2 and "file, not a directory" in err and not asked
    (place / "runs").write_text("")
    assert hiresx_command("run", "box")[0] == 2 and not asked


def test_read_only_output_folder(hiresx_command, monkeypatch, place):
    asked = simulation(monkeypatch)
    locked = place / "locked"
    locked.mkdir(mode=0o555)
    # Permissions do not bind root; /proc does.
    target = "/proc/self/run" if os.geteuid() == 0 else locked
    status, _, err = hiresx_command("run", "box", "--out", target)
    assert status == 2 and f"cannot write to {target}" in err and not asked


# --- the other commands


def test_new_lists_and_copies(hiresx_command, place):
    status, out, _ = hiresx_command("new")
    assert status == 0 and "sod" in out
    names = [case["name"] for case in json.loads(hiresx_command("new", "--json")[1])["cases"]]
    assert "sod" in names
    status, out, _ = hiresx_command("new", "sod")
    assert status == 0 and (place / "sod" / "case.toml").exists() and "hiresx run sod" in out
    status, _, err = hiresx_command("new", "sod")
    assert status == 2 and "exists already" in err
    report = json.loads(hiresx_command("new", "sod", "mine", "--json")[1])
    assert report["directory"] == "mine" and "mine/case.toml" in report["files"]


def test_check(hiresx_command, monkeypatch, place):
    simulation(monkeypatch)
    status, out, _ = hiresx_command("check", "box", "--preset", "quick")
    assert status == 0 and "box (quick)" in out and "376" in out and "imin" in out
    for words in ("18.1 MB", "376 bytes per point", "0.01 L/c_ref", "12,345", "12.5 ns per point", "about 4 min 44 s"):
        assert words in out, words
    words = out.partition("Plan")[2].replace("c_ref", "").splitlines()
    assert not [line for line in words if "_" in line and line.split()[0] not in ("variables", "integrator")]
    status, out, _ = hiresx_command("check", "box", "--preset", "quick", "--preset", "quick")
    assert status == 0 and "box (quick-quick)" in out
    report = json.loads(hiresx_command("check", "box", "--json")[1])
    assert report["points"] == 64 and report["plan"]["dt"] == 0.01 and report["case"]["time"]["cfl"] == 0.5
    assert {item["face"] for item in report["connections"]} == {"imin", "imax", "jmin", "jmax"}
    status, _, err = hiresx_command("check", "box", "--set", "boundary=[]")
    assert status == 2 and "imin" in err


def test_verify(hiresx_command, monkeypatch):
    asked = []

    def run(groups, backend, plan):
        asked.append((groups, backend, plan))
        print("running")
        return checks

    stand_in(monkeypatch, "verify", run=run)
    checks = [{"check": "free stream", "value": 1e-14, "threshold": 1e-12, "pass": True}]
    status, out, err = hiresx_command("verify", "free-stream", "--backend", "cpu", "--json")
    report = json.loads(out)
    assert status == 0 and {"backend": "cpu", "checks": checks, "pass": True}.items() <= report.items()
    assert report["command"] == "hiresx verify free-stream --backend cpu --json" and report["hardware"]["cpu"]
    assert asked == [(["free-stream"], "cpu", None)] and "running" in err
    checks.append(
        {"check": "cuts", "value": float("nan"), "threshold": 1e-12, "pass": None, "left_out": "no plan for it"}
    )
    status, out, _ = hiresx_command("verify", "--plan", "compact")
    assert status == 0 and "1 of 1 checks pass, 1 left out" in out and "no plan for it" in out
    assert asked[-1] == ([], "auto", "compact")
    checks.pop()
    checks.append({"check": "order", "value": float("nan"), "threshold": 4.8, "pass": False})
    status, out, _ = hiresx_command("verify")
    assert status == 1 and "1 of 2 checks pass" in out and "FAIL" in out
    assert json.loads(hiresx_command("verify", "--json")[1])["checks"][1]["value"] is None


def test_plot(hiresx_command, monkeypatch, place):
    (place / "made").mkdir()
    monkeypatch.setattr("hiresx.output.show.run_plot.plot_run", lambda directory, **options: [directory / "rho.png"])
    assert hiresx_command("plot", "made") == (0, "wrote made/rho.png\n", "")
    assert json.loads(hiresx_command("plot", "made", "--json")[1]) == {"pictures": ["made/rho.png"]}


# --- doctor


@pytest.mark.slow
def test_doctor_names_what_is_missing(hiresx_command, monkeypatch, place):
    probes = []

    def python(code):
        probes.append(code)
        return (None, "ModuleNotFoundError: No module named 'x'") if "matplotlib" in code else ("1.0", "")

    monkeypatch.setattr(doctor, "_python", python)
    monkeypatch.setattr(mpi_library, "library", lambda: mpi_library.MpiLibrary("", "4", "", "1.0"))
    monkeypatch.setenv("HIRESX_CACHE", str(place / "cache"))
    report = json.loads(hiresx_command("doctor", "--json")[1])
    found = {finding["item"]: finding for finding in report["findings"]}
    assert (
        found["matplotlib"]["found"] is None
        and found["matplotlib"]["hint"] == "pip install '.[plot]' in the clone of HiresX"
    )
    assert found["MPI library"]["found"] == "MPI 4" and found["cache folder"]["found"] == str(place / "cache")
    assert report["ready"] == all(finding["found"] for finding in report["findings"] if finding["required"])

    monkeypatch.setattr(
        doctor, "_python", lambda code: (None, "No module named 'hiresx.rhs'") if "hiresx" in code else ("1", "")
    )
    status, out, _ = hiresx_command("doctor")
    assert status == 1 and "No module named 'hiresx.rhs': install it again" in out
    monkeypatch.setattr(doctor, "_python", python)

    monkeypatch.setenv("CXX", "no-such-compiler")
    status, out, _ = hiresx_command("doctor")
    assert status == 1 and "install g++" in out and "C++ compiler" in out
    monkeypatch.delenv("CXX")
    (place / "file").write_text("")
    monkeypatch.setenv("HIRESX_CACHE", str(place / "file" / "cache"))
    status, out, _ = hiresx_command("doctor")
    assert status == 1 and "HIRESX_CACHE" in out


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_doctor_on_this_machine():
    found = {finding.item: finding for finding in doctor._compiler()}
    assert all(finding.found for finding in found.values()), found
    assert doctor._answer(["g++"], "#error no\n") == 0
    assert doctor._python("import nothing_of_that_name")[1].startswith("ModuleNotFoundError")


def test_who_reads_no_further_hears_no_more(tmp_path):
    """`hiresx run --help | head -1`"""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hiresx", "run", "--help"], stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_closed_streams_are_no_fault(tmp_path):
    """hiresx new sod X >&- <&-: the first files that are opened must not take their numbers either."""
    words = [sys.executable, "-m", "hiresx", "new", "sod", str(tmp_path / "mine")]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *words], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "mine/case.toml").is_file()
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *words[:3], "--help"])
    assert done.returncode == 0


class Full(io.StringIO):
    """A stream on a device that is full."""

    def flush(self):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_output_that_cannot_be_written_is_named(monkeypatch, capfd):
    for words in (["new"], ["check", "sod", "--json"]):
        monkeypatch.setattr(sys, "stdout", Full())
        assert cli.execute(words) == 2
        err = " ".join(capfd.readouterr().err.split())
        assert "error: standard output cannot be written: No space left on device see where the output goes" in err
    monkeypatch.setattr(sys, "stdout", Full())
    terminal.say("wrote runs/x", needed=False)  # what was done is done
    assert "note: standard output cannot be written: No space left on device" in capfd.readouterr().err
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(HiresxError, match="standard output cannot be written"):
        terminal.say("kind  run")


def test_options_of_an_analysis_are_its_arguments():
    """`hiresx post` hands them on by their names, but for groups that make other arguments."""
    made = {"which": post.Frame, "look": LookOptions, "observers": post.Observers}
    checked = 0
    for command in post.post.registered_commands:
        given = set(inspect.signature(command.callback).parameters) - {"out", "json"}
        module = str(command.name).replace("-", "_")
        taken = set(inspect.signature(getattr(importlib.import_module(f"hiresx.post.{module}"), module)).parameters)
        for name, group in made.items():
            given -= {field.name for field in dataclasses.fields(group)} - taken if name in taken else set()
        assert given <= taken, (command.name, given - taken)
        checked += 1
    assert checked == 16
