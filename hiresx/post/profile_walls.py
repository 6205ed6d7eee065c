"""Friction at the walls at the ends of mean profiles, and the profiles in wall units.

The stress on a no-slip wall is that of the averages. At a wall with a wall model the resolved gradient does not give
the stress. It is the mean stress of the model, from the history of a `[[force]]`; density and viscosity there follow
from the temperature of the wall."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.boundaries import ModelledWall
from hiresx.decomposition.homogeneous import LETTERS
from hiresx.errors import HiresxError
from hiresx.post import homogeneous_directions
from hiresx.post.budgets import HomogeneousMeans
from hiresx.post.wall_units import wall_units
from hiresx.rhs.modelled_wall import wall_temperature

# A wall counts as normal to the x axis if the cosine of the angle is above this value.
PARALLEL = 0.999
# A history of the stress that covers less than this fraction of the averaged time gives a warning.
KNOWN = 0.9
_TEXTS = {
    "y_plus": "distance from the wall in viscous lengths",
    "y_star": "semi-local distance from the wall",
    "u_plus": "mean velocity along the wall over u_tau",
    "u_van_driest": "u_plus transformed by van Driest (1951)",
    "u_trettel_larsson": "u_plus transformed by Trettel & Larsson (2016)",
}


def wall_profiles(
    run: Any, held: Mapping[str, np.ndarray], place: HomogeneousMeans, axis: int
) -> tuple[list[dict[str, Any]], dict[str, tuple[np.ndarray, str, str]], list[str]]:
    """Return friction and wall units of a mean profile between walls, as (walls, profiles, warnings). `held`: the means
    and moments of turbulence by name, each with one node along homogeneous directions (`budgets.statistics`). `place`:
    coordinates, and derivatives of means. `axis`: the index direction along which the means vary (0: k, 1: j, 2: i).
    `walls` has a dictionary for each wall at an end of this direction: its stress, friction velocity and viscous
    length. Each profile is (values, description, unit), in the wall units of the nearer wall. The warnings name walls
    whose stress is not known. All three are empty without a wall, and in inviscid flow."""
    law, conditions = Case.model_validate(run.case).gas, homogeneous_directions.conditions(run.case)
    walls = _ends(run.case, axis)
    if not walls or law.reynolds is None:
        return [], {}, []
    x = np.stack([c.ravel() for c in place.coordinates], axis=1)
    n = x.shape[0]
    mu = (law.viscosity.viscosity(held["T"]) / law.reynolds).ravel()
    rho, u = held["rho"].ravel(), held["u"].reshape(3, n)
    tau, slopes = _stress(held, place, mu).reshape(3, 3, n), place.slopes[axis].reshape(3, n)
    rows, found, distances, warnings = [], [], [], []
    for face, end in walls.items():
        modelled, normal = conditions[face]["type"] == "modelled-wall", _normal(slopes, end)
        order = slice(None) if end == 0 else slice(None, None, -1)
        still, t, at_wall = u[:, end], float(held["T"].ravel()[end]), None
        if modelled:
            source, traction, told = _force(run, face)
            warnings += told
            if traction is None:
                continue
            wall = ModelledWall.model_validate(conditions[face])
            still = np.array(wall.velocity)
            slip = u[:, end] - still
            t = wall_temperature(wall, law.gamma, t, float(slip @ slip))
            viscosity = float(law.viscosity.viscosity(np.array(t)) / law.reynolds)
            at_wall = law.gamma * float(held["p"].ravel()[end]) / t, viscosity
        else:
            source, traction = "the averages", tau[:, :, end] @ normal
        traction = traction - (traction @ normal) * normal
        stress, y = float(np.linalg.norm(traction)), (x - x[end]) @ normal
        if stress == 0.0:
            continue
        along = traction / stress @ (u - still[:, None])
        units = wall_units(y[order], along[order], rho[order], mu[order], stress, at_wall)
        row = {
            "wall": face, "stress": stress, "stress_from": source, "u_tau": units.u_tau,
            "rho": at_wall[0] if at_wall else float(rho[end]), "T": t, "viscous_length": units.viscous_length,
            "first_y_plus": float(units.y_plus[1]),
        }  # fmt: skip
        if len(walls) == 2:
            row["re_tau"] = 0.5 * float(np.abs(y).max()) / units.viscous_length
        rows.append(row)
        found.append([None if values is None else values[order] for values in units[2:]])
        distances.append(y)
    if not found:
        return [], {}, warnings
    nearer = np.argmin(distances, axis=0)
    profiles = {"wall_distance": (np.min(distances, axis=0), "distance from the wall", "L")}
    for m, (name, text) in enumerate(_TEXTS.items()):
        of_walls = [values for units in found if (values := units[m]) is not None]
        if len(of_walls) == len(found):
            profiles[name] = np.choose(nearer, of_walls), text, "1"
    return rows, profiles, warnings


def wall_frame(case: Mapping[str, Any], place: HomogeneousMeans, axis: int) -> np.ndarray:
    """Return the axes of coordinates at a wall, as unit vectors (3, 3), one in each row. The first is along the wall:
    the x axis projected onto it, or the z axis if x is nearly normal to the wall. The second is the normal, and the
    third is perpendicular to both. The wall is the first one at an end of the index direction `axis` (0: k, 1: j, 2:
    i). `case`: the case with defaults filled in. `place`: the operator for derivatives, from whose grid metrics the
    normal follows. Raises HiresxError if there is no wall."""
    walls = _ends(case, axis)
    if not walls:
        raise HiresxError("there is no wall whose frame could be taken", 'take frame "xyz"')
    normal = _normal(place.slopes[axis].reshape(3, -1), next(iter(walls.values())))
    near = np.eye(3)[0 if abs(normal[0]) < PARALLEL else 2]
    along = near - (near @ normal) * normal
    along /= np.linalg.norm(along)
    return np.stack([along, normal, np.cross(along, normal)])


def _ends(case: Mapping[str, Any], axis: int) -> dict[str, int]:
    """Return the walls at the ends of a direction: the position of the node on the wall, by face."""
    letter, there = LETTERS[axis], homogeneous_directions.faces_of(case, ["no-slip-wall", "modelled-wall"])
    return {face: end for face, end in ((f"{letter}min", 0), (f"{letter}max", -1)) if face in there}


def _normal(slopes: np.ndarray, end: int) -> np.ndarray:
    """Return the unit vector normal to the wall at an `end`, from the `slopes` (3, n) of the index across it."""
    normal: np.ndarray = slopes[:, end] / np.linalg.norm(slopes[:, end]) * (1 if end == 0 else -1)
    return normal


def _stress(held: Mapping[str, np.ndarray], place: HomogeneousMeans, mu: np.ndarray) -> np.ndarray:
    """Return the mean stress if the averages have it, otherwise that of the mean profile."""
    if "tau" in held:
        return held["tau"]
    g = np.stack([place.gradient(row) for row in held["u"]])
    divergence = np.einsum("aa...->...", g) * np.eye(3).reshape(3, 3, 1, 1, 1)
    return mu.reshape(held["rho"].shape) * (g + np.swapaxes(g, 0, 1) - 2 / 3 * divergence)


def _force(run: Any, face: str) -> tuple[str, np.ndarray | None, list[str]]:
    """Return the `[[force]]` that names only this face; its mean friction per area over the time of the averages, None
    if there is no such history; and warnings. A sample represents the time since the one before."""
    clock = "step" if run.case["time"].get("local") else "time"
    end, over = float(run.averages[clock].values), float(run.averages.attrs["averaged_over"])
    for entry in run.case.get("force") or ():
        if list(entry["faces"]) != [face] or entry.get("range") or entry["name"] not in run.histories:
            continue
        history = run.history(entry["name"])
        times = np.clip(history[clock].values.astype(float), end - over, end)
        weights = np.diff(times, prepend=times[0])
        covered = float(weights.sum())
        if covered > 0:
            friction = np.stack([history[f"friction_{x}"].values for x in "xyz"]) / history["area"].values
            source = f'force "{entry["name"]}"'
            told = f"the stress at {face} is that of {covered:.4g} of the {over:.4g} that are averaged, by {source}"
            return source, friction @ weights / covered, [told] if covered < KNOWN * over else []
    return (
        "",
        None,
        [
            f"no wall units at {face}: the run keeps no stress of its wall model; add a [[force]] with "
            f'faces = ["{face}"] and run again'
        ],
    )
