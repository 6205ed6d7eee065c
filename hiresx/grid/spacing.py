"""Node distributions along one line."""

from collections.abc import Callable
from functools import partial

import numpy as np

from hiresx.case.grids import Cylinder, PlanarJet, RoundJet, Sphere
from hiresx.errors import HiresxError
from hiresx.grid.blocks import MINIMUM_NODES


def stretch(s: np.ndarray, cluster: str, ratio: float) -> np.ndarray:
    """Map uniformly spaced values `s` in [0, 1], an array of any shape, to stretched values in [0, 1]. The largest
    spacing is `ratio` times the smallest one in the limit of many nodes. `cluster`: where the spacing is smallest. The
    maps "lower", "upper" and "both" are hyperbolic tangents, "centre" is a hyperbolic sine. Raises HiresxError for a
    ratio below 1."""
    if ratio < 1.0:
        raise HiresxError(
            f"a stretching ratio of {ratio:g} (largest over smallest spacing) is below 1",
            "give a ratio of 1 (uniform) or more, and choose with `cluster` where the spacing is smallest",
        )
    if ratio == 1.0:
        return s
    if cluster == "centre":
        beta = np.arccosh(ratio)
        return 0.5 + 0.5 * np.sinh(beta * (2 * s - 1)) / np.sinh(beta)
    beta = np.arccosh(np.sqrt(ratio))
    if cluster == "lower":
        return 1 + np.tanh(beta * (s - 1)) / np.tanh(beta)
    if cluster == "upper":
        return np.tanh(beta * s) / np.tanh(beta)
    return 0.5 + 0.5 * np.tanh(beta * (2 * s - 1)) / np.tanh(beta)


def nodes_from_wall(
    cells: int, length: float, first: float, name: str, count: str = "the number of cells"
) -> np.ndarray:
    """Return positions (cells + 1,) from 0 to `length` along a hyperbolic sine, of which the second is `first`. Metrics
    beyond a wall use nodes that are extended by point reflection; a hyperbolic sine is an odd function, so that this
    extension is smooth. `name`, `count`: the keys of the case that give the first spacing and the number of cells, for
    error messages. Raises HiresxError if the first spacing is larger than the uniform one, or far too small for the
    number of cells."""
    rate = _rate(
        lambda b: np.sinh(b * cells) / (np.sinh(b) * cells), length / (first * cells), cells, name, count, first
    )
    n = np.arange(cells + 1)
    return length * (n / cells if rate == 0 else np.sinh(rate * n) / np.sinh(rate * cells))


def distances_to_ellipse(spec: Cylinder | Sphere, t: np.ndarray) -> np.ndarray:
    """Return the distances (n_normal, m) from the origin of the n_normal nodes on each of m rays, which lead from a
    circle to an ellipse, both around the origin. `spec`: the table [grid] of a case file with the radius of the circle,
    the distances of the ellipse from it ahead and beside, and the spacing at the circle. `t` (m,): the angles of the
    rays from the upstream axis, in radians."""
    a, b = spec.radius + spec.standoff_axis, spec.radius + spec.standoff_side
    outer = a * b / np.hypot(b * np.cos(t), a * np.sin(t))
    cells = spec.n_normal - 1
    first = spec.standoff_axis / cells if spec.first_spacing is None else spec.first_spacing
    share = (
        nodes_from_wall(cells, spec.standoff_axis, first, "grid.first_spacing", "grid.n_normal") / spec.standoff_axis
    )
    return spec.radius + share[:, None] * (outer - spec.radius)


def nodes_from_centre(
    cells: int, length: float, slope: float, name: str, count: str = "the number of cells"
) -> np.ndarray:
    """Return positions (cells + 1,) from 0 to `length` along a hyperbolic sine. `slope`: the derivative of the position
    with respect to the node number at 0. If two such lines are joined at 0, the slope is continuous and the curvature
    is zero there. `name`, `count`: the keys of the case that give the slope and the number of cells, for error
    messages. Raises HiresxError if the slope is larger than the uniform spacing, or far too small for the number of
    cells."""
    rate = _rate(lambda b: np.sinh(b * cells) / (b * cells), length / (slope * cells), cells, name, count, slope)
    n = np.arange(cells + 1)
    return length * (n / cells if rate == 0 else np.sinh(rate * n) / np.sinh(rate * cells))


def _rate(growth: Callable[[float], float], target: float, cells: int, name: str, count: str, spacing: float) -> float:
    """Return b > 0 with growth(b) = target, where growth rises from 1 at b = 0. The result is 0 if the line is uniform
    to round-off."""
    if target < 1 - 1e-12:
        raise HiresxError(
            f"{name} = {spacing:g} is larger than the uniform spacing {spacing * target:.6g} of {cells} cells",
            f"lower {name} or {count}",
        )
    if target < 1 + 1e-12:
        return 0.0
    low, high = 0.0, 1.0 / cells
    while growth(high) < target:
        low, high = high, 2 * high
        if high * cells > 500:
            raise HiresxError(f"{name} = {spacing:g} is too small for {cells} cells", f"raise {name} or {count}")
    return _bisect(lambda b: growth(b) - target if b > 0 else -1.0, low, high)


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function that is negative at `low` and positive at `high`, to the last bit."""
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return middle


def spacing_into_sponge(first: float, stretching: float, end: float, sponge_stretching: float, x: float) -> float:
    """Return the grid spacing sqrt(first^2 + (x ln stretching)^2) at the distance x >= 0 from the point with the
    spacing `first`. Far from this point it grows from node to node by the factor `stretching`. Beyond the distance
    `end`, where a sponge (a damping zone) begins, the growth of the spacing from node to node changes smoothly to the
    factor `sponge_stretching`."""
    b, added = np.log(stretching), max(np.log(sponge_stretching / stretching), 0.0)
    spacing = np.sqrt(first**2 + (b * x) ** 2)
    if x > end:
        # The slope changes over ten spacings; the square makes the first derivative of the spacing continuous.
        bend = 10 * np.sqrt(first**2 + (b * end) ** 2)
        spacing += added * (x - end) ** 2 / (x - end + bend)
    return spacing


def march(spacing: Callable[[float], float], end: float) -> np.ndarray:
    """Return the positions x (n,) of nodes from 0 to the first node at or beyond `end`, with dx/dn = spacing(x) for the
    node number n, integrated by four Runge-Kutta steps per node."""
    x, nodes, h = 0.0, [0.0], 0.25
    # Tolerance of a thousandth of a cell: no extra node if rounding makes the last one end just before `end`.
    while x < end - 1e-3 * spacing(x):
        for _ in range(4):
            k1 = spacing(x)
            k2 = spacing(x + 0.5 * h * k1)
            k3 = spacing(x + 0.5 * h * k2)
            k4 = spacing(x + h * k3)
            x += h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        nodes.append(x)
    return np.array(nodes)


def nodes_along_jet(spec: PlanarJet | RoundJet) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coordinates x of the nodes along the axis of a jet whose nozzle ends at x = 0, as three arrays (n,) in
    reference lengths: nodes inside the nozzle (x < 0), nodes outside it upstream (x < 0), and nodes downstream from x =
    0 through the sponge (the damping zone). The spacing follows `spacing_into_sponge`. `spec`: the table [grid] of a
    case file with the lengths of the three lines, each of which ends at the first node at or beyond its length. Raises
    HiresxError if a line upstream has too few nodes."""
    downstream = march(
        partial(spacing_into_sponge, spec.exit_spacing, spec.stretching[0], spec.length, spec.sponge_stretching),
        spec.length + spec.sponge_length,
    )
    # Upstream lines are mirror images of the downstream one, so that grid lines through the exit plane have no kink.
    farthest = max(spec.nozzle_length, spec.upstream)
    ahead = march(partial(spacing_into_sponge, spec.exit_spacing, spec.stretching[0], np.inf, 1.0), farthest)
    inside, outside = (
        -ahead[np.searchsorted(ahead, length - 1e-3 * spec.exit_spacing) : 0 : -1]
        for length in (spec.nozzle_length, spec.upstream)
    )
    for key, length, nodes in (("nozzle_length", spec.nozzle_length, inside), ("upstream", spec.upstream, outside)):
        if len(nodes) < MINIMUM_NODES:
            raise HiresxError(
                f"grid.exit_spacing = {spec.exit_spacing:g} leaves {len(nodes)} nodes along x in "
                f"grid.{key} = {length:g}; the 6th-order stencil needs {MINIMUM_NODES} or more",
                f"give a smaller grid.exit_spacing, below about {length / MINIMUM_NODES:.2g}, or a larger grid.{key}",
            )
    return inside, outside, downstream
