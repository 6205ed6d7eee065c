"""Counts the launches and bytes of a stage. Unlike timings, these are the same on every machine.

    python docs/make/stage_costs.py --json > docs/results/performance-counted.json
    python docs/make/stage_costs.py --against docs/results/performance-counted.json

The second command exits with status 1 if a count has grown, and names it: launches, the bytes that the kernels must
move at least, the bytes that are held. A test does the same. Registers and spills are counted by
kernel_registers.py.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import kernel_times
from launch_times import TimingBackend

from hiresx.bench.results import header
from hiresx.case import Case, load
from hiresx.device import backend as find_backend
from hiresx.errors import HiresxError
from hiresx.solver import Solver

# The CUDA form, counted without a GPU.
BACKEND = "emulated"

# A jet of four blocks, small, with every kind of boundary condition that the full one has.
_JET = (
    "grid.points_per_height=16", "grid.boundary_layer_points=2", "grid.exit_spacing=0.05", "grid.length=4",
    "grid.half_height=2", "grid.sponge_length=2", "grid.sponge_height=2",
)  # fmt: skip


class Growth(NamedTuple):
    """A count that is larger than it was: of which flow, plan and kernel (empty: of all together)."""

    where: str
    counted: str
    before: float
    now: float


def flows() -> dict[str, Case]:
    """The flows whose stages are counted, by name."""
    from hiresx.bench import rhs

    return {
        "wavy box, viscous, FP64": rhs.flow(16, True, "fp64"),
        "wavy box, viscous, FP32": rhs.flow(16, True, "fp32"),
        "wavy box, inviscid, FP64": rhs.flow(16, False, "fp64"),
        "planar jet": load("planar-jet", "quick", [*_JET, "time.steps=1"]),
    }


def count() -> dict[str, Any]:
    """`rows`, one for each flow and plan: `flow`, `plan`, `launches` of a stage with the time step and the norms,
    `bytes_moved` per point, those of kernels for which bytes_moved.py knows it, `bytes_held` per point, and
    `kernels`, {"kernel" or "kernel along i": launches}."""
    device = find_backend(BACKEND)
    rows = []
    for name, case in flows().items():
        for plan in kernel_times.plans(device):
            timed = TimingBackend(device)
            solver = Solver(case, timed, plan=plan)
            solver.initialize()
            found = kernel_times.stage_rows(solver, timed, 1)
            rows.append(
                {
                    "flow": name,
                    "plan": plan,
                    "launches": sum(row["launches"] for row in found),
                    "bytes_moved": round(sum(row["bytes_per_point"] or 0 for row in found), 1),
                    "bytes_held": round(solver.bytes / solver.points, 1),
                    "kernels": {_label(row): row["launches"] for row in found},
                }
            )
    return header("counted") | {"backend": BACKEND, "rows": rows}


def _label(row: Mapping[str, Any]) -> str:
    return row["kernel"] if row["direction"] is None else f"{row['kernel']} along {row['direction']}"


def growth(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Growth]:
    """What is larger in `now` than in `before`, two results of `count`; flows and plans that only one of them has are
    passed over."""
    known = {(row["flow"], row["plan"]): row for row in before["rows"]}
    for row in now["rows"]:
        old = known.get((row["flow"], row["plan"]))
        if old is None:
            continue
        where = f"{row['flow']}, plan {row['plan']}"
        for name in ("launches", "bytes_moved", "bytes_held"):
            if row[name] > old[name]:
                yield Growth(where, name, old[name], row[name])


def read(path: Path) -> dict[str, Any]:
    """A stored result of `count`. Raises HiresxError for a file that is none."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise HiresxError(
            f"{path} cannot be read: {error}", "name a result of python docs/make/stage_costs.py"
        ) from None
    if not isinstance(found, dict) or found.get("kind") != "counted":
        raise HiresxError(f"{path} holds no counts", "name a result of python docs/make/stage_costs.py --json")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python docs/make/stage_costs.py",
        description="Count launches and bytes of a stage in the form that GPUs run, without a GPU.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--against", type=Path, metavar="FILE", help="a stored result: exit status 1 if a count grew")
    options = parser.parse_args(arguments)
    try:
        before = None if options.against is None else read(options.against)
        found = count()
    except HiresxError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{'flow':26}{'plan':12}{'launches':>9}{'bytes moved':>13}{'bytes held':>12}  (per point)")
        for row in found["rows"]:
            print("{flow:26}{plan:12}{launches:9}{bytes_moved:13}{bytes_held:12}".format(**row))
    grown = [] if before is None else list(growth(before, found))
    for entry in grown:
        print(f"grown: {entry.counted} of {entry.where}: {entry.before:g} before, now {entry.now:g}", file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
