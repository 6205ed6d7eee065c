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
from decaying_turbulence_runs import FILTERED, LENGTH, LOSSES, MODELS, SPLIT, sound_speed

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
        figure = draw(dict(grids)[points])
        shown = picture_file.save(figure, out.with_suffix(".png")).name
    text = pages.fill(
        "decaying-turbulence.md.jinja",
        command=pages.command("decaying_turbulence.py", [results], out),
        document=document,
        machine=_machine(document),
        columns=COLUMNS,
        tables=tables,
        picture=shown,
        drawn=points,
    )
    pages.write(text, out)


def _machine(document: dict[str, Any]) -> str:
    """On what the runs were made, one after the other: a run takes one GPU."""
    hardware = document["hardware"]
    return f"one {hardware['gpus'][0]['name']}" if document["backend"] == "cuda" else str(hardware["cpu"])


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
    """Spectra of the models on one grid, beside those that were measured: at both times, without and with a filter."""
    figure = picture_file.figure(5.8)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for (scheme, title), across in zip(((SPLIT, "split"), (FILTERED, "split, filter")), panels, strict=True):
        finished = [row for row in rows if row["scheme"] == scheme and "stopped" not in row]
        finished.sort(key=lambda row: MODELS.index(row["model"]))
        for n, (ax, station) in enumerate(zip(across, grid_turbulence.TIMES[1:], strict=True), 1):
            column = grid_turbulence.SPECTRA[:, 1 + n]
            k, energy = grid_turbulence.SPECTRA[column > 0, 0] * LENGTH, column[column > 0]
            ax.loglog(k, energy / (LENGTH * sound_speed() ** 2), "ko", ms=3, label="measured")
            for row in finished:
                held = np.array(row["spectra"][n])
                ax.loglog(np.arange(1, held.size + 1), held, lw=1, label=row["model"])
            ax.set_title(f"{title}, $t U_0/M = {station}$")
            picture_file.add_grid(ax)
        across[0].set_ylabel(r"$E / (c_\mathrm{ref}^2 L)$")
    shown = [value for ax in panels.ravel() for line in ax.get_lines()[1:] for value in line.get_ydata()]
    panels[0, 0].set_xlim(0.9, rows[0]["points"] / 2)
    panels[0, 0].set_ylim(min(shown) / 1.5, 1.5 * max(shown))
    for ax in panels[1]:
        ax.set_xlabel(r"wavenumber $\kappa L$")
    picture_file.legend_beside(panels[0, 1])
    return figure


if __name__ == "__main__":
    sys.exit(main())
