"""Round jet out of a nozzle: a butterfly grid, lengths in nozzle diameters, exit plane x = 0, the x axis its axis.

    r
    ^  +---------+------------------------+
    |  | outside |                        |    core      around the axis, a square in its section, from the inlet to
    |  +---------+                        |              the outlet; i, j, k along x, y, z
    |     lip    |          jet           |    nozzle    around it inside the nozzle, x < 0, r <= 1/2
    |  +---------+                        |    outside   outside the nozzle, x < 0, r >= 1/2 + lip
    |  | nozzle  |                        |    jet       around the core, x >= 0; holds the nodes of the exit plane
    |  +---------+------------------------+
    |  |              core                |    i, j, k of the rings along x, r and the azimuth; k = 0 is y > 0, z = 0,
    +--+----------------------------------+--> x     and k runs from y to z; they close on themselves.

Every node belongs to one block; its neighbours begin one spacing on. Where ring and square meet, the rays of the
square's corners belong to its sides along y, so that the grid is its own mirror image in y and in z. At the lip the
face imin of `jet` is a wall, its edges r = 1/2 and r = 1/2 + lip included.

Regions: "walls" (inside and outside of the nozzle, and the lip), "inlet" (core and nozzle, imin), "upstream" (outside,
imin), "outlet" (core and jet, imax), "sides" (the outermost cylinder).
"""

from functools import partial
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid.blocks import MINIMUM_NODES, Block, face_range, whole_faces
from hiresx.grid.butterfly import butterfly
from hiresx.grid.connections import IDENTITY, Connection, Grid
from hiresx.grid.spacing import march, nodes_along_jet, spacing_into_sponge

CORE, JET, NOZZLE, OUTSIDE = range(4)
# Growth of the spacing from layer to layer in the nozzle, as a logarithm, from which on the grid is rejected.
STEEPEST = 0.25
# Numbers of rings around the core that are tried to name those that fit.
MOST_TRIED = 100
# Bounds of the half width of the core: it must be positive and must not reach the nozzle's boundary layer.
SMALLEST, LARGEST = 0.08, 0.45


def generate(spec: Any) -> Grid:
    """Return the grid of a round jet out of a nozzle, with the parameters `spec`, the table [grid] of a case file
    (`hiresx.case.grids.RoundJet`). It is a butterfly grid: a square core around the axis, and a ring around the core.
    Lengths are in nozzle diameters. The nozzle ends at x = 0, and the jet axis is the x axis.

    Along x, and along r outside of the nozzle lip, the spacing is that of the planar jet
    (`hiresx.grid.spacing.spacing_into_sponge`). In the boundary layer of the nozzle the layers of the ring have the
    same spacing as along the lip. Further inside, their spacing changes to that of the cells in the core, which
    determines the size of the core. The cross-section is the same at every x (`hiresx.grid.butterfly`). It is polar
    from the boundary layer outwards."""
    inside, around, downstream = nodes_along_jet(spec)

    m = spec.points_around // 4
    radii, wall, lip = _radii(spec, m)
    layer = lip * spec.boundary_layer_thickness / spec.lip_thickness
    square, ring = butterfly(m, radii[: wall + 1], (1, max(wall - round(layer), 2)))
    ring = np.concatenate([ring, np.outer(radii[wall + 1 :] / radii[wall], ring[-1])])

    blocks = (
        _block("core", np.concatenate([inside, downstream]), square.T),
        _block("jet", downstream, ring),
        _block("nozzle", inside, ring[:wall]),
        _block("outside", around, ring[wall + lip - 1 :]),
    )
    core, jet, nozzle, outside = blocks
    column = (0, 1)
    edge = ("imin", (column, (wall - 1, wall + lip), (0, 4 * m)))
    core.regions.update(inlet=whole_faces(core, "imin"), outlet=whole_faces(core, "imax"))
    jet.regions.update(walls=(edge,), outlet=whole_faces(jet, "imax"), sides=whole_faces(jet, "jmax"))
    nozzle.regions.update(walls=whole_faces(nozzle, "jmax"), inlet=whole_faces(nozzle, "imin"))
    outside.regions.update(
        walls=whole_faces(outside, "jmin"), sides=whole_faces(outside, "jmax"), upstream=whole_faces(outside, "imin")
    )

    connections = [
        *_around(blocks, JET, len(inside), m),
        *_around(blocks, NOZZLE, 0, m),
        *(seam for b in (JET, NOZZLE, OUTSIDE) for seam in _self_connections(blocks, b)),
    ]
    # (donor, first layer of the donor in the jet block, layers of the jet block that are connected with it)
    for donor, row, rows in ((NOZZLE, 0, (0, wall - 1)), (OUTSIDE, wall + lip - 1, (wall + lip, len(ring)))):
        n = blocks[donor].size[0]
        connections += [
            Connection(JET, "imin", (column, rows, (0, 4 * m)), donor, offset=(n, -row, 0)),
            Connection(donor, "imax", face_range("imax", blocks[donor].size), JET, offset=(-n, row, 0)),
        ]
    return Grid(blocks, tuple(connections))


def _block(name: str, x: np.ndarray, section: np.ndarray) -> Block:
    """Return the block with the cross-section `section` [j, k], complex positions, extruded along x."""
    shape = (*section.T.shape, len(x))
    y, z = (np.broadcast_to(part.T[:, :, None], shape) for part in (section.real, section.imag))
    return Block(name, np.broadcast_to(x, shape), y, z)


def _self_connections(blocks: tuple[Block, ...], b: int) -> list[Connection]:
    """Yield the connections of a ring with itself."""
    size = blocks[b].size
    return [
        Connection(b, face, face_range(face, size), b, offset=(0, 0, step * size[2]))
        for face, step in (("kmin", 1), ("kmax", -1))
    ]


def _around(blocks: tuple[Block, ...], b: int, first: int, m: int) -> list[Connection]:
    """Yield the connections of a ring with the core, of which the ring begins at the node `first` along x. In the core,
    y increases with j and z with k."""
    n, h, rays = blocks[b].size[0], m // 2, 4 * m
    # Quarter turns of (j, k): from a ring's (layer, ray) to the core's nodes on its sides y+, z+, y-, z-.
    turned = (IDENTITY, ((1, 0, 0), (0, 0, -1), (0, 1, 0)), ((1, 0, 0), (0, -1, 0), (0, 0, -1)),
              ((1, 0, 0), (0, 0, 1), (0, -1, 0)))  # fmt: skip
    # (side, first ray, last ray + 1, offset): the rays of the corners belong to the sides along y, and the seam divides
    # y+
    inwards = (
        (0, 0, h + 1, (first, m + 1, h)),
        (0, rays - h, rays, (first, m + 1, h - rays)),
        (1, h + 1, h + m, (first, m + h, m + 1)),
        (2, h + m, h + 2 * m + 1, (first, -1, 2 * m + h)),
        (3, h + 2 * m + 1, h + 3 * m, (first, -h - 2 * m, -1)),
    )
    found = [
        Connection(b, "jmin", ((0, n), (0, 1), (lo, hi)), CORE, turned[side], offset)
        for side, lo, hi, offset in inwards
    ]
    along, whole, low, high = (first, first + n), (0, m + 1), (0, 1), (m, m + 1)
    outwards = (
        (0, "jmax", (along, high, (h, m + 1)), (-first, -m - 1, -h)),
        (0, "jmax", (along, high, (0, h)), (-first, -m - 1, rays - h)),
        (3, "kmax", (along, whole, high), (-first, -m - 1, m + h)),
        (2, "jmin", (along, low, whole), (-first, -1, 2 * m + h)),
        (1, "kmin", (along, whole, low), (-first, -1, 2 * m + h)),
    )
    # The connections in the opposite direction: the inverse turn, which for z+ and z- is that of the other side.
    return found + [Connection(CORE, face, range_, b, turned[side], offset) for side, face, range_, offset in outwards]


def _radii(spec: Any, m: int) -> tuple[np.ndarray, int, int]:
    """Return (mean radius of the core's edge and radii of all layers of the ring, number of the layer on the nozzle's
    wall, cells along the lip)."""
    reach = 0.5 + spec.lip_thickness
    if spec.radius <= reach:
        raise HiresxError(
            f"grid.radius = {spec.radius:g} does not reach beyond the lip at {reach:g}", "give a larger grid.radius"
        )
    # The spacing is uniform along the lip and through the boundary layer, and divides the lip evenly.
    lip_cells = max(round(spec.lip_thickness * spec.boundary_layer_points / spec.boundary_layer_thickness), 1)
    fine = spec.lip_thickness / lip_cells
    inner = _from_core(spec, fine, m)
    beyond = march(
        partial(spacing_into_sponge, fine, spec.stretching[1], spec.radius - reach, spec.sponge_stretching),
        spec.radius - reach + spec.sponge_height,
    )
    lip = 0.5 + fine * np.arange(1, lip_cells)
    return np.concatenate([inner, lip, reach + beyond]), len(inner) - 1, lip_cells


def _from_core(spec: Any, fine: float, m: int) -> np.ndarray:
    """Return the mean radius of the core's edge, and the radii of the layers from there to the nozzle's wall at 1/2."""
    layer = round(spec.boundary_layer_thickness / fine)
    least = max(layer + 4, MINIMUM_NODES)
    cells, rest = divmod(spec.points_per_diameter - m, 2)
    if cells >= least and not rest and (found := _rings(cells, layer, fine, m)) is not None:
        return found
    fitting = [m + 2 * n for n in range(least, least + MOST_TRIED) if _rings(n, layer, fine, m) is not None]
    nearest = sorted(sorted(fitting, key=lambda n: abs(n - spec.points_per_diameter))[:3])
    raise HiresxError(
        f"grid.points_per_diameter = {spec.points_per_diameter}: these cells across the nozzle do not fit with "
        f"{m} across its core (a quarter of points_around) and {layer} in each layer of "
        f"{spec.boundary_layer_thickness:g} D",
        f"with these keys {', '.join(map(str, nearest))} fit"
        if nearest
        else "change points_around, boundary_layer_points or boundary_layer_thickness",
    )


def _rings(cells: int, layer: int, fine: float, m: int) -> np.ndarray | None:
    """Return the radii of the edge of the core and of the `cells` rings around it, of which the outer `layer` have the
    spacing `fine`; None if the spacing would have to change too fast."""
    # In index space the edge of the core is a circle of 4 m nodes: its spacing along the rays, and the growth of the
    # spacing, are those of a conformal map. This growth is reduced smoothly to zero, and a second one leads to `fine`
    # before the layer.
    edge = 2 * np.pi / (4 * m)
    u = np.minimum((np.arange(cells) + 0.5) / (cells - layer), 1.0)
    fading = edge * (cells - layer) * (1 - (1 - u) ** 3) / 3
    turning = u**3 * (10 - 15 * u + 6 * u**2)

    def radii(core: float) -> tuple[np.ndarray, float]:
        rate = np.log(fine / (edge * core)) - edge * (cells - layer) / 3
        return core + np.append(0.0, np.cumsum(edge * core * np.exp(fading + rate * turning))), rate

    low, high = SMALLEST, LARGEST
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if radii(middle)[0][-1] < 0.5 else (low, middle)
    found, rate = radii(low)
    if abs(found[-1] - 0.5) > 1e-6 or abs(rate) * 1.875 / (cells - layer) > STEEPEST:
        return None
    found[-1] = 0.5
    return found
