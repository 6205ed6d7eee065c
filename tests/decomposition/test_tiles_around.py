"""Tiles of the level before under and around tiles, all at once and one by one."""

import numpy as np
import pytest

from hiresx.decomposition import flags
from hiresx.decomposition.levels import Space
from hiresx.decomposition.refinement import along_lines, around_tiles, boxes_of, take_around
from hiresx.grid.patched import Wrap

LATTICE, BELOW = [[0, 8, 16, 24, 32, 48], [0, 8, 16, 27], [0, 1]], [[0, 8, 16, 24], [0, 8, 14], [0, 1]]


@pytest.mark.parametrize("wrapped", [False, True])
def test_products_along_lines_are_what_every_tile_has_around_it(wrapped):
    space = Space((24, 14, 1), (Wrap(24) if wrapped else None, None, None))
    around = around_tiles(LATTICE, space, 1, BELOW)
    found = []
    for place in np.ndindex(1, 3, 5):
        tiles = np.zeros((1, 3, 5), bool)
        tiles[place] = True
        one = np.zeros((1, 2, 3), bool)
        for box in boxes_of(LATTICE, tiles):
            take_around(box, space, 1, BELOW, one)
        found.append(int(one.sum()))
        assert (along_lines(tiles, around) == one).all()
    assert 0 < min(found) < max(found)


def test_the_vorticity_of_a_linear_flow_is_exact_on_bent_lines():
    """Second-order differences of u = A x by differences of places; 0 at nodes beside which there is nothing."""
    k, j, i = np.meshgrid(*(np.arange(n, dtype=float) for n in (7, 8, 9)), indexing="ij")
    nodes = [i + 0.1 * j * j, j + 0.05 * i * k, k - 0.02 * i * i]
    rates = np.array([[0.1, 0.5, -0.3], [0.2, 0.4, 0.7], [-0.6, 0.3, 0.2]])  # du_a/dx_b
    velocity = [sum(rates[a, b] * nodes[b] for b in range(3)) for a in range(3)]
    exact = np.linalg.norm([rates[2, 1] - rates[1, 2], rates[0, 2] - rates[2, 0], rates[1, 0] - rates[0, 1]])
    beyond = np.zeros((3, 2), bool)
    beyond[0, 1] = True
    found = flags._vorticity(velocity, nodes, beyond)
    assert found.shape == (5, 6, 7) and np.allclose(found[..., :-1], exact, rtol=1e-12) and not found[..., -1].any()
