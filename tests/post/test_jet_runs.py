"""Runs of jets that are kept, and the page that is made of them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from paths import ROOT

pytest.importorskip("xarray", reason="pip install '.[post]'")

import jets
import made_runs

from hiresx.errors import HiresxError
from hiresx.post import jet, jet_theory

JET = made_runs.CASE | {"parameters": {"pressure_ratio": 2.09, "exit_mach": 1.0}}
STORED = "docs/results/jets-h200.json"


def test_the_page_is_made_of_what_is_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = "docs/jets.md"
    before = (ROOT / page).read_text()
    made = tmp_path / "jets.md"
    jets.write(jets.Path(STORED), made)
    assert made.read_text().replace(str(made), page) == before, f"run: python docs/make/jets.py page {STORED}"
    for picture in json.loads((ROOT / STORED).read_text())["pictures"]:
        assert (ROOT / "docs" / picture["file"]).is_file()


def tone(strouhal, amplitude, level=20.0):
    return {"strouhal": strouhal, "amplitude": amplitude, "above_background_db": level}


def test_what_is_asked_is_read_from_what_was_found():
    found = {
        "cells": [{"end": 1.3, "length": 1.3}, {"end": 2.5, "length": 1.2}],
        "screech": {"fundamental": tone(0.11, 1.0), "other_tones": [tone(0.4, 2.0)]},
        "predictions": [{"formula": "sheet", "strouhal": 9.0}, {"formula": "Powell, K = 5.2", "strouhal": 0.1},
                        {"formula": "Krothapalli, K = 5", "strouhal": 0.12}],
    }  # fmt: skip
    names = ("end of cell 1", "length of cell 2", "length of cell 3", "St of the tone", "tone above the rest, dB")
    assert [jets.value(found, name) for name in names] == [1.3, 1.2, None, 0.11, 20.0]
    assert jets.value(found, "St of the loudest tone") == 0.4
    assert jets.value(found, "St over that of the correlations") == pytest.approx(1.0)
    assert jets.value({**found, "screech": None}, "St of the tone") is None


def test_a_run_is_kept_without_its_place_and_makes_a_page(tmp_path):
    """A round jet with a helical tone at the measured frequency and cells of 1.3."""
    case = made_runs.CASE | {"parameters": {"pressure_ratio": 1.729}, "grid": {"generator": "round-jet"}}
    folder = made_runs.run(tmp_path / "round", case)
    record = json.loads((folder / "run.json").read_text())
    gpu = {"name": "A GPU", "memory_bytes": 1, "uuid": "GPU-1"}
    record |= {"points": 100, "steps": 10, "time": 300.0, "wall_s": 60.0, "point_steps_per_s": 1e6, "backend": "cuda",
               "started": "2026-01-02T00:00:00+00:00", "versions": {"driver": "580"},
               "hardware": {"host": "mine", "cpu": "A CPU", "gpus": [gpu]}}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(record))
    state = jet_theory.expand_jet(1.729, shape="round")
    time, angles = 0.05 * np.arange(6000), np.arange(8) * np.pi / 4
    turning = 2e-3 * np.sin(2 * np.pi * 0.351 * state.velocity / state.length * time[:, None] - angles)
    noise = 2e-4 * np.random.default_rng(2).standard_normal(turning.shape)
    ring = np.stack([0 * angles - 0.1, 0.7 * np.cos(angles), 0.7 * np.sin(angles)], axis=1)
    made_runs.probe(folder, "ring", time, ring, p=1 / 1.4 + turning + noise)
    x = np.linspace(0.05, 7.95, 160)
    p = 1 / 1.4 + 0.4 * np.exp(-x / 6) * np.cos(2 * np.pi * x / 1.3)
    made_runs.probe(folder, "axis", time[:50], np.stack([x, 0 * x, 0 * x], axis=1), p=np.tile(p, (50, 1)),
                    u=np.tile(1.2 + 0 * x, (50, 1)))  # fmt: skip
    out = tmp_path / "kept.json"
    jets.main(["collect", str(folder), "--command", "hiresx run round-jet", "--out", str(out)])
    text = out.read_text()
    assert str(tmp_path) not in text and "mine" not in text and "GPU-1" not in text
    (kept,) = json.loads(text)["runs"]
    assert kept["ring"][0]["kind"] == "helical" and abs(kept["ring"][0]["m"]) == 1
    jets.main(["page", str(out), "--out", str(tmp_path / "page.md")])
    lines = (tmp_path / "page.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    asked = {row[1]: (float(row[3]), row[4]) for row in rows if len(row) == 5 and row[2].startswith(("1.25", "0.316"))}
    assert asked["length of cell 2"] == (pytest.approx(1.3, abs=0.01), "yes")
    assert asked["St of the loudest tone"] == (pytest.approx(0.351, abs=0.004), "yes")


def test_a_file_that_holds_no_runs(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(HiresxError, match="holds no runs of jets"):
        jets.write(tmp_path / "a.json", tmp_path / "a.md")


def test_a_picture_of_vorticity_over_dilatation(tmp_path, monkeypatch):
    """Two blocks side by side; the colours are those of the vorticity where it is strong."""
    image = pytest.importorskip("matplotlib.image", reason="pip install '.[plot]'")
    import jet_plane

    asked = []

    class Run:
        def fields(self, subset):
            asked.append(subset)
            blocks = {}
            for n in range(2):
                x, y = np.meshgrid(np.linspace(32.0 * n, 32.0 * n + 32, 9), np.linspace(-15, 15, 7))
                names = {"x": x, "y": y, "vorticity_z": np.where(y > 0, 3.0, -3.0), "dilatation": 0.05 * np.sin(x)}
                blocks[str(n)] = {name: SimpleNamespace(values=values[None]) for name, values in names.items()}
            return SimpleNamespace(children=blocks)

    monkeypatch.setattr(jet_plane.hiresx, "open", lambda run: Run())
    picture = tmp_path / "plane.png"
    jet_plane.main(["runs/jet", "--subset", "plane", "--out", str(picture)])
    assert asked == ["plane"]
    colours = image.imread(picture)[:, :, :3]
    red, blue = (colours[..., a] - colours[..., b] > 0.3 for a, b in ((0, 2), (2, 0)))
    axes = slice(40, 420), slice(120, 1000)
    assert red[axes][:150].mean() > 0.9 and blue[axes][-150:].mean() > 0.9


def test_a_run_without_any_result_is_refused(tmp_path):
    """Nothing but the residual: the page would be empty."""
    folder = made_runs.run(tmp_path, JET)
    made_runs.probe(folder, "residual", np.linspace(0, 3, 31), [[0.0, 0.0, 0.0]], rho=np.ones((31, 1)))
    with pytest.raises(HiresxError, match="has neither averages nor a probe of p and u along the axis"):
        jet(folder)


def test_a_mean_of_no_sample_is_refused(tmp_path):
    folder = made_runs.run(tmp_path, JET)
    x = np.linspace(0, 10, 41)
    line = np.stack([x, 0 * x, 0 * x], axis=1)
    made_runs.probe(folder, "axis", np.linspace(0, 3, 31), line, p=np.ones((31, 41)), u=np.ones((31, 41)))
    with pytest.raises(HiresxError, match="axis has no sample from t = 4 to 3") as error:
        jet(folder, start=4.0)
    assert "its samples are from t = 0 to 3" in error.value.hint
