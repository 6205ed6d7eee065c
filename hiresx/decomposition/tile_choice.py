"""The choice of tiles (boxes of nodes of a finer level): those that a criterion asks for, and those that must surround
them, within the regions where tiles are allowed."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from hiresx.case.refine import Refine
from hiresx.decomposition.filled_tiles import fill_tiles
from hiresx.decomposition.join_tiles import Lattice, Place, box_of, partners_of, tiles_within, with_partners
from hiresx.decomposition.levels import spaces_of
from hiresx.decomposition.oblique_walls import unrefinable_places
from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.refinement import (
    Taken,
    along_lines,
    around_tiles,
    reach_of,
    take_around,
    with_mirrored,
)


@dataclass(frozen=True, eq=False)
class TileChoice:
    """The data on which the choice of refined boxes (tiles) of all levels depends. `grids`: for each level the
    decomposition of the whole grid. `lattices`: for each level and block the nodes at which tiles begin and end.
    `regions`, `allowed`: for each level and block the masks [k, j, i] of the tiles that always exist, and of those that
    may be added (see `of`). `partners`: for each level the result of `partners_of`. `around`: for each level and block
    the coarser tiles that each tile needs, the result of `around_tiles`. `table`: the table [refine] of the case."""

    grids: Sequence[Decomposition]
    lattices: Sequence[Sequence[Lattice]]
    regions: Sequence[Taken]
    allowed: Sequence[Taken]
    partners: Sequence[dict[Place, list[Place]]]
    around: Sequence[Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]]
    table: Refine
    _last: dict[bytes, list[Taken]] = field(default_factory=dict)  # the result of the last call of `choose`

    @classmethod
    def of(
        cls,
        grids: Sequence[Decomposition],
        lattices: Sequence[Sequence[Lattice]],
        regions: Sequence[Taken],
        table: Refine,
    ) -> "TileChoice":
        """Return the data for the choice of boxes of finer grid (tiles). `grids`: for each level the blocks if they
        were refined completely. `lattices`: for each level and block three lists, along i, j and k, of the node indexes
        at which tiles begin and end. `regions`: for each level and block the boolean mask [k, j, i], over all possible
        tiles, of those that always exist. `table`: the table [refine] of the case. The attribute `allowed` excludes
        tiles on faces whose condition does not support refinement, and tiles that need an excluded tile around them or
        on the other side of a connection."""
        partners = [partners_of(grid, lattice) for grid, lattice in zip(grids, lattices, strict=True)]
        allowed = [[np.ones_like(some) for some in level] for level in regions]
        for level in range(1, len(grids)):
            _forbid_faces(grids[level], lattices[level], allowed[level], table.refinable)
            _forbid_open_around(level, grids, lattices, allowed)
            _forbid_partners(partners[level], allowed[level])
        reach = reach_of(grids[0])
        around: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = [[]]
        for level in range(1, len(grids)):
            spaces = spaces_of(grids[level - 1], level - 1)
            around.append(
                [
                    around_tiles(lattice, spaces[level - 1, b], reach, lattices[level - 1][b])
                    for b, lattice in enumerate(lattices[level])
                ]
            )
        return cls(grids, lattices, regions, allowed, partners, around, table)

    def none(self) -> list[Taken]:
        """Return masks that choose no box of finer grid (tile): for each level and block a boolean array [k, j, i] with
        one entry, False, for each possible tile."""
        return [[np.zeros_like(some) for some in level] for level in self.regions]

    def choose(self, flagged: Sequence[Taken]) -> list[Taken]:
        """Return the boxes of finer grid (tiles) that are to exist: for each level and block a boolean mask [k, j, i]
        with one entry for each possible tile. These are the tiles in the regions of the case, the tiles in the masks
        `flagged` that may exist by the attribute `allowed`, and further tiles. Further tiles lie on the other side of
        connections, fill gaps so that there are fewer and larger blocks (`fill_tiles`), make the tiles symmetric where
        the case requires it, or lie under and around a tile of the next finer level."""
        key = b"".join(some.tobytes() for level in flagged for some in level)
        if key not in self._last:
            found = self._choose(flagged)
            self._last.clear()
            self._last[key] = found
        return [[some.copy() for some in level] for level in self._last[key]]

    def _choose(self, flagged: Sequence[Taken]) -> list[Taken]:
        taken = [
            [fixed | (asked & may) for fixed, asked, may in zip(*of_level, strict=True)]
            for of_level in zip(self.regions, flagged, self.allowed, strict=True)
        ]
        for level in range(len(self.grids) - 1, 0, -1):
            taken[level] = self._with_mirrored(level, taken[level])
            with_partners(self.partners[level], taken[level])
            lattices = zip(self.lattices[level], taken[level], self.allowed[level], strict=True)
            taken[level] = self._with_mirrored(level, [fill_tiles(*block) for block in lattices])
            with_partners(self.partners[level], taken[level])
            if level > 1:
                for tiles, around, below in zip(taken[level], self.around[level], taken[level - 1], strict=True):
                    below |= along_lines(tiles, around)
        return taken

    def _with_mirrored(self, level: int, taken: Taken) -> Taken:
        """Return `taken` and the opposite tiles, so that neither round-off nor the order of filling breaks the
        symmetry."""
        of_blocks = zip(taken, self.allowed[level], strict=True)
        return [tiles | (with_mirrored(tiles, self.table) & may) for tiles, may in of_blocks]


def _forbid_faces(grid: Decomposition, lattices: Sequence[Lattice], allowed: Taken, refinable: Set[str]) -> None:
    refused = set(unrefinable_places(grid))
    for place, patch in enumerate(grid.patches):
        if patch.condition.type not in refinable or place in refused:
            for tile in tiles_within(lattices[patch.block], patch.range):
                allowed[patch.block][tile] = False


def _forbid_open_around(
    level: int,
    grids: Sequence[Decomposition],
    lattices: Sequence[Sequence[Lattice]],
    allowed: Sequence[Taken],
) -> None:
    """Forbid tiles that need a tile of the coarser level that is forbidden."""
    if level == 1 or all(some.all() for some in allowed[level - 1]):
        return
    spaces, reach = spaces_of(grids[level - 1], level - 1), reach_of(grids[0])
    for b, lattice in enumerate(lattices[level]):
        for k, j, i in np.argwhere(allowed[level][b]).tolist():
            place = k, j, i
            around = np.zeros_like(allowed[level - 1][b])
            take_around(box_of(lattice, place), spaces[level - 1, b], reach, lattices[level - 1][b], around)
            allowed[level][b][place] = bool(allowed[level - 1][b][around].all())


def _forbid_partners(partners: dict[Place, list[Place]], allowed: Taken) -> None:
    changed = True
    while changed:
        changed = False
        for place, others in partners.items():
            if allowed[place[0]][place[1:]] and not all(allowed[b][at] for b, *rest in others for at in [tuple(rest)]):
                allowed[place[0]][place[1:]] = False
                changed = True
