"""Levels of refinement do not interpolate across edges of walls."""

import numpy as np
import pytest
from arrangements import decomposed
from lens_grids import lens_grid

from hiresx import Case, HiresxError, Simulation
from hiresx.case.boundaries import NoSlipWall
from hiresx.decomposition.coordinates import extended_coordinates
from hiresx.decomposition.levels import finer, refined_extended
from hiresx.grid import Block, Grid, matched_connections

SLOPE = np.tan(np.radians(25))


def ramp(n: int = 25, at: int = 12) -> list[Block]:
    """Below the ramp, which begins at node `at`, and above the block over it, whose indexes are in another sense."""
    x = np.linspace(-1, 1, n) - np.linspace(-1, 1, n)[at]
    x, s = np.meshgrid(x, np.linspace(0, 1, 21))
    y = np.maximum(x, 0) * SLOPE * (1 - s) + s
    lower, upper = (tuple(c[None, rows] for c in (x, y, 0 * x)) for rows in (slice(0, 11), slice(10, 21)))
    turned = [np.ascontiguousarray(np.swapaxes(c, 1, 2)[:, ::-1]) for c in upper]
    return [Block("lower", *(np.ascontiguousarray(c) for c in lower)), Block("upper", *turned)]


def levels(grid: Grid, count: int = 2):
    whole = decomposed(grid, NoSlipWall(faces="all"))
    found = [whole]
    extended = [(c[0], c[1], c[2]) for c in extended_coordinates(whole)]
    for _ in range(count):
        found.append(finer(found[-1], extended))
        extended = refined_extended(found[-1])
    return found


@pytest.mark.parametrize("at", [12, 3, 21], ids=["middle", "near one end", "near the other"])
def test_an_edge_stays_sharp_and_where_it_is(at):
    blocks = ramp(at=at)
    for level in levels(Grid(blocks, matched_connections(blocks)))[1:]:
        lower, upper = level.blocks
        wall = lower.y[0, 0] - SLOPE * np.maximum(lower.x[0, 0], 0)
        assert np.abs(wall).max() < 1e-13
        # blocks that hold the same nodes find the same places, whatever walls they have
        for one, other in zip(lower.coordinates, upper.coordinates, strict=True):
            np.testing.assert_allclose(one[0, -1], other[0, ::-1, 0], atol=1e-13)


@pytest.mark.parametrize("kind", ["edge", "edge doubled", "apart", "two"])
def test_levels_around_a_lens_do_not_depend_on_where_blocks_meet(kind):
    """Its nodes lie on both arcs up to the edges, and are the same ones in one block and in two."""

    def wall(name):
        *_, fine = levels(lens_grid(48, name), 1)
        found = np.concatenate([np.stack([b.x[0, 0], b.y[0, 0]]) for b in fine.blocks], axis=1)
        return np.unique(found.round(8), axis=1)

    x, y = wall(kind)
    arcs = np.where(y > 0, 0.3 * (1 - x**2) * (1 + 0.3 * x), -0.2 * (1 - x**2) * (1 - 0.2 * x))
    assert np.abs(y - arcs).max() < 1e-7 and np.abs(x).max() < 1 + 1e-8
    np.testing.assert_allclose((x, y), wall("apart doubled"), atol=2e-8)


def test_a_uniform_flow_stays_over_a_ramp_with_levels():
    blocks = ramp()
    state = {"rho": 1.0, "u": 0.5, "v": 0.2, "p": 0.7}
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "initial": {"state": state}, "time": {"steps": 5, "dt": 0.01},
        "refine": {"tile": 8, "region": [{"level": 2, "x": [-0.2, 0.2], "y": [0.2, 0.6]}]},
        "boundary": [{"faces": "all", "type": "supersonic-inflow", "state": state}],
    })  # fmt: skip
    simulation = Simulation(case, "cpu", grid=Grid(blocks, matched_connections(blocks)))
    simulation.run(progress=False)
    assert max(tile.level for tile in simulation.solver.decomposition.levels.tiles) == 2
    for block in simulation.blocks:
        for name, value in state.items():
            assert np.abs(block.state(name) - value).max() < 1e-12


@pytest.mark.parametrize("criterion", [False, True], ids=["region", "criterion"])
def test_no_tile_lies_on_a_slip_wall_with_an_edge(criterion):
    """Of which it may have the oblique piece alone: a region is refused, and a criterion keeps away."""
    found = {"criterion": "density-gradient", "refine": 1e-3} if criterion else {"region": [{"x": [-0.2, 0.2]}]}
    state = {"rho": 1.0, "u": 2.5, "p": 0.7}
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "initial": {"state": state}, "time": {"steps": 1, "dt": 0.01}, "refine": {"tile": 8, **found},
        "boundary": [
            {"faces": ["jmin"], "type": "slip-wall"}, {"faces": ["imin"], "type": "supersonic-inflow", "state": state},
            {"faces": ["imax", "jmax"], "type": "supersonic-outflow"},
        ],
    })  # fmt: skip

    def jump(x, y, z):
        return 1 + 0.2 * (x > 0), 2.5 + 0 * x, 0 * x, 0 * x, 0.7 + 0 * x

    x, t = np.meshgrid(np.linspace(-1, 1, 41), np.linspace(0, 1, 41))
    y = np.maximum(x, 0) * SLOPE * (1 - t) + t
    grid = Grid((Block("ramp", x[None], y[None], 0 * x[None]),))
    if not criterion:
        with pytest.raises(HiresxError, match="slip wall that is curved, has an edge or is met by oblique"):
            Simulation(case, "cpu", grid=grid)
        return
    tiles = [t for t in Simulation(case, "cpu", grid=grid, initial=jump).solver.decomposition.levels.tiles if t.level]
    assert tiles and all(tile.box[1][0] > 0 for tile in tiles)
