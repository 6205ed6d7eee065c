"""The page of public grids is what its results say, and they are made by reading files as they come."""

import io
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import public_grid_runs
import public_grids
from arrangements import shaken
from multiblock import Arrangement
from paths import ROOT
from plot3d_files import write
from test_foreign_connectivity import nmf

from hiresx.grid.blocks import face_range
from hiresx.grid.connections import Connection


def test_the_page_is_made_from_the_results(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    shown = Path("docs/public-grids.md")
    before = shown.read_text()
    target = tmp_path / "page.md"
    public_grids.write(Path("docs/results/public-grids.json"), target)
    assert target.read_text().replace(str(target), str(shown)) == before


def test_the_results_are_of_the_listed_files_and_hold_a_uniform_flow():
    found = json.loads((ROOT / "docs/results/public-grids.json").read_text())["grids"]
    assert [(g["repository"], g["path"]) for g in found] == [
        (g["repository"], g["path"]) for g in public_grid_runs.listed()
    ]
    computed = [g for g in found if "refused" not in g]
    assert len(computed) >= 25
    assert all(g["deviation"] < 1e-12 and g.get("agree", True) for g in computed)
    assert {g["family"] for g in found if "flow" in g} and all(g["flow"]["least_p"] > 0 for g in found if "flow" in g)


def test_files_are_read_as_they_come(tmp_path, monkeypatch):
    """In an archive, with the author's joins and walls beside it; refusals are kept as such."""
    folder = tmp_path / "some/one"
    folder.mkdir(parents=True)
    arrangement = Arrangement(shaken((16, 15, 15)).blocks[0], 2, 2, True)
    write(tmp_path / "g.x", [np.stack([b.x, b.y, b.z]) for b in arrangement.blocks], "stream", "f4", ">")
    with tarfile.open(folder / "case.tar.gz", "w:gz") as archive:
        for name, data in (("g.x", (tmp_path / "g.x").read_bytes()), ("g.nmf", nmf(arrangement).encode())):
            entry = tarfile.TarInfo(f"case/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    (folder / "bad.x").write_text("this is no grid\n")
    entry = {"repository": "some/one", "family": "a cube"}
    files = [
        {**entry, "path": "case.tar.gz!case/g.x", "connectivity": "case.tar.gz!case/g.nmf", "flow": []},
        {**entry, "path": "bad.x"},
    ]
    monkeypatch.setattr(public_grid_runs, "listed", lambda: files)
    monkeypatch.setattr(public_grid_runs, "STEPS", 3)
    good, bad = public_grid_runs.measured(tmp_path)
    assert good["form"] == "C stream, big-endian, single precision" and good["agree"] and good["beyond"] == 0
    assert good["joins"] == 2 * len(arrangement.tables) and good["deviation"] < 1e-13
    assert good["flow"]["walls"] == ["viscous_solid"] and 0 < good["flow"]["least_p"] < 1 < good["flow"]["largest_p"]
    assert "not a number" in bad["refused"] and str(tmp_path) not in bad["refused"]
    assert "deviation" not in bad


def test_a_rim_can_be_left_out():
    blocks = [SimpleNamespace(size=(5, 4, 3))] * 2
    joined = [Connection(0, "imax", face_range("imax", (5, 4, 3)), 1, offset=(-5, 0, 0))]
    found = [public_grid_runs._ghosts(joined, SimpleNamespace(blocks=blocks), rim) for rim in (True, False)]
    assert found[0] == {(0, 5, j, k): (1, 0, j, k) for j in range(4) for k in range(3)}
    assert found[1] == {(0, 5, j, 1): (1, 0, j, 1) for j in (1, 2)}
