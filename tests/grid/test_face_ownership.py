"""Parts of a face that share nodes: the first owns them, and no two may share more than a line."""

import numpy as np
import pytest

from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.face_ownership import FacePart, assign_nodes

X, Y, Z = np.meshgrid(np.arange(7.0), np.arange(11.0), np.arange(9.0), indexing="ij")
BLOCK = Block("box", np.ascontiguousarray(Z.T), np.ascontiguousarray(Y.T), np.ascontiguousarray(X.T))


def part(owner: str, low: int, high: int) -> FacePart:
    """All nodes of the face imin with j from `low` to `high` - 1."""
    return FacePart(0, "imin", ((0, 1), (low, high), (0, BLOCK.size[2])), owner)


def owned_rows(found: list) -> list:
    return [[range_[1] for range_ in ranges] for ranges in found]


def test_a_line_that_two_parts_share_belongs_to_the_first():
    found = assign_nodes([BLOCK], [part("a", 0, 5), part("b", 4, 8)])
    assert owned_rows(found) == [[(0, 5)], [(5, 8)]]
    assert owned_rows(assign_nodes([BLOCK], [part("b", 4, 8)], owned=[part("a", 0, 5)])) == [[(5, 8)]]


def test_more_than_a_line_is_refused_whoever_shares_it_too():
    parts = [part("a", 0, 5), part("b", 4, 8), part("c", 3, 5)]
    with pytest.raises(HiresxError, match=r"face imin: c and a overlap from node \(i, j, k\) = \(0, 3, 0\) on"):
        assign_nodes([BLOCK], parts)
    assert owned_rows(assign_nodes([BLOCK], parts, strict=False)) == [[(0, 5)], [(5, 8)], []]
