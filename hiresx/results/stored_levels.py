"""Levels of refinement of fields that were read, from the attributes of their blocks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.levels import Levels, Space, Tile
from hiresx.output.fields.level_cells import cell_kinds


def kinds_of_stored(blocks: Mapping[str, Any]) -> list[np.ndarray | None]:
    """Return a list with a uint8 array (nk, nj, ni) for each block. It has one number for each cell: 0 if the cell is
    shown, HIDDEN if it is not, since a cell of another level of refinement is shown there. The list has None for every
    block if the fields have no levels. `blocks`: the blocks of fields that were read (`hiresx.results.trees.fields`),
    by name. See `hiresx.output.fields.level_cells.cell_kinds`."""
    about = [block.attrs for block in blocks.values()]
    if not all("level" in attributes for attributes in about):
        return [None] * len(about)
    names = list(blocks)
    sizes = [[block.sizes[axis] for axis in "ijk"] for block in blocks.values()]
    tiles = tuple(
        Tile(a["level"], names.index(a["of"]), triple((lo, lo + n) for lo, n in zip(a["first"], size, strict=True)))
        for a, size in zip(about, sizes, strict=True)
    )
    spaces = {(0, n): Space(triple(size), (None,) * 3) for n, size in enumerate(sizes) if tiles[n].level == 0}
    return [*cell_kinds(Levels(tiles, spaces))]
