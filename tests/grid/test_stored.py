"""Large grid files: their nodes stay there, every rank reads its own, and nothing else comes of it."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from adf_files import from_hdf5
from arrangements import FAR, decomposed, shaken
from multiblock import Arrangement
from plot3d_files import write
from ranks import run_ranks
from test_cgns import written

from hiresx.case.grid_file import GridFile
from hiresx.case.outputs import Subset
from hiresx.case.schema import Case
from hiresx.decomposition import Part, domain, extended_coordinates
from hiresx.decomposition.ghost_layers import coordinates_in_box
from hiresx.decomposition.partition import partition
from hiresx.estimate.resolution import sound
from hiresx.grid import build, quality, stored_coordinates
from hiresx.grid.stored_coordinates import Bytes, StoredCoordinates
from hiresx.output.fields.selection import subset
from hiresx.output.saved.identity import fingerprint

STATE = {"rho": 1.0, "p": 0.7142857142857143}


def whole(*_):
    raise AssertionError("a coordinate was read whole")


@pytest.fixture
def all_large(monkeypatch):
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    monkeypatch.setattr(stored_coordinates, "SLAB", 4000)


def arrangement(seed=1) -> Arrangement:
    return Arrangement(shaken((30, 29, 28)).blocks[0], 5, seed, True)


def delivered(folder, form: str, real: str, order: str):
    """A file of several blocks in one of the containers."""
    path = folder / "grid.dat"
    if form in ("stream", "records"):
        blanking = [np.ones(b.x.shape) for b in arrangement().blocks] if form == "records" else None
        write(path, [np.stack([b.x, b.y, b.z]) for b in arrangement().blocks], form, real, order, blanking)
        return path
    written(path, arrangement(), real, 3)
    if form == "adf":
        from_hdf5(path, folder / "adf.dat", "B", order, pieces=3)
        return folder / "adf.dat"
    return path


@pytest.mark.parametrize(
    "form, real, order",
    [("stream", "f4", ">"), ("stream", "f8", "<"), ("records", "f8", ">"), ("hdf5", "f4", "<"), ("adf", "f8", ">")],
)
@pytest.mark.parametrize("keys", [{}, {"scale": 0.0254}], ids=["plain", "scaled"])
@pytest.mark.slow
def test_the_same_grid_box_by_box(tmp_path, monkeypatch, form, real, order, keys):
    """Connections, quality, fingerprint and every coordinate, ghosts included, are those of the grid in memory."""
    path = delivered(tmp_path, form, real, order)
    spec = GridFile(file=str(path), **keys)
    held = build(spec)
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    monkeypatch.setattr(stored_coordinates, "SLAB", 4000)
    left = build(spec)
    assert all(block.is_stored for block in left.blocks) and not any(block.is_stored for block in held.blocks)
    assert left.connections == held.connections and len(held.connections) > 4
    assert quality(left) == quality(held)
    for found, wanted in zip(fingerprint(left), fingerprint(held), strict=True):
        assert found["sha256"] == wanted["sha256"]
        for axis, d in product("xyz", "ijk"):
            np.testing.assert_allclose(found["planes"][axis][d], wanted["planes"][axis][d], rtol=1e-13, atol=1e-15)
    shells = extended_coordinates(decomposed(left, FAR))
    for block, shell, wanted in zip(left.blocks, shells, extended_coordinates(decomposed(held, FAR)), strict=True):
        for box in ([slice(0, n) for n in shell.shape], [slice(2, n - 5) for n in shell.shape]):
            for found, c in zip(coordinates_in_box(block, shell, 3, tuple(box)), wanted, strict=True):
                np.testing.assert_array_equal(found, c[tuple(box)])


@pytest.mark.parametrize("reverse", [(False, False, False), (True, False, True)])
def test_an_index_takes_what_it_takes_of_an_array(tmp_path, all_large, reverse):
    values = np.random.default_rng(0).random((9, 8, 7))
    (tmp_path / "numbers").write_bytes(b"head" + values.astype(">f8").tobytes())
    source = Bytes(tmp_path / "numbers", ">f8", values.shape, ((4, 1000), (1004, 10**6)))
    nodes = StoredCoordinates.of(source).reverse_axes(reverse) * 2.0
    values = 2 * values[tuple(slice(None, None, -1 if r else 1) for r in reverse)]
    k, j, i = np.meshgrid([0, 3], [2, 2, 1], [6], indexing="ij")
    for known in (False, True):  # before and after the file has been looked through
        for index in (
            3,
            np.s_[2:5],
            np.s_[..., 0],
            np.s_[:, 1:3, ::-2],
            np.s_[::3, 7:1:-2, 1::2],
            np.s_[:, 5:5],
            np.s_[-1, :, 2],
            (k, j, i),
            np.s_[4, 5, 6],
        ):
            np.testing.assert_array_equal(nodes[index], values[index])
        for axis in range(3):
            np.testing.assert_array_equal(np.take(nodes, [1, 0], axis=axis), np.take(values, [1, 0], axis=axis))
        part = nodes.part(np.s_[1:8, 2:6, 0:5])
        np.testing.assert_array_equal(part[1:, :, 2], values[2:8, 2:6, 2])
        np.testing.assert_array_equal(np.asarray(nodes), values)
        with pytest.raises(IndexError):
            nodes[9]
        if not known:
            assert (nodes.min(), nodes.max()) == (values.min(), values.max())
            assert "_rims" in vars(nodes)


def test_keys_that_ask_for_all_nodes_say_so(tmp_path, all_large, caplog):
    caplog.set_level("INFO")
    path = delivered(tmp_path, "stream", "f8", "<")
    grid = build(GridFile(file=str(path), translate=[1.0, 0.0, 0.0]))
    assert not any(block.is_stored for block in grid.blocks)
    assert "read whole by the first rank of every host for grid.translate" in caplog.text


@pytest.mark.parametrize("cut", [{"plane": {"z": 0.4}}, {"plane": {"x": 0.3}}, {"line": {"x": 0.6, "y": 0.5}}])
def test_planes_and_lines_are_those_of_the_grid_in_memory(tmp_path, monkeypatch, cut):
    spec = GridFile(file=str(delivered(tmp_path, "stream", "f8", "<")))
    held = subset(Subset(name="cut", **cut), build(spec).blocks)
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    left = build(spec)
    assert all(block.is_stored for block in left.blocks)
    for found, wanted in zip(subset(Subset(name="cut", **cut), left.blocks), held, strict=True):
        assert found.name == wanted.name
        for key in ("blocks", "nodes", "weights"):
            np.testing.assert_array_equal(getattr(found, key), getattr(wanted, key))


def case(path) -> Case:
    return Case.from_dict(
        {
            "grid": {"file": str(path)},
            "time": {"steps": 1},
            "initial": {"state": STATE},
            "boundary": [{"faces": "all", "type": "far-field", "state": STATE}],
        }
    )


def shared_out(comm, path):
    """Coordinates with ghosts of this rank's parts, and the nodes that it computes on."""
    stored_coordinates.LARGE, stored_coordinates.SLAB = 0, 4000
    found = domain(case(path), comm, None, lambda whole: partition(whole, comm.size))
    parts = [(found.cut.parts[n], found.coordinates(found.cut.parts[n]), found.cut.blocks[n].x) for n in found.mine]
    assert all(isinstance(x, np.ndarray) for _, _, x in parts)
    assert all(block.is_stored for n, block in enumerate(found.cut.blocks) if n not in found.mine)
    return parts


@pytest.mark.slow
def test_every_rank_reads_its_own(tmp_path):
    path = delivered(tmp_path, "stream", "f8", ">")
    whole = domain(case(path))
    for parts in run_ranks(2, shared_out, path):
        for part, coordinates, x in parts:
            np.testing.assert_array_equal(x, whole.grid.blocks[part.whole].x[part.slices])
            for mine, wanted in zip(coordinates, whole.coordinates(part), strict=True):
                np.testing.assert_array_equal(mine, wanted)


@pytest.mark.slow
def test_a_part_takes_less_memory_than_the_whole(tmp_path, monkeypatch):
    """What the first rank of a host, which makes ghosts and connections, ever holds."""
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    monkeypatch.setattr(stored_coordinates, "SLAB", 20_000)
    n = 128
    k, j, i = np.meshgrid(*[np.arange(n) / n] * 3, indexing="ij")
    bump = 0.05 * np.sin(6 * i) * np.sin(6 * j) * np.sin(6 * k)
    nodes = np.stack([i + bump, j - bump, k + bump])
    write(tmp_path / "g.x", [nodes], "stream")
    monkeypatch.setattr(StoredCoordinates, "__array__", whole)
    tracemalloc.start()
    try:
        made = domain(case(tmp_path / "g.x"), parts=lambda whole: [Part(0, ((0, n), (0, n), (32 * m, 32 * m + 32)), m)
                                                                  for m in range(4)])  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < nodes.nbytes
    np.testing.assert_array_equal(made.cut.blocks[0].z, nodes[2, :32])


def test_frequencies_that_a_grid_carries_are_those_of_all_its_slabs(tmp_path, monkeypatch):
    """The finest cells lie in the midst, the coarsest at the end."""
    z = np.array([0.0, 1.0, 1.9, 2.1, 2.2, 2.45, 3.0, 4.0, 5.5])
    z, y, x = np.meshgrid(z, 0.05 * np.arange(9), 0.05 * np.arange(10), indexing="ij")
    write(tmp_path / "g.x", [np.stack([x, y, z])], "stream")
    here = case(tmp_path / "g.x")
    (held,) = sound(here, build(here.grid).blocks, 10.0)
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    for slab in (90, 180, 300):  # planes of 90 nodes
        monkeypatch.setattr(stored_coordinates, "SLAB", slab)
        (left,) = sound(here, build(here.grid).blocks, 10.0)
        assert left == held
    assert held["cutoff"] == pytest.approx(1 / (10 * 1.5)) and held["at"][2] == 4.0
    assert held["largest"] == pytest.approx(1 / (10 * 0.2)) and held["largest_at"][2] == 2.1


class Counted:
    """A source of numbers 0, 1, 2, ... that counts how often it is read."""

    shape, reads = (4, 3, 5), 0

    def read(self, window):
        self.reads += 1
        return np.arange(60.0).reshape(self.shape)[tuple(slice(*ends) for ends in window)]


@pytest.mark.parametrize("looked_through", [False, True])
def test_the_largest_of_a_part(looked_through):
    """Its own; that of the whole where that is known, so that nothing is read again."""
    source = Counted()
    stored = StoredCoordinates.of(source)
    if looked_through:
        assert stored.largest == 59
    before = source.reads
    part = stored.part((slice(0, 2), slice(0, 3), slice(1, 4)))
    assert part.shape == (2, 3, 3) and part.part((slice(0, 1), slice(0, 1), slice(0, 1))).shape == (1, 1, 1)
    assert source.reads == before
    assert part.largest == (59 if looked_through else 28)
    assert (source.reads > before) != looked_through
    assert part.part((slice(0, 1), slice(0, 1), slice(0, 2))).largest == (59 if looked_through else 28)
