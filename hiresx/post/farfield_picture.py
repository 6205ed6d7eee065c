"""The picture of a far field: pressure signals, their spectra, third-octave levels, and the directivity."""

from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.output.show import picture_file

# Largest number of signals and spectra in one picture.
_CURVES = 6


def draw(data: Any, summary: dict[str, Any]) -> Any:
    """Return a Matplotlib figure of a far field: pressure signals, spectra, third-octave levels and directivity.
    `data`, `summary`: the dataset and the summary of a result of `farfield`. If there are several end caps, it shows
    the signals and spectra of the last one, and the directivity of each."""
    one = data.isel(cap=-1) if "cap" in data.dims else data
    count = one.sizes["observer"]
    chosen = np.unique(np.linspace(0, count - 1, min(_CURVES, count)).astype(int))
    unit = picture_file.unit(summary["pressure_unit"])
    reference = picture_file.level(summary["level_unit"])
    colours = (picture_file.BLUE, *picture_file.OTHERS, "0.35", "#b0417a", "#4d8fb0")
    scale = summary["strouhal_length"] / summary["strouhal_velocity"]
    figure = picture_file.figure(picture_file.HEIGHT)
    signals, spectra, octaves, directivity = figure.subplots(4, 1)
    over = one["frequency"].values * scale
    for n, colour in zip(chosen, colours, strict=False):
        label = f"{one['angle'].values[n]:.3g}$\\degree$"
        signals.plot(one["time"], one["pressure"].values[n], color=colour, lw=0.8, label=label)
        spectra.plot(over[1:], one["level"].values[n][1:], color=colour, lw=0.9)
        octaves.plot(one["band"], one["band_level"].values[n], color=colour, marker="o", ms=3)
    signals.set_xlabel(picture_file.TIME + (", from the first sound at each" if summary["still"] else ""))
    signals.set_ylabel(f"$p'$ [{unit}]")
    signals.margins(x=0)
    limit = min(summary["highest_frequency_of_samples"], summary["highest_frequency_of_cells"]) * scale
    own = scale != 1
    for ax in (spectra, octaves):
        picture_file.use_frequency_axis(ax, over[1], over[-1])
        if limit < over[-1]:
            ax.axvspan(limit, over[-1], color="0.92", lw=0, zorder=0)
            ax.set_title("grey: not resolved", loc="right", fontsize=7, color="0.4", pad=2)
        ax.set_xlabel(
            f"$f\\,\\ell/U$,  $\\ell/U = {scale:.4g}\\,L/c_\\mathrm{{ref}}$" if own else r"$f\,L/c_\mathrm{ref}$"
        )
    spectra.set_ylabel(f"level per Strouhal number\n[{reference}]")
    octaves.set_ylabel(f"level in third octaves\n[{reference}]")
    if count > 1:
        title = f"{len(chosen)} of {count}\nobservers" if len(chosen) < count else "observers"
        picture_file.legend_beside(signals, title=title)
    overall = np.atleast_2d(data["overall_level"].values)
    order = np.argsort(one["angle"].values, kind="stable")
    for m, values in enumerate(overall):
        cap = f"cap at x = {data['cap'].values[m]:g}" if len(overall) > 1 else None
        directivity.plot(one["angle"].values[order], values[order], marker="o", ms=3, color=colours[m % 7], label=cap)
    if len(overall) > 1:
        picture_file.legend_beside(directivity)
    directivity.set_xlabel("angle against the x axis [deg]")
    directivity.set_ylabel(f"overall level\n[{reference}]")
    for ax in (signals, spectra, octaves, directivity):
        picture_file.add_grid(ax, minor=True)
    figure.suptitle(
        f"{data.attrs.get('title', '')}\n{'line' if summary['plane'] else 'surface'} {summary['surface']}: "
        f"{plural(summary['places'], 'place')}, {plural(summary['samples'], 'sample')}, stream of Mach number "
        f"{summary['mach']:g}",
        fontsize=9,
    )
    return figure
