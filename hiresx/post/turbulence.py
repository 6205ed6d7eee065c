"""`hiresx post turbulence`: Favre statistics of averages over homogeneous directions, wall units, and budgets."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.post import homogeneous
from hiresx.post.budgets import (
    ENERGY_TERMS,
    PAIRS,
    STRESS_TERMS,
    Place,
    energy_budget,
    energy_of,
    statistics,
    stress_budgets,
)
from hiresx.post.result import Result, as_run, dataset, file_stem
from hiresx.post.wall_units import wall_units

_RATE = "rho_ref c_ref^3 / L"


def turbulence(run: Any, over: str | None = None) -> Result:
    """Favre stresses, wall units and budgets of the averages of `run`, also averaged over the index directions that are
    periodic and uniform (`over`: over these alone, "i,k"). Needs `[average]` with reynolds and favre, for the budget of
    the kinetic energy with budget = true, for those of all stresses too with stress_budgets = true; wall units come
    where one direction is left and ends at a no-slip wall.

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
    place = Place(coordinates, steps)
    held = statistics(node, place)
    stresses = stress_budgets(held, place) if "p_strain" in held else {}
    terms = energy_of(stresses) if stresses else energy_budget(held, place) if "tau" in held else {}
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
    for pair, stress in zip(PAIRS, held["R"], strict=True):
        kept[f"R_{pair}"] = dimensions, on(stress), f"Favre mean of {pair[0]}'' {pair[2]}''", "c_ref^2"
    kept["k"] = dimensions, on(0.5 * held["R"][:3].sum(axis=0)), "turbulent kinetic energy per mass (Favre)", "c_ref^2"
    for term, values in terms.items():
        kept[term] = dimensions, on(values), ENERGY_TERMS[term], _RATE
    budgets = {pair: {t: v["uvw".index(pair[0]), "uvw".index(pair[2])] for t, v in stresses.items()} for pair in PAIRS}
    for pair, own in budgets.items():
        for term, values in own.items():
            kept[f"{term}_{pair}"] = dimensions, on(values), f"{STRESS_TERMS[term]}, of rho R_{pair}", _RATE
    summary: dict[str, Any] = {
        "run": str(run.path), "block": name, "averaged_over": float(run.averages.attrs["averaged_over"]),
        "homogeneous": [homogeneous.LETTERS[axis] for axis in steps],
        "nodes_averaged": math.prod(nodes.stop for nodes in distinct.values()), "warnings": [],
    }  # fmt: skip
    if terms:
        summary |= _largest(terms)
    else:
        summary["warnings"].append("no budget: the averages do not hold what it needs; set average.budget = true")
    if stresses:
        summary["stress_budgets"] = [{"of": f"R_{pair}"} | _largest(own) for pair, own in budgets.items()]
    if len(left) == 1:
        walls, units = _walls(run.case, held, place, left[0])
        summary |= {"walls": walls} if walls else {}
        kept |= {key: (dimensions, *entry) for key, entry in units.items()}
    there = {
        axis: (dimensions, on(c), f"{axis} coordinate", "L") for axis, c in zip("xyz", place.coordinates, strict=True)
    }
    data = dataset(kept, there, title=run.title)
    return Result(file_stem("turbulence"), summary, data, lambda: _draw(data, summary), case=run.case)


def _largest(terms: Mapping[str, np.ndarray]) -> dict[str, float]:
    largest = {term: float(np.abs(values).max()) for term, values in terms.items()}
    return {"largest_residual": largest.pop("residual"), "largest_term": max(largest.values())}


def _walls(
    case: Mapping[str, Any], held: Mapping[str, np.ndarray], place: Place, axis: int
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
    budgets = [
        list(ENERGY_TERMS), *([f"{term}_{pair}" for term in STRESS_TERMS] for pair in ("u_u", "v_v", "w_w", "u_v"))
    ]  # fmt: skip
    panels = [["R_u_u", "R_v_v", "R_w_w", "R_u_v", "k"], *(names for names in budgets if names[0] in data)]
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
                ax.plot(data[along], data[name], label=name.replace("_", " "), lw=0.8 if "residual" in name else 1.4)
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
