"""What `hiresx check` refuses or remarks before a run would: distances to walls, plans, models, forces, axes."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from command_line import command

from hiresx import Case, HiresxError, load
from hiresx.base.notify import notifications_to
from hiresx.cli.check_inflow import notes_of_characteristic_inflows, notes_of_viscous_outflows
from hiresx.cli.check_levels import computed_grid
from hiresx.cli.grid_checks import check_grid
from hiresx.decomposition import decompose, levels
from hiresx.grid import Block, Grid, build, write_plot3d

CASE = """
PLAN
[grid]
generator = "box"
n = [16, 16, 1]
lower = [0.0, 0.0, 0.0]
upper = [1.0, 1.0, 0.0]
periodic = ["x"]
[gas]
reynolds = 100.0
[time]
steps = 1
cfl = 0.5
[initial]
state = { rho = 1.0, u = 0.1, p = 0.7142857 }
[[boundary]]
faces = ["imin", "imax"]
type = "periodic"
[[boundary]]
faces = ["jmin", "jmax"]
type = "WALL"
"""


def check(folder, more="", plan="", wall="no-slip-wall"):
    (folder / "case.toml").write_text(CASE.replace("PLAN", plan).replace("WALL", wall) + more)
    return command("check", folder)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("[output]", "output.variables"),
        ('[[output.subset]]\nname = "low"\nrange = { j = [0, 3] }\nevery_steps = 1', "output.subset.0.variables"),
    ],
)
def test_a_distance_to_walls_is_refused_where_there_are_none(tmp_path, table, key):
    more = f'{table}\nvariables = ["rho", "wall_distance"]\n'
    assert check(tmp_path, more)[0] == 0
    status, _, err = check(tmp_path, more, wall="slip-wall")
    assert status == 2 and key in err and "slip walls" in err and "model" not in err.replace("modelled-wall", "")


def test_the_compact_plan_is_refused_with_a_model_that_it_lacks(tmp_path):
    model = '[turbulence]\nmodel = "spalart_allmaras"\n'
    assert check(tmp_path, model)[0] == 0
    status, _, err = check(tmp_path, model, plan='plan = "compact"')
    assert status == 2 and 'turbulence.model = "spalart_allmaras"' in err


def test_a_far_field_without_eddy_viscosity_is_remarked(tmp_path):
    model = '[turbulence]\nmodel = "spalart_allmaras"\n'
    assert "turbulence.far_field" not in check(tmp_path, model)[1]
    assert "the flow stays laminar" in check(tmp_path, model + "far_field = 0.0\n")[1]


@pytest.mark.parametrize("n", [[16, 16, 1], [16, 1, 16]])
def test_no_flow_is_kept_along_an_axis_with_one_node(n):
    single = "xyz"[n.index(1)]
    upper = [float(count > 1) for count in n]
    tables = {
        "grid": {"generator": "box", "n": n, "lower": [0, 0, 0], "upper": upper},
        "time": {"steps": 1, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
        "boundary": [{"faces": "all", "type": "periodic"}],
    }
    Case.from_dict({**tables, "body_force": {"keep": "mass_flow", "axis": "x"}})
    with pytest.raises(HiresxError, match=f"body_force.keep: the grid has one node along {single}"):
        Case.from_dict({**tables, "body_force": {"keep": "mass_flow", "axis": single}})


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [("x", "must be a list", 'write ["x"]'), (["x", "x"], 'periodic names "x" twice', "")],
)
def test_periodic_axes_are_a_list_without_repetition(given, message, hint):
    tables = {
        "grid": {"generator": "box", "n": [16, 16, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": given},
        "time": {"steps": 1, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
        "boundary": [{"faces": "all", "type": "periodic"}],
    }
    with pytest.raises(HiresxError, match=message) as found:
        Case.from_dict(tables)
    assert hint in found.value.hint


RECYCLED = """
[grid]
generator = "box"
n = [21, 9, 12]
lower = [0.0, 0.0, 0.0]
upper = [2.0, 1.0, 1.1]
periodic = ["z"]
[time]
steps = 1
cfl = 0.5
[initial]
state = { rho = 1.0, u = 1.6, p = 0.7142857 }
[[boundary]]
faces = ["imin"]
type = "recycling-inflow"
function = "mean"
distance = 1.23
[[boundary]]
faces = ["imax"]
type = "supersonic-outflow"
[[boundary]]
faces = ["jmin", "jmax"]
type = "slip-wall"
[[boundary]]
faces = ["kmin", "kmax"]
type = "periodic"
[[sponge]]
axis = "x"
start = START
end = 2.0
strength = 1.0
state = { rho = 1.0, u = 1.6, p = 0.7142857 }
"""


@pytest.mark.parametrize(("start", "share"), [(1.0, "20%"), (1.3, None)])
def test_where_the_plane_of_recycled_fluctuations_lies(tmp_path, start, share):
    """The node that is nearest to the distance, and whether a sponge damps what is taken there."""
    (tmp_path / "case.toml").write_text(RECYCLED.replace("START", str(start)))
    (tmp_path / "case.py").write_text("def mean(x, y, z):\n    return 1.0, 1.6, 0.0, 0.0, 1 / 1.4\n")
    status, out, _ = command("check", tmp_path, "--json")
    report = json.loads(out)
    (plane,) = report["recycling"]
    assert status == 0 and (plane["index"], plane["node"]) == ("i", 12)
    assert plane["distance"] == pytest.approx(1.2) and plane["bounds"][0] == pytest.approx([1.2, 0.0, 0.0])
    said = [text for text in report["setup"]["warnings"] if "recycling-inflow" in text]
    assert bool(said) == bool(plane["sponges"]) == (share is not None)
    assert share is None or (share in said[0] and "i = 12" in said[0] and "sponge.0" in said[0])
    assert "i = 12" in command("check", tmp_path)[1]


# Gas at rest within walls; the keys of the grid follow.
AT_REST = """
boundary = [{ faces = "all", type = "slip-wall" }]
[time]
steps = 1
cfl = 0.5
[initial.state]
rho = 1.0
p = 0.7
[grid]
"""


@pytest.mark.parametrize(("ratio", "warned"), [(30.0, False), (3000.0, True)])
def test_stretching_that_costs_accuracy_is_said_with_its_place(tmp_path, ratio, warned):
    (tmp_path / "case.toml").write_text(f"""{AT_REST}
generator = "box"
n = [13, 9, 1]
lower = [0.0, 0.0, 0.0]
upper = [1.0, 1.0, 0.0]
stretch.x = {{ cluster = "upper", ratio = {ratio} }}
""")
    status, out, _ = command("check", tmp_path, "--json")
    report = json.loads(out)
    said = [text for text in report["setup"]["warnings"] if "the spacing along a grid line" in text]
    assert status == 0 and bool(said) == warned == (report["grid"][0]["stretching"]["value"] > 2)
    assert not said or ("block 'box'" in said[0] and "node (i, j, k) = (11, 0, 0), (x, y, z) = (0.99" in said[0])


@pytest.mark.parametrize(
    ("xs", "said"),
    [
        (1 + 1.9 * np.linspace(0, 1, 11), []),
        (1 + 3 * np.linspace(0, 1, 11), ["a factor of 3 across the connection of face imax to block 'block-2'"]),
        (
            np.concatenate([[1, 0.97], 1.1 + 0.1 * np.arange(9)]),
            [
                "changes by a factor of 4.33 at",
                "3.33 across the connection",
                "'block-2': 10 cells with a negative volume",
            ],
        ),
        (np.arange(11.0) * 1e3 + 1, None),
    ],
)
def test_what_is_wrong_at_the_joint_of_two_blocks_is_said(tmp_path, xs, said):
    """Even blocks side by side: the second one has other spacings, or a line that turns back behind the joint."""

    def block(name, x):
        z, y, x = np.meshgrid([0.0], np.linspace(0, 1, 11), x, indexing="ij")
        return Block(name, x, y, z)

    write_plot3d(tmp_path / "g.x", Grid((block("a", np.linspace(0, 1, 11)), block("b", xs))))
    (tmp_path / "case.toml").write_text(f'{AT_REST}file = "g.x"')
    status, out, _ = command("check", tmp_path, "--json")
    if said is None:
        said = json.loads(out)["error"]
        assert status == 2 and "no cell is folded there" in said and "behind its face" in said
        return
    report = json.loads(out)
    found = [text for text in report["setup"]["warnings"] if "spacing along" in text or "volume" in text]
    assert len(found) == len(said) and all(words in text for words, text in zip(said, found, strict=True))
    ratio = (xs[1] - xs[0]) / 0.1
    for connection in report["connections"]:
        assert connection["stretching"]["value"] == pytest.approx(max(abs(ratio), 1 / abs(ratio)))


@pytest.mark.parametrize("nodes", [1, 7])
@pytest.mark.parametrize(
    ("across", "along", "said"),
    [
        (0.4, 1.5, None),
        (0.0, 0.5, None),
        (1.5, 0.3, ["boundary.0 (characteristic-inflow) on face imin", "1.5 at most", '"supersonic-inflow"']),
        (-0.4, 0.3, ["boundary.0 (characteristic-inflow) on face imin", "0.4 at most", '"pressure-outflow"']),
        (-1.5, 0.0, ["leaves the domain", "1.5 at most", '"supersonic-outflow"']),
    ],
)
def test_a_state_that_does_not_enter_slower_than_sound_is_remarked(nodes, across, along, said):
    """Through a face at 30 degrees to y, to which grid lines are not normal."""
    sine, cosine = np.sin(np.pi / 6), np.cos(np.pi / 6)
    state = {"rho": 1.0, "u": across * cosine - along * sine, "v": across * sine + along * cosine, "p": 1 / 1.4}
    case = Case.from_dict(
        {
            "grid": {"generator": "box", "n": [12, 12, nodes], "lower": [0, 0, 0], "upper": [1, 1, float(nodes > 1)]},
            "time": {"steps": 1, "cfl": 0.5},
            "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
            "boundary": [
                {"faces": ["imin"], "type": "characteristic-inflow", "state": state},
                {"faces": "all", "type": "slip-wall"},
            ],
        }
    )
    grid = build(case.grid)
    (block,) = grid.blocks
    sheared = replace(block, x=block.x - np.tan(np.pi / 6) * block.y)
    found = list(notes_of_characteristic_inflows(case, decompose(case, replace(grid, blocks=[sheared]))))
    assert len(found) == (said is not None) and all(words in found[0] for words in said or ())


@pytest.mark.parametrize(("reynolds", "given", "wall", "remarked"), [
    (400.0, {"mass_flux": 0.1}, "slip-wall", "mass flow"),
    (400.0, {"mass_flux": 0.1, "relaxation": 5.0}, "slip-wall", None),
    (400.0, {"pressure": 0.7}, "slip-wall", None),
    (400.0, {"pressure": 0.7}, "no-slip-wall", "pressure in a boundary layer"),
    (400.0, {"pressure": 0.7, "relaxation": 5.0}, "no-slip-wall", None),
    (None, {"mass_flux": 0.1}, "slip-wall", None),
])  # fmt: skip
def test_an_outflow_that_friction_changes_is_remarked(reynolds, given, wall, remarked):
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},
        "gas": {"reynolds": reynolds},
        "time": {"steps": 1},
        "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
        "boundary": [{"faces": ["imax"], "type": "pressure-outflow", **given}, {"faces": "all", "type": wall}],
    })  # fmt: skip
    found = list(notes_of_viscous_outflows(case, decompose(case, build(case.grid))))
    assert len(found) == (remarked is not None)
    assert all(words.startswith("boundary.0 (pressure-outflow): ") and f"the {remarked} " in words for words in found)


@pytest.mark.parametrize(("speed", "remarked"), [(0.24, False), (1.2, True)])
def test_check_says_that_a_state_enters_faster_than_sound(speed, remarked):
    status, out, _ = command("check", "free-stream", "--set", f"boundary.0.state.u={speed}")
    assert status == 0 and ('take type = "supersonic-inflow"' in " ".join(out.split())) == remarked


def test_levels_of_many_nodes_are_announced_with_what_they_take(monkeypatch):
    monkeypatch.setattr(levels, "ANNOUNCED", 2000)
    case = load("isentropic-vortex", overrides=["grid.n=[16,16,1]", "refine.region=[{level=3, x=[-1,1], y=[-1,1]}]"])
    notes: list[str] = []
    with notifications_to(notes.append):
        computed_grid(case, check_grid(case))
    assert [re.sub("about .* s", "about N s", note) for note in notes] == [
        "refine: level 2 of 3 is made: 4,096 nodes, about N s",
        "refine: level 3 of 3 is made: 16,384 nodes, about N s",
    ]
