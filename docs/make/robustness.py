"""The page of what lives with which choices, made from stored results and never typed:

python docs/make/robustness.py docs/results/robustness-cpu.json --out docs/robustness.md
"""

import argparse
import json
from pathlib import Path
from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.saved import files
from hiresx.verify.groups.robustness import FLOWS

HEADING = """# Robustness

What lives through strong shocks and near-vacuum, and with which choices: every flux, both weights, every `positivity`,
on flows that start as impulsively as they can. This page is made from stored results:

    {made}

which came from

    {command}

on {cpu} in {wall:.0f} s, {date}. Steps are by `time.cfl` of the case, most of them the default 0.5.

`limiter` is the default. A cell says **dies**, or the error against what is known of the flow: L1 of the density over
its mean where there is an exact solution, the shock's radius for Sedov's blast, Rayleigh's stagnation pressure for the
cylinder; `lives` where nothing is known.
"""

ADVICE = """## What to do

- `limiter` lives everywhere here. `fallback` and `none` are for comparisons: on smooth flow all three give the same.
- **Carbuncle.** Roe's flux keeps a grid-aligned strong shock so sharp that it bulges on the stagnation line of a blunt
  body, and then nothing behind it is right. It depends on the grid and is not a matter of positivity: at strong bow
  shocks take `hllc`, `van_leer` or `steger_warming`, and look at the symmetry of the result. How far it
  grows depends on the wall's ghosts (Roe, js on the Mach 20 cylinder: 4.7, and 0.16 with ghosts that mirror nodes, as
  curved walls had before). HLLC's 0.0084 on 33 nodes is the scheme's error, 0.0022 on 65; with mirrored nodes it was
  0.0016 on 33 by chance, and 0.068 on 65.
- **Near-vacuum.** In a vacuum no velocity or temperature means anything. Roe's linearisation has no positive state
  between two gases that part quickly: it lives only because the limiter draws it towards the Lax-Friedrichs flux.
- **Viscosity.** The limiter knows nothing of the viscous terms, which take heat out of nodes beside a jump of
  temperature (the numerics page says how large a jump lives): spread a violent start over some nodes, or start
  without `gas.reynolds`.
- Above `cfl = 0.5` the limiter's proof does not hold; a step that the flow does not survive is taken again with half
  and with a quarter of it, which was enough for the starts of these flows with `cfl` up to 1.2.
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python docs/make/robustness.py", description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="what `python docs/make/robustness_runs.py` wrote")
    parser.add_argument("--out", type=Path, required=True, help="the page to write, e.g. docs/robustness.md")
    asked = parser.parse_args(arguments)
    write(asked.results, asked.out)


def write(results: Path, out: Path) -> None:
    """Write the page `out` from the file `results`. Raises HiresxError for a file that holds no such results."""
    try:
        document = json.loads(results.read_text(encoding="utf-8"))
        cells, wall, cpu = document["cells"], document["wall_s"], document["hardware"]["cpu"]
        by_place = {(c["flow"], c["positivity"], c["flux"], c["weights"]): c for c in cells}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HiresxError(
            f"{results} holds no results of robustness: {type(error).__name__}: {error}",
            f"python docs/make/robustness_runs.py --out {results}",
        ) from None
    made = f"python docs/make/robustness.py {results} --out {out}"
    small = "The small forms of the flows were run, too coarse to judge their errors.\n" if document["small"] else ""
    sections = [
        HEADING.format(made=made, command=document["command"], cpu=cpu, wall=wall, date=document["date"][:10]) + small
    ]
    names = dict.fromkeys(c["positivity"] for c in cells)
    sections.append(_counts(cells, list(names)))
    known = {flow.title: flow for flow in FLOWS}
    columns = list(dict.fromkeys((c["flux"], c["weights"]) for c in cells))
    for positivity in names:
        rows = []
        for title in dict.fromkeys(c["flow"] for c in cells):
            row = [
                _cell(by_place.get((title, positivity, *column)), None if small else known.get(title))
                for column in columns
            ]
            rows.append([title, *row])
        heads = [f"{flux}, {weights}" for flux, weights in columns]
        sections.append(f'## `positivity = "{positivity}"`\n\n{_table(["flow", *heads], rows)}')
    sections.append(ADVICE)
    sections.append(_commands(cells))
    with files.replacing(out) as temporary:
        temporary.write_text("\n".join(sections), encoding="utf-8")


def _counts(cells: list[dict[str, Any]], names: list[str]) -> str:
    rows = []
    for name in names:
        of = [c for c in cells if c["positivity"] == name]
        rows.append([f"`{name}`", f"{sum('stopped' not in c for c in of)} of {len(of)}"])
    return _table(["positivity", "runs that come to their end"], rows)


def _cell(cell: dict[str, Any] | None, flow: Any) -> str:
    if cell is None:
        return ""
    if "stopped" in cell:
        return "**dies**"
    if cell["error"] is None:
        return "lives"
    shown = f"{cell['error']:.2g}"
    return f"**{flow.fault}: {shown}**" if flow is not None and cell["error"] > flow.limit else shown


def _commands(cells: list[dict[str, Any]]) -> str:
    """The command of each flow with the default choices, and what was said where one died."""
    listed = [c["command"] for c in cells if (c["flux"], c["weights"], c["positivity"]) == DEFAULT]
    died = [
        f"- {c['flow']}, {c['flux']}, {c['weights']}, `{c['positivity']}`: {c['stopped']}"
        for c in cells
        if "stopped" in c
    ]
    lines = ["## The runs", "", *(f"    {command}" for command in listed), ""]
    if died:
        lines += ["<details><summary>What was said of those that died</summary>", "", *died, "", "</details>", ""]
    return "\n".join(lines)


DEFAULT = ("steger_warming", "js", "limiter")


def _table(columns: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *rows]) + "\n"


if __name__ == "__main__":
    main()
