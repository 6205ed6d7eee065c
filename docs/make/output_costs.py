"""What fields and monitors cost a run:

    python docs/make/output_costs.py --backend cuda --out FILE

The planar jet of a preset (`three-d`: 4.5 million points) runs bare, with all fields every 100 steps, with each kind of
monitor every 10 steps, and with all of these monitors. All are timed in turns, in one process. What a run takes before
its first step and after its last one, such as locating probes, does not count: the time of a step is the difference of
two runs, of `--steps` steps and of three times as many. Of each the median of `--repeats` counts.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hiresx.bench.results import header
from hiresx.case import Case, load
from hiresx.simulation import Simulation

# Nothing ends such a run but its number of steps.
ALWAYS: dict[str, Any] = {"time.end": 1e9, "output.subset": []}
TABLES = ("probe", "surface", "average", "monitor")
PROBES, EVERY, FIELDS = 5, 10, 100
MONITORS: dict[str, dict[str, Any]] = {
    "log line": {"monitor.every": EVERY},
    "probes": {
        f"probe.{n}.{key}": value for n in range(PROBES) for key, value in (("every_time", None), ("every", EVERY))
    },
    "surface": {"surface.0.every_time": None, "surface.0.every": EVERY},
    "averages": {"average.start": 0.0, "average.every": EVERY},
    "conservation": {"conservation.every": EVERY},
    "kinetic energy": {"kinetic_energy.every": EVERY},
    "force": {"force": [{"name": "walls", "faces": "all", "every": EVERY}]},
}
NEEDED = {"log line": "monitor", "probes": "probe", "surface": "surface", "averages": "average"}


def variants(preset: str) -> dict[str, Case]:
    """The cases that are timed, by name; "bare" is the first."""

    def case(*names: str, **fields: Any) -> Case:
        absent = {table: None for table in TABLES if table not in {NEEDED.get(name) for name in names}}
        own = {key: value for name in names for key, value in MONITORS[name].items()}
        return load("planar-jet", preset, {**ALWAYS, **absent, **(fields or {"output.every_time": 1e9}), **own})

    found = {"bare": case()}
    for precision in ("fp64", "fp32"):
        found[f"fields, {precision}"] = case(
            **{"output.every_time": None, "output.every_steps": FIELDS, "output.precision": precision}
        )
    return found | {name: case(name) for name in MONITORS} | {"all monitors": case(*MONITORS)}


def measure(preset: str, backend: str, steps: int, repeats: int) -> list[dict[str, Any]]:
    """Rows of `name`, the seconds of a step (`step_s`), and what it takes more than bare (`more`, a ratio)."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {}
        for name, case in variants(preset).items():
            simulation = Simulation(case, backend=backend, out=Path(folder) / name.replace(" ", "-"))
            simulation.run(steps=FIELDS, progress=False, write_last=False)
            runs[name] = simulation
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(repeats):
            for name, simulation in runs.items():
                taken = [_seconds(simulation, count) for count in (steps, 3 * steps)]
                seconds[name].append((taken[1] - taken[0]) / (2 * steps))
        points = next(iter(runs.values())).solver.points
    bare = statistics.median(seconds["bare"])
    return [
        {"name": name, "points": points, "steps": steps, "step_s": statistics.median(taken), "all_step_s": taken,
         "more": statistics.median(taken) / bare - 1}
        for name, taken in seconds.items()
    ]  # fmt: skip


def _seconds(simulation: Simulation, steps: int) -> float:
    began = time.perf_counter()
    simulation.run(steps=steps, progress=False, write_last=False)
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python docs/make/output_costs.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="three-d", help="of the planar jet (default: %(default)s)")
    parser.add_argument("--backend", default="auto", help="auto, cpu, cuda, emulated (default: %(default)s)")
    parser.add_argument(
        "--steps", type=int, default=200, help="of the shorter run that is timed (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to keep the figures, as JSON")
    given = parser.parse_args(arguments)
    rows = measure(given.preset, given.backend, given.steps, given.repeats)
    for row in rows:
        print(f"{row['name']:>16}  {1e3 * row['step_s']:9.3f} ms a step  {100 * row['more']:+7.2f} %")
    given.out.write_text(json.dumps(header("output-costs") | {"backend": given.backend, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
