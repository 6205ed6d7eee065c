"""Compressible Couette flow with constant viscosity, steady."""

from numpy.polynomial.legendre import leggauss


def exact(x, y, z, t, *, wall_speed, T_lower, T_upper, gamma, prandtl):
    """Holds for t -> infinity. The uniform pressure is that of a mean density of 1 between the walls."""
    heating = 0.5 * prandtl * (gamma - 1) * wall_speed**2
    T = T_lower + (T_upper - T_lower) * y + heating * y * (1 - y)
    p = _pressure(T_lower, T_upper, heating, gamma)
    return gamma * p / T, wall_speed * y, 0.0, 0.0, p


def _pressure(T_lower, T_upper, heating, gamma):
    """p with integral_0^1 gamma p / T dy = 1, by Gauss-Legendre quadrature (the integrand is analytic)."""
    nodes, weights = leggauss(20)
    y = 0.5 * (nodes + 1)
    T = T_lower + (T_upper - T_lower) * y + heating * y * (1 - y)
    return 1 / (gamma * (0.5 * weights / T).sum())
