"""A block cut into parts that are turned in index space, and what connects them, worked out from the cut alone."""

from itertools import permutations, product

import numpy as np

from hiresx.grid import Block

AXES = "ijk"


def turns(dimensions: int) -> list[np.ndarray]:
    """The signed permutations that keep right-handed blocks right-handed: 24 in 3-D, 4 in 2-D."""
    found = []
    for order in permutations(range(dimensions)):
        for signs in product((1, -1), repeat=dimensions):
            turn = np.eye(3, dtype=int)
            turn[:dimensions, :dimensions] = 0
            for row, (e, s) in enumerate(zip(order, signs, strict=True)):
                turn[row, e] = s
            if round(np.linalg.det(turn)) == 1:
                found.append(turn)
    return found


def cut(size, parts: int, random, least: int = 7) -> list[tuple[tuple[int, int], ...]]:
    """Boxes of nodes that cover a block of `size`, each node once: the largest is halved somewhere, so that a face may
    meet several."""
    boxes = [tuple((0, n) for n in size)]
    while len(boxes) < parts:
        possible = [(n, d) for n, box in enumerate(boxes) for d, (lo, hi) in enumerate(box) if hi - lo >= 2 * least + 1]
        if not possible:
            break
        n, d = possible[random.integers(len(possible))]
        (lo, hi), box = boxes[n][d], boxes.pop(n)
        at = int(random.integers(lo + least, hi - least + 1))
        boxes += [tuple(r if e == d else box[e] for e in range(3)) for r in ((lo, at), (at, hi))]
    return boxes


class Arrangement:
    """Parts of `whole`, cut at random into `count` boxes and turned; `shared`: a part has the first nodes of the next
    one too. `blocks`, and `tables`: a connectivity file's [[connection]] tables, one per pair of parts that touch."""

    def __init__(self, whole: Block, count: int, seed: int, shared: bool):
        random = np.random.default_rng(seed)
        self.whole, self.shared = whole, shared
        dimensions = len(whole.active)
        self.boxes = cut(whole.size, count, random)
        all_turns = turns(dimensions)
        self.turns = [all_turns[random.integers(len(all_turns))] for _ in self.boxes]
        # the nodes that a part holds: in the shared layout those of the next part's first layer as well
        self.held = [
            tuple((lo, hi + (shared and hi < n)) for (lo, hi), n in zip(box, whole.size, strict=True))
            for box in self.boxes
        ]
        self.blocks = [self._block(n) for n in range(len(self.boxes))]
        self.contacts: list = []  # (one part, the other, the nodes of the whole block that both have)
        self.tables = [
            table for a in range(len(self.boxes)) for b in range(len(self.boxes)) for table in self._between(a, b)
        ]

    def index(self, n: int, node: np.ndarray) -> np.ndarray:
        """Index triples (3, ...) of part `n` of nodes (3, ...) of the whole block."""
        turn, held = self.turns[n], np.array(self.held[n])
        corners = turn @ np.stack([held[:, 0], held[:, 1] - 1], axis=1)
        return np.tensordot(turn, node, axes=1) - corners.min(axis=1).reshape(3, *[1] * (node.ndim - 1))

    def _block(self, n: int) -> Block:
        nodes = np.stack(np.meshgrid(*(np.arange(*r) for r in self.held[n]), indexing="ij"))
        place = self.index(n, nodes)
        size = place.reshape(3, -1).max(axis=1) + 1
        arrays = np.zeros((3, *size[::-1]))
        i, j, k = nodes
        arrays[:, place[2], place[1], place[0]] = [getattr(self.whole, c)[k, j, i] for c in "xyz"]
        return Block(f"part-{n}", *arrays)

    def _between(self, a: int, b: int):
        """The connection over the upper side of part `a` in each direction to part `b`, if they touch there."""
        for d in self.whole.active:
            if self.boxes[a][d][1] != self.boxes[b][d][0]:
                continue
            common = [(max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(self.held[a], self.held[b], strict=True)]
            common[d] = (self.held[a][d][1] - 1, self.held[a][d][1])
            donor = list(common)
            donor[d] = (self.held[b][d][0], self.held[b][d][0] + 1)
            touch = [hi - lo for e, (lo, hi) in enumerate(common) if e != d and e in self.whole.active]
            if any(n < 1 + self.shared for n in touch):
                continue
            self.contacts.append((a, b, common))
            face, range_ = self._on_face(a, common, d, 1)
            donor_face, donor_range = self._on_face(b, donor, d, -1)
            matrix = self.turns[b] @ self.turns[a].T
            yield {
                "block": f"part-{a}",
                "face": face,
                "range": range_,
                "donor": f"part-{b}",
                "donor_face": donor_face,
                "donor_range": donor_range,
                "transform": [int(np.argmax(np.abs(c)) + 1) * int(c.sum()) for c in matrix.T],
                "layout": "shared" if self.shared else "offset",
            }

    def _on_face(self, n: int, box, d: int, sense: int):
        """Face and range of part `n` for a box of nodes of the whole block on its upper (1) or lower (-1) side in d."""
        ends = self.index(n, np.array([[lo, hi - 1] for lo, hi in box]))
        e = int(np.flatnonzero(self.turns[n][:, d])[0])
        face = AXES[e] + ("max" if self.turns[n][e, d] * sense > 0 else "min")
        active = len(self.whole.active)
        return face, {AXES[x]: [int(ends[x].min()), int(ends[x].max()) + 1] for x in range(active) if x != e}
