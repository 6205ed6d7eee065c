"""Levels over connected faces: the flow does not depend on where blocks are cut, or where a period begins."""

import numpy as np
import pytest
from arrangements import saved
from chosen_tiles import choose_tiles
from multiblock import Arrangement

from hiresx import Simulation
from hiresx.case import Case
from hiresx.equations.stencil import Stencil
from hiresx.grid import Block, Grid
from hiresx.grid.cutting import cuts

P0 = 1 / 1.4
FLOW = {"rho": 1.0, "u": 0.7, "v": 0.4, "p": P0}
# Boxes into which blocks of 49 x 41 and of 24 x 24 x 24 nodes are cut, at ends of tiles.
HALVES = [((0, 24), (0, 41), (0, 1)), ((24, 49), (0, 41), (0, 1))]
ONE_TO_TWO = [((0, 24), (0, 41), (0, 1)), ((24, 49), (0, 20), (0, 1)), ((24, 49), (20, 41), (0, 1))]
TWO_TO_ONE = [((0, 24), (0, 20), (0, 1)), ((0, 24), (20, 41), (0, 1)), ((24, 49), (0, 41), (0, 1))]
IN_SPACE = [((a, a + 12), (b, b + 12), (0, 24)) for a in (0, 12) for b in (0, 12)]


def wavy(n):
    """A block of n[0] x n[1] x n[2] nodes, displaced by waves."""
    x, y, z = (np.linspace(0.0, float(m > 1), m) for m in n)
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    bump = np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    return Block("whole", x + 0.04 * bump, y + 0.05 * bump, z)


def case_of(refine, **tables):
    tables.setdefault("boundary", [{"faces": "all", "type": "far-field", "state": FLOW}])
    return Case.from_dict(
        {
            "grid": {"file": "none"},
            "refine": {"tile": 8, **refine},
            "time": {"steps": 4, "dt": 0.002},
            "initial": {"state": FLOW},
            **tables,
        }
    )


def flow_of(grid, refine, start, meanwhile=lambda: None, **tables):
    """The flow of a pulse after four steps, by level and place of the node. `meanwhile` is called after two steps."""
    simulation = Simulation(case_of(refine, **tables), backend="cpu", grid=grid, initial=start)
    simulation.run(2, progress=False)
    meanwhile()
    simulation.run(progress=False)
    found = {}
    for tile, block in zip(simulation.solver.decomposition.levels.tiles, simulation.blocks, strict=True):
        places = np.stack([np.asarray(getattr(block, c)) for c in "xyz"]).reshape(3, -1).T
        states = np.stack([block.state(name) for name in ("rho", "u", "v", "p")]).reshape(4, -1).T
        keys = ((tile.level, *place) for place in (np.round(places, 9) + 0.0).tolist())
        found |= dict(zip(keys, states, strict=True))
    return found


def difference(one, other):
    """The largest difference of two flows, which have the same nodes."""
    assert one.keys() == other.keys()
    return max(np.abs(state - other[place]).max() for place, state in one.items())


def pulse(x, y, z):
    s = 0.05 * np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / 0.01)
    return 1 + s, 0.7 + 0.3 * s, 0.4 - s, 0 * x, P0 + s


def cut(whole, boxes):
    blocks = [whole.part(f"part-{n}", box, np.ascontiguousarray) for n, box in enumerate(boxes)]
    return Grid(tuple(blocks), tuple(cuts([whole], [(0, box) for box in boxes], Stencil().halo)))


@pytest.mark.parametrize(("level", "gas"), [(1, {}), (2, {"gas": {"reynolds": 200.0}})])
@pytest.mark.parametrize("boxes", [HALVES, ONE_TO_TWO, TWO_TO_ONE], ids=["halves", "one to two", "two to one"])
def test_a_cut_changes_nothing(boxes, level, gas):
    """Interpolation from one side of the cut would give 2e-7 to 2e-5."""
    whole, refine = wavy((49, 41, 1)), {"region": [{"x": [0.4, 0.6], "y": [0.42, 0.58], "level": level}]}
    one, other = (flow_of(grid, refine, pulse, **gas) for grid in (Grid((whole,)), cut(whole, boxes)))
    assert difference(one, other) < 1e-12


def test_a_cut_in_space_changes_nothing():
    """Four blocks meet in an edge, over which the level lies."""
    whole, refine = wavy((24, 24, 24)), {"region": [{"x": [0.4, 0.6], "y": [0.4, 0.6], "k": [9, 12]}]}
    one, other = (flow_of(grid, refine, pulse) for grid in (Grid((whole,)), cut(whole, IN_SPACE)))
    assert difference(one, other) < 1e-12


@pytest.mark.parametrize("nodes", [41, 40], ids=["shared", "offset"])
def test_a_level_over_a_period_is_as_one_inside(nodes):
    """The last plane of nodes is the first one, or lies a step before it."""
    eta, xi = np.meshgrid(np.linspace(0.0, 1.0, 33), np.arange(nodes) / 40, indexing="ij")
    boundary = [
        {"faces": ["imin", "imax"], "type": "periodic"},
        {"faces": ["jmin", "jmax"], "type": "far-field", "state": FLOW},
    ]
    flows = []
    for first, ends in ((0.0, [[17, 23]]), (0.5, [[0, 3], [37, nodes - 1]])):
        grid = Grid((Block("box", xi[None] + first, eta[None], 0 * xi[None]),), (), ({"i": (1.0, 0.0, 0.0)},))
        refine = {"region": [{"i": of, "j": [12, 20]} for of in ends]}
        found = flow_of(grid, refine, lambda x, y, z: pulse(x - (x > 1.0), y, z), boundary=boundary)
        flows.append({(n, round(x % 1.0, 9) % 1.0, y, z): state for (n, x, y, z), state in found.items()})
    assert difference(*flows) < 1e-12


def test_new_tiles_at_a_cut_have_the_flow_of_one_block(monkeypatch):
    """The tiles move along the cut."""
    whole, seen, centre = wavy((49, 41, 1)), [], [0.35]

    def chosen(table, flow, nodes, beyond):
        x, y = (c[:, 1:-1, 1:-1] for c in nodes[:2])
        return ((abs(x - 0.5) < 0.1) & (abs(y - centre[0]) < 0.06)).astype(float)

    choose_tiles(monkeypatch, chosen)
    refine = {"criterion": "density-gradient", "refine": 0.5, "levels": 2, "every": 2, "margin": 0}
    for grid in (Grid((whole,)), cut(whole, HALVES)):
        centre[0] = 0.35
        seen.append(flow_of(grid, refine, pulse, meanwhile=lambda: centre.__setitem__(0, 0.55)))
    assert difference(*seen) < 1e-12


def test_new_tiles_beside_turned_blocks_have_the_flow_at_their_place(monkeypatch, tmp_path):
    """A linear flow, on three blocks whose indexes run in different directions."""
    centre = [0.3]

    def chosen(table, flow, nodes, beyond):
        x, y = (c[:, 1:-1, 1:-1] for c in nodes[:2])
        return ((x - centre[0]) ** 2 + (y - centre[0]) ** 2 < 0.03).astype(float)

    def linear(state):
        x, y, _ = (c[3:4, 3:-3, 3:-3] for c in simulation._ground.coordinates(state.part))
        return np.stack([of + 0.2 * x - 0.3 * y for of in (3.0, 0.1, -0.2, 0.3, 9.0)])

    choose_tiles(monkeypatch, chosen)
    y, x = np.meshgrid(np.linspace(0.0, 1.0, 45), np.linspace(0.0, 1.0, 49), indexing="ij")
    made = Arrangement(Block("whole", x[None], y[None], 0 * x[None]), 3, 3, shared=True)
    tables = {"blocks": [block.name for block in made.blocks], "connection": made.tables}
    refine = {"criterion": "density-gradient", "refine": 0.5, "levels": 2, "every": 99, "margin": 0}
    simulation = Simulation(case_of(refine), backend="cpu", grid=saved(tmp_path, made.blocks, tables))
    for state in simulation.solver.states:
        state.interior(state.q)[...] = linear(state)
    before, centre[0] = set(simulation.solver.decomposition.levels.tiles), 0.55
    assert simulation.adapt()
    new = [tile for tile in simulation.solver.decomposition.levels.tiles if tile not in before]
    assert len({tile.base for tile in new}) > 1
    for state in simulation.solver.states:
        np.testing.assert_allclose(state.interior(state.q), linear(state), rtol=0, atol=1e-13)
