"""Arrays on a device of blocks of one solver, from which the next solver copies at nodes that its blocks have, too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.levels import Tile
from hiresx.decomposition.refinement import joined_boxes
from hiresx.device.interface import Backend
from hiresx.device.state import BlockState
from hiresx.grid.blocks import Range, common_boxes, shift_range, slices, whole_box
from hiresx.grid.cutting import within


@dataclass(frozen=True, eq=False)
class HeldBlock:
    """Arrays of a block with the nodes `tile`, a box of nodes of a level of refinement, and with `halo` ghost layers
    along i, j, k, as in a BlockState: the state `q`, and the `areas` and the `jacobian` of the metrics, which are None
    if they are not copied."""

    tile: Tile
    halo: tuple[int, int, int]
    q: Any
    areas: tuple[Any, ...] | None
    jacobian: Any

    @classmethod
    def of(cls, state: BlockState, tile: Tile, metrics: bool) -> "HeldBlock":
        """Return the arrays of the block `state`, without its metrics if `metrics` is false. `tile`: the nodes of the
        block, a box of nodes of its level of grid refinement."""
        return cls(tile, state.halo, state.q, *((state.areas, state.jacobian) if metrics else (None, None)))

    def at(self, array: Any, box: Range) -> Any:
        """Return a view [..., k, j, i] of `array`, one of the arrays of this block, at the nodes in the half-open index
        ranges `box` (i, j, k). The indexes are those of the block's level of grid refinement."""
        (hi, hj, hk), ((i, _), (j, _), (k, _)) = self.halo, self.tile.box
        return array[(..., *slices(shift_range(box, (hi - i, hj - j, hk - k))))]


def shared_nodes(held: Sequence[HeldBlock], tiles: Sequence[Tile]) -> list[list[tuple[HeldBlock, Range]]]:
    """Return, for each of `tiles` (boxes of nodes of a level), the blocks among `held` that have metrics and share
    nodes with it. Each block comes with the half-open index ranges (i, j, k) of the shared nodes on the level."""
    found: list[list[tuple[HeldBlock, Range]]] = [[] for _ in tiles]
    for key in {(tile.level, tile.base) for tile in tiles}:
        those = [n for n, tile in enumerate(tiles) if (tile.level, tile.base) == key]
        there = [one for one in held if (one.tile.level, one.tile.base) == key and one.areas is not None]
        for n, m, shared in common_boxes([tiles[n].box for n in those], [one.tile.box for one in there]):
            found[those[n]].append((there[m], shared))
    return found


def copy_metrics(
    backend: Backend, held: Iterable[tuple[HeldBlock, Range]], state: BlockState, tile: Tile
) -> list[Range]:
    """Copy area vectors and Jacobian to the block `state`, whose nodes are `tile` of a level, from blocks that have
    some of these nodes. `held`: these blocks, each with the half-open index ranges of the common nodes on the level.
    Area vectors are copied with the ghost layers behind these nodes. The copied values equal those that would be
    computed, since they depend only on the coordinates of the level. Return boxes of the nodes that were not copied, in
    indexes that count from the first node of `state`."""
    to = HeldBlock.of(state, tile, True)
    copied = []
    for one, shared in held:
        assert one.areas is not None
        copied.append(within(tile.box, shared))
        for d in state.active:
            box = with_ghosts(shared, tile.box, d, state.halo[d])
            backend.copy(to.at(state.areas[d], box), one.at(one.areas[d], box))
        backend.copy(to.at(state.jacobian, shared), one.at(one.jacobian, shared))
    return _others(whole_box(state.size), copied)


def with_ghosts(box: Range, whole: Range, d: int, halo: int) -> Range:
    """Return `box`, half-open index ranges (i, j, k), extended along direction `d` by the `halo` ghost layers, at each
    end that is also an end of `whole`."""
    (lo, hi), (first, last) = box[d], whole[d]
    ends = lo - halo * (lo == first), hi + halo * (hi == last)
    return triple(ends if e == d else own for e, own in enumerate(box))


def _others(whole: Range, boxes: Sequence[Range]) -> list[Range]:
    """Return boxes of the nodes of `whole` that are in none of `boxes`."""
    lattice = [sorted({*ends, *(n for box in boxes for n in box[d])}) for d, ends in enumerate(whole)]
    free = np.ones([len(line) - 1 for line in reversed(lattice)], bool)
    for box in boxes:
        at = [slice(line.index(lo), line.index(hi)) for line, (lo, hi) in zip(lattice, box, strict=True)]
        free[tuple(reversed(at))] = False
    return list(joined_boxes(lattice, free))
