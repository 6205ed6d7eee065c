"""The page of public grids, made from stored results and never typed:

python docs/make/public_grid_runs.py docs/results/public-grids.json --out docs/public-grids.md
"""

import argparse
from pathlib import Path
from typing import Any

from hiresx.bench.markdown import write_page

HEADING = """# Public grids

What {count} files that others published become here, each read as delivered. None of them is kept in this project. This
page is made from stored results:

    python docs/make/public_grids.py {results} --out {out}

which came from

    python docs/make/public_grid_runs.py FOLDER --out {results}

where FOLDER holds the working trees of the repositories as owner/name.

Every file that can be computed on runs {steps} steps of a uniform flow, started by `hiresx new --from`, with every
boundary the same far field. **{held} of {ran} keep it; the largest departure of any variable from its value is
{worst:.1e}.** "thin" are directions of 1 or 2 nodes, "joins" connections found or read, "author's list": whether nodes
that coincide give the same ghosts at every node inside the author's connections, and how many coincide elsewhere (the
two sides of a plate). "meets" are faces that lie on another
block's without being joined to it (patched, overset and embedded grids): `hiresx check` stops there unless they are
named, and they were far fields here.

"""
COLUMNS = ("file", "form", "blocks", "nodes", "thin", "joins", "author's list", "meets", "uniform flow")


def write(results: Path, out: Path) -> None:
    """Write the page `out` from the file `results`. Raises HiresxError for a file that holds no such results."""
    mend = f"python docs/make/public_grid_runs.py FOLDER --out {results}"
    write_page(
        results, out, lambda found: _page(found["grids"], found["steps"], results, out), "results of public grids", mend
    )


def _page(grids: list[dict[str, Any]], steps: int, results: Path, out: Path) -> str:
    ran = [g for g in grids if "deviation" in g]
    parts = [
        HEADING.format(
            count=len(grids),
            results=results,
            out=out,
            steps=steps,
            ran=len(ran),
            held=sum(g["deviation"] < 1e-12 for g in ran),
            worst=max(g["deviation"] for g in ran),
        )
    ]
    for repository in dict.fromkeys(g["repository"] for g in grids):
        parts.append(f"## {repository}\n\n{_table([_row(g) for g in grids if g['repository'] == repository])}\n")
    refused = [g for g in grids if "refused" in g]
    parts.append("## Refused, by name\n")
    parts += [f"- `{_short(g['path'])}` ({g['family']}): {g['refused']}" for g in refused]
    parts.append("\n## One flow of each family\n")
    parts.append(
        f"{steps} steps from a sudden start at Mach 0.3, Re_c = 1000 per unit of length of the grid, no slip on the "
        "walls that the author names, slip on symmetries, far field elsewhere. Pressure over that of the free stream.\n"
    )
    parts.append("| family | file | walls | time | least p | largest p |\n|---|---|---|---|---|---|")
    for g in (g for g in grids if "flow" in g):
        f = g["flow"]
        parts.append(
            f"| {g['family']} | `{_short(g['path'])}` | {', '.join(f['walls'])} | {f['time']:.3g} | "
            f"{f['least_p']:.3f} | {f['largest_p']:.3f} |"
        )
    parts += _compared([g for g in grids if "compared" in g])
    parts.append("\n## Where the files are\n")
    for g in grids:
        beside = f", with `{g['connectivity']}`" if "connectivity" in g else ""
        parts.append(f"- {g['repository']}: `{g['path']}`{beside}")
    return "\n".join(parts) + "\n"


def _compared(grids: list[dict[str, Any]]) -> list[str]:
    """The flows of which something is known."""
    parts = [
        "\n## Flows that are compared\n",
        'Inviscid, with local time steps; slip on the walls that the author names. "change" is that of what is found '
        "over the last tenth of the steps (of values below 0.001 in thousandths). Oblique shock and area relation "
        "(one-dimensional) are those of textbooks, the airfoil's lift that of panels between the grid's own nodes with "
        "Prandtl and Glauert's rule, good to about 1 % at this Mach number (`docs/make/public_flows.py`).\n",
        "| family | file | flow | steps | what | found | wanted | change |\n|---|---|---|---|---|---|---|---|",
    ]
    for g in grids:
        c = g["compared"]
        for what, found, wanted in c["rows"]:
            parts.append(
                f"| {g['family']} | `{_short(g['path'])}` | {c['told']} | {c['steps']} | {what} | {found:.4f} | "
                f"{wanted:.4f} | {c['change']:.0e} |"
            )
    return parts


def _row(g: dict[str, Any]) -> list[str]:
    agree = {None: "", True: "agrees", False: "**differs**"}[g.get("agree")]
    if g.get("beyond"):
        agree += f"; {g['beyond']} nodes coincide that it does not join"
    cells = [f"`{_short(g['path'])}`", g.get("form", ""), *(str(g.get(k, "")) for k in ("blocks", "nodes", "thin"))]
    flow = f"{g['deviation']:.1e}" if "deviation" in g else "refused"
    return [*cells, str(g.get("joins", "")), agree, str(g.get("meets") or ""), flow]


def _short(path: str) -> str:
    return path.replace("!", "/").rsplit("/", 1)[-1]


def _table(rows: list[list[str]]) -> str:
    head = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python docs/make/public_grid_runs.py", description="Write the page.")
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    write(asked.results, asked.out)


if __name__ == "__main__":
    main()
