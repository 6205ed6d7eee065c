"""Which node before a modelled wall the model takes the flow from, and how far from the wall it lies."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx import HiresxError
from hiresx.grid import Block
from hiresx.rhs.modelled_wall import exchange_nodes

LEAN = 0.75  # of the lines off the wall: 1.25 of a spacing along them


def wall(face="jmin", **given):
    """A block of 9 by 12 by 8 nodes, 0.1 apart off the wall at y = 0 or from y = 1.1 down, and a part of that wall."""
    k, j, i = np.meshgrid(np.arange(8), np.arange(12), np.arange(9), indexing="ij")
    away = 0.1 * (j if face == "jmin" else 11 - j)
    block = Block("b", i + LEAN * away, 0.1 * j, 1.0 * k)
    row = (0, 1) if face == "jmin" else (11, 12)
    condition = SimpleNamespace(type="modelled-wall", exchange_nodes=None, exchange_height=None)
    condition.__dict__.update(given)
    patch = SimpleNamespace(face=face, range=((2, 7), row, (0, 8)), condition=condition, block=0)
    normal = np.zeros((3, 8, 1, 5))
    normal[1] = -1.0 if face == "jmax" else 1.0
    return block, patch, normal


@pytest.mark.parametrize("face", ["jmin", "jmax"])
@pytest.mark.parametrize(("given", "nodes"), [
    ({}, 4), ({"exchange_nodes": 5}, 5), ({"exchange_height": 0.4}, 4), ({"exchange_height": 0.41}, 5),
    ({"exchange_height": 0.2}, 2), ({"exchange_height": 1.1}, 11),
])  # fmt: skip
def test_the_first_node_at_the_exchange_height(face, given, nodes):
    """Along the normal of the wall where it is known, else along the lines of the grid."""
    block, patch, normal = wall(face, **given)
    found, height = exchange_nodes(block, patch, normal)
    assert found.shape == height.shape == (8, 5) and set(found.ravel().tolist()) == {nodes}
    np.testing.assert_allclose(height, 0.1 * nodes, rtol=1e-12)
    if "exchange_height" not in given:
        found, height = exchange_nodes(block, patch)
        assert set(found.ravel().tolist()) == {nodes}
        np.testing.assert_allclose(height, 0.125 * nodes, rtol=1e-12)


def test_heights_without_nodes_are_refused():
    block, patch, normal = wall(exchange_height=1.11)
    with pytest.raises(HiresxError, match=r"modelled-wall on jmin of block 'b': .* beyond the 12 nodes"):
        exchange_nodes(block, patch, normal)
    block, patch, normal = wall(exchange_height=0.1)
    with pytest.raises(HiresxError, match=r"height 0\.1 is below the second node before the wall, which is 0\.2 away"):
        exchange_nodes(block, patch, normal)
