"""Pictures of a planar jet, of the form of Figs 18, 19 and 20 of Ye et al., Advances in Aerodynamics 4:7 (2022)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.output.fields import cut
from hiresx.output.show import page
from hiresx.post import jet_theory
from hiresx.post.welch import REFERENCE_PRESSURE

if TYPE_CHECKING:
    from hiresx.post.jet import Jet

Measured = Sequence[tuple[str, Mapping[str, np.ndarray]]]
_MARKS = ("s", "^", "D", "v", "P", "X")
# Vorticity below this part of the colour range is clear, so that sound is seen.
_CLEAR = 0.06


def against_theory(ours: "Jet", others: Sequence["Jet"], measured: Measured) -> Any:
    """Spacing of the shock cells and Strouhal number of the screech over Mj, with curves of theory: Figs 18 and 19."""
    figure = page.figure(3.7)
    left, right = figure.subplots(1, 2)
    machs = [jet.state.mach for jet in (ours, *others)] + [m for _, table in measured for m in table["Mj"]]
    mach = np.linspace(max(1.02, min(1.1, min(machs) - 0.05)), max(1.9, max(machs) + 0.05), 120)
    states = [jet_theory.of_mach(float(m), ours.run.gamma) for m in mach]
    left.plot(mach, [jet_theory.spacing(s) for s in states], color="k", label="vortex sheet (Tam)")
    left.plot(mach, [0.8 * jet_theory.spacing(s) for s in states], color="k", ls=":", lw=0.9, label="0.8 of it")
    for k, style in zip(jet_theory.CONVECTION, ("-", "--"), strict=True):
        label = f"vortex sheet, $u_c = {k:.2f}\\,U_j$"
        right.plot(mach, [jet_theory.strouhal(s, k) for s in states], color="k", ls=style, lw=0.9, label=label)
    bounds = [[jet_theory.empirical(s, k) for s in states] for k in jet_theory.EMPIRICAL.values()]
    names = " to ".join(f"{name}" for name in jet_theory.EMPIRICAL)
    right.fill_between(mach, *bounds, color="0.6", alpha=0.5, lw=0, label=f"correlations, {names}")
    for mark, (name, table) in zip(_MARKS, measured, strict=False):
        for ax, key in ((left, "Ls"), (right, "St")):
            if key in table:
                ax.plot(table["Mj"], table[key], mark, mfc="none", mec="0.35", ms=5, label=name, zorder=2)
    for n, jet in enumerate((ours, *others)):
        colour = page.BLUE if n == 0 else page.OTHERS[(n - 1) % len(page.OTHERS)]
        style = {"marker": "o", "ms": 6, "color": colour, "ls": "", "zorder": 4, "label": jet.run.path.resolve().name}
        if jet.cells is not None and jet.cells.mean:
            least, most = min(jet.cells.lengths), max(jet.cells.lengths)
            reach = [[jet.cells.mean - least], [most - jet.cells.mean]]
            left.errorbar([jet.state.mach], [jet.cells.mean], reach, capsize=3, lw=1, **style)
        tone = jet.summary.get("screech", {}).get("fundamental")
        if tone:
            half = tone["half_power_width"] / jet.state.velocity / 2
            right.errorbar([jet.state.mach], [tone["strouhal"]], [[half], [half]], capsize=3, lw=1, **style)
    left.set_ylabel("$L_s/h$")
    right.set_ylabel("$\\mathrm{St} = f\\,h/U_j$")
    left.set_ylim(bottom=0)
    right.set_ylim(0, max(0.5, 1.1 * max((line.get_ydata().max() for line in right.lines), default=0.5)))
    for ax, place in ((left, "upper left"), (right, "upper right")):
        ax.set_xlabel("$M_j$")
        ax.margins(x=0)
        ax.grid(lw=0.3, color="0.85")
        ax.set_axisbelow(True)
        ax.legend(loc=place, fontsize=7.5)
    left.set_title("shock-cell spacing: mean, shortest, longest", loc="left")
    right.set_title("screech: fundamental and its half-power width", loc="left")
    return figure


def axis(ours: "Jet") -> Any:
    """Mean pressure and velocity on the axis with the cells, and the half-width."""
    flow, cells = ours.flow, ours.cells
    rows = 2 + bool(flow.station.size)
    figure = page.figure(1.0 + 1.55 * rows)
    axes = figure.subplots(rows, 1, sharex=True)
    axes[0].plot(flow.x, flow.p, color=page.BLUE)
    axes[0].axhline(1 / ours.run.gamma, color="0.5", lw=0.7, ls="--")
    axes[0].set_ylabel(page.symbol("p"))
    for n, (at, length) in enumerate(zip(cells.ends, cells.lengths, strict=True)):
        height = float(np.interp(at, flow.x, flow.p))
        axes[0].plot([at], [height], "o", ms=4, color=page.OTHERS[0])
        axes[0].annotate(
            f"cell {n + 1}: {length:.2f}", (at, height), (0, 6), textcoords="offset points", ha="center", fontsize=8
        )
    axes[0].margins(y=0.18)
    axes[1].plot(flow.x, flow.u, color=page.BLUE)
    axes[1].axhline(ours.state.velocity, color="0.5", lw=0.7, ls="--")
    axes[1].annotate("$U_j$", (1, ours.state.velocity), (4, 0), xycoords=("axes fraction", "data"),
                     textcoords="offset points", va="center", fontsize=8, color="0.4")  # fmt: skip
    axes[1].set_ylabel(page.symbol("u"))
    core = ours.summary.get("core_end")
    if core:
        axes[1].axvline(core, color=page.OTHERS[0], lw=0.8)
        side = "right" if core > 0.6 * flow.end else "left"
        text = f" end of the core, {core:.2f} "
        axes[1].text(core, 0.06, text, transform=axes[1].get_xaxis_transform(), fontsize=8, ha=side)
    if flow.station.size:
        axes[2].plot(flow.station, flow.half_width, "o", ms=3, mfc="none", color=page.BLUE)
        grown = ours.summary.get("spreading")
        if grown:
            ends = np.array([grown["from"], grown["to"]])
            axes[2].plot(ends, grown["rate"] * (ends - grown["virtual_origin"]), color=page.OTHERS[0],
                         label=f"grows by {grown['rate']:.3f}")  # fmt: skip
            axes[2].legend(loc="upper left")
        axes[2].set_ylabel("half-width $/h$")
        axes[2].set_ylim(bottom=0)
    for ax in axes:
        ax.grid(lw=0.3, color="0.85")
        ax.set_axisbelow(True)
    axes[-1].set_xlim(0, flow.end)
    axes[-1].set_xlabel("$x/h$")
    return figure


def lip_spectra(ours: "Jet") -> Any:
    """Spectra of the symmetric and the antisymmetric part of the pressure at the lips, over the Strouhal number."""
    found, summary = ours.screech.spectra, ours.screech.summary
    figure = page.figure(3.2)
    ax = figure.subplots()
    st = found.frequency / ours.state.velocity
    # p / (rho_ref c_ref^2) = p* / (gamma p_ambient), the ambient air at 101325 Pa.
    reference = REFERENCE_PRESSURE / (ours.run.gamma * 101325.0)
    labels = ("antisymmetric (flapping)", "symmetric")
    for n, colour, label in zip((1, 0), (page.BLUE, page.OTHERS[0]), labels, strict=True):
        level = 10 * np.log10(found.density[n] * ours.state.velocity / reference**2)
        ax.plot(st[1:], level[1:], color=colour, label=label, lw=1.2 if n else 0.9)
    tone = summary["fundamental"]
    for line in [tone, *summary["harmonics"]] if tone else []:
        ax.axvline(line["strouhal"], color="0.5", lw=0.7, ls=":")
        name = "f" if line is tone else f"{line['order']} f"
        ax.annotate(f"{name}: {line['strouhal']:.4f}\n{line['mode']}", (line["strouhal"], 0.97), (3, 0),
                    xycoords=("data", "axes fraction"), textcoords="offset points", va="top", fontsize=8)  # fmt: skip
    low, high = (jet_theory.empirical(ours.state, k) for k in sorted(jet_theory.EMPIRICAL.values(), reverse=True))
    ax.axvspan(low, high, color="0.6", alpha=0.35, lw=0, label="correlations for this $M_j$")
    ax.set_xscale("log")
    ax.set_xlim(st[1], min(st[-1], 3.0))
    within = st[1:] <= min(st[-1], 3.0)
    shown = 10 * np.log10(found.density[:, 1:][:, within] * ours.state.velocity / reference**2)
    ax.set_ylim(shown.min() - 3, shown.max() + 12)
    ax.set_xlabel("$\\mathrm{St} = f\\,h/U_j$")
    ax.set_ylabel("dB re 20 uPa per St,\nambient 101325 Pa")
    ax.grid(lw=0.3, color="0.85", which="both")
    ax.set_axisbelow(True)
    ax.legend(loc="lower left")
    return figure


def flow(ours: "Jet") -> Any:
    """The last fields: spanwise vorticity in colours, and dilatation, that is sound and shocks, in grey: Fig. 20."""
    from matplotlib.colors import LinearSegmentedColormap

    tree = ours.run.fields(-1, ["vorticity_z", "dilatation"])
    pieces = tree.hiresx.pieces("vorticity_z", "dilatation")
    where = ""
    if tree.hiresx.dimensions == 3:
        middle = cut.middle(pieces, "z")
        pieces, where = cut.plane(pieces, "z", middle), f", $z/h = {middle:.3g}$"
    else:
        pieces = [{name: np.squeeze(values) for name, values in piece.items()} for piece in pieces]
    box = _box(ours, pieces)
    inside = [(p["x"] > box[0]) & (p["x"] < box[1]) & (p["y"] > box[2]) & (p["y"] < box[3]) for p in pieces]
    spin = np.concatenate([np.abs(p["vorticity_z"][here]) for p, here in zip(pieces, inside, strict=True)])
    sound = np.concatenate([np.abs(p["dilatation"][here]) for p, here in zip(pieces, inside, strict=True)])
    strongest = max(float(np.quantile(spin, 0.985)), 1e-12)
    # What sounds is where nothing turns.
    quiet = sound[spin < 0.01 * strongest]
    loudest = max(2 * float(np.quantile(quiet if quiet.size > 100 else sound, 0.95)), 1e-12)
    clear = LinearSegmentedColormap.from_list(
        "vorticity",
        [(0, (0.0, 0.2, 0.55, 1)), (0.25, (0.1, 0.45, 0.8, 1)), (0.5 - _CLEAR, (0.5, 0.75, 0.95, 0.75)),
         (0.5 - _CLEAR / 4, (0.6, 0.8, 1, 0)), (0.5 + _CLEAR / 4, (1, 0.8, 0.6, 0)),
         (0.5 + _CLEAR, (0.98, 0.7, 0.45, 0.75)), (0.75, (0.85, 0.3, 0.15, 1)), (1, (0.5, 0.0, 0.05, 1))],
    )  # fmt: skip
    figure = page.figure(0.6 + 5.2 * (box[3] - box[2]) / (box[1] - box[0]))
    ax = figure.subplots()
    for piece in pieces:
        how = {"shading": "gouraud", "rasterized": True}
        grey = {"cmap": "gray", "vmin": -loudest, "vmax": loudest, "rasterized": True}
        # Cells below fill the gap between blocks that do not share their nodes.
        ax.pcolormesh(piece["x"], piece["y"], piece["dilatation"], shading="nearest", zorder=0.5, **grey)
        back = ax.pcolormesh(piece["x"], piece["y"], piece["dilatation"], shading="gouraud", zorder=1, **grey)
        front = ax.pcolormesh(
            piece["x"], piece["y"], piece["vorticity_z"], cmap=clear, vmin=-strongest, vmax=strongest, zorder=2, **how
        )
    ax.set_xlim(box[0], box[1])
    ax.set_ylim(box[2], box[3])
    ax.set_aspect("equal")
    ax.set_xlabel("$x/h$")
    ax.set_ylabel("$y/h$")
    for n, (drawn, name) in enumerate(((back, "dilatation"), (front, "vorticity_z"))):
        bar = figure.colorbar(drawn, cax=ax.inset_axes((1.02 + 0.13 * n, 0, 0.022, 1)), extend="both")
        bar.set_label(page.symbol(name).replace("L/", "h/"), labelpad=1)
    ax.set_title(f"$t = {float(tree.coords['time']):.4g}\\,h/c${where}", loc="left")
    return figure


def _box(ours: "Jet", pieces: list[cut.Piece]) -> tuple[float, float, float, float]:
    """What lies between the sponges: least and greatest x, then y."""
    ends = {axis: list(cut.extent(pieces, axis)) for axis in "xy"}
    for sponge in ours.run.case.get("sponge") or ():
        if sponge["axis"] in ends:
            low, high = ends[sponge["axis"]]
            outward = sponge["end"] > sponge["start"]
            # Upstream the sponge begins at the exit's height: what is between it and the nozzle is shown.
            if outward:
                high = min(high, sponge["start"])
            elif sponge["axis"] == "y":
                low = max(low, sponge["start"])
            ends[sponge["axis"]] = [low, high]
    return (*ends["x"], *ends["y"])
