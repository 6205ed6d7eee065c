"""Integrals over blocks and faces from values at nodes.

The spacing in computational space is 1, so every node inside a grid has weight 1, as in the sums that the scheme
conserves. Only where the grid ends at a physical face are the weights those of a closed formula. With Gregory's
corrections up to fifth differences (Fröberg, Introduction to Numerical Analysis, 1969, section 9.5) the integral is of
seventh order there. Conserved quantities have other weights at no-slip walls, for which the scheme conserves them to
round-off (kernels/wall_sums.h), with corrections up to third differences. A node that belongs to two blocks has half of
its weight in each."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import comb

import numpy as np

from hiresx import kernels
from hiresx.decomposition import Decomposition
from hiresx.grid.blocks import FACES, Range, direction, directions_along, face_range, side, whole_box
from hiresx.grid.connections import Connection

# Kinds of ends of a grid line: a no-slip wall, another physical face, a node that the neighbour also has, or the
# neighbour's first node one spacing further.
NO_SLIP, PHYSICAL, SHARED, BESIDE = range(4)
# Gregory's coefficients of the forward differences of order 1 to 5 at the lower end; order 0 is the trapezoidal rule.
_GREGORY = (-1 / 2, 1 / 12, -1 / 24, 19 / 720, -3 / 160, 863 / 60480)
REACH = len(_GREGORY)
_AT_NO_SLIP = [weight - 1 for weight in kernels.fractions("", "wall_sums", "wall_weights")]
# Fraction of a step up to which two nodes count as coincident.
_SAME_NODE = 1e-3


def corrections(nodes: int) -> np.ndarray:
    """Return the corrections that Gregory's formula adds to the weight 1 of the first nodes at one end of a grid line,
    so that the sum over nodes is an integral of high order: an array of 6 numbers, or of `nodes` numbers if the line
    has fewer than 6 nodes."""
    order = min(REACH, nodes)
    found = np.zeros(order)
    for difference, coefficient in enumerate(_GREGORY[:order]):
        for m in range(difference + 1):
            found[m] += coefficient * (-1) ** (difference - m) * comb(difference, m)
    return found


@lru_cache(maxsize=1024)
def changes(nodes: int) -> tuple[tuple[int, dict[int, float]], ...]:
    """Return how much the quadrature weights of the first nodes of a line of `nodes` nodes differ from 1, the weight of
    interior nodes. Each entry is (m, differences): node m from the end of the line, and a dictionary from the kind of
    the end (NO_SLIP wall, other PHYSICAL boundary, or node SHARED with another block) to the difference."""
    by_kind: dict[int, Sequence[float]] = {NO_SLIP: _AT_NO_SLIP, PHYSICAL: list(corrections(nodes)), SHARED: (-0.5,)}
    first = range(max(len(by_kind[PHYSICAL]), min(len(_AT_NO_SLIP), nodes)))
    return tuple((m, {kind: values[m] for kind, values in by_kind.items() if m < len(values)}) for m in first)


def ends(decomposition: Decomposition, b: int, face: str, kept: bool = False, even: Collection[int] = ()) -> np.ndarray:
    """Return, for every node of a face of block number `b`, what lies behind the face, as far as quadrature weights
    depend on it: NO_SLIP (a no-slip wall), PHYSICAL (another boundary), SHARED (a block that contains the same node) or
    BESIDE (a block whose nodes begin one spacing further). The result is an array [k, j, i] without the axis normal to
    the face. `kept`: whether no-slip walls are distinguished from other boundaries. `even`: numbers of boundary patches
    whose nodes count as SHARED. `decomposition`: the blocks, not divided among ranks."""
    block = decomposition.blocks[b]
    across = directions_along(face)
    kinds = np.full([block.size[e] for e in across], PHYSICAL)
    for n, patch in enumerate(decomposition.patches):
        no_slip = kept and patch.condition.kernel == "no_slip"
        if patch.block == b and patch.face == face and (no_slip or n in even):
            kinds[tuple(slice(*patch.range[e]) for e in across)] = NO_SLIP if no_slip else SHARED
    for c in decomposition.connections:
        if c.block == b and c.face == face and not c.over_a_pole:
            part = tuple(slice(*c.range[e]) for e in across)
            kinds[part] = SHARED if _coincide(decomposition, c) else BESIDE
    return kinds


def _coincide(decomposition: Decomposition, c: Connection) -> bool:
    """True if the donor has the nodes of the connected face itself."""
    block, donor = decomposition.blocks[c.block], decomposition.blocks[c.donor]
    own = np.stack(np.meshgrid(*(np.arange(*r) for r in c.range), indexing="ij")).reshape(3, -1)
    there = c.donors(own)
    if (there < 0).any() or (there >= np.array(donor.size)[:, None]).any():
        return False
    inner = own.copy()
    inner[direction(c.face)] -= side(c.face)
    place, image, next_ = (
        np.stack([getattr(holder, axis)[k, j, i] for axis in "xyz"])
        for holder, (i, j, k) in ((block, own), (donor, there), (block, inner))
    )
    gap, step = np.linalg.norm(c.motion(image) - place, axis=0), np.linalg.norm(next_ - place, axis=0)
    apart = step > 0  # all nodes of a grid line on a pole coincide
    return bool(np.median(gap[apart] / step[apart]) < _SAME_NODE)


def block_weights(decomposition: Decomposition, b: int, box: Range | None = None, kept: bool = False) -> np.ndarray:
    """Return the quadrature weights (nk, nj, ni) of the nodes of block number `b`, or of the nodes in `box`, half-open
    index ranges (i, j, k). The sum of weight times cell volume 1/J times a field is the integral of the field over the
    block. `kept`: whether to use the weights with which the scheme conserves mass at no-slip walls. `decomposition`:
    the blocks, not divided among ranks."""
    block = decomposition.blocks[b]
    return _weights(decomposition, b, whole_box(block.size) if box is None else box, block.active, kept)


def face_weights(
    decomposition: Decomposition, b: int, face: str, kept: bool = False, even: Collection[int] = ()
) -> np.ndarray:
    """Return the quadrature weights of the nodes of a face of block number `b`, [k, j, i] without the axis normal to
    the face. They equal the weights of `block_weights` along the face, so that fluxes and integrals balance. `kept`:
    whether to use the weights with which the scheme conserves mass at no-slip walls. `even`: numbers of the boundary
    patches about which the integrand is even and the grid symmetric: the weights are half of those of the grid with its
    mirror image. `decomposition`: the blocks, not divided among ranks."""
    block, d = decomposition.blocks[b], direction(face)
    along = [e for e in block.active if e != d]
    return _weights(decomposition, b, face_range(face, block.size), along, kept, even).squeeze(2 - d)


def _weights(
    decomposition: Decomposition,
    b: int,
    box: Range,
    directions: Sequence[int],
    kept: bool,
    even: Collection[int] = (),
) -> np.ndarray:
    """Return the weights (nk, nj, ni) of the nodes `box` of a block in sums along some directions."""
    block = decomposition.blocks[b]
    shape = tuple(hi - lo for lo, hi in reversed(box))
    weights = np.ones(shape)
    for d in directions:
        along = np.moveaxis(np.ones(shape), 2 - d, 0)
        across = tuple(slice(*box[e]) for e in (2, 1, 0) if e != d)
        for face in (FACES[2 * d], FACES[2 * d + 1]):
            kinds = ends(decomposition, b, face, kept, even)[across]
            for m, change in changes(block.size[d]):
                # from the first node forwards, or from the last one backwards
                at = (m if side(face) < 0 else block.size[d] - 1 - m) - box[d][0]
                if 0 <= at < len(along):
                    by_kind = np.zeros(BESIDE + 1)
                    by_kind[list(change)] = list(change.values())
                    along[at] += by_kind[kinds]
        weights *= np.moveaxis(along, 0, 2 - d)
    return weights
