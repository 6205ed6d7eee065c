"""Whole reports of commands: every word, figure and unit."""

from pathlib import Path
from types import SimpleNamespace

import exchange_times as exchange
import kernel_costs
import pytest
import reported
from patched_grids import beside, case

from hiresx import cli, verify
from hiresx.cli import bench, diff, doctor, post, scaling, terminal
from hiresx.cli.app import command
from hiresx.errors import HiresxError


@pytest.fixture
def rates(monkeypatch):
    """Speeds that are the same on every machine."""

    def known(backend, viscous, precision):
        per_point = {"cpu": 100.0, "cuda": 2.5}.get(backend)
        return per_point and {"ns_per_point_rhs": per_point, "from": "measured"}

    for place in ("hiresx.device.rates.known_rate", "hiresx.estimate.resources.known_rate"):
        monkeypatch.setattr(place, known)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("check-planar-jet", ["planar-jet", "--preset", "quick", "--ranks", "3"]),
        ("check-cylinder", ["cylinder-o", "--set", "time.end=1e9", "--points-per-wave", "10"]),
        ("check-shock-tube", ["sod", "--weights", "1,3", "--set", "gas.gamma=3.5"]),
    ],
)
def test_check(name, words, rates, capsys):
    assert cli.execute(["check", *words]) == 0
    reported.check(name, capsys.readouterr().out, places=False)


def test_check_of_patched_blocks(rates, capsys, tmp_path, monkeypatch):
    from hiresx.case.toml import dumps
    from hiresx.grid import Grid
    from hiresx.grid.plot3d import write_plot3d

    monkeypatch.chdir(tmp_path)
    write_plot3d("patched.xyz", Grid(beside((8, 12), (8, 12), (-1.0, 0.0, 1.0), curve=0.1)))
    document = case([], {"steps": 100, "cfl": 0.5}).model_dump(mode="json", exclude_unset=True)
    document["boundary"][0]["block"], document["boundary"][1]["block"] = "block-1", "block-2"
    Path("patched.toml").write_text(dumps({**document, "title": "Patched", "grid": {"file": "patched.xyz"}}))
    assert cli.execute(["check", "patched.toml"]) == 0
    reported.check("check-patched", capsys.readouterr().out, places=False)


class Found(SimpleNamespace):
    """A result of an analysis."""

    def write(self, folder):
        return [folder / "a.nc", folder / "b.json"]


@pytest.mark.parametrize("out", [None, Path("else")])
@pytest.mark.parametrize("json", [False, True])
def test_an_analysis(out, json, capsys, monkeypatch):
    peaks = [{"frequency": 0.25, "amplitude": 1e-3}, {"frequency": 0.5, "amplitude": None}]
    summary = {
        "samples": 8, "start": 0.123456789, "window": {"name": "hann", "overlap": 0.5}, "peaks": peaks, "none": [],
        "nested": [{"a": {"b": 1}, "c": 2}], "deep": [{"a": [1, 2]}], "warnings": ["too short", "too loud"],
    }  # fmt: skip
    made = Found(name="spectrum of lips.p", summary=summary, replaced=[Path("run/post/b.json")])
    asked: dict[str, object] = {}
    analyses = {"hiresx.post.xt": SimpleNamespace(xt=lambda **given: asked.update(given) or made)}
    monkeypatch.setattr(post, "import_module", analyses.__getitem__)
    given = {"run": Path("run"), "signals": "axis.p", "start": 1.0, "end": None, "fluctuations": False}
    assert post.xt(**given, out=out, json=json) == 0
    assert asked == {name: value for name, value in given.items() if value is not None}
    name = f"analysis{'-json' if json else ''}{'-out' if out else ''}"
    reported.check(name, capsys.readouterr().out)


def test_scaling(capsys):
    row = {
        "ranks": 2, "placement": None, "points": 12345, "step_s": 0.0123456, "least": 0.011, "most": 0.0234567,
        "speedup": 1.956, "efficiency": 0.9784, "point_steps_per_s": 1.23456e7, "sssp": 2.34567e6, "wait": 0.0123,
        "overlap_gain": 0.2345, "sent_bytes": 1234567.0, "transports": ["window", "signals"],
        "stages": {"rhs": 0.0012345, "halo": 0.00045678},
    }  # fmt: skip
    other = row | {"ranks": 4, "placement": "optimal", "stages": {"rhs": 0.002, "output": 0.5}}
    predicted = {
        "ranks": 2, "step_s": 0.0123456, "work_s": 0.01, "exchange_s": 0.00234567, "speedup": 1.957,
        "efficiency": 0.9781, "busiest": "NVLink 0-1",
    }  # fmt: skip
    document = {"mode": "strong", "case": "sod", "rows": [row, other], "predicted_from": "machine.json"}
    scaling.show(document | {"predicted": [predicted, predicted | {"ranks": 4, "busiest": None}]})
    scaling.show(document | {"rows": [], "predicted": None})
    reported.check("scaling", capsys.readouterr().out)
    assert scaling._numbers("4, 2,4,1") == [1, 2, 4]
    for wrong in ("0", "1,,2", "-1", "1.5", ""):
        with pytest.raises(HiresxError, match="not numbers of ranks"):
            scaling._numbers(wrong)


def test_bench(capsys):
    rhs = {
        "precision": "fp64", "viscous": True, "threads": 2, "ns_per_point_rhs": 123.456, "least": 99.96, "most": 100.0,
        "processor_ns": 0.123456, "calibration_ns": None, "bytes_per_point": 1234.5,
    }  # fmt: skip
    kernel = {
        "plan": "pencils", "precision": "fp64", "threads": 2, "kernel": "inviscid_sweep", "direction": "i",
        "launches": 3, "ns_per_point": 12.345, "bytes_per_point": 79.6, "gb_per_s": 6.789, "gflop_per_s": 4.5,
        "operations_per_point": 321.6,
    }  # fmt: skip
    unknown = dict.fromkeys(("direction", "bytes_per_point", "gb_per_s", "gflop_per_s", "operations_per_point"))
    result = {
        "backend": "cpu", "nodes": 48, "repeats": 5, "copy_gb_per_s": 12.6, "gflop_per_s": {"fp64": 9.6, "fp32": 20},
        "rhs": [rhs, rhs | {"viscous": False, "precision": "fp32"}],
        "kernels": [
            kernel,
            kernel | unknown | {"kernel": "update"},
            kernel | {"plan": "decomposed", "threads": None, "precision": "fp32"},
        ],
    }  # fmt: skip
    kernel_costs.show(result)
    pair = {"name": "viscous", "before": 10.0, "now": 8.0, "ratio": 0.8, "loop": 1.23456, "apart": True}
    pairs = [pair, pair | {"apart": False}, pair | {"apart": None}]
    compared = {"with": "2026-01-01", "unlike": ["points: 1 before, 2 now"], "pairs": pairs}
    start = {"run": "hiresx run sod", "first_s": 12.345, "later_s": 0.678}
    kernel_costs.show(result | {"rhs": [], "kernels": [], "compared": compared, "start_up": start})
    reported.check("bench", capsys.readouterr().out)
    assert bench.thread_counts(None) is None and bench.thread_counts("1, 2") == [1, 2]


def test_verify(capsys, monkeypatch):
    check = {"group": "waves", "check": "order", "value": 4.987654321, "relation": ">=", "threshold": 4.8, "pass": True}
    failed = {"check": "speed", "value": None, "threshold": 1.0, "pass": False, "error": "HiresxError: no"}
    left_out = check | {"pass": None, "left_out": "not by the plan fused"}
    for name, checks, status in (
        ("verify", [check], 0),
        ("verify-fails", [check, failed, left_out], 1),
        ("verify-left-out", [check, left_out, left_out], 0),
    ):
        monkeypatch.setattr(verify, "run", lambda groups, backend, plan, checks=checks: checks)
        assert cli.execute(["verify"]) == status
        reported.check(name, capsys.readouterr().out)


def test_diff(capsys):
    entry = {"key": "scheme.flux", "first": "hllc", "second": None}
    run = {
        "first": "a", "second": "b", "run": [], "configuration": [entry], "versions": [], "hardware": [],
        "functions": True, "grid": {"same": False},
        "timings": [{"key": "wall_s", "first": 1.0, "second": 2.0}],
        "results": {"steps": (1, 2), "times": (0.1, 0.25), "one_time": False, "same": False, "variables": []},
    }  # fmt: skip
    variable = {"name": "rho", "greatest": 0.1, "rms": 0.01, "rms_of_range": None, "at": None}
    placed = variable | {"name": "p", "rms_of_range": 0.5, "at": {"block": "b0", "i": 1, "j": 2, "k": 3}}
    ranges = {"least": 0.0, "mean": 0.5, "greatest": 1.0}
    results = run["results"] | {"one_time": True}
    diff.show(run)
    diff.show(
        run
        | {"configuration": [], "functions": False, "timings": [], "run": [entry]}
        | {"results": results | {"variables": [variable, placed], "greatest_distance_of_nodes": 0.123456}}
    )
    sides = {"variables": [{"name": "rho", "first": ranges, "second": ranges}], "same_sizes": True}
    diff.show(run | {"results": results | sides})
    diff.show(run | {"grid": {"same": True}, "results": results | {"same": True}})
    reported.check("diff", capsys.readouterr().out)


@pytest.mark.parametrize("lacking", ["nothing", "g++", "numpy, cupy"])
def test_doctor(lacking, capsys, monkeypatch):
    def python(name, extra="", needed_for="everything"):
        return doctor.Finding(name, None if name in lacking else "1.0", needed_for, "pip", required=not extra)

    monkeypatch.setattr(doctor, "_python_package", python)
    monkeypatch.setattr(doctor, "_python", lambda code: (None, "No module named x") if "py" in lacking else ("2.0", ""))
    monkeypatch.setattr(doctor, "_answer", lambda command, text: 8 if "pack::size" in text else 1)
    monkeypatch.setattr(doctor, "_mpi", lambda: iter([doctor.Finding("mpi4py", None, "runs on several ranks")]))
    monkeypatch.setattr(doctor, "_cache", lambda: doctor.Finding("cache folder", "there", "keeping", required=True))
    monkeypatch.setattr(doctor, "_cuda_driver", lambda: (12040, ["A", "B"]) if lacking == "nothing" else (None, []))
    monkeypatch.setattr(doctor.Path, "glob", lambda *_: iter(()))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None if name in (lacking, "apt") else name)
    monkeypatch.setattr(doctor.sys, "version_info", (3, 12, 1))
    monkeypatch.setattr(
        doctor.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="g++ 12.2\nFree", returncode=0)
    )
    monkeypatch.delenv("CXX", raising=False)
    assert cli.execute(["doctor"]) == (0 if lacking == "nothing" else 1)
    reported.check(f"doctor-without-{lacking.replace(', ', '-')}", capsys.readouterr().out)


def test_numbers_are_set_to_the_right(capsys):
    terminal.table("", ["word", "number", "either"], [("a", 1, 1), ("b", 1000, "x")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [lines[0], *lines[2:]] == [" word   number   either", " a           1   1", " b        1000   x"]


def test_options():
    """Of every command the words, kinds, bounds, defaults and explanations."""

    def told(command, path):
        yield f"{path}: {command.help or ''}"
        for one in command.params:
            known = {key: getattr(one, key, None) for key in ("metavar", "min", "max", "required", "nargs", "multiple")}
            known |= {"default": None if callable(one.default) else one.default, "help": getattr(one, "help", None)}
            given = [f"{key} {value}" for key, value in known.items() if value not in (None, False)]
            yield f"{path} {' '.join([*one.opts, *one.secondary_opts])}: {', '.join(given)}"
        for name, verb in sorted(getattr(command, "commands", {}).items()):
            yield from told(verb, f"{path} {name}")

    reported.check("options", "\n".join(" ".join(line.split()) for line in told(command(), "hiresx")))


def test_bench_of_exchanges(capsys, monkeypatch):
    """A transport that fails is named once, and not tried with more nodes."""
    row = {"bytes": 1234567, "us": 12.345, "us_in_a_row": 6.78, "gb_per_s": 3.456, "ways": ["window", "signals"]}

    def measured(comm, device, points, transport, repeats):
        if transport == "mpi":
            raise HiresxError("no such library", "load it")
        last = points == 32
        told = {"transport": transport, "points": points, "right": last, "us_recorded": 1.25 if last else None}
        return row | told

    monkeypatch.setattr(exchange, "copies", lambda *_: iter([{"copy": "to host", "gb_per_s": 9.876}]))
    monkeypatch.setattr(exchange, "measure", measured)
    device = SimpleNamespace(name="cpu")
    for names in (["cpu", "cpu"], ["cpu", "cuda"]):  # copies are compared among like ranks alone
        comm = SimpleNamespace(allgather=lambda _, names=names: names)
        rows = exchange.run(comm, device, ["auto", "mpi", "host"], [16, 32], 3, exchange._say)
        assert [one.get("points", "-") for one in rows[-5:]] == [16, 32, "-", 16, 32]
        assert len(rows) == 5 + (names == ["cpu", "cpu"])
    reported.check("bench-exchange", capsys.readouterr().out)
