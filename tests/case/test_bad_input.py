"""What a user gets wrong, through the command line: one clear error that names place and mend, no traceback, a non-zero
exit status, nothing left behind."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from case_texts import box
from command_line import command

from hiresx import Simulation
from hiresx.case import load
from hiresx.device.compiler import COMPILING
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, build, write_plot3d

COMMAND = [sys.executable, "-c", "from hiresx.cli import main; main()"]
HEAD = box(
    "[16, 16, 1]", "[1, 1, 0]", "steps = 3", "[initial]\nstate = { rho = 1.0, u = 0.3, p = 0.7 }",
    lower="[0, 0, 0]", head='title = "square"',
)  # fmt: skip
STATE = 'type = "far-field"\nstate = { rho = 1.0, u = 0.3, p = 0.7 }\n'


def condition(keys: str, kind: str = STATE) -> str:
    return f"[[boundary]]\n{keys}\n{kind}"


SQUARE = HEAD + condition('faces = "all"')


@pytest.fixture
def place(tmp_path):
    """A folder that holds square.toml."""
    (tmp_path / "square.toml").write_text(SQUARE)
    return tmp_path


def hiresx(place: Path, *arguments, status: int, **process) -> str:
    """What the command line writes to stderr when it is started in `place`; its exit status must be `status`. In a
    process of its own where that needs an `environment` or a limit (`preexec_fn`)."""
    if not process:
        found, out, err = command(*arguments, cwd=place)
    else:
        environment = os.environ | process.pop("environment", {})
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)], cwd=place, capture_output=True, text=True, env=environment, timeout=120,
            **process,
        )  # fmt: skip
        found, out, err = done.returncode, done.stdout, done.stderr
    assert found == status, (found, out, err)
    assert "Traceback" not in out + err
    return err


def refused(place: Path, *arguments, status: int = 2, left: str | None = None, **options) -> str:
    """The same for a command that must fail: its message. No new files may be there but complete ones of the run
    folder `left`."""
    before = set(place.rglob("*"))
    text = hiresx(place, *arguments, status=status, **options)
    assert text.count("error: ") == 1
    message, _, hint = text[text.index("error: ") :].strip().partition("\n")
    assert message.removeprefix("error: ").strip() and hint.strip(), text
    new = {path.relative_to(place) for path in set(place.rglob("*")) - before}
    assert {path.parts[0] for path in new} == ({left} if left else set())
    assert not [path for path in new if path.suffix == ".part"]
    return text


def without(place: Path, *modules: str) -> dict[str, str]:
    """The environment of a Python in which `modules` are not installed."""
    folder = place / "hidden"
    folder.mkdir()
    lines = [f"sys.modules[{module!r}] = None" for module in modules]
    (folder / "sitecustomize.py").write_text("\n".join(["import sys", *lines, ""]))
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


# --- the case file


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (SQUARE.replace("steps", "stpes"), ["square.toml: time.stpes = 3: unknown key", 'did you mean "steps"?']),
        (SQUARE.replace("steps = 3", 'steps = "few"'), ['square.toml: time.steps = "few"', "whole number"]),
        (SQUARE.replace("[16, 16, 1]", "[16, 16]"), ["square.toml: grid.n", "3"]),
        (SQUARE.replace("far-field", "far-feild"), ["square.toml: boundary.0.type", 'did you mean "far-field"?']),
        (SQUARE.replace("[16, 16, 1]", "[16, 16, 1"), ["square.toml, line 5", "not valid TOML"]),
        (SQUARE.replace("rho = 1.0, u = 0.3, p = 0.7", "rho = -1.0, u = 0.3, p = 0.7", 1), ["initial.state.rho"]),
        (SQUARE.replace("[16, 16, 1]", "[16, 6, 1]"), ["block 'box'", "6 nodes in direction j", "at least 7"]),
    ],
    ids=["misspelt-key", "wrong-type", "wrong-length", "wrong-choice", "no-toml", "negative-density", "few-points"],
)
def test_case_file(place, text, parts):
    (place / "square.toml").write_text(text)
    said = refused(place, "run", "square.toml")
    assert all(part in said for part in parts), said


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--set", "time.clf=0.3"], ["--set time.clf", "unknown key", 'did you mean "cfl"?']),
        (["--set", "nothing=1"], ["--set nothing", "unknown key", "keys of a case"]),
        (["--set", "nope.x=1"], ["--set nope", "unknown key", "keys of a case"]),
        (["--set", "grid.n=[]"], ["grid.n = []: must have at least 3 entries\n"]),
        (["--set", "grid.upper=[1e-300, 1e-300, 0.0]"], ["extent of 1e-300 is so small", "another unit of length"]),
        (
            ["--set", "grid.periodic=['x']", "--set", "boundary.0.faces=['jmin', 'jmax']"],
            [
                "face imin: no boundary",
                '; where the flow repeats itself, faces = ["imin", "imax"] and type = "periodic"',
            ],
        ),
        (["--set", "boundary.3.type='slip-wall'"], ["--set boundary.3.type", "no entry 3"]),
        (["--set", "time.cfl"], ["time.cfl", "key=value"]),
        (["--set", "scheme.flux='roo'"], ["scheme.flux", 'did you mean "roe"?']),
        (["--preset", "quick"], ["quick"]),
        (
            ["--set", "grid.upper=[1e308, 1.0, 0.0]"],
            ["block 'box': x is ", "beyond 1e+50, at node (i, j, k) = (1, 0, 0)"],
        ),
        (["--steps", "0"], ["'--steps'", "1", "hiresx run --help"]),
        (["--set", "time.cfl=1e300"], ["time.cfl", "1e+300", "1000000"]),
        (["--gpu-map", "0,0"], ['no option "--gpu-map"', "hiresx topo plan has this option; see hiresx run --help"]),
        (["--backend", "gpu"], ['no backend "gpu"', "auto, cpu, cuda, emulated"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) and value[0].startswith("--") else "",
)
def test_options(place, arguments, parts):
    said = refused(place, "run", "square.toml", *arguments)
    assert all(part in said for part in parts), said


def test_unknown_backend_of_other_verbs(place):
    for verb in ("bench", "verify"):
        assert 'no backend "gpu"' in refused(place, verb, "--backend", "gpu")


# --- boundary patches

OTHERS = condition('faces = ["imax", "jmin", "jmax"]')
OUTFLOW = 'type = "supersonic-outflow"\n'


@pytest.mark.parametrize(
    ("patches", "parts"),
    [
        (
            condition('faces = ["imin"]\nrange = { j = [0, 10] }')
            + condition('faces = ["imin"]\nrange = { j = [8, 16] }', OUTFLOW)
            + OTHERS,
            ["face imin", "boundary.1", "boundary.0", "(i, j, k) = (0, 8, 0)", "range"],
        ),
        (
            condition('faces = ["imin"]\nrange = { j = [0, 10] }')
            + condition('faces = ["imin"]\nrange = { j = [12, 16] }', OUTFLOW)
            + OTHERS,
            ["face imin", "(i, j, k) = (0, 10, 0)", "add a [[boundary]]"],
        ),
        (OTHERS, ["face imin", "(i, j, k) = (0, 0, 0)", "the whole face", 'faces = ["imin"]']),
    ],
    ids=["overlap", "hole", "missing-face"],
)
def test_boundary_patches(place, patches, parts):
    (place / "square.toml").write_text(HEAD + patches)
    said = refused(place, "run", "square.toml")
    assert all(part in said for part in parts), said


# --- the grid file


@pytest.mark.parametrize("verb", ["run", "check"])
@pytest.mark.parametrize("fault", ["swapped", "tangled"])
def test_negative_jacobian(place, fault, verb):
    z, y, x = np.meshgrid(*[np.linspace(0, 1, 9)] * 3, indexing="ij")
    if fault == "swapped":
        x, hint, node = x[:, :, ::-1], "reverse one", (0, 4, 4)
    else:
        x, hint, node = x.copy(), "there", (5, 4, 4)
        x[4, 4, 4] += 0.3  # past the next node in i
    write_plot3d(place / "grid.xyz", Grid((Block("cube", x, y, z),)))
    text = SQUARE.replace(
        HEAD[HEAD.index("[grid]") : HEAD.index("[time]")], '[grid]\nfile = "grid.xyz"\nreverse = "keep"\n'
    )
    (place / "square.toml").write_text(text)
    said = refused(place, verb, "square.toml")
    assert "block 'block-1'" in said and hint in said and "-0.00" in said
    found = tuple(int(n) for n in re.search(r"\(i, j, k\) = \((\d+), (\d+), (\d+)\)", said).groups())
    # where all are negative to the same degree, round-off chooses the worst
    assert found == node or fault == "swapped"
    i, j, k = found
    assert f"(x, y, z) = ({x[k, j, i]:.6g}, {y[k, j, i]:.6g}, {z[k, j, i]:.6g})" in said


def test_grid_file_that_is_none(place):
    text = SQUARE.replace(HEAD[HEAD.index("[grid]") : HEAD.index("[time]")], '[grid]\nfile = "grid.xyz"\n')
    (place / "square.toml").write_text(text)
    assert "grid.xyz" in refused(place, "run", "square.toml")
    (place / "grid.xyz").write_bytes(b"\x08\x00\x00\x00 no grid")
    assert "grid.xyz" in refused(place, "run", "square.toml")


# --- what is not installed


def test_no_compiler(place):
    environment = {"PATH": str(place), "HIRESX_CACHE": str(place / "cache"), "CXX": ""}
    said = refused(place, "run", "square.toml", "--backend", "cpu", environment=environment)
    assert "no C++ compiler: g++ is not found" in said and "apt install g++" in said


def test_compiler_that_fails(place):
    environment = {"CXX": "false", "HIRESX_CACHE": str(place / "cache")}
    said = refused(place, "run", "square.toml", "--backend", "cpu", environment=environment)
    assert "no C++ compiler: false --version fails" in said


def test_no_cupy(place):
    environment = without(place, "cupy", "cupy_backends")
    said = refused(place, "run", "square.toml", "--backend", "cuda", environment=environment)
    assert "needs CuPy" in said and "pip install '.[cuda13]'" in said


def test_no_matplotlib(place):
    hiresx(place, "run", "square.toml", "--backend", "cpu", "--out", "out", status=0)
    said = refused(place, "plot", "out", environment=without(place, "matplotlib"))
    assert "matplotlib" in said and "pip install '.[plot]'" in said


@pytest.mark.parametrize("name", ["numpy", "netCDF4", "rich"])
def test_a_library_that_is_there_and_broken(place, name):
    """One error that names it and the command that mends it, whatever it raises; nothing is begun."""
    folder = place / "broken" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('raise RuntimeError("built for another machine")\n')
    paths = os.pathsep.join(filter(None, [str(folder.parent), os.environ.get("PYTHONPATH")]))
    said = refused(place, "run", "square.toml", environment={"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"})
    told = f"need[^ ]* {name}, which is installed but broken \\(RuntimeError: built for another machine\\)"
    assert re.search(told, said) and f"pip install --force-reinstall {name}" in said


def test_a_library_that_is_not_there(place):
    said = refused(place, "run", "square.toml", environment=without(place, "numpy"))
    assert "needs numpy, which is" in said and "--force-reinstall numpy" in said


# --- where nothing can be written


@pytest.mark.parametrize("target", ["square.toml/out", "/proc/out", "square.toml"])
def test_output_folder_that_cannot_be(place, target):
    said = refused(place, "run", "square.toml", "--backend", "cpu", "--out", target)
    assert f"cannot write to {target}: " in said


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_output_folder_without_permission(place):
    (place / "locked").mkdir(mode=0o555)
    said = refused(place, "run", "square.toml", "--backend", "cpu", "--out", "locked/out")
    assert "permission denied" in said


@pytest.mark.parametrize("words", [["--out", ""], ["--out="]])
def test_an_output_folder_without_a_name_is_not_this_one(place, words):
    for verb in ("run", "launch"):
        assert 'error: --out "" is empty' in refused(place, verb, "square.toml", "--backend", "cpu", *words)
    with pytest.raises(HiresxError, match="is not a run directory"):
        Simulation(place / "square.toml", "cpu", out="")


def at_most(size: int):
    """What a process does first that may not write a file of more than `size` bytes, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_disk_full_at_once(place):
    hiresx(place, "run", "square.toml", "--backend", "cpu", "--out", "before", status=0)  # compiled by now
    said = refused(place, "run", "square.toml", "--backend", "cpu", "--out", "a/b", preexec_fn=at_most(64), status=2)
    assert "cannot write a/b" in said and "largest size allowed" in said


def test_disk_full_while_fields_are_written(place):
    hiresx(place, "run", "square.toml", "--backend", "cpu", "--out", "before", status=0)
    said = refused(
        place, "run", "square.toml", "--backend", "cpu", "--out", "out", preexec_fn=at_most(8192), status=3, left="out"
    )
    assert "cannot write out/fields_grid.nc" in said and "what was computed is in out" in said
    assert json.loads((place / "out/run.json").read_text())["status"] == "failed"


def test_folder_with_a_run(place):
    hiresx(place, "run", "square.toml", "--backend", "cpu", "--out", "out", status=0)
    assert "holds a run already" in refused(place, "run", "square.toml", "--out", "out")


# --- runs that do not come to their end


def test_blow_up(place):
    case = place / "jump"
    case.mkdir()
    text = SQUARE.replace(HEAD[HEAD.index("[initial]") :], '[initial]\nfunction = "initial"\n')
    (case / "case.toml").write_text(text.replace("steps = 3", "steps = 50\ndt = 0.4"))
    (case / "case.py").write_text(
        "import numpy as np\n\n\ndef initial(x, y, z):\n"
        "    return 1.0, 0.3, 0.0, 0.0, np.where((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.05, 5.0, 0.7)\n"
    )
    said = refused(
        place, "run", "jump", "--backend", "cpu", "--out", "out", "--set", "monitor.every=1", status=3,
        left="out",
    )  # fmt: skip
    number = r"(-?[\d.e+-]+)"
    found = re.search(
        r"the flow blew up: (?:rho|p) = \S+ in block 'box' at node \(i, j, k\) = \((\d+), (\d+), 0\), "
        rf"\(x, y, z\) = \({number}, {number}, 0\), by the update of stage [123] of step (\d+), time {number}",
        said,
    )
    assert found and "lower time.dt" in said, said
    i, j, x, y, step, time = (float(group) for group in found.groups())
    assert x == pytest.approx(i / 15, rel=1e-5) and y == pytest.approx(j / 15, rel=1e-5)
    assert time == pytest.approx(0.4 * (step - 1)) and step < 50
    record = json.loads((place / "out" / "run.json").read_text())
    assert record["status"] == "failed" and record["steps"] == step - 1 and "blew up" in record["error"]


def interrupted(place: Path, ready, *arguments, environment=()) -> tuple[int, str]:
    """Exit status and stderr of a run that gets SIGINT as soon as `ready(stderr so far)` holds."""
    log = place / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*COMMAND, *arguments], cwd=place, stderr=stderr, env=os.environ | dict(environment)
        )  # fmt: skip
    try:
        end = time.monotonic() + 60
        while not ready(log.read_text()):
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        status = process.wait(timeout=60)
    finally:
        process.kill()
    said = log.read_text()
    assert "Traceback" not in said
    return status, said


def test_interrupt(place):
    status, said = interrupted(
        place, lambda said: "step 1 " in said, "run", "square.toml", "--backend", "cpu", "--out", "out",
        "--set", "time.steps=100_000_000",
    )  # fmt: skip
    assert status == 130 and "error: interrupted\n" in said and "what was computed is in out" in said
    record = json.loads((place / "out" / "run.json").read_text())
    assert record["status"] == "interrupted" and record["steps"] >= 1 and record["ended"]
    assert not [path for path in place.rglob("*") if path.name.endswith(".part")]


def test_interrupt_at_the_start(place):
    environment = without(place)
    (place / "hidden" / "typer.py").write_text("raise KeyboardInterrupt\n")  # the first long import
    assert hiresx(place, "run", "square.toml", status=130, environment=environment) == "error: interrupted\n"


def test_interrupt_while_compiling(place):
    compiler = place / "compiler"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] || exec sleep 60\n')
    compiler.chmod(0o755)
    cache = place / "cache"
    status, said = interrupted(
        place, lambda said: any(cache.glob("*/kernels.cpp")), "run", "square.toml", "--backend", "cpu",
        environment={"CXX": str(compiler), "HIRESX_CACHE": str(cache)},
    )  # fmt: skip
    assert status == 130 and said == f"note: {COMPILING}\nerror: interrupted\n"
    assert {path.name for path in place.iterdir()} == {"square.toml", "compiler", "cache", "log"}
    assert not list(cache.iterdir())


@pytest.mark.parametrize(("verb", "n"), [("check", "[1000000000,320,1]"), ("run", "[1000000000000,1,1]")])
def test_a_grid_beyond_all_memory(place, verb, n):
    """Refused before anything is made of it: an address space of 4 GB is enough for that."""
    limit = resource.RLIMIT_AS, (4 * 2**30,) * 2
    text = refused(
        place, verb, "square.toml", "--set", f"grid.n={n}", "--set", "time.steps=1",
        preexec_fn=lambda: resource.setrlimit(*limit),
    )  # fmt: skip
    nodes = np.prod(json.loads(n), dtype=object)
    assert f"grid: {nodes:,} nodes take" in text and "TB for the grid" in text and "fewer nodes" in text


LARGE = {
    "cylinder-bow-shock": "n_around=3000000",
    "cylinder-o": "n_normal=30000000",
    "naca0012": "n_wake=3000000000",
    "bump": "cells=[1,1000000000,1]",
    "flat-plate": "n=[1000000,1000000,1]",
    "planar-jet": "points_per_height=2000000000",
    "round-jet": "points_around=8000000000",
}


@pytest.mark.parametrize("name", LARGE)
def test_every_generator_says_how_many_nodes_it_makes(name):
    """As many as it then makes, of the jet no more; and too many are refused at once."""
    case = load(name, "quick" if name.endswith("-jet") else None)
    made = sum(block.points for block in build(case.grid).blocks)
    if name.endswith("-jet"):
        assert 0.03 * made < case.grid.nodes < made
    else:
        assert case.grid.nodes == pytest.approx(made, rel=0.02)
    span = ["grid.n_span=1000000"] if name.startswith("cylinder") else []
    with pytest.raises(HiresxError, match=r"nodes take .*[TP]B for the grid"):
        build(load(name, None, (f"grid.{LARGE[name]}", *span)).grid)


def test_a_plane_is_not_drawn_out_beyond_all_memory(place):
    x, y, z = np.meshgrid(np.linspace(0, 1, 9), np.linspace(1, 2, 9), 0.0, indexing="ij")
    write_plot3d(place / "plane.xyz", Grid((Block("plane", *(c.transpose(2, 1, 0) for c in (x, y, z))),)))
    for key in ("extrude={n=100000000000,length=1.0}", "revolve={n=100000000000,angle=30.0}"):
        case = load(place / "square.toml", None, (f'grid={{file="plane.xyz",{key}}}',))
        with pytest.raises(HiresxError, match="8,100,000,000,000 nodes take 583 TB"):
            build(case.grid, place)


def test_fields_that_do_not_fit_are_refused_before_they_are_made(place, monkeypatch):
    """The grid would fit: on the CPU its fields would not."""
    from hiresx.grid import size

    monkeypatch.setattr(size, "host_memory", lambda: 50_000)
    case = load(place / "square.toml")
    assert build(case.grid).points == 256
    for backend in ("cpu", "emulated"):
        with pytest.raises(HiresxError, match=r"256 nodes take 18\.4 kB for the grid and .* kB for its fields"):
            Simulation(case, backend)
