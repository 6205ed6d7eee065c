"""Boxes that graph growing cuts: by the shares of the ranks that they go to."""

from math import prod

import numpy as np
import pytest

from hiresx.decomposition import graph_growing
from hiresx.decomposition.contacts import Boxes, Contacts
from hiresx.decomposition.graph_growing import GraphGrowing
from hiresx.decomposition.sections import Sections


class Apart:
    """Blocks that touch nowhere."""

    def contacts(self, boxes):
        return Contacts(*np.zeros((4, 0), dtype=int))


def growing(size, speed):
    boxes = Boxes(np.array([0]), np.array([[(0, n) for n in size]]))
    return GraphGrowing(Apart(), boxes, speed, 4)


@pytest.mark.parametrize("shares", [(1.0, 3.0), (4.0, 1.0), (200.0, 100.0, 500.0), (1.0, 1.0, 1.0, 5.0)])
def test_a_box_is_cut_by_the_shares(shares, monkeypatch):
    """Sections are told speeds of mean 1, and what a rank of that speed is due."""
    size, told = (80, 6, 5), []
    monkeypatch.setattr(graph_growing, "Sections", lambda *given: told.append(given) or Sections(*given))
    pieces = growing(size, [1.0])._cut(0, shares)
    points = np.array([prod(hi - lo for lo, hi in piece) for piece in pieces])
    wanted = np.array(shares) / sum(shares) * prod(size)
    assert len(pieces) == len(shares) and points.sum() == prod(size)
    assert np.abs(points - wanted).max() <= 30  # a layer of nodes
    ((speed, due, least),) = told
    assert np.mean(speed) == pytest.approx(1) and least == 4
    np.testing.assert_allclose(np.array(speed) * due, wanted, rtol=1e-12)
