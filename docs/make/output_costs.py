"""What fields and monitors cost a run:

    python docs/make/output_costs.py --backend cuda --out FILE

The planar jet of a preset (`three-d`: 4.5 million points) runs bare, with all fields every 100 steps, with each kind of
monitor every 10 steps, and with all of these monitors. All are timed in turns, in one process. A function of Python
notes the clock every 100 steps, of the bare run too, so that what a run takes before its first step and after its last
one, such as locating probes, does not count. The median of all intervals of 100 steps counts.
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
TABLES = ("probe", "surface", "average")
# Steps between samples of a monitor; between files with all fields, and between readings of the clock.
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
NEEDED = {"probes": "probe", "surface": "surface", "averages": "average"}


def variants(preset: str) -> dict[str, Case]:
    """The cases that are timed, by name; "bare" is the first."""

    def case(*names: str, **fields: Any) -> Case:
        absent = {table: None for table in TABLES if table not in {NEEDED.get(name) for name in names}}
        own = {key: value for name in names for key, value in MONITORS[name].items()}
        others = {"monitor.every": FIELDS, **(fields or {"output.every_time": 1e9})}
        return load("planar-jet", preset, {**ALWAYS, **absent, **others, **own})

    found = {"bare": case()}
    for precision in ("fp64", "fp32"):
        found[f"fields, {precision}"] = case(
            **{"output.every_time": None, "output.every_steps": FIELDS, "output.precision": precision}
        )
    return found | {name: case(name) for name in MONITORS} | {"all monitors": case(*MONITORS)}


class Clock:
    """The monitor that notes when a run of `simulation` comes past each hundredth step: `intervals`, in seconds."""

    def __init__(self) -> None:
        self.intervals: list[float] = []
        self._last: tuple[int, float] = (-FIELDS, 0.0)

    def clock(self, simulation: Simulation) -> dict[str, float]:
        solver = simulation.solver
        if solver.steps % FIELDS == 0:
            solver.backend.synchronize()
            now = time.perf_counter()
            if solver.steps == self._last[0] + FIELDS:
                self.intervals.append(now - self._last[1])
            self._last = solver.steps, now
        return {"intervals": float(len(self.intervals))}

    def begin(self) -> None:
        """Count no interval that another run began."""
        self._last = -FIELDS, 0.0


def measure(preset: str, backend: str, steps: int, repeats: int, only: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of `name`, the seconds of a step (`step_s`), and what it takes more than bare (`more`, a ratio). `only`:
    names of variants beside "bare"; none for all."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {}
        cases = variants(preset)
        for name in (name for name in cases if not only or name in ("bare", *only)):
            case = cases[name]
            clock = Clock()
            out = Path(folder) / name.replace(" ", "-")
            simulation = Simulation(case, backend=backend, monitors=[clock.clock], out=out)
            simulation.run(steps=FIELDS, progress=False, write_last=False)
            runs[name] = simulation, clock
        for _ in range(repeats):
            for simulation, clock in runs.values():
                clock.begin()
                simulation.run(steps=steps, progress=False, write_last=False)
        points = next(iter(runs.values()))[0].solver.points
    seconds = {name: [interval / FIELDS for interval in clock.intervals[1:]] for name, (_, clock) in runs.items()}
    bare = statistics.median(seconds["bare"])
    return [
        {"name": name, "points": points, "steps": steps, "step_s": statistics.median(taken), "all_step_s": taken,
         "more": statistics.median(taken) / bare - 1}
        for name, taken in seconds.items()
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python docs/make/output_costs.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="three-d", help="of the planar jet (default: %(default)s)")
    parser.add_argument("--backend", default="auto", help="auto, cpu, cuda, emulated (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=400, help="of each run that is timed (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="of variants beside bare (default: all)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to keep the figures, as JSON")
    given = parser.parse_args(arguments)
    rows = measure(given.preset, given.backend, given.steps, given.repeats, given.only)
    for row in rows:
        print(f"{row['name']:>16}  {1e3 * row['step_s']:9.3f} ms a step  {100 * row['more']:+7.2f} %")
    given.out.write_text(json.dumps(header("output-costs") | {"backend": given.backend, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
