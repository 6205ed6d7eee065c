"""The cases that `hiresx new --from` writes: `hiresx check` accepts every one, or there is none."""

import json
import tomllib

import numpy as np
import pytest
from plot3d_files import write

from hiresx.case import Case, load
from hiresx.cli import execute
from hiresx.grid import Block, Grid, write_plot3d
from hiresx.simulation import Simulation

STREAM = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": 0.7142857142857143}


def box(x, y, z=(0.0,)) -> np.ndarray:
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    return np.stack([x, y, z])


def lines(lo, hi, n):
    return np.linspace(lo, hi, n)


def ring(n=40) -> np.ndarray:
    t, r = np.meshgrid(2 * np.pi * np.arange(n) / n, 1.1 ** np.arange(12), indexing="ij")
    return np.stack([r * np.cos(t), r * np.sin(t), 0 * r])[:, None]


def half_ball() -> np.ndarray:
    """Half a ball's shell around the x axis, which two faces are collapsed to."""
    r, t, p = np.meshgrid(lines(1, 2, 8), lines(0.0, np.pi, 17), lines(0, 2 * np.pi, 17), indexing="ij")
    return np.stack([r * np.cos(t), r * np.sin(t) * np.cos(p), r * np.sin(t) * np.sin(p)]).transpose(0, 3, 2, 1)


LEFT = box(lines(0, 1, 13), lines(0, 1, 17))
STARTS = {
    # name: (blocks, types that the meeting faces get, what is said)
    "patched": ([LEFT, box(lines(1, 2, 13), lines(0, 1, 23))], {"patched": 2}, "the flow goes on by interpolation"),
    "patched, the other face ends within a cell": (
        [LEFT, box(lines(1, 2, 13), lines(0, 0.84, 23))], {"patched": 2}, "the flow goes on by interpolation",
    ),
    "a gap of half a cell": (
        [LEFT, box(1.04 + lines(0, 1, 13), lines(0, 1, 23))], {"slip-wall": 2}, "nothing flows through this",
    ),
    "too thin a neighbour": (
        [LEFT, box(1 + lines(0, 0.1, 13), lines(0, 1, 23))], {"slip-wall": 1, "patched": 1}, "nothing can be",
    ),
    "one spacing": ([LEFT, box(1 + 1 / 12 + lines(0, 1, 13), lines(0, 1, 17))], {"slip-wall": 2}, "one spacing apart"),
    "an embedded block": (
        [box(lines(0, 1, 33), lines(0, 1, 33)), box(lines(0.3, 0.7, 33), lines(0.3, 0.7, 33))],
        {"far-field": 4}, "blocks over each other are computed each by itself",
    ),
    "an embedded block at a wall": (
        [box(lines(0, 1, 33), lines(0, 1, 33)), box(lines(0.3, 0.7, 33), lines(0.0, 0.4, 33))],
        {"far-field": 5}, "blocks over each other are computed each by itself",
    ),
    "a ring without its last node": ([ring()], {"periodic": 1}, "the last node of a ring left out"),
}  # fmt: skip


def started(folder, capsys, blocks) -> tuple[dict, str]:
    """The tables of the case that is written, which is checked, and what is said."""
    write_plot3d(folder / "g.x", Grid(tuple(Block(str(n), *nodes) for n, nodes in enumerate(blocks))))
    assert execute(["new", "--from", str(folder / "g.x"), str(folder / "case")]) == 0, capsys.readouterr().err
    said = " ".join(capsys.readouterr().out.split())
    assert execute(["check", str(folder / "case")]) == 0, capsys.readouterr().err
    capsys.readouterr()
    return tomllib.loads((folder / "case" / "case.toml").read_text()), said


@pytest.mark.parametrize("name", STARTS)
def test_what_is_written_is_accepted(tmp_path, capsys, name):
    blocks, types, words = STARTS[name]
    case, said = started(tmp_path, capsys, blocks)
    named = [c["type"] for c in case["boundary"] if "block" in c]
    assert {type_: named.count(type_) for type_ in set(named)} == types
    assert words in said


def test_the_range_ends_where_the_other_block_does(tmp_path, capsys):
    """The last node that a cell of the other face reaches is off its end: that node is no longer taken."""
    blocks, _, _ = STARTS["patched, the other face ends within a cell"]
    case, _ = started(tmp_path, capsys, blocks)
    (own,) = (c for c in case["boundary"] if c.get("block") == "block-1")
    last = own["range"]["j"][1] - 1
    assert lines(0, 1, 17)[last] <= 0.85 < lines(0, 1, 17)[last + 1]


@pytest.mark.parametrize("name", ["an embedded block", "an embedded block at a wall", "a ring without its last node"])
def test_a_uniform_flow_stays_in_what_is_written(tmp_path, capsys, name):
    """No walls stand in it: with every far field the stream, nothing departs from that."""
    started(tmp_path, capsys, STARTS[name][0])
    tables = load(tmp_path / "case").model_dump(mode="json", exclude_none=True)
    for condition in tables["boundary"]:
        assert condition["type"] in ("far-field", "periodic")
        if condition["type"] == "far-field":
            condition["state"] = STREAM
    case = Case.from_dict({**tables, "initial": {"state": STREAM}, "time": {"steps": 3}})
    simulation = Simulation(case, backend="cpu")
    simulation.run()
    for block in simulation.blocks:
        for key, value in STREAM.items():
            np.testing.assert_allclose(block.state(key), value, atol=1e-13)


def test_check_warns_of_blocks_over_each_other(tmp_path, capsys):
    started(tmp_path, capsys, STARTS["an embedded block"][0])
    assert execute(["check", str(tmp_path / "case"), "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["setup"]["warnings"]
    assert any("'block-1' and block 'block-2' lie over each other" in line for line in warnings)


def test_poles_start_as_poles(tmp_path, capsys):
    case, _ = started(tmp_path, capsys, [half_ball()])
    assert [c["type"] for c in case["boundary"] if "block" in c] == ["pole", "pole"]


def bent(x, y):
    """A fold of the grid lines that no one node makes."""
    return x, np.where((x > 0.3) & (x < 0.6), 1.0 - y, y)


@pytest.mark.parametrize(
    "nodes, words",
    [
        (np.stack([*bent(*LEFT[:2]), LEFT[2]]), "the Jacobian is not positive"),
        (box(lines(0, 1, 13), lines(0, 1, 5)), "5 nodes in direction j"),
    ],
)
@pytest.mark.parametrize("folder", [[], ["case"]])
def test_no_case_is_written_that_is_refused(tmp_path, capsys, monkeypatch, nodes, words, folder):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "g.x", [nodes])
    assert execute(["new", "--from", "g.x", *folder]) == 2
    told = capsys.readouterr()
    assert words in " ".join(told.err.split()) and "hiresx info g.x" in told.err
    assert "[grid]" not in told.out and not (tmp_path / "case").exists()
