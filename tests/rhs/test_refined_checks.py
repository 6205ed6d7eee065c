"""Refined cases: what `hiresx check` says of probes and of large levels, averages of tiles."""

import json

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from command_line import command
from ranks import run_ranks

from hiresx import Case, HiresxError, Simulation, load
from hiresx.decomposition import levels
from hiresx.decomposition.rank_cost import work
from hiresx.post import turbulence
from hiresx.results import Run

CASE = """
[grid]
generator = "box"
n = [41, 41, 1]
lower = [0.0, 0.0, 0.0]
upper = [1.0, 1.0, 0.0]
[refine]
[[refine.region]]
level = LEVEL
x = [0.4, 0.6]
y = [0.4, 0.6]
[time]
steps = 4
cfl = 0.5
[initial]
function = "flow"
[[boundary]]
faces = "all"
type = "slip-wall"
"""
FLOW = """
def flow(x, y, z):
    p = 1 / 1.4 + 0.1 * (((x - 0.5) ** 2 + (y - 0.45) ** 2) < 0.01)
    return 1 + 0 * x, 0 * x, 0 * x, 0 * x, p
"""
PROBES = """
[[probe]]
name = "in"
points = [[0.5, 0.5, 0.0]]
every = 1
filter = "none"
[[probe]]
name = "out"
points = [[0.1, 0.1, 0.0]]
every = 1
filter = "none"
"""


def written(folder, level=1, more=""):
    (folder / "case.py").write_text(FLOW)
    (folder / "case.toml").write_text(CASE.replace("LEVEL", str(level)) + more)
    return folder


def test_check_knows_the_spacing_of_the_finest_level_at_a_probe(tmp_path):
    status, out, err = command("check", written(tmp_path, 2, PROBES), "--json")
    assert status == 0, out + err
    found = {p["probe"]: p["cutoff"] for p in json.loads(out)["setup"]["resolution"]["probes"]}
    assert found["in"] == pytest.approx(4 * found["out"], rel=1e-6)


def test_check_says_what_each_level_costs(tmp_path):
    case = written(tmp_path, 2)
    status, out, err = command("check", case, "--json")
    assert status == 0, out + err
    found = json.loads(out)["levels"]
    made = Simulation(load(case), backend="cpu").solver.decomposition
    at = [
        {(round(x, 9), round(y, 9)) for b, tile in zip(made.blocks, made.levels.tiles, strict=True)
         if tile.level == level for x, y in zip(b.x.ravel().tolist(), b.y.ravel().tolist(), strict=True)}
        for level in range(3)
    ]  # fmt: skip
    assert [row["points"] for row in found] == [len(places) for places in at]
    assert [row["under"] for row in found] == [len(at[0] & at[1]), len(at[1] & at[2]), 0]
    assert found[0]["part"] == 1 and 0 < found[2]["part"] < found[1]["part"] < 1
    assert sum(row["time"] for row in found) == pytest.approx(1) and found[2]["time"] > found[2]["part"]
    works = [work(block.size) for block in made.blocks]
    assert found[0]["time"] == pytest.approx(works[0] / sum(works))
    status, out, err = command("check", case)
    assert "under finer ones" in out and f"{found[1]['under']:,}" in out


def test_check_knows_the_levels_that_the_initial_flow_asks_for(tmp_path):
    case = written(tmp_path)
    text = (case / "case.toml").read_text()
    given = text[text.index("[[refine.region]]") : text.index("[time]")]
    (case / "case.toml").write_text(text.replace(given, 'criterion = "density-gradient"\nrefine = 0.1\nlevels = 2\n'))
    (case / "case.py").write_text(FLOW.replace("1 + 0 * x", "1 + 0.5 * (x < 0.5)"))
    status, out, err = command("check", case, "--json")
    assert status == 0, out + err
    levels = json.loads(out)["levels"]
    simulation = Simulation(load(case), backend="cpu")
    assert len(levels) == 3
    assert sum(level["points"] for level in levels) == simulation.solver.points


def test_levels_beyond_the_memory_are_refused_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(levels, "host_memory", lambda: 20e9)
    status, _, err = command("check", written(tmp_path, 8))
    assert status == 2
    assert "level 8 of the whole grid has 110,166,016 nodes" in err and "20 GB of memory" in err


def test_averages_of_tiles_are_those_of_the_nodes_that_they_share_with_the_grid(tmp_path):
    case = load(written(tmp_path, 1, "[average]\nevery = 1\n"))
    simulation = Simulation(case, backend="cpu", out=tmp_path / "out")
    simulation.run()
    blocks = Run(tmp_path / "out").averages.children
    made, varied = simulation.solver.decomposition, 0.0
    coarse = blocks[made.blocks[0].name]["p"].values
    for block, tile in zip(made.blocks, made.levels.tiles, strict=True):
        if tile.level == 0:
            continue
        (i0, i1), (j0, j1), _ = tile.box
        fine = blocks[block.name]["p"].values[:, (-j0) % 2 :: 2, (-i0) % 2 :: 2]
        under = coarse[:, -(-j0 // 2) : (j1 - 1) // 2 + 1, -(-i0 // 2) : (i1 - 1) // 2 + 1]
        np.testing.assert_allclose(fine, under, rtol=1e-12)
        varied = max(varied, np.ptp(fine))
    assert varied > 1e-2
    with pytest.raises(HiresxError, match=r"do not go with \[refine\]"):
        turbulence(tmp_path / "out")


def looked_at_outflows(comm):
    """What the run says of the outflows of a case with fixed levels, and of one whose levels follow the flow."""
    found = []
    for refine in ({"region": [{"x": [0.3, 0.6]}]}, {"criterion": "density-curvature"}):
        case = Case.from_dict(
            {
                "grid": {"generator": "box", "n": [33, 33, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},
                "refine": {"tile": 8, **refine},
                "time": {"steps": 2},
                "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
                "boundary": [
                    {"faces": ["imax"], "type": "supersonic-outflow"},
                    {"faces": "all", "type": "slip-wall"},
                ],
            }
        )
        simulation = Simulation(case, backend="cpu", comm=comm)
        simulation.run(progress=False)
        own = [p.condition for p in simulation.solver.decomposition.patches if p.condition in case.boundary]
        found.append(len(own) >= 4 and all(any(condition is c for c in case.boundary) for condition in own))
    return found


def test_conditions_of_levels_are_those_of_the_case_on_every_rank():
    """A supersonic outflow beside levels stopped runs on two ranks with StopIteration."""
    assert run_ranks(2, looked_at_outflows, timeout=200) == [[True, True]] * 2


def test_check_counts_the_nodes_of_the_finest_level_in_a_layer_that_enters():
    """The layers of the nozzle of `levels-quick` have two cells of the grid itself and four of its level."""
    status, out, err = command("check", "planar-jet", "--preset", "levels-quick", "--json")
    assert status == 0, out + err
    layers = json.loads(out)["setup"]["inflow_layers"]
    assert [(layer["block"], layer["wall"]) for layer in layers] == [("nozzle", "jmin"), ("nozzle", "jmax")]
    assert all(layer["first_spacing"] == pytest.approx(0.0125, rel=0.02) and layer["points"] == 4 for layer in layers)
