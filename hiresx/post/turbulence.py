"""`hiresx post turbulence`: Favre statistics of averages over homogeneous directions, wall units, and the budget of the
turbulent kinetic energy.

With f' about the Reynolds mean, f'' about the Favre mean, U = {u}, {.} a Favre mean and k = {u_i'' u_i''}/2, the budget
is (Huang, Coleman & Bradshaw, Journal of Fluid Mechanics 305 (1995) 185)

    d(rho k)/dt = - d(rho U_j k)/dx_j                          convection
                  - rho {u_i'' u_j''} dU_i/dx_j                production
                  - d(rho {u_i'' u_i'' u_j''}/2)/dx_j          turbulent_transport
                  - d<p' u_j'>/dx_j                            pressure_transport
                  + <p' du_i'/dx_i>                            pressure_dilatation
                  + d<u_i' tau_ij'>/dx_j                       viscous_diffusion
                  - <tau_ij' du_i'/dx_j>                       dissipation
                  + <u_i''> (d<tau_ij>/dx_j - d<p>/dx_i)       mass_flux
"""

import math
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.errors import HiresxError
from hiresx.output.fields.differences import derivative
from hiresx.output.show import picture_file
from hiresx.post import homogeneous
from hiresx.post.result import Result, as_run, dataset, file_stem
from hiresx.post.wall_units import wall_units

# Places of the components xx, xy, ... of a symmetric tensor among xx, yy, zz, xy, xz, yz.
_PLACE = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])
_PAIRS = ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w")
_RATE = "rho_ref c_ref^3 / L"
TERMS = {
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


def turbulence(run: Any, over: str | None = None) -> Result:
    """Favre stresses, wall units and budget of the averages of `run`, also averaged over the index directions that are
    periodic and uniform (`over`: over these alone, "i,k"). Needs `[average]` with reynolds and favre, for the budget
    with budget = true; wall units come where one direction is left and ends at a no-slip wall.

    Raises HiresxError for averages that do not exist and a grid of several blocks or without such a direction.
    """
    run = as_run(run)
    name, block = homogeneous.only_block(run.averages, "statistics of turbulence", run.case)
    for kind in ("reynolds", "favre"):
        if kind not in block.children:
            raise HiresxError(f"the averages have no {kind} means", f"leave average.{kind} true and run again")
    coordinates = [block[axis].values for axis in "xyz"]
    steps = homogeneous.axes(run.case, coordinates, over)
    distinct = homogeneous.distinct(run.case, steps, coordinates[0].shape)
    node = {kind: part.to_dataset().isel(distinct) for kind, part in block.children.items()}
    left = [axis for axis in range(3) if axis not in steps and coordinates[0].shape[axis] > 1]
    place = _Place(coordinates, steps)
    held = _statistics(node, place)
    terms = _budget(held, place) if "tau" in held else {}
    dimensions = tuple(homogeneous.LETTERS[axis] for axis in left)

    def on(values: np.ndarray) -> np.ndarray:
        return values.reshape([values.shape[axis] for axis in left])

    kept = {
        "rho": (dimensions, on(held["rho"]), "mean density", "rho_ref"),
        "p": (dimensions, on(held["p"]), "mean pressure", "rho_ref c_ref^2"),
        "T": (dimensions, on(held["T"]), "Favre mean of the temperature", "T_ref"),
    }
    for n, u in enumerate("uvw"):
        kept[u] = dimensions, on(held["U"][n]), f"Favre mean of {u}", "c_ref"
        kept[f"{u}_mass_flux"] = dimensions, on(held["excess"][n]), f"Reynolds mean less Favre mean of {u}", "c_ref"
    for pair, stress in zip(_PAIRS, held["R"], strict=True):
        kept[f"R_{pair}"] = dimensions, on(stress), f"Favre mean of {pair[0]}'' {pair[2]}''", "c_ref^2"
    kept["k"] = dimensions, on(0.5 * held["R"][:3].sum(axis=0)), "turbulent kinetic energy per mass (Favre)", "c_ref^2"
    for term, values in terms.items():
        kept[term] = dimensions, on(values), TERMS[term], _RATE
    summary: dict[str, Any] = {
        "run": str(run.path), "block": name, "averaged_over": float(run.averages.attrs["averaged_over"]),
        "homogeneous": [homogeneous.LETTERS[axis] for axis in steps],
        "nodes_averaged": math.prod(nodes.stop for nodes in distinct.values()), "warnings": [],
    }  # fmt: skip
    if terms:
        largest = max(float(np.abs(values).max()) for term, values in terms.items() if term != "residual")
        summary["largest_term"] = largest
        summary["largest_residual"] = float(np.abs(terms["residual"]).max())
    else:
        summary["warnings"].append("no budget: the averages do not hold what it needs; set average.budget = true")
    if len(left) == 1:
        walls, units = _walls(run.case, held, place, left[0])
        summary |= {"walls": walls} if walls else {}
        kept |= {key: (dimensions, *entry) for key, entry in units.items()}
    there = {
        axis: (dimensions, on(c), f"{axis} coordinate", "L") for axis, c in zip("xyz", place.coordinates, strict=True)
    }
    data = dataset(kept, there, title=run.title)
    return Result(file_stem("turbulence"), summary, data, lambda: _draw(data, summary), case=run.case)


class _Place:
    """Means over the homogeneous `steps` (axis: step) of arrays (..., nk, nj, ni), which keep one node along them, and
    gradients of such means."""

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
            else:  # a step, or the unit extrusion of a direction of one node
                vector = steps.get(axis, np.eye(3)[2 - axis])
                column = [np.full(shape, component) for component in vector]
            columns.append(np.stack(column))
        # of each node the rows d(index along the axis)/d(x, y, z)
        self.slopes = np.moveaxis(
            np.linalg.inv(np.moveaxis(np.stack(columns, axis=1), (0, 1), (-2, -1))), (-2, -1), (0, 1)
        )

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over the homogeneous directions."""
        return values.mean(axis=self._over, keepdims=True)

    def gradient(self, f: np.ndarray) -> np.ndarray:
        """df/dx, df/dy, df/dz of a mean, (3, ...)."""
        none = np.zeros((3, *f.shape))
        return reduce(np.add, (derivative(f, axis) * self.slopes[axis] for axis in self._along), none)

    def divergence(self, vector: np.ndarray) -> np.ndarray:
        return sum((self.gradient(vector[n])[n] for n in range(3)), np.zeros(vector.shape[1:]))


def _statistics(node: Mapping[str, Any], place: _Place) -> dict[str, np.ndarray]:
    """Means and moments over time and the homogeneous directions. Those of nodes differ: their means count as
    fluctuations about the mean of all."""
    reynolds, favre = (node[kind] for kind in ("reynolds", "favre"))
    mean, density = place.mean, favre["rho"].values
    rho = mean(density)

    def mass_mean(values: np.ndarray) -> np.ndarray:
        return mean(density * values) / rho

    u, v = (np.stack([kind[name].values for name in "uvw"]) for kind in (reynolds, favre))
    p, moments = reynolds["p"].values, np.stack([favre[pair].values for pair in _PAIRS])
    plain, massive = mean(u), mass_mean(v)
    d, f = u - plain, v - massive
    products = np.stack([f["uvw".index(pair[0])] * f["uvw".index(pair[2])] for pair in _PAIRS])
    held = {
        "rho": rho, "p": mean(p), "T": mass_mean(favre["T"].values), "u": plain, "U": massive,
        "excess": plain - massive, "R": mass_mean(moments + products),
    }  # fmt: skip
    if "budget" not in node:
        return held
    own = node["budget"]
    tau = np.stack([own[f"tau_{ij}"].values for ij in ("xx", "yy", "zz", "xy", "xz", "yz")])
    g = np.stack([np.stack([own[f"d{u}_d{x}"].values for x in "xyz"]) for u in "uvw"])
    held["tau"] = mean(tau)[_PLACE]
    dp, dtau, dg = p - held["p"], (tau - mean(tau))[_PLACE], g - mean(g)
    third = np.stack([own[f"k_{u}"].values for u in "uvw"]) + 0.5 * np.sum(f * f, axis=0) * f
    third = third + np.einsum("a...,ac...->c...", f, moments[_PLACE]) + 0.5 * moments[:3].sum(axis=0) * f
    held["third"] = mass_mean(third)
    held["p_u"] = mean(np.stack([own[f"p_{u}"].values for u in "uvw"]) + dp * d)
    held["p_dilatation"] = mean(own["p_dilatation"].values + dp * np.einsum("aa...->...", dg))
    held["u_tau"] = mean(np.stack([own[f"u_tau_{x}"].values for x in "xyz"]) + np.einsum("i...,ij...->j...", d, dtau))
    held["tau_gradient"] = mean(own["tau_gradient"].values + np.einsum("ij...,ij...->...", dtau, dg))
    return held


def _budget(held: Mapping[str, np.ndarray], place: _Place) -> dict[str, np.ndarray]:
    rho, stress = held["rho"], held["rho"] * held["R"][_PLACE]
    energy = 0.5 * rho * held["R"][:3].sum(axis=0)
    slope = np.stack([place.gradient(u) for u in held["U"]])
    force = np.stack([place.divergence(row) for row in held["tau"]]) - place.gradient(held["p"])
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


def _walls(
    case: Mapping[str, Any], held: Mapping[str, np.ndarray], place: _Place, axis: int
) -> tuple[list[dict[str, Any]], dict[str, tuple[np.ndarray, str, str]]]:
    """A row for each no-slip wall at an end of the direction that is left, and profiles in the wall units of the nearer
    wall."""
    letter, law = homogeneous.LETTERS[axis], Case.model_validate(case).gas
    faces = homogeneous.faces_of(case, ["no-slip-wall"])
    ends = [end for end, face in ((0, f"{letter}min"), (-1, f"{letter}max")) if face in faces]
    if not ends or law.reynolds is None:
        return [], {}
    x = np.stack([c.ravel() for c in place.coordinates], axis=1)
    n = x.shape[0]
    mu = (law.viscosity.viscosity(held["T"]) / law.reynolds).ravel()
    rho, u = held["rho"].ravel(), held["u"].reshape(3, n)
    tau = held.get("tau")
    if tau is None:
        g = np.stack([place.gradient(row) for row in held["u"]])
        divergence = np.einsum("aa...->...", g) * np.eye(3).reshape(3, 3, 1, 1, 1)
        tau = mu.reshape(held["rho"].shape) * (g + np.swapaxes(g, 0, 1) - 2 / 3 * divergence)
    tau, slopes = tau.reshape(3, 3, n), place.slopes[axis].reshape(3, n)
    rows, found, distances = [], [], []
    for end in ends:
        order = slice(None) if end == 0 else slice(None, None, -1)
        normal = slopes[:, end] / np.linalg.norm(slopes[:, end]) * (1 if end == 0 else -1)
        traction = tau[:, :, end] @ normal
        traction = traction - (traction @ normal) * normal
        stress, y = float(np.linalg.norm(traction)), (x - x[end]) @ normal
        if stress == 0.0:
            continue
        units = wall_units(y[order], (traction / stress @ u)[order], rho[order], mu[order], stress)
        row = {
            "wall": f"{letter}{'min' if end == 0 else 'max'}", "stress": stress, "u_tau": units.u_tau,
            "rho": float(rho[end]), "T": float(held["T"].ravel()[end]), "viscous_length": units.viscous_length,
            "first_y_plus": float(units.y_plus[1]),
        }  # fmt: skip
        if len(ends) == 2:
            row["re_tau"] = 0.5 * float(np.abs(y).max()) / units.viscous_length
        rows.append(row)
        found.append([values[order] for values in units[2:]])
        distances.append(y)
    if not found:
        return [], {}
    nearer = np.argmin(distances, axis=0)
    texts = {
        "y_plus": "distance from the wall in viscous lengths",
        "y_star": "semi-local distance from the wall",
        "u_plus": "mean velocity along the wall over u_tau",
        "u_van_driest": "u_plus transformed by van Driest (1951)",
        "u_trettel_larsson": "u_plus transformed by Trettel & Larsson (2016)",
    }
    profiles = {"wall_distance": (np.min(distances, axis=0), "distance from the wall", "L")}
    for m, (name, text) in enumerate(texts.items()):
        profiles[name] = np.choose(nearer, [units[m] for units in found]), text, "1"
    return rows, profiles


def _draw(data: Any, summary: Mapping[str, Any]) -> Any:
    budget = [term for term in TERMS if term in data]
    panels = [["R_u_u", "R_v_v", "R_w_w", "R_u_v", "k"], *([budget] if budget else [])]
    figure = picture_file.figure(0.6 + 2.4 * (len(panels) + ("u_plus" in data)))
    if data["k"].ndim != 1:
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        middle = {data["k"].dims[0]: data["k"].shape[0] // 2} if data["k"].ndim == 3 else {}
        for ax, name in zip(axes, ("k", "production"), strict=False):
            cut = data.isel(middle)
            shown = ax.pcolormesh(cut["x"], cut["y"], cut[name], shading="gouraud")
            figure.colorbar(shown, ax=ax, label=name)
    else:
        axes = figure.subplots(len(panels) + ("u_plus" in data), 1, squeeze=False)[:, 0]
        along = max("xyz", key=lambda axis: float(np.ptp(data[axis].values)))
        for ax, names in zip(axes, panels, strict=False):
            for name in names:
                ax.plot(data[along], data[name], label=name.replace("_", " "), lw=0.8 if name == "residual" else 1.4)
            ax.set_xlabel(f"${along}/L$")
            picture_file.legend_beside(ax)
            picture_file.add_grid(ax)
        if "u_plus" in data:
            inside = data["y_plus"].values > 0
            for name in ("u_plus", "u_van_driest", "u_trettel_larsson"):
                over = "y_star" if name == "u_trettel_larsson" else "y_plus"
                axes[-1].semilogx(data[over].values[inside], data[name].values[inside], ".", ms=3, label=name)
            axes[-1].set_xlabel("$y^+$; $y^*$ of Trettel & Larsson")
            picture_file.legend_beside(axes[-1])
            picture_file.add_grid(axes[-1])
    figure.suptitle(f"{data.attrs.get('title', '')}\naveraged over {summary['averaged_over']:.4g}", fontsize=9)
    return figure
