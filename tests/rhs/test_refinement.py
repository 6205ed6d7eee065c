"""Refined regions: free stream, order, sound and shocks across the ends of levels, ranks, restart, refusals."""

import numpy as np
import pytest
from arrangements import saved, shaken
from multiblock import Arrangement
from ranks import run_ranks

from hiresx import Simulation, load
from hiresx.case import Case
from hiresx.case.refine import RefinedRegion
from hiresx.device.dependency_graph import dependencies, flatten_calls
from hiresx.equations.stencil import Stencil
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid
from hiresx.grid.cutting import cuts

P0 = 1 / 1.4
FLOW = {"rho": 1.0, "u": 0.7, "v": 0.4, "p": P0}


def refined(n, regions, time, amplitude=(0.0, 0.0, 0.0), tile=16, **tables):
    """A periodic box, its nodes displaced by waves, of the extent 0 to 1 along each direction that has nodes."""
    axes = ["x", "y", "z"][: 3 if n[2] > 1 else 2]
    tables.setdefault("boundary", [{"faces": "all", "type": "periodic"}])
    return Case.from_dict(
        {
            "grid": {
                "generator": "wavy", "n": n, "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, float(n[2] > 1)],
                "periodic": axes, "amplitude": list(amplitude),
            },
            "refine": {"tile": tile, "region": regions},
            "time": time,
            "initial": {"state": FLOW},
            **tables,
        }
    )  # fmt: skip


def off(simulation, **wanted):
    """The largest difference of the flow to `wanted`, over the blocks of all levels."""
    return max(np.abs(b.state(name) - value).max() for b in simulation.blocks for name, value in wanted.items())


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_a_uniform_flow_stays_through_two_levels_in_the_plane(where):
    regions = [{"level": 2, "x": [0.4, 0.6], "y": [0.45, 0.6]}, {"level": 1, "x": [0.0, 0.1]}]
    case = refined([40, 36, 1], regions, {"steps": 10, "cfl": 0.5}, (0.04, 0.05, 0.0), gas={"reynolds": 200.0})
    simulation = Simulation(case, backend=where)
    assert simulation.solver.decomposition.levels.finest == 2
    for _ in range(10):
        simulation.solver.step()
    assert off(simulation, **FLOW) <= 1e-12


def test_a_uniform_flow_stays_through_a_level_in_space():
    regions = [{"level": 1, "i": [7, 10], "j": [7, 10], "k": [7, 10]}]
    case = refined([20, 18, 16], regions, {"steps": 6, "cfl": 0.5}, (0.03, 0.04, 0.03), tile=8)
    simulation = Simulation(case)
    for _ in range(6):
        simulation.solver.step()
    assert off(simulation, w=0.0, **FLOW) <= 1e-12


def test_a_uniform_flow_stays_where_a_level_goes_over_joins_of_turned_blocks(tmp_path):
    """On nodes displaced at random, cut into three blocks with indexes in different senses."""
    parts = Arrangement(shaken((50, 50, 1), seed=6).blocks[0], 3, 6, shared=True)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    state = {"rho": 1.0, "u": 0.5, "v": 0.2, "p": P0}
    case = Case.from_dict(
        {
            "grid": {"file": "none"},
            "refine": {"tile": 8, "region": [{"x": [0.4, 0.6], "y": [0.3, 0.7]}]},
            "time": {"steps": 5, "cfl": 0.4},
            "initial": {"state": state},
            "boundary": [{"faces": "all", "type": "far-field", "state": state}],
        }
    )
    simulation = Simulation(case, grid=saved(tmp_path, parts.blocks, tables))
    levels, joined = simulation.solver.decomposition.levels, simulation.solver.decomposition.connections
    bases = {(levels.tiles[c.block].base, levels.tiles[c.donor].base) for c in joined if levels.tiles[c.block].level}
    assert any(a != b for a, b in bases)
    for _ in range(5):
        simulation.solver.step()
    assert off(simulation, **state) <= 1e-12


@pytest.mark.parametrize("viscous", [False, True])
def test_a_uniform_flow_stays_where_a_level_lies_over_a_face_joined_to_two_blocks(viscous):
    """One step from their last nodes, on nodes displaced by waves; the tiles of the three begin at the same nodes."""
    eta, xi = np.meshgrid(np.linspace(0, 1, 37), np.linspace(0, 1, 41), indexing="ij")
    bump = np.sin(np.pi * xi) * np.sin(2 * np.pi * eta)
    whole = Block("whole", (xi + 0.04 * bump)[None], (eta + 0.05 * bump)[None], 0 * xi[None])
    boxes = [((21, 41), (0, 37), (0, 1)), ((0, 21), (0, 17), (0, 1)), ((0, 21), (17, 37), (0, 1))]
    blocks = [whole.part(name, box, np.ascontiguousarray) for name, box in zip("abc", boxes, strict=True)]
    grid = Grid(tuple(blocks), tuple(cuts([whole], [(0, box) for box in boxes], Stencil().halo)))
    regions = [{"x": [0.45, 0.6], "y": [0.4, 0.55], "level": 2}]
    gas = {"gas": {"reynolds": 200.0}} if viscous else {}
    case = refined(
        [41, 37, 1], regions, {"steps": 4, "cfl": 0.5}, tile=8, grid={"file": "none"},
        boundary=[{"faces": "all", "type": "far-field", "state": FLOW}], **gas,
    )  # fmt: skip
    simulation = Simulation(case, backend="cpu", grid=grid)
    levels = simulation.solver.decomposition.levels
    assert {(tile.level, tile.base) for tile in levels.tiles} == {(level, b) for level in range(3) for b in range(3)}
    simulation.run(progress=False)
    assert off(simulation, **FLOW) <= 1e-12


def vortex_errors(n, tile):
    """Largest errors of rho, u, v, p over all levels of a vortex on the end of a level, which lies where it turns the
    fastest. Tiles have the same places for all n."""
    overrides = [
        f"grid.n=[{n},{n},1]", "grid.lower=[-7.0,-7.0,0.0]", "grid.upper=[7.0,7.0,0.0]", "parameters.length=14.0",
        "parameters.strength=2.0", "time.end=0.4", f"time.cfl={0.4 * (56 / n) ** (2 / 3)}", "scheme.weights=linear",
        f"refine={{tile={tile}, region=[{{level=1, x=[-2.9, -0.1], y=[-2.9, 2.9]}}]}}",
    ]  # fmt: skip
    case = load("isentropic-vortex", overrides=overrides)
    simulation = Simulation(case)
    simulation.run()
    errors = []
    for block in simulation.blocks:
        exact = case.evaluate("exact", *(np.asarray(getattr(block, c)) for c in "xyz"), simulation.time)
        names = zip(("rho", "u", "v", "w", "p"), exact, strict=True)
        errors.append([np.abs(block.state(name) - e).max() for name, e in names if name != "w"])
    return np.max(errors, axis=0)


@pytest.mark.slow
def test_a_vortex_across_the_end_of_a_level_converges_with_the_order_of_the_scheme():
    coarse, fine = vortex_errors(56, 16), vortex_errors(112, 32)
    assert (np.log2(coarse / fine) >= 4.5).all()


def pulse(x, y, z):
    """A plane pulse of sound that runs to the right."""
    s = 1e-4 * np.exp(-(((x - 0.25) / 0.05) ** 2))
    return 1 + s, s, 0 * x, 0 * x, P0 + s


def test_sound_passes_the_end_of_a_level():
    """Of a pulse that leaves a finer level less than 1e-5 comes back; with linear interpolation it is 5e-5."""
    case = refined([120, 20, 1], [{"level": 1, "x": [0.0, 0.5]}], {"end": 0.45, "cfl": 0.4}, tile=20)
    simulation = Simulation(case, initial=pulse)
    while simulation.time < 0.45 - 1e-9:
        simulation.solver.step(0.45 - simulation.time)
    back = 0.0
    for block in simulation.blocks:
        u, p = block.state("u"), block.state("p") - P0
        left = (np.asarray(block.x) > 0.15) & (np.asarray(block.x) < 0.45)
        back = max(back, float(np.abs(0.5 * (p - u))[left].max(initial=0.0)))
    assert 0 < back < 1e-5 * 1e-4


def tube(x, y, z, centre=0.35):
    left = x < centre
    return np.where(left, 1.0, 0.125), 0 * x, 0 * x, 0 * x, np.where(left, 1.0, 0.1) * P0


def run_tube(regions):
    faces = [{"faces": ["imin", "imax"], "type": "supersonic-outflow"}, {"faces": ["jmin", "jmax"], "type": "periodic"}]
    case = refined([160, 16, 1], regions, {"end": 0.16, "cfl": 0.4}, tile=16, boundary=faces)
    simulation = Simulation(case, initial=tube)
    while simulation.time < 0.16 - 1e-9:
        simulation.solver.step(0.16 - simulation.time)
    return simulation


def finest_line(simulation, name):
    """x and the variable along j = 0, at the nodes of the grid itself."""
    block = simulation.blocks[0]
    return np.asarray(block.x)[0, 0], block.state(name)[0, 0]


def test_a_shock_passes_the_end_of_a_level():
    """Between contact and shock, and between contact and expansion, pressure is constant to half a percent of its
    jump."""
    simulation = run_tube([{"level": 1, "x": [0.2, 0.52]}])
    x, p = finest_line(simulation, "p")
    plateau = p[(x > 0.40) & (x < 0.56)]
    assert np.ptp(plateau) < 0.005 * 0.9 * P0
    assert off(simulation, v=0.0) < 1e-12


def finish(comm=None, **more):
    regions = [{"level": 2, "x": [0.4, 0.6], "y": [0.45, 0.6]}]
    case = refined([40, 36, 1], regions, {"steps": 4, "dt": 0.001}, (0.04, 0.05, 0.0), gas={"reynolds": 200.0}, **more)
    simulation = Simulation(case, initial=pulse_of_both, backend="cpu", **({} if comm is None else {"comm": comm}))
    if comm is not None:  # ranks share the work anew in the midst of the run
        simulation.run(2)
        simulation.rebuild(weights=[1.0 + rank for rank in range(comm.size)])
    simulation.run()
    return simulation


def pulse_of_both(x, y, z):
    s = 0.05 * np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / 0.02)
    return 1 + s, 0.3 + s, 0.2 - s, 0 * x, P0 + s


def sums(comm=None):
    """The final flow of the parts of this rank, by whole block and first node, with the nodes."""
    simulation = finish(comm)
    found = {}
    for block in simulation.blocks:
        index = [m + np.arange(n) for m, n in zip(block.first, block.x.shape[::-1], strict=True)]
        found[block.whole, *block.first] = (index, block.state("p"), block.state("u"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_answer_does_not_depend_on_the_ranks(ranks):
    alone = {key[0]: values for key, values in sums().items()}
    for found in run_ranks(ranks, sums, timeout=200):
        for (name, *_), (index, p, u) in found.items():
            at = np.ix_(index[2], index[1], index[0])
            assert np.abs(p - alone[name][1][at]).max() < 1e-13
            assert np.abs(u - alone[name][2][at]).max() < 1e-13


def test_a_restart_goes_on_bit_for_bit(tmp_path):
    whole = finish()
    case = refined(
        [40, 36, 1], [{"level": 2, "x": [0.4, 0.6], "y": [0.45, 0.6]}], {"steps": 2, "dt": 0.001}, (0.04, 0.05, 0.0),
        gas={"reynolds": 200.0}, checkpoint={"every_steps": 2},
    )  # fmt: skip
    Simulation(case, initial=pulse_of_both, backend="cpu", out=tmp_path).run()
    again = Simulation(
        case.model_copy(update={"time": case.time.model_copy(update={"steps": 4})}), backend="cpu", restart=tmp_path
    )
    again.run()
    assert again.step_count == 4
    for a, b in zip(whole.blocks, again.blocks, strict=True):
        assert (a.state("p") == b.state("p")).all() and (a.state("u") == b.state("u")).all()


def test_nodes_under_a_finer_level_have_its_values():
    simulation = finish()
    levels = simulation.solver.decomposition.levels
    checked = 0
    for n, tile in enumerate(levels.tiles):
        if tile.level != 2:
            continue
        (i0, i1), (j0, j1), _ = tile.box
        fine = simulation.blocks[n].state("p")[:, (-j0) % 4 :: 4, (-i0) % 4 :: 4]
        coarse = simulation.blocks[0].state("p")[:, -(-j0 // 4) : (j1 - 1) // 4 + 1, -(-i0 // 4) : (i1 - 1) // 4 + 1]
        assert (fine == coarse).all()
        checked += fine.size
    assert checked > 16


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"region": []}, "refine"),
        ({"region": [{"x": [2.0, 1.0]}]}, "ends before it begins"),
        ({"region": [{"x": [5.0, 6.0]}]}, "refine.region.0 holds no node"),
        ({"region": [{"block": "other"}]}, "no block 'other'"),
        ({"region": [{"i": [15, 20]}]}, r"refine\.region\.0: i = \[15, 20\] is not within block '.*20 nodes along i"),
        ({"region": [{"x": [0.0, 0.3]}, {"j": [-1, 5]}]}, r"refine\.region\.1: j = \[-1, 5\] is not within"),
        ({"region": [{"k": [0, 1]}]}, r"k = \[0, 1\] is not within block '.*1 node along k"),
    ],
)
def test_a_region_that_cannot_be_is_refused(change, said):
    assert RefinedRegion(x=[2.0, 2.0], i=[3, 3]).i == (3, 3), "one plane of nodes can be"
    with pytest.raises(HiresxError, match=said):
        Simulation(refined([20, 20, 1], change["region"], {"steps": 1, "cfl": 0.5}))


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"filter": {}}, "filter"),
        ({"time": {"steps": 1, "cfl": 1.0, "integrator": "implicit"}}, 'time.integrator = "implicit"'),
        ({"time": {"steps": 1, "cfl": 1.0, "local": True}}, "time.local"),
        ({"boundary": [{"faces": "all", "type": "far-field", "state": FLOW}]}, "far-field"),
    ],
)
def test_what_does_not_go_with_refinement_is_refused(tables, said):
    with pytest.raises(HiresxError, match=said) as found:
        Simulation(refined([20, 20, 1], [{"x": [0.0, 0.3]}], **{"time": {"steps": 1, "cfl": 0.5}, **tables}))
    assert "refine" in str(found.value)


def test_the_ghosts_of_a_block_along_a_direction_are_one_group():
    """A tile has them behind both faces of a direction."""
    case = refined([40, 36, 1], [{"level": 1, "i": [9, 14], "j": [9, 14]}], {"steps": 1, "cfl": 0.5})
    solver = Simulation(case, backend="cpu").solver
    taken, patches = solver._ghosts.patched._taken, solver.decomposition.patches
    wanted = {(p.block, "ijk".index(p.face[0])) for p in patches if p.condition.type == "patched"}
    assert sorted(zip(taken.places, taken.directions, strict=True)) == sorted(wanted)
    assert len(wanted) < sum(p.condition.type == "patched" for p in patches)


def test_launches_wait_for_the_ghosts_of_tiles():
    """They reach the arrays of the blocks through tables of addresses."""
    solver = Simulation(refined([40, 36, 1], [{"i": [9, 14], "j": [9, 14]}], {"steps": 1}), backend="emulated").solver
    calls = flatten_calls(solver.system.launches())
    names, waits = [call.name for call in calls], dependencies(calls)
    taken = [n for n, name in enumerate(names) if name == "patched_ghosts"]
    layers = [n for n, name in enumerate(names) if name == "level_layers"]
    assert len(taken) == len(layers) == solver.integrator.stages
    for first, last in zip(taken, layers[1:], strict=False):
        sweeps = [n for n in range(first, last) if names[n].startswith("sweep")]
        assert sweeps and any(first in waits[n] for n in sweeps)
        assert any(names[n] == "update" for n in waits[last])


def test_all_ghosts_of_tiles_are_computed_by_three_launches():
    """However many blocks they lie in, and are interpolated from."""
    case = refined([40, 36, 1], [{"level": 2, "i": [9, 14], "j": [9, 14]}], {"steps": 1, "cfl": 0.5})
    solver = Simulation(case, backend="emulated").solver
    assert len(solver.states) == 3
    names = [call.name for call in flatten_calls(solver.system.launches())]
    assert names.count("update") == 3 * solver.integrator.stages
    for name in ("level_layers", "level_shares", "patched_ghosts"):
        assert names.count(name) == solver.integrator.stages
