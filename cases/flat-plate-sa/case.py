"""A turbulent boundary layer as the initial flow, and the friction coefficient at a station."""

import numpy as np

KAPPA = 0.41
# Number of nodes of the polynomial from which the derivative at the wall is computed.
NODES = 5


def _layer(x, y, mach, reynolds):
    """Return u, the friction velocity, y+, and y over the thickness. Friction and thickness are those of the power law
    of the seventh root (Schlichting, Boundary-Layer Theory, 7th edition, chapter XXI). The velocity is that of
    Reichardt (Zeitschrift fuer angewandte Mathematik und Mechanik 31 (1951) 208)."""
    x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    along = np.maximum(x, 1e-3)
    root = (mach * reynolds * along) ** -0.2
    speed = mach * np.sqrt(0.5 * 0.0592 * root)
    inner, outer = y * speed * reynolds, np.minimum(y / (0.37 * along * root), 1.0)
    law = np.log(1 + KAPPA * inner) / KAPPA
    law += 7.8 * (1 - np.exp(-inner / 11) - inner / 11 * np.exp(-inner / 3))
    u = np.where(x > 0, np.minimum(speed * law, mach), mach)
    return u, speed, inner, outer


def initial(x, y, z, *, mach, reynolds, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case.
    The velocity is that of a turbulent boundary layer (`_layer`); density and pressure are uniform. `mach`: Mach number
    of the free stream. `reynolds`: Re_c."""
    return 1.0, _layer(x, y, mach, reynolds)[0], 0.0, 0.0, 1 / gamma


def eddies(x, y, z, *, mach, reynolds, far_field):
    """Return an initial nu_tilde of the Spalart-Allmaras model at the places x, y, z (arrays of one shape), divided by
    the viscosity of the reference state. Near the wall it is kappa y+. Towards the edge of the layer it decreases, but
    not below `far_field`, the value of the free stream. `mach`, `reynolds`: as in `initial`."""
    _, _, inner, outer = _layer(x, y, mach, reynolds)
    return np.where(x > 0, np.maximum(KAPPA * inner * (1 - outer), far_field * outer), far_field)


def energy(x, y, z, *, mach, reynolds, far_field_k):
    """Return an initial turbulent kinetic energy k, in 10^-6 c_ref^2, at the places x, y, z (arrays of one shape). It
    is that of the logarithmic layer, and decreases towards the wall and towards the edge of the layer. `far_field_k`:
    the value of the free stream. `mach`, `reynolds`: as in `initial`."""
    _, speed, inner, outer = _layer(x, y, mach, reynolds)
    layer = 1e6 * speed**2 / 0.3 * (1 - np.exp(-inner / 10)) ** 2 * (1 - outer)
    return np.where(x > 0, np.where(y > 0, np.maximum(layer, far_field_k * outer), 0.0), far_field_k)


def inverse_root(x, y, z, *, mach, reynolds, far_field_omega):
    """Return an initial omega^(-1/2) at the places x, y, z (arrays of one shape), in the units of the variable
    `turbulent_g`. omega is the sum of its values in the viscous and in the logarithmic layer, but at least
    `far_field_omega`, the value of the free stream. `mach`, `reynolds`: as in `initial`."""
    _, speed, _, _ = _layer(x, y, mach, reynolds)
    near = np.maximum(y, 1e-12)
    omega = 6 / (0.075 * reynolds * near**2) + speed / (0.3 * KAPPA * near)
    layer = np.maximum(1e6 * omega / reynolds, far_field_omega) ** -0.5
    return np.where(x > 0, np.where(y > 0, layer, 0.0), far_field_omega**-0.5)


def _walls(simulation, mach, reynolds, gamma, sutherland):
    """Yield x and Cf at the nodes of plates, block by block."""
    for block in simulation.blocks:
        x, y = block.x[0, 0], block.y[0, :NODES, 0]
        if y[0] != 0:
            continue
        u, rho, p = (values[0] for values in block.states("u", "rho", "p"))
        temperature = gamma * p[0] / rho[0]
        mu = temperature**1.5 * (1 + sutherland) / (temperature + sutherland)
        weights = np.linalg.solve(np.vander(y / y[-1], increasing=True).T, np.eye(NODES)[1]) / y[-1]
        plate = x >= 0
        yield x[plate], (mu * (weights @ u[:NODES]))[plate] / (0.5 * mach**2 * reynolds)


def friction(simulation, *, mach, reynolds, gamma, sutherland, station):
    """Return "cf", the friction coefficient Cf at x = `station`, and "largest_eddy_viscosity", divided by mu_ref. Cf is
    interpolated between the two nodes beside the station. It is formed with the density and the velocity of the free
    stream. `simulation`: the present `hiresx.Simulation`. `sutherland`: Sutherland's temperature divided by T_ref.
    Collective."""
    lines = list(_walls(simulation, mach, reynolds, gamma, sutherland))
    before = float(simulation.comm.max(max((x[x <= station].max(initial=-1.0) for x, _ in lines), default=-1.0)))
    behind = float(simulation.comm.min(min((x[x > station].min(initial=1e9) for x, _ in lines), default=1e9)))
    of_ends = [sum(float(cf[x == end].sum()) for x, cf in lines) for end in (before, behind)]
    left, right = np.asarray(simulation.comm.sum(of_ends))
    share = (station - before) / (behind - before)
    fields = (simulation.solver.field(n, "eddy_viscosity") for n in range(len(simulation.solver.states)))
    largest = simulation.comm.max(max(float(values[0].max()) for values in fields))
    return {"cf": float((1 - share) * left + share * right), "largest_eddy_viscosity": float(largest)}
