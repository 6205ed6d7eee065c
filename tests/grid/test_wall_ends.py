"""What `hiresx check` says of walls that end beside a connection of the same face."""

import numpy as np

from hiresx import Case
from hiresx.case import load
from hiresx.cli.check_walls import notes_of_ends
from hiresx.decomposition import decompose
from hiresx.grid import Block, Grid, build, write_connectivity, write_plot3d

GAS = {"rho": 1.0, "p": 0.7142857142857143}


def notes(folder, connectivity, *walls):
    """The notes of a case in `folder` whose `walls` are slip walls; its other faces are far fields."""
    grid = {"file": str(folder / "grid.xyz")} | ({"connectivity": str(folder / "join.toml")} if connectivity else {})
    boundary = [wall | {"type": "slip-wall"} for wall in walls] + [{"faces": "all", "type": "far-field", "state": GAS}]
    tables = {"title": "t", "grid": grid, "time": {"steps": 1}, "initial": {"state": GAS}, "boundary": boundary}
    case = Case.from_dict(tables)
    return list(notes_of_ends(decompose(case, build(case.grid))))


def c_grid(folder, cut):
    """Writes a C-grid, with its connectivity unless it is `cut` in two ahead of the airfoil. The first block has the
    trailing edge at i = 12. Returns the number of nodes of the last block up to it, the edge included."""
    sizes = {"n_airfoil": 41, "n_wake": 12, "n_normal": 13}
    grid = build(load("naca0012", overrides=[f"grid.{key}={n}" for key, n in sizes.items()]).grid)
    if not cut:
        write_connectivity(folder / "join.toml", grid)
    (block,) = grid.blocks
    parts = [np.s_[:33], np.s_[32:]] if cut else [np.s_[:]]
    blocks = [Block(str(n), *(c[..., part] for c in (block.x, block.y, block.z))) for n, part in enumerate(parts)]
    write_plot3d(folder / "grid.xyz", Grid(blocks))
    return blocks[-1].size[0] - 12


def test_trailing_edge_of_a_c_grid(tmp_path):
    """Where coinciding nodes alone connect the sides of the cut, the trailing edge is a node of the cut; with the
    region of the airfoil it is one of the wall."""
    last = c_grid(tmp_path, cut=False)
    found = notes(tmp_path, False, {"faces": ["jmin"], "range": {"i": [13, last - 1]}})
    check_notes(found, "block-1", last - 1)
    assert notes(tmp_path, True, {"faces": "all", "range": "wall"}) == []
    last = c_grid(tmp_path, cut=True)
    wall = {"faces": ["jmin"]}
    first, second = (
        {"block": "block-1", "range": {"i": [13, "end"]}},
        {"block": "block-2", "range": {"i": [0, last - 1]}},
    )
    check_notes(notes(tmp_path, False, wall | first, wall | second), "block-2", last - 1)


def check_notes(found, block, edge):
    lower, upper = found
    assert "on face jmin of block 'block-1' ends at i = 13, beside a connection that has the node i = 12" in lower
    assert f"of block '{block}' ends at i = {edge - 1}, beside a connection that has the node i = {edge}" in upper
    assert all("at (x, y, z) = (1, 0, 0): the cell between is no wall" in note for note in found)


def test_edge_of_a_step(tmp_path):
    """A channel that opens into a higher one: beyond the edge there is no block on the other side."""
    x, y = np.meshgrid(np.linspace(-1.0, 0.0, 9), np.linspace(0.0, 1.0, 9))
    wide = x.repeat(2, axis=0)[1:] + 1, np.vstack([y[:-1] - 1, y])
    blocks = [Block(name, a[None], b[None], 0 * a[None]) for name, (a, b) in (("a", (x, y)), ("b", wide))]
    write_plot3d(tmp_path / "grid.xyz", Grid(blocks))
    (note,) = notes(tmp_path, False, {"block": "block-2", "faces": ["imin"], "range": {"j": [0, 8]}})
    assert "on face imin of block 'block-2' ends at j = 7, beside a connection that has the node j = 8" in note
