"""O-grid around a sphere, or around its windward side: one block named "sphere".

Regions: "wall" (jmin), "outer" (jmax), "upstream-pole" (imin), and at imax "downstream-pole" of a whole sphere, else
"outlet".
"""

import numpy as np

from hiresx.case.grids import Sphere
from hiresx.grid.blocks import Block, Regions, face_range
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.spacing import distances_to_ellipse


def generate(spec: Sphere) -> Grid:
    """Return an O-grid around a sphere, or around its windward side, one block, with the parameters `spec`, the table
    [grid] of a case file. Lengths are in reference lengths.

    The index i runs along meridians with the angle t from the upstream pole on the negative x axis to `angle`. The
    index j runs along rays from the wall to the outer surface, an ellipsoid of revolution, which the table gives by its
    distances from the wall ahead of the sphere and beside it. The index k runs around the x axis. It has n_around
    different nodes, of which the last one is connected to the first. In this order the Jacobian is positive."""
    t = np.radians(np.linspace(0.0, spec.angle, spec.n_meridian))
    r = distances_to_ellipse(spec, t)
    sine = np.sin(t)
    sine[0] = 0.0
    if spec.angle == 180:
        sine[-1] = 0.0
    around = np.arange(spec.n_around) * (2 * np.pi / spec.n_around)
    y = r * sine * np.cos(around)[:, None, None]
    z = r * sine * np.sin(around)[:, None, None]
    x = np.broadcast_to(-r * np.cos(t), y.shape)
    size = y.shape[::-1]
    end = "downstream-pole" if spec.angle == 180 else "outlet"
    faces = {"wall": "jmin", "outer": "jmax", "upstream-pole": "imin", end: "imax"}
    regions: Regions = {name: ((face, face_range(face, size)),) for name, face in faces.items()}
    seam = [
        Connection(0, face, face_range(face, size), 0, offset=(0, 0, step * spec.n_around))
        for face, step in (("kmin", 1), ("kmax", -1))
    ]
    return Grid((Block("sphere", x, y, z, regions),), tuple(seam))
