"""The visible cells of a refined grid, such that the blocks of all levels together cover every position once.

A block of the unrefined grid consists of its own cells. A cell is hidden if one block of the next finer level contains
all of the finer cells in it. Blocks of a finer level extend half a coarse cell beyond such cells at their ends; these
finer cells are hidden, too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hiresx.base.arrays import triple
from hiresx.grid.blocks import Range, intersection, slices
from hiresx.grid.cutting import within

if TYPE_CHECKING:
    from hiresx.decomposition.levels import Levels, Tile

# The mark of cells that VTK does not show, vtkDataSetAttributes::HIDDENCELL. VTK 9.7 draws contours in cells marked
# REFINEDCELL.
HIDDEN = 32


def cell_kinds(levels: "Levels") -> list[np.ndarray]:
    """Return a list with a uint8 array (nk, nj, ni) for every block of `levels`, the blocks of all levels of
    refinement. It has one number for each cell: 0 if the cell is shown, HIDDEN if it is not, since a cell of another
    level is shown there. The shown cells of all levels cover every position once."""
    found = [np.full(_shape(tile), HIDDEN if tile.level else 0, np.uint8) for tile in levels.tiles]
    for n in sorted(range(len(found)), key=lambda n: levels.tiles[n].level):
        tile = levels.tiles[n]
        cells, plane = _cells(tile), _plane(levels, tile)
        for m in levels.of(tile.level + 1, tile.base):
            finer = levels.tiles[m]
            shared = intersection(cells, _before(finer, plane))
            if shared is None:
                continue
            own = slices(within(cells, shared))
            shown = found[n][own] == 0
            inside = triple(
                ends if flat else (2 * ends[0], 2 * ends[1]) for ends, flat in zip(shared, plane, strict=True)
            )
            kinds = np.where(shown, 0, HIDDEN)
            for d, flat in enumerate(plane):
                kinds = kinds if flat else kinds.repeat(2, axis=2 - d)
            found[m][slices(within(_cells(finer), inside))] = kinds
            found[n][own] = HIDDEN
    return found


def _cells(tile: "Tile") -> Range:
    """Return the cells of a tile in the indexes of its level. A cell lies behind its node. A direction with one node
    has one cell."""
    return triple((lo, max(hi - 1, lo + 1)) for lo, hi in tile.box)


def _shape(tile: "Tile") -> tuple[int, int, int]:
    return triple(hi - lo for lo, hi in reversed(_cells(tile)))


def _plane(levels: "Levels", tile: "Tile") -> Sequence[bool]:
    """Return whether the block of the grid has one node along each direction."""
    return [n == 1 for n in levels.spaces[0, tile.base].size]


def _before(tile: "Tile", plane: Sequence[bool]) -> Range:
    """Return the cells of the coarser level all of whose finer cells a tile has."""
    return triple(
        (lo, lo + 1) if flat else ((lo + 1) // 2, max((hi - 1) // 2, (lo + 1) // 2))
        for (lo, hi), flat in zip(tile.box, plane, strict=True)
    )
