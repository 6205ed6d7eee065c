"""`hiresx post wall`: pressure, friction and heat flux along walls, of the newest checkpoint of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.case import Case
from hiresx.case.monitors import Coefficients, Force
from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.saved import checkpoint
from hiresx.output.show import picture_file
from hiresx.output.watch.force_coefficients import ForceCoefficients
from hiresx.post.result import Result, as_run, dataset, file_stem

if TYPE_CHECKING:
    from hiresx.output.watch.monitors.force import ForceMonitor
    from hiresx.simulation import Simulation

# What is given at each node: long name and unit.
COLUMNS = {
    "p": ("pressure", "rho_ref c_ref^2"),
    "cp": ("pressure coefficient", "1"),
    "cf": ("friction coefficient, along the wall in the direction of the stream", "1"),
    "friction": ("shear stress", "rho_ref c_ref^2"),
    "heat": ("heat flux into the wall", "rho_ref c_ref^3"),
    "y_plus": ("distance of the first node in wall units", "1"),
}
_DRAWN = ("cp", "cf", "y_plus")
_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, eq=False)
class WallNodes:
    """Nodes of walls in the order of their blocks and indices: `where` (4, n), block and i, j, k; `places` (3, n), the
    coordinates; `values` (n,) by the names of `COLUMNS`."""

    where: np.ndarray
    places: np.ndarray
    values: dict[str, np.ndarray]


def wall(
    run: Any,
    force: str | None = None,
    at: str | None = None,
    velocity: Sequence[float] | None = None,
    pressure: float | None = None,
    variables: str = "",
) -> Result:
    """Return pressure, friction and heat flux at the nodes of the walls of a [[force]] of `run` (a folder or the result
    of `hiresx.open`), of its newest checkpoint.

    `force`: its name; not needed if there is one. Without any force it is all walls. `at`: "z=0.5" or the like cuts the
    walls: of each grid line of them that crosses this plane the values there, linear between nodes. `velocity` (3,): of
    the stream; absent: that of the force's `coefficients`, or of `initial.state`. `pressure`: that of the stream, from
    which the pressure coefficient counts; absent: that of `initial.state`, or 1/gamma. `variables`: names of `COLUMNS`
    to draw, separated by commas.

    Coefficients are over rho V^2/2 of the stream, and left out where there is none. Friction is positive along the
    stream. In wall units the distance of the first node is y u_tau / nu, with u_tau, density and viscosity of the wall.

    Raises HiresxError for a force that does not exist, and a plane that cuts no wall.
    """
    run = as_run(run)
    drawn = _variables(variables)
    simulation = _simulation(run.path)
    case = simulation.case
    spec, monitor = _force(simulation, force)
    stream = _stream(case, spec, velocity)
    state = case.initial.state
    if pressure is None:
        pressure = state.p if state is not None else 1 / case.gas.gamma
    nodes = _nodes(simulation, monitor, stream, pressure)
    if at is not None:
        nodes = _cut(nodes, at)
    names = [block.name for block in simulation.solver.decomposition.blocks]
    summary: dict[str, Any] = {
        "run": str(run.path), "force": spec.name, "step": simulation.solver.steps,
        "time": float(simulation.solver.time), "at": at, "nodes": len(nodes.where[0]),
        "pressure": pressure, "dynamic_pressure": stream and stream.pressure,
        "warnings": [] if stream else ["there is no stream, and so no coefficient: --velocity gives one"],
        "extremes": [_extremes(name, values, nodes.places) for name, values in nodes.values.items()],
    }  # fmt: skip
    drawn = [name for name in drawn if name in nodes.values] or ["p"]
    data = dataset(
        {name: (("node",), values, *COLUMNS[name]) for name, values in nodes.values.items()},
        {
            **{axis: ("node", nodes.places[n], f"{axis} coordinate", "L") for axis, n in _AXES.items()},
            "block": ("node", np.array([names[b] for b in nodes.where[0]]), "block", "1"),
            **{axis: ("node", nodes.where[n + 1], f"index {axis}", "1") for n, axis in enumerate("ijk")},
        },
        title=run.title,
    )
    return Result(file_stem("wall", spec.name), summary, data, lambda: _draw(data, summary, drawn), case=run.case)


def _simulation(path: Path) -> "Simulation":
    """The simulation that the newest checkpoint of a run holds; nothing of it is written."""
    # Imported here, as no other command needs the solver, which takes a tenth of a second.
    from hiresx.simulation import Simulation
    from hiresx.simulation.continuation import kept_case

    found = checkpoint.find(path)
    return Simulation(kept_case(found), backend="cpu", restart=replace(found, directory=None))


def _extremes(name: str, values: np.ndarray, places: np.ndarray) -> dict[str, Any]:
    """The least and the greatest value of a column, and where the latter is."""
    at = places[:, int(np.nanargmax(values))].tolist()
    return {"column": name, "least": float(np.nanmin(values)), "greatest": float(np.nanmax(values)),
            **{f"greatest_at_{axis}": at[n] for axis, n in _AXES.items()}}  # fmt: skip


def _variables(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()] or list(_DRAWN)
    for name in names:
        if name not in COLUMNS:
            raise HiresxError(f'walls have no "{name}"', f"take some of {', '.join(COLUMNS)}")
    return names


def _force(simulation: "Simulation", name: str | None) -> "tuple[Force, ForceMonitor]":
    """The table and the monitor of the force; without one those of all walls."""
    from hiresx.output.watch.monitors.force import ForceMonitor

    forces = [monitor for monitor in simulation.attachments if isinstance(monitor, ForceMonitor)]
    names = [monitor.history.name for monitor in forces]
    if name is None and len(forces) > 1:
        raise HiresxError(f"the case has {plural(len(forces), 'force')}", f"name one: {', '.join(names)}")
    if name is not None and name not in names:
        there = f"it has {', '.join(names)}" if names else "it has none: leave the name out, for all walls"
        raise HiresxError(f'the case has no force "{name}"', there)
    if not forces:
        spec = Force(name="all")
        return spec, ForceMonitor("walls", spec, simulation.solver, None)
    found = forces[0 if name is None else names.index(name)]
    return next(spec for spec in simulation.case.force if spec.name == found.history.name), found


def _stream(case: Case, spec: Force, velocity: Sequence[float] | None) -> ForceCoefficients | None:
    """The stream that is asked for, that of the force, or that of the case; None where there is none."""
    given = spec.coefficients
    if velocity is not None:
        given = (given or Coefficients()).model_copy(update={"velocity": tuple(velocity)})
    try:
        return ForceCoefficients(f'force "{spec.name}"', given or Coefficients(), case, 3)
    except HiresxError:
        if given is not None:
            raise
        return None


def _nodes(
    simulation: "Simulation", monitor: "ForceMonitor", stream: ForceCoefficients | None, pressure: float
) -> WallNodes:
    """All nodes of the walls. Where a node counts in several parts, as at an edge, forces and areas of these are added;
    the normal is that of the sum of their area vectors."""
    surface, flow = monitor.surface, monitor.surface.measure()
    coordinates = surface.coordinates(surface.places)
    where, first, same = np.unique(surface.nodes(surface.places), axis=1, return_index=True, return_inverse=True)
    same = same.ravel()

    def sum_parts(values: np.ndarray) -> np.ndarray:
        """Sums (m, nodes) over the parts of each node."""
        return np.stack([np.bincount(same, row, len(first)) for row in values])

    area, (size,) = sum_parts(flow.push), sum_parts(np.linalg.norm(flow.push, axis=0)[None])
    size, length = np.where(size > 0, size, np.nan), np.linalg.norm(area, axis=0)
    normal = area / np.where(length > 0, length, np.nan)
    stress = sum_parts(flow.friction) / size
    stress = stress - (stress * normal).sum(axis=0) * normal
    shear = np.linalg.norm(stress, axis=0)
    p = flow.p[first]
    values = {"p": p}
    if stream:
        along = stream.stream[:, None] - (stream.stream @ normal) * normal
        length = np.linalg.norm(along, axis=0)
        tangent = along / np.where(length > 0, length, np.nan)
        values["cp"] = (p - pressure) / stream.pressure
        values["cf"] = (stress * tangent).sum(axis=0) / stream.pressure
    values["friction"], values["heat"] = shear, sum_parts(flow.heat[None])[0] / size
    values["y_plus"] = np.zeros(len(p))
    if surface.inner.size:
        apart = (surface.coordinates(surface.inner) - coordinates)[:, first]
        values["y_plus"] = _wall_units(simulation, flow.rho[first], p, shear, np.abs((apart * normal).sum(axis=0)))
    return WallNodes(where, coordinates[:, first], values)


def _wall_units(
    simulation: "Simulation", rho: np.ndarray, p: np.ndarray, shear: np.ndarray, height: np.ndarray
) -> np.ndarray:
    gas = simulation.case.gas
    viscosity = gas.viscosity.viscosity(gas.gamma * p / rho) / gas.reynolds
    return np.asarray(height * np.sqrt(shear * rho) / viscosity)


def _cut(nodes: WallNodes, at: str) -> WallNodes:
    """Values where the grid lines of the walls cross the plane `at`, along the index direction in which most do."""
    (axis, level), *more = cut.parse(at, "plane").items()
    if more or level is None:
        raise HiresxError(f'"{at}" is no plane', "e.g. --at z=0.5")
    along = nodes.places[_AXES[axis]]
    found = max((_crossings(nodes.where, along, level, d) for d in range(3)), key=lambda found: found.nodes.size)
    if not found.nodes.size:
        raise HiresxError(
            f"{at} cuts none of these walls", f"they reach from {axis} = {along.min():g} to {along.max():g}"
        )
    places = np.stack([found(row) for row in nodes.places])
    return WallNodes(nodes.where[:, found.nodes[0]], places, {name: found(v) for name, v in nodes.values.items()})


def _crossings(where: np.ndarray, along: np.ndarray, level: float, direction: int) -> cut.WeightedPlaces:
    """Where `along`, given at the nodes `where`, is `level` on grid lines of one index direction."""
    found = []
    for b in np.unique(where[0]):
        of_block = np.flatnonzero(where[0] == b)
        index = where[:0:-1, of_block]
        place = tuple(index - index.min(axis=1, keepdims=True))
        number = np.zeros(np.ptp(index, axis=1) + 1, dtype=int)
        number[place] = of_block
        values = np.full(number.shape, np.nan)
        values[place] = along[of_block]
        part = cut.crossings({"": values}, "", level, 2 - direction)
        found.append(np.stack([number.ravel()[part.nodes], part.weights]))
    nodes, weights = np.concatenate(found, axis=2)
    return cut.WeightedPlaces(nodes.astype(int), weights)


def _draw(data: Any, summary: dict[str, Any], names: list[str]) -> Any:
    """A panel for each of `names` over x, with the pressure coefficient upside down, as usual."""
    figure = picture_file.figure(picture_file.HEIGHT * (0.3 + 0.25 * len(names)))
    panels = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
    for ax, name in zip(panels, names, strict=True):
        ax.plot(data["x"], data[name], ".", ms=2.5, color=picture_file.BLUE)
        ax.set_ylabel({"cp": "$C_p$", "cf": "$C_f$", "y_plus": "$y^+$"}.get(name, COLUMNS[name][0]))
        picture_file.add_grid(ax)
        if name == "cp":
            ax.invert_yaxis()
    panels[-1].set_xlabel("$x/L$")
    plane = f", {summary['at']}" if summary["at"] else ""
    figure.suptitle(f"{data.attrs.get('title', '')}\n{summary['force']}{plane}, step {summary['step']}", fontsize=9)
    return figure
