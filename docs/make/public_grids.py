"""The page of public grids, made from stored results and never typed:

    python docs/make/public_grids.py docs/results/public-grids.json --out docs/public-grids.md

The results are what `python docs/make/public_grid_runs.py` writes.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pages


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return pages.command_line("public_grids.py", __doc__, lambda paths, out: write(paths[0], out), arguments)


def write(results: Path, out: Path) -> None:
    """Write the page `out` from the file `results`. Raises HiresxError for a file that holds no such results."""
    hint = f"python docs/make/public_grid_runs.py FOLDER --out {results}"
    document = pages.read(results, ["grids", "steps"], "results of public grids", hint)
    ran = [grid for grid in document["grids"] if "deviation" in grid]
    text = pages.fill(
        "public-grids.md.jinja",
        command=pages.command("public_grids.py", [results], out),
        results=results,
        **document,
        ran=ran,
        held=sum(grid["deviation"] < 1e-12 for grid in ran),
        row=row,
        short=short,
    )
    pages.write(text, out)


def row(g: dict[str, Any]) -> list[str]:
    agree = {None: "", True: "agrees", False: "**differs**"}[g.get("agree")]
    if g.get("beyond"):
        agree += f"; {g['beyond']} nodes coincide that it does not join"
    cells = [f"`{short(g['path'])}`", g.get("form", ""), *(str(g.get(k, "")) for k in ("blocks", "nodes", "thin"))]
    flow = f"{g['deviation']:.1e}" if "deviation" in g else "refused"
    return [*cells, str(g.get("joins", "")), agree, str(g.get("meets") or ""), flow]


def short(path: str) -> str:
    return path.replace("!", "/").rsplit("/", 1)[-1]


if __name__ == "__main__":
    sys.exit(main())
