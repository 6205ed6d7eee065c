"""Tiles that fill the boxes around others, so that blocks are fewer."""

from itertools import permutations

import numpy as np
import pytest

from hiresx.decomposition.filled_tiles import BLOCK, fill_tiles, nodes_of_tiles
from hiresx.decomposition.refinement import joined_boxes

LATTICE = [[*range(0, 96, 8), 100], [*range(0, 80, 8)], [0, 1]]
NODES = nodes_of_tiles(LATTICE)


def blocks(taken):
    return sum(1 for _ in joined_boxes(LATTICE, taken))


def none():
    return np.zeros((1, 9, 12), bool)


def test_a_gap_between_tiles_is_filled_where_it_is_small():
    taken = none()
    taken[0, 2:6, 3] = taken[0, 2:6, 5] = taken[0, 2, 4] = True
    whole = none()
    whole[0, 2:6, 3:6] = True
    assert blocks(taken) == 3
    assert (fill_tiles(LATTICE, taken, ~none()) == whole).all()


def test_nothing_is_filled_where_a_block_costs_less_than_the_nodes_or_a_tile_may_not_be():
    apart = none()
    apart[0, 0, 0] = apart[0, 8, 2] = apart[0, 8, 10] = True  # 7 tiles of 64 nodes between two of them
    assert (fill_tiles(LATTICE, apart, ~none()) == apart).all()
    near, allowed = none(), ~none()
    near[0, 4, [2, 4]] = True
    assert blocks(fill_tiles(LATTICE, near, allowed)) == 1
    allowed[0, 4, 3] = False
    assert (fill_tiles(LATTICE, near, allowed) == near).all()
    assert not fill_tiles(LATTICE, none(), allowed).any()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_filled_costs_less_than_the_blocks_that_it_saves(seed):
    random = np.random.default_rng(seed)
    taken, allowed = random.random((1, 9, 12)) < 0.35, random.random((1, 9, 12)) < 0.9
    found = fill_tiles(LATTICE, taken, allowed)
    assert (found[taken]).all() and (taken | allowed)[found].all()
    saved = blocks(taken) - blocks(found)
    assert saved > 0 and BLOCK * saved > NODES[found & ~taken].sum()


@pytest.mark.parametrize("depth", [1, 5])
def test_what_is_filled_does_not_depend_on_the_names_of_the_directions(depth):
    random, lattice = np.random.default_rng(depth), [*LATTICE[:2], [*range(depth + 1)]]
    changed = 0
    for _ in range(6):
        taken, allowed = random.random((depth, 9, 12)) < 0.35, random.random((depth, 9, 12)) < 0.9
        allowed |= taken
        found = fill_tiles(lattice, taken, allowed)
        changed += (found != taken).any()
        for order in permutations(range(3)) if depth > 1 else [(0, 2, 1)]:
            ends = [lattice[2 - order[2 - d]] for d in range(3)]
            there = fill_tiles(ends, taken.transpose(order), allowed.transpose(order))
            assert (there == found.transpose(order)).all(), order
    assert changed > 3
