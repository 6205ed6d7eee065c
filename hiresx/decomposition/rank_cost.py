"""The estimated cost of the boxes of nodes that a rank computes. The partition with the least cost is chosen.

The unit is the time for one node of a large part. LINE and PART were measured with the viscous right-hand side in FP64
on one core (109 ns per node, blocks of 8 to 256 nodes a side). A line of n nodes costs n + 5 nodes along i, and n + 1
along j and k; a block of 8^3 nodes costs 60 us more.

EXCHANGE and CONTACT are estimates. For each face node 216 bytes are sent in a stage. If they are copied within a
process, they cost 0.4 to 0.8 nodes, and each copy 4 us more. Between GPUs that need 1 ns per node they cost 1 node at
200 GB/s and 9 nodes at 25 GB/s, and about 5 nodes of a CPU core that has a sixtieth of such a link. Other values of
EXCHANGE within these bounds only change the choice between nearly equal shapes."""

from collections.abc import Sequence

import numpy as np

from hiresx.decomposition.contacts import Boxes, Contacts

# Cost of a line along i, j, k besides its nodes, as a number of nodes: partly filled vectors, interfaces at the ends.
LINE = (5.0, 1.0, 1.0)
# Cost of each face node whose ghosts come from another rank, as a number of nodes.
EXCHANGE = 4.0
# Cost of each contact with another rank, as a number of face nodes: 15 us to start packing, message and unpacking.
CONTACT = 35
# Cost of each part besides its nodes, as a number of nodes: launches of kernels and copies.
PART = 500
# The number of nodes of a rank should not exceed its fair share by more than this factor; each node beyond costs STEEP
# times as much.
IMBALANCE = 0.04
STEEP = 20.0
# Partitions whose most expensive ranks differ by no more than this fraction count as equally good; then the sum over
# all ranks decides.
SAME = 0.02


def work(size: Sequence[int]) -> float:
    """Return the estimated time to compute a box of `size` (ni, nj, nk) nodes, without communication, in units of the
    time for one node of a large box."""
    ni, nj, nk = size
    points = ni * nj * nk
    return PART + points + sum(line * (points // n) for line, n in zip(LINE, size, strict=True) if n > 1)


def excess(points: float, share: float) -> float:
    """Return the penalty, as a number of nodes, for a rank that computes `points` nodes instead of its fair share of
    `share` nodes. It is 0 up to an excess of 4 %."""
    return STEEP * max(0.0, points - (1 + IMBALANCE) * share)


def capacity(size: Sequence[int], least: int) -> int:
    """Return the largest number of boxes into which a box of `size` (ni, nj, nk) nodes can be cut, if each must have
    `least` nodes or more in every direction with more than one node."""
    count = 1
    for n in size:
        count *= 1 if n == 1 else n // least
    return count


def costs(boxes: Boxes, contacts: Contacts, rank: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Return the estimated time of a stage on every rank, (ranks,), in units of the time for one node: computation and
    the exchange of ghosts. `boxes`: the boxes of nodes into which the grid is divided. `contacts`: the pairs of boxes
    that exchange ghosts. `rank` (n,): the rank of each box. `speed` (ranks,): relative speeds of the ranks, with the
    mean 1."""
    ranks = len(speed)
    sizes = boxes.sizes
    points = sizes.prod(axis=1)
    lines = sum(line * np.where(n > 1, points // n, 0) for line, n in zip(LINE, sizes.T, strict=True))
    ideal = points.sum() / ranks
    held = np.bincount(rank, points, ranks)
    over = STEEP * np.maximum(0, held - (1 + IMBALANCE) * ideal * speed)
    load = np.bincount(rank, PART + points + lines, ranks) + over
    remote = rank[contacts.to] != rank[contacts.source]
    nodes = contacts.nodes[remote] + CONTACT
    received = np.bincount(rank[contacts.to[remote]], nodes, ranks)
    sent = np.bincount(rank[contacts.source[remote]], nodes, ranks)
    return load / speed + EXCHANGE * (received + sent) / 2
