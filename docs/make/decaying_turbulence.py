"""The page of decaying turbulence and its picture, made from stored results and never typed:

python docs/make/decaying_turbulence_runs.py --backend cuda --points 64 32 128 --out decaying-turbulence.json
python docs/make/decaying_turbulence.py docs/results/decaying-turbulence-h200.json --out docs/decaying-turbulence.md
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pages
from decaying_turbulence_runs import LENGTH, LOSSES, MODELS, SPLIT, sound_speed

from hiresx.exact import grid_turbulence
from hiresx.output.show import picture_file

COLUMNS = [
    "scheme", "model", "energy, 98", "energy, 171", "spectrum, 98", "spectrum, 171",
    "by viscosity", "by model", "by scheme", "seconds",
]  # fmt: skip
# Nodes along each direction of the runs in the picture.
DRAWN = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return pages.command_line("decaying_turbulence.py", __doc__, lambda paths, out: write(paths[0], out), arguments)


def write(results: Path, out: Path) -> None:
    """Write the page `out` and its picture from the file `results`. Raises HiresxError for a file that holds no such
    results."""
    hint = f"python docs/make/decaying_turbulence_runs.py --out {results}"
    document = pages.read(results, ["rows", "wall_s", "hardware"], "runs of decaying turbulence", hint)
    grids = sorted(pages.by(document["rows"], "points"))
    tables = [(points, rows, [cells(row) for row in rows]) for points, rows in grids]
    points = DRAWN if DRAWN in dict(grids) else grids[-1][0]
    with picture_file.style():
        figure = draw([row for row in dict(grids)[points] if row["scheme"] == SPLIT])
        shown = picture_file.save(figure, out.with_suffix(".png")).name
    gpus = pages.count_each(gpu["name"] for gpu in document["hardware"]["gpus"])
    text = pages.fill(
        "decaying-turbulence.md.jinja",
        command=pages.command("decaying_turbulence.py", [results], out),
        document=document,
        machine=", ".join(gpus) if document["backend"] == "cuda" else document["hardware"]["cpu"],
        columns=COLUMNS,
        tables=tables,
        picture=shown,
        drawn=points,
    )
    pages.write(text, out)


def measured(shells: int, station: int) -> np.ndarray:
    """The measured energies of the shells 1 to `shells`, in the scales of the case."""
    k = np.arange(1, shells + 1) / LENGTH
    return grid_turbulence.spectrum(k, station) / LENGTH / sound_speed() ** 2


def cells(row: dict[str, Any]) -> list[str]:
    """The cells of a run in its table."""
    chosen = [row["scheme"], row["model"]]
    if "stopped" in row:
        return [*chosen, f"**stops**: {row['stopped']}", *[""] * (len(COLUMNS) - 3)]
    energies, errors = [], []
    for held, station in list(zip(row["spectra"], grid_turbulence.TIMES, strict=True))[1:]:
        found, wanted = np.array(held), measured(len(held), station)
        judged = slice(1, row["points"] // 3)
        energies.append(f"{found.sum() / wanted.sum():.3f}")
        errors.append(f"{np.sqrt(np.mean(np.log(found[judged] / wanted[judged]) ** 2)):.2f}")
    total = sum(row["losses"].values())
    shares = [f"{100 * row['losses'][name] / total:.1f} %" for name in LOSSES]
    return [*chosen, *energies, *errors, *shares, f"{row['seconds']:.1f}"]


def draw(rows: list[dict[str, Any]]) -> Any:
    """Spectra of the models, beside those that were measured, at both times."""
    figure = picture_file.figure(3.4)
    panels = figure.subplots(1, 2, sharey=True)
    # Shells of a side of the box over 2 pi, which is L.
    for n, (ax, station) in enumerate(zip(panels, grid_turbulence.TIMES[1:], strict=True), 1):
        column = grid_turbulence.SPECTRA[:, 1 + n]
        k, scale = grid_turbulence.SPECTRA[:, 0] * LENGTH, LENGTH * sound_speed() ** 2
        ax.loglog(k[column > 0], column[column > 0] / scale, "ko", ms=3, label="measured")
        for row in sorted((row for row in rows if "stopped" not in row), key=lambda row: MODELS.index(row["model"])):
            held = np.array(row["spectra"][n])
            ax.loglog(np.arange(1, held.size + 1), held, lw=1, label=row["model"])
        ax.set_xlim(0.9, rows[0]["points"] / 2)
        ax.set_title(f"$t U_0/M = {station}$")
        ax.set_xlabel(r"wavenumber $\kappa L$")
        picture_file.add_grid(ax)
    shown = [value for row in rows if "stopped" not in row for held in row["spectra"][1:] for value in held]
    panels[0].set_ylim(min(shown) / 2, 2 * max(shown))
    panels[0].set_ylabel(r"$E / (c_\mathrm{ref}^2 L)$")
    picture_file.legend_beside(panels[1])
    return figure


if __name__ == "__main__":
    sys.exit(main())
