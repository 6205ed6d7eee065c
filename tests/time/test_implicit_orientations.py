"""Steady flow by the implicit integrator with default keys: as many steps whichever way the blocks of its grid lie."""

import numpy as np
import pytest
from arrangements import saved
from multiblock import Arrangement

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid

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


@pytest.mark.parametrize("seed", [None, pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_bump_in_a_channel_takes_as_many_steps_in_one_block_as_in_two_turned_ones(seed, tmp_path):
    grid = Grid((channel(),))
    if seed is not None:
        parts = Arrangement(channel(), 2, seed, True)
        grid = saved(
            tmp_path, parts.blocks, {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
        )
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "time": {"integrator": "implicit", "steps": 25}, "initial": {"state": GAS}, "boundary": conditions(grid),
    })  # fmt: skip
    run = Simulation(case, "cpu", grid=grid)
    assert run.run(progress=False)["implicit"]["drop"] > 1e10
    assert run.step_count < 20
