"""Steady flow by the implicit integrator with default keys: as many steps whichever way the blocks of its grid lie."""

import numpy as np
import pytest
from arrangements import FAR, decomposed, saved, shaken
from multiblock import Arrangement

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid
from hiresx.solver.sweep_colours import NODES, Colours

GAS = {"rho": 1.0, "u": 0.5, "p": 1 / 1.4}
LENGTH = 3.0
# Faces of a block without nodes k as (face, its nodes).
FACES = {"imin": np.s_[..., 0], "imax": np.s_[..., -1], "jmin": np.s_[:, 0], "jmax": np.s_[:, -1]}


def channel() -> Block:
    """A channel with a bump of a tenth of its height."""
    j, i = np.meshgrid(np.linspace(0, 1, 17), np.linspace(0, LENGTH, 33), indexing="ij")
    bump = 0.1 * np.exp(-(((i - LENGTH / 2) / 0.3) ** 2))
    return Block("whole", i[None], (j * (1 - bump) + bump)[None], 0 * i[None])


def conditions(grid: Grid) -> list[dict]:
    """The flow enters at x = 0 and leaves at the other end, whatever faces of the blocks lie there."""
    found = []
    for block in grid.blocks:
        for face, nodes in FACES.items():
            x = block.x[nodes]
            if np.allclose(x, 0):
                found.append({"faces": [face], "block": block.name, "type": "characteristic-inflow", "state": GAS})
            if np.allclose(x, LENGTH):
                found.append({"faces": [face], "block": block.name, "type": "pressure-outflow", "pressure": GAS["p"]})
    return [*found, {"faces": "all", "type": "slip-wall"}]


def simulation(grid: Grid, **of_scheme) -> Simulation:
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "time": {"integrator": "implicit", "steps": 25}, "initial": {"state": GAS}, "boundary": conditions(grid),
        "implicit": of_scheme,
    })  # fmt: skip
    return Simulation(case, "cpu", grid=grid)


def swept(grid: Grid, **of_scheme) -> np.ndarray:
    """What three sweeps make of a right-hand side that follows from places: rows of x, y and the variables, by place,
    each node once."""
    solver = simulation(grid, sweeps=3, **of_scheme).solver
    solver.initialize(
        lambda x, y, z: (1 + 0.1 * np.sin(x), 0.5 + 0.1 * y, 0.05 * np.cos(x), 0.0, (1 + 0.1 * x * y) / 1.4)
    )
    system, linear = solver.system, solver.integrator.linearised
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.begin()
    linear.assemble(x, 0.01)
    linear.change(x, right)
    linear.precondition(right, found)
    values = np.split(system.gather(found), np.cumsum([5 * block.points for block in grid.blocks])[:-1])
    rows = [
        np.concatenate([np.stack([block.x.ravel(), block.y.ravel()]), own.reshape(5, -1)])
        for block, own in zip(grid.blocks, values, strict=True)
    ]
    whole = np.concatenate(rows, axis=1)
    _, first = np.unique(whole[:2].round(9), axis=1, return_index=True)
    return whole[:, first]


@pytest.mark.parametrize(
    ("seed", "shared", "storage"),
    [(2, False, "fp32"), pytest.param(1, True, "fp32", marks=pytest.mark.slow), (3, True, "none")],
)
def test_sweeps_over_turned_blocks_are_those_over_one(seed, shared, storage, tmp_path, monkeypatch):
    """With the colours of one block or, where the first block begins with the other one, with these exchanged. Matrix
    blocks at conditions are differences over 1e-7 of a variable and differ by round-off over this."""
    parts = Arrangement(channel(), 3, seed, shared)
    grid = saved(tmp_path, parts.blocks, {"blocks": [block.name for block in parts.blocks], "connection": parts.tables})
    found = swept(grid, lines="none", storage=storage)
    off = []
    for colour in (0, 1):
        monkeypatch.setattr(Colours, "constants", np.full((1, 4), colour))
        wanted = swept(Grid((channel(),)), lines="none", storage=storage)
        off.append(np.abs(found - wanted).max() / np.abs(wanted[2:]).max())
    assert min(off) < 1e-8 < 1e-3 < max(off)


@pytest.mark.parametrize("seed", [0, 1])
def test_colours_of_nodes_and_lines_alternate_through_all_blocks(seed, tmp_path):
    """In the whole block that was cut into turned ones, the colours are parities of indices."""
    arrangement = Arrangement(shaken((18, 19, 20)).blocks[0], 6, seed, bool(seed % 2))
    grid = saved(
        tmp_path,
        arrangement.blocks,
        {"blocks": [block.name for block in arrangement.blocks], "connection": arrangement.tables},
    )
    constants = Colours(6, decomposed(grid, FAR).connections).constants
    assert len(np.unique(constants, axis=0)) > 1
    for axis in (*range(3), NODES):
        off = set()
        for n, held in enumerate(arrangement.held):
            node = np.stack(np.meshgrid(*(np.arange(*r) for r in held), indexing="ij"))
            place = arrangement.index(n, node)
            along = NODES if axis == NODES else int(np.flatnonzero(arrangement.turns[n][:, axis])[0])
            across, wanted = (
                given.sum(axis=0) - (0 if d == NODES else given[d]) for given, d in ((place, along), (node, axis))
            )
            off |= set(np.unique((across + constants[n, along] - wanted) % 2))
        assert len(off) == 1


@pytest.mark.parametrize("seed", [None, pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_bump_in_a_channel_takes_as_many_steps_in_one_block_as_in_two_turned_ones(seed, tmp_path):
    grid = Grid((channel(),))
    if seed is not None:
        parts = Arrangement(channel(), 2, seed, True)
        grid = saved(
            tmp_path, parts.blocks, {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
        )
    run = simulation(grid)
    assert run.run(progress=False)["implicit"]["drop"] > 1e10
    assert run.step_count < 20
