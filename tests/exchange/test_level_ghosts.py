"""The ghosts of tiles of a flow that is linear in the coordinates, which both interpolations keep."""

from itertools import pairwise

import numpy as np
import pytest
from arrangements import saved
from multiblock import Arrangement

from hiresx.case import Case
from hiresx.case.grids import Box
from hiresx.decomposition import Part, domain
from hiresx.device import backend
from hiresx.grid import build
from hiresx.grid.blocks import whole_box
from hiresx.solver import Solver
from hiresx.solver.initial_flow import initial_flow

REGIONS = [
    {"level": 1, "i": [4, 11], "j": [0, 11], "k": [8, 15]},
    {"level": 2, "i": [13, 14], "j": [13, 14], "k": [1, 2]},
]


def halves(whole):
    """Every block as two parts along j."""
    for n, block in enumerate(whole.blocks):
        first, (_, end), last = whole_box(block.size)
        yield from (Part(n, (first, ends, last)) for ends in ((0, end // 2), (end // 2, end)))


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("parts", [None, lambda whole: [*halves(whole)]], ids=["whole", "halves"])
def test_a_linear_flow_goes_on_behind_tiles(where, parts):
    check_ghosts(where, parts, REGIONS)


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_a_linear_flow_goes_on_behind_tiles_at_connections_of_turned_blocks(tmp_path, where):
    whole = build(Box(n=(33, 30, 31), lower=(0.0, 0.0, 0.0), upper=(1.0, 1.0, 1.0))).blocks[0]
    made = Arrangement(whole, 4, 2, shared=True)
    tables = {"blocks": [block.name for block in made.blocks], "connection": made.tables}
    region = {"x": [0.4, 0.6], "y": [0.4, 0.6], "z": [0.4, 0.6]}
    check_ghosts(where, None, [region], saved(tmp_path, made.blocks, tables))


def check_ghosts(where, parts, regions, grid=None):
    case = Case.from_dict(
        {
            "grid": {"generator": "box", "n": [24, 24, 24], "lower": [0.0] * 3, "upper": [1.0] * 3},
            "boundary": [{"faces": "all", "type": "slip-wall"}],
            "refine": {"tile": 8, "region": regions},
            "initial": {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": 1.0}},
            "time": {"steps": 1, "cfl": 0.5},
        }
    )
    ground = domain(case, parts=parts, grid=grid)
    solver = Solver(case, backend(where), domain=ground, flow=initial_flow(case))

    def linear(state):
        x, y, z = ground.coordinates(state.part)
        slope = np.full(state.shape, np.nan)
        slope[:, :, : x.shape[2]] = 24 * (x + 2 * y - 3 * z)
        return np.stack([of + 0.01 * slope for of in (3.0, 0.1, -0.2, 0.3, 9.0)])

    for state in solver.states:
        state.q[...] = np.nan
        state.interior(state.q)[...] = state.interior(linear(state))
    patched = solver._ghosts.patched
    patched.state()
    taken = patched._taken
    assert set(taken.directions) == {0, 1, 2}
    for place, (first, end) in zip(taken.places, pairwise(taken.ends), strict=True):
        state = solver.states[place]
        found, wanted = (q.reshape(5, -1)[:, taken.lists["to"][first:end]] for q in (state.q, linear(state)))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)
