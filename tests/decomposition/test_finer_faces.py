"""Which nodes of the faces of a finer level belong to walls and joins, and where tiles of joined blocks begin."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.case.boundaries import NoSlipWall, SlipWall, SupersonicOutflow
from hiresx.decomposition import Patch
from hiresx.decomposition.finer_faces import finer_ranges
from hiresx.decomposition.join_tiles import origins
from hiresx.grid import Connection

NO_SLIP, SLIP = NoSlipWall(faces=("jmin",)), SlipWall(faces=("jmin",))
OUT = SupersonicOutflow(faces=("jmin",))


def patch(i, condition, k=(0, 1)):
    return Patch(0, "jmin", (i, (0, 1), k), condition, 0)


def join(i, k=(0, 1)):
    return Connection(0, "jmin", (i, (0, 1), k), 1)


def along_i(ranges):
    return [range_[0] for (range_,) in ranges]


@pytest.mark.parametrize("size", [41, 42])
def test_a_wall_between_joins_ends_with_its_last_node(size):
    """The nodes halfway to the joins belong to these; so do those behind the last node of the block, one step before a
    neighbour."""
    joins, walls, _ = finer_ranges([join((0, 6)), join((11, 21))], [patch((6, 11), NO_SLIP)], [], [(size, 20, 1)] * 2)
    assert along_i(joins) == [(0, 12), (21, size)] and along_i(walls) == [(12, 21)]


@pytest.mark.parametrize(("other", "wall"), [(SLIP, (12, 21)), (OUT, (12, 21)), (NO_SLIP, (12, 22))])
def test_a_no_slip_wall_ends_with_its_last_node_beside_other_conditions(other, wall):
    """Beside another no-slip wall, which may have another temperature, nodes halfway belong to the first one."""
    first, between, last = finer_ranges(
        [], [patch((0, 6), other), patch((6, 11), NO_SLIP), patch((11, 21), other)], [], [(41, 20, 1)] * 2
    )[1]
    assert along_i([between]) == [wall]
    assert along_i([first, last]) == [(0, 12), (wall[1], 41)]


def assert_each_node_is_held_once(wall, joins):
    held = np.zeros((21, 21), int)
    for (i0, i1), _, (k0, k1) in [*wall, *(range_ for some in joins for range_ in some)]:
        held[k0:k1, i0:i1] += 1
    assert (held == 1).all()


def test_a_wall_in_space_is_surrounded_by_the_join():
    """A square wall in the middle of a joined face: every node has one owner, and the wall is that between its corner
    nodes."""
    around = [join((0, 4), (0, 11)), join((7, 11), (0, 11)), join((4, 7), (0, 3)), join((4, 7), (8, 11))]
    joins, (wall,), _ = finer_ranges(around, [patch((4, 7), NO_SLIP, (3, 8))], [], [(21, 20, 21)] * 2)
    assert wall == [((8, 13), (0, 1), (6, 15))]
    assert_each_node_is_held_once(wall, joins)


def test_a_join_that_goes_round_a_corner_of_a_wall_is_several_ranges():
    """Of the cell at the corner one node is joined, so the middle of it is."""
    joins, walls, _ = finer_ranges(
        [join((6, 11), (0, 11)), join((0, 6), (5, 11))], [patch((0, 6), NO_SLIP, (0, 5))], [], [(21, 20, 21)] * 2
    )
    (wall,) = walls
    assert wall == [((0, 11), (0, 1), (0, 9))]
    assert_each_node_is_held_once(wall, joins)


def test_tiles_of_joined_blocks_begin_at_the_same_nodes():
    """Node 5 of block 1 is node 0 of block 0 in the sense of its index, and block 2 is joined to block 1 backwards."""
    blocks = [SimpleNamespace(active=(0, 1))] * 3
    turned = ((1, 0, 0), (0, -1, 0), (0, 0, 1))
    connections = [
        Connection(0, "imax", ((20, 21), (0, 10), (0, 1)), 1, offset=(-21, 5, 0)),
        Connection(1, "imin", ((0, 1), (5, 15), (0, 1)), 0, offset=(21, -5, 0)),
        Connection(1, "imax", ((20, 21), (0, 15), (0, 1)), 2, turned, (-21, 14, 0)),
        Connection(2, "imin", ((0, 1), (0, 15), (0, 1)), 1, turned, (21, 14, 0)),
    ]
    grid = SimpleNamespace(blocks=blocks, connections=connections)
    assert [found[:2] for found in origins(grid, 8)] == [[0, 0], [0, 5], [0, 0]]
