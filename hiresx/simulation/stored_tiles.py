"""The tiles of refinement in a checkpoint."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hiresx.base.arrays import triple
from hiresx.decomposition import Decomposition
from hiresx.decomposition.hierarchy import Choosing, Hierarchy
from hiresx.decomposition.levels import Tile
from hiresx.decomposition.refinement import Taken
from hiresx.errors import HiresxError
from hiresx.output.saved.container import Container


def stored_tiles(whole: Decomposition) -> list[Any] | None:
    """Return the blocks of all refinement levels as a checkpoint stores them, or None without levels. Each entry is
    [level, number of the block of the unrefined grid, half-open index ranges along i, j, k on that level]. `whole`: the
    decomposition before its division among ranks."""
    if whole.levels is None:
        return None
    return [[tile.level, tile.base, [list(ends) for ends in tile.box]] for tile in whole.levels.tiles]


def tiles_of(container: Container) -> Choosing:
    """Return a function that returns the tiles (boxes of nodes of finer levels) that the checkpoint `container`
    contains: for each level and block a boolean mask [k, j, i] over all possible tiles. Its argument is the `Hierarchy`
    of levels of the case. It raises HiresxError if the checkpoint contains no tiles, or tiles that do not fit these
    levels."""

    def choose(hierarchy: Hierarchy) -> Sequence[Taken]:
        with hierarchy.comm.together():
            return _restore(container.values, hierarchy, container.path)

    return choose


def _restore(values: Mapping[str, Any], hierarchy: Hierarchy, path: Path) -> list[Taken]:
    try:
        stored = values["tiles"]
        tiles = [
            Tile(int(level), int(base), triple((int(lo), int(hi)) for lo, hi in box)) for level, base, box in stored
        ]
        return hierarchy.of(tiles)
    except (KeyError, TypeError, ValueError) as error:
        raise HiresxError(
            f"{path} does not hold tiles of this case's levels ({error})",
            "restart with the case that wrote it, or begin a new run",
        ) from None
