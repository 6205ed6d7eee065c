"""The script for a lent GPU, from end to end on the emulated backend."""

import json
import subprocess
from pathlib import Path

import measure_gpu as script
import mixtures as device_hybrid
import pytest

from hiresx import verify

CHECK = {"group": "kernels", "check": "every kernel", "value": 1e-16, "threshold": 1e-12, "pass": True}
SHORT = ["--backend", "emulated", "--sizes", "8,10"]


@pytest.fixture
def quick(monkeypatch):
    """Fewer shapes, steps and repeats, and checks that are made up."""
    monkeypatch.setattr(script, "BLOCKS", script.BLOCKS[:2])
    monkeypatch.setattr(script, "JETS", (("quick", 1),))
    monkeypatch.setattr(script, "REPEATS", 1)
    monkeypatch.setattr(script, "STEPPING", 0.01)
    monkeypatch.setattr(script, "PAPER_SIZES", (8, 10))
    monkeypatch.setattr(script, "start_up", lambda backend, repeats: {"run": "x", "first_s": 9.0, "later_s": 1.0})
    monkeypatch.setattr(verify, "run", lambda groups, backend, say: [CHECK | {"group": groups[0], "backend": backend}])
    monkeypatch.setattr(script, "hybrid", lambda *_: [{"mixture": "cuda:1,cpu:1", "gain": 0.1}])
    monkeypatch.setattr("hiresx.verify.runner.choose_groups", lambda asked: ["accuracy", "kernels"])


def results(folder):
    return {path.stem: json.loads(path.read_text()) for path in folder.iterdir()}


@pytest.mark.slow
def test_every_part(quick, tmp_path, capsys):
    assert script.main([*SHORT, "--out", str(tmp_path / "out")]) == 0
    found = results(tmp_path / "out")
    assert list(script.PARTS) == [
        line.removeprefix("--- ") for line in capsys.readouterr().out.splitlines() if "---" in line
    ]
    assert set(found) == set(script.PARTS)
    for name, result in found.items():
        assert result["kind"] == f"device-{name}" and result["backend"] == "emulated" and result["error"] is None
        assert result["date"] and result["hardware"]["cpu"] and result["wall_s"] > 0
        assert result["rows" if "rows" in result else "checks"] and not result["left_out"] and result["pass"]
    machine = {key: value for row in found["machine"]["rows"] for key, value in row.items()}
    assert machine["copy_gb_per_s"] > 0 and machine["launch"]["launch_us"] > 0 and machine["start_up"]["first_s"] == 9
    rows = found["rhs"]["rows"]
    assert [(row["nodes"], row["precision"], row["viscous"]) for row in rows] == [
        (n, p, v) for n in (8, 10) for p in ("fp64", "fp32") for v in (True, False)
    ]
    assert all(row["ns_per_point_rhs"] > 0 and row["point_steps_per_s"] > 0 for row in rows)
    for row in found["stage"]["rows"]:
        kernels = {(kernel["kernel"], kernel["direction"]) for kernel in row["kernels"]}
        assert row["nodes"] == 10 and {("sweep_along", "i"), ("sweep_across", "j"), ("sweep_across", "k")} <= kernels
    copy, *sweeps = found["sweeps"]["rows"]
    assert copy["copy_gb_per_s"] > 0 and all(row["nodes"] == 10 and row["ns_per_node"] > 0 for row in sweeps)
    assert [row["bytes_per_node"] for row in sweeps] == [920, 656, 504, *2 * [1300, 992, 814]]
    loops = found["loops"]["rows"]
    assert [row["disagreement"] < 1e-4 for row in loops[:2]] == [True, True]
    assert {form["mode"] for form in loops[2]["loops"]} > {"node", "line", "half point, two colours"}
    assert [(row["nodes"], row["plan"]) for row in loops[4:]] == [
        (n, plan) for n in (8, 10) for plan in ("decomposed", "fused")
    ]
    assert {tuple(row["block"]) for row in found["blocks"]["rows"]} == set(script.BLOCKS)
    assert found["jet"]["rows"][0]["preset"] == "quick" and found["jet"]["rows"][0]["steps_per_s"] > 0
    assert [row["group"] for row in found["checks"]["checks"]] == ["accuracy"]
    by_ranks = found["ranks"]["rows"]
    if "skipped" not in by_ranks[0]:
        assert {row["transport"] for row in by_ranks if "us" in row} >= {"auto", "window", "mpi"}
        assert [row["ranks"] for row in by_ranks if "efficiency" in row] == [1, 2]
    assert [row["group"] for row in found["kernels"]["checks"]] == ["kernels"]


def test_a_failed_check_is_told(quick, tmp_path, monkeypatch):
    monkeypatch.setitem(CHECK, "pass", False)
    assert script.main([*SHORT, "--out", str(tmp_path), "--parts", "kernels"]) == 1


def test_a_part_that_breaks_leaves_the_others_and_what_it_did(quick, tmp_path, monkeypatch):
    def breaks(session):
        yield {"copy_gb_per_s": float("nan")}
        raise RuntimeError("gone")

    monkeypatch.setitem(script.PARTS, "machine", breaks)
    assert script.main([*SHORT, "--out", str(tmp_path), "--parts", "machine,kernels"]) == 1
    found = results(tmp_path)
    assert found["machine"]["rows"] == [{"copy_gb_per_s": None}] and "RuntimeError: gone" in found["machine"]["error"]
    assert found["kernels"]["error"] is None


def test_nothing_is_begun_when_time_is_up(quick, tmp_path):
    parts = ["rhs", "blocks", "jet", "checks"]
    assert script.main([*SHORT, "--out", str(tmp_path), "--minutes", "0", "--parts", ",".join(parts)]) == 1
    for name, result in results(tmp_path).items():
        assert result["left_out"] and not (result.get("rows") or result.get("checks")), name


def test_faults(tmp_path, capsys):
    assert script.main(["--out", str(tmp_path), "--backend", "gpu"]) == 2
    assert "gpu" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert script.main(["--out", str(tmp_path / "file"), "--backend", "emulated"]) == 2
    with pytest.raises(SystemExit):
        script.main(["--out", str(tmp_path), "--parts", "rsh"])
    assert "no part is called rsh" in capsys.readouterr().err


# --- GPUs and CPUs together


def test_mixtures():
    assert device_hybrid.mixtures("cuda", 1) == ["cuda:1,cpu:1", "cpu:1,cuda:1", "cuda:1,cpu:2"]
    assert device_hybrid.mixtures("cuda", 2)[3:] == ["cuda:2,cpu:1", "cpu:1,cuda:2"]


@pytest.mark.slow
def test_hybrid(monkeypatch, tmp_path):
    monkeypatch.setattr(device_hybrid, "CASES", (("taylor-green", None, ("grid.n=[16, 16, 16]",), 3),))
    monkeypatch.setattr(device_hybrid, "STEPS", 1)
    monkeypatch.setattr(device_hybrid, "mixtures", lambda backend, gpus: [f"{backend}:1,cpu:1"])
    monkeypatch.setattr(script, "REPEATS", 1)
    asked = ["--backend", "emulated", "--sizes", "20", "--out", str(tmp_path), "--parts", "hybrid"]
    assert script.main(asked) == 0
    rows = results(tmp_path)["hybrid"]["rows"]
    if "skipped" in rows[0]:
        pytest.skip(rows[0]["skipped"])
    answer, gpu, cpu, both = rows
    assert answer["pass"] and 0 <= answer["difference"] < 1e-13 and answer["mixture"] == "emulated:1,cpu:1"
    assert both["gain"] == pytest.approx(gpu["step_s"] / both["step_s"] - 1)
    # Who is faster alone has more to do.
    assert sum(both["points"]) == 20**3
    assert (both["points"][1] > both["points"][0]) == (cpu["step_s"] < gpu["step_s"])


@pytest.mark.parametrize("what", ["another answer", "another time", "no end"])
def test_a_mixture_that_goes_wrong_is_told(monkeypatch, tmp_path, what):
    def done(line, **how):
        folder = Path(line[line.index("--out") + 1]) / "checkpoints"
        folder.mkdir(parents=True)
        (folder / "checkpoint_000001_step_000003.hxc").write_text("")
        ended = what == "no end" and line[line.index("--backend") + 1] != "cuda:1"
        return subprocess.CompletedProcess(line, int(ended), "", "error: no way\n")

    apart = {"variables": [{"greatest": 1e-16}, {"greatest": 2e-13 if what == "another answer" else 0.0}]}
    monkeypatch.setattr(device_hybrid.subprocess, "run", done)
    monkeypatch.setattr(device_hybrid, "compare", lambda *_: {"results": apart | {"one_time": what != "another time"}})
    rows = device_hybrid._answers(None, "taylor-green", None, (), 3, "cuda", ["cuda:1,cpu:1"])
    (row,) = rows
    assert row["pass"] is False and row["mixture"] == "cuda:1,cpu:1"
    assert row["error"] == "error: no way" if what == "no end" else row["difference"] >= 1e-16
