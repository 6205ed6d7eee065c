"""`hiresx post wall`: pressure, friction and heat flux along walls, at a time or as means over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Coefficients, Force
from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.show import picture_file
from hiresx.output.watch.force_coefficients import ForceCoefficients
from hiresx.output.watch.wall_nodes import shear
from hiresx.post import wall_flow
from hiresx.post.result import Result, as_run, dataset, file_stem
from hiresx.post.wall_flow import WallFlow

# Quantities at each node: long name and unit.
COLUMNS = {
    "p": ("pressure", "rho_ref c_ref^2"),
    "cp": ("pressure coefficient", "1"),
    "cf": ("friction coefficient, along the wall in the direction of the stream", "1"),
    "friction": ("shear stress", "rho_ref c_ref^2"),
    "heat": ("heat flux into the wall", "rho_ref c_ref^3"),
    "y_plus": ("distance of the first node in wall units", "1"),
}
# Prefix of a column with the root mean square of a fluctuation.
RMS = "rms_"
_DRAWN = ("cp", "cf", "y_plus")
_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, eq=False)
class _Shown:
    """The data to show: `where` (4, n), block and i, j, k of the nodes; `places` (3, n); `values` (n,) by name."""

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
    time: float | None = None,
    mean: bool = False,
    start: float | None = None,
    end: float | None = None,
) -> Result:
    """Return pressure, friction, heat flux and y+ at wall nodes of `run` (a folder or the result of `hiresx.open`): of
    its newest checkpoint, or of the samples that a [[force]] with a `distribution` has stored.

    - `force`: the name of the [[force]] that defines the walls; not needed if there is only one. If the case has no
      force, all walls are used.
    - `at`: a plane that cuts the walls, such as "z=0.5". The result then has the points at which grid lines on the
      walls cross the plane, with values interpolated linearly between nodes.
    - `velocity` (3,): the velocity of the stream, in c_ref; by default the velocity in `coefficients` of the force, or
      in `initial.state`.
    - `pressure`: the pressure of the stream, in rho_ref c_ref^2, for the pressure coefficient; by default the pressure
      in `initial.state`, or 1/gamma.
    - `variables`: names of the variables to draw (keys of `COLUMNS`), separated by commas; "" for a default.
    - `time`: use the sample nearest to this time, in units of L / c_ref (length scale over sound speed).
    - `mean`: whether to return the mean over the samples from `start` to `end`, and the root mean squares `rms_<name>`
      of the fluctuations.

    Coefficients are divided by rho V^2/2 of the stream. If there is no stream, they are left out. Friction is positive
    along the stream. In wall units the distance of the first node is y u_tau / nu, with u_tau, density and viscosity at
    the wall. Raises HiresxError for a force that does not exist or has no samples, for a time without any, and for a
    plane that cuts no wall."""
    run = as_run(run)
    drawn = _variables(variables)
    if mean and time is not None:
        raise HiresxError("--mean and --time both choose samples", "give one of them")
    if not mean and (start is not None or end is not None):
        raise HiresxError("--from and --to choose the samples of a mean", "give --mean too")
    sampled = mean or time is not None
    flow = wall_flow.of_samples(run, force) if sampled else wall_flow.of_checkpoint(run.path, force)
    case, spec = flow.case, flow.spec
    stream = _stream(case, spec, velocity)
    state = case.initial.state
    if pressure is None:
        pressure = state.p if state is not None else 1 / case.gas.gamma

    def of(n: int) -> dict[str, np.ndarray]:
        return _columns(flow.sample(n), flow.normals, stream, pressure)

    if mean:
        values, when = _of_mean(flow, of, start, end)
    else:
        number = 0 if time is None else wall_flow.nearest(flow, time)
        values, when = of(number), {"step": int(flow.steps[number]), "time": float(flow.times[number])}
    shown = _Shown(flow.where, flow.places, values)
    if at is not None:
        shown = _cut(shown, at)
    summary: dict[str, Any] = {
        "run": str(run.path), "force": spec.name, **when, "at": at, "nodes": len(shown.where[0]),
        "pressure": pressure, "dynamic_pressure": stream and stream.pressure,
        "warnings": [] if stream else ["there is no stream, and so no coefficient: --velocity gives one"],
        "extremes": [_extremes(name, values, shown.places) for name, values in shown.values.items()],
    }  # fmt: skip
    drawn = [name for name in drawn if name in shown.values] or ["p"]
    data = dataset(
        {name: (("node",), values, *_about(name)) for name, values in shown.values.items()},
        {
            **{axis: ("node", shown.places[n], f"{axis} coordinate", "L") for axis, n in _AXES.items()},
            "block": ("node", np.array([flow.blocks[b] for b in shown.where[0]]), "block", "1"),
            **{axis: ("node", shown.where[n + 1], f"index {axis}", "1") for n, axis in enumerate("ijk")},
        },
        title=run.title,
    )
    which = "mean" if mean else f"{when['step']:06d}" if sampled else ""
    stem = file_stem("wall", spec.name, which)
    return Result(stem, summary, data, lambda: _draw(data, summary, drawn), case=run.case)


def _of_mean(
    flow: WallFlow, of: Callable[[int], dict[str, np.ndarray]], start: float | None, end: float | None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return mean and root mean square of every column of the samples from `start` to `end`, and the numbers of these
    samples."""
    chosen, weights = wall_flow.mean_weights(flow, start, end)
    names = list(of(chosen[0]))
    found = wall_flow.mean_and_rms(
        (weight, np.stack(list(of(n).values()))) for n, weight in zip(chosen, weights, strict=True)
    )
    values = {
        f"{prefix}{name}": row
        for prefix, rows in zip(("", RMS), found, strict=True)
        for name, row in zip(names, rows, strict=True)
    }
    first, last = chosen[[0, -1]]
    when = {
        "samples": len(chosen), "steps": [int(flow.steps[n]) for n in (first, last)],
        "times": [float(flow.times[n]) for n in (first, last)],
    }  # fmt: skip
    return values, when


def _about(name: str) -> tuple[str, str]:
    """Return long name and unit of a column."""
    text, unit = COLUMNS[name.removeprefix(RMS)]
    return (f"root mean square of the fluctuation: {text}" if name.startswith(RMS) else text), unit


def _extremes(name: str, values: np.ndarray, places: np.ndarray) -> dict[str, Any]:
    """Return the least and the greatest value of a column, and the place of the latter."""
    at = places[:, int(np.nanargmax(values))].tolist()
    return {"column": name, "least": float(np.nanmin(values)), "greatest": float(np.nanmax(values)),
            **{f"greatest_at_{axis}": at[n] for axis, n in _AXES.items()}}  # fmt: skip


def _variables(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()] or list(_DRAWN)
    for name in names:
        if name not in COLUMNS:
            raise HiresxError(f'walls have no "{name}"', f"take some of {', '.join(COLUMNS)}")
    return names


def _stream(case: Case, spec: Force, velocity: Sequence[float] | None) -> ForceCoefficients | None:
    """Return the stream for coefficients: the one with the given `velocity`, or else that of the force, or else that of
    the case. None if there is none."""
    given = spec.coefficients
    if velocity is not None:
        given = (given or Coefficients()).model_copy(update={"velocity": tuple(velocity)})
    try:
        return ForceCoefficients(f'force "{spec.name}"', given or Coefficients(), case, 3)
    except HiresxError:
        if given is not None:
            raise
        return None


def _columns(
    sample: Mapping[str, np.ndarray], normals: np.ndarray, stream: ForceCoefficients | None, pressure: float
) -> dict[str, np.ndarray]:
    """Return the `COLUMNS` (n,) of a sample; without a stream there are no coefficients."""
    stress = np.stack([sample[f"friction_{axis}"] for axis in "xyz"])
    values = {"p": sample["p"]}
    if stream:
        along = stream.stream[:, None] - (stream.stream @ normals) * normals
        length = np.linalg.norm(along, axis=0)
        tangent = along / np.where(length > 0, length, np.nan)
        values["cp"] = (sample["p"] - pressure) / stream.pressure
        values["cf"] = (stress * tangent).sum(axis=0) / stream.pressure
    return {**values, "friction": shear(stress), "heat": sample["heat"], "y_plus": sample["y_plus"]}


def _cut(nodes: _Shown, at: str) -> _Shown:
    """Return the values where the grid lines of the walls cross the plane `at`, in each block along the index direction
    with most crossings."""
    (axis, level), *more = cut.parse(at, "plane").items()
    if more or level is None:
        raise HiresxError(f'"{at}" is no plane', "e.g. --at z=0.5")
    along = nodes.places[_AXES[axis]]
    found = _crossings(nodes.where, along, level)
    if not found.nodes.size:
        raise HiresxError(
            f"{at} cuts none of these walls", f"they reach from {axis} = {along.min():g} to {along.max():g}"
        )
    places = np.stack([found(row) for row in nodes.places])
    return _Shown(nodes.where[:, found.nodes[0]], places, {name: found(v) for name, v in nodes.values.items()})


def _crossings(where: np.ndarray, along: np.ndarray, level: float) -> cut.WeightedPlaces:
    """Return where `along`, given at the nodes `where`, equals `level` on grid lines of one index direction of each
    block."""
    found = []
    for b in np.unique(where[0]):
        of_block = np.flatnonzero(where[0] == b)
        index = where[:0:-1, of_block]
        place = tuple(index - index.min(axis=1, keepdims=True))
        number = np.zeros(np.ptp(index, axis=1) + 1, dtype=int)
        number[place] = of_block
        values = np.full(number.shape, np.nan)
        values[place] = along[of_block]
        parts = (cut.crossings({"": values}, "", level, axis) for axis in (2, 1, 0))
        part = max(parts, key=lambda part: part.nodes.size)
        found.append(np.stack([number.ravel()[part.nodes], part.weights]))
    nodes, weights = np.concatenate(found, axis=2)
    return cut.WeightedPlaces(nodes.astype(int), weights)


def _draw(data: Any, summary: dict[str, Any], names: list[str]) -> Any:
    """Return a figure with one panel for each of `names` over x. The axis of the pressure coefficient is upside down,
    as usual."""
    figure = picture_file.figure(picture_file.HEIGHT * (0.3 + 0.25 * len(names)))
    panels = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
    for ax, name in zip(panels, names, strict=True):
        if f"{RMS}{name}" in data:
            low, high = (data[name] + sign * data[f"{RMS}{name}"] for sign in (-1, 1))
            ax.vlines(data["x"], low, high, color=picture_file.BLUE, alpha=0.25, lw=1)
        ax.plot(data["x"], data[name], ".", ms=2.5, color=picture_file.BLUE)
        ax.set_ylabel({"cp": "$C_p$", "cf": "$C_f$", "y_plus": "$y^+$"}.get(name, COLUMNS[name][0]))
        picture_file.add_grid(ax)
        if name == "cp":
            ax.invert_yaxis()
    panels[-1].set_xlabel("$x/L$")
    plane = f", {summary['at']}" if summary["at"] else ""
    when = f"step {summary['step']}" if "step" in summary else f"mean of {summary['samples']} samples, bars: rms"
    figure.suptitle(f"{data.attrs.get('title', '')}\n{summary['force']}{plane}, {when}", fontsize=9)
    return figure
