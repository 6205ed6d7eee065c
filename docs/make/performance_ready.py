"""The part of the performance page that says how long large flows take until they step."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from hiresx.bench.markdown import section, table


def sections(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One table of all `results` of `hiresx.scaling.ready`; nothing where there are none."""
    rows = [
        [
            f"{found['nodes']}^3", found["precision"].upper(), f"`{found['plan']}`", found["reals"],
            round(found["bytes_per_point"]), found["imported_s"], found["ready_s"], found["done_s"],
            found["nodes"] ** 3 / median(found["steps_s"]) / 1e6,
            next((gpu["name"] for gpu in result["hardware"]["gpus"]), result["hardware"]["cpu"]),
            result["hardware"]["threads_available"],
        ]
        for result in results
        for found in sorted(result["rows"], key=lambda found: found["nodes"])
    ]  # fmt: skip
    if not rows:
        return
    text = (
        "Viscous flow on a bent box, nothing written, `python -m hiresx.scaling.ready`: seconds since the process\n"
        "began until it had imported what it needs, until it was ready to step, and until a few steps were done.\n"
        "Grids, coordinates and initial states are made by the threads of the host. The plan is chosen by what fits."
    )
    columns = [
        "nodes", "precision", "plan", "reals", "bytes a point", "imported, s", "ready, s", "done, s",
        "million point-steps/s", "on", "cores",
    ]  # fmt: skip
    yield section("## Large flows, ready to step", text, table(columns, rows))
