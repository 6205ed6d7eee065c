"""The exact flow in the inlet: two oblique shocks that meet at its lip."""

import numpy as np

from hiresx.exact import oblique_shock

LIP = 1.0  # its x; the ramp begins at the origin


def _shocks(mach, ramp, cowl, gamma):
    """Return the shock of the ramp, and the shock that turns the flow into the direction of the cowl."""
    first = oblique_shock(mach, ramp, gamma)
    return first, oblique_shock(first.mach, ramp - cowl, gamma)


def derived(*, mach, ramp, cowl, gamma):
    """Return "height", the height of the lip of the cowl at which the shock of the ramp arrives, in L. `mach`: Mach
    number of the free stream. `ramp` and `cowl`: the angles of the walls, in degrees."""
    first, _ = _shocks(mach, ramp, cowl, gamma)
    return {"height": LIP * float(np.tan(np.radians(first.angle)))}


def exact(x, y, z, t, *, mach, ramp, cowl, height, gamma):
    """Return rho, u, v, w and p at the places x, y, z (arrays of one shape), in the scales of the case. The flow is
    uniform ahead of both shocks, between them and behind the second one. The arguments are those of `derived`, and its
    result `height`."""
    first, second = _shocks(mach, ramp, cowl, gamma)
    descent = np.tan(np.radians(second.angle - ramp))
    ahead = y * LIP > x * height
    above = (y > height - descent * (x - LIP)) & (x > LIP)
    rho = np.array([1.0, first.density, first.density * second.density])
    p = np.array([1.0, first.pressure, first.pressure * second.pressure]) / gamma
    speed = np.array([mach, first.mach, second.mach]) * np.sqrt(gamma * p / rho)
    angle = np.radians([0.0, ramp, cowl])
    region = np.where(above, 2, np.where(ahead, 0, 1))
    u, v = speed * np.cos(angle), speed * np.sin(angle)
    return rho[region], u[region], v[region], 0.0, p[region]


def initial(x, y, z, *, mach, ramp, cowl, height, gamma):
    """Return the result of `exact`, which does not depend on time."""
    return exact(x, y, z, 0.0, mach=mach, ramp=ramp, cowl=cowl, height=height, gamma=gamma)
