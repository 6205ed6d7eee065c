"""O-grid all around a circular cylinder at the origin: the block "cylinder", or "cylinder-1", "cylinder-2", ...

Regions: "wall" (jmin) and "far-field" (jmax).
"""

import numpy as np

from hiresx.case.grids import CylinderO
from hiresx.grid.blocks import Block, Regions, face_range
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.cutting import cut_along_i, even_starts
from hiresx.grid.spacing import nodes_from_wall


def generate(spec: CylinderO) -> Grid:
    """Return an O-grid all around a circular cylinder at the origin, with the parameters `spec`, the table [grid] of a
    case file. Lengths are in reference lengths.

    The index i runs clockwise around the wall from the downstream side (the positive x axis). It has n_around different
    nodes, of which the last one is connected to the first. The index j runs along rays from the wall to the outer
    circle, with a spacing that grows by a hyperbolic sine. The index k runs along +z. The period along z is `span`, and
    the node at the upper end is left out. In this order the Jacobian is positive."""
    starts = even_starts(spec.n_around, spec.blocks)
    cells, length = spec.n_normal - 1, spec.outer_radius - spec.radius
    first = length / cells if spec.first_spacing is None else spec.first_spacing
    r = spec.radius + nodes_from_wall(cells, length, first, "grid.first_spacing", "grid.n_normal")[:, None]
    angle = np.arange(spec.n_around) * (-2 * np.pi / spec.n_around)
    shape = (spec.n_span, spec.n_normal, spec.n_around)
    x = np.broadcast_to(r * np.cos(angle), shape)
    y = np.broadcast_to(r * np.sin(angle), shape)
    z = np.broadcast_to((np.arange(spec.n_span) * (spec.span / spec.n_span))[:, None, None], shape)
    size = shape[::-1]
    regions: Regions = {
        name: ((face, face_range(face, size)),) for name, face in (("wall", "jmin"), ("far-field", "jmax"))
    }
    seam = [
        Connection(0, face, face_range(face, size), 0, offset=(step * spec.n_around, 0, 0))
        for face, step in (("imin", 1), ("imax", -1))
    ]
    names = ["cylinder"] if spec.blocks == 1 else [f"cylinder-{n + 1}" for n in range(spec.blocks)]
    period = {"k": (0.0, 0.0, float(spec.span))} if spec.n_span > 1 else {}
    return cut_along_i(Block("cylinder", x, y, z, regions), starts, names, seam, period)
