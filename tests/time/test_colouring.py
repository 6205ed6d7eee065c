"""Groups of nodes that are perturbed together for the sparse Jacobian of the adjoint method."""

import numpy as np
import pytest
from scipy import sparse as matrices

from hiresx.gradients.colouring import LineNeighbours, groups


@pytest.mark.parametrize("edge", [1, 3])
def test_distant_tiles_are_shifted_together(edge):
    """On a chain of 40 nodes, of which three take means. The last tile has one node."""
    places, means, tiles = np.arange(40), [0, 1, 38], np.arange(40) // edge
    chain = np.stack([np.maximum(places - 1, 0), np.minimum(places + 1, 39)], axis=1)
    near = LineNeighbours(chain, np.array(means), tiles)
    groups = list(near.distant_groups(3))
    assert sorted(np.concatenate([group for group, _ in groups])) == list(range(tiles[-1] + 1))
    assert len(groups) < 14
    for group, cause in groups:
        for place in places:
            causes = {
                tiles[n]
                for n in np.concatenate([near.members[tile] for tile in group])
                if abs(n - place) <= 3 or ({tiles[n], tiles[place]} <= set(tiles[means]) and place in means)
            }
            assert causes == ({cause[place]} if cause[place] >= 0 else set())


def test_nodes_enter_groups_in_the_smallest_last_order():
    """In the order of their numbers, 2 n and 2 n + 1 would share a group of their own: they alone do not meet."""
    pairs = [(a, b) for a in range(0, 40, 2) for b in range(1, 40, 2) if b != a + 1]
    pairs += [(a, 40) for a in range(0, 38, 2)]
    rows = np.repeat(np.arange(len(pairs)), 2)
    depends = matrices.coo_array((np.ones(rows.size, bool), (rows, np.ravel(pairs))), (len(pairs), 41)).tocsr()
    found = list(groups(depends))
    assert len(found) == 2
    assert sorted(np.concatenate([nodes for nodes, _ in found])) == list(range(41))
    for nodes, cause in found:
        for row, pair in enumerate(pairs):
            assert ({cause[row]} if cause[row] >= 0 else set()) == set(pair) & set(nodes)


def test_the_first_nodes_share_few_groups():
    """Results that depend on three nodes in a row: with all nodes alike, every third one is in a group."""
    rows, shifts = np.arange(58)[:, None], np.arange(3)
    places = np.repeat(rows, 3), (rows + shifts).ravel()
    depends = matrices.coo_array((np.ones(174, bool), places), (58, 60)).tocsr()
    first = np.isin(np.arange(60), [7, 20, 33, 46, 59])
    assert len([nodes for nodes, _ in groups(depends) if first[nodes].any()]) > 1
    found = [nodes for nodes, _ in groups(depends, first)]
    assert len([nodes for nodes in found if first[nodes].any()]) == 1
    assert sorted(np.concatenate(found)) == list(range(60))
