"""Body-fitted grid around the windward side of a circular cylinder at the origin: one block named "cylinder"."""

import numpy as np

from hiresx.case.grids import Cylinder
from hiresx.grid.blocks import Block
from hiresx.grid.connections import Grid
from hiresx.grid.spacing import distances_to_ellipse


def generate(spec: Cylinder) -> Grid:
    """Return a body-fitted grid around the windward side of a circular cylinder at the origin, one block, with the
    parameters `spec`, the table [grid] of a case file. Lengths are in reference lengths.

    The index i runs along the wall with the angle t from the upstream stagnation line (the negative x axis). The wall
    is radius * (-cos t, sin t). The index j runs along straight rays from the wall (jmin) to an ellipse (jmax), which
    the table gives by its distances from the wall ahead of the cylinder and beside it. The index k runs along +z. The
    period along z is `span`, and the node at the upper end is left out. In this order the Jacobian is positive."""
    t = np.radians(np.linspace(spec.angle[0], spec.angle[1], spec.n_around))
    r = distances_to_ellipse(spec, t)
    shape = (spec.n_span, *r.shape)
    x = np.broadcast_to(-r * np.cos(t), shape)
    y = np.broadcast_to(r * np.sin(t), shape)
    z = np.broadcast_to((np.arange(spec.n_span) * (spec.span / spec.n_span))[:, None, None], shape)
    period = {"k": (0.0, 0.0, float(spec.span))} if spec.n_span > 1 else {}
    return Grid((Block("cylinder", x, y, z),), period=(period,))
