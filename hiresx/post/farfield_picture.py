"""The picture of a far field: signals, their spectra, and the directivity."""

from typing import Any

import numpy as np

from hiresx.output.show import picture_file

# Signals and spectra of one picture.
_CURVES = 6


def draw(data: Any, summary: dict[str, Any]) -> Any:
    """Figure of the result of `farfield`; of several end caps the last one's signals and spectra, the directivity of
    each."""
    one = data.isel(cap=-1) if "cap" in data.dims else data
    chosen = np.unique(np.linspace(0, one.sizes["observer"] - 1, min(_CURVES, one.sizes["observer"])).astype(int))
    unit = r"\mathrm{Pa}" if summary["ambient"] is not None else r"\rho_\mathrm{ref}c_\mathrm{ref}^2"
    reference = r"dB re 20 $\mu$Pa" if summary["ambient"] is not None else f"dB re 1 ${unit}$"
    colours = (picture_file.BLUE, *picture_file.OTHERS, "0.35", "#b0417a", "#4d8fb0")
    figure = picture_file.figure(7.6)
    signals, spectra, directivity = figure.subplots(3, 1)
    for n, colour in zip(chosen, colours, strict=False):
        label = f"{one['angle'].values[n]:.0f} deg"
        signals.plot(one["time"], one["pressure"].values[n], color=colour, lw=0.8, label=label)
        spectra.plot(one["frequency"][1:], one["level"].values[n][1:], color=colour, lw=0.9, label=label)
    signals.set_xlabel(picture_file.TIME + (", from the first sound at each" if summary["still"] else ""))
    signals.set_ylabel(f"$p'$ [${unit}$]")
    signals.margins(x=0)
    limit = min(summary["highest_frequency_of_samples"], summary["highest_frequency_of_cells"])
    picture_file.frequencies(spectra, one["frequency"].values[1], one["frequency"].values[-1])
    if limit < one["frequency"].values[-1]:
        spectra.axvspan(limit, one["frequency"].values[-1], color="0.92", lw=0, zorder=0)
        spectra.text(limit, 0.03, " not resolved", transform=spectra.get_xaxis_transform(), fontsize=7, color="0.4")
    spectra.set_xlabel(r"$f\,L/c_\mathrm{ref}$")
    spectra.set_ylabel(f"level [{reference}]\nper Strouhal number")
    if one.sizes["observer"] > 1:
        title = f"{len(chosen)} of {one.sizes['observer']} observers" if len(chosen) < one.sizes["observer"] else None
        spectra.legend(title=title, ncols=2, fontsize=7)
    overall = np.atleast_2d(data["overall_level"].values)
    order = np.argsort(one["angle"].values, kind="stable")
    for m, values in enumerate(overall):
        cap = f"cap at x = {data['cap'].values[m]:g}" if len(overall) > 1 else None
        directivity.plot(one["angle"].values[order], values[order], marker="o", ms=3, color=colours[m % 7], label=cap)
    if len(overall) > 1:
        directivity.legend(fontsize=7)
    directivity.set_xlabel("angle against the x axis [deg]")
    directivity.set_ylabel(f"overall level\n[{reference}]")
    for ax in (signals, spectra, directivity):
        ax.grid(lw=0.3, color="0.85", which="both")
        ax.set_axisbelow(True)
    figure.suptitle(
        f"{data.attrs.get('title', '')}\nsurface {summary['surface']}: {summary['places']} places, "
        f"{summary['samples']} samples, stream of Mach number {summary['mach']:g}",
        fontsize=9,
    )
    return figure
