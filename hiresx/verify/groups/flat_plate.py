"""Flat plate: friction and displacement of a laminar boundary layer against Blasius.

The flow has Mach 0.5, an adiabatic wall and a viscosity proportional to the temperature. For such a gas Blasius's
solution holds in Dorodnitsyn's coordinate: Cf sqrt(Re_x) = 0.6641, and the displacement thickness is 1.7208 x /
sqrt(Re_x). The table has the largest deviations over 0.2 <= x <= 1. The displacement thickness is the integral of rho
(1 - u/U) / rho_edge. U and rho_edge are those at the layer's edge, where the flow is 0.2 % faster than far away. At x =
0.5 the layer has 33 points.
"""

import numpy as np

from hiresx.exact import blasius
from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_least, between

LONG = True

PLATE = CheckRun("flat-plate")
FRICTION = 2 * float(blasius(0.0)[2])
# eta - f far from the wall
DISPLACEMENT = 12.0 - float(blasius(12.0)[0])
# eta of the edge of the layer, from which on the flow counts as the outer flow; 0.99 U is at 4.9
EDGE = 12.0


def lines(run: CompletedRun) -> dict[str, np.ndarray]:
    """Return the flow at the end of the run, as arrays by name: the coordinates "x" (ni,) and "y" (nj,), in units of
    the length scale L, and "rho", "u" and "T" (nj, ni), in the scales of the case."""
    block = run.blocks[0]
    return {"x": block.x[0, 0], "y": block.y[0, :, 0], **{name: run.state(name)[0] for name in ("rho", "u", "T")}}


def compared_range(x: np.ndarray) -> np.ndarray:
    """Return the indexes of the columns of nodes with 0.2 <= x <= 1, at which the boundary layer is compared with
    theory. `x` (ni,): coordinate x of all columns, in units of the length scale L."""
    return np.flatnonzero((x >= 0.2) & (x <= 1.0))


def reynolds(run: CompletedRun, x: np.ndarray) -> np.ndarray:
    """Return the Reynolds number Re_x of the free stream of `run`, (n,), at the distances `x` (n,) from the leading
    edge, in units of the length scale L."""
    assert run.case.gas.reynolds is not None
    return _mach(run) * run.case.gas.reynolds * x


def _mach(run: CompletedRun) -> float:
    return float(run.case.parameters["mach"])


def friction(run: CompletedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates x, in units of the length scale L, and Cf sqrt(Re_x), where Cf is the friction coefficient
    of the plate at the end of `run`, each (n,), at the columns of nodes that are compared with theory. The derivative
    at the wall is the derivative of the polynomial through six nodes; the viscosity is mu = T."""
    found = lines(run)
    i = compared_range(found["x"])
    nodes = found["y"][:6]
    weights = np.linalg.solve(np.vander(nodes, increasing=True).T, np.eye(6)[1])
    stress = found["T"][0, i] * (weights @ found["u"][:6, i]) / run.case.gas.reynolds
    x = found["x"][i]
    return x, stress / (0.5 * _mach(run) ** 2) * np.sqrt(reynolds(run, x))


def profile(run: CompletedRun, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (n,) at the nodes of column `i` of the grid (at one distance from the leading edge), from the
    wall to the edge of the boundary layer, at the end of `run`: the similarity variable eta in Dorodnitsyn's
    coordinate, and u divided by its value at the edge."""
    found = lines(run)
    stretch = np.sqrt(reynolds(run, found["x"][i])) / found["x"][i]
    j = int(np.searchsorted(found["y"] * stretch, EDGE)) + 1
    y, rho, u = found["y"][:j], found["rho"][:j, i] / found["rho"][j - 1, i], found["u"][:j, i]
    steps = 0.5 * (rho[1:] + rho[:-1]) * np.diff(y) * stretch
    return np.concatenate([[0.0], np.cumsum(steps)]), u / u[-1]


def displacement(run: CompletedRun, i: int) -> float:
    """Return the displacement thickness of the boundary layer at the end of `run`, at the column of nodes with the
    index `i`, in units of the similarity variable eta."""
    eta, u = profile(run, i)
    return np.trapezoid(1 - u, eta)


def largest_deviation(ratios: np.ndarray) -> float:
    """Return the deviation from 1, with its sign, of the entry of `ratios` (n,) that differs most from 1."""
    return max(ratios - 1, key=abs)


def friction_error(run: CompletedRun) -> float:
    """Return the relative error of the friction coefficient of the plate with respect to Blasius's solution, with its
    sign, at that of the compared columns of nodes at which it is largest."""
    return largest_deviation(friction(run)[1] / FRICTION)


def displacement_error(run: CompletedRun) -> float:
    """Return the relative error of the displacement thickness with respect to Blasius's solution, with its sign, at
    that of the compared columns of nodes at which it is largest."""
    columns = compared_range(run.blocks[0].x[0, 0])
    return largest_deviation(np.array([displacement(run, i) for i in columns]) / DISPLACEMENT)


def points_in_layer(run: CompletedRun) -> float:
    """Return the number of nodes across the boundary layer (where u is less than 0.99 of its value at the edge) at x =
    0.5 L."""
    i = int(np.searchsorted(run.blocks[0].x[0, 0], 0.5))
    return float(np.sum(profile(run, i)[1] < 0.99))


def curves(run: CompletedRun) -> dict[str, np.ndarray]:
    """Return the curves of the picture of the boundary layer as arrays by name: "friction", which is Cf sqrt(Re_x),
    over "x", and "velocity", u over its value at the edge, over the similarity variable "eta", at the column of nodes
    whose coordinate x, near 0.5 L, is the entry "place"."""
    x, cf = friction(run)
    i = int(np.searchsorted(run.blocks[0].x[0, 0], 0.5))
    eta, u = profile(run, i)
    return {"x": x, "friction": cf, "eta": eta, "velocity": u, "place": np.array([run.blocks[0].x[0, 0, i]])}


CHECKS = [
    Check("points in the layer at x = 0.5", at_least(20), points_in_layer, (PLATE,)),
    Check("Cf sqrt(Re_x), relative deviation", between(-0.01, 0.01), friction_error, (PLATE,), curves),
    Check("displacement, relative deviation", between(-0.01, 0.01), displacement_error, (PLATE,)),
]
