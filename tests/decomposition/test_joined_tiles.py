"""Tiles of a level joined to larger blocks."""

import numpy as np

from hiresx.decomposition.refinement import boxes_of, joined_boxes
from hiresx.grid.blocks import slices

LATTICE = [[0, 8, 16, 24, 35], [0, 8, 16, 27], [0, 8, 19]]


def marked(boxes) -> np.ndarray:
    """How many of the boxes hold each node."""
    found = np.zeros([ends[-1] for ends in reversed(LATTICE)], int)
    for box in boxes:
        found[slices(box)] += 1
    return found


def test_every_tile_is_in_one_block_and_no_others_are():
    chosen = np.random.default_rng(3).random((2, 3, 4)) < 0.6
    joined = list(joined_boxes(LATTICE, chosen))
    assert (marked(joined) == marked(boxes_of(LATTICE, chosen))).all()
    assert len(joined) < chosen.sum()


def test_tiles_that_fill_a_box_are_one_block():
    chosen = np.zeros((2, 3, 4), bool)
    chosen[:, 1:, 1:3] = True
    assert list(joined_boxes(LATTICE, chosen)) == [((8, 24), (8, 27), (0, 19))]
