"""Cuts a grid into other blocks and turns their indexes: a flow computed on them must have the same result."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case import Case
from hiresx.decomposition import Decomposition, Part, split
from hiresx.grid import Block, Grid
from hiresx.grid.blocks import MINIMUM_NODES, Regions, directions_along
from hiresx.grid.orientation import layout_of
from hiresx.grid.reindexing import Reindexing, reindex


def turns(size: tuple[int, int, int]) -> list[Reindexing]:
    """Return the right-handed permutations and reversals of the index directions of a block of `size` (ni, nj, nk): 24
    in three dimensions, 4 in two, 1 in one."""
    found = []
    for order, reverse in product(permutations(range(3)), product((False, True), repeat=3)):
        still = all(order[d] == d and not reverse[d] for d in range(3) if size[d] == 1)
        if still and round(np.linalg.det(np.eye(3)[list(order)])) == (-1) ** sum(reverse):
            found.append(Reindexing(triple(order), triple(reverse)))
    return found


@dataclass(frozen=True)
class TurnedCase:
    """A case whose blocks were divided and whose indexes were permuted or reversed. `case` on `grid` computes the same
    flow as the original case. `parts`: for each block of `grid` the box of the original block. `turns`: for each block
    the change from its original indexes to the new ones."""

    case: Case
    grid: Grid
    parts: tuple[Part, ...]
    turns: tuple[Reindexing, ...]

    def wholes(self, blocks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the arrays `blocks` of this case as arrays of the original case: joined to whole blocks, and with the
        original index directions. `blocks`: for each block of this case an array (..., nk, nj, ni). The results, one
        for each original block, have this form, too."""
        sizes = [np.max([[hi for _, hi in p.box] for p in self.parts if p.whole == w], axis=0) for w in self._wholes]
        found = [np.full((*blocks[0].shape[:-3], *reversed(size)), np.nan, blocks[0].dtype) for size in sizes]
        for part, turn, values in zip(self.parts, self.turns, blocks, strict=True):
            found[part.whole][(..., *part.slices)] = turn_back(values, turn)
        return found

    @property
    def _wholes(self) -> range:
        return range(1 + max(part.whole for part in self.parts))


def turn_back(values: np.ndarray, turn: Reindexing) -> np.ndarray:
    """Return `values` (..., nk, nj, ni) of a block with the original index directions. `turn`: the change from the
    original to the present index directions."""
    places = [turn.order.index(old) for old in range(3)]
    back = Reindexing(triple(places), triple(turn.reverse[place] for place in places))
    flat = [np.asarray(back.array(one)) for one in values.reshape(-1, *values.shape[-3:])]
    return np.stack(flat).reshape(*values.shape[:-3], *flat[0].shape)


def random_parts(
    whole: Decomposition, count: int, chance: np.random.Generator, barred: Collection[tuple[int, int, int]] = ()
) -> list[Part]:
    """Return the blocks of `whole` divided at random nodes into `count` boxes, or fewer if no box can be divided any
    more. `chance`: the random generator. `barred`: triples (block, direction, node) at which no box may begin: number
    of the block, direction 0, 1 or 2, and index."""
    parts = list(whole.parts)
    least = MINIMUM_NODES
    while len(parts) < count:
        open_cuts = [
            (n, d, places)
            for n, part in enumerate(parts)
            for d, (lo, hi) in enumerate(part.box)
            if (
                places := set(range(lo + least, hi - least + 1))
                - {at for w, e, at in barred if (w, e) == (part.whole, d)}
            )
        ]
        if not open_cuts:
            break
        n, d, places = open_cuts[chance.integers(len(open_cuts))]
        part = parts.pop(n)
        lo, hi = part.box[d]
        at = sorted(places)[chance.integers(len(places))]
        parts += [
            replace(part, box=triple(range_ if e == d else part.box[e] for e in range(3)))
            for range_ in ((lo, at), (at, hi))
        ]
    return parts


def nodes_beside_ends(whole: Decomposition) -> set[tuple[int, int, int]]:
    """Return triples (block number, direction 0, 1 or 2, node index) of the nodes at which a block of the grid `whole`
    must not be divided: those that are at most as many nodes as there are ghost layers away from the end of a boundary
    condition inside a face. This concerns faces that are also connected to a block with which they share no nodes."""
    found: set[tuple[int, int, int]] = set()
    near = range(-whole.stencil.halo, whole.stencil.halo + 1)
    offset = {(c.block, c.face) for c in whole.connections if layout_of(c, whole.blocks) == "offset"}
    for patch in whole.patches:
        if (patch.block, patch.face) in offset:
            for d in directions_along(patch.face):
                ends = {*patch.range[d]} - {0, whole.blocks[patch.block].size[d]}
                found |= {(patch.block, d, int(end) + m) for end in ends for m in near}
    return found


def turn_blocks(case: Case, whole: Decomposition, blocks: int, chance: np.random.Generator) -> TurnedCase:
    """Return `case` on the nodes of `whole`, divided at random into about `blocks` blocks, each with index directions
    that are permuted and reversed at random. Boundary conditions name regions, and periodic conditions become
    connections. `chance`: the random generator.

    If a wall continues from one block into the next, no division lies within the width of the ghost layers of its end.
    Otherwise the ghost nodes at that corner could be taken over either of two connections, and the result would differ
    from that of the undivided block (by 1e-7 in the planar jet with a cut one node from a lip). Divisions between ranks
    do not have this limit.
    """
    parts = random_parts(whole, blocks, chance, nodes_beside_ends(whole))
    cut = split(whole, parts)
    chosen = [turns(part.size)[chance.integers(len(turns(part.size)))] for part in parts]
    new = []
    for n, block in enumerate(cut.blocks):
        regions: Regions = {}
        for patch in cut.patches:
            if patch.block == n:
                name = f"patch.{patch.place}"
                regions[name] = (*regions.get(name, ()), (patch.face, patch.range))
        new.append(Block(f"b{n}", *triple(np.asarray(c) for c in block.coordinates), regions))
    grid = reindex(Grid(tuple(new), tuple(cut.connections)), chosen)
    dump = case.model_dump(mode="json")
    dump["boundary"] = [
        p.condition.model_dump(mode="json") | {"faces": "all", "range": f"patch.{n}", "block": None}
        for n, p in enumerate(whole.patches)
    ]
    for sponge in dump["sponge"]:
        if sponge["blocks"] is not None:
            names = [whole.blocks[part.whole].name for part in parts]
            sponge["blocks"] = [f"b{n}" for n, name in enumerate(names) if name in sponge["blocks"]]
    changed = Case.from_dict(dump, case.directory, case.name)
    return TurnedCase(changed, grid, tuple(parts), tuple(chosen))


def difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Return the largest difference between the conservative states (5, nk, nj, ni) of the blocks `found` and
    `expected`. The difference of each variable is divided by the larger of two numbers: the largest absolute value of
    this variable, and that of the density, in all blocks of `expected`. Return NaN if any value is NaN."""
    scale = np.max([np.abs(q).max(axis=(1, 2, 3)) for q in expected], axis=0)
    scale = np.maximum(scale, scale[0])[:, None, None, None]
    return float(np.max([(np.abs(a - b) / scale).max() for a, b in zip(found, expected, strict=True)]))
