"""The 123 problem: exact solution of the Riemann problem."""

from hiresx.exact import riemann


def exact(x, y, z, t, *, rho_left, u_left, p_left, rho_right, u_right, p_right, jump_at, gamma):
    """Return rho, u, v, w and p of the Riemann problem with the given left and right states at the places x, y, z
    (arrays of one shape) and the time t, in the scales of the case. `jump_at`: x of the discontinuity at t = 0. See
    `hiresx.exact.shock_tube.riemann`."""
    left, right = (rho_left, u_left, p_left), (rho_right, u_right, p_right)
    return riemann(x, t, left=left, right=right, x0=jump_at, gamma=gamma)


def initial(x, y, z, *, rho_left, u_left, p_left, rho_right, u_right, p_right, jump_at, gamma):
    """Return the result of `exact` at t = 0."""
    left, right = (rho_left, u_left, p_left), (rho_right, u_right, p_right)
    return riemann(x, 0.0, left=left, right=right, x0=jump_at, gamma=gamma)
