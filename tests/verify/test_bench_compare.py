"""What is measured beside what was measured before, and what can be counted."""

import copy
import json

import comparison
import kernel_costs
import pytest
import stage_costs as counted
from paths import ROOT

from hiresx.errors import HiresxError

COUNTED = ROOT / "docs/results/performance-counted.json"


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A result of kernel_costs.py, and the file that it lies in."""
    rhs = {"precision": "fp64", "viscous": True, "threads": 1, "ns_per_point_rhs": 100.0, "least": 95.0, "most": 108.0}
    kernel = {"plan": "pencils", "precision": "fp64", "kernel": "inviscid_sweep", "direction": "i"}
    result = {
        "kind": "bench", "date": "2026-01-01", "backend": "cpu", "points": 4096, "hardware": {"cpu": "A", "gpus": []},
        "rhs": [rhs | {"calibration_ns": 4.0}], "kernels": [kernel | {"ns_per_point": 20.0, "calibration_ns": None}],
    }  # fmt: skip
    (tmp_path / "old.json").write_text(json.dumps(result))
    return result, tmp_path / "old.json"


def test_ratios_of_two_results(bench):
    before, path = bench
    assert comparison.read(path) == before
    now = copy.deepcopy(before)
    now["rhs"][0] |= {"ns_per_point_rhs": 80.0, "least": 70.0, "most": 90.0, "calibration_ns": 5.0}
    now["kernels"].append(now["kernels"][0] | {"kernel": "new"})
    rhs, sweep = comparison.pairs(before, now)
    assert (rhs.ratio, rhs.loop, rhs.apart) == (0.8, 1.25, True)
    assert (sweep.ratio, sweep.loop, sweep.apart) == (1.0, 1.0, None)
    assert sweep.name == "pencils, fp64: inviscid_sweep along i"
    now["kernels"][0]["calibration_ns"] = 3.0  # of one of them alone
    assert list(comparison.pairs(before, now))[1].loop == 1.0
    now["rhs"][0]["most"] = 96.0
    assert not next(comparison.pairs(before, now)).apart
    assert comparison.differences(before, now) == []
    now["hardware"]["cpu"], now["points"] = "B", 512
    assert comparison.differences(before, now) == ["points: 4096 before, 512 now", "cpu: A before, B now"]


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "counted"}'])
def test_what_is_no_result_is_refused_before_anything_is_measured(tmp_path, capsys, text):
    path = tmp_path / "old.json"
    path.write_text(text)
    assert kernel_costs.main(["--compare", str(path)]) == 2
    assert "old.json" in capsys.readouterr().err
    if "counted" not in text:
        with pytest.raises(HiresxError):
            counted.read(path)


def test_no_count_has_grown():
    """Launches, bytes moved and bytes held of a stage in the form that GPUs run, against what is stored; a change that
    makes them more on purpose stores the new ones."""
    before = counted.read(COUNTED)
    now = counted.count()
    assert {(row["flow"], row["plan"]) for row in now["rows"]} == {(row["flow"], row["plan"]) for row in before["rows"]}
    assert list(counted.growth(before, now)) == []
    less = copy.deepcopy(before)
    less["rows"][0]["launches"] -= 1
    less["rows"][1]["bytes_held"] -= 8
    assert [(entry.counted, entry.now - entry.before) for entry in counted.growth(less, now)] == [
        ("launches", 1), ("bytes_held", pytest.approx(8))
    ]  # fmt: skip


def test_a_count_that_grew_fails_the_command(tmp_path, capsys, monkeypatch):
    before = counted.read(COUNTED)
    monkeypatch.setattr(counted, "count", lambda: before)
    assert counted.main(["--against", str(COUNTED)]) == 0
    capsys.readouterr()
    less = copy.deepcopy(before)
    less["rows"][0]["bytes_moved"] -= 1
    (tmp_path / "less.json").write_text(json.dumps(less))
    assert counted.main(["--against", str(tmp_path / "less.json")]) == 1
    assert "grown: bytes_moved of wavy box, viscous, FP64, plan fused" in capsys.readouterr().err


def test_flows_are_what_their_names_say():
    for name, case in counted.flows().items():
        viscous, precision = "viscous" in name.split(", ") or "jet" in name, "fp32" if "FP32" in name else "fp64"
        assert (case.gas.reynolds is not None) == viscous and case.scheme.precision == precision, name
