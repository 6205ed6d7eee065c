"""The performance page: made of stored results, with what is missing said to be missing."""

import json
from pathlib import Path

import pages
import performance as page
import pytest
from paths import ROOT

MACHINE = {
    "date": "2026-01-01T00:00:00+00:00",
    "command": "hiresx bench --json",
    "versions": {"compiler": "g++ 12", "driver": "580.1", "nvrtc": "13.0"},
    "hardware": {"cpu": "A CPU", "threads_available": 4, "simd": ["avx2", "avx512f"], "gpus": 2 * [{"name": "A GPU"}]},
}
KERNEL = {
    "kernel": "interpolate", "direction": "i", "launches": 1, "ns_per_point": 20.5, "bytes_per_point": 144.0,
    "gb_per_s": 1000.0, "calibration_ns": 1.01, "plan": "pencils", "precision": "fp64", "threads": 1,
}  # fmt: skip


def rhs(viscous: bool, threads: int | None, ns: float) -> dict:
    return {
        "precision": "fp64", "viscous": viscous, "threads": threads, "ns_per_point_rhs": ns, "least": ns - 1,
        "most": ns + 1, "processor_ns": 70.0, "calibration_ns": 1.02, "bytes_per_point": 429.2, "stages": {},
    }  # fmt: skip


def bench() -> dict:
    return MACHINE | {
        "kind": "bench", "backend": "cpu", "nodes": 64, "points": 64**3, "repeats": 5, "copy_gb_per_s": 21.0,
        "rhs": [rhs(False, 1, 80.0), rhs(True, 1, 123.4), rhs(True, 2, 61.7)], "kernels": [KERNEL],
        "start_up": {"run": "hiresx run planar-jet", "first_s": 8.5, "later_s": 1.3},
    }  # fmt: skip


def device(part: str, *rows: dict, backend: str = "cuda") -> dict:
    return MACHINE | {"kind": f"device-{part}", "backend": backend, "rows": list(rows)}


def registers() -> dict:
    kernel = {"kernel": "metrics", "registers": 255, "spill_stores": 312, "spill_loads": 8, "stack": 0}
    entry = {"configuration": {}, "architecture": "sm_90", "seconds": 0.9, "kernels": [kernel]}
    more = entry | {"configuration": {"viscosity": "sutherland"}, "kernels": [kernel, kernel | {"kernel": "update"}]}
    return {"kind": "registers", "nvrtc": "13.0", "date": "2026-01-01", "command": "x", "entries": [more, entry]}


def made(tmp_path, *results: dict) -> str:
    paths = []
    for number, result in enumerate(results):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(result))
    out = tmp_path / "docs" / "performance.md"
    assert page.main([*map(str, paths), "--out", str(out)]) == 0
    return out.read_text()


def rows_of(text: str, heading: str) -> list[list[str]]:
    section = text[text.index(f"{heading}") :].split("\n#")[0]
    return [[c.strip() for c in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]


def test_cpu(tmp_path):
    text = made(tmp_path, bench(), registers())
    assert "`hiresx bench --json` | 2026-01-01T00:00:00+00:00 | A CPU 4 cores AVX-512, g++ 12" in text
    rows = rows_of(text, "## The right-hand side on a CPU")
    assert rows[2] == ["FP64", "inviscid", "1", "80.0", "79.0 to 81.0", "70.0", "1.02", "", "at most 110 ns"]
    assert rows[4][3:] == ["61.7", "60.7 to 62.7", "70.0", "1.02", "2.00", "1.85 times one thread"]
    assert rows_of(text, "### Kernels")[2] == ["`interpolate`", "i", "1", "20.5", "144", "1000"]
    memory = rows_of(text, "## Memory")
    assert memory[3] == ["`pencils`", "viscous", "37", "296", "148", "429"] and memory[-1][2] == "49"
    assert rows_of(text, "## First use")[2][2:4] == ["8.50", "1.30"]
    found = rows_of(text, "## CUDA kernels")
    assert found[2:] == [
        ["`metrics`", "255 (312 B spilled, 8 B reloaded)"], ["`update`", "255 (312 B spilled, 8 B reloaded)"]
    ]  # fmt: skip
    assert rows_of(text, "## On a GPU")[2][0] == "not measured yet"


def test_gpu(tmp_path):
    row = {"nodes": 64, "points": 64**3, "precision": "fp64", "viscous": True} | rhs(True, None, 0.5)
    row |= {"point_steps_per_s": 6.2e8, "calibration_ns": None}
    text = made(
        tmp_path,
        device("rhs", row),
        device("rhs", row | {"point_steps_per_s": 1e9}, backend="emulated"),
        device("machine", {"copy_gb_per_s": 4000.0}, {"launch": {"call_us": 5.0, "launch_us": 6.0}}),
        device("stage", {"nodes": 256, "precision": "fp64", "kernels": [KERNEL]}),
        device(
            "blocks",
            {"nodes": 256, "precision": "fp64", "block": [64, 2, 2], "ns_per_point": {"a": 1.0, "b": 3.0}},
            {"nodes": 256, "precision": "fp64", "block": [32, 4, 2], "ns_per_point": {"a": 2.0, "b": 2.5}},
        ),
        device(
            "jet",
            {"preset": "quick", "points": 37000, "blocks": 3, "steps_per_s": 700.0, "point_steps_per_s": 2.6e7},
        ),
        {"kind": "public-codes", "cpu": {}, "gpu": {"what": "rates", "source": "x", "caveats": ["y"], "rows": []}},
    )
    assert rows_of(text, "## On a GPU")[2] == ["64^3", "FP64", "viscous", "0.50", "620", "429"]
    assert "2 A GPU, A CPU 4 cores AVX-512, g++ 12, driver 580.1, NVRTC 13.0" in text
    assert rows_of(text, "### Comparison with other codes on GPUs")[2][2:] == ["A GPU", "620"]
    assert rows_of(text, "### Kernels on a GPU")[2][-1] == "25.0"
    assert rows_of(text, "### Shapes of thread blocks")[0] == ["threads", "`b`", "`a`"]
    assert rows_of(text, "### The planar jet on a GPU")[2] == ["quick", "37000", "3", "700", "26.0"]
    assert "A launch takes 6.0 microseconds" in text


def test_each_model_of_gpu_has_its_table(tmp_path):
    row = {"nodes": 64, "points": 64**3, "point_steps_per_s": 6.2e8} | rhs(True, None, 0.5)
    first, jet = device("rhs", row), device("jet", {"preset": "quick", "points": 37000, "blocks": 3,
                                                   "steps_per_s": 700.0, "point_steps_per_s": 2.6e7})  # fmt: skip
    other = json.loads(json.dumps(device("rhs", row | {"ns_per_point_rhs": 0.7}) | {"date": "2027-01-01"}))
    other["hardware"]["gpus"] = [{"name": "B GPU"}]
    text = made(tmp_path, first, jet, other)
    assert rows_of(text, "## On a GPU")[2][3] == "0.50"  # of the model with more results, though older
    assert rows_of(text, "### B GPU")[2][3] == "0.70"


def test_public_codes_stand_beside_ours(tmp_path):
    codes = json.loads((ROOT / "docs" / "results" / "performance-public-codes.json").read_text())
    rows = rows_of(made(tmp_path, codes, bench()), "### Comparison with other codes")
    assert rows[2][2:] == ["123", "80.0"] and len(rows) == 3 + len(codes["cpu"]["rows"])


def test_the_page_is_what_its_results_make(monkeypatch):
    monkeypatch.chdir(ROOT)
    out = Path("docs/performance.md")
    text = out.read_text(encoding="utf-8")
    words = next(line for line in text.splitlines() if "python docs/make/performance.py" in line).split()
    names = words[words.index("docs/make/performance.py") + 1 : words.index("--out")]
    found = {name: pages.read(Path(name), ["kind"], "results", "") for name in names}
    assert page.page(found, out) == text, "make it anew"


def test_programs_that_moved_are_named_where_they_are_now(tmp_path):
    stored = tmp_path / "r.json"
    stored.write_text(json.dumps({"command": "CUDA_VISIBLE_DEVICES=0 python -m hiresx.bench.exchange --backend cuda"}))
    found = pages.read(stored, ["command"], "results", "")
    assert found["command"] == "CUDA_VISIBLE_DEVICES=0 python docs/make/exchange_times.py --backend cuda"
    assert all((ROOT / "docs" / "make" / f"{program}.py").is_file() for program in pages.MOVED.values())


def test_the_later_result_counts(tmp_path):
    late = bench() | {"date": "2026-02-01", "rhs": [rhs(True, 1, 99.0)]}
    rows = rows_of(made(tmp_path, late, bench()), "## The right-hand side on a CPU")
    assert len(rows) == 3 and rows[2][3] == "99.0"
    row = {"nodes": 64, "points": 64**3, "point_steps_per_s": 6.2e8} | rhs(True, None, 0.5)
    early = device("rhs", row | {"ns_per_point_rhs": 0.7}) | {"date": "2025-12-31"}
    assert [cells[3] for cells in rows_of(made(tmp_path, device("rhs", row), early), "## On a GPU")[2:]] == ["0.50"]


@pytest.mark.parametrize("content", ["", "[]", '{"checks": []}'])
def test_a_file_that_is_no_result(tmp_path, capsys, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    assert page.main([str(path), "--out", str(tmp_path / "p.md")]) == 2
    said = capsys.readouterr().err
    assert f"{path} holds no results" in said and "kernel_costs.py --json" in said and not (tmp_path / "p.md").exists()


def test_a_page_that_cannot_be_written(tmp_path, capsys):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(bench()))
    assert page.main([str(path), "--out", str(path / "p.md")]) == 2 and "cannot write" in capsys.readouterr().err
    assert page.main([str(tmp_path / "none.json"), "--out", "p.md"]) == 2
    assert "none.json" in capsys.readouterr().err
