"""The forms of the loops compute what the solver's kernels compute; they are counted, and are no part of the solver."""

import json
from pathlib import Path

import grid_sizes
import kernel_registers
import loop_forms
import loop_modes
import loop_times
import numpy as np
import paper_figures
import pytest
import reported
from paths import ROOT

from hiresx.device import Configuration, backend, nvrtc
from hiresx.device.wrappers import generate
from hiresx.errors import HiresxError
from hiresx.output.show import picture_file

NODES = 11
SCATTER = "half point, adds to both nodes"
MODES = {
    loop_forms.INTERPOLATION: {"half point, both its nodes", "line"},
    loop_forms.FLUX: {"node, both its half points", SCATTER, "half point, two colours", "line"},
    loop_forms.DIFFERENCE: {SCATTER, "half point, two colours", "line"},
    loop_forms.VISCOUS_FLUX: {
        "node, direction by direction", "node, both its half points", SCATTER, "half point, two colours", "line"
    },
    loop_forms.VISCOUS_DIFFERENCE: {
        "node, direction by direction", "node, both its half points", SCATTER, "half point, two colours", "line"
    },
    loop_forms.WHOLE: {"row, fused", "line, fused"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("device", "precision", "within"),
    [
        ("emulated", "fp64", 1e-13),
        pytest.param("emulated", "fp32", 2e-5, marks=pytest.mark.slow),
        pytest.param("cpu", "fp64", 1e-13, marks=pytest.mark.slow),
    ],
)
def test_every_form_makes_what_the_solvers_kernels_make(device, precision, within):
    found: dict[str, set[str]] = {}
    along: dict[str, set[int | None]] = {}
    for form, error in loop_times.disagreements(backend(device), NODES, precision):
        assert error < within, (form.loop, form.mode, form.direction)
        assert form.atomics == (form.mode == SCATTER)
        found.setdefault(form.loop, set()).add(form.mode)
        along.setdefault(form.loop, set()).add(form.direction)
    if device == "emulated":
        assert found == MODES
    assert all(along[loop] == ({None} if "viscous " in loop else {0, 1, 2}) for loop in along)


def test_bytes_are_those_of_the_arrays():
    fields = loop_times.fields_of(backend("emulated"), 7, "fp64")
    reals = {(form.loop, form.mode): loop_forms.moved(form) for form in loop_times.forms(fields)}
    assert reals[loop_forms.WHOLE, "four kernels"] == 18 + 14 + 24 + 15
    assert reals[loop_forms.WHOLE, "line, fused"] == 18  # q and m; r read and written
    # The flux of a half point is neither written nor read again, by whatever mode;
    assert reals[loop_forms.FLUX, "half point, then node"] - reals[loop_forms.FLUX, "line"] == 10
    assert reals[loop_forms.FLUX, SCATTER] == reals[loop_forms.FLUX, "node, both its half points"] == 29
    # two colours go through stencils and rates twice.
    assert reals[loop_forms.FLUX, "half point, two colours"] == 29 + 9 + 10
    assert reals[loop_forms.VISCOUS_FLUX, "node"] == 4 + 9 + 1 + 12
    assert reals[loop_forms.VISCOUS_DIFFERENCE, "node, direction by direction"] == 3 * (4 + 2 * 4)
    counted = json.loads((ROOT / "docs/results/loop-modes-cpu.json").read_text())["counted"]
    assert {key: 8 * count for key, count in reals.items()} == {
        (row["loop"], row["mode"]): row["bytes_per_point"] for row in counted
    }


def test_a_measurement_and_what_it_says():
    device = backend("emulated")
    rows = loop_times.measure(device, 7, "fp64", 1)
    assert len(rows) == 3 * (3 + 5 + 4 + 2) + 6 + 6
    assert all(row["ns_per_point"] > 0 and row["bytes_per_point"] > 0 for row in rows)
    assert [row["launches"] for row in rows if row["mode"] == "half point, two colours"][:2] == [2, 2]
    with pytest.raises(HiresxError, match="too few"):
        loop_times.fields_of(device, 5, "fp64")
    assert loop_times.main(["--repeats", "0"]) == 2


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_no_form_is_in_the_solvers_program(target):
    solver, study = (
        set(generate(c, target)[1]) for c in (Configuration(viscosity="constant"), loop_forms.study("fp64"))
    )
    own = {name for name in study if name in loop_forms._MOVED}
    assert own and not own & solver and not any(name.startswith("no_slip") or "boundary" in name for name in study)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_nvidias_compiler_spills_nothing(precision):
    try:
        nvrtc.version()
    except HiresxError as error:
        pytest.skip(str(error))
    names = {"flux_line", "flux_gather", "interpolate_half", "viscous_flux_line", *loop_forms._MOVED}
    (entry,) = kernel_registers.report([loop_forms.study(precision)], ["sm_90"])
    found = {kernel["kernel"]: kernel for kernel in entry["kernels"] if kernel["kernel"] in names}
    assert set(found) == names
    assert not any(kernel["spill_stores"] or kernel["spill_loads"] for kernel in found.values())


# --- the page and its pictures


def stored(*names: str) -> list[str]:
    return [f"docs/results/{name}.json" for name in names]


PAGE = stored("loop-modes-cpu", "loop-modes-h200", "decomposed-h200-stage", "performance-h200-stage")


def test_the_page_is_what_its_results_make(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "loop-modes.md").read_text()
    command = next(line for line in text.splitlines() if "python docs/make/loop_modes.py" in line).split()
    paths, out = command[2:-2], command[-1]
    assert loop_modes.page([Path(path) for path in paths], Path(out)) == text


def test_a_page_with_a_gpu_and_one_without(capsys, tmp_path):
    cpu = json.loads((ROOT / PAGE[0]).read_text())
    rows = [row | {"ns_per_point": 0.5, "processor_ns": None} for row in cpu["rows"] if row["precision"] == "fp64"]
    gpu = {
        "kind": "device-loops", "backend": "cuda", "date": "2027-01-01", "hardware": {"gpus": [{"name": "NVIDIA G"}]},
        "rows": [{"nodes": 256, "precision": "fp64", "loops": rows}],
    }  # fmt: skip
    (tmp_path / "gpu.json").write_text(json.dumps(gpu))
    out = tmp_path / "page.md"
    assert loop_modes.main([str(ROOT / PAGE[0]), "--out", str(out)]) == 0
    assert "not measured" in out.read_text() and " 0.500 0.500 0.500 " not in out.read_text()
    assert loop_modes.main([str(ROOT / PAGE[0]), str(tmp_path / "gpu.json"), "--out", str(out)]) == 0
    assert "of a GPU (G 2027-01-01)" in out.read_text() and " 0.500 0.500 0.500 " in out.read_text()
    assert loop_modes.main([str(tmp_path / "gpu.json"), "--out", str(out)]) == 2
    assert "no file holds loop modes of a CPU" in capsys.readouterr().err


def test_speed_ups_are_over_the_core_at_as_many_points():
    def result(backend: str, **points: float) -> dict:
        return {
            "kind": "sizes" if backend == "cpu" else "device-rhs", "backend": backend,
            "hardware": {"gpus": [{"name": "NVIDIA G"}]},
            "rows": [
                {"points": int(name[1:]), "precision": "fp64", "viscous": True, "point_steps_per_s": rate}
                for name, rate in points.items()
            ],
        }  # fmt: skip

    curves = paper_figures.rates([result("cpu", p100=1e6, p10000=4e6), result("cuda", p1000=1e9, p100000=2e9)])
    ((name, (points, times)),) = paper_figures.speedups(curves).items()
    assert name == "G, plan fused" and list(points) == [1000, 100000]
    assert times == pytest.approx([1e9 / 2e6, 2e9 / 4e6])


def test_parts_of_a_step():
    rows = [("sweep_along", 2.0), ("update", 1.0), ("column_radii", 5.0), ("copy_halo", 0.5)]
    took = paper_figures.parts([{"kernel": kernel, "ns_per_point": ns} for kernel, ns in rows])
    assert took["inviscid terms"] == 6 and took["time advance"] == 3 and took["time step"] == 5
    assert took["ghosts"] == 1.5 and took["viscous terms"] == 0


@pytest.mark.slow
def test_pictures_of_what_is_stored(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn, save = {}, picture_file.save
    monkeypatch.setattr(picture_file, "save", lambda figure, to: drawn.update({to.name: figure}) or save(figure, to))
    results = [str(path) for path in sorted((ROOT / "docs" / "results").glob("*.json"))]
    assert paper_figures.main([*results, "--out", str(tmp_path)]) == 0
    for name in paper_figures.FIGURES:
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    reported.check("drawn-paper", "\n".join(f"{name}\n{reported.drawn(drawn[name])}" for name in sorted(drawn)))
    assert paper_figures.main([results[0], "--out", str(tmp_path)]) == 2
    assert "no rate of one core" in capsys.readouterr().err


@pytest.mark.slow
def test_rates_over_the_size_of_a_grid(capsys):
    assert grid_sizes.main(["--sizes", "8,10", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["points"] for row in rows] == [512, 1000] and {row["clock"] for row in rows} == {"processor"}
    assert np.all([row["point_steps_per_s"] > 0 for row in rows])
    with pytest.raises(SystemExit):
        grid_sizes.main(["--sizes", "8;10"])
