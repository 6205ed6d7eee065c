"""The generator of the channel whose floor drops by a step."""

import numpy as np
import pytest

from hiresx.case.grids import BackwardStep
from hiresx.errors import HiresxError
from hiresx.grid import build, check_jacobian

STEP = {"spacing": 0.1, "upstream": 0.6, "length": 0.9, "height": 0.8, "depth": 0.7}


def test_three_blocks_share_their_nodes_at_the_edge():
    grid = build(BackwardStep(**STEP))
    check_jacobian(grid)
    sizes = {block.name: block.size[:2] for block in grid.blocks}
    assert sizes == {"channel": (7, 9), "above": (10, 9), "below": (10, 8)}
    joins = {(grid.blocks[c.block].name, c.face, grid.blocks[c.donor].name) for c in grid.connections}
    assert joins == {
        ("channel", "imax", "above"), ("above", "imin", "channel"),
        ("above", "jmin", "below"), ("below", "jmax", "above"),
    }  # fmt: skip
    channel, above, below = grid.blocks
    for block, node in ((channel, (0, 0, -1)), (above, (0, 0, 0)), (below, (0, -1, 0))):
        np.testing.assert_allclose((block.x[node], block.y[node]), 0.0, atol=1e-15)
    assert (channel.x.min(), above.x.max(), above.y.max(), below.y.min()) == pytest.approx((-0.6, 0.9, 0.8, -0.7))


def test_a_length_between_nodes_is_refused():
    with pytest.raises(HiresxError, match=r"grid\.depth = 0\.75 is no multiple of grid\.spacing = 0\.1"):
        build(BackwardStep(**STEP | {"depth": 0.75}))


def test_too_few_cells_are_refused():
    with pytest.raises(ValueError, match=r"height = 0\.5 is less than 6 of spacing"):
        BackwardStep(**STEP | {"height": 0.5})
