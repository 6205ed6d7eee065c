"""Lift, drag and local friction of the bump."""

import numpy as np

# Number of nodes of the polynomial from which the derivative at the wall is computed.
NODES = 5
# Where the Resource has Cf: the middle, and 0.1177975 of its units to both sides.
STATIONS = {"cf_ahead": 0.421465, "cf_middle": 0.5, "cf_behind": 0.578535}


def _friction(simulation, gamma, sutherland):
    """Return x and the wall shear stress times Re_c at the nodes of the wall on this rank. The velocity vanishes there,
    and lines along j have a constant x. The derivative along the normal is therefore that along y times the cosine of
    the slope."""
    found = [np.empty((2, 0))]
    for block in simulation.blocks:
        x, y = block.x[0, 0], block.y[0, :NODES]
        u, v, rho, p = (values[0, :NODES] for values in block.states("u", "v", "rho", "p"))
        wall = (x >= 0) & (x <= 1) & (u[0] == 0)
        if block.first[1] or not wall.any():
            continue
        temperature = gamma * p[0] / rho[0]
        mu = temperature**1.5 * (1 + sutherland) / (temperature + sutherland)
        height = np.moveaxis(y - y[0], 0, -1)
        matrix = (height / height[:, -1:])[:, None, :] ** np.arange(NODES)[:, None]
        weights = np.linalg.solve(matrix, np.eye(NODES)[1][:, None])[..., 0].T / height[:, -1]
        slope = np.gradient(y[0], x, edge_order=2)
        stress = mu * ((weights * u).sum(axis=0) + slope * (weights * v).sum(axis=0))
        found.append(np.stack([x, stress])[:, wall])
    return np.concatenate(found, axis=1)


def coefficients(simulation, *, mach, reynolds, gamma, sutherland):
    """Return the coefficients of the wall by name: "lift" and "drag", "pressure_drag" (the contribution of the pressure
    to the drag), and Cf at each x of STATIONS, interpolated between nodes. The scales are those of the free stream.
    `simulation`: the present `hiresx.Simulation`. `mach`: the Mach number of the free stream. `reynolds`: Re_c, formed
    with the sound speed. `sutherland`: Sutherland's temperature divided by T_ref. Collective."""
    (wall,) = (monitor for monitor in simulation.attachments if monitor.name == "history.wall")
    force, scale = wall.measure(simulation.solver), 0.5 * mach**2
    parts = simulation.comm.allgather(_friction(simulation, gamma, sutherland))
    x, stress = np.concatenate(parts, axis=1)
    x, first = np.unique(x, return_index=True)
    cf = np.interp(list(STATIONS.values()), x, stress[first]) / (scale * reynolds)
    drag, friction = force["force_x"] / scale, force["friction_x"] / scale
    return {"lift": force["force_y"] / scale, "drag": drag, "pressure_drag": drag - friction,
            **dict(zip(STATIONS, cf.tolist(), strict=True))}  # fmt: skip
