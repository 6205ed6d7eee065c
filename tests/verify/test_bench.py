"""Measurements: what they say, that the model of memory traffic is what the kernels do, how they are asked for."""

import json
import subprocess
import sys

import bytes_moved
import kernel_costs
import kernel_times
import numpy as np
import pytest
from launch_times import Launch, TimingBackend
from touched import touched

from hiresx import bench, cli
from hiresx.bench import results, rhs, start_up
from hiresx.case.scalars import Scalar
from hiresx.device import backend, rates
from hiresx.device.call import Call
from hiresx.errors import HiresxError
from hiresx.estimate import estimate
from hiresx.kernels import Signature
from hiresx.solver import Solver

POINTS = 12


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A kernel cache of its own for the rates; what is compiled comes from the usual one."""
    monkeypatch.setattr(rates, "_file", lambda: tmp_path / "rates.json")
    return tmp_path


@pytest.mark.slow
def test_run(cache):
    result = kernel_costs.run("cpu", POINTS, repeats=3, threads=[1, 2], precisions=["fp64"], start_up=False)
    json.dumps(result, allow_nan=False)
    assert result["kind"] == "bench" and result["backend"] == "cpu" and result["points"] == POINTS**3
    assert result["copy_gb_per_s"] > 0 and result["hardware"]["cpu"] and "host" not in result["hardware"]
    assert [(row["viscous"], row["threads"]) for row in result["rhs"]] == [
        (False, 1), (False, 2), (True, 1), (True, 2)
    ]  # fmt: skip
    for row in result["rhs"]:
        assert 0 < row["least"] <= row["ns_per_point_rhs"] <= row["most"] and 0 < row["calibration_ns"] < 1000
        assert row["processor_ns"] > 0
        assert set(row["stages"]) == {"boundary", "exchange", "inviscid"} | ({"viscous"} if row["viscous"] else set())
    found = {(row["plan"], row["kernel"], row["direction"]): row for row in result["kernels"]}
    assert {(p, name, d) for p, name, d in found if d} == {
        *(("pencils", "inviscid_sweep", d) for d in "ijk"),
        *(("decomposed", name, d) for name in ("interpolate", "numerical_flux", "flux_difference") for d in "ijk"),
    }
    for (_, name, direction), row in found.items():
        assert (
            row["ns_per_point"] > 0 and row["threads"] == 1 and row["launches"] == (1 if direction else row["launches"])
        )
        assert (row["gb_per_s"] is None) == (name in ("copy_halo_rows", "reduce"))
    # 8 reals and 4 of the viscous flux read, 5 written; the first direction does not read what it adds to
    assert found["pencils", "inviscid_sweep", "i"]["bytes_per_point"] == 17 * 8
    assert found["pencils", "inviscid_sweep", "k"]["bytes_per_point"] == 22 * 8
    assert rates.known_rate("cpu", True, "fp64")["threads"] == 2 and rates.known_rate("cpu", True, "fp32") is None
    case = rhs.flow(POINTS, True, "fp64")
    assert estimate(case)["rate_from"] == "hiresx bench"


@pytest.mark.slow
def test_run_without_threads(cache):
    result = kernel_costs.run("emulated", 8, repeats=1, precisions=["fp32"], start_up=False)
    assert {row["plan"] for row in result["kernels"]} == {"fused", "decomposed"}
    assert {row["calibration_ns"] for row in result["rhs"] + result["kernels"]} == {None}


@pytest.mark.parametrize("asked", [False, True])
def test_what_the_first_run_takes_is_measured_if_asked(asked, monkeypatch):
    """A measurement of nothing: no kernels, no right-hand sides."""
    kept = []
    for place, name, found in (
        (kernel_times, "copy_bandwidth", 20.0), (kernel_times, "plans", []), (kernel_times, "arithmetic_rate", 30.0),
        (rhs, "measure", []), (start_up, "start_up", {"first_s": 8.0}), (rates, "store_rates", kept),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, lambda *given, found=found: found.append(*given) if found is kept else found)
    result = kernel_costs.run("cpu", POINTS, repeats=2, precisions=["fp64"], start_up=asked)
    assert result.get("start_up") == ({"first_s": 8.0} if asked else None) and kept == [result]
    assert result["gflop_per_s"] == {"fp64": 30.0} and result["copy_gb_per_s"] == 20.0 and result["points"] == POINTS**3


def test_threads_are_given_back():
    device = backend("cpu")
    usual = device.threads
    with pytest.raises(KeyError), rhs.only(device, usual + 1):
        assert device.threads == usual + 1
        raise KeyError
    assert device.threads == usual


@pytest.mark.slow
def test_too_few_points():
    with pytest.raises(HiresxError, match="6 points in a direction are too few"):
        bench.run("cpu", 6)


def with_scalars(case, count):
    scalars = tuple(Scalar(name=name, initial=0.3) for name in ("dye", "ink")[:count])
    return case.model_copy(update={"scalar": scalars})


@pytest.mark.parametrize(
    ("plan", "scalars"),
    [
        ("pencils", 0),
        ("decomposed", 0),
        pytest.param("pencils", 2, marks=pytest.mark.slow),
        pytest.param("decomposed", 2, marks=pytest.mark.slow),
    ],
)
def test_traffic_is_what_kernels_touch(plan, scalars):
    """Every kernel of a stage once more, on its own: which variables it changes, and which of all matter to those."""
    timed = TimingBackend(backend("cpu"))
    solver = Solver(with_scalars(rhs.flow(8, True, "fp64"), scalars), timed, plan=plan)
    solver.initialize()
    timed.launches = noted = []
    kernel_times.stage(solver)
    timed.launches = None
    checked = set()
    for launch in noted:
        wanted = bytes_moved.reals(launch.kernel, launch.arguments)
        if np.isnan(wanted):
            continue
        checked.add(launch.kernel)
        assert touched(solver.program, launch.call) == int(wanted), (launch.kernel, launch.direction)
    assert len(checked) == {"pencils": 6, "decomposed": 10 + 2 * (scalars > 0)}[plan]


@pytest.mark.slow
def test_a_scalar_moves_a_quarter_more_at_most():
    """Of the bytes of a stage by the fused plan."""
    moved = []
    for scalars in (0, 1):
        timed = TimingBackend(backend("emulated"))
        solver = Solver(with_scalars(rhs.flow(8, True, "fp64"), scalars), timed, plan="fused")
        solver.initialize()
        moved.append(sum(row["bytes_per_point"] or 0 for row in kernel_times.stage_rows(solver, timed, 1)))
    assert 1.1 * moved[0] < moved[1] <= 1.25 * moved[0]


def test_rates_that_cannot_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "_file", lambda: tmp_path / "nowhere" / "rates.json")
    row = {"precision": "fp64", "viscous": True, "threads": 1, "ns_per_point_rhs": 100.0}
    rates.store_rates({"backend": "cpu", "rhs": [row]})
    assert rates.known_rate("cpu", True, "fp64") is None


def test_record():
    code = (
        "import runpy, sys; sys.argv = ['x', '--a', 'b c']; from hiresx.bench.results import command; print(command())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("--a 'b c'\n"), done
    assert results.header("x")["kind"] == "x"


@pytest.mark.slow
def test_start_up(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "not-used"))
    monkeypatch.setattr(start_up, "ARGUMENTS", ("run", "sod", "--steps", "1"))
    found = start_up.start_up("cpu", 1)
    assert found["run"] == "hiresx run sod --steps 1 --backend cpu"
    assert 0 < found["later_s"] < found["first_s"] and not list(tmp_path.iterdir())
    monkeypatch.setattr(start_up, "ARGUMENTS", ("run", "sodd"))
    with pytest.raises(HiresxError, match="did you mean"):
        start_up.start_up("cpu", 1)


@pytest.mark.slow
def test_command_line(cache, capsys, monkeypatch):
    monkeypatch.setattr(
        start_up, "start_up", lambda backend, repeats: {"run": "hiresx run", "first_s": 9, "later_s": 1}
    )
    words = ["--backend", "cpu", "--points", str(POINTS), "--repeats", "1", "--precision", "fp64"]
    assert cli.execute(["bench", *words, "--threads", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["threads"] for row in found["rhs"]} == {2} and found["start_up"]["first_s"] == 9
    assert cli.execute(["bench", *words]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("calibration", "9.0 s"))
    assert kernel_costs.main([*words, "--threads", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["threads"] for row in found["rhs"] + found["kernels"]} == {2} and found["start_up"]["first_s"] == 9
    assert kernel_costs.main(words) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("inviscid_sweep", "interpolate", "calibration", "9.0 s", "GB/s"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--threads", "two"], ["two", "--threads 1,2"]),
        (["--threads", "0"], ["--threads 1,2"]),
        (["--precision", "fp46"], ['did you mean "fp64"?']),
        (["--points", "6"], ["--points", "hiresx bench --help"]),
    ],
)
def test_faults(capsys, arguments, expected):
    assert cli.execute(["bench", *arguments]) == 2
    said = capsys.readouterr().err
    assert all(part in said for part in expected), said


def test_the_command_of_results_is_as_a_user_writes_it(monkeypatch):
    monkeypatch.setattr(results.sys, "argv", ["/usr/bin/hiresx", "bench", "--json", "a b"])
    main = type("Main", (), {"__spec__": None})
    monkeypatch.setitem(results.sys.modules, "__main__", main)
    assert results.command() == "hiresx bench --json 'a b'"
    monkeypatch.setattr(results.sys, "argv", ["docs/make/loop_times.py", "--json"])
    assert results.command() == "python docs/make/loop_times.py --json"
    monkeypatch.setattr(results.sys, "argv", ["/usr/bin/hiresx", "bench", "--json", "a b"])
    main.__spec__ = type("Spec", (), {"name": "hiresx.bench.__main__"})
    assert results.command() == "python -m hiresx.bench bench --json 'a b'"


def test_points_of_a_launch():
    """Those of the range, of columns times their height, of lines the nodes that they have."""

    def visited(kernel, extent, **arguments):
        signature = Signature(kernel, (), "", "KERNEL")
        return Launch(Call(signature, extent, arguments, None), None, None).points_visited

    assert visited("update", (4, 5, 6)) == 120 and visited("column_norms", (4, 5, 1), height=6) == 120
    assert visited("sweep_along", (1, 2, 6), rows=5, n=4, chunk=50) == 120
    assert visited("sweep_across", (4, 5, 2), n=6, chunk=3) == 120
