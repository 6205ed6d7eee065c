"""`hiresx post jet`: analysis of an under-expanded jet, from its Mach number to its screech, compared with theory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from hiresx.errors import HiresxError
from hiresx.post import jet_points, jet_screech, jet_shape, jet_theory, lags, signal_reading
from hiresx.post.result import Result, as_run, dataset
from hiresx.results import Run


@dataclass(frozen=True, eq=False)
class Jet:
    """The results of the analysis of one jet. `state`: the fully expanded jet. `flow`: the mean flow. `cells`: the
    shock cells. `screech`: the tones. `summary`: the numbers of the table. A result that is not available is None, and
    `missing` in the summary states what the run lacks."""

    run: Run
    state: jet_theory.ExpandedJet
    flow: jet_shape.Mean | None
    cells: jet_shape.Cells | None
    screech: jet_screech.Screech | None
    summary: dict[str, Any]


def jet(
    run: Any,
    start: float | None = None,
    end: float | None = None,
    lips: str | None = None,
    line: str | None = None,
    segments: int | None = None,
    pressure_ratio: float | None = None,
    exit_mach: float | None = None,
    total_temperature: float | None = None,
    shape: jet_theory.Shape | None = None,
    others: Sequence[Any] = (),
    points: Sequence[str | Path] = (),
) -> Result:
    """Return the shock cells, potential core, spreading, screech and convection velocity of an under-expanded jet,
    compared with formulas. `run`: a folder or the result of `hiresx.open`.

    - `start`, `end`: the first and the last time of the probes to use, in units of L / c_ref (length scale over sound
      speed). By default `start` is the time at which the averages began.
    - `lips`: the history with a probe on each side of the nozzle's lip. `line`: the history of a probe along the shear
      layer (NAME or NAME.COLUMN). By default both are searched for.
    - `segments`: the number of segments of the spectra.
    - `pressure_ratio`, `exit_mach`, `total_temperature` (divided by the ambient temperature): replace the parameters of
      the case.
    - `shape`: "planar", with lengths in heights h, or "round", with lengths in diameters D; by default as in the case's
      grid.
    - `others`: further runs of jets of the same shape, which are shown on the same page.
    - `points`: CSV files of further values to draw, with the columns Mj and Ls (Ls/h) or St (hiresx.post.jet_points).

    Raises HiresxError for a jet that is not under-expanded, and for a run without any of these results."""
    run = as_run(run)
    state = expanded_jet(run, pressure_ratio, exit_mach, total_temperature, shape)
    ours = analyse(run, state, start, end, segments, lips, line)
    beside = [
        analyse(other, expanded_jet(other, shape=state.shape), start, end, segments) for other in map(as_run, others)
    ]
    known = [*jet_points.stored_points(ours.state.shape), *jet_points.read_points(points)]
    from hiresx.post import jet_page, jet_pictures

    summary = ours.summary
    if beside:
        summary = {**summary, "others": [other.summary for other in beside]}
    return Result(
        "jet",
        summary,
        _arrays(ours),
        lambda: jet_pictures.against_theory([ours, *beside], known),
        {".html": lambda path: jet_page.write(path, [ours, *beside], known)},
    )


def analyse(
    run: Run, state: jet_theory.ExpandedJet, start: float | None = None, end: float | None = None,
    segments: int | None = None, lips: str | None = None, line: str | None = None,
) -> Jet:  # fmt: skip
    """Return the results of the analysis of the jet in one run. `state`: the fully expanded jet (see `expanded_jet`).
    `start`, `end`: the first and the last time of the probes, in L / c_ref; None for the start of the averages and the
    end of the run. `segments`: the number of segments of the spectra. `lips`: the name of the history with a probe on
    each side of the nozzle's lip. `line`: the name of the history of a probe along the shear layer. None: the function
    searches for it. Raises HiresxError if neither the mean flow, nor screech, nor the convection velocity can be
    found."""
    missing: list[str] = []
    if start is None:
        # The start of the flow, which the averages leave out, is left out of the probes, too.
        begun = float((run.case.get("average") or {}).get("start") or 0.0)
        start = begun if begun < float(run.record.get("time") or 0.0) else None
    flow = cells = heard = absent = None
    summary: dict[str, Any] = {
        "run": str(run.path), "shape": state.shape, "Mj": state.mach, "NPR": state.npr,
        "pressure_ratio": state.pressure_ratio, "Uj": state.velocity, "hj": state.height,
        "analysed_to_x": jet_shape.sponge_start(run), "missing": missing,
    }  # fmt: skip
    try:
        flow = jet_shape.mean(run, start, end)
    except HiresxError as error:
        absent = error
        missing.append(f"shock cells: {error.message}; {error.hint}")
    if flow is not None:
        sheet = jet_theory.spacing(state)
        cells = jet_shape.cells(flow, 1 / run.gamma, sheet, state.pressure_ratio / run.gamma)
        core = jet_shape.core_end(flow, state.velocity)
        summary |= {
            "mean_flow": flow.source,
            "cell_spacing": cells.mean, "cell_spacing_spread": cells.deviation,
            "cell_spacing_over_vortex_sheet": cells.mean / sheet if cells.mean else None,
            "core_end": core, "spreading": jet_shape.spreading(flow, core),
            "cells": [
                {"cell": n + 1, "end": at, "length": length, "over_vortex_sheet": length / sheet, "pressure_rise": rise}
                for n, (at, length, rise) in enumerate(zip(cells.ends, cells.lengths, cells.depths, strict=True))
            ],
            "no_cells": [{"at": d.at, "length": d.length, "pressure_rise": d.rise, "why": d.why}
                         for d in cells.discarded],
        }  # fmt: skip
    scale = state.length / state.velocity
    try:
        pair = jet_screech.lips(run, lips, state.shape) if lips is None or "." not in lips else lips
        expected = jet_theory.screech_strouhal(state) / scale
        heard = jet_screech.screech(run, expected, scale, pair, start, end, segments)
        summary["screech"] = heard.summary
    except HiresxError as error:
        if lips is not None:
            raise
        missing.append(f"screech: {error.message}; {error.hint}")
    try:
        summary["convection"] = _convection(run, line, start, end, state.velocity)
    except HiresxError as error:
        if line is not None:
            raise
        missing.append(f"convection velocity: {error.message}; {error.hint}")
    if absent and heard is None and "convection" not in summary:
        raise absent
    summary["predictions"] = _predictions(state, cells, summary.get("convection"))
    return Jet(run, state, flow, cells, heard, summary)


def expanded_jet(
    run: Run, ratio: float | None = None, mach: float | None = None, temperature: float | None = None,
    shape: jet_theory.Shape | None = None,
) -> jet_theory.ExpandedJet:  # fmt: skip
    """Return the state of the jet of a run after isentropic expansion to the ambient pressure. `ratio`: pressure at the
    exit divided by ambient pressure. `mach`: Mach number at the exit. `temperature`: total temperature divided by
    ambient temperature. `shape`: "planar" or "round". An argument that is None is taken from the parameters and the
    grid of the case. Raises HiresxError if the pressure ratio is not known, for another shape, or if the jet is not
    supersonic."""
    parameters = run.case.get("parameters") or {}
    ratio = parameters.get("pressure_ratio") if ratio is None else ratio
    mach = parameters.get("exit_mach", 1.0) if mach is None else mach
    temperature = parameters.get("temperature_ratio", 1.0) if temperature is None else temperature
    if shape is None:
        shape = "round" if "round" in str((run.case.get("grid") or {}).get("generator", "")) else "planar"
    if shape not in get_args(jet_theory.Shape):
        raise HiresxError(f'a jet is not "{shape}"', "it is planar or round")
    if ratio is None:
        raise HiresxError(
            f"the case of {run.path} has no parameter pressure_ratio",
            "give exit over ambient pressure: --pressure-ratio",
        )
    state = jet_theory.expand_jet(float(ratio), float(mach), run.gamma, float(temperature), shape=shape)
    if not state.mach > 1:
        raise HiresxError(
            f"exit pressure {ratio:g} and exit Mach number {mach:g} make no supersonic jet", "see --pressure-ratio"
        )
    return state


def _convection(run: Run, line: str | None, start: float | None, end: float | None, velocity: float) -> dict[str, Any]:
    """Return the convection velocity along the shear layer, of v if the history has it, else of p."""
    name = line or _shear_line(run)
    if "." not in name:
        quantities = set(map(str, run.history(name).data_vars))
        name = f"{name}.{'v' if 'v' in quantities else 'p'}"
    hint = "give a probe with a line along the shear layer"
    taken, _, distance = signal_reading.read_line(run, name, start, end, 8, hint)
    longest = min(float(distance[-1]) / 0.5, len(taken.values) * taken.dt / 4)
    found = lags.convection(taken.values, taken.dt, distance, 1.5, longest)
    known = found[np.isfinite(found)]
    if not known.size:
        raise HiresxError(f"{name} is correlated too little for a velocity", "sample more often, or run longer")
    middle = float(np.median(known))
    low, high = (float(q) for q in np.quantile(known, (0.25, 0.75)))
    return {"signals": name, "velocity": middle, "over_Uj": middle / velocity, "quartiles": [low, high],
            "quartiles_over_Uj": [low / velocity, high / velocity], "places": int(known.size)}  # fmt: skip


def _shear_line(run: Run) -> str:
    for name in run.histories:
        history = run.history(name)
        if "place" not in history.dims or not {"p", "v"} & set(history.data_vars) or history.sizes["place"] < 8:
            continue
        x, y = history["x"].values, history["y"].values
        if np.ptp(x) > 2 and (np.abs(np.abs(y) - 0.55) < 0.3).all() and (np.diff(x) > 0).all():
            return name
    raise HiresxError(
        f"{run.path} has no probe along the shear layer",
        'add one: [[probe]] name = "shear", line = { start = [0.5, 0.55, 0.0], end = [8.0, 0.55, 0.0], n = 76 }',
    )


def _predictions(
    state: jet_theory.ExpandedJet, cells: jet_shape.Cells | None, carried: dict[str, Any] | None
) -> list[dict[str, Any]]:
    sheet = jet_theory.spacing(state)
    found = [
        {"formula": name, "spacing": sheet, "strouhal": tone(state)} for name, tone in jet_theory.tones(state.shape)
    ]
    for name, tone in jet_theory.correlations(state.shape):
        found.append({"formula": name, "spacing": None, "strouhal": tone(state)})
    if cells is not None and cells.mean and carried:
        st = jet_theory.strouhal(state, carried["over_Uj"], cells.mean)
        found.append({"formula": "this run's spacing and uc", "spacing": cells.mean, "strouhal": st})
    return found


def _arrays(ours: Jet) -> Any:
    held: dict[str, Any] = {}
    coordinates: dict[str, Any] = {}
    if ours.flow is not None:
        held["p"] = ("x", ours.flow.p, "mean pressure on the axis", "rho_ref c_ref^2")
        held["u"] = ("x", ours.flow.u, "mean velocity on the axis", "c_ref")
        coordinates["x"] = ("x", ours.flow.x, "distance from the exit", "L")
        if ours.flow.station.size:
            held["half_width"] = ("station", ours.flow.half_width, "half-width of the mean jet", "L")
            coordinates["station"] = ("station", ours.flow.station, "distance from the exit", "L")
    if ours.screech is not None:
        spectra = ours.screech.spectra
        units = "(rho_ref c_ref^2)^2 L / c_ref"
        for n, part in enumerate(("symmetric", "antisymmetric")):
            held[part] = ("strouhal", spectra.density[n], f"density of the {part} pressure at the lips", units)
        coordinates["strouhal"] = (
            "strouhal",
            spectra.frequency * ours.state.length / ours.state.velocity,
            "f h / Uj" if ours.state.shape == "planar" else "f Dj / Uj",
            "1",
        )
    return dataset(held, coordinates, title=ours.run.title, Mj=ours.state.mach)
