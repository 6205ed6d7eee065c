"""What lies across a ring of nodes around a pole, stretch by stretch."""

import itertools

import numpy as np
import pytest

from hiresx.grid.motions import Motion
from hiresx.grid.rings import Ring, RingBlock, _stretches


def ring(ends, half=False) -> Ring:
    """Of blocks that share their end nodes."""
    members = [
        RingBlock(n, "jmin", np.eye(3, dtype=int), np.zeros(3, dtype=int), first, last)
        for n, (first, last) in enumerate(itertools.pairwise(ends))
    ]
    nodes = ends[-1] - ends[0]
    return Ring(tuple(members), 1, 0, 2, 0, nodes, Motion() if half else None)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("ends", [(0, 24), (0, 11, 22, 24), (-3, 9, 10, 21), (-5, 2, 6, 15, 19), (4, 10, 16, 22, 28)])
def test_each_node_lies_opposite_the_one_half_a_ring_on(ends, half):
    """In the block that it begins, of two that hold it; of a half model opposite its mirror image. Stretches are as
    long as they can be, and cover each node of a block once."""
    made = ring(ends, half)
    for member in made.members:
        found = list(_stretches(made, member))
        nodes = [g for first, last, _ in found for g in range(first, last + 1)]
        assert nodes == list(range(member.first, member.last + 1))
        for first, last, (other, turn, shift) in found:
            for g in range(first, last + 1):
                at = turn * g + shift
                assert at == ends[0] + ends[-1] - g if half else (at - g) % made.nodes == made.nodes // 2
                assert other.first <= at <= other.last
                begins = [m for m in made.members if m.first == (at if half else ends[0] + (at - ends[0]) % made.nodes)]
                assert at < other.last or not begins
        assert all(a[2] != b[2] for a, b in itertools.pairwise(found))
