"""Interpolation of the flow to many positions on the device, from which only the results are copied to the host.

The interpolation is of sixth order, with the polynomials and the kernel of patched interfaces (`hiresx.grid.patched`,
kernels/boundary/patched.h). For each box of nodes of a rank the device sums over the nodes of a stencil that lie in the
box, and rank 0 adds these sums in a fixed order."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hiresx.decomposition import Decomposition
from hiresx.decomposition.coordinates import extended_coordinates
from hiresx.decomposition.ghost_layers import GhostLayers, coordinates_in_box
from hiresx.decomposition.halo_copies import flat_index
from hiresx.decomposition.patched_donors import Rows, interpolation_rows, shape_maps
from hiresx.device.interface import Call
from hiresx.equations import GAS_CONSERVED
from hiresx.grid.blocks import direction, side
from hiresx.grid.patched import WIDTH, BlockMap, nearest_nodes, wraps
from hiresx.output.saved import files
from hiresx.output.watch.locate import OUTSIDE, Locator

# Largest distance, in cells, beyond the last node of a block at which the block is used for interpolation in the gap to
# its neighbour.
_HALF = 0.5 + 1e-6
# Stride of the nodes of a block among which the nearest one to a place is chosen as the start of Newton's method.
_SEEDS = 6


def locate_places(decomposition: Decomposition, places: np.ndarray, who: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number (n,) of the block that contains each of n points, and the point's real-valued indexes i, j, k
    (n, 3) in this block, which is one of the finest level of refinement there. `places` (n, 3): coordinates in units of
    the length scale L. `who`: the beginning of the error message. Raises HiresxError for points outside the grid."""
    block, xi = np.full(len(places), -1), np.zeros((len(places), 3))
    left, levels = np.arange(len(places)), decomposition.levels
    of = np.zeros(len(decomposition.blocks), int) if levels is None else np.array([t.level for t in levels.tiles])
    for level in range(of.max(), -1, -1):
        beyond, found, at = _locate_among(decomposition, np.flatnonzero(of == level).tolist(), places[left])
        here = (beyond <= OUTSIDE) | _in_gap_before_neighbour(decomposition, beyond, found, at)
        block[left[here]], xi[left[here]] = found[here], at[here]
        left = left[~here]
    if left.size:
        _locate_from_more_starts(decomposition, places, left, block, xi, who)
    return block, xi


def _locate_among(
    decomposition: Decomposition, blocks: Sequence[int], places: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each of `places`, by how many cells it lies beyond the nearest of some `blocks` (inf: not near any), that
    block and the place in its index space."""
    best, block, xi = np.full(len(places), np.inf), np.full(len(places), -1), np.zeros((len(places), 3))
    for b in blocks:
        other = decomposition.blocks[b]
        d = len(other.active)
        nodes = np.stack([np.asarray(c).ravel() for c in (other.x, other.y, other.z)[:d]])
        low, high = nodes.min(axis=1), nodes.max(axis=1)
        room = 0.05 * (high - low).max()
        near = np.flatnonzero(
            (best > 0) & (places[:, :d] > low - room).all(axis=1) & (places[:, :d] < high + room).all(axis=1)
        )
        if not near.size:
            continue
        known = _map(decomposition, b)
        at, found = known.locate(places[near, :d], _seeds(known, places[near, :d]))
        beyond = np.where(found, known.beyond(at), np.inf)
        better = beyond < best[near] - 1e-9
        chosen = near[better]
        best[chosen], block[chosen], xi[chosen] = beyond[better], b, at[better]
    return best, block, xi


def _map(decomposition: Decomposition, b: int) -> BlockMap:
    """The map of block `b`, with what is behind its ends where it goes on in itself."""
    block, halo = decomposition.blocks[b], decomposition.stencil.halo
    wrapped = wraps(block, b, decomposition.connections)
    if not any(wrapped):  # ghosts are not examined
        return BlockMap(block, [np.pad(np.asarray(c), halo) for c in (block.x, block.y, block.z)], halo, wrapped)
    made = extended_coordinates(decomposition)[b]
    if isinstance(made, GhostLayers):
        i, j, k = (slice(0, n + 2 * halo) for n in block.size)
        return BlockMap(block, coordinates_in_box(block, made, halo, (k, j, i)), halo, wrapped)
    return BlockMap(block, made, halo, wrapped)


def _seeds(known: BlockMap, places: np.ndarray) -> np.ndarray:
    """Nodes (n, 3) of a block that are near to places (n, dimensions)."""
    lines = [np.unique(np.append(np.arange(0, n, _SEEDS), n - 1)) for n in known.block.size]
    return nearest_nodes(known.block, np.stack(np.meshgrid(*lines, indexing="ij")).reshape(3, -1), places)


def _in_gap_before_neighbour(
    decomposition: Decomposition, beyond: np.ndarray, block: np.ndarray, xi: np.ndarray
) -> np.ndarray:
    """A mask of the places at most half a cell beyond a face of their block that is connected to a neighbour."""
    found = np.zeros(len(block), dtype=bool)
    asked = np.flatnonzero((beyond > OUTSIDE) & (beyond <= _HALF))
    for c in decomposition.connections:
        d, n = direction(c.face), decomposition.blocks[c.block].size
        at = asked[block[asked] == c.block]
        outside = xi[at] - np.clip(xi[at], 0, np.array(n) - 1)
        node = np.clip(np.round(xi[at]), 0, np.array(n) - 1)
        here = outside[:, d] * side(c.face) > OUTSIDE
        for e, (lo, hi) in enumerate(c.range):
            here &= (e == d) | ((np.abs(outside[:, e]) <= OUTSIDE) & (node[:, e] >= lo) & (node[:, e] < hi))
        found[at[here]] = True
    return found


def _locate_from_more_starts(
    decomposition: Decomposition, places: np.ndarray, left: np.ndarray, block: np.ndarray, xi: np.ndarray, who: str
) -> None:
    """Locate the places `left` with `Locator`, which tries more starting points. Raises HiresxError as
    `locate_places`."""
    hint = "move the surface inside, or leave that side of it open"
    for n, found in zip(left, Locator(decomposition).locate_all(places[left], who, hint), strict=True):
        block[n], xi[n] = found.block, found.index


class Interpolation:
    """Interpolation of the conservative variables to n points. `block` (n,): the block that contains each point. `xi`
    (n, 3): the point's real-valued indexes i, j, k in this block. `key`: a name for the set of points, by which results
    are cached. `calls`: the launches that write this rank's part of the sums into `array` on the device. All ranks must
    construct this object."""

    def __init__(self, solver: Any, key: Hashable, block: np.ndarray, xi: np.ndarray):
        self._comm = solver.comm
        made = solver.kept(
            ("rows", key),
            (solver.decomposition, solver.cut),
            lambda: files.on_root(solver.comm, lambda: _rows(solver, block, xi)),
        )
        by_rank: list[list[Rows]] = [[] for _ in range(solver.comm.size)]
        for part in made:
            by_rank[solver.cut.parts[part.part].rank].append(part)
        self._counts = [sum(len(part.ghost) for part in some) for some in by_rank]
        self._ghosts = [part.ghost for some in by_rank for part in some]
        self._places = len(block)
        states = {state.index: state for state in solver.states}
        real = np.dtype(states[next(iter(states))].real if states else "f8")
        own = by_rank[solver.comm.rank]
        shape = (self._counts[solver.comm.rank], len(GAS_CONSERVED))
        self.array = solver.backend.zeros(shape, str(real))
        device, row = solver.backend.to_device, 0
        self.calls: list[Call | list[Call]] = []
        for part in own:
            n, s = len(part.ghost), states[part.part]
            weights = part.weights_of(np.arange(n))[0].reshape(3 * WIDTH, n)  # not those of the linear interpolation
            self.calls.append(
                solver.program.call(
                    "interpolated_values",
                    (n, len(GAS_CONSERVED), 1),
                    n=n,
                    wi=part.widths[0],
                    wj=part.widths[1],
                    wk=part.widths[2],
                    sj=s.strides[1],
                    sk=s.strides[2],
                    sv=s.variable_stride,
                    giving=device(part.start.astype(np.int32)),
                    weights=device(np.ascontiguousarray(weights, dtype=real)),
                    q=s.q,
                    found=self.array[row : row + n],
                )
            )
            row += n

    def state(self, held: np.ndarray) -> np.ndarray | None:
        """Return rho, rho u, rho v, rho w and e at the n points of this interpolation on rank 0, float64 (5, n), in the
        scales of the case, and None on other ranks. `held`: a host copy of the attribute `array`, to which the launches
        in the attribute `calls` have written the contributions of this rank. All ranks must call this method."""
        shares = np.ascontiguousarray(held, dtype=np.float64)
        if self._comm.mpi_comm is not None:
            width = len(GAS_CONSERVED)
            everything = np.empty((sum(self._counts) if self._comm.root else 0, width))
            self._comm.mpi_comm.Gatherv(shares, [everything, [width * n for n in self._counts]])
            shares = everything
        if not self._comm.root:
            return None
        found, row = np.zeros((self._places, len(GAS_CONSERVED))), 0
        for ghost in self._ghosts:
            found[ghost] += shares[row : row + len(ghost)]
            row += len(ghost)
        return found.T


def _rows(solver: Any, block: np.ndarray, xi: np.ndarray) -> Sequence[Rows]:
    whole = solver.decomposition
    if (xi == np.round(xi)).all():
        return _nodes(solver.cut, block, xi.astype(int))
    return list(interpolation_rows(whole, solver.cut, shape_maps(whole), block, xi))


def _nodes(cut: Decomposition, block: np.ndarray, index: np.ndarray) -> list[Rows]:
    """The rows of places that are nodes: these nodes, with the weight 1."""
    made = []
    for p, part in enumerate(cut.parts):
        low, high = np.array(part.box).T
        here = np.flatnonzero((block == part.whole) & ((index >= low) & (index < high)).all(axis=1))
        if here.size:
            weights = np.zeros((2, 3, WIDTH, here.size))
            weights[:, :, 0] = 1.0
            made.append(
                Rows(p, here, flat_index((index[here] - low).T, cut.blocks[p], cut.stencil.halo), (1, 1, 1), weights)
            )
    return made
