"""Files of walls: samples of pressure, friction, heat flux and y+ at the wall nodes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.output.watch import place_file
from hiresx.output.watch.history import Column
from hiresx.output.watch.place_file import Kind, PlaceFile, StoredPlaces, normal_columns
from hiresx.output.watch.wall_nodes import COLUMNS

# The last of the data of a node that are stored once.
_WHERE = ("block", "i", "j", "k")
KIND = Kind(
    "wall distribution",
    "walls",
    COLUMNS,
    ("normal_x", "normal_y", "normal_z", "area", *_WHERE),
    ("blocks",),
)


class WallFile(PlaceFile):
    """Writer of samples at the wall nodes of a force to the file <folder>/<name>.nc. `where` (4, n): block and i, j, k
    of the nodes. `places` (3, n): x, y, z in L. `normals` (3, n): outward unit normals. `areas` (n,): areas. `unit`:
    the unit of the areas. `blocks`: names of the whole blocks. `precision`: "fp64" or "fp32"."""

    _kind_of_change = "nodes or precision"

    def __init__(
        self,
        name: str,
        where: np.ndarray,
        places: np.ndarray,
        normals: np.ndarray,
        areas: np.ndarray,
        unit: str,
        blocks: Sequence[str],
        precision: str,
        folder: Path,
    ):
        fixed = [
            *normal_columns(normals.T, "normal out of the gas"),
            (Column("area", "area", unit), areas),
            (Column("block", "number of the block", "1"), where[0]),
            *((Column(axis, f"index {axis}", "1"), row) for axis, row in zip("ijk", where[1:], strict=True)),
        ]
        super().__init__(KIND, name, places.T, fixed, {"blocks": json.dumps(blocks)}, precision, folder)

    def _fits(self, there: bytes) -> bool:
        """What is compared is which nodes these are. Where they are, their normals and areas follow from the grid,
        which a restart compares, and differ in their last bits by how it is cut and by the backend."""
        whole, fixed = len(self._header), self._fixed_columns()
        row = fixed[0][1].nbytes
        begin, where = whole - len(fixed) * row, whole - len(_WHERE) * row
        return super()._fits(there[:begin] + self._header[begin:where] + there[where:])


@dataclass(frozen=True, eq=False)
class StoredWalls(StoredPlaces):
    """The samples at the wall nodes of a force that were read from their file. `records` have the `COLUMNS`, and
    `fixed` has normal_x, ..., area, block, i, j, k."""

    @property
    def blocks(self) -> list[str]:
        """Names of all blocks of the grid."""
        return list(json.loads(self.attributes["blocks"]))

    @property
    def where(self) -> np.ndarray:
        """Number of the block and indexes i, j, k of each wall node, an array (4, n)."""
        return self.fixed_columns(*_WHERE).T.astype(np.int64)

    def sample(self, n: int) -> dict[str, np.ndarray]:
        """Return pressure, friction, heat flux and y+ at the wall nodes in sample number `n`, by name, each a float64
        array (nodes,)."""
        record = self.records[n]
        return {name: np.asarray(record[name], dtype=np.float64) for name in self.quantities}


def walls(run: str | Path) -> dict[str, Path]:
    """Return the paths of the files with distributions along walls in a run directory, by the name of the force, in
    alphabetical order."""
    return KIND.files(run)


def read(path: str | Path) -> StoredWalls:
    """Open the file `path` with samples at wall nodes. A run may still be writing to it. The samples are read when they
    are used. Raises HiresxError if the file is missing, truncated, or of another type."""
    return place_file.read(path, KIND, StoredWalls)


def describe(stored: StoredWalls) -> Mapping[str, Any]:
    """Return a summary of the samples at wall nodes as JSON data: "places", the number of nodes, "samples", and "area",
    in L^2."""
    return {"places": len(stored.fixed["x"]), "samples": stored.samples, "area": float(stored.fixed["area"].sum())}
