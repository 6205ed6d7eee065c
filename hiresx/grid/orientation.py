"""Orientation of a connection: the 48 signed permutations of indexes between two blocks, and the choice of one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Block, Range, direction, face_range, layer, side
from hiresx.grid.connections import Connection
from hiresx.grid.motions import IntMatrix, Motion

LAYOUTS = ("shared", "offset")


def matrix_of(transform: Sequence[int]) -> IntMatrix:
    """Return the index matrix (3, 3) of a CGNS transform [a, b, c] between two connected blocks. Direction i of the
    block corresponds to direction |a| of the donor block (1: i, 2: j, 3: k), in the same sense if a > 0 and in the
    opposite sense if a < 0; j corresponds to |b|, and k to |c|. For two dimensions two entries suffice. Raises
    ValueError if the result is not a signed permutation."""
    entries = [*transform, 3] if len(transform) == 2 else list(transform)
    if sorted(map(abs, entries)) != [1, 2, 3]:
        raise ValueError(f"{list(transform)} is not a permutation of 1, 2 and 3 with signs")
    matrix = np.zeros((3, 3), dtype=int)
    for d, entry in enumerate(entries):
        matrix[abs(entry) - 1, d] = 1 if entry > 0 else -1
    return tuple(map(tuple, matrix.tolist()))


def transform_of(matrix: IntMatrix) -> list[int]:
    """Return the CGNS transform [a, b, c] of a signed permutation `matrix`: direction i of the block corresponds to
    direction |a| of the donor block (1: i, 2: j, 3: k), in the opposite sense if a < 0; b and c belong to j and k."""
    return [next((e + 1) * matrix[e][d] for e in range(3) if matrix[e][d]) for d in range(3)]


def extents(range_: Range) -> tuple[int, int, int]:
    """Return the numbers of nodes of the half-open index ranges `range_` along i, j and k."""
    return triple(hi - lo for lo, hi in range_)


def possible_matrices(
    blocks: Sequence[Block], own: tuple[int, str, Range], donor: tuple[int, str, Range]
) -> Iterator[IntMatrix]:
    """Yield all index matrices (3, 3) with which two rectangles of face nodes can be connected. A matrix maps steps of
    the indexes of the block to steps of the indexes of the donor block, as `matrix_of` describes. `own`, `donor`: the
    two rectangles, each as (block number, face, half-open index ranges). Both must have the same numbers of nodes, and
    an index line that leaves the block through its face must enter the donor block. A direction along which the block
    has a single node corresponds to such a direction of the donor block, in the same sense."""
    (b, face, range_), (p, donor_face, donor_range) = own, donor
    d, e = direction(face), direction(donor_face)
    active = blocks[b].active
    across, other = ([x for x in range(3) if x != y] for y in (d, e))
    nodes, met = extents(range_), extents(donor_range)
    for order in permutations(other):
        if any(
            nodes[x] != met[y] or (x in active) != (y in blocks[p].active) for x, y in zip(across, order, strict=True)
        ):
            continue
        for signs in product((1, -1), repeat=2):
            if any(s < 0 and x not in active for x, s in zip(across, signs, strict=True)):
                continue
            matrix = np.zeros((3, 3), dtype=int)
            matrix[e, d] = -side(face) * side(donor_face)
            for x, y, s in zip(across, order, signs, strict=True):
                matrix[y, x] = s
            yield tuple(map(tuple, matrix.tolist()))


def join(
    where: str,
    own: tuple[int, str, Range],
    donor: tuple[int, str, Range],
    matrix: IntMatrix,
    layout: str,
    motion: Motion,
) -> Connection:
    """Return the connection of two rectangles of face nodes. `own`, `donor`: the two rectangles, each as (block number,
    face, half-open index ranges). `matrix`: the signed permutation from indexes of the block to indexes of the donor.
    `layout`: "shared" if both blocks contain the nodes of the face, "offset" if the donor's nodes lie one spacing
    beyond them. `motion`: the rigid motion that moves nodes of the donor to those of the block. Raises HiresxError if
    `matrix` does not fit the two faces or their numbers of nodes. `where`: the beginning of the error message."""
    b, face, range_ = own
    p, donor_face, donor_range = donor
    d, e = direction(face), direction(donor_face)
    m = np.array(matrix)
    if m[e, d] != -side(face) * side(donor_face):
        raise HiresxError(
            f"{where}: under the transform {transform_of(matrix)} the block does not go on from its face {face} "
            f"through the donor's face {donor_face}",
            f"entry {d + 1} of the transform must be {(e + 1) * -side(face) * side(donor_face)}",
        )
    first, last = _ends(range_)
    low, high = _ends(donor_range)
    image = np.abs(m) @ (last - first) + 1
    if (image != high - low + 1).any():
        y = int(np.flatnonzero(image != high - low + 1)[0])
        x = int(np.flatnonzero(m[y])[0])
        raise HiresxError(
            f"{where}: {int(image[y])} nodes along {AXES[x]} meet {int(high[y] - low[y] + 1)} nodes along the donor's "
            f"{AXES[y]}",
            "correct the ranges, or the transform",
        )
    # the corner of the range that corresponds to the donor's lowest one
    start = np.where((m < 0).any(axis=0), last, first)
    if layout == "offset":
        start[d] += side(face)
    offset = low - m @ start
    return Connection(b, face, range_, p, matrix, triple(int(o) for o in offset), motion.translation, motion.rotation)


def _ends(range_: Range) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last indexes of a range."""
    return np.array([lo for lo, _ in range_]), np.array([hi - 1 for _, hi in range_])


def layout_of(connection: Connection, blocks: Sequence[Block]) -> str | None:
    """Return the layout of a connection: "shared" if both blocks contain the nodes of the face, "offset" if the donor's
    nodes begin one spacing beyond them, and None if the ghosts begin elsewhere in the donor. `blocks`: the blocks of
    the grid."""
    e = connection.donor_direction
    lowest = np.array([[lo] for lo, _ in connection.range])
    at_face = int(connection.donors(lowest)[e, 0])
    face = connection.donor_face
    beyond = (at_face - layer(face, blocks[connection.donor].size)[0]) * side(face)
    return {0: "shared", 1: "offset"}.get(beyond)


def donor_range(connection: Connection, blocks: Sequence[Block]) -> Range:
    """Return the half-open index ranges of the nodes on the donor's face that coincide with the nodes of a connection
    (layout "shared") or lie one spacing beyond them (layout "offset"). `blocks`: the blocks of the grid."""
    corners = np.stack(_ends(connection.range), axis=1)
    image = connection.donors(corners)
    range_ = [(int(a.min()), int(a.max()) + 1) for a in image]
    face = connection.donor_face
    range_[direction(face)] = layer(face, blocks[connection.donor].size)
    return triple(range_)


def opposite(connection: Connection, blocks: Sequence[Block]) -> Connection:
    """Return the reverse of a connection, which gives the donor block its ghosts. It has the inverse index map and the
    inverse motion. `blocks`: the blocks of the grid."""
    m = np.array(connection.matrix)
    back = connection.motion.inverse
    return replace(
        connection,
        block=connection.donor,
        face=connection.donor_face,
        range=donor_range(connection, blocks),
        donor=connection.block,
        matrix=triple(map(triple, m.T.tolist())),
        offset=triple(int(o) for o in -m.T @ np.array(connection.offset)),
        translation=back.translation,
        rotation=back.rotation,
    )


def faces_of(size: tuple[int, int, int], range_: Range, names: Sequence[str]) -> list[str]:
    """Return the faces in `names` that contain all nodes of `range_` (half-open index ranges), for a block of `size`
    (ni, nj, nk)."""
    return [name for name in names if range_[direction(name)] == face_range(name, size)[direction(name)]]
