"""Connections: the donor nodes for the ghosts of a face that touches another block, or the opposite face of its own
block."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hiresx.base.arrays import Integers, Mask, triple
from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, FACES, Block, Range, direction, face_range, layer, side, slices
from hiresx.grid.motions import IntMatrix, Matrix, Motion, Vector, format_vector

IDENTITY = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
# Tolerance for periodic and shared faces, relative to the period or to the extent of the block: coordinates that were
# stored in single precision agree to about 1e-7.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Connection:
    """A part of a face whose ghost nodes are nodes of a donor block.

    The ghost node with index (i, j, k) of `block` (i = -1, -2, ... at imin, i = ni, ni + 1, ... at imax) is the node
    `matrix` @ (i, j, k) + `offset` of block `donor`. Its coordinates are `rotation` @ those of the donor node +
    `translation`, its velocity is `rotation` @ that of the donor node. If `rotation` is None, there is no rotation.

    `range`: half-open node ranges (i, j, k) of the nodes of `block` on `face`. `matrix`: a 3 x 3 signed permutation. If
    both blocks contain the nodes of the face (layout "shared"), the offset differs by one from that of blocks only one
    of which contains them (layout "offset"). `over_a_pole`: whether the connection crosses a pole, so that the nodes
    behind it are mirrored (`hiresx.grid.rings`).
    """

    block: int
    face: str
    range: Range
    donor: int
    matrix: IntMatrix = IDENTITY
    offset: tuple[int, int, int] = (0, 0, 0)
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: Matrix | None = None
    over_a_pole: bool = False

    def renumbered(self, first: int) -> "Connection":
        """Return a copy of this connection with both block numbers increased by `first`, for a list of blocks in which
        `first` other blocks precede those of this connection."""
        return Connection(
            self.block + first, self.face, self.range, self.donor + first, self.matrix, self.offset, self.translation,
            self.rotation, self.over_a_pole,
        )  # fmt: skip

    @property
    def motion(self) -> Motion:
        """Rigid motion (rotation and translation) that moves nodes of the donor block to the ghost nodes of this block;
        the identity if the connection is not periodic."""
        return Motion(self.rotation, self.translation)

    @property
    def _turn(self) -> tuple[int, int]:
        # field files have lists, and a script may give arrays
        a, b, c = (tuple(map(int, row)) for row in self.matrix)
        return _direction_and_sign((a, b, c), self.face)

    @property
    def donor_direction(self) -> int:
        """Index direction (0: i, 1: j, 2: k) of the donor block that continues the direction normal to this block's
        face."""
        return self._turn[0]

    @property
    def sign(self) -> int:
        """Factor, 1 or -1, that converts the donor's flux along `donor_direction` to this block's flux through the
        connected face. It is -1 if the two indexes run in opposite directions, and changes its sign if the motion of
        the connection reverses the handedness, since area vectors (grad xi)/J are x_eta cross x_zeta."""
        hands = 1 if self.rotation is None else round(float(np.linalg.det(self.rotation)))
        return self._turn[1] * hands

    @property
    def donor_face(self) -> str:
        """Name of the donor block's face that touches this connection. The ghosts are copied from the nodes next to
        it."""
        e = self.donor_direction
        inwards = side(self.face) * self.matrix[e][direction(self.face)]
        return FACES[2 * e + (inwards < 0)]

    def ghosts(self, layers: int, size: tuple[int, int, int]) -> Integers:
        """Return the indexes i, j, k of the ghost nodes behind the connected face nodes, in `layers` layers: an integer
        array (3, ...) whose further axes run along i, j and k. In the direction normal to the face the indexes are
        negative, or begin at the size of the block. `size`: (ni, nj, nk) of the block."""
        d = direction(self.face)
        n = size[d]
        normal = np.arange(-layers, 0) if side(self.face) < 0 else np.arange(n, n + layers)
        axes = [normal if e == d else np.arange(*self.range[e]) for e in range(3)]
        return np.stack(np.meshgrid(*axes, indexing="ij"))

    def donors(self, index: Integers) -> Integers:
        """Return the indexes (3, ...) of the donor block's nodes from which ghost nodes are copied. `index` (3, ...):
        the indexes i, j, k of the ghost nodes in this block."""
        found = np.empty_like(index)
        for e, (row, offset) in enumerate(zip(self.matrix, self.offset, strict=True)):
            d = next(d for d in range(3) if row[d])  # a signed permutation
            found[e] = row[d] * index[d] + offset
        return found


@lru_cache(maxsize=1024)
def _direction_and_sign(matrix: IntMatrix, face: str) -> tuple[int, int]:
    """Return the direction of the donor that corresponds to the direction normal to `face`, and the sign of the donor's
    flux along it if no vector is rotated. `matrix`: that of a connection."""
    d = direction(face)
    e = next(e for e in range(3) if matrix[e][d])
    return e, matrix[e][d] * round(float(np.linalg.det(matrix)))


@dataclass(frozen=True)
class Touching:
    """Nodes of a face without a connection that lie on the face `other_face` of the block `other`, or inside that block
    (`other_face` is None).

    `range`: half-open ranges of the nodes around all cells concerned. `cells`: the number of these cells. `place`: the
    centre of the first one. `one_step`: whether both faces are whole, and each grid line continues with the nodes of
    the other face. `over`: whether both blocks lie on the same side of their faces, so that they overlap."""

    block: int
    face: str
    range: Range
    other: int
    other_face: str | None
    cells: int
    place: tuple[float, float, float]
    one_step: bool = False
    over: bool = False

    def describe(self, blocks: Sequence[Block]) -> str:
        """Return a sentence for messages on faces that touch another block without a connection: which nodes of which
        face lie on, or inside, which block. `blocks`: the blocks of the grid."""
        nodes = ", ".join(f"{axis} = {lo}:{hi}" for axis, (lo, hi) in zip(AXES, self.range, strict=True))
        where = f"{plural(self.cells, 'cell')}, the first at (x, y, z) = {format_vector(self.place)}"
        own = f"face {self.face} of block '{blocks[self.block].name}', nodes {nodes},"
        if self.other_face is None:
            return f"{own} lies inside block '{blocks[self.other].name}' ({where})"
        lies = "lies one spacing from" if self.one_step else "lies on"
        return f"{own} {lies} face {self.other_face} of block '{blocks[self.other].name}' ({where}), not joined to it"

    @property
    def closes(self) -> bool:
        """Whether the two faces that touch are opposite ends of one block with a gap of one grid step between them, as
        in an O-grid without its last plane of nodes."""
        ends = {self.face, self.other_face}
        return self.one_step and self.block == self.other and ends == {f"{self.face[0]}min", f"{self.face[0]}max"}

    def hint(self, blocks: Sequence[Block]) -> str:
        """Return the advice for an error message: how to connect the two faces that touch without moving nodes, if that
        is possible. `blocks`: the blocks of the grid."""
        name, d = blocks[self.block].name, self.face[0]
        if self.closes:
            return (
                f'[grid] period = {{ {d} = [0.0, 0.0, 0.0] }} and a [[boundary]] with block = "{name}", '
                f'faces = ["{d}min", "{d}max"] and type = "periodic" join it'
            )
        if self.over or self.other_face is None:
            return "blocks must not lie over each other: overset and embedded grids are not joined"
        if self.one_step:
            return 'a [[connection]] with layout = "offset" of a connectivity file joins them'
        return (
            "the nodes of both blocks must coincide, or a connectivity file must join them, or each of them has a "
            '[[boundary]] with type = "patched" on these nodes'
        )


@dataclass(frozen=True, eq=False)
class Grid:
    """Blocks, their connections, and the directions in which blocks may be periodic.

    `period`: for each block {"i": (dx, dy, dz), ...}, the translation, or the `Motion`, that moves the face at the
    lower end of a direction to its periodic image at or beyond the face at the upper end. `touching`: places where
    faces lie on or in other blocks without a connection (only found in grids from files).
    """

    blocks: tuple[Block, ...]
    connections: tuple[Connection, ...] = ()
    period: tuple[Mapping[str, tuple[float, float, float] | Motion], ...] = ()
    touching: tuple[Touching, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.blocks, Iterable) or not all(isinstance(block, Block) for block in self.blocks):
            raise HiresxError(f"blocks: {self.blocks!r:.60} is not a list of blocks", "see the documentation of Grid")
        object.__setattr__(self, "blocks", tuple(self.blocks))
        object.__setattr__(self, "connections", tuple(self.connections))
        period = tuple(self.period) or tuple(dict[str, Vector | Motion]() for _ in self.blocks)
        if len(period) != len(self.blocks):
            raise HiresxError(
                f"periods are given for {plural(len(period), 'block')} of {len(self.blocks)}", "give one dict per block"
            )
        object.__setattr__(self, "period", period)
        names = [block.name for block in self.blocks]
        for name in names:
            if names.count(name) > 1:
                raise HiresxError(f"two blocks are named '{name}'", "give every block its own name")

    @property
    def points(self) -> int:
        """Total number of nodes of all blocks."""
        return sum(block.points for block in self.blocks)

    @property
    def dimensions(self) -> int:
        """Number of dimensions of the grid: 1, 2 or 3."""
        return max((len(block.active) for block in self.blocks), default=0)


def periodic_connections(grid: Grid, block: int, axis: str, range_: Range | None = None) -> list[Connection]:
    """Return the two connections that make the index direction `axis` ("i", "j", "k") of a block periodic. `block`: the
    number of the block. `range_`: half-open index ranges i, j, k of the nodes to connect on both faces, by default the
    whole faces.

    If the period of the block (`grid.period`) moves the face at the lower end onto the face at the upper end, both
    contain the same nodes (layout "shared"), and ghost -1 is node n - 2. Otherwise the image of the lower face must lie
    one spacing beyond the upper face (layout "offset"), and ghost -1 is node n - 1. In the offset layout the step
    across the seam must be between 1/4 and 4 times both of its neighbours. If the period includes a rotation, ghosts
    are rotated.

    Raises HiresxError if the grid has no period in that direction, and, with the first node that does not fit, if
    neither layout fits."""
    b = grid.blocks[block]
    d = AXES.index(axis)
    low, high = FACES[2 * d], FACES[2 * d + 1]
    if axis not in grid.period[block]:
        raise HiresxError(
            f"block '{b.name}' has no period in direction {axis}, so {low} and {high} cannot be periodic",
            "use another condition there, or give the period ([grid] period) for a grid read from a file",
        )
    period = grid.period[block][axis]
    if not isinstance(period, Motion):
        period = Motion(None, triple(float(p) for p in period))
    n = b.size[d]
    whole = range_ or face_range(low, b.size)
    section = list(whole)

    def plane(index: int) -> np.ndarray:
        section[d] = (index, index + 1)
        return np.stack([getattr(b, c)[slices(triple(section))] for c in "xyz"])

    first = plane(0)
    image = period(first)
    gap = np.linalg.norm(plane(n - 1) - image, axis=0)
    coincide = gap <= TOLERANCE * np.linalg.norm(image - first, axis=0).max()
    # The layout that fits most nodes is assumed; nodes that do not fit it are errors.
    shared = np.mean(coincide) > 0.5
    bad = ~coincide
    if not shared:
        bad = broken_seam(plane(n - 2), plane(n - 1), image, period(plane(1)))
    if bad.any():
        k, j, i = (int(m) + whole[e][0] * (e != d) for m, e in zip(np.argwhere(bad)[0], (2, 1, 0), strict=True))
        raise HiresxError(
            f"block '{b.name}': the faces {low} and {high} do not match under the period, {period}; first at "
            f"node (i, j, k) = ({i}, {j}, {k}), (x, y, z) = {format_vector(b.node(i, j, k))}",
            "correct the period, or use another boundary condition on these faces",
        )
    step = n - 1 if shared else n
    unit = [int(e == d) for e in range(3)]
    result = []
    for face, sense, way in ((low, 1, period.inverse), (high, -1, period)):
        result.append(
            Connection(
                block=block,
                face=face,
                range=triple(layer(face, b.size) if e == d else whole[e] for e in range(3)),
                donor=block,
                offset=triple(sense * step * u for u in unit),
                translation=way.translation,
                rotation=way.rotation,
            )
        )
    return result


def broken_seam(before: np.ndarray, last: np.ndarray, first: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return a mask (...) of the grid lines that do not continue smoothly over a connection of two blocks without
    common nodes. The arguments are four planes of node coordinates (3, ...) in the order in which a grid line passes
    them; the connection lies between `last` and `first`. A grid line is continued if its step over the connection has
    the direction of both neighbouring steps and between 1/4 and 4 times their length. Lines that are collapsed to a
    point, as on a pole, count as continued."""
    seam = first - last
    length = np.linalg.norm(seam, axis=0)
    bad = np.zeros(length.shape, dtype=bool)
    longest = length
    for neighbour in (last - before, after - first):
        other = np.linalg.norm(neighbour, axis=0)
        along = np.sum(seam * neighbour, axis=0)
        bad |= ~(along > 0) | (length > 4 * other) | (length < other / 4)
        longest = np.maximum(longest, other)
    # around a pole the steps are zero
    wrong: Mask = bad & (longest > TOLERANCE**2 * longest.max())
    return wrong
