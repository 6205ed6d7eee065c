"""Grid of a pointed cone and the axis ahead of it, for axisymmetric flow (of a wedge, for plane flow): the block
"cone".

Regions: "axis" and "cone" (jmin; the tip's node is the axis'), "inlet" (imin), "outlet" (imax), "outer" (jmax).
"""

import numpy as np

from hiresx.case.grids import Cone
from hiresx.grid.blocks import Block, Regions, face_range
from hiresx.grid.connections import Grid
from hiresx.grid.diffusion import diffuse
from hiresx.grid.spacing import nodes_from_centre, nodes_from_wall


def generate(spec: Cone) -> Grid:
    """Return the grid of a pointed cone at zero incidence and of the axis ahead of it, for axisymmetric flow (of a
    wedge, for plane flow), with the parameters `spec`, the table [grid] of a case file. Lengths are in reference
    lengths.

    The tip is the origin, and the axis is y = 0. Along x the spacing is uniform on the cone and grows ahead of it. The
    index j runs from the axis and the cone to the outer boundary. The outer boundary is the straight line from y =
    `height` at the inlet to y = `end_height` at the outlet. The kink of the wall at the tip is smoothed: on the grid
    line at a given distance from the axis it is smoothed over this distance (`hiresx.grid.diffusion`)."""
    before, on = spec.cells
    spacing = spec.length / on
    upstream = nodes_from_centre(
        before, spec.upstream, spacing, "grid.length over the second of grid.cells", "the first of grid.cells"
    )
    x = np.concatenate([-upstream[:0:-1], np.arange(on + 1) * spacing])
    wall = np.where(x > 0, x * np.tan(np.radians(spec.half_angle)), 0.0)
    outer = spec.height + (spec.end_height - spec.height) * (x - x[0]) / (x[-1] - x[0])
    cells = spec.n_normal - 1
    first = 1 / cells if spec.first_spacing is None else spec.first_spacing / spec.height
    share = nodes_from_wall(cells, 1.0, first, "grid.first_spacing over grid.height", "grid.n_normal")[:, None]
    y = share * outer + (1 - share) * diffuse(x, wall, share * outer)
    shape = (1, *y.shape)
    size = shape[::-1]
    faces = {"inlet": "imin", "outlet": "imax", "outer": "jmax"}
    regions: Regions = {name: ((face, face_range(face, size)),) for name, face in faces.items()}
    regions["axis"] = (("jmin", ((0, before + 1), (0, 1), (0, 1))),)
    regions["cone"] = (("jmin", ((before + 1, size[0]), (0, 1), (0, 1))),)
    return Grid((Block("cone", np.broadcast_to(x, shape), y[None], np.zeros(shape), regions),))
