"""H-grid of a channel with a bump of length 1 on its lower wall: the block "channel", or "upstream", "bump",
"downstream".

Regions: "inlet" (imin), "outlet" (imax), "upper-wall" (jmax), "lower-wall" (jmin), and "bump", the nodes of the lower
wall on the bump, ends included.
"""

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.grids import ChannelBump
from hiresx.errors import HiresxError
from hiresx.grid.blocks import MINIMUM_NODES, Block, Regions, face_range
from hiresx.grid.connections import Grid
from hiresx.grid.cutting import cut_along_i
from hiresx.grid.diffusion import diffuse
from hiresx.grid.spacing import nodes_from_centre, nodes_from_wall


def generate(spec: ChannelBump) -> Grid:
    """Return an H-grid of a channel with a bump on its lower wall, with the parameters `spec`, the table [grid] of a
    case file. Lengths are in chords of the bump, which lies between x = 0 and x = 1.

    Along x the spacing on the bump is uniform. If `end_spacing` is given, it grows from both ends of the bump as a
    squared sine. Beyond the bump the nodes follow hyperbolic sines. Along y they follow a hyperbolic sine with the
    spacing `first_spacing` at the lower wall, which may itself grow with the distance from the bump. Along z there are
    nk nodes, and `width` is the period; the node at the upper end is left out.

    The shape of the lower wall decays linearly towards the upper wall. At each distance from the wall the shape is
    smoothed over this distance (`hiresx.grid.diffusion`). Without smoothing, the kinks at the ends of a circular arc
    would be present on all grid lines along x, where they would cause errors of the sixth-order metrics. Raises
    HiresxError for spacings that do not fit the numbers of cells."""
    before, on, after = spec.cells
    if spec.blocks == 3 and min(before, on + 1, after) < MINIMUM_NODES:
        raise HiresxError(
            f"grid.cells = {list(spec.cells)} gives three blocks of {before}, {on + 1} and {after} nodes along i, and "
            f"each needs {MINIMUM_NODES}",
            "give more cells, or grid.blocks = 1",
        )
    spacing = 1 / on if spec.end_spacing is None else spec.end_spacing
    if spacing * on > 1:
        raise HiresxError(
            f"grid.end_spacing = {spacing:g} is larger than the uniform spacing {1 / on:.6g} of {on} cells",
            "lower grid.end_spacing, or use fewer cells",
        )
    name = "1 over the second of grid.cells" if spec.end_spacing is None else "grid.end_spacing"
    upstream = nodes_from_centre(before, spec.upstream, spacing, name, "the first of grid.cells")
    downstream = nodes_from_centre(after, spec.downstream, spacing, name, "the last of grid.cells")
    # dx/dn = spacing + 2 (1/on - spacing) sin^2(pi n/on): its slope is zero at both ends, as that of the hyperbolic
    # sines.
    share = np.arange(on + 1) / on
    x = share - (1 - on * spacing) * np.sin(2 * np.pi * share) / (2 * np.pi)
    x = np.concatenate([-upstream[:0:-1], x, 1 + downstream[1:]])
    cells = spec.n_normal - 1
    first = spec.height / cells if spec.first_spacing is None else spec.first_spacing
    beyond = np.maximum(np.maximum(-x, x - 1), 0)
    firsts = first * (1 + (beyond / (spec.first_spacing_doubles or np.inf)) ** 2)
    distance = np.stack(
        [nodes_from_wall(cells, spec.height, f, "grid.first_spacing", "grid.n_normal") for f in firsts.tolist()], axis=1
    )
    raised = diffuse(x, _wall(spec, x), distance)
    y = distance + (1 - distance / spec.height) * raised

    shape = (spec.nk, *y.shape)
    x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
    z = np.broadcast_to((np.arange(spec.nk) * (spec.width / spec.nk))[:, None, None], shape)
    faces = {"inlet": "imin", "outlet": "imax", "lower-wall": "jmin", "upper-wall": "jmax"}
    regions: Regions = {name: ((face, face_range(face, triple(shape[::-1]))),) for name, face in faces.items()}
    regions["bump"] = (("jmin", ((before, before + on + 1), (0, 1), (0, spec.nk))),)
    block = Block("channel", x, y, z, regions)
    period = {"k": (0.0, 0.0, float(spec.width))} if spec.nk > 1 else {}
    if spec.blocks == 1:
        return Grid((block,), period=(period,))
    return cut_along_i(block, (0, before, before + on + 1), ("upstream", "bump", "downstream"), period=period)


def _wall(spec: ChannelBump, x: np.ndarray) -> np.ndarray:
    """Return the height of the lower wall."""
    t, inside = spec.thickness, (x > 0) & (x < 1)
    if spec.shape == "sine-squared":
        return np.where(inside, t * np.sin(np.pi * x) ** 2, 0.0)
    if spec.shape == "sine-fourth":
        return np.where(abs(x - 0.5) < 0.3, t * np.sin(np.pi * (x - 0.2) / 0.6) ** 4, 0.0)
    radius = (0.25 + t * t) / (2 * t)
    return np.where(inside, np.sqrt(radius**2 - np.where(inside, x - 0.5, 0.0) ** 2) - (radius - t), 0.0)
