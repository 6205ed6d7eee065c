"""Extreme values of friction, heat flux and y+ along walls, and their positions: the key `extrema` of a `[[force]]`."""

import numpy as np

from hiresx.equations.storage import LONGEST
from hiresx.output.watch.extreme_columns import extreme_columns, extreme_names, place_of
from hiresx.output.watch.history import Column
from hiresx.output.watch.node_numbers import NodeNumbers
from hiresx.output.watch.wall_nodes import COLUMNS, WallNodes, shear
from hiresx.solver import Solver

_OF = {column.name: column for column in COLUMNS}
_FRICTION = Column("friction", "shear stress", "rho_ref c_ref^2")
# Quantity, end and the sign by which the extreme value is the largest.
_WATCHED = ((_OF["y_plus"], "max", 1.0), (_FRICTION, "max", 1.0), (_OF["heat"], "min", -1.0), (_OF["heat"], "max", 1.0))
# Values that differ by less than this fraction of the extreme one count as equal, so that round-off does not determine
# the place. They are computed by differences over the first nodes of a fine grid, and so have fewer digits.
_TIE = {"float64": 1e-9, LONGEST: 1e-9, "float32": 1e-3}
# A number larger than that of any node.
_NOWHERE = np.iinfo(np.int64).max


class WallExtremes:
    """Computation of the largest y+ and friction and the smallest and largest heat flux over the wall nodes of all
    ranks."""

    columns = tuple(found for of, end, _ in _WATCHED for found in extreme_columns(of, end))

    def __init__(self, solver: Solver, nodes: WallNodes):
        self._comm, self._decomposition, self._nodes = solver.comm, solver.decomposition, nodes
        self._numbering = NodeNumbers(solver.decomposition.blocks)
        self._tie = _TIE[solver.configuration.real]
        # nodes without area, and nodes of slip walls, have no friction
        self._counted = np.isfinite(nodes.normals).all(axis=0) & ~nodes.slips

    def measure(self, values: dict[str, np.ndarray]) -> dict[str, float]:
        """Return the extreme values of y+, friction and heat flux over the wall nodes of all ranks and their positions,
        by column. `values`: y+, friction components and heat flux at the n nodes of this rank, by name. If several
        nodes have the same extreme value, the first one in the order of block, k, j, i is reported. NaN is treated as
        an extreme value. All ranks must call this method."""
        friction = shear(np.stack([values[f"friction_{axis}"] for axis in "xyz"]))
        rows = np.stack([sign * {**values, "friction": friction}[of.name] for of, _, sign in _WATCHED])
        rows = np.where(self._counted, rows, -np.inf)
        best = self._comm.max(rows.max(axis=1, initial=-np.inf))[:, None]
        near = np.where(np.isnan(best), np.isnan(rows), rows >= best - self._tie * np.abs(best))
        numbers = self._comm.min(np.where(near, self._nodes.numbers, _NOWHERE).min(axis=1, initial=_NOWHERE))
        measured: dict[str, float] = {}
        for (of, end, sign), value, node in zip(_WATCHED, best[:, 0], self._numbering.nodes(numbers).T, strict=True):
            place = place_of(self._decomposition, node)
            measured.update(zip(extreme_names(of.name, end), (sign * value, *place), strict=True))
        return measured
