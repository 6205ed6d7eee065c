"""Levels that follow the flow: free stream, accuracy, shocks, ranks, restart, limits, memory."""

import gc
import resource
from pathlib import Path

import numpy as np
import pytest
from chosen_tiles import choose_tiles
from ranks import run_ranks

from hiresx import Simulation, load
from hiresx.base import garbage
from hiresx.case import Case
from hiresx.decomposition.join_tiles import tiles_within
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.blocks import slices
from hiresx.grid.cutting import cut_along_i
from hiresx.output.saved.distributed_arrays import read_from_memory
from hiresx.output.watch.locate import Locator
from hiresx.output.watch.monitors import probe
from hiresx.simulation import adapted_run
from hiresx.solver import Solver

P0 = 1 / 1.4
FLOW = {"rho": 1.0, "u": 0.7, "v": 0.4, "p": P0}


def adapted(n=(40, 36, 1), steps=10, amplitude=(0.04, 0.05, 0.0), refine=None, **tables):
    """A periodic box, its nodes displaced by waves, with levels that follow the flow."""
    axes = ["x", "y", "z"][: 3 if n[2] > 1 else 2]
    tables.setdefault("boundary", [{"faces": "all", "type": "periodic"}])
    tables.setdefault("time", {"steps": steps, "cfl": 0.5})
    return Case.from_dict(
        {
            "grid": {
                "generator": "wavy", "n": list(n), "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, float(n[2] > 1)],
                "periodic": axes, "amplitude": list(amplitude),
            },
            "refine": {"tile": 8, "criterion": "density-curvature", "every": 2, **(refine or {})},
            "initial": {"state": FLOW},
            **tables,
        }
    )  # fmt: skip


def spot(x, y, z):
    """A round spot of higher density that the flow carries along."""
    s = 0.3 * np.exp(-((x - 0.4) ** 2 + (y - 0.5) ** 2) / 0.006)
    return 1 + s, 0.7 + 0 * x, 0.4 + 0 * x, 0 * x, P0 + 0 * x


def off(simulation, **wanted):
    return max(np.abs(b.state(name) - value).max() for b in simulation.blocks for name, value in wanted.items())


def whole_levels(simulation):
    """Conservative variables of every level on all its nodes, NaN where it has no tile; one block of the grid."""
    levels = simulation.solver.decomposition.levels
    found = [np.full((5, *reversed(levels.spaces[n, 0].size)), np.nan) for n in range(levels.finest + 1)]
    for tile, state in zip(levels.tiles, simulation.solver.states, strict=True):
        found[tile.level][:, *slices(tile.box)] = state.interior(state.q)
    return found


def tiles(simulation):
    return simulation.solver.decomposition.levels.tiles


@pytest.mark.parametrize(("n", "levels"), [((40, 36, 1), 2), ((24, 20, 18), 1)])
def test_a_uniform_flow_stays_while_levels_move(monkeypatch, n, levels):
    place = [0.3]

    def ball(table, flow, nodes, beyond):
        inner = tuple(slice(1, -1) if m > 1 else slice(None) for m in nodes[0].shape)
        away = sum((c[inner] - place[0]) ** 2 for c in nodes[: 2 + (n[2] > 1)])
        return (away < 0.004).astype(float)

    choose_tiles(monkeypatch, ball)
    amplitude = (0.04, 0.05, 0.0) if n[2] == 1 else (0.03, 0.04, 0.03)
    simulation = Simulation(adapted(n, 9, amplitude, {"levels": levels, "margin": 0}), backend="cpu")
    seen = [set(tiles(simulation))]
    for centre in (0.45, 0.65):
        place[0] = centre
        simulation.run(3, progress=False)
        seen.append(set(tiles(simulation)))
    assert simulation.adaptations.changes >= 2 and seen[0] != seen[1] != seen[2]
    assert max(tile.level for tile in seen[2]) == levels
    assert off(simulation, w=0.0, **FLOW) <= 1e-12


def test_tiles_that_stay_keep_their_state_and_new_ones_have_that_of_the_nodes_they_share():
    simulation = Simulation(
        adapted(steps=40, refine={"levels": 1, "every": 1000, "margin": 2}), initial=spot, backend="cpu"
    )
    simulation.run(40, progress=False)
    blocks, before = tiles(simulation), whole_levels(simulation)
    solver = simulation.solver
    assert simulation.adapt() and simulation.solver is not solver
    assert simulation.solver.program is solver.program and set(tiles(simulation)) - set(blocks)
    after = whole_levels(simulation)
    assert (after[0] == before[0]).all()
    old, now = (~np.isnan(found[1][0]) for found in (before, after))
    assert (old & now).any() and (old & ~now).any() and (now & ~old).any()
    assert (after[1][:, old & now] == before[1][:, old & now]).all()
    shared, there = after[1][:, :, ::2, ::2], now[:, ::2, ::2]
    assert (shared[:, there] == before[0][:, there]).all()
    solver = simulation.solver
    assert not simulation.adapt() and simulation.solver is solver


def test_a_block_that_stays_keeps_its_memory_and_has_the_metrics_of_a_solver_made_anew(monkeypatch):
    """Away from it, so far that nothing fills the gap, tiles are given up."""
    place = [0.9]

    def disc(table, flow, nodes, beyond):
        x, y = nodes[0][:, 1:-1, 1:-1], nodes[1][:, 1:-1, 1:-1]
        return ((x - 0.8) ** 2 + (y - place[0]) ** 2 < 0.004).astype(float)

    choose_tiles(monkeypatch, disc)
    table = {"levels": 1, "margin": 0, "region": [{"i": [4, 14], "j": [18, 20]}]}
    simulation = Simulation(adapted(refine=table), backend="cpu")
    before = dict(zip(tiles(simulation), simulation.solver.states, strict=True))
    place[0] = 9.0
    assert simulation.adapt()
    after = dict(zip(tiles(simulation), simulation.solver.states, strict=True))
    stayed = [tile for tile in after if tile.level == 1 and tile in before]
    assert stayed and len(after) < len(before)
    assert all(after[tile].q is before[tile].q and after[tile].metrics is before[tile].metrics for tile in stayed)
    anew = Solver(simulation.case, simulation.backend, domain=simulation._ground)
    for one, other in zip(simulation.solver.states, anew.states, strict=True):
        assert np.array_equal(one.metrics, other.metrics) and np.array_equal(one.jacobian, other.jacobian)


def test_what_was_made_of_tiles_that_stay_is_used_again_and_gives_the_flow_of_a_solver_made_anew(monkeypatch):
    """Tiles at a slip wall stay, others are given up, and others come. Viscous, so that fluxes are exchanged too."""
    place = [0.9]

    def disc(table, flow, nodes, beyond):
        x, y = nodes[0][:, 1:-1, 1:-1], nodes[1][:, 1:-1, 1:-1]
        return ((x - place[0]) ** 2 + (y - 0.8) ** 2 < 0.004).astype(float)

    choose_tiles(monkeypatch, disc)
    wall = [{"faces": ["jmin", "jmax"], "type": "slip-wall"}, {"faces": "all", "type": "periodic"}]
    grid = {
        "generator": "wavy", "n": [40, 36, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0], "periodic": ["x"],
        "amplitude": [0.0, 0.0, 0.0],
    }  # fmt: skip
    table = {"levels": 2, "margin": 0, "every": 1000, "region": [{"i": [4, 12], "j": [0, 9], "level": 2}]}
    case = adapted(refine=table, grid=grid, boundary=wall, gas={"reynolds": 500.0}, time={"steps": 40, "cfl": 0.5})
    simulation = Simulation(case, initial=spot, backend="cpu")
    simulation.run(3, progress=False)
    place[0] = 0.7
    before = simulation.solver
    there = dict(zip(before.states, tiles(simulation), strict=True))
    conditions = list(before.conditions)
    assert simulation.adapt()
    solver = simulation.solver
    stayed = [state for state in solver.states if state in there]
    assert all(tiles(simulation)[state.index] == there[state] for state in stayed)
    assert 2 < len(stayed) < len(solver.states)
    again = [c for c in solver.conditions if any(c is other for other in conditions)]
    assert again and {c.state for c in again} == {c.state for c in solver.conditions if c.state in stayed}
    assert all(c.patch in solver.cut.patches for c in again)
    anew = Solver(simulation.case, simulation.backend, domain=simulation._ground)
    anew.restore(solver.values(), read_from_memory(solver.pieces()))
    for _ in range(3):
        assert solver.step() == anew.step()
    for one, other in zip(solver.states, anew.states, strict=True):
        assert np.array_equal(one.interior(one.q), other.interior(other.q))


def test_no_tile_lies_where_a_condition_does_not_go_with_it_and_levels_pass_joins():
    """A pulse at the far field of one block and at the join to the next one."""
    y, x = np.meshgrid(np.linspace(0.0, 0.8, 33), np.linspace(0.0, 1.0, 41), indexing="ij")
    grid = cut_along_i(Block("box", x[None], y[None], 0 * x[None]), [0, 21], ["a", "b"])
    still = {"rho": 1.0, "u": 0.0, "v": 0.0, "p": P0}
    boundary = [{"faces": ["jmin"], "type": "slip-wall"}, {"faces": "all", "type": "far-field", "state": still}]

    def pulse(x, y, z):
        s = 0.3 * np.exp(-((x - 0.5) ** 2 + (y - 0.6) ** 2) / 0.01) + 0.3 * np.exp(-(x**2 + (y - 0.3) ** 2) / 0.01)
        return 1 + s, 0 * x, 0 * x, 0 * x, P0 + s

    table = {"levels": 2, "tile": 8, "margin": 4}
    case = adapted(steps=2, grid={"file": "none"}, boundary=boundary, refine=table)
    simulation = Simulation(case, initial=pulse, backend="cpu", grid=grid)
    simulation.run(progress=False)
    hierarchy = simulation._ground.hierarchy
    last = hierarchy.grids[2].blocks[0].size[0]
    bases = set()
    for tile in tiles(simulation)[len(hierarchy.grids[0].blocks) :]:
        (i0, _), (_, j1), _ = tile.box
        assert tile.base == 1 or i0 > 0
        assert j1 < hierarchy.grids[tile.level].blocks[0].size[1]
        if tile.level == 2 and (i0 == 0 if tile.base else tile.box[0][1] == last):
            bases.add(tile.base)
    assert bases == {0, 1}
    place = next(iter(tiles_within(hierarchy.lattices[2][0], ((0, 1), (20, 21), (0, 1)))))
    assert not hierarchy.choice.allowed[2][0][place]


def tube(x, y, z):
    left = x < 0.4
    return np.where(left, 1.0, 0.125), 0 * x, 0 * x, 0 * x, np.where(left, 1.0, 0.1) * P0


def run_tube(n, refine=None):
    faces = [{"faces": ["imin", "imax"], "type": "supersonic-outflow"}, {"faces": ["jmin", "jmax"], "type": "periodic"}]
    grid = {"generator": "box", "n": [n, 12, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 0.2, 0.0], "periodic": ["y"]}
    case = adapted(grid=grid, refine=refine, boundary=faces, time={"end": 0.12, "cfl": 0.4})
    if refine is None:
        case = case.model_copy(update={"refine": None})
    simulation = Simulation(case, initial=tube, backend="cpu")
    simulation.run(progress=False)
    rho = {}
    for block in simulation.blocks:
        rho |= dict(zip(np.round(block.x[0, 0], 9).tolist(), block.state("rho")[0, 0].tolist(), strict=True))
    return simulation, rho


@pytest.mark.slow
def test_levels_follow_the_waves_of_a_shock_tube():
    """As well as on the fine grid throughout, to 2 % of what the coarse grid alone is off."""
    _, fine = run_tube(241)
    _, coarse = run_tube(61)
    simulation, found = run_tube(61, {"levels": 2, "every": 8, "tile": 16})
    shared = sorted(fine.keys() & coarse.keys())
    assert len(shared) > 55

    def away(values):
        return np.mean([abs(values[x] - fine[x]) for x in shared])

    assert simulation.adaptations.changes > 2
    assert away(found) < 0.02 * away(coarse)


def speed_along_an_oblique_front(n, steps, **refine):
    """The largest velocity along the front of Sod's tube, which lies at 30 degrees to the grid, away from the faces."""
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)

    def oblique(x, y, z):
        left = (x - 0.3) * cos + (y - 0.5) * sin < 0
        return np.where(left, 1.0, 0.125), 0 * x, 0 * x, 0 * x, np.where(left, 1.0, 0.1) * P0

    case = adapted(
        (n, n, 1), steps, (0.0, 0.0, 0.0), refine, boundary=[{"faces": "all", "type": "supersonic-outflow"}],
        time={"steps": steps, "dt": 0.12 / steps}, grid={"generator": "box", "n": [n, n, 1], "lower": [0.0, 0.0, 0.0],
        "upper": [1.0, 1.0, 0.0]},
    )  # fmt: skip
    if not refine:
        case = case.model_copy(update={"refine": None})
    simulation = Simulation(case, initial=oblique, backend="cpu")
    simulation.run(progress=False)
    found = []
    for block in simulation.blocks:
        along = np.abs(block.state("v") * cos - block.state("u") * sin)
        inside = (np.abs(np.asarray(block.y) - 0.5) < 0.28) & (np.abs(np.asarray(block.x) - 0.5) < 0.4)
        found.append(along[inside].max(initial=0.0))
    return max(found)


def test_levels_that_follow_an_oblique_shock_disturb_it_no_more_than_the_finer_grid():
    """A level that ends across the shock doubles the velocity along the front."""
    fine = speed_along_an_oblique_front(61, 36)
    assert speed_along_an_oblique_front(31, 18, levels=1, every=3) < 1.05 * fine


def vortex_errors(n, tile):
    """Largest errors of rho, u, v, p over all levels of a vortex that travels with its level."""
    overrides = [
        f"grid.n=[{n},{n},1]", "grid.lower=[-7.0,-7.0,0.0]", "grid.upper=[7.0,7.0,0.0]", "parameters.length=14.0",
        "parameters.strength=2.0", "time.end=1.5", f"time.cfl={0.4 * (56 / n) ** (2 / 3)}", "scheme.weights=linear",
        f"refine={{tile={tile}, criterion=\"vorticity\", refine=0.1, every={n // 8}, margin={tile}}}",
    ]  # fmt: skip
    case = load("isentropic-vortex", overrides=overrides)
    simulation = Simulation(case, backend="cpu")
    simulation.run(progress=False)
    errors = []
    for block in simulation.blocks:
        exact = case.evaluate("exact", *(np.asarray(getattr(block, c)) for c in "xyz"), simulation.time)
        names = zip(("rho", "u", "v", "w", "p"), exact, strict=True)
        errors.append([np.abs(block.state(name) - e).max() for name, e in names if name != "w"])
    return np.max(errors, axis=0), simulation.adaptations.changes


@pytest.mark.slow
def test_a_vortex_that_travels_with_its_level_converges_with_the_order_of_the_scheme():
    (coarse, changes), (fine, more) = vortex_errors(56, 16), vortex_errors(112, 32)
    assert changes and more
    assert (np.log2(coarse / fine) >= 4.5).all()


def finish(comm=None):
    """Steps of equal size with a level on the spot, which changes its tiles twice, the second time before step 21."""
    case = adapted(time={"steps": 22, "dt": 0.006}, refine={"levels": 1, "every": 10, "margin": 0})
    simulation = Simulation(case, initial=spot, backend="cpu", **({} if comm is None else {"comm": comm}))
    simulation.run(progress=False)
    return simulation


def parts(comm=None):
    """The final flow of the parts of this rank, by tile, with the nodes, and how often tiles changed."""
    simulation = finish(comm)
    found = {}
    for block, state in zip(simulation.blocks, simulation.solver.states, strict=True):
        index = [m + np.arange(n) for m, n in zip(block.first, block.x.shape[::-1], strict=True)]
        found[tiles(simulation)[state.part.whole], *block.first] = (index, block.state("rho"), block.state("u"))
    return found, simulation.adaptations.changes, len(tiles(simulation))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_answer_does_not_depend_on_the_ranks(ranks):
    whole, changes, count = parts()
    alone = {key[0]: values for key, values in whole.items()}
    assert changes >= 1
    for found, theirs, held in run_ranks(ranks, parts, timeout=400):
        assert (theirs, held) == (changes, count)
        for (tile, *_), (index, rho, u) in found.items():
            at = np.ix_(index[2], index[1], index[0])
            assert np.abs(rho - alone[tile][1][at]).max() < 1e-13
            assert np.abs(u - alone[tile][2][at]).max() < 1e-13


def test_a_restart_goes_on_bit_for_bit(tmp_path):
    """From a checkpoint of the step before which tiles change."""
    whole = finish()
    assert whole.adaptations.changes == 2
    case = whole.case.model_copy(update={"time": whole.case.time.model_copy(update={"steps": 20})})
    Simulation(case, initial=spot, backend="cpu", out=tmp_path).run(progress=False)
    again = Simulation(whole.case, backend="cpu", restart=tmp_path)
    again.run(progress=False)
    assert again.step_count == 22 and again.adaptations.changes == 1 and tiles(again) == tiles(whole)
    for a, b in zip(whole.blocks, again.blocks, strict=True):
        assert (a.state("rho") == b.state("rho")).all() and (a.state("u") == b.state("u")).all()


def test_a_run_says_what_its_changes_cost_where_that_is_much(monkeypatch, capsys):
    for least, said in ((0.0, True), (1.0, False)):
        monkeypatch.setattr(adapted_run, "LARGE_SHARE", least)
        simulation = Simulation(adapted(), backend="cpu")
        simulation.run(steps=4)
        found = simulation.adaptations
        share = (found.look_s + found.change_s) / (found.look_s + found.change_s + found.step_s)
        line = f"{found.looks} evaluations of the criterion and {found.changes} changes of the levels took"
        line += f" {100 * share:.0f} %"
        assert found.step_s > 0 and (line in " ".join(capsys.readouterr().err.split())) == said


def test_more_nodes_than_a_case_allows_are_refused_behind_a_checkpoint(tmp_path):
    case = adapted(steps=8, refine={"levels": 1, "most_nodes": 4000})
    simulation = Simulation(case, initial=spot, backend="cpu", out=tmp_path)
    points = simulation.solver.points
    noise = np.random.default_rng(1).random(simulation.blocks[0].x.shape)
    simulation.blocks[0].set_state(1 + 0.5 * noise, 0.0, 0.0, 0.0, P0)
    with pytest.raises(HiresxError, match=r"refine.most_nodes = 4,000: .* have [5-9],\d{3} nodes"):
        simulation.run(progress=False)
    assert simulation.solver.points == points
    assert list((tmp_path / "checkpoints").glob("*.hxc"))


@pytest.mark.parametrize(
    ("refine", "tables", "said"),
    [
        ({"criterion": "vorticity"}, {}, "needs refine"),
        ({"coarsen": 0.1}, {}, "must be less than refine"),
        ({"margin": 9}, {}, "more than tile"),
        ({"criterion": None, "levels": 2, "region": [{"x": [0.4, 0.6]}]}, {}, "levels belongs to a criterion"),
        ({}, {"average": {}}, r"refine.criterion is not supported with \[average\]"),
        ({}, {"probe": [{"name": "p", "points": [[0.5, 0.5, 0.0]], "every": 5}]}, 'give filter = "none"'),
    ],
)
def test_what_cannot_be_is_refused_in_words(refine, tables, said):
    with pytest.raises(HiresxError, match=said):
        adapted(refine=refine, **tables)


@pytest.mark.slow
def test_memory_stays_through_many_changes(monkeypatch):
    place, changes = [9.0], 1000

    def disc(table, flow, nodes, beyond):
        x, y = nodes[0][:, 1:-1, 1:-1], nodes[1][:, 1:-1, 1:-1]
        return ((x - place[0]) ** 2 + (y - 0.5) ** 2 < 0.01).astype(float)

    def used():
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() // 1024, len(gc.get_objects())

    choose_tiles(monkeypatch, disc)
    simulation = Simulation(adapted((24, 24, 1), refine={"levels": 1, "margin": 0}), backend="cpu")
    assert len(tiles(simulation)) == 1
    bytes_, with_tiles, without = simulation.solver.bytes, [], []
    for cycle in range(changes):
        if cycle in (50, changes - 1):  # all is given up again
            with_tiles.append(used())
            place[0] = 9.0
            assert simulation.adapt() and len(tiles(simulation)) == 1 and simulation.solver.bytes == bytes_
            without.append(used())
        place[0] = 0.3 if cycle % 2 else 0.7
        assert simulation.adapt() and simulation.solver.bytes > bytes_
    for before, after in (with_tiles, without):
        assert after[0] < before[0] + 8000 and after[1] < before[1] + 2000
    assert without[1][1] < with_tiles[1][1]


def test_memory_of_removed_blocks_is_free_without_a_search_for_cycles(monkeypatch):
    """Before the new blocks are made no object refers to the previous solver or to its removed blocks."""
    collected = []
    monkeypatch.setattr(garbage, "collect", lambda: collected.append(0))
    simulation = Simulation(adapted(steps=30, conservation={}), "cpu", initial=spot)
    gc.disable()
    try:
        simulation.run(progress=False)
    finally:
        gc.enable()
    assert simulation.adaptations.changes > 1 and not collected


def test_probes_are_located_once_for_the_same_tiles(monkeypatch):
    """Not at every `run`, but where tiles come and go."""
    located, places = [], [[0.4, 0.5, 0.0], [0.61, 0.63, 0.0], [0.05, 0.9, 0.0]]
    locate = probe._locate_all
    monkeypatch.setattr(probe, "_locate_all", lambda case, whole: located.append(whole) or locate(case, whole))
    table = {"name": "p", "points": places, "every": 5, "filter": "none"}
    simulation, seen = Simulation(adapted(steps=60, probe=[table]), "cpu", initial=spot), []
    for steps in (1, 1, 1, 40):
        simulation.run(steps, progress=False, write_last=False)
        seen.append(simulation.solver.decomposition)
        (found,) = (a.locations for a in simulation.attachments if isinstance(a, probe.ProbeMonitor))
        wanted = Locator(seen[-1]).locate_all(places, "p", "")
        assert [(one.block, one.index) for one in found] == [(one.block, one.index) for one in wanted]
    assert 1 < len({*map(id, seen)}) < len(seen)
    assert len(located) == len({*map(id, located)}) and {*map(id, seen)} <= {*map(id, located)}
