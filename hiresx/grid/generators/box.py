"""Rectangular box, uniform or stretched along each axis, one block named "box"."""

from collections.abc import Iterable

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.grids import AXES as COORDINATES
from hiresx.case.grids import Box, Wavy
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Block
from hiresx.grid.connections import Grid
from hiresx.grid.motions import Motion, Vector
from hiresx.grid.spacing import stretch


def generate(spec: Box) -> Grid:
    """Return the grid of a rectangular box, one block, with the parameters `spec`, the table [grid] of a case file, in
    reference lengths. The spacing is uniform or stretched along each axis.

    An axis that the table declares periodic has n different nodes and none at the upper end; other axes have nodes at
    both ends. Boundary conditions may make any axis periodic. On an axis that is not declared periodic, the nodes at
    both ends are then the same node. Raises HiresxError for an axis that is both periodic and stretched."""
    stretches = spec.stretch or {}
    for axis in stretches:
        if axis in spec.periodic:
            raise HiresxError(
                f"grid.stretch.{axis}: the axis is periodic, and stretching would leave a kink at its seam",
                f"remove grid.stretch.{axis}, or {axis} from grid.periodic",
            )
    lines = []
    for axis, s in zip(COORDINATES, unit_lines(spec), strict=True):
        lines.append(stretch(s, stretches[axis].cluster, stretches[axis].ratio) if axis in stretches else s)
    block = Block("box", *triple(box_nodes(spec, lines)))
    return Grid((block,), period=(box_period(spec, range(3)),))


def unit_lines(spec: Box | Wavy) -> list[np.ndarray]:
    """Return, for each of x, y and z, an array (n,) of uniformly spaced values from 0: up to 1 on an axis that is not
    periodic, up to 1 - 1/n on a periodic axis, and [0] for one node. `spec`: the table [grid] of a case file."""
    return [
        np.arange(n) / (n if axis in spec.periodic else max(n - 1, 1)) for axis, n in zip("xyz", spec.n, strict=True)
    ]


def box_nodes(spec: Box | Wavy, lines: list[np.ndarray]) -> list[np.ndarray]:
    """Return the coordinates x, y, z (nk, nj, ni) of the nodes of a rectangular box. `spec`: the table [grid] of a case
    file with the corners of the box. `lines`: positions of the nodes along x, y and z as fractions in [0, 1] of the
    box. The results are read-only views of one-dimensional arrays."""
    x, y, z = (lo + (hi - lo) * s for lo, hi, s in zip(spec.lower, spec.upper, lines, strict=True))
    shape = (len(z), len(y), len(x))
    return [np.broadcast_to(c, shape) for c in (x, y[:, None], z[:, None, None])]


def box_period(spec: Box | Wavy, directions: Iterable[int]) -> dict[str, Vector | Motion]:
    """Return the translations by which a rectangular box repeats, as a dictionary such as {"i": (lx, 0, 0)}, for the
    index `directions` that have more than one node. `spec`: the table [grid] of a case file with the corners of the
    box."""
    return {
        AXES[d]: triple(float(spec.upper[d] - spec.lower[d]) if e == d else 0.0 for e in range(3))
        for d in directions
        if spec.n[d] > 1
    }
