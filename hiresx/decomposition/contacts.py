"""Contacts between boxes of nodes: which boxes exchange ghost values, and how many face nodes touch. They are the edges
of the graph that is cut when blocks are distributed over ranks."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition
from hiresx.grid.blocks import FACES


class Boxes(NamedTuple):
    """n boxes of nodes. `whole` (n,): for each box, the number of the block that contains it. `ranges` (n, 3, 2): its
    half-open index ranges along i, j and k. Both are int64 arrays."""

    whole: np.ndarray
    ranges: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Numbers of nodes of the n boxes along i, j and k, int64 (n, 3)."""
        return self.ranges[:, :, 1] - self.ranges[:, :, 0]


class Contacts(NamedTuple):
    """Pairs of boxes, one of which receives ghost values from the other. All four arrays are int64 of shape (m,), with
    one entry for each pair and connection. `to`: the box that has the ghosts. `source`: the box that has the nodes from
    which they are copied; it may be the same box. `face`: the face of `to` behind which the ghosts lie, 0 to 5 as in
    FACES. `nodes`: the number of nodes on that face."""

    to: np.ndarray
    source: np.ndarray
    face: np.ndarray
    nodes: np.ndarray


def links_by_box(contacts: Contacts, count: int) -> list[list[tuple[int, int, int]]]:
    """Return, for each of `count` boxes of nodes, the contacts through which it receives ghost values, as tuples
    (number of the sending box, face of the receiving box from 0 to 5, number of face nodes)."""
    links: list[list[tuple[int, int, int]]] = [[] for _ in range(count)]
    for to, source, face, nodes in zip(*(column.tolist() for column in contacts), strict=True):
        links[to].append((source, face, nodes))
    return links


def boxes(parts: Sequence[Part]) -> Boxes:
    """Return the boxes of nodes of `parts` and the numbers of their blocks as arrays (`Boxes`), in the order of
    `parts`."""
    whole = np.array([part.whole for part in parts], dtype=np.int64)
    return Boxes(whole, np.array([part.box for part in parts], dtype=np.int64).reshape(-1, 3, 2))


class Neighbourhood:
    """A search for the contacts between the boxes of nodes into which the blocks of a decomposition are cut."""

    def __init__(self, decomposition: Decomposition):
        connections = decomposition.connections
        self._block = np.array([c.block for c in connections], dtype=np.int64)
        self._donor = np.array([c.donor for c in connections], dtype=np.int64)
        self._face = np.array([FACES.index(c.face) for c in connections], dtype=np.int64)
        self._matrix = np.array([c.matrix for c in connections], dtype=np.int64).reshape(-1, 3, 3)
        self._offset = np.array([c.offset for c in connections], dtype=np.int64).reshape(-1, 3)
        self._range = np.array([c.range for c in connections], dtype=np.int64).reshape(-1, 3, 2)
        # Only the first layer of ghosts is counted: all layers lie in one part.
        self._ghost = self._range.copy()
        every = np.arange(len(connections))
        self._ghost[every, self._face // 2] += np.where(self._face % 2, 1, -1)[:, None]

    def contacts(self, boxes: Boxes) -> Contacts:
        """Return the contacts between `boxes`, the boxes of nodes into which the blocks of the grid are cut: all pairs
        of boxes that exchange ghost values, at cuts and across block connections."""
        found = [*self._cuts(boxes), self._find_connected(boxes)]
        return Contacts(*(np.concatenate(columns) for columns in zip(*found, strict=True)))

    def _cuts(self, boxes: Boxes) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the contacts between boxes of one block, as the fields of `Contacts`."""
        lo, hi = boxes.ranges[:, :, 0], boxes.ranges[:, :, 1]
        planes = int(hi.max(initial=0)) + 1
        for d in range(3):
            below, above = _pairs(boxes.whole * planes + hi[:, d], boxes.whole * planes + lo[:, d])
            across = [e for e in range(3) if e != d]
            extent = np.minimum(hi[below], hi[above]) - np.maximum(lo[below], lo[above])
            touch = (extent[:, across] > 0).all(axis=1)
            below, above, nodes = below[touch], above[touch], extent[touch][:, across].prod(axis=1)
            yield Contacts(below, above, np.full_like(nodes, 2 * d + 1), nodes)
            yield Contacts(above, below, np.full_like(nodes, 2 * d), nodes)

    def _find_connected(self, boxes: Boxes) -> Contacts:
        """Return the contacts through the connections of the whole blocks."""
        c, to = _pairs(self._block, boxes.whole)
        own = _meet(boxes.ranges[to], self._range[c])
        kept = _nonempty(own)
        c, to, own = c[kept], to[kept], own[kept]
        d = self._face[c] // 2
        own[np.arange(len(c)), d] = self._ghost[c, d]
        wanted = self._image(c, own)

        every = np.arange(len(self._block))
        image = self._image(every, self._ghost)
        e, source = _pairs(self._donor, boxes.whole)
        kept = _nonempty(_meet(boxes.ranges[source], image[e]))
        e, source = e[kept], source[kept]

        first, second = _pairs(c, e)
        shared = _meet(wanted[first], boxes.ranges[source[second]])
        kept = _nonempty(shared)
        first, second, shared = first[kept], second[kept], shared[kept]
        nodes = (shared[:, :, 1] - shared[:, :, 0]).prod(axis=1)
        return Contacts(to[first], source[second], self._face[c[first]], nodes)

    def _image(self, c: np.ndarray, ranges: np.ndarray) -> np.ndarray:
        """Return the boxes of donor nodes that correspond to boxes (n, 3, 2) of ghost nodes of the connections `c`."""
        ends = np.stack([ranges[:, :, 0], ranges[:, :, 1] - 1], axis=2)
        ends = self._matrix[c] @ ends + self._offset[c][:, :, None]
        return np.stack([ends.min(axis=2), ends.max(axis=2) + 1], axis=2)


def _pairs(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all index pairs (m, n) with a[m] == b[n]."""
    order = np.argsort(b, kind="stable")
    first = np.searchsorted(b[order], a, "left")
    count = np.searchsorted(b[order], a, "right") - first
    m = np.repeat(np.arange(len(a)), count)
    n = np.arange(count.sum()) + np.repeat(first - (np.cumsum(count) - count), count)
    return m, order[n]


def _meet(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([np.maximum(a[:, :, 0], b[:, :, 0]), np.minimum(a[:, :, 1], b[:, :, 1])], axis=2)


def _nonempty(ranges: np.ndarray) -> np.ndarray:
    return np.all(ranges[:, :, 0] < ranges[:, :, 1], axis=1)
