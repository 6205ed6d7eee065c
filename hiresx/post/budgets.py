"""Means and moments of turbulence over time and homogeneous directions, and the budgets of the turbulent kinetic energy
and of each Reynolds stress.

With f' about the Reynolds mean, f'' about the Favre mean, U = {u}, {.} a Favre mean and R_ij = {u_i'' u_j''}, the
budget of R_ij is (after Huang, Coleman & Bradshaw, Journal of Fluid Mechanics 305 (1995) 185)

    d(rho R_ij)/dt = - d(rho U_k R_ij)/dx_k                               convection
                     - rho R_ik dU_j/dx_k - rho R_jk dU_i/dx_k            production
                     - d(rho {u_i'' u_j'' u_k''})/dx_k                    turbulent_transport
                     - d<p' u_i'>/dx_j - d<p' u_j'>/dx_i                  pressure_transport
                     + <p' (du_i'/dx_j + du_j'/dx_i)>                     pressure_strain
                     + d<u_i' tau_jk' + u_j' tau_ik'>/dx_k                viscous_diffusion
                     - <tau_ik' du_j'/dx_k> - <tau_jk' du_i'/dx_k>        dissipation
                     + <u_i''> (d<tau_jk>/dx_k - d<p>/dx_j)
                     + <u_j''> (d<tau_ik>/dx_k - d<p>/dx_i)               mass_flux

The budget of rho k, k = R_ii/2, is half the sum of the budgets of R_ii; its pressure dilatation <p' du_i'/dx_i> is half
the trace of the pressure strain."""

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from hiresx.device.averaging import BUDGETS
from hiresx.output.fields.differences import derivative

# Order of the components of a symmetric tensor, and the positions of xx, xy, ... among them.
COMPONENTS = ("xx", "yy", "zz", "xy", "xz", "yz")
PAIRS = ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w")
PLACE = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])
INDICES = dict(zip(PAIRS, ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)), strict=True))
ENERGY_TERMS = {
    "convection": "by the mean flow",
    "production": "production",
    "turbulent_transport": "transport by third moments",
    "pressure_transport": "transport by the pressure",
    "pressure_dilatation": "pressure dilatation",
    "viscous_diffusion": "viscous diffusion",
    "dissipation": "dissipation, below zero where energy is lost",
    "mass_flux": "work of mean pressure and stress against the mean of u''",
    "residual": "sum of all terms: change in time, and what the averages leave",
}
STRESS_TERMS = {
    name.replace("dilatation", "strain"): text.replace("dilatation", "strain").replace("energy", "positive stress")
    for name, text in ENERGY_TERMS.items()
}


class HomogeneousMeans:
    """Operator for means over homogeneous directions of a block, and for derivatives of such means. `coordinates`: x, y
    and z, each an array (nk, nj, ni), in units of the length scale L. `steps`: for each homogeneous axis (0: k, 1: j,
    2: i) the vector (3,) from a node to the next. A mean has one node along each of these axes."""

    def __init__(self, coordinates: list[np.ndarray], steps: Mapping[int, np.ndarray]):
        self._over = tuple(axis - 3 for axis in steps)
        first = tuple(slice(1) if axis in steps else slice(None) for axis in range(3))
        self.coordinates = [c[first] for c in coordinates]
        shape = self.coordinates[0].shape
        self._along = [axis for axis in range(3) if shape[axis] > 1]
        columns = []
        for axis in range(3):
            if axis in self._along:
                column = [derivative(c, axis) for c in self.coordinates]
            else:  # a step, or the unit extrusion of a direction with one node
                vector = steps.get(axis, np.eye(3)[2 - axis])
                column = [np.full(shape, component) for component in vector]
            columns.append(np.stack(column))
        # for each node the rows d(index along the axis)/d(x, y, z)
        self.slopes = np.moveaxis(
            np.linalg.inv(np.moveaxis(np.stack(columns, axis=1), (0, 1), (-2, -1))), (-2, -1), (0, 1)
        )

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of `values` (..., nk, nj, ni) over the homogeneous directions, whose axes then have the
        length 1."""
        return values.mean(axis=self._over, keepdims=True)

    def gradient(self, f: np.ndarray) -> np.ndarray:
        """Return the derivatives df/dx, df/dy and df/dz of a mean `f` (nk, nj, ni), as an array (3, nk, nj, ni), in the
        unit of f per length scale L."""
        none = np.zeros((3, *f.shape))
        return reduce(np.add, (derivative(f, axis) * self.slopes[axis] for axis in self._along), none)

    def divergence(self, vector: np.ndarray) -> np.ndarray:
        """Return the divergence of a mean `vector` (3, nk, nj, ni), as an array (nk, nj, ni), in its unit per length
        scale L."""
        return sum((self.gradient(vector[n])[n] for n in range(3)), np.zeros(vector.shape[1:]))


def statistics(node: Mapping[str, Any], place: HomogeneousMeans) -> dict[str, np.ndarray]:
    """Return means and moments of turbulence over time and the homogeneous directions, by name. Each is an array (...,
    nk, nj, ni) with one node along each homogeneous direction. `node`: the averages over time of a block in
    averages.nc, with their groups "reynolds" and "favre" and the group of the budget, if there is one. `place`: the
    operator for means over the homogeneous directions. Differences between the time averages of nodes along homogeneous
    directions are treated as fluctuations."""
    reynolds, favre = (node[kind] for kind in ("reynolds", "favre"))
    mean, density = place.mean, favre["rho"].values
    rho = mean(density)

    def mass_mean(values: np.ndarray) -> np.ndarray:
        return mean(density * values) / rho

    u, v = (np.stack([kind[name].values for name in "uvw"]) for kind in (reynolds, favre))
    p, moments = reynolds["p"].values, np.stack([favre[pair].values for pair in PAIRS])
    plain, massive = mean(u), mass_mean(v)
    d, f = u - plain, v - massive
    products = np.stack([f[i] * f[j] for i, j in INDICES.values()])
    held = {
        "rho": rho, "p": mean(p), "T": mass_mean(favre["T"].values), "u": plain, "U": massive,
        "excess": plain - massive, "R": mass_mean(moments + products),
    }  # fmt: skip
    own = next((node[kind] for kind in BUDGETS if kind in node), None)
    if own is None:
        return held
    tau = np.stack([own[f"tau_{ij}"].values for ij in COMPONENTS])
    g = np.stack([np.stack([own[f"d{u}_d{x}"].values for x in "xyz"]) for u in "uvw"])
    held["tau"] = mean(tau)[PLACE]
    dp, dtau, dg = p - held["p"], (tau - mean(tau))[PLACE], g - mean(g)
    held["p_u"] = mean(np.stack([own[f"p_{u}"].values for u in "uvw"]) + dp * d)
    if "budget" in node:
        third = np.stack([own[f"k_{u}"].values for u in "uvw"]) + 0.5 * np.sum(f * f, axis=0) * f
        third = third + np.einsum("a...,ac...->c...", f, moments[PLACE]) + 0.5 * moments[:3].sum(axis=0) * f
        held["third"] = mass_mean(third)
        held["p_dilatation"] = mean(own["p_dilatation"].values + dp * np.einsum("aa...->...", dg))
        work = np.stack([own[f"u_tau_{x}"].values for x in "xyz"])
        held["u_tau"] = mean(work + np.einsum("i...,ij...->j...", d, dtau))
        held["tau_gradient"] = mean(own["tau_gradient"].values + np.einsum("ij...,ij...->...", dtau, dg))
        return held

    # Each component is averaged separately: together they would need many times the memory of the averages.
    def strain(i: int, j: int) -> np.ndarray:
        return mean(own[f"p_strain_{_name(i, j)}"].values + dp * (dg[i, j] + dg[j, i]))

    def loss(i: int, j: int) -> np.ndarray:
        apart = np.sum(dtau[i] * dg[j], axis=0) + np.sum(dtau[j] * dg[i], axis=0)
        return mean(own[f"tau_gradient_{_name(i, j)}"].values + apart)

    def work_of(n: int) -> np.ndarray:
        return tensor(lambda i, j: mean(own[f"{'uvw'[n]}_tau_{_name(i, j)}"].values + d[n] * dtau[i, j]))

    held |= {"p_strain": tensor(strain), "tau_gradient": tensor(loss), "u_tau": np.stack([*map(work_of, range(3))])}
    stress = moments[PLACE]
    third = {}
    for a, b, c in combinations_with_replacement(range(3), 3):
        apart = f[a] * stress[b, c] + f[b] * stress[a, c] + f[c] * stress[a, b] + f[a] * f[b] * f[c]
        third[a, b, c] = mass_mean(own["_".join("uvw"[n] for n in (a, b, c))].values + apart)
    held["third"] = np.stack(
        [np.stack([np.stack([third[tuple(sorted((a, b, c)))] for c in range(3)]) for b in range(3)]) for a in range(3)]
    )
    return held


def tensor(component: Callable[[int, int], np.ndarray]) -> np.ndarray:
    """Return the symmetric tensor (3, 3, ...) whose components follow from the function `component`, which is called as
    component(i, j) for i <= j and returns an array (...)."""
    return np.stack([component(i, j) for i, j in INDICES.values()])[PLACE]


def _name(i: int, j: int) -> str:
    return "xyz"[i] + "xyz"[j]


def energy_budget(held: Mapping[str, np.ndarray], place: HomogeneousMeans) -> dict[str, np.ndarray]:
    """Return the terms of the budget of the turbulent kinetic energy, arrays (nk, nj, ni) in rho_ref c_ref^3 / L, by
    name: the keys of `ENERGY_TERMS`, such as "production" and "dissipation". `held`: the moments that `statistics`
    returns for averages with `average.budget = true`. `place`: the operator for means and derivatives. Source: Huang,
    Coleman & Bradshaw, J. Fluid Mech. 305 (1995) 185."""
    rho, stress = held["rho"], held["rho"] * held["R"][PLACE]
    energy = 0.5 * rho * held["R"][:3].sum(axis=0)
    slope, force = _slopes_and_force(held, place)
    terms = {
        "convection": -place.divergence(held["U"] * energy),
        "production": -np.einsum("ij...,ij...->...", stress, slope),
        "turbulent_transport": -place.divergence(rho * held["third"]),
        "pressure_transport": -place.divergence(held["p_u"]),
        "pressure_dilatation": held["p_dilatation"],
        "viscous_diffusion": place.divergence(held["u_tau"]),
        "dissipation": -held["tau_gradient"],
        "mass_flux": np.einsum("i...,i...->...", held["excess"], force),
    }
    return terms | {"residual": sum(terms.values(), np.zeros(rho.shape))}


def stress_budgets(held: Mapping[str, np.ndarray], place: HomogeneousMeans) -> dict[str, np.ndarray]:
    """Return the terms of the budgets of the Reynolds stresses, arrays (3, 3, nk, nj, ni) in rho_ref c_ref^3 / L, by
    name: the keys of `STRESS_TERMS`, such as "production" and "pressure_strain". `held`: the moments that `statistics`
    returns for averages with `average.stress_budgets = true`. `place`: the operator for means and derivatives. Source:
    Huang, Coleman & Bradshaw, J. Fluid Mech. 305 (1995) 185."""
    rho, stress = held["rho"], held["rho"] * held["R"][PLACE]
    slope, force = _slopes_and_force(held, place)
    work, rise = held["u_tau"], np.stack([place.gradient(flux) for flux in held["p_u"]])
    made = np.einsum("ik...,jk...->ij...", stress, slope)
    pushed = np.einsum("i...,j...->ij...", held["excess"], force)
    terms = {
        "convection": tensor(lambda i, j: -place.divergence(held["U"] * stress[i, j])),
        "production": -made - made.swapaxes(0, 1),
        "turbulent_transport": tensor(lambda i, j: -place.divergence(rho * held["third"][i, j])),
        "pressure_transport": -rise - rise.swapaxes(0, 1),
        "pressure_strain": held["p_strain"],
        "viscous_diffusion": tensor(lambda i, j: place.divergence(work[i, j] + work[j, i])),
        "dissipation": -held["tau_gradient"],
        "mass_flux": pushed + pushed.swapaxes(0, 1),
    }
    return terms | {"residual": sum(terms.values(), np.zeros(stress.shape))}


def energy_of(stresses: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the terms of the budget of the turbulent kinetic energy by name, such as "production" (the keys of
    `ENERGY_TERMS`), each an array (...), from the budgets of the Reynolds stresses. `stresses`: the result of
    `stress_budgets`, each term an array (3, 3, ...). An energy term is half the trace of the stress term."""
    return {
        name: 0.5 * np.einsum("ii...->...", stresses["pressure_strain" if name == "pressure_dilatation" else name])
        for name in ENERGY_TERMS
    }


def _slopes_and_force(held: Mapping[str, np.ndarray], place: HomogeneousMeans) -> tuple[np.ndarray, np.ndarray]:
    """Return dU_i/dx_j, and the force of mean stress and pressure."""
    slope = np.stack([place.gradient(u) for u in held["U"]])
    return slope, np.stack([place.divergence(row) for row in held["tau"]]) - place.gradient(held["p"])
