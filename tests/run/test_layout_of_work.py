"""Who does which nodes, and where in a message they lie: worked out in this process for all ranks, so that a mistake
shows without MPI, in a moment and every time."""

from itertools import product

import numpy as np
import pytest

from hiresx.case import load
from hiresx.decomposition import decompose, split
from hiresx.decomposition.halo_copies import halo_lists
from hiresx.decomposition.partition import partition
from hiresx.equations.stencil import DIFFERENCE_REACH as REACH
from hiresx.exchange.buffer_layout import BufferLayout
from hiresx.exchange.halo_layout import HaloLayout
from hiresx.grid import build
from hiresx.grid.blocks import FACES, direction, side
from hiresx.rhs.viscous_plan import inner_box, shells
from hiresx.verify.turned_blocks import turn_blocks

SIZES = [(9, 11, 13), (8, 7, 1), (20, 1, 1)]


def remotes(size):
    faces = [face for face in FACES if size[direction(face)] > 1]
    return [frozenset(f for f, taken in zip(faces, chosen, strict=True) if taken)
            for chosen in product((False, True), repeat=len(faces))]  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_inner_box_and_shells_cover_the_block_once(size):
    for remote in remotes(size):
        inner = inner_box(size, remote)
        done = np.zeros(size, int)
        for box in (inner, *shells(size, inner)):
            done[tuple(slice(*ends) for ends in box)] += 1
        assert (done == 1).all(), remote


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_what_needs_a_late_ghost_is_not_in_the_inner_box(size):
    """All else is: a node further from a late face than the stencil reaches."""
    for remote in remotes(size):
        late = np.zeros(size, bool)
        for face in remote:
            place = [slice(None)] * 3
            place[direction(face)] = slice(0, REACH) if side(face) < 0 else slice(-REACH, None)
            late[tuple(place)] = True
        inside = np.zeros(size, bool)
        inside[tuple(slice(*ends) for ends in inner_box(size, remote))] = True
        assert (inside == ~late).all(), remote


@pytest.fixture(scope="module")
def layouts():
    """Of four ranks that hold a box of six turned blocks, cut among them."""
    case = load("taylor-green", overrides=["grid.n=[24,24,24]"])
    new = turn_blocks(case, decompose(case, build(case.grid, case.directory)), 6, np.random.default_rng(4))
    whole = decompose(new.case, new.grid)
    cut = split(whole, partition(whole, 4))
    owners = [part.rank for part in cut.parts]
    made = []
    for rank in range(4):
        places = {n: place for place, n in enumerate(n for n, owner in enumerate(owners) if owner == rank)}
        made.append(HaloLayout(halo_lists(cut, mine=places), places, owners))
    return made


def test_every_point_of_a_message_is_used_once(layouts):
    for layout in layouts:
        packed = np.concatenate([link.to for link in layout.outgoing])
        assert np.array_equal(np.sort(packed), np.arange(layout.sent)) and layout.sent > 0
        ends = [0, 0]
        for peer in layout.peers:
            assert (peer.out[0], peer.into[0]) == tuple(ends)
            ends = [peer.out[1], peer.into[1]]
            unpacked = np.concatenate([link.source for link in peer.links])
            assert np.array_equal(np.sort(unpacked), np.arange(peer.into[1] - peer.into[0]))
        assert ends == [layout.sent, layout.received]


def test_what_one_rank_packs_another_unpacks(layouts):
    """Node for node: the lists at both ends of a message are the same ones, in the same order."""
    for rank, layout in enumerate(layouts):
        for peer in layout.peers:
            other = next(p for p in layouts[peer.rank].peers if p.rank == rank)
            assert peer.out[1] - peer.out[0] == other.into[1] - other.into[0]
            sent = [
                (len(link.to), link.direction, link.donor_direction, link.sign)
                for link in layout.outgoing
                if peer.out[0] <= link.to[0] < peer.out[1]
            ]
            read = [(len(link.to), link.direction, link.donor_direction, link.sign) for link in other.links]
            assert sent == read


@pytest.mark.parametrize("points", [1, 7, 100])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_buffers_do_not_overlap(points, dtype):
    division = BufferLayout(dtype, (5, 4))
    memory = np.zeros(division.size(points), np.uint8)
    buffers = [buffer for turns in division.buffers(memory, points) for buffer in turns]
    assert [len(buffer) for buffer in buffers] == [5 * points, 5 * points, 4 * points, 4 * points]
    for n, buffer in enumerate(buffers):
        buffer[:] = n + 1
    for n, buffer in enumerate(buffers):
        assert (buffer == n + 1).all()
    first, last = points // 3, points
    found = division.messages({3: memory}, {3: points}, {3: (first, last)})
    for n, (width, turn) in enumerate(product((5, 4), (0, 1))):
        message = found[(5, 4).index(width)][turn][3]
        assert len(message) == width * (last - first) and (message == n + 1).all()
