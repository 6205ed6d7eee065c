"""Pieces of blocks cover each of their nodes once, or are refused."""

import numpy as np
import pytest

from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.cutting import check_cover

X, Y, Z = (axes.transpose() for axes in np.meshgrid(range(9), range(8), range(7), indexing="ij"))
BLOCKS = (Block("one", X, Y, Z), Block("two", X, Y, Z))
WHOLE = ((0, 9), (0, 8), (0, 7))
LEFT, RIGHT = ((0, 4), (0, 8), (0, 7)), ((4, 9), (0, 8), (0, 7))


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, WHOLE), (1, WHOLE)],
        [(1, RIGHT), (0, WHOLE), (1, LEFT)],
        [(0, LEFT), (0, ((4, 9), (0, 3), (0, 7))), (0, ((4, 9), (3, 8), (0, 7))), (1, WHOLE)],
    ],
)
def test_what_covers(pieces):
    check_cover(BLOCKS, pieces)


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, LEFT), (0, RIGHT)],  # nothing of the second
        [(0, LEFT), (1, WHOLE)],
        [(0, LEFT), (0, ((5, 9), (0, 8), (0, 7))), (1, WHOLE)],
        [(0, WHOLE), (0, WHOLE), (1, WHOLE)],
        # as many nodes as there are, but some twice and others not at all
        [(0, LEFT), (0, ((3, 8), (0, 8), (0, 7))), (1, WHOLE)],
        [(0, ((1, 10), (0, 8), (0, 7))), (1, WHOLE)],
        [(0, ((-1, 8), (0, 8), (0, 7))), (1, WHOLE)],
        [(0, ((0, 9), (0, 8), (-1, 6))), (1, WHOLE)],
        [(0, ((0, 9), (1, 9), (0, 7))), (1, WHOLE)],
    ],
)
def test_what_does_not(pieces):
    with pytest.raises(HiresxError, match=r"do not cover block '(one|two)' of \(9, 8, 7\) nodes once"):
        check_cover(BLOCKS, pieces)
