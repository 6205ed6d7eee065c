"""The free stream of the wing, the counts of its grid, and its coefficients of lift and drag."""

import numpy as np


def derived(*, mach, incidence, resolution):
    """Velocity of the free stream over its speed of sound, inclined by `incidence` degrees; counts and spacings of the
    grid, of which `resolution` = 1 is the coarsest useful one."""
    angle = np.deg2rad(incidence)
    if not 0.5 <= resolution <= 10:
        raise ValueError(f"resolution = {resolution:g} is not between 0.5 and 10")
    return {
        "u": float(mach * np.cos(angle)),
        "v": float(mach * np.sin(angle)),
        "n_airfoil": 2 * round(32 * resolution),
        "n_wake": round(16 * resolution),
        "n_normal": 1 + round(24 * resolution),
        "on_wing": round(20 * resolution),
        "on_tip": round(4 * resolution),
        "beyond": round(11 * resolution),
        "stretching": 1.25 ** (1 / resolution),
        "first": 0.012 / resolution,
        "edge": 0.02 / resolution,
    }


def coefficients(simulation, *, u, v, semi_span, taper):
    """Lift and drag of the half wing over half rho V^2 and the area of its planform."""
    (wing,) = (monitor for monitor in simulation.attachments if monitor.name == "history.wing")
    force = wing.measure(simulation.solver)
    x, y, speed = force["force_x"], force["force_y"], np.hypot(u, v)
    scale = 1 / (0.5 * speed**3 * 0.5 * (1 + taper) * semi_span)
    return {"lift": scale * (y * u - x * v), "drag": scale * (x * u + y * v)}
