"""Remarks of `hiresx check` on a set-up: parameters, sponges, the resolution of the grid, the duration."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hiresx.cli import terminal

if TYPE_CHECKING:
    from hiresx.case import Case
    from hiresx.decomposition import Decomposition
    from hiresx.output.watch.locate import Location

# Least number of periods of a tone in a spectrum.
PERIODS = 20
# Number of points in a boundary layer below which a remark is printed.
IN_LAYER = 4
# Disturbances that enter do not force screech if their frequencies are above this multiple of its expected frequency.
ABOVE = 1.5


def setup(
    case: "Case",
    decomposition: "Decomposition",
    refined: "Decomposition",
    located: Sequence[Sequence["Location"]],
    points: float | None = None,
) -> dict[str, Any]:
    """Return the remarks of `hiresx check` on parameters, sponges, resolution and duration of `case`, as a dictionary
    that JSON can represent. `decomposition`: the blocks of the grid. `refined`: the blocks of all levels of refinement.
    `located`: for each probe the locations of its points in `refined`. `points`: number of nodes per wavelength with
    which sound counts as resolved; None: the default. Raises HiresxError for sponges that do not fit the grid."""
    from hiresx.estimate import resolution
    from hiresx.output.watch.overlaps import overlaps
    from hiresx.rhs import closed, frozen, layers

    points = resolution.POINTS_PER_WAVE if points is None else points
    blocks = decomposition.blocks
    case = layers.place_sponges(case, blocks)
    layers.check(case, blocks)
    sponges = layers.facts(case, blocks)
    seen = [
        (spec.name, spec.places, [refined.blocks[found.block].name for found in places])
        for spec, places in zip(case.probe, located, strict=True)
    ]
    probes = []
    for spec, places in zip(case.probe, located, strict=True):
        spacing = [resolution.spacing_at(refined.blocks[found.block], found.index) for found in places]
        worst, best = (
            max(range(len(spacing)), key=spacing.__getitem__),
            min(range(len(spacing)), key=spacing.__getitem__),
        )
        probes.append(
            {
                "probe": spec.name, "places": len(places),
                "cutoff": 1 / (points * spacing[worst]), "at": list(spec.places[worst]),
                "largest": 1 / (points * spacing[best]), "largest_at": list(spec.places[best]),
            }
        )  # fmt: skip
    inflow = resolution.inflow_layers(case, refined)
    warnings = [
        *layers.notes(case, blocks),
        *frozen.notes(case, decomposition),
        *overlaps(layers.with_tiles(case, refined), seen),
        *_thin(inflow),
    ]
    warnings += closed.notes(case, decomposition)
    if case.average is not None and case.time.end is not None and case.average.start >= case.time.end:
        warnings.append(
            f"average.start = {case.average.start:g} is not before time.end = {case.time.end:g}: nothing is averaged"
        )
    warnings += _averages(case, decomposition)
    screech = _screech(case)
    warnings += _forcing_remarks(inflow, screech)
    if screech is not None and screech["periods"] is not None and screech["periods"] < PERIODS:
        warnings.append(
            f"the time from {screech['from']:g} to {screech['to']:g} holds {screech['periods']:.1f} periods of the "
            f"expected screech; {PERIODS} need time.end = {screech['wanted_end']:.0f}"
        )
    return {
        "parameters": dict(case.parameters), "derived": case.derived, "sponges": sponges,
        "resolution": {"points_per_wave": points, "blocks": resolution.sound(case, blocks, points), "probes": probes},
        "inflow_layers": inflow, "screech": screech, "warnings": warnings,
    }  # fmt: skip


def _averages(case: "Case", decomposition: "Decomposition") -> Iterator[str]:
    """Yield a remark on averages for budgets that are stored at every node. Raises HiresxError for directions of
    average.over that are not homogeneous."""
    from hiresx.decomposition.homogeneous import all_homogeneous, homogeneous
    from hiresx.device.averaging import kinds, quantities
    from hiresx.equations import equations

    given = case.average
    if given is None:
        return
    for n in range(len(decomposition.blocks)):
        homogeneous(decomposition, n, given.over)
    if given.over or not (given.budget or given.stress_budgets):
        return
    count = quantities(kinds(given), equations(case).scalars)
    name = "stress_budgets" if given.stress_budgets else "budget"
    found = [f'"{letter}"' for letter in all_homogeneous(decomposition)]
    instead = (
        f"average.over = [{', '.join(found)}] keeps those of lines instead"
        if found
        else "no index direction is homogeneous, over which they could be averaged as they are sampled"
    )
    yield (
        f"average.{name} keeps {count} numbers of every node, {8e-9 * count * decomposition.points:.2g} GB in all: "
        f"{instead}"
    )


def _thin(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for layer in found:
        if layer["points"] < IN_LAYER:
            yield (
                f"the layer at {layer['wall']} of block '{layer['block']}' that enters through {layer['face']} is "
                f"{layer['thickness']:.3g} thick and has {layer['points']} nodes in it: it is not resolved"
            )


def aliasing_remarks(
    case: "Case", refined: "Decomposition", located: Sequence[Sequence["Location"]], dt: float
) -> Iterator[str]:
    """Yield a warning for each probe whose samples may be aliased: the grid resolves frequencies above half the
    sampling rate, which would appear as lower ones. `refined`: the blocks of all levels of refinement. `located`: for
    each probe the locations of its points in `refined`. `dt`: the time step in L / c_ref."""
    from hiresx.estimate import resolution
    from hiresx.output.watch.monitors.probe import is_filtered

    for spec, places in zip(case.probe, located, strict=True):
        distance = dt * spec.every if spec.every is not None else spec.every_time
        if is_filtered(case, spec) or case.time.local or not distance:
            continue
        held = 1 / (
            resolution.HELD * min(resolution.shortest_edge(refined.blocks[at.block], at.index) for at in places)
        )
        if 0.5 / distance < 0.99 * held:  # exceeds it by more than round-off
            yield (
                f'probe "{spec.name}" samples the flow every {distance:.3g} L/c_ref, which resolves frequencies up to '
                f"{0.5 / distance:.3g}; the grid there holds frequencies up to {held:.3g}, which appear as lower ones: "
                'leave out filter = "none", or sample more often'
            )


def _forcing_remarks(found: Sequence[Mapping[str, Any]], screech: Mapping[str, Any] | None) -> Iterator[str]:
    for layer in found:
        if screech is not None and layer["band"] and layer["band"][0] < ABOVE / screech["period"]:
            low, high = layer["band"]
            yield (
                f"what enters through {layer['face']} of block '{layer['block']}' fluctuates at "
                f"f L / c_ref = {low:.2f} to {high:.2f}: it forces the screech, expected at {1 / screech['period']:.2f}"
            )


def _screech(case: "Case") -> dict[str, Any] | None:
    """Return the screech frequency that formulas predict for a planar or a round jet, and the number of its periods in
    the time that is analysed. The result is None for other cases, and for a jet that leaves its nozzle at the ambient
    pressure."""
    given, generator = case.parameters, getattr(case.grid, "generator", None)
    if generator not in ("planar-jet", "round-jet") or "pressure_ratio" not in given:
        return None
    from hiresx.post import jet_theory

    ratio, mach, total = (float(given.get(n, 1.0)) for n in ("pressure_ratio", "exit_mach", "temperature_ratio"))
    shape: jet_theory.Shape = "planar" if generator == "planar-jet" else "round"
    state = jet_theory.expand_jet(ratio, mach, case.gas.gamma, total, shape=shape)
    if not state.mach > 1 or ratio == 1:
        return None
    formulas = [*jet_theory.tones(shape), *jet_theory.correlations(shape)]
    strouhal = [formula(state) for _, formula in formulas]
    frequency = jet_theory.screech_strouhal(state) * state.velocity / state.length
    start = 0.0 if case.average is None else case.average.start
    end = case.time.end
    return {
        "shape": shape, "Mj": state.mach, "spacing": jet_theory.spacing(state),
        "strouhal": [min(strouhal), max(strouhal)], "period": 1 / frequency, "from": start, "to": end,
        "periods": None if end is None else max(end - start, 0.0) * frequency,
        "wanted_end": start + PERIODS / frequency,
    }  # fmt: skip


def costs(case: "Case", planned: Mapping[str, Any]) -> dict[str, float]:
    """Return the estimated wall time of a run in s, by the backend ("cpu", "cuda"), for those backends whose speed was
    measured on this machine. `planned`: the result of `hiresx.estimate.resources.estimate`. The result is empty if the
    number of steps is unknown."""
    from hiresx.device.rates import known_rate

    if planned["steps"] is None:
        return {}
    evaluations = planned["points"] * planned["steps"] * planned["integrator"]["stages"]
    rates = {name: known_rate(name, case.gas.reynolds is not None, case.scheme.precision) for name in ("cpu", "cuda")}
    return {name: rate["ns_per_point_rhs"] * 1e-9 * evaluations for name, rate in rates.items() if rate is not None}


def show(report: Mapping[str, Any]) -> None:
    """Print `report`, the result of `setup`, as tables and sentences."""
    if report["parameters"]:
        rows = [
            (name, value if isinstance(value, str) else f"{value:g}", "follows" if name in report["derived"] else "")
            for name, value in report["parameters"].items()
        ]
        terminal.table("Parameters", ["", "", ""], rows)
    if report["sponges"]:
        layers = [
            (
                n,
                f"{s['axis']} {s['start']:g} to {s['end']:g}",
                f"{s['thickness']:g}",
                s["points"],
                f"{s['strength']:g} s^{s['power']:g}",
                f"{s['damping']:.3g} ({s['damping_db']:.1f} dB)",
                ", ".join(s["blocks"]) if len(s["blocks"]) <= 4 else f"{len(s['blocks'])} blocks",
            )
            for n, s in enumerate(report["sponges"])
        ]
        columns = ["", "where", "thickness", "points", "strength", "sound across it", "blocks"]
        terminal.table("Sponges: lengths in L, what is left of a sound wave in gas at rest", columns, layers)
    resolved = report["resolution"]
    waves = [
        (name, f"{r['cutoff']:.3g} at {_place(r['at'])}", f"{r['largest']:.3g} at {_place(r['largest_at'])}")
        for kind, key in (("blocks", "block"), ("probes", "probe"))
        for r in resolved[kind]
        for name in (f"{key} {r[key]}",)
    ]
    if waves:
        terminal.table(
            f"Frequencies f L / c_ref with {resolved['points_per_wave']:g} points per wavelength of sound, between the "
            "sponges",
            ["", "least", "largest"],
            waves,
        )
    if report["inflow_layers"]:
        walls = [
            (
                f"{f['block']} {f['face']}",
                f["wall"],
                f"{f['thickness']:.3g}",
                f["points"],
                f"{f['first_spacing']:.3g}",
                f"{100 * f['rms']:.2g} %" if f["rms"] else "none",
                "{:.2f} to {:.2f}".format(*f["band"]) if f["band"] else "",
            )
            for f in report["inflow_layers"]
        ]
        terminal.table(
            "Layers that enter",
            ["through", "at", "thickness", "nodes in it", "first spacing", "rms", "f L / c_ref"],
            walls,
        )
    if (s := report["screech"]) is not None:
        low, high = s["strouhal"]
        length, unit = ("h", "h") if s["shape"] == "planar" else ("Dj", "D")
        terminal.say(
            f"screech expected at f {length}/Uj = {low:.3f} to {high:.3f} (Mj {s['Mj']:.3f}, shock cells of "
            f"{s['spacing']:.2f} {unit} at most): a period of {s['period']:.2f} {unit}/c; "
            f"{PERIODS} periods end at t = {s['wanted_end']:.0f}"
            + ("" if s["periods"] is None else f", {s['periods']:.1f} lie between {s['from']:g} and {s['to']:g}")
        )
    for warning in report["warnings"]:
        terminal.say(f"warning: {warning}")


def _place(place: Sequence[float]) -> str:
    return f"({', '.join(f'{c:.3g}' for c in place)})"
