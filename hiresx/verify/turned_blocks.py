"""Cuts a grid into other blocks and turns their indexes: a flow computed on them must have the same result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case import Case
from hiresx.decomposition import Decomposition, Part, split
from hiresx.grid import Block, Connection, Grid
from hiresx.grid.blocks import FACES, MINIMUM_NODES, Range, Regions, direction, side


@dataclass(frozen=True)
class Turn:
    """Node n of a block of `size` becomes node `matrix` n + `offset`, where no index is negative."""

    matrix: tuple[tuple[int, int, int], ...]
    size: tuple[int, int, int]

    @property
    def m(self) -> np.ndarray:
        return np.array(self.matrix)

    @property
    def offset(self) -> np.ndarray:
        return np.where(self.m < 0, np.array(self.size) - 1, 0).sum(axis=1)

    def array(self, values: np.ndarray) -> np.ndarray:
        """`values` (..., nk, nj, ni) in the new indexes."""
        return _permute(values, self.m)

    def back(self, values: np.ndarray) -> np.ndarray:
        """`values` (..., nk, nj, ni) in the new indexes, in the old ones."""
        return _permute(values, self.m.T)

    def face(self, face: str) -> str:
        d = direction(face)
        e = int(np.flatnonzero(self.m[:, d])[0])
        return FACES[2 * e + (side(face) * self.m[e, d] > 0)]

    def box(self, box: Range) -> Range:
        ends = self.m @ np.array([[lo, hi - 1] for lo, hi in box]) + self.offset[:, None]
        return triple((int(a.min()), int(a.max()) + 1) for a in ends)


def _permute(values: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Axes k, j, i of `values` permuted and reversed as the signed permutation `m` of i, j, k says."""
    n = values.ndim
    source = [int(np.flatnonzero(m[e])[0]) for e in (2, 1, 0)]
    turned = values.transpose(*range(n - 3), *(n - 1 - d for d in source))
    for position, e in enumerate((2, 1, 0)):
        if m[e].sum() < 0:
            turned = np.flip(turned, n - 3 + position)
    return np.ascontiguousarray(turned)


def turns(size: tuple[int, int, int]) -> list[Turn]:
    """The right-handed ways to number the nodes of a block of `size`: 24 in three dimensions, 4 in two, 1 in one."""
    found = []
    active = [n > 1 for n in size]
    for order, signs in product(permutations(range(3)), product((1, -1), repeat=3)):
        m = np.zeros((3, 3), dtype=int)
        for e, (d, s) in enumerate(zip(order, signs, strict=True)):
            m[e, d] = s
        still = all(m[d, d] == 1 for d in range(3) if not active[d])
        if still and round(np.linalg.det(m)) == 1:
            found.append(Turn(tuple(map(tuple, m.tolist())), size))
    return found


@dataclass(frozen=True)
class TurnedCase:
    """`case` on `grid` computes what another case does on the blocks of which these are `parts`, each turned."""

    case: Case
    grid: Grid
    parts: tuple[Part, ...]
    turns: tuple[Turn, ...]

    def wholes(self, blocks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Arrays (..., nk, nj, ni) of the blocks of `grid`, put together to those of the blocks before."""
        sizes = [np.max([[hi for _, hi in p.box] for p in self.parts if p.whole == w], axis=0) for w in self._wholes]
        found = [np.full((*blocks[0].shape[:-3], *reversed(size)), np.nan, blocks[0].dtype) for size in sizes]
        for part, turn, values in zip(self.parts, self.turns, blocks, strict=True):
            found[part.whole][(..., *part.slices)] = turn.back(values)
        return found

    @property
    def _wholes(self) -> range:
        return range(1 + max(part.whole for part in self.parts))


def random_parts(whole: Decomposition, count: int, chance: np.random.Generator) -> list[Part]:
    """The blocks of `whole` cut at random places into `count` parts; fewer when no part can be cut any more."""
    parts = list(whole.parts)
    while len(parts) < count:
        open_cuts = [(n, d) for n, part in enumerate(parts) for d in range(3) if part.size[d] >= 2 * MINIMUM_NODES]
        if not open_cuts:
            break
        n, d = open_cuts[chance.integers(len(open_cuts))]
        part = parts.pop(n)
        lo, hi = part.box[d]
        at = int(chance.integers(lo + MINIMUM_NODES, hi - MINIMUM_NODES + 1))
        parts += [
            replace(part, box=triple(range_ if e == d else part.box[e] for e in range(3)))
            for range_ in ((lo, at), (at, hi))
        ]
    return parts


def turn_blocks(case: Case, whole: Decomposition, blocks: int, chance: np.random.Generator) -> TurnedCase:
    """`case` on the nodes of `whole`, cut at random into about `blocks` blocks, each turned at random, with its
    boundary conditions, periodic ones as connections, named by region."""
    parts = random_parts(whole, blocks, chance)
    cut = split(whole, parts)
    chosen = [turns(part.size)[chance.integers(len(turns(part.size)))] for part in parts]
    new = []
    for n, (block, turn) in enumerate(zip(cut.blocks, chosen, strict=True)):
        regions: Regions = {}
        for patch in cut.patches:
            if patch.block == n:
                name = f"patch.{patch.place}"
                regions[name] = (*regions.get(name, ()), (turn.face(patch.face), turn.box(patch.range)))
        new.append(Block(f"b{n}", *triple(turn.array(np.asarray(c)) for c in (block.x, block.y, block.z)), regions))
    connections = [_turn_connection(c, chosen[c.block], chosen[c.donor]) for c in cut.connections]
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
    return TurnedCase(changed, Grid(tuple(new), tuple(connections)), tuple(parts), tuple(chosen))


def difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Largest difference of conservative states (5, nk, nj, ni), relative to the largest value of the variable
    or of the density. A NaN stays one."""
    scale = np.max([np.abs(q).max(axis=(1, 2, 3)) for q in expected], axis=0)
    scale = np.maximum(scale, scale[0])[:, None, None, None]
    return float(np.max([(np.abs(a - b) / scale).max() for a, b in zip(found, expected, strict=True)]))


def _turn_connection(c: Connection, own: Turn, donor: Turn) -> Connection:
    matrix = donor.m @ np.array(c.matrix) @ own.m.T
    offset = donor.m @ np.array(c.offset) + donor.offset - matrix @ own.offset
    return replace(
        c, face=own.face(c.face), range=own.box(c.range), matrix=tuple(map(tuple, matrix.tolist())),
        offset=triple(int(o) for o in offset),
    )  # fmt: skip
