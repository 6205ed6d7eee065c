"""A picture of a planar jet in a plane: the spanwise vorticity in colours over the dilatation in grey, as Ye et al.,
Advances in Aerodynamics 4:7 (2022), have it in Fig. 20:

    python docs/make/jet_plane.py RUN --out docs/jets-plane.png

The run has an `output.subset` of a plane z = const with `vorticity_z` and `dilatation`, by the name of `--subset`; its
last file is drawn.
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import hiresx

# Limits of the shades, in c/h. Between the inner two of the vorticity it is not drawn.
DILATATION = np.linspace(-0.1, 0.1, 16)
VORTICITY = np.array([-4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0])
# What is drawn of x and y, in h.
X, Y = (0.0, 64.0), (-15.0, 15.0)
DOTS_PER_INCH = 130


def main(arguments: list[str] | None = None) -> None:
    about = (__doc__ or "").partition(":")[0]
    parser = argparse.ArgumentParser(prog="python docs/make/jet_plane.py", description=about)
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--subset", default="mid", metavar="NAME", help="the plane")
    parser.add_argument("--out", type=Path, required=True, help="the picture to write")
    asked = parser.parse_args(arguments)
    draw(hiresx.open(asked.run).fields(subset=asked.subset)).savefig(asked.out, dpi=DOTS_PER_INCH)


def draw(fields: Any) -> Figure:
    """The picture of the blocks of `fields`."""
    figure = Figure(figsize=(8, 4.7), layout="constrained")
    rows = figure.add_gridspec(2, 2, height_ratios=(30, 1))
    axes = figure.add_subplot(rows[0, :])
    colours = mpl.colormaps["RdBu_r"](np.linspace(0, 1, len(VORTICITY) + 1))
    colours[len(colours) // 2, 3] = 0
    for block in fields.children.values():
        x, y, vorticity, dilatation = (
            np.asarray(block[name].values, dtype=float)[0] for name in ("x", "y", "vorticity_z", "dilatation")
        )
        grey = axes.contourf(x, y, dilatation, DILATATION, cmap="gray", extend="both")
        coloured = axes.contourf(x, y, vorticity, VORTICITY, colors=colours, extend="both")
    axes.set(xlim=X, ylim=Y, xlabel="$x/h$", ylabel="$y/h$", aspect="equal")
    left, right = (figure.add_subplot(rows[1, n]) for n in range(2))
    for drawn, place, ticks, label in (
        (coloured, left, [-4, -2, -1, -0.5, 0.5, 1, 2, 4], r"spanwise vorticity $\omega_z\,h/c$"),
        (grey, right, [-0.1, -0.05, 0, 0.05, 0.1], r"dilatation $\nabla\cdot\mathbf{u}\,h/c$"),
    ):
        figure.colorbar(drawn, cax=place, orientation="horizontal", ticks=ticks, format="{x:g}", label=label)
    return figure


if __name__ == "__main__":
    main()
