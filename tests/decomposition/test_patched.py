"""Patched faces: where ghosts lie, cuts and ranks, restarts, files that name them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from patched_grids import P0, PATCHED, PERIODIC, beside, case, waves
from ranks import run_ranks

from hiresx import HiresxError, Simulation, load
from hiresx.case import Case
from hiresx.decomposition import Part, decompose, domain, extended_coordinates, patched_donors
from hiresx.device import backend
from hiresx.grid import Block, Grid, build, read_grid, write_connectivity, write_plot3d
from hiresx.grid.blocks import RawBlock, whole_box
from hiresx.grid.grid_report import grid_report
from hiresx.grid.patched import BlockMap, degree_of, extrapolate, lagrange
from hiresx.grid.starting_case import case_text
from hiresx.mpi.communicator import single_process
from hiresx.output.watch import history
from hiresx.solver import Solver

# ---- geometry


def test_weights_and_slopes_of_polynomials():
    t = np.linspace(-0.3, 5.2, 12)
    value, slope = lagrange(t)
    for power in range(6):
        nodes = np.arange(6.0) ** power
        np.testing.assert_allclose(value @ nodes, t**power, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(slope @ nodes, power * t ** max(power - 1, 0), rtol=1e-10, atol=1e-10)


def test_grid_lines_go_on_as_smoothly_as_they_can():
    """A smooth line goes on to fourth degree; one that would turn back or jump goes on straight."""
    t = np.arange(0.0, 6.0)
    smooth = (1.1**t)[:, None, None] * np.ones((3, 2))
    assert degree_of(smooth, 3) == 4
    np.testing.assert_allclose(extrapolate(smooth, 4, 3)[:, 0, 0], 1.1 ** -np.arange(1.0, 4.0), atol=2e-3)
    rough = np.array([0.0, 1.0, 3.0, 9.0, 27.0, 81.0])[:, None, None] * np.ones((3, 2))
    assert degree_of(rough, 3) == 1
    np.testing.assert_allclose(extrapolate(rough, 1, 3)[:, 0, 0], [-1, -2, -3])


def test_points_are_found_in_a_curved_block():
    block = beside((12,), (14,), (0.0, 1.0), curve=0.2, n_span=(9,))[0]
    grid = Grid((block,))
    walls = [{"faces": "all", "type": "slip-wall"}]
    whole = decompose(Case.from_dict({**case([], {"steps": 1}).model_dump(), "boundary": walls}), grid)
    m = BlockMap(block, extended_coordinates(whole)[0], whole.stencil.halo, [None] * 3)
    xi = np.random.default_rng(1).uniform(0, 1, (50, 3)) * (np.array(block.size) - 1)
    found, there = m.locate(m.at(xi)[0], np.round(xi) + 2)
    assert there.all()
    np.testing.assert_allclose(found, xi, atol=1e-9)
    slopes = m.at(xi)[1]
    for d in range(3):
        step = 1e-6 * np.eye(3)[d]
        np.testing.assert_allclose((m.at(xi + step)[0] - m.at(xi - step)[0]) / 2e-6, slopes[:, :, d], atol=1e-7)


def test_coordinates_go_on_behind_a_patched_face():
    """As the grid itself would, on edges as well; point reflection is off by more than that."""

    def nodes(i, j):
        return np.exp(0.05 * i) + 0.02 * np.sin(0.3 * j), 0.1 * j + 0.01 * j**2 + 0.001 * i**2

    j, i = np.meshgrid(np.arange(12.0), np.arange(15.0), indexing="ij")
    x, y = nodes(i, j)
    other = moved(beside((12,), (20,), (-3.0, 1.02))[0], y=-0.5)
    grid = Grid((Block("b1", x[None], y[None], 0 * x[None]), other))
    conditions = [PATCHED[1], {"faces": "all", "type": "supersonic-outflow"}]
    whole = decompose(Case.from_dict({**case([], {"steps": 1}).model_dump(), "boundary": conditions}), grid)
    found = np.stack(extended_coordinates(whole)[0][:2])[:, 3]
    j, i = np.meshgrid(np.arange(-3.0, 15.0), np.arange(-3.0, 0.0), indexing="ij")
    wanted = np.stack(nodes(i, j))
    step = 0.05
    assert np.abs(found[:, 3:-3, :3] - wanted[:, 3:-3]).max() < 1e-3 * step
    # the edges lie behind outflows, too
    assert np.abs(found[:, :, :3] - wanted).max() < 0.02 * step
    reflected = 2 * found[:, 3:-3, 3:4] - found[:, 3:-3, 6:3:-1]
    assert np.abs(reflected - wanted[:, 3:-3]).max() > 0.2 * step


def told(boundary, blocks):
    with pytest.raises(HiresxError) as error:
        whole = decompose(case(boundary, {"steps": 1}), Grid(blocks))
        patched_donors.find_donors(whole, extended_coordinates(whole))
    return str(error.value)


def moved(block, **by):
    shifted = {c: getattr(block, c) + by.get(c, 0.0) for c in "xyz"}
    return Block(block.name, **shifted)


def test_gaps_overlaps_and_thin_blocks_are_told():
    left, right = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    assert "block 'b0', face imax, patched: node (i, j, k) = (12, 0, 0)" in told([], (left, moved(right, x=0.1)))
    assert "lies inside block" in told([], (left, moved(right, x=-0.2)))
    assert "node (i, j, k) = (12, 0, 0)" in told([], (left, moved(right, y=0.2)))
    thin = beside((12, 12), (12, 18), (-1.0, 0.0, 0.2))[1]
    assert "has no other block behind it, 3 of its steps away" in told([], (left, thin))


# ---- ranks, cuts, restarts


def step():
    """A small block on a part of the face of a larger one of other spacing, and a case of friction on it."""
    left = beside((13, 13), (13, 16), (-1.0, 0.0, 1.0), ys=(0.0, 1.0))[0]
    right = beside((13, 15), (13, 27), (-1.0, 0.0, 1.0), ys=(-1.0, 1.0))[1]
    spec = case([{"faces": "all", "type": "slip-wall"}], {"steps": 10, "dt": 5e-3}, gas={"reynolds": 100.0})
    tables = spec.model_dump()
    tables["boundary"][1]["range"] = {"j": [14, "end"]}
    return Case.from_dict(tables), Grid((left, right))


def quarters(ranks):
    """Cuts both blocks in 2 x 2 parts, the interface as well, and deals them to the ranks."""

    def parts(decomposition):
        found = []
        for b, block in enumerate(decomposition.blocks):
            (ni, nj, _), box = block.size, whole_box(block.size)
            for i in ((0, ni // 2), (ni // 2, ni)):
                for j in ((0, nj // 2), (nj // 2, nj)):
                    found.append(Part(b, (i, j, box[2]), len(found) % ranks))
        return found

    return parts


def computed(comm, cuts, backends):
    """Each part of this rank: whole block, box, primitives after ten steps."""
    spec, grid = step()
    ground = domain(spec, comm, grid, quarters(comm.size) if cuts else None)
    solver = Solver(spec, backend(backends[comm.rank % len(backends)]), domain=ground)
    solver.initialize(waves)
    for _ in range(10):
        solver.step()
    return [(s.part.whole, s.part.box, solver.primitives(n)) for n, s in enumerate(solver.states)]


@pytest.mark.parametrize("ranks", [1, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (2, 3))])
def test_the_answer_does_not_depend_on_cut_and_ranks(ranks):
    whole = {b: values for b, _, values in computed(single_process(), False, ["cpu"])}
    rows = (
        [computed(single_process(), True, ["cpu"])]
        if ranks == 1
        else run_ranks(ranks, computed, True, ["cpu", "emulated"])
    )
    parts = [part for row in rows for part in row]
    assert len(parts) == 8 and all(np.isfinite(field).all() for values in whole.values() for field in values.values())
    for b, box, values in parts:
        for name, field in values.items():
            wanted = whole[b][name][tuple(slice(lo, hi) for lo, hi in reversed(box))]
            np.testing.assert_allclose(field, wanted, rtol=0, atol=1e-13, err_msg=name)


def test_restart_is_bit_identical(tmp_path):
    spec, grid = step()
    one = Simulation(spec, backend="cpu", grid=grid, initial=waves, out=tmp_path / "one")
    one.run()
    half = Case.from_dict({**spec.model_dump(), "time": {"steps": 5, "dt": 5e-3}})
    Simulation(half, backend="cpu", grid=grid, initial=waves, out=tmp_path / "two").run()
    two = Simulation(spec, backend="cpu", grid=grid, restart=tmp_path / "two", out=tmp_path / "two")
    two.run()
    for a, b in zip(one.blocks, two.blocks, strict=True):
        for name in ("rho", "u", "v", "p"):
            np.testing.assert_array_equal(a.state(name), b.state(name))


# ---- files


def saved(folder, blocks, connectivity, name="join.toml"):
    named = [replace(block, name=f"b{n}") for n, block in enumerate(blocks)]
    write_plot3d(folder / "grid.xyz", Grid(named))
    (folder / name).write_text(connectivity)
    return folder / "grid.xyz", folder / name


JOIN = """
blocks = ["b0", "b1"]
[[connection]]
block = "b0"
face = "imax"
donor = "b1"
donor_face = "imin"
layout = "patched"
"""


def test_a_connectivity_file_joins_by_interpolation(tmp_path):
    """As the conditions of a case do; written, it reads the same; a wall named on the face comes first."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    grid = read_grid(*saved(tmp_path, blocks, JOIN))
    spec = case([{"faces": "all", "type": "slip-wall"}], {"steps": 1})
    tables = spec.model_dump()
    plain = Case.from_dict({**tables, "boundary": tables["boundary"][2:]})
    sides = [(p.block, p.face, p.range, p.condition.type) for p in decompose(spec, Grid(blocks)).patches]
    assert [(p.block, p.face, p.range, p.condition.type) for p in decompose(plain, grid).patches] == sides
    write_connectivity(tmp_path / "again.toml", grid)
    again = read_grid(tmp_path / "grid.xyz", tmp_path / "again.toml")
    assert [block.regions for block in again.blocks] == [block.regions for block in grid.blocks]
    wall = {"block": "b1", "faces": ["imin"], "range": {"j": [0, 4]}, "type": "slip-wall"}
    walled = Case.from_dict({**tables, "boundary": [wall, *tables["boundary"][2:]]})
    found = {
        (p.range[1], p.condition.type) for p in decompose(walled, grid).patches if (p.block, p.face) == (1, "imin")
    }
    assert found == {((0, 4), "slip-wall"), ((4, 19), "patched")}
    with pytest.raises(HiresxError, match='transform with layout = "patched"'):
        read_grid(*saved(tmp_path, blocks, JOIN + "transform = [1, 2, 3]\n"))


def test_faces_that_meet_are_offered(tmp_path):
    """`hiresx new --from` writes a case with patched faces in place; the error of a plain case names the mend."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    write_plot3d(tmp_path / "grid.xyz", Grid(blocks))
    (tmp_path / "case.toml").write_text(case_text(tmp_path / "grid.xyz", grid_report(tmp_path / "grid.xyz")))
    offered = load(tmp_path)
    whole = decompose(offered, build(offered.grid, tmp_path))
    assert [entry.donor.tolist() for entry in patched_donors.find_donors(whole, extended_coordinates(whole))] == [
        [1] * 39,
        [0] * 57,
    ]
    closed = Case.from_dict({**offered.model_dump(), "boundary": [{"faces": "all", "type": "slip-wall"}]})
    with pytest.raises(HiresxError) as error:
        decompose(closed, build(closed.grid, tmp_path))
    assert '[[boundary]] with type = "patched"' in error.value.hint


def test_abutting_zones_of_a_cgns_file(tmp_path):
    cgns_files = pytest.importorskip("cgns_files", reason="no h5py", exc_type=ImportError)
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    with cgns_files.begin(tmp_path / "grid.cgns") as file:
        base = cgns_files.base(file, 2, 2)
        for block, donor, i in ((blocks[0], "b1", 13), (blocks[1], "b0", 1)):
            zone = cgns_files.zone(base, block, block.name, 2, 2)
            held = cgns_files.holder(zone, "ZoneGridConnectivity", "ZoneGridConnectivity_t")
            made = cgns_files.node(held, "other", "GridConnectivity_t", donor)
            cgns_files.node(made, "GridConnectivityType", "GridConnectivityType_t", "Abutting")
            cgns_files.index_range(made, "PointRange", (i, 1), (i, block.size[1]))
    grid = read_grid(tmp_path / "grid.cgns")
    assert [list(block.regions) for block in grid.blocks] == [["patched"], ["patched"]]
    plain = case([{"faces": "all", "type": "slip-wall"}], {"steps": 1}).model_dump()
    whole = decompose(Case.from_dict({**plain, "boundary": plain["boundary"][2:]}), grid)
    assert [(p.block, p.face) for p in whole.patches if p.condition.type == "patched"] == [(0, "imax"), (1, "imin")]


CFL3D = """
     NGRID
    IDIM    JDIM    KDIM
      13      13      02
      13      19      02
I0:   GRID   SEGMENT    BCTYPE      JSTA      JEND      KSTA      KEND     NDATA
         1         1      2008         0         0         0         0         0
         2         1      {side}         0         0         0         0         0
IDIM: GRID   SEGMENT    BCTYPE      JSTA      JEND      KSTA      KEND     NDATA
         1         1      0000         0         0         0         0         0
         2         1      2002         0         0         0         0         0
   1-1 BLOCKING DATA:
      NBLI
         0
 NUMBER   GRID     :    ISTA   JSTA   KSTA   IEND   JEND   KEND  ISVA1  ISVA2
 NUMBER   GRID     :    ISTA   JSTA   KSTA   IEND   JEND   KEND  ISVA1  ISVA2
  PATCH SURFACE DATA:
    NINTER
        {count}
"""


def test_the_input_of_cfl3d_says_what_is_patched(tmp_path):
    """Segments of type 0 that no blocking data join, where the file has patched surfaces."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    nodes = [[np.repeat(c, 2, axis=0) for c in (b.x, b.y)] for b in blocks]
    thick = [RawBlock("b", x, y, np.arange(2.0)[:, None, None] + 0 * x) for x, y in nodes]
    for side, count, wanted in (("0000", -1, ["patched"]), ("0000", 0, []), ("2004", -1, ["viscous-wall"])):
        grid = read_grid(*saved(tmp_path, thick, CFL3D.format(side=side, count=count), "cfl3d.inp"))
        assert [name for name, parts in grid.blocks[1].regions.items() if parts[0][0] == "imin"] == wanted
        assert ("patched" in grid.blocks[0].regions) == (count != 0)


def test_what_an_interface_fails_to_keep_is_measured(tmp_path):
    """`[conservation]` has what leaves both sides together: in a smooth flow next to nothing."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0), offset=True)
    grid = replace(read_grid(*saved(tmp_path, blocks, JOIN)), period=({"j": (0.0, 1.0, 0.0)},) * 2)

    def jet(x, y, z):
        return 1 + 0 * x, 0.3 + 0.1 * np.sin(2 * math.pi * (y - 0.3 * x)), 0 * x, 0 * x, P0 + 0 * x

    plain = case([PERIODIC], {"steps": 20, "cfl": 0.5}, conservation={"every": 20}).model_dump()
    spec = Case.from_dict({**plain, "boundary": plain["boundary"][2:]})
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=jet, out=tmp_path / "out")
    simulation.run()
    table = history.read(history.histories(tmp_path / "out")["conservation"])
    assert 1e-12 < abs(table.data["mass_flux_patched"][-1]) < 2e-4 * 0.3
