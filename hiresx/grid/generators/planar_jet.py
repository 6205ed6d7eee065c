"""Planar jet out of a nozzle: four Cartesian blocks, lengths in nozzle heights, exit plane x = 0, axis y = 0.

    +--------+------------------------+
    | above  |                        |    above, below   outside the nozzle, x < 0
    +--------+                        |    nozzle         inside it, x < 0, |y| <= 1/2
     lip     |                        |    jet            x >= 0, the whole height
    +--------+                        |
    | nozzle |          jet           |    The three upstream blocks end one spacing ahead of x = 0; the nodes of the
    +--------+                        |    exit plane belong to `jet`, whose face imin is connected to the three and is
     lip     |                        |    a wall on the lip, its corners y = +-1/2 and +-(1/2 + lip) included.
    +--------+                        |
    | below  |                        |
    +--------+------------------------+

Regions: "walls" (inside and outside of the nozzle, and the lip), "inlet" (nozzle, imin), "upstream" (above and below,
imin), "outlet" (jet, imax), "sides" (the outermost faces along y).
"""

from functools import partial

import numpy as np

from hiresx.case.grids import PlanarJet
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, face_range, whole_faces
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.spacing import march, nodes_along_jet, spacing_into_sponge


def generate(spec: PlanarJet) -> Grid:
    """Return the grid of a planar jet out of a nozzle, four Cartesian blocks, with the parameters `spec`, the table
    [grid] of a case file. Lengths are in nozzle heights. The nozzle ends at x = 0, and the jet axis is y = 0.

    Along x the spacing grows to both sides of x = 0 as sqrt(exit_spacing^2 + (b x)^2), with b = ln(stretching). Along y
    the spacing is uniform along the nozzle lip and through the boundary layer, and grows outwards from the lip like
    that along x. In the sponge (the damping zone downstream) the growth changes smoothly to `sponge_stretching`. Every
    line ends at the first node at or beyond the length that `spec` gives for it. Along z there are nk nodes. The period
    along z is `width`, and the node at the upper end is left out."""
    inside, outside, downstream = nodes_along_jet(spec)
    nozzle, lip, beyond = _heights(spec)
    positive = np.concatenate([nozzle[nozzle > 0], lip[1:], beyond[1:]])
    y = np.concatenate([-positive[::-1], [0.0], positive])

    # Rows of the jet block: lower lip [a, b], nozzle [b, c], upper lip [c, d], corners included.
    c = int(np.flatnonzero(y == 0.5)[0])
    d = c + len(lip) - 1
    a, b = len(y) - 1 - d, len(y) - 1 - c
    nk, last = spec.nk, len(y)
    z = np.arange(nk) * (spec.width / nk)
    blocks = [
        _block("jet", downstream, y, z),
        _block("nozzle", inside, y[b : c + 1], z),
        _block("above", outside, y[d:], z),
        _block("below", outside, y[: a + 1], z),
    ]
    jet, inner, above, below = blocks
    column, depth = (0, 1), (0, nk)
    lips = ((column, (a, b + 1), depth), (column, (c, d + 1), depth))
    jet.regions.update(
        walls=tuple(("imin", rows) for rows in lips),
        outlet=whole_faces(jet, "imax"),
        sides=whole_faces(jet, "jmin", "jmax"),
    )
    inner.regions.update(walls=whole_faces(inner, "jmin", "jmax"), inlet=whole_faces(inner, "imin"))
    above.regions.update(
        walls=whole_faces(above, "jmin"), sides=whole_faces(above, "jmax"), upstream=whole_faces(above, "imin")
    )
    below.regions.update(
        walls=whole_faces(below, "jmax"), sides=whole_faces(below, "jmin"), upstream=whole_faces(below, "imin")
    )

    connections = []
    # (donor, first row of the donor in the jet block, rows of the jet block that are connected with it)
    for donor, row, rows in ((1, b, (b + 1, c)), (2, d, (d + 1, last)), (3, 0, (0, a))):
        ni = blocks[donor].size[0]
        connections += [
            Connection(0, "imin", (column, rows, depth), donor, offset=(ni, -row, 0)),
            Connection(donor, "imax", face_range("imax", blocks[donor].size), 0, offset=(-ni, row, 0)),
        ]
    period = {"k": (0.0, 0.0, float(spec.width))} if nk > 1 else {}
    return Grid(tuple(blocks), tuple(connections), tuple(dict(period) for _ in blocks))


def _block(name: str, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Block:
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    return Block(name, x, y, z)


def _heights(spec: PlanarJet) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes along y >= 0: inside the nozzle (0 to 1/2), along the lip, and beyond it."""
    cells = spec.points_per_height
    if spec.half_height <= 0.5 + spec.lip_thickness:
        raise HiresxError(
            f"grid.half_height = {spec.half_height:g} does not reach beyond the lip at {0.5 + spec.lip_thickness:g}",
            "give a larger grid.half_height",
        )
    if cells % 2:
        raise HiresxError(
            f"grid.points_per_height = {cells} is odd: the axis y = 0 is a line of nodes", "give an even number"
        )
    # The spacing is uniform along the lip and through the boundary layer, and divides the lip evenly. Behind the edges
    # of the lip the blocks then continue each other's rows.
    lip_cells = max(round(spec.lip_thickness * spec.boundary_layer_points / spec.boundary_layer_thickness), 1)
    fine = spec.lip_thickness / lip_cells
    lip = 0.5 + fine * np.arange(lip_cells + 1)
    reach = 0.5 + spec.lip_thickness
    beyond = reach + march(
        partial(spacing_into_sponge, fine, spec.stretching[1], spec.half_height - reach, spec.sponge_stretching),
        spec.half_height - reach + spec.sponge_height,
    )
    lip[-1] = reach
    return 0.5 - _from_nozzle_wall(spec, fine, cells // 2)[::-1], lip, beyond


def _from_nozzle_wall(spec: PlanarJet, fine: float, cells: int) -> np.ndarray:
    """Return the distances 0 to 1/2 from the nozzle's wall. The spacing is `fine` through the layer, then grows towards
    the axis, where it becomes constant, at the rate with which `cells` fit."""
    layer = round(spec.boundary_layer_thickness / fine)
    if layer > cells - 2 or fine * cells > 0.5:
        raise HiresxError(
            f"{2 * cells} cells across the nozzle do not fit with {spec.boundary_layer_points} in each layer of "
            f"{spec.boundary_layer_thickness:g} h",
            "change grid.points_per_height, grid.boundary_layer_points or grid.boundary_layer_thickness",
        )
    # Logarithmic growth rate over the cells of the core: a trapezoid with flanks of a fifth each; and its integral.
    s = np.clip((np.arange(cells) + 0.5 - layer) / (cells - layer), 0.0, 1.0)
    growth = np.interp(s, *_trapezoid_integral(0.2))
    low, high = 0.0, 100.0
    for _ in range(100):
        rate = 0.5 * (low + high)
        low, high = (rate, high) if fine * np.sum(np.exp(rate * growth)) < 0.5 else (low, rate)
    distance = np.concatenate([[0.0], np.cumsum(fine * np.exp(rate * growth))])
    distance[-1] = 0.5
    return distance


def _trapezoid_integral(flank: float) -> tuple[np.ndarray, np.ndarray]:
    """Return samples on [0, 1] of the integral of the trapezoid that is 0 at both ends and 1 between its flanks."""
    s = np.linspace(0.0, 1.0, 2001)
    height = np.interp(s, [0.0, flank, 1 - flank, 1.0], [0.0, 1.0, 1.0, 0.0])
    return s, np.concatenate([[0.0], np.cumsum(0.5 * (height[1:] + height[:-1]) * np.diff(s))])
