"""Speed and memory of every precision, measured and as a page.

`python docs/make/precision.py --backend cuda --out speed.json` measures whole steps of the Taylor-Green vortex on a
wavy grid; `--page speed.json errors.json` makes the page docs/precision.md of such a file and of what
`hiresx verify precision --json` found.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from hiresx.bench import rhs
from hiresx.bench.results import header
from hiresx.device import backend
from hiresx.device.interface import Backend
from hiresx.equations.storage import PRECISIONS
from hiresx.grid import build
from hiresx.rhs.plans import default_plan
from hiresx.solver import Solver

STEPS, REPEATS = 5, 3

_TEXT = """# Precision

`scheme.precision` says in which numbers a run computes and in which it keeps what.

| option | arithmetic | state | right-hand side | metrics, work arrays |
| --- | --- | --- | --- | --- |
| `fp64` (default) | FP64 | FP64 | FP64 | FP64 |
| `mixed` | FP64 | FP64 | FP64 | FP32 |
| `differences` | FP64 | FP32, less a reference, and what rounding lost | FP32 | FP32 |
| `fp32` | FP32 | FP32 | FP32 | FP32 |

`mixed` keeps mass, momentum and energy as FP64 does. Metrics in FP32 keep a uniform flow on a curvilinear grid to
about 1e-7 only, instead of to round-off; on a uniform grid they change the size of a cell by at most 6e-8.

`differences` keeps q - q_ref, q_ref being rho = 1 at rest with p = 1/gamma, or the state `scheme.reference`: what is
rounded is the difference. The update computes in FP64 and carries along, in an FP32 array, what the last rounding
lost (compensated summation): increments far below the last bit add up. Of the stages of `ssp_rk3`, each gives to the
array what its rounding will lack at the end of the step. Kernels do not see that array: a right-hand side is one of
the rounded state. Conservation holds to about 1e-11 in a few hundred steps. Passive scalars are refused.

Both work with every plan, backend, integrator and condition that FP64 has, with local time steps, averages and
several ranks. Tests hold that five steps of small viscous flows (outflow and sponge, walls, a blast that the limiter
works on, poles, patched and rotated faces, axisymmetric flow) are those of FP64 within 4 x 2^-24 of a variable's
largest value. As near are, in boxes, around poles and over patched and rotated faces, the plans to each other, and in
all but the blast two ranks to one, where FP64 agrees to about 1e-13: what FP32 keeps rounds differently.

Refused, when a case is read or set up: passive scalars with `differences` (`mixed` carries them); a `reference` that
moves where faces are connected by a rotation, or with another precision. A checkpoint has the numbers as they are
kept; a restart is the same run to the last bit, and one into another precision or reference is refused. Files of
fields show FP64 unless they are asked for `fp32`.
"""

_ERRORS = """The largest difference of density, velocity and pressure at any node from the same run in FP64, in the
units of the case. The vortices: 64 x 64 points, time 2; Taylor-Green: 24^3 points at Mach 0.1, ten turnover times;
the sound wave: 1e-5 of the speed of sound, over that; uniform flow: 50 steps at Mach 0.3 through a strongly wavy grid.
"""


def measure(device: Backend, points: int) -> list[dict[str, Any]]:
    """Of every precision, with and without viscous terms: `point_steps_per_s` of whole steps (the median of `rates`),
    `bytes_per_point`, `plan`."""
    case = rhs.flow(points, True, "fp64")
    grid = build(case.grid, case.directory)
    return [
        _measured(Solver(rhs.flow(points, viscous, precision), device, grid=grid), precision, viscous)
        for viscous in (True, False)
        for precision in PRECISIONS
    ]


def _measured(solver: Solver, precision: str, viscous: bool) -> dict[str, Any]:
    solver.initialize()
    solver.choose_dt()
    _advance(solver)
    rates = [solver.points * STEPS / _advance(solver) for _ in range(REPEATS)]
    return {
        "precision": precision,
        "viscous": viscous,
        "point_steps_per_s": median(rates),
        "rates": rates,
        "bytes_per_point": solver.bytes / solver.points,
        "plan": solver.plan,
    }


def _advance(solver: Solver) -> float:
    """Seconds of `STEPS` steps."""
    began, done = time.perf_counter(), 0
    while done < STEPS:
        done += solver.advance(STEPS - done)
    solver.backend.synchronize()
    return time.perf_counter() - began


def page(speed: dict[str, Any], errors: dict[str, Any]) -> str:
    """The page, from what was measured and what was found."""
    rows = {(row["precision"], row["viscous"]): row for row in speed["rows"]}
    machine = speed["hardware"]
    place = machine["gpus"][0]["name"] if speed["backend"] == "cuda" else machine["cpu"]
    lines = [_TEXT, "## Speed\n", f"{place}, {speed['date'][:10]}, plan `{speed['rows'][0]['plan']}`: the "]
    lines[-1] += f"Taylor-Green vortex on {speed['nodes']}^3 nodes of a\nwavy grid, `{speed['command']}`.\n"
    head = ("precision", "viscous: 10^6 points x steps per s", "bytes per point", "inviscid", "bytes per point")
    lines += _table(
        head,
        [
            [p] + [f"{rows[p, v][key] / unit:.0f}" for v in (True, False) for key, unit in _FIGURES]
            for p in PRECISIONS
            if (p, True) in rows and (p, False) in rows
        ],
    )
    where = f"`{errors['command']}`, plan `{default_plan(errors['backend'])}`, {errors['date'][:10]}."
    lines += ["\n## Errors\n", f"{where}\n{_ERRORS}"]
    found = {tuple(check["check"].split(": ", 1)): check["value"] for check in errors["checks"]}
    options = list(dict.fromkeys(option for _, option in found))
    lines += _table(
        ("flow", *options),
        [
            [flow, *(f"{found[flow, option]:.1e}" if (flow, option) in found else "" for option in options)]
            for flow in dict.fromkeys(flow for flow, _ in found)
        ],
    )
    return "\n".join(lines) + "\n"


_FIGURES = (("point_steps_per_s", 1e6), ("bytes_per_point", 1))


def _table(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (list(head), ["---"] * len(head), *rows)]


def main(words: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python docs/make/precision.py", description=__doc__)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--page", nargs=2, type=Path, metavar=("SPEED", "ERRORS"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    if given.page:
        given.out.write_text(page(*(json.loads(path.read_text()) for path in given.page)), encoding="utf-8")
    else:
        rows = measure(backend(given.backend), given.points)
        found = header("precisions") | {"backend": given.backend, "nodes": given.points, "rows": rows}
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
