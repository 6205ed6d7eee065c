"""Pictures of the analysis of a jet, like Figs 18, 19 and 20 of Ye et al., Advances in Aerodynamics 4:7 (2022)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.show import colours, picture_file
from hiresx.output.show.look import Look
from hiresx.post import grid_cutoff, jet_theory
from hiresx.post.jet_points import MeasuredPoints
from hiresx.post.welch import REFERENCE_PRESSURE

if TYPE_CHECKING:
    from hiresx.post.jet import Jet

_MARKS = ("s", "^", "D", "v", "P", "X")
_STYLES = ("-", "--", ":")


def unit(jet: "Jet") -> str:
    """Return the symbol of the unit of length of a jet: "h", the height of a planar nozzle, or "D", the diameter of a
    round one."""
    return "h" if jet.state.shape == "planar" else "D"


def strouhal(jet: "Jet") -> str:
    """Return the definition of the Strouhal number of a jet as a formula for the label of an axis: f h/Uj with the
    nozzle height h of a planar jet, or f Dj/Uj with the diameter Dj of a fully expanded round jet."""
    return "f\\,h/U_j" if jet.state.shape == "planar" else "f\\,D_j/U_j"


def against_theory(jets: Sequence["Jet"], known: Sequence[MeasuredPoints]) -> Any:
    """Return a Matplotlib figure of the shock-cell spacing and the Strouhal number of the screech over Mj for several
    jets, with curves of theory and the measured values `known`. It corresponds to Figs 18 and 19 of Ye et al.
    (2022)."""
    figure = picture_file.figure(4.4)
    left, right = figure.subplots(1, 2)
    first, shape = jets[0], jets[0].state.shape
    machs = [jet.state.mach for jet in jets]
    machs += [m for points in known for pair in points.columns.values() for m in pair[0]]
    mach = np.linspace(max(1.02, min(1.1, min(machs) - 0.05)), max(1.9, max(machs) + 0.05), 120)
    states = [jet_theory.of_mach(float(m), first.run.gamma, shape=shape) for m in mach]
    for (name, formula), style in zip(jet_theory.spacings(shape), ("-", ":"), strict=True):
        left.plot(mach, [formula(s) for s in states], color="k", ls=style, lw=1.0, label=name)
    for (name, formula), style in zip(jet_theory.tones(shape), _STYLES, strict=False):
        right.plot(mach, [formula(s) for s in states], color="k", ls=style, lw=0.9, label=name)
    band = jet_theory.correlations(shape)
    if band:
        bounds = [[formula(s) for s in states] for _, formula in band]
        names = " to ".join(name.partition(",")[0] for name, _ in band)
        right.fill_between(mach, *bounds, color="0.6", alpha=0.5, lw=0, label=f"correlations, {names}")
    for n, points in enumerate(known):
        how = {"mec": "0.35", "ms": 5, "ls": "", "label": points.label, "zorder": 2, "marker": _MARKS[n % len(_MARKS)]}
        how["mfc"] = "0.35" if points.is_measured else "none"
        for ax, key in ((left, "Ls"), (right, "St")):
            if key in points.columns and points.columns[key][0].size:
                ax.plot(*points.columns[key], **how)
    for n, jet in enumerate(jets):
        colour = picture_file.BLUE if n == 0 else picture_file.OTHERS[(n - 1) % len(picture_file.OTHERS)]
        mark = {"marker": "o", "ms": 6, "color": colour, "ls": "", "zorder": 4, "label": run_name(jet)}
        if jet.cells is not None and jet.cells.mean:
            least, most = min(jet.cells.lengths), max(jet.cells.lengths)
            reach = [[jet.cells.mean - least], [most - jet.cells.mean]]
            left.errorbar([jet.state.mach], [jet.cells.mean], reach, capsize=3, lw=1, **mark)
        tone = jet.summary.get("screech", {}).get("fundamental")
        if tone:
            half = tone["half_power_width"] * jet.state.length / jet.state.velocity / 2
            right.errorbar([jet.state.mach], [tone["strouhal"]], [[half], [half]], capsize=3, lw=1, **mark)
    left.set_ylabel(f"$L_s/{unit(first)}$")
    right.set_ylabel(f"$\\mathrm{{St}} = {strouhal(first)}$")
    left.set_ylim(bottom=0)
    right.set_ylim(0, 1.1 * max((line.get_ydata().max() for line in right.lines if len(line.get_ydata())), default=0.5))
    for ax in (left, right):
        ax.set_xlabel("$M_j$")
        ax.margins(x=0)
        picture_file.add_grid(ax)
        # Below the axes, so that no curve is hidden, for any number of points.
        ax.legend(loc="upper left", bbox_to_anchor=(-0.12, -0.16), fontsize=7, borderaxespad=0)
    left.set_title("shock-cell spacing: mean, shortest, longest", loc="left")
    right.set_title("screech: fundamental and its half-power width", loc="left")
    return figure


def run_name(jet: "Jet") -> str:
    """Return the name of the folder of the run from which the results `jet` were computed."""
    return jet.run.path.resolve().name


def axis(ours: "Jet") -> Any:
    """Return a Matplotlib figure of the mean pressure and velocity on the axis of the jet `ours` with its shock cells,
    and of the half-width over x. The attributes `flow` and `cells` of the jet must not be None."""
    flow, cells = ours.flow, ours.cells
    assert flow is not None and cells is not None
    rows = 2 + bool(flow.station.size)
    figure = picture_file.figure(1.0 + 1.55 * rows)
    axes = figure.subplots(rows, 1, sharex=True)
    axes[0].plot(flow.x, flow.p, color=picture_file.BLUE)
    axes[0].axhline(1 / ours.run.gamma, color="0.5", lw=0.7, ls="--")
    axes[0].set_ylabel(picture_file.symbol("p"))
    named = [
        (at, float(np.interp(at, flow.x, flow.p)), f"cell {n + 1}: {length:.2f}")
        for n, (at, length) in enumerate(zip(cells.ends, cells.lengths, strict=True))
    ]
    for at, height, _ in named:
        axes[0].plot([at], [height], "o", ms=4, color=picture_file.OTHERS[0])
    axes[0].set_xlim(0, flow.end)
    picture_file.label_points(axes[0], named)
    axes[1].plot(flow.x, flow.u, color=picture_file.BLUE)
    axes[1].axhline(ours.state.velocity, color="0.5", lw=0.7, ls="--")
    axes[1].annotate("$U_j$", (1, ours.state.velocity), (4, 0), xycoords=("axes fraction", "data"),
                     textcoords="offset points", va="center", fontsize=8, color="0.4")  # fmt: skip
    axes[1].set_ylabel(picture_file.symbol("u"))
    core = ours.summary.get("core_end")
    if core:
        axes[1].axvline(core, color=picture_file.OTHERS[0], lw=0.8)
        height = float(np.interp(core, flow.x, flow.u))
        picture_file.label_points(axes[1], [(core, height, f"end of the core, {core:.2f}")])
    if flow.station.size:
        axes[2].plot(flow.station, flow.half_width, "o", ms=3, mfc="none", color=picture_file.BLUE)
        grown = ours.summary.get("spreading")
        if grown and grown["rate"] is not None:
            text = f"grows by {grown['rate']:.3f} $\\pm$ {grown['rate_uncertainty']:.3f}"
            axes[2].plot([grown["from"], grown["to"]], grown["half_widths"], color=picture_file.OTHERS[0], label=text)
            picture_file.legend_beside(axes[2])
        axes[2].set_ylabel(f"half-width $/{unit(ours)}$")
        axes[2].set_ylim(bottom=0)
    for ax in axes:
        picture_file.add_grid(ax)
    axes[-1].set_xlabel(f"$x/{unit(ours)}$")
    return figure


def lip_spectra(ours: "Jet") -> Any:
    """Return a Matplotlib figure of the spectra of the symmetric and the antisymmetric part of the pressure at the
    nozzle's lips of the jet `ours`, over the Strouhal number. The attribute `screech` of the jet must not be None."""
    assert ours.screech is not None
    found, summary = ours.screech.spectra, ours.screech.summary
    figure = picture_file.figure(3.2)
    ax = figure.subplots()
    scale = ours.state.velocity / ours.state.length
    st = found.frequency / scale
    # p / (rho_ref c_ref^2) = p* / (gamma p_ambient), the ambient air at 101325 Pa.
    reference = REFERENCE_PRESSURE / (ours.run.gamma * 101325.0)
    labels = ("antisymmetric (flapping)", "symmetric")
    for n, colour, label in zip((1, 0), (picture_file.BLUE, picture_file.OTHERS[0]), labels, strict=True):
        level = 10 * np.log10(found.density[n] * scale / reference**2)
        ax.plot(st[1:], level[1:], color=colour, label=label, lw=1.2 if n else 0.9)
    tone = summary["fundamental"]
    named = []
    for line in [tone, *summary["harmonics"]] if tone else []:
        ax.axvline(line["strouhal"], color="0.5", lw=0.7, ls=":")
        named.append((line, "f" if line is tone else f"{line['order']} f"))
    formulas = jet_theory.correlations(ours.state.shape) or jet_theory.tones(ours.state.shape)
    expected = [formula(ours.state) for _, formula in formulas]
    ax.axvspan(min(expected), max(expected), color="0.6", alpha=0.35, lw=0, label="formulas for this $M_j$")
    ax.set_xscale("log")
    ax.set_xlim(st[1], min(st[-1], 3.0))
    within = st[1:] <= min(st[-1], 3.0)
    shown = 10 * np.log10(found.density[:, 1:][:, within] * scale / reference**2)
    ax.set_ylim(shown.min() - 3, shown.max() + 3)
    top = float(shown.max())
    picture_file.label_points(
        ax, [(line["strouhal"], top, f"{name}: {line['strouhal']:.4f} {line['mode']}") for line, name in named]
    )
    if summary["cutoff"] is not None:
        grid_cutoff.shade(ax, summary["cutoff"] / scale, summary["points_per_wave"])
    ax.set_xlabel(f"$\\mathrm{{St}} = {strouhal(ours)}$")
    ax.set_ylabel(f"level per Strouhal number\n[{picture_file.level('dB re 20 uPa')}, ambient 101325 Pa]")
    picture_file.add_grid(ax, minor=True)
    picture_file.legend_beside(ax)
    return figure


def flow(ours: "Jet") -> Any:
    """Return a Matplotlib figure of the last fields of the jet `ours`: spanwise vorticity, and dilatation, which shows
    shocks and sound. A three-dimensional flow is cut at a plane of constant z. It corresponds to Fig. 20 of Ye et al.
    (2022). Raises HiresxError if no node lies between the sponges."""
    from matplotlib.colors import Normalize

    tree = ours.run.fields(-1, ["vorticity_z", "dilatation"])
    pieces = tree.hiresx.pieces("vorticity_z", "dilatation")
    where = ""
    if tree.hiresx.dimensions == 3:
        middle = 0.0 if ours.state.shape == "round" else cut.middle(pieces, "z")
        pieces, where = cut.plane(pieces, "z", middle), f", $z/{unit(ours)} = {middle:.3g}$"
    else:
        pieces = [{name: np.squeeze(values) for name, values in piece.items()} for piece in pieces]
    box = _box(ours, pieces)
    inside = [(p["x"] > box[0]) & (p["x"] < box[1]) & (p["y"] > box[2]) & (p["y"] < box[3]) for p in pieces]
    spin = np.concatenate([np.abs(p["vorticity_z"][here]) for p, here in zip(pieces, inside, strict=True)])
    sound = np.concatenate([np.abs(p["dilatation"][here]) for p, here in zip(pieces, inside, strict=True)])
    if not spin.size:
        raise HiresxError(
            "no node of the fields lies between the sponges", "give a run of a jet in two or three dimensions"
        )
    strongest = max(float(np.quantile(spin, 0.985)), 1e-12)
    # Sound is shown in the region without vorticity.
    quiet = sound[spin < 0.01 * strongest]
    loudest = max(2 * float(np.quantile(quiet if quiet.size > 100 else sound, 0.95)), 1e-12)
    scales = {
        "vorticity_z": (Normalize(-strongest, strongest), "RdBu_r", "both"),
        "dilatation": (Normalize(-loudest, loudest), "gray", "both"),
    }
    figure = colours.draw([("x", "y", pieces, "")], list(scales), scales, look=Look(zoom=box))
    time = float(tree.coords["time"])
    figure.suptitle(f"$t = {time:.4g}\\,{unit(ours)}/c${where}", fontsize=9, x=0.01, ha="left")
    return picture_file.use_length_symbol(figure, {"length_symbol": unit(ours)})


def _box(ours: "Jet", pieces: list[cut.Piece]) -> tuple[float, float, float, float]:
    """Return the box between the sponges: least and greatest x, then y."""
    ends = {axis: list(cut.extent(pieces, axis)) for axis in "xy"}
    for sponge in ours.run.case.get("sponge") or ():
        if sponge["axis"] in ends:
            low, high = ends[sponge["axis"]]
            outward = sponge["end"] > sponge["start"]
            # Upstream the sponge begins at the height of the exit, so that the region between it and the nozzle is
            # shown.
            if outward:
                high = min(high, sponge["start"])
            elif sponge["axis"] == "y":
                low = max(low, sponge["start"])
            ends[sponge["axis"]] = [low, high]
        elif sponge["axis"] == "r" and sponge["end"] > sponge["start"]:
            low, high = ends["y"]
            ends["y"] = [max(low, -sponge["start"]), min(high, sponge["start"])]
    return ends["x"][0], ends["x"][1], ends["y"][0], ends["y"][1]
