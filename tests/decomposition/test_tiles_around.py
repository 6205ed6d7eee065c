"""Tiles of the level before under and around tiles, all at once and one by one."""

import numpy as np
import pytest

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
