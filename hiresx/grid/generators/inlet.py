"""Grid of a plane inlet between two walls of straight pieces: the block "inlet".

Regions: "inflow" (imin), "outflow" (imax), "lower-wall" (jmin), "above" (jmax ahead of the last corner, the lip) and
"cowl" (jmax from the lip on, that node included).
"""

import numpy as np

from hiresx.case.grids import Inlet
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Regions, face_range
from hiresx.grid.connections import Grid
from hiresx.grid.diffusion import diffuse


def generate(spec: Inlet) -> Grid:
    """Return the grid of a plane supersonic inlet between two walls of straight segments, with the parameters `spec`,
    the table [grid] of a case file. Lengths are in reference lengths.

    The grid lines along j are vertical. They are uniformly spaced between the corners of the walls, which are nodes.
    Along j the spacing is uniform. The kinks of a wall are smoothed: on the grid line at a given distance from the wall
    they are smoothed over this distance (`hiresx.grid.diffusion`). Raises HiresxError if the walls intersect."""
    nodes = np.concatenate([[0], np.cumsum(spec.cells)])
    x = np.interp(np.arange(nodes[-1] + 1), nodes, spec.corners)
    lower, upper = (_wall(spec, x, angles) for angles in (spec.lower_angles, spec.upper_angles))
    upper = spec.height + upper
    narrow = np.argmin(upper - lower)
    if upper[narrow] <= lower[narrow]:
        raise HiresxError(
            f"the walls of the inlet meet ahead of x = {x[narrow]:g}",
            "give a larger grid.height, or other grid.lower_angles or grid.upper_angles",
        )
    share = np.linspace(0.0, 1.0, spec.n_normal)[:, None]
    far = (upper - lower) * share
    y = (1 - share) * diffuse(x, lower, far) + share * diffuse(x, upper, far)[::-1]

    size = (len(x), spec.n_normal, 1)
    faces = {"inflow": "imin", "outflow": "imax", "lower-wall": "jmin"}
    regions: Regions = {name: ((face, face_range(face, size)),) for name, face in faces.items()}
    lip, last = sum(spec.cells[:-1]), spec.n_normal - 1
    regions["above"] = (("jmax", ((0, lip), (last, last + 1), (0, 1))),)
    regions["cowl"] = (("jmax", ((lip, len(x)), (last, last + 1), (0, 1))),)
    shape = size[::-1]
    return Grid((Block("inlet", np.broadcast_to(x, shape), y[None], np.zeros(shape), regions),))


def _wall(spec: Inlet, x: np.ndarray, angles: tuple[float, ...]) -> np.ndarray:
    """Return the height of a wall above that at the first corner."""
    rises = np.diff(spec.corners) * np.tan(np.radians(angles))
    return np.interp(x, spec.corners, np.concatenate([[0.0], np.cumsum(rises)]))
