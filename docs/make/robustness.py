"""The robustness page, made from stored results and never typed:

python docs/make/robustness_runs.py --backend cpu --jobs 16 --out docs/results/robustness-cpu.json
python docs/make/robustness.py docs/results/robustness-cpu.json --out docs/robustness.md
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pages
from robustness_runs import ERRORS

DEFAULT = ("steger_warming", "js", "limiter")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return pages.command_line("robustness.py", __doc__, lambda paths, out: write(paths[0], out), arguments)


def write(results: Path, out: Path) -> None:
    """Write the page `out` from the file `results`. Raises HiresxError for a file that holds no such results."""
    hint = f"python docs/make/robustness_runs.py --out {results}"
    document = pages.read(results, ["cells", "wall_s", "hardware"], "results of robustness", hint)
    cells = document["cells"]
    known = {} if document["small"] else ERRORS
    counts, tables = [], []
    for positivity, chosen in pages.by(cells, "positivity"):
        survivors = sum("stopped" not in c for c in chosen)
        counts.append([f"`{positivity}`", f"{survivors} of {len(chosen)}"])
        columns, rows = list(dict.fromkeys((c["flux"], c["weights"]) for c in chosen)), []
        for title, row in pages.by(chosen, "flow"):
            found = {(c["flux"], c["weights"]): outcome(c, known.get(title)) for c in row}
            rows.append([title, *(found.get(column, "") for column in columns)])
        tables.append((positivity, [", ".join(column) for column in columns], rows))
    text = pages.fill(
        "robustness.md.jinja",
        command=pages.command("robustness.py", [results], out),
        document=document,
        counts=counts,
        tables=tables,
        commands=[c["command"] for c in cells if (c["flux"], c["weights"], c["positivity"]) == DEFAULT],
        stopped=[c for c in cells if "stopped" in c],
    )
    pages.write(text, out)


def outcome(cell: dict[str, Any], known: tuple[Any, float, str] | None) -> str:
    """Return the text of a cell of the table: that the run fails or completes, or its error. An error above the limit
    that is `known` for its flow has a name (robustness_runs.ERRORS)."""
    if "stopped" in cell:
        return "**fails**"
    if cell["error"] is None:
        return "completes"
    shown = f"{cell['error']:.2g}"
    _, limit, fault = known or (None, math.inf, "")
    return f"**{fault}: {shown}**" if cell["error"] > limit else shown


if __name__ == "__main__":
    sys.exit(main())
