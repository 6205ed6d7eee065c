"""Nodes and weights with which each part of the grid contributes to the interpolation of the flow at mirror images
(`hiresx.decomposition.mirror_points`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.decomposition.halo_copies import flat_index
from hiresx.decomposition.mirror_points import MirrorSources, with_images
from hiresx.decomposition.patched_donors import Rows, linear, share
from hiresx.decomposition.patches import Decomposition
from hiresx.grid.blended import lagrange_blended
from hiresx.grid.blocks import direction, side
from hiresx.grid.patched import WIDTH


def rows(whole: Decomposition, cut: Decomposition, found: Sequence[MirrorSources]) -> Iterator[Rows]:
    """Yield the nodes and weights from which the flow is interpolated for ghosts behind walls, one or more `Rows` for
    each part of the grid in turn. `whole`: the blocks of the grid. `cut`: the blocks after their division into parts
    for the ranks. `found`: for each wall the ghosts, with the positions at which the flow is interpolated for them.
    `Rows.ghost` contains numbers of these positions, which are counted through all entries of `found`."""
    donor, xi, base, blend, turn = (
        np.concatenate([getattr(f, name) for f in found]) for name in ("donor", "xi", "base", "share", "turn")
    )
    whole = with_images(whole)
    weights = np.stack([lagrange_blended(xi - base, blend)[0], linear(xi, base)])
    given: dict[int, list[_SourceNodes]] = {}
    for b in np.unique(donor):
        at = np.flatnonzero(donor == b)
        one = weights[:, at]
        for d, n in enumerate(whole.blocks[b].size):
            if n == 1:
                one[:, :, d] = np.eye(WIDTH)[0]
        for window in _spread(whole, _SourceNodes(int(b), at, base[at], one, np.eye(3))):
            given.setdefault(window.block, []).append(window)
    for p, part in enumerate(cut.parts):
        for window in given.get(part.whole, ()):
            made = share(window.base, window.weights, whole.blocks[part.whole].size, part.box)
            if made is not None:
                chosen, start, widths, own = made
                points = window.point[chosen]
                flat = flat_index(start.T, cut.blocks[p], cut.stencil.halo)
                yield Rows(p, points, flat, widths, own, turn[points] @ window.turn)


@dataclass(frozen=True, eq=False)
class _SourceNodes:
    """Nodes of one block from which n places are interpolated. `point` (n,): the numbers of the places. `base` (n, 3):
    the first node for each place. `weights` (2, n, 3, WIDTH): the weights, 0 for nodes outside. `turn` (3, 3): the
    matrix that converts vectors of this block to those of the block from which it was reached."""

    block: int
    point: np.ndarray
    base: np.ndarray
    weights: np.ndarray
    turn: np.ndarray

    @property
    def nodes(self) -> np.ndarray:
        return np.asarray(self.base[:, :, None] + np.arange(WIDTH))

    def mask(self, keep: np.ndarray) -> "_SourceNodes | None":
        """The part of the nodes (n, 3, WIDTH) selected by `keep`; None if nothing is left."""
        weights = np.where(keep, self.weights, 0.0)
        left = (weights != 0).any(axis=(0, 3)).all(axis=1)
        if not left.any():
            return None
        return _SourceNodes(self.block, self.point[left], self.base[left], weights[:, left], self.turn)


def _spread(whole: Decomposition, window: _SourceNodes, hops: int = 3) -> Iterator[_SourceNodes]:
    """Return the windows of the block's own nodes, and of those of connected blocks beyond its ends."""
    size = np.array(whole.blocks[window.block].size)[:, None]
    nodes = window.nodes
    below, above = nodes < 0, nodes >= size
    own = window.mask(~(below | above))
    if own is not None:
        yield own
    if not hops or not ((below | above) & (window.weights != 0).any(axis=0)).any():
        return
    nearest = np.clip(nodes, 0, size - 1)
    for c in whole.connections:
        if c.block != window.block or c.over_a_pole:
            continue
        d = direction(c.face)
        # nodes beyond several ends belong to the first direction
        keep = np.ones_like(below)
        keep[:, :d] = ~(below | above)[:, :d]
        keep[:, d] = (below if side(c.face) < 0 else above)[:, d]
        for e, (lo, hi) in enumerate(c.range):
            if e != d:
                keep[:, e] &= (nearest[:, e] >= lo) & (nearest[:, e] < hi)
        beyond = window.mask(keep)
        if beyond is None:
            continue
        matrix = np.array(c.matrix)
        base, weights = np.zeros_like(beyond.base), np.zeros_like(beyond.weights)
        for e in range(3):
            f = int(np.flatnonzero(matrix[:, e])[0])
            turned = matrix[f, e] < 0
            base[:, f] = matrix[f, e] * (beyond.base[:, e] + (WIDTH - 1) * turned) + c.offset[f]
            weights[:, :, f] = beyond.weights[:, :, e, ::-1] if turned else beyond.weights[:, :, e]
        turn = window.turn if c.rotation is None else window.turn @ np.array(c.rotation)
        yield from _spread(whole, _SourceNodes(c.donor, beyond.point, base, weights, turn), hops - 1)
