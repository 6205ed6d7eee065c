"""Nodes that continue the index space of a block behind its faces and edges."""

from hiresx.decomposition.nodes_behind import CLOSED, divided_by_stencils, nodes_behind
from hiresx.grid import Connection
from hiresx.grid.connections import IDENTITY

SIZE = (12, 12, 1)
# Index maps of the last connection around an edge in which three blocks meet, in both directions.
TURNED = ((0, 1, 0), (-1, 0, 0), (0, 0, 1))
BACK = ((0, -1, 0), (1, 0, 0), (0, 0, 1))
IMAX, JMAX, JMIN = ((11, 12), (0, 12), (0, 1)), ((0, 12), (11, 12), (0, 1)), ((0, 12), (0, 1), (0, 1))
IMIN = ((0, 1), (0, 12), (0, 1))


def connections(third):
    """Block 1 lies behind imax of block 0, block 2 behind its jmax. `third`: those between blocks 1 and 2, or 3."""
    of_blocks = [
        Connection(0, "imax", IMAX, 1, IDENTITY, (-12, 0, 0)),
        Connection(1, "imin", IMIN, 0, IDENTITY, (12, 0, 0)),
        Connection(0, "jmax", JMAX, 2, IDENTITY, (0, -12, 0)),
        Connection(2, "jmin", JMIN, 0, IDENTITY, (0, 12, 0)),
        *third,
    ]
    return {b: [c for c in of_blocks if c.block == b] for b in range(4)}


def test_nodes_behind_an_edge_of_four_blocks_are_those_of_the_fourth():
    third = [
        Connection(1, "jmax", JMAX, 3, IDENTITY, (0, -12, 0)),
        Connection(2, "imax", IMAX, 3, IDENTITY, (-12, 0, 0)),
    ]
    found = nodes_behind(0, [SIZE] * 4, connections(third), 3)
    assert {n.block: n.box for n in found} == {
        1: ((12, 15), (0, 12), (0, 1)), 2: ((0, 12), (12, 15), (0, 1)), 3: ((12, 15), (12, 15), (0, 1)),
    }  # fmt: skip
    boxes = [n.box for n in found]
    # The stencils of all nodes of the last cells cross both ends.
    assert [*divided_by_stencils(((20, 24), (20, 24), (0, 1)), SIZE, boxes, 3)] == [
        (((20, 24), (20, 24), (0, 1)), ((False, True), (False, True), (False, False)))
    ]


def test_there_are_no_nodes_behind_an_edge_in_which_three_blocks_meet():
    third = [Connection(1, "jmax", JMAX, 2, BACK, (23, 0, 0)), Connection(2, "imax", IMAX, 1, TURNED, (0, 23, 0))]
    found = nodes_behind(0, [SIZE] * 3, connections(third), 3)
    assert {n.block: n.box for n in found} == {1: ((12, 15), (0, 12), (0, 1)), 2: ((0, 12), (12, 15), (0, 1))}
    boxes = [n.box for n in found]
    ends = dict(divided_by_stencils(((10, 24), (10, 24), (0, 1)), SIZE, boxes, 3))
    assert ends == {
        ((10, 18), (10, 18), (0, 1)): CLOSED,
        ((18, 24), (10, 18), (0, 1)): ((False, True), (False, False), (False, False)),
        ((10, 18), (18, 24), (0, 1)): ((False, False), (False, True), (False, False)),
        ((18, 24), (18, 24), (0, 1)): CLOSED,
    }
