"""No-slip walls that end where blocks meet: the flow is that of one block in which the wall ends at the same node."""

import numpy as np
import pytest
from arrangements import saved
from multiblock import Arrangement
from watched_runs import SLIP, cut

from hiresx import Case, Simulation
from hiresx.decomposition import decompose
from hiresx.decomposition.wall_seams import _without
from hiresx.grid import Block, Grid

STICKS = {"type": "no-slip-wall", "temperature": 1.0}


def bent(n) -> Block:
    k, j, i = np.meshgrid(*(np.linspace(0, 1, m) if m > 1 else np.zeros(1) for m in reversed(n)), indexing="ij")
    return Block("whole", 2 * i + 0.2 * j, j + 0.1 * np.sin(2 * i) + 0.1 * k, k if n[2] > 1 else 0 * k)


def case(boundary) -> Case:
    return Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "gas": {"reynolds": 50.0}, "time": {"steps": 12}, "initial": {"state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}},
        "boundary": boundary,
    })  # fmt: skip


def flow(grid: Grid, boundary, name="u") -> dict[tuple[float, ...], set[float]]:
    """The velocities u, or another variable, at each place of the grid, of every block that holds it."""
    run = Simulation(case(boundary), "cpu", grid=grid)
    run.run(progress=False)
    found: dict[tuple[float, ...], set[float]] = {}
    for block in run.blocks:
        places = zip(*(np.round(c, 9).ravel() for c in (block.x, block.y, block.z)), strict=True)
        for place, value in zip(places, block.state(name).ravel(), strict=True):
            found.setdefault(place, set()).add(float(value))
    return found


@pytest.mark.parametrize("n", [(25, 13, 1), (25, 9, 8)], ids=["2-D", "3-D"])
def test_a_wall_of_the_second_block_is_that_of_one_block_from_the_shared_node_on(n):
    whole, others = bent(n), SLIP | {"faces": "all"}
    expected = flow(Grid((whole,)), [STICKS | {"faces": ["jmin"], "range": {"i": [10, n[0]]}}, others])
    grid = cut(whole, 10, True)
    found = flow(grid, [STICKS | {"faces": ["jmin"], "block": grid.blocks[1].name}, others])
    assert found.keys() == expected.keys()
    for place, (u,) in expected.items():
        assert max(abs(own - u) for own in found[place]) < 1e-12, place


FAR = {"type": "far-field", "state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}}
WARMER = STICKS | {"temperature": 1.2}


@pytest.mark.parametrize(
    ("first", "wall", "other"),
    [
        pytest.param(0, STICKS, FAR, id="wall and far field"),
        pytest.param(1, STICKS, WARMER, id="cold and warm wall"),
        pytest.param(1, WARMER, STICKS, id="warm and cold wall"),
        pytest.param(0, {"type": "modelled-wall"}, SLIP, id="modelled and slip wall"),
        pytest.param(1, SLIP, FAR, id="slip wall and far field"),
    ],
)
def test_the_node_between_two_conditions_belongs_to_the_wall_that_comes_first(first, wall, other):
    """Whichever of two blocks has the wall. Two no-slip walls have the order of the case."""
    whole = bent((25, 9, 1))
    grid, others = cut(whole, 10, True), SLIP | {"faces": "all"}
    ranges = [[0, 11], [11, 25]] if first == 0 else [[10, 25], [0, 10]]
    places = [{"faces": ["jmin"], "range": {"i": nodes}} for nodes in ranges]
    expected = flow(Grid((whole,)), [wall | places[0], other | places[1], others], "T")
    names = [grid.blocks[n].name for n in (first, 1 - first)]
    places = [{"faces": ["jmin"], "block": name} for name in names]
    found = flow(grid, [wall | places[0], other | places[1], others], "T")
    assert found.keys() == expected.keys()
    for place, (value,) in expected.items():
        assert max(abs(own - value) for own in found[place]) < 1e-12, place


def test_a_wall_for_a_block_takes_precedence_over_one_for_a_face():
    grid, others = cut(bent((25, 9, 1)), 10, True), SLIP | {"faces": "all"}
    walls = [WARMER | {"faces": ["jmin"]}, STICKS | {"faces": ["jmin"], "block": grid.blocks[0].name}]
    held = [patch for patch in decompose(case([*walls, others]), grid).patches if patch.face == "jmin"]
    assert [(patch.block, patch.range[0]) for patch in held if patch.condition.temperature == 1.0] == [
        (0, (0, 11)),
        (1, (0, 1)),
    ]


def test_turned_blocks_of_which_some_have_the_wall_agree_at_all_nodes_that_they_share(tmp_path):
    parts = Arrangement(bent((26, 23, 1)), 4, 7, True)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    grid, others = saved(tmp_path, parts.blocks, tables), SLIP | {"faces": "all"}
    for block in grid.blocks:
        walls = [STICKS | {"faces": "all", "block": block.name}, others]
        found = flow(grid, walls)
        assert all(max(values) - min(values) < 1e-12 for values in found.values())
        assert any(patch.condition.kernel == "no_slip" and patch.block != grid.blocks.index(block)
                   for patch in decompose(case(walls), grid).patches)  # fmt: skip


def test_what_is_left_of_a_range():
    whole, part = ((0, 9), (4, 5), (2, 8)), ((8, 9), (4, 5), (3, 6))
    nodes = [(i, j, k) for r in (part, *_without(whole, part)) for i in range(*r[0]) for j in range(*r[1])
             for k in range(*r[2])]  # fmt: skip
    assert len(nodes) == len(set(nodes)) == 54


def test_a_wall_that_is_given_block_by_block_is_the_wall_that_is_given_at_once():
    """Its first block is plane and its second one curved, and a wall that is curved anywhere mirrors all of its ghosts
    as curved walls do."""
    j, i = np.meshgrid(np.linspace(0, 1, 13), np.linspace(0, 1, 25), indexing="ij")
    bump = 0.1 * np.clip(i - 0.45, 0, None) ** 2
    whole = Block("whole", 2 * i[None], (j * (1 - bump) + bump)[None], 0 * i[None])
    expected = flow(Grid((whole,)), [SLIP | {"faces": "all"}])
    grid = cut(whole, 10, True)
    found = flow(grid, [SLIP | {"faces": "all", "block": block.name} for block in grid.blocks])
    assert found.keys() == expected.keys()
    for place, (u,) in expected.items():
        assert max(abs(own - u) for own in found[place]) < 1e-12, place
