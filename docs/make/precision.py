"""The page of precisions, made from stored results and never typed:

    hiresx verify precision --json > docs/results/precision-errors-cpu.json
    python docs/make/precision.py docs/results/precision-*.json --out docs/precision.md

The other file is what `python docs/make/precision_speed.py` writes.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pages

from hiresx.equations.storage import PRECISIONS
from hiresx.errors import HiresxError
from hiresx.rhs.plans import default_plan


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return pages.command_line("precision.py", __doc__, write, arguments)


def write(results: list[Path], out: Path) -> None:
    """Write the page `out` from the files `results`. Raises HiresxError for a file that holds no such results."""
    hint = "name what precision_speed.py and `hiresx verify precision --json` wrote"
    documents = [pages.read(path, ["backend"], "results of precisions", hint) for path in results]
    speed, errors = (next((document for document in documents if key in document), None) for key in ("rows", "checks"))
    if speed is None or errors is None:
        raise HiresxError("the speeds or the errors of precisions are missing", hint)
    rows = {(row["precision"], row["viscous"]): row for row in speed["rows"]}
    machine = speed["hardware"]
    found = {tuple(check["check"].split(": ", 1)): check["value"] for check in errors["checks"]}
    options = list(dict.fromkeys(option for _, option in found))
    figures = (("point_steps_per_s", 1e6), ("bytes_per_point", 1))
    text = pages.fill(
        "precision.md.jinja",
        place=machine["gpus"][0]["name"] if speed["backend"] == "cuda" else machine["cpu"],
        speed=speed,
        speeds=[
            [p, *(f"{rows[p, v][key] / unit:.0f}" for v in (True, False) for key, unit in figures)]
            for p in PRECISIONS
            if (p, True) in rows and (p, False) in rows
        ],
        errors=errors,
        plan=default_plan(errors["backend"]),
        options=options,
        found=[
            [flow, *(f"{found[flow, option]:.1e}" if (flow, option) in found else "" for option in options)]
            for flow in dict.fromkeys(flow for flow, _ in found)
        ],
    )
    pages.write(text, out)


if __name__ == "__main__":
    sys.exit(main())
