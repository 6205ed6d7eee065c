"""Blasius's layer on an adiabatic plate with its leading edge at x = 0."""

import numpy as np

from hiresx.exact import blasius, crocco_busemann


def exact(x, y, z, t, *, mach, gamma, prandtl, reynolds):
    """Return rho, u, v, w and p of the Blasius boundary layer with mu proportional to T, at the places x, y, z (arrays
    of one shape), in the scales of the case. The pressure is uniform. Ahead of the plate the flow is the free stream.

    The similarity variable is that of Dorodnitsyn, d(eta) = rho dy sqrt(U / (nu x)). The temperature follows from u by
    the relation of Crocco and Busemann with the recovery factor sqrt(Pr). Boundary-layer theory is not valid at small
    Re_x. `mach`: Mach number of the free stream. `prandtl` and `reynolds`: Pr, and Re_c of the case.
    """
    x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    on_plate = x > 0
    along = np.where(on_plate, x, 1.0)
    stretch = np.sqrt(mach * reynolds / along)
    heating = np.sqrt(prandtl) * 0.5 * (gamma - 1) * mach**2
    curvature = 2 * blasius(0.0)[2]

    # y sqrt(U / (nu x)) is the integral of T d(eta), T = 1 + heating (1 - f'^2); Blasius's equation makes that
    # eta + heating (eta - f f' - 2 f'' + 2 f''(0)). The heating is small, so each round gains more than a digit.
    eta = y * stretch
    for _ in range(16):
        f, fp, fpp = blasius(eta)
        eta = np.maximum(y * stretch - heating * (eta - f * fp - 2 * fpp + curvature), 0.0)
    f, fp, _ = blasius(eta)
    T = crocco_busemann(mach * fp, T_wall=None, T_edge=1.0, u_edge=mach, gamma=gamma, recovery=np.sqrt(prandtl))
    v = 0.5 * mach / (stretch * along) * (y * stretch * fp - T * f)
    return (
        np.where(on_plate, 1 / T, 1.0),
        np.where(on_plate, mach * fp, mach),
        np.where(on_plate, v, 0.0),
        0.0,
        1 / gamma,
    )


def initial(x, y, z, *, mach, gamma, prandtl, reynolds):
    """Return the result of `exact`, which does not depend on time."""
    return exact(x, y, z, 0.0, mach=mach, gamma=gamma, prandtl=prandtl, reynolds=reynolds)
