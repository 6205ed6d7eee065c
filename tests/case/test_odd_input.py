"""What nobody means and somebody types: values of the wrong kind, names that no file can have, numbers without end,
bytes that are no text, libraries that are broken. One clear error each, never a traceback."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from case_texts import boundary, box

from hiresx import HiresxError, Simulation, load
from hiresx.base.whole_files import write_text
from hiresx.case.bundle import bundled_directory
from hiresx.cli import execute
from hiresx.device import rates
from hiresx.output.show.estimate import Estimator

LONG, HUGE = "x" * 300, "1" + 30 * "0"
CASE = box(
    "[16, 16, 1]", "[1.0, 1.0, 0.0]", "steps = 2", "[initial]\nstate = { rho = 1.0, p = 0.7 }",
    boundary("slip-wall"), "[presets.other]\ntime = { steps = 3 }",
    head='[gas]\nreynolds = 100.0\nviscosity = { law = "power" }',
)  # fmt: skip


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("case.toml").write_text(CASE)
    return tmp_path


def said(*words: str) -> tuple[int, str]:
    """Exit status and all output of a command, which must not raise."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = execute(list(words))
    return status, out.getvalue() + err.getvalue()


# --- values of the wrong kind

WRONG = ("[]", '["box"]', "{}", '{a = "box"}', "3", "1.5", "true", "[[1]]", "nan", '""', '"\\u0000"', "2020-01-01")


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize(
    "key",
    ["grid", "grid.generator", "grid.file", "gas", "gas.viscosity", "gas.viscosity.law", "boundary.0.type", "time"],
)
def test_a_key_that_decides_about_others(key, value, place):
    """In the file with presets and above it, in a preset, by --set."""
    texts = [f"--set={key}={value}"]
    for words in (["check", "case.toml", *texts], ["check", "case.toml", "--preset", "other", *texts]):
        status, text = said(*words)
        # an empty table changes nothing of a table
        assert (status == 2 and text.startswith("error: ")) or value == "{}", text
    named = key == "grid.file" and value.startswith('"')  # no file is looked for before its preset is asked for
    if key not in ("boundary.0.type", "time") and value != "{}" and not named:
        Path("case.toml").write_text(f"{CASE}{key} = {value}\n")  # in the preset, which need not be the one asked for
        status, text = said("check", "case.toml")
        assert status == 2 and "presets.other" in text, text


def test_overrides_as_texts_and_as_a_dictionary():
    texts = load("case.toml", overrides=["time.steps=7", "grid.n=[8, 9, 1]", "boundary.0.type=symmetry"])
    table = load(
        Path("case.toml"),
        overrides={"time.steps": np.int64(7), "grid.n": (8, np.array(9), 1), "boundary.0.type": "symmetry"},
    )
    assert texts == table and table.time.steps == 7
    assert load("case.toml", overrides={"gas.viscosity": {"law": "sutherland"}}).gas.viscosity.law == "sutherland"
    for wrong in ("time.steps=7", [("time.steps", 7)], {3: 4}, {"time..steps": 3}, {"time.steps": "many"}, [b"a=1"]):
        with pytest.raises(HiresxError, match=r"overrides|--set"):
            load("case.toml", overrides=wrong)


def test_an_override_is_one_value():
    assert load("case.toml", overrides=["title=1\nb = 2"]).title == "1\nb = 2"


def test_a_simulation_takes_a_path(place):
    Path("case.toml").write_text(CASE[CASE.index("[grid]") :])  # inviscid: its kernels are compiled for others too
    for case in (Path("case.toml"), place):
        assert Simulation(case, backend="cpu").case.time.steps == 2
    with pytest.raises(HiresxError, match="no such file"):
        Simulation(Path("none/case.toml"), backend="cpu")


# --- names and numbers without end


@pytest.mark.parametrize(
    "words",
    [
        ("run", "sod", "--out", LONG),
        ("run", "sod", "--out", f"runs/{LONG}/a"),
        ("run", LONG),
        ("run", f"./{LONG}.toml"),
        ("run", "--restart", LONG),
        ("check", f"{LONG}/case.toml"),
        ("new", "sod", LONG),
        ("plot", LONG),
        ("info", LONG),
        ("history", LONG),
        ("history", LONG, "residual"),
        ("diff", LONG, "case.toml"),
        ("topo", "--from", LONG),
        ("launch", "sod", "--slurm", LONG, "--ranks-per-node", "1"),
        ("check", "case.toml", "--set", f'grid={{file="{LONG}"}}'),
        ("check", "case.toml", "--set", 'grid={file="a\\u0000b"}'),
        ("check", "case.toml", "--set", f'probe=[{{name="{LONG}", x=0.5}}]'),
        ("check", "case.toml", "--set", f'output.subset=[{{name="{LONG}", plane="k0"}}]'),
        ("check", "case.toml", "--set", f"grid.n=[{HUGE},1,1]"),
        ("check", "case.toml", "--set", "gas.reynolds=1e-320"),
        ("check", "case.toml", "--set", "time.cfl=1e-320", "--set", "time.end=1e300", "--set", "gas.gamma=1e308"),
        ("check", "case.toml", "--ranks", HUGE),
        ("launch", "-n", HUGE, "sod", "--dry-run"),
        ("launch", "sod", "--slurm", "s.sh", "--ranks-per-node", HUGE),
    ],
    ids=lambda words: " ".join(words).replace(LONG, "LONG").replace(HUGE, "HUGE"),
)
def test_names_and_numbers_without_end(words):
    status, text = said(*words)
    assert status == 2 and re.search("^error: ", text, re.MULTILINE), text
    assert not list(Path().glob("runs/*/*"))


def test_steps_without_end_are_not_counted():
    status, text = said("check", "case.toml", "--set", "time.end=1e308", "--set", "time.steps=inf")
    assert status == 2
    Path("case.toml").write_text(CASE.replace("[time]\nsteps = 2", "[time]\nend = 1e308"))
    status, text = said("check", "case.toml", "--json")
    assert status == 0 and json.loads(text)["plan"]["steps"] is None


@pytest.mark.parametrize(
    "content", ["[]", "3", '{"cpu/fp64/viscous": 3}', '{"cpu/fp64/viscous": {"from": "x"}}', "\xff"]
)
def test_rates_that_are_damaged_are_not_known(content, place, monkeypatch):
    monkeypatch.setenv("HIRESX_CACHE", str(place / "cache"))
    rates._file().write_text(content, encoding="latin-1")
    assert rates.known_rate("cpu", True, "fp64") is None
    assert said("check", "case.toml")[0] == 0


def test_a_cache_that_cannot_be_used_costs_a_check_its_estimate_and_a_run_all(place, monkeypatch):
    cache = place / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setenv("HIRESX_CACHE", str(cache))
    words = [f"the kernel cache {cache} is not used: it can be written to by everybody", f"chmod go-w {cache}"]
    for verb, expected, kind in (("check", 0, "note: "), ("run", 2, "error: ")):
        status, text = said(verb, "case.toml")
        assert status == expected and text.count(kind + words[0]) == 1 and words[1] in text, text
    assert not list(cache.iterdir())


# --- bytes that are no text, in everything that is read


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that left one of everything."""
    run = tmp_path_factory.mktemp("finished") / "run"
    sets = (
        "output.formats=['netcdf','vtk']",
        "average={every=1}",
        "extrema={every=1}",
        'probe=[{name="p",x=0.5,every=1}]',
    )
    words = [word for text in sets for word in ("--set", text)]
    status, text = said("run", "sod", "--steps", "2", "--backend", "cpu", "--out", str(run), *words)
    assert status == 0, text
    return run


KINDS = ("run.json", "history/extrema.nc", "history/p.nc", "averages.nc", "fields_000000.nc", "fields.pvd",
         "vtk/fields_000000.vtm", "case/case.toml", "case/case.py")  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.slow
def test_a_byte_that_is_no_text(finished, name, place):
    content = (finished / name).read_bytes()
    words = [match.start() for match in re.finditer(rb"[A-Za-z_]{4,}", content)]
    for spot in words[:: max(1, len(words) // 12)]:
        (place / "run").exists() and shutil.rmtree(place / "run")
        shutil.copytree(finished, place / "run")
        file = place / "run" / name
        file.write_bytes(content[: spot + 1] + b"\xff" + content[spot + 2 :])
        for words_ in (("info", str(file)), ("info", "run"), ("history", "run"), ("check", "run/case")):
            status, text = said(*words_)
            assert status == 0 or (status == 2 and "error: " in text), (words_, spot, text)


@pytest.mark.parametrize(
    "content", ["[]", "null", '{"case": 3}', '{"case": {"output": []}}', '{"ranks": 3, "restarts": 1}']
)
def test_a_record_of_another_shape(finished, content, place):
    shutil.copytree(finished, place / "run")
    Path("run/run.json").write_text(content)
    for words in (("info", "run"), ("diff", str(finished), "run"), ("history", "run")):
        status, text = said(*words)
        assert status in (0, 1) or (status == 2 and "error: " in text), (words, text)


# --- what is executed

MINE = "def mine(simulation):\n    return {'one': 1.0}\n"


@pytest.mark.parametrize(
    ("words", "executed"),
    [
        (("check", "run/case"), True),
        (("info", "run/case/case.toml"), True),
        (("plot", "run"), True),
        (("run", "--restart", "run", "--set", 'monitors=["mine"]'), True),
        (("info", "run"), False),
        (("history", "run"), False),
        (("history", "run", "residual"), False),
        (("diff", "run", "run"), False),
        (("info", "run/fields_000000.nc"), False),
        (("info", "run/checkpoints"), False),
    ],
)
def test_what_is_executed_is_what_the_case_file_page_says(finished, words, executed, place):
    """sod's initial state names a function, and has an exact solution that is drawn."""
    shutil.copytree(finished, place / "run")
    file = place / "run" / "case" / "case.py"
    file.write_text(f'{file.read_text()}\nopen({str(place / "was-here")!r}, "w").close()\n{MINE}')
    said(*words)
    assert (place / "was-here").exists() == executed


# --- libraries that are broken

LIBRARIES = ("cupy", "cupy_backends", "matplotlib", "mpi4py", "pynvml", "scipy")


def broken(place: Path, *names: str) -> dict[str, str]:
    """The environment of a Python in which these libraries raise something else than ImportError."""
    folder = place / "broken"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text('raise RuntimeError("the library was built for another machine")\n')
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


def command(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, "-m", "hiresx", *words], env=environment, capture_output=True, text=True, timeout=300
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.slow
def test_a_run_needs_no_library_that_is_optional(place):
    Path("case.toml").write_text(CASE[CASE.index("[grid]") :])  # inviscid: its kernels are compiled for others too
    environment = broken(place, *LIBRARIES)
    done = command(environment, "run", "case.toml", "--backend", "auto", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert command(environment, "check", "case.toml", "--ranks", "3").returncode == 0
    assert command(environment, "info", "out").returncode == 0
    assert command(environment, "topo").returncode in (0, 2)


@pytest.mark.parametrize(
    ("words", "library", "hint"),
    [
        (("plot", "RUN"), "matplotlib", ".[plot]"),
        (("check", "grid.toml"), "h5py", "pip install h5py"),
        (("launch", "-n", "2", "case.toml"), "mpi4py", ".[mpi]"),
    ],
)
def test_what_needs_a_broken_library_says_so(words, library, hint, place, finished):
    Path("grid.cgns").write_bytes(b"\x89HDF\r\n\x1a\n")
    Path("grid.toml").write_text(re.sub(r"(?s)generator.*?\[time\]", 'file = "grid.cgns"\n[time]', CASE))
    done = command(broken(place, library), *(str(finished) if word == "RUN" else word for word in words))
    assert done.returncode == 2
    assert library in done.stderr and "built for another machine" in done.stderr and hint in done.stderr, done.stderr


# --- rates


def test_a_rate_is_never_negative():
    """What was aside after the last step is no time of steps, and a run that goes back begins to count anew."""
    estimator = Estimator(end=1.0)
    for step in range(1, 4):
        estimator.update(float(step), step, 0.1 * step)
    estimator.aside(100.0)
    assert estimator.overall_seconds_per_step == pytest.approx(1.0)
    estimator.update(200.0, 1, 0.1)
    assert estimator.overall_seconds_per_step is None and estimator.seconds_per_step is None
    estimator.update(202.0, 2, 0.15)
    assert estimator.overall_seconds_per_step == pytest.approx(2.0)
    assert estimator.remaining() > 0


# --- what is no regular file


def test_what_is_no_file_is_called_what_it_is():
    os.mkfifo("pipe")
    Path("empty").touch()
    for command in ("check", "info", "plot", "run --restart", "diff", "history", "new --from"):
        for name, kind in (("/dev/null", "a device"), ("pipe", "a pipe"), ("empty", "empty")):
            status, text = said(*command.split(), name, *(["copy"] if command[:2] in ("di", "ne") else []))
            assert status == 2 and kind in text, (command, name, text)


def test_no_file_comes_in_the_place_of_a_pipe():
    os.mkfifo("pipe")
    with pytest.raises(HiresxError, match="cannot write pipe: it is a pipe"):
        write_text("pipe", "x")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)  # whoever opens it to write does not wait
    status, text = said("launch", "--slurm", "pipe", "--ranks-per-node", "4", "sod")
    os.close(reader)
    assert status == 2 and "cannot write pipe: it is a pipe" in text and Path("pipe").is_fifo()


def test_functions_may_begin_with_a_byte_order_mark_and_a_record_holds_a_case():
    for name in ("case.toml", "case.py"):
        source = bundled_directory("sod") / name
        Path(name).write_bytes(b"\xef\xbb\xbf" + source.read_bytes().replace(b"\n", b"\r\n"))
    assert said("check", "case.toml")[0] == 0 and said("info", "case.toml")[0] == 0
    Path("case.py").write_bytes(b"\0")
    assert "line None" not in said("check", "case.toml")[1]
    for case in (3, {"grid": 3}):
        Path("run.json").write_text(json.dumps({"case": case}))
        for words in (["post", "jet", "."], ["info", "."]):
            status, text = said(*words)
            assert status == 2 and "run.json is not a run record: its case is not valid" in text, text
