"""The H-correction of Roe's flux: the jumps across half points that it takes, and flows by it. What it does at strong
shocks is in test_carbuncle.py."""

from itertools import chain

import numpy as np
import pytest
from arrangements import saved, shaken
from multiblock import Arrangement
from patched_grids import beside
from patched_grids import case as patched_case
from ranks import run_ranks
from same_everywhere import same_everywhere
from wholes import off_on_ranks, started

from hiresx import Case, Simulation, load
from hiresx.grid import Grid

STATE = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": 0.1, "p": 1 / 1.4}


def box(n, flux="roe_h", periodic="xyz", grid=None, weights="js", **tables) -> Case:
    upper = [float(m > 1) for m in n]
    grid = {"generator": "box", "n": n, "lower": [0, 0, 0], "upper": upper, "periodic": [*periodic]} | (grid or {})
    faces = {"faces": "all", "type": "periodic"} if periodic else {"faces": "all", "type": "far-field", "state": STATE}
    given = {"grid": grid, "time": {"steps": 10, "cfl": 0.5}, "scheme": {"flux": flux, "weights": weights}}
    return Case.from_dict(given | {"initial": {"state": STATE}, "boundary": [faces]} | tables)


def rough(x, y, z):
    waves = np.sin(2 * np.pi * (x + 2 * y)) * np.cos(2 * np.pi * z)
    behind = np.where(np.abs(np.mod(x + y, 1) - 0.5) < 0.2, 2.0, 1.0)
    return behind, 0.5 * np.sin(2 * np.pi * y), 0.3 * waves, 0.2 * waves, behind**2 / 1.4


def test_jumps_at_nodes():
    """Of the states of neighbours, along the mean of their area vectors; each node takes those across its lines."""
    n = (9, 8, 7)
    run = started(box(n, periodic=""), rough, grid=shaken(n))
    (state,) = run.solver.states
    found, m = (state.interior(run.backend.to_host(a)) for a in (state.array("jumps_across"), state.metrics))
    velocity = np.stack([run.blocks[0].state(name) for name in "uvw"])
    sound = np.sqrt(1.4 * run.blocks[0].state("p") / run.blocks[0].state("rho"))
    largest = []
    for d in range(3):
        axis, area = 2 - d, m[3 * d : 3 * d + 3]
        area = area + np.roll(area, -1, axis + 1)
        through = np.sum(area * (np.roll(velocity, -1, axis + 1) - velocity), axis=0) / np.linalg.norm(area, axis=0)
        eta = 0.5 * (abs(through) + abs(np.roll(sound, -1, axis) - sound))
        largest.append(np.maximum(eta, np.roll(eta, 1, axis)))
    inside = np.s_[1:-1, 1:-1, 1:-1]
    for d in range(3):
        wanted = np.maximum(largest[(d + 1) % 3], largest[(d + 2) % 3])
        np.testing.assert_allclose(found[d][inside], wanted[inside], rtol=1e-12)
        # behind the face, as on it
        np.testing.assert_array_equal(ghosts(run, d), np.take(found[d], 0, 2 - d))


def test_jumps_behind_periodic_faces():
    run = started(box((9, 8, 7)), rough)
    (state,) = run.solver.states
    found = state.interior(run.backend.to_host(state.array("jumps_across")))
    for d in range(3):
        np.testing.assert_array_equal(ghosts(run, d), np.take(found[d], -1, 2 - d))


def test_jumps_behind_the_ends_of_a_level():
    """In a linear flow the jumps of the coarser level, in whose ghosts they are, are twice those of its tile."""

    def linear(x, y, z):
        return 1.0, 0.1 + 0.2 * x + 0.3 * y, 0.1 - 0.4 * x + 0.1 * y, 0.0, 1 / 1.4

    region = {"tile": 8, "region": [{"x": [0.45, 0.55], "y": [0.45, 0.55]}]}
    run = started(box((33, 33, 1), periodic="", refine=region), linear)
    tiles = zip(run.solver.decomposition.levels.tiles, run.solver.states, strict=True)
    fine = [state for tile, state in tiles if tile.level == 1]
    assert fine
    for state in fine:
        found = state.interior(run.backend.to_host(state.array("jumps_across")))
        for d, across in ((0, 0.1), (1, 0.2)):
            np.testing.assert_allclose(found[d], across / 128, rtol=1e-6)
    (state,) = fine[:1]
    for d in (0, 1):
        np.testing.assert_allclose(ghosts(run, d, state), (0.1, 0.2)[d] / 64, rtol=1e-6)


def test_jumps_behind_patched_faces():
    """They are those of the face: the directions of the block behind it may be others."""
    blocks = beside((8, 12), (8, 12), (-1.0, 0.0, 1.0))
    run = started(patched_case([], {"steps": 1, "cfl": 0.5}, scheme={"flux": "roe_h"}), rough, grid=Grid(blocks))
    right = run.solver.states[1]
    field = right.interior(run.backend.to_host(right.array("jumps_across")))[0]
    assert field[..., 0].min() > 0
    np.testing.assert_array_equal(ghosts(run, 0, right), field[..., 0])


def ghosts(run: Simulation, d: int, state=None) -> np.ndarray:
    """Number `d` of the jumps in the first ghosts behind the lower face along direction `d`, of the only part or of the
    one with this `state`."""
    state = state or run.solver.states[0]
    inside = [slice(halo, halo + size) for halo, size in zip(state.halo, state.size, strict=True)]
    inside[d] = slice(state.halo[d] - 1, state.halo[d])
    array = run.backend.to_host(state.array("jumps_across"))[d]
    return np.take(array[tuple(reversed(inside))], 0, 2 - d)


@pytest.mark.parametrize("tables", [
    {"n": (12, 11, 9)}, {"n": (14, 13, 1)},
    {"n": (24, 24, 1), "periodic": "xy", "refine": {"tile": 8, "region": [{"x": [0.3, 0.6], "y": [0.3, 0.6]}]}},
], ids=["3d", "2d", "levels"])  # fmt: skip
def test_uniform_flow_stays(tables):
    """On grids that are nowhere uniform."""
    levels = "refine" in tables
    wavy = {"generator": "wavy", "amplitude": [0.05, 0.05, 0.0]} if levels else None
    case = box(**({"periodic": ""} | tables), grid=wavy)
    run = Simulation(case, "cpu", **({} if levels else {"grid": shaken(tables["n"])}))
    run.run(progress=False)
    for block in run.blocks:
        assert max(np.abs(block.state(name) - value).max() for name, value in STATE.items()) < 1e-12


def test_order_of_smooth_flow():
    """What the correction changes in the rates falls by the sixth power of the spacing: the jump of interpolated states
    in the flux, of fifth order, times that of nodes."""

    def smooth(x, y, z):
        a, b = 2 * np.pi * x, 2 * np.pi * y
        return 1 + 0.2 * np.sin(a + b), 0.5 * np.sin(b), 0.5 * np.cos(a - b), 0.0, (1 + 0.2 * np.cos(a)) / 1.4

    changes = []
    for n in (32, 64, 128):
        rates = []
        for flux in ("roe", "roe_h"):
            run = started(box((n, n, 1), flux, "xy", weights="linear"), smooth)
            (state,) = run.solver.states
            rates.append(state.interior(run.backend.to_host(state.r)) * n**2)
        changes.append(np.abs(rates[0] - rates[1]).mean())
    assert changes[-1] > 0
    assert np.log2(np.divide(changes[:-1], changes[1:])).min() > 5.5, changes


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "offset"])
@pytest.mark.parametrize("n", [(40, 41, 1), pytest.param((20, 21, 22), marks=pytest.mark.slow)], ids=["2d", "3d"])
def test_turned_blocks_flow_as_one(tmp_path, n, shared):
    """Through jumps in a grid of eight blocks, cut and turned at random."""
    block = shaken(n, seed=2).blocks[0]
    parts = Arrangement(block, 8, 2, shared)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    case = box(n, periodic="")
    case = case.model_copy(update={"grid": Case.from_dict(case.model_dump() | {"grid": {"file": "none"}}).grid})
    cut = Simulation(case, "cpu", grid=saved(tmp_path, parts.blocks, tables), initial=rough)
    one = Simulation(case, "cpu", grid=Grid((block,)), initial=rough)
    for run in (cut, one):
        run.run(progress=False)
    for p, held in enumerate(parts.held):
        nodes = np.stack(np.meshgrid(*(np.arange(*r) for r in held), indexing="ij"))
        (i, j, k), (l, m, o) = nodes, parts.index(p, nodes)
        for name in STATE:
            got, wanted = cut.blocks[p].state(name)[o, m, l], one.blocks[0].state(name)[k, j, i]
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


def make(where="cpu", out=None, plan="auto", comm=None, **tables):
    """Between a wall and a plane of symmetry, viscous, in three dimensions."""
    sides = [
        {"faces": ["imin", "imax", "kmin", "kmax"], "type": "periodic"},
        {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.1},
        {"faces": ["jmax"], "type": "symmetry"},
    ]
    given = {"time": {"steps": 6, "cfl": 0.4}, "gas": {"reynolds": 200.0}, "boundary": sides, "plan": plan}
    ground = {} if comm is None else {"comm": comm}
    return Simulation(box((16, 13, 8), periodic="xz", **(given | tables)), where, initial=bump, out=out, **ground)


def bump(x, y, z):
    p = (1 + 3 * np.exp(-40 * ((np.mod(x - 0.05, 1) - 0.5) ** 2 + (y - 0.4) ** 2))) / 1.4
    return 1.4 * p, 0.2 * np.sin(2 * np.pi * x), 0.1 * np.sin(np.pi * y) ** 2, 0.1 * np.cos(2 * np.pi * z), p


@pytest.mark.slow
def test_ranks_backends_plans_and_restart(tmp_path):
    same_everywhere(make, tmp_path / "run", 3, plans=("decomposed", "compact"))


def on_levels(comm=None, where="cpu") -> list[tuple[int, tuple, np.ndarray]]:
    """A blast that levels follow: for each part of this rank its tile, and the places and pressure of its nodes."""
    refine = {"tile": 8, "every": 2, "criterion": "density-curvature"}
    case = box((40, 36, 1), periodic="xy", refine=refine, time={"steps": 8, "cfl": 0.4})
    run = Simulation(case, where, initial=bump, **({} if comm is None else {"comm": comm}))
    run.run(progress=False)
    assert run.solver.decomposition.levels.finest == 1
    places = [[first + np.arange(n) for first, n in zip(b.first, b.x.shape[::-1], strict=True)] for b in run.blocks]
    return [(b.whole, np.ix_(*at[::-1]), np.array(b.state("p"))) for b, at in zip(run.blocks, places, strict=True)]


def test_moving_levels():
    alone = {tile: p for tile, _, p in on_levels()}
    assert len(alone) > 1
    for others in (on_levels(where="emulated"), list(chain(*run_ranks(2, on_levels)))):
        assert sum(p.size for *_, p in others) == sum(p.size for p in alone.values())
        for tile, nodes, p in others:
            np.testing.assert_allclose(p, alone[tile][nodes], rtol=0, atol=1e-12)


def test_axisymmetric_flow():
    """The bow shock of a sphere, by ranks of the emulated backend and by one of the CPU."""
    coarse = ["grid.n_around=25", "grid.n_normal=17"]
    case = load("sphere", "axisymmetric", overrides=[*coarse, 'scheme.flux="roe_h"', "time.end=100.0"])
    assert max(run_ranks(2, off_on_ranks, case, 20, "emulated")) < 1e-12
