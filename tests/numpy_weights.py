"""Nonlinear interpolations in NumPy, from their definitions: polynomials through nodes' values, integrals of their
derivatives' squares, weights of the papers. Nothing here is a coefficient that a kernel has too."""

import numpy as np
from numpy.polynomial import Polynomial

EPSILON, CUTOFF = 1e-6, 1e-5
# Offsets from node i of the parts of the stencils, by number of nodes.
PARTS = {
    5: ((-2, -1, 0), (-1, 0, 1), (0, 1, 2)),
    6: ((-2, -1, 0), (-1, 0, 1), (0, 1, 2), (0, 1, 2, 3)),
    7: ((-3, -2, -1, 0), (-2, -1, 0, 1), (-1, 0, 1, 2), (0, 1, 2, 3)),
}
SPAN = {5: (-2, -1, 0, 1, 2), 6: (-2, -1, 0, 1, 2, 3), 7: (-3, -2, -1, 0, 1, 2, 3)}


def lagrange(nodes) -> list[Polynomial]:
    """Of each node the polynomial that is 1 there and 0 at the others."""
    found = []
    for node in nodes:
        others = [other for other in nodes if other != node]
        found.append(Polynomial.fromroots(others) / np.prod([node - other for other in others]))
    return found


def derivative_at_node(nodes, values: np.ndarray, order: int) -> np.ndarray:
    """Of the polynomial through `values` (node, ...), at the offset 0."""
    return np.tensordot([p.deriv(order)(0.0) for p in lagrange(nodes)], values, axes=1)


def smoothness(nodes, values: np.ndarray) -> np.ndarray:
    """The sum over all derivatives of the integral of their squares from -1/2 to 1/2, of values (node, ...)."""
    points, shares = np.polynomial.legendre.leggauss(8)
    total = 0.0
    for order in range(1, len(nodes)):
        at = np.array([p.deriv(order)(points / 2) for p in lagrange(nodes)])  # node, point
        total = total + np.tensordot(shares / 2, np.tensordot(at, values, axes=(0, 0)) ** 2, axes=1)
    return total


def ideal_weights(count: int) -> np.ndarray:
    """Of the parts, those that make the value at 1/2 that of the polynomial through all nodes."""
    span = SPAN[count]
    rows = np.zeros((len(span), len(PARTS[count])))
    for k, part in enumerate(PARTS[count]):
        for node, p in zip(part, lagrange(part), strict=True):
            rows[span.index(node), k] = p(0.5)
    found, *_ = np.linalg.lstsq(rows, [p(0.5) for p in lagrange(span)], rcond=None)
    return found


def over_ideal(kind: str, count: int, values: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """The weights over the ideal ones, (part, ...)."""
    if kind == "linear":
        return np.ones_like(betas)
    if kind == "js":
        return 1 / (EPSILON + betas) ** 2
    if kind == "za":
        outer = [values[:3], values[2:]]
        one, two = (
            [abs(derivative_at_node(PARTS[5][k], v, order)) for k, v in zip((0, 2), outer, strict=True)]
            for order in (1, 2)
        )
        tau = (one[0] - one[1]) ** 2 + 13 / 12 * (two[0] - two[1]) ** 2
        # the kernel's epsilon stands in both smoothnesses
        return 1 + tau / (2 * EPSILON + betas[0] + betas[2] - tau) * tau / (EPSILON + betas)
    tau = {
        5: lambda: betas[0] - betas[2],
        6: lambda: smoothness(SPAN[6], values) - (betas[0] + 6 * betas[1] + betas[2]) / 8,
        7: lambda: betas[0] + 3 * betas[1] - 3 * betas[2] - betas[3],
    }[count]()
    quotient = abs(tau) / (EPSILON + betas)
    if kind == "z":
        return 1 + quotient**2
    gamma = (1 + quotient) ** 6
    return np.where(gamma / gamma.sum(axis=0) < adapted_cutoff(kind, values), 0.0, 1.0)


def adapted_cutoff(kind: str, values: np.ndarray) -> np.ndarray | float:
    """C_T."""
    if kind == "teno":
        return CUTOFF
    limit = 0.24
    noise = 0.9 * limit / (1 - 0.9 * limit) * EPSILON
    d = np.diff(values, axis=0)
    eta = (2 * abs(d[1:] * d[:-1]) + noise) / (d[1:] ** 2 + d[:-1] ** 2 + noise)
    m = 1 - np.minimum(1, eta.min(axis=0) / limit)
    return CUTOFF * 10.0 ** -np.floor(5 * (1 - m) ** 4 * (1 + 4 * m))


def value_right(kind: str, count: int, values: np.ndarray) -> np.ndarray:
    """The value at 1/2 from the values (node, ...) of a stencil of `count` nodes about the offset 0."""
    span, centre = SPAN[count], values[SPAN[count].index(0)]
    values = values - centre
    parts = [(part, values[span.index(part[0]) : span.index(part[-1]) + 1]) for part in PARTS[count]]
    betas = np.stack([smoothness(*part) for part in parts])
    weights = over_ideal(kind, count, values, betas)
    weights = weights * ideal_weights(count).reshape(-1, *[1] * (weights.ndim - 1))
    at_half = np.stack([np.tensordot([p(0.5) for p in lagrange(nodes)], v, axes=1) for nodes, v in parts])
    return centre + (weights * at_half).sum(axis=0) / weights.sum(axis=0)
