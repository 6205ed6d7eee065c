"""Le Blanc's shock tube: exact solution of the Riemann problem."""

from hiresx.exact import riemann


def exact(x, y, z, t, *, rho_left, u_left, p_left, rho_right, u_right, p_right, jump_at, gamma):
    left, right = (rho_left, u_left, p_left), (rho_right, u_right, p_right)
    return riemann(x, t, left=left, right=right, x0=jump_at, gamma=gamma)


def initial(x, y, z, *, rho_left, u_left, p_left, rho_right, u_right, p_right, jump_at, gamma):
    left, right = (rho_left, u_left, p_left), (rho_right, u_right, p_right)
    return riemann(x, 0.0, left=left, right=right, x0=jump_at, gamma=gamma)
