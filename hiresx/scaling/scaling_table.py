"""The figures of a scaling experiment, from what its runs measured."""

from collections.abc import Sequence
from statistics import median
from typing import Any


def rows(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row of figures for each of the `runs` of a scaling experiment, which are results of
    `hiresx.scaling.measure` with `placement`, in their order. All seconds are per step.

    - `step_s`: the median of the repeats, with their `least` and `most`.
    - `speedup`, `efficiency`: relative to the run with the fewest ranks, computed from points times steps per second.
    - `sssp`: points * steps / (ranks * seconds), the metric of the SENSEI paper.
    - `wait`: the fraction of the step in which ranks waited for others, averaged over the ranks; `wait_most`: the
      largest fraction.
    - `overlap_gain`: the relative increase of the time of a step without overlap.
    - `imbalance`: the largest number of points of a rank divided by the mean.
    - `sent_bytes`: bytes sent by all ranks to other ranks.
    """
    if not runs:
        return []
    first = min(runs, key=lambda run: run["ranks"])
    found = []
    for run in runs:
        step = median(run["step_s"])
        rate = run["points"] / step
        base = first["points"] / median(first["step_s"]) / first["ranks"]
        by_rank = run["by_rank"]
        waits = [rank["waited_s"] / step for rank in by_rank]
        points = [rank["points"] for rank in by_rank]
        found.append(
            {
                "ranks": run["ranks"],
                "placement": run.get("placement"),
                "points": run["points"],
                "step_s": step,
                "least": min(run["step_s"]),
                "most": max(run["step_s"]),
                "speedup": rate / base,
                "efficiency": rate / base / run["ranks"],
                "point_steps_per_s": rate,
                "sssp": rate / run["ranks"],
                "wait": sum(waits) / len(waits),
                "wait_most": max(waits),
                "overlap_gain": median(run["step_without_overlap_s"]) / step - 1,
                "imbalance": max(points) * len(points) / sum(points),
                "sent_bytes": sum(rank["sent_bytes"] for rank in by_rank),
                "transports": sorted({name for rank in by_rank for name in rank["transports"]}),
                "stages": {
                    name: max(rank["stages"].get(name, 0.0) for rank in by_rank) for name in by_rank[0]["stages"]
                },
            }
        )
    return found
