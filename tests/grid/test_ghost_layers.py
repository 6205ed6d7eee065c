"""Layers beside the faces of a block, ghosts and nodes, against an array that holds all of them."""

import numpy as np
import pytest

from hiresx.decomposition.ghost_layers import INSIDE, GhostLayers, coordinates_in_box
from hiresx.grid import Block

HALO, SIZE = 3, (29, 15, 27)
DEEP = max(INSIDE, HALO + 1)


@pytest.fixture
def made():
    """The layers of a block, and all its coordinates with ghosts (3, k, j, i)."""
    full = np.random.default_rng(6).uniform(-1, 1, (3, *(n + 2 * HALO for n in SIZE[::-1])))
    block = Block("b", *(np.ascontiguousarray(c[HALO:-HALO, HALO:-HALO, HALO:-HALO]) for c in full))
    layers = GhostLayers(block, HALO)
    k, j, i = (a.ravel() for a in np.indices(full.shape[1:]))
    outside = np.array([(a < HALO) | (a >= n - HALO) for a, n in zip((k, j, i), full.shape[1:], strict=True)]).any(
        axis=0
    )
    ghosts = k[outside], j[outside], i[outside]
    layers[(slice(None), *ghosts)] = full[(slice(None), *ghosts)]
    return block, layers, full


def within(full, depth):
    """The places that lie no more than `depth` from one of the faces of the array."""
    at = np.indices(full.shape[1:])
    return np.array([(a < depth) | (a >= n - depth) for a, n in zip(at, full.shape[1:], strict=True)]).any(axis=0)


def test_nodes_beside_faces_and_ghosts_are_known_and_no_others(made):
    _, layers, full = made
    everywhere = (slice(None), *np.indices(full.shape[1:]))
    wanted = np.where(within(full, HALO + DEEP), full, np.nan)
    assert np.isnan(wanted).any()
    np.testing.assert_array_equal(layers[everywhere], wanted)


def test_ghosts_alone_are_left(made):
    block, layers, full = made
    left = layers.without_interior(block, HALO)
    everywhere = (slice(None), *np.indices(full.shape[1:]))
    np.testing.assert_array_equal(left[everywhere], np.where(within(full, HALO), full, np.nan))
    assert sum(a.size for a in left.layers) < sum(a.size for a in layers.layers)


@pytest.mark.parametrize("box", [
    ((0, 33), (0, 21), (0, 35)), ((3, 30), (3, 18), (3, 32)), ((0, 3), (2, 12), (30, 35)), ((2, 4), (5, 6), (31, 33)),
    ((29, 33), (0, 3), (4, 20)), ((10, 11), (4, 5), (17, 18)),
])  # fmt: skip
def test_boxes_across_faces(made, box):
    block, layers, full = made
    found = coordinates_in_box(block, layers, HALO, tuple(slice(*ends) for ends in box))
    np.testing.assert_array_equal(np.stack(found), full[:, *(slice(*ends) for ends in box)])
