"""What a rank holds of a large grid file while it reads its part."""

import tracemalloc

import numpy as np
from plot3d_files import write

from hiresx.case.schema import Case
from hiresx.decomposition import Part, domain
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.grid import from_file, stored_coordinates

N = 112
STATE = {"rho": 1.0, "p": 0.7142857142857143}


def case(path) -> Case:
    far = {"faces": "all", "type": "far-field", "state": STATE}
    tables = {"grid": {"file": str(path)}, "time": {"steps": 1}, "initial": {"state": STATE}, "boundary": [far]}
    return Case.from_dict(tables)


def test_the_first_of_two_ranks_holds_its_half(tmp_path, monkeypatch):
    """Beside the half that it computes on: ghosts of the whole block, and what it works with at a time. Of a file of
    5e7 nodes, 384^3, that is a third of it here: it goes with the faces."""
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    monkeypatch.setattr(stored_coordinates, "SLAB", 20_000)
    monkeypatch.setattr(
        from_file, "touching", lambda grid: []
    )  # whose memory goes with the faces, and which takes long
    nodes = np.stack(np.meshgrid(*[np.linspace(0, 1, N) ** 1.1] * 3, indexing="ij"))
    write(tmp_path / "g.x", [nodes[::-1]], "stream")
    halves = [Part(0, ((0, N), (0, N), ends), rank) for rank, ends in enumerate(((0, N // 2), (N // 2, N)))]
    domain(case(tmp_path / "g.x"), parts=lambda whole: halves)  # what is imported on the way counts once
    tracemalloc.start()
    try:
        made = domain(case(tmp_path / "g.x"), parts=lambda whole: halves)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    own = sum(c.nbytes for c in made.coordinates(made.cut.parts[0]))
    assert isinstance(made.extended[0], GhostLayers)
    np.testing.assert_array_equal(made.cut.blocks[0].x, nodes[2, : N // 2])
    assert own < 0.65 * nodes.nbytes
    assert held - own < 0.25 * nodes.nbytes
    assert peak - own < 0.4 * nodes.nbytes
    assert not any("_rims" in vars(c) for b in made.cut.blocks if b.is_stored for c in (b.x, b.y, b.z))


def test_patched_interfaces_want_the_nodes_in_memory(tmp_path, monkeypatch, caplog):
    """A polynomial through more nodes than are kept of a block in its file leads behind them."""
    caplog.set_level("INFO")
    lines = [(np.linspace(0, 1, n),) * 2 for n in (9, 12)]
    along = (np.linspace(0, 1, 9), np.linspace(1, 2, 13))
    sides = [np.stack(np.meshgrid(*yz, x, indexing="ij")[::-1]) for yz, x in zip(lines, along, strict=True)]
    write(tmp_path / "g.x", sides, "stream")
    tables = case(tmp_path / "g.x").model_dump(mode="json")
    faces = (("block-1", "imax"), ("block-2", "imin"))
    tables["boundary"][:0] = [{"block": block, "faces": [face], "type": "patched"} for block, face in faces]
    made = Case.from_dict({key: tables[key] for key in ("grid", "time", "initial", "boundary")})
    wanted = domain(made)
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    found = domain(made)
    assert "read whole by the first rank of every host for its patched interfaces" in caplog.text
    assert not any(block.is_stored for block in (*found.grid.blocks, *found.whole.blocks))
    for mine, other in zip(found.extended, wanted.extended, strict=True):
        np.testing.assert_array_equal(mine, other)
