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
    """Return the grid of a `box` table (`hiresx.case.grids.Box`), in reference lengths.

    A periodic axis has n different nodes and none at the upper end; the others have nodes at both ends. The boundary
    conditions may make every axis periodic. On an axis that is not declared periodic, both ends then have the same
    node.
    """
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
    """Return for each axis an array (n,) of values from 0 to 1 (not periodic), from 0 to 1 - 1/n (periodic), or [0] for
    one node. `spec`: the table of the grid."""
    return [
        np.arange(n) / (n if axis in spec.periodic else max(n - 1, 1)) for axis, n in zip("xyz", spec.n, strict=True)
    ]


def box_nodes(spec: Box | Wavy, lines: list[np.ndarray]) -> list[np.ndarray]:
    """Return the coordinates x, y, z (nk, nj, ni) of the box. `lines`: positions in [0, 1] along each axis. The arrays
    are read-only views of one line each."""
    x, y, z = (lo + (hi - lo) * s for lo, hi, s in zip(spec.lower, spec.upper, lines, strict=True))
    shape = (len(z), len(y), len(x))
    return [np.broadcast_to(c, shape) for c in (x, y[:, None], z[:, None, None])]


def box_period(spec: Box | Wavy, directions: Iterable[int]) -> dict[str, Vector | Motion]:
    """Return the period of the box in those of the given directions that have more than one node."""
    return {
        AXES[d]: triple(float(spec.upper[d] - spec.lower[d]) if e == d else 0.0 for e in range(3))
        for d in directions
        if spec.n[d] > 1
    }
