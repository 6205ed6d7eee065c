"""`hiresx post turbulence`: Favre statistics of averages over homogeneous directions, wall units, and budgets."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hiresx.decomposition.homogeneous import LETTERS
from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.post import homogeneous_directions
from hiresx.post.budgets import (
    ENERGY_TERMS,
    INDICES,
    PLACE,
    STRESS_TERMS,
    HomogeneousMeans,
    energy_budget,
    energy_of,
    statistics,
    stress_budgets,
)
from hiresx.post.profile_walls import wall_frame, wall_profiles
from hiresx.post.result import Result, as_run, dataset, file_stem

_RATE = "rho_ref c_ref^3 / L"


def turbulence(run: Any, over: str | None = None, frame: str = "xyz") -> Result:
    """Return Favre-averaged stresses, wall units and budgets of turbulence from the time averages of `run` (a folder or
    the result of `hiresx.open`). The time averages are also averaged over the index directions that are periodic and
    uniform, or over the directions in `over`, such as "i,k", unless the run has done so (key `average.over`).

    The case must have `[average]` with reynolds and favre. The budget of the kinetic energy needs budget = true, the
    budgets of all stresses need stress_budgets = true. Wall units need averages that vary along one direction only,
    which ends at a no-slip or modelled wall, and at a modelled wall a `[[force]]` with its stress.

    `frame`: the axes of velocities, stresses and their budgets: "xyz", or "wall" (`profile_walls.wall_frame`; u along
    the wall, v normal to it) for averages that vary along one direction only. Raises HiresxError for averages that do
    not exist, for a grid of several blocks or without a homogeneous direction, for an unknown frame, and for the frame
    "wall" without a wall. The budgets are those of Huang, Coleman & Bradshaw, J. Fluid Mech. 305 (1995) 185."""
    if frame not in ("xyz", "wall"):
        raise HiresxError(f'there is no frame "{frame}"', 'take "xyz" or "wall"')
    run = as_run(run)
    name, block = homogeneous_directions.only_block(run.averages, "statistics of turbulence", run.case)
    for kind in ("reynolds", "favre"):
        if kind not in block.children:
            raise HiresxError(f"the averages have no {kind} means", f"leave average.{kind} true and run again")
    coordinates = [block[axis].values for axis in "xyz"]
    averaged = block.attrs["averaged_directions"]
    steps = homogeneous_directions.axes(run.case, coordinates, over, averaged)
    distinct = homogeneous_directions.distinct(run.case, steps, coordinates[0].shape)
    node = {kind: part.to_dataset().isel(distinct) for kind, part in block.children.items()}
    left = [axis for axis in range(3) if axis not in steps and coordinates[0].shape[axis] > 1]
    place = HomogeneousMeans(coordinates, steps)
    held = statistics(node, place)
    stresses = stress_budgets(held, place) if "p_strain" in held else {}
    terms = energy_of(stresses) if stresses else energy_budget(held, place) if "tau" in held else {}
    velocity, excess, stress = held["U"], held["excess"], held["R"][PLACE]
    if frame == "wall":
        if len(left) != 1:
            raise HiresxError("the frame of a wall is that of one direction that is left", 'take frame "xyz"')
        axes = wall_frame(run.case, place, left[0])
        velocity, excess = (np.einsum("ai,i...->a...", axes, vector) for vector in (velocity, excess))
        stress = _rotate_tensor(axes, stress)
        stresses = {term: _rotate_tensor(axes, values) for term, values in stresses.items()}
    dimensions = tuple(LETTERS[axis] for axis in left)

    def on(values: np.ndarray) -> np.ndarray:
        return values.reshape([values.shape[axis] for axis in left])

    kept = {
        "rho": (dimensions, on(held["rho"]), "mean density", "rho_ref"),
        "p": (dimensions, on(held["p"]), "mean pressure", "rho_ref c_ref^2"),
        "T": (dimensions, on(held["T"]), "Favre mean of the temperature", "T_ref"),
    }
    for n, u in enumerate("uvw"):
        kept[u] = dimensions, on(velocity[n]), f"Favre mean of {u}", "c_ref"
        kept[f"{u}_mass_flux"] = dimensions, on(excess[n]), f"Reynolds mean less Favre mean of {u}", "c_ref"
    for pair, at in INDICES.items():
        kept[f"R_{pair}"] = dimensions, on(stress[at]), f"Favre mean of {pair[0]}'' {pair[2]}''", "c_ref^2"
    kept["k"] = dimensions, on(0.5 * held["R"][:3].sum(axis=0)), "turbulent kinetic energy per mass (Favre)", "c_ref^2"
    for term, values in terms.items():
        kept[term] = dimensions, on(values), ENERGY_TERMS[term], _RATE
    budgets = {pair: {term: values[at] for term, values in stresses.items()} for pair, at in INDICES.items()}
    for pair, own in budgets.items():
        for term, values in own.items():
            kept[f"{term}_{pair}"] = dimensions, on(values), f"{STRESS_TERMS[term]}, of rho R_{pair}", _RATE
    summary: dict[str, Any] = {
        "run": str(run.path), "block": name, "averaged_over": float(run.averages.attrs["averaged_over"]),
        "homogeneous": [LETTERS[axis] for axis in steps],
        "nodes_averaged": math.prod(averaged[d]["nodes"] if d in averaged else n.stop for d, n in distinct.items()),
        "warnings": [],
    }  # fmt: skip
    if terms:
        summary |= _largest(terms)
    else:
        summary["warnings"].append("no budget: the averages do not hold what it needs; set average.budget = true")
    if stresses:
        summary["stress_budgets"] = [{"of": f"R_{pair}"} | _largest(own) for pair, own in budgets.items()]
    if len(left) == 1:
        walls, units, warnings = wall_profiles(run, held, place, left[0])
        summary |= {"walls": walls} if walls else {}
        summary["warnings"] += warnings
        kept |= {key: (dimensions, *entry) for key, entry in units.items()}
    there = {
        axis: (dimensions, on(c), f"{axis} coordinate", "L") for axis, c in zip("xyz", place.coordinates, strict=True)
    }
    data = dataset(kept, there, title=run.title)
    return Result(file_stem("turbulence"), summary, data, lambda: _draw(data, summary), case=run.case)


def _rotate_tensor(axes: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("ai,bj,ij...->ab...", axes, axes, tensor))


def _largest(terms: Mapping[str, np.ndarray]) -> dict[str, float]:
    largest = {term: float(np.abs(values).max()) for term, values in terms.items()}
    return {"largest_residual": largest.pop("residual"), "largest_term": max(largest.values())}


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
            for name in [n for n in ("u_plus", "u_van_driest", "u_trettel_larsson") if n in data]:
                over = "y_star" if name == "u_trettel_larsson" else "y_plus"
                axes[-1].semilogx(data[over].values[inside], data[name].values[inside], ".", ms=3, label=name)
            axes[-1].set_xlabel("$y^+$" + ("; $y^*$ of Trettel & Larsson" if "u_trettel_larsson" in data else ""))
            picture_file.legend_beside(axes[-1])
            picture_file.add_grid(axes[-1])
    figure.suptitle(f"{data.attrs.get('title', '')}\naveraged over {summary['averaged_over']:.4g}", fontsize=9)
    return figure
