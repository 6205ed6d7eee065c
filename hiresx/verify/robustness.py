"""What lives through strong shocks and near-vacuum, with which choices: every flux, weights and positivity on every
flow of a list, as a table.

    python -m hiresx.verify.robustness --backend cpu --jobs 16 --out docs/results/robustness-cpu.json
    python -m hiresx.verify.robustness_page docs/results/robustness-cpu.json --out docs/robustness.md

The group "robustness" of `hiresx verify` runs the small forms of the same flows with the default positivity.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hiresx import kernels
from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.saved import files, machine_record
from hiresx.verify import runner
from hiresx.verify.checks import Check, CheckRun, Finished, Workbench, at_least
from hiresx.verify.exact import rayleigh_pitot

WEIGHTS = ("js", "z")
POSITIVITY = ("limiter", "fallback", "none")
MACH20 = "state={rho=1.0,u=20.0,p=0.7142857142857143}"


def density_error(run: Finished) -> float:
    """L1 error of the density, relative to its mean."""
    exact = run.exact("rho")
    return abs(run.state("rho") - exact).mean() / exact.mean()


def shock_radius_error(run: Finished) -> float:
    """Of Sedov's blast, where the density is largest against 0.75 sqrt(t), relative."""
    block = run.blocks[0]
    rho, radius = run.state("rho"), np.hypot(block.x, block.y)
    return abs(radius.flat[rho.argmax()] / (0.75 * run.time**0.5) - 1)


def pitot_error(run: Finished) -> float:
    """Stagnation pressure on the windward side of the cylinder against Rayleigh's formula at Mach 20, relative."""
    block = run.blocks[0]
    wall = np.s_[0, 0, :]
    foremost = block.x[wall].argmin()
    return abs(run.state("p")[wall][foremost] * 1.4 / rayleigh_pitot(20.0, 1.4) - 1)


@dataclass(frozen=True)
class StrongFlow:
    """A flow of the list: what is run, a form of it that takes a fraction of a second, and what is wrong at the end if
    it gets there (`error`, `limit`: more than this is called wrong, `fault` is what that is)."""

    title: str
    case: str
    preset: str | None
    sets: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    error: Callable[[Finished], float] | None = None
    limit: float = np.inf
    fault: str = ""

    def run(self, flux: str, weights: str, positivity: str, small: bool = False) -> CheckRun:
        choices = {"flux": flux, "weights": weights, "positivity": positivity}
        scheme = (f'scheme.{key}="{value}"' for key, value in choices.items())
        return CheckRun(
            self.case, self.preset, (*self.sets, *(self.small if small else ()), *scheme, "monitor.every=1")
        )


# All with one gamma in the small forms, so that few kernels are compiled.
AIR = "gas.gamma=1.4"
FLOWS = (
    StrongFlow("Sedov's blast", "sedov", "quick", (), ("time.end=0.05",), shock_radius_error, 0.1, "shock misplaced"),
    StrongFlow("Noh, planar", "noh", "planar", (), (AIR, "grid.n=[60,1,1]"), density_error),
    StrongFlow("Noh", "noh", None, (), (AIR, "grid.n=[24,24,1]", "time.end=0.2"), density_error),
    StrongFlow("123 problem", "einfeldt-123", None, (), ("grid.n=[100,1,1]",), density_error),
    StrongFlow("vacuum", "vacuum", None, (), ("grid.n=[100,1,1]",), density_error),
    StrongFlow("Le Blanc's tube", "le-blanc", None, (), (AIR, "grid.n=[120,1,1]", "time.end=3.0"), density_error),
    StrongFlow("two blast waves", "blast-waves", None, ("grid.n=[401,1,1]",), ("grid.n=[101,1,1]",)),
    StrongFlow("cylindrical blast", "blast-2d", None, (), ("grid.n=[40,40,1]", "time.end=0.006")),
    StrongFlow("double Mach reflection", "double-mach", "coarse", (), ("time.end=0.01",)),
    StrongFlow(
        "Mach 20 cylinder",
        "cylinder-bow-shock",
        "mach20",
        ("grid.n_around=129", "grid.n_normal=33"),
        ("grid.n_around=25", "grid.n_normal=17", "time.end=0.2"),
        pitot_error,
        0.05,
        "carbuncle",
    ),
    StrongFlow(
        "Mach 20 cylinder, all round",
        "cylinder-o",
        None,
        (
            "gas.reynolds=inf",
            "force=[]",
            "output.subset=[]",
            "grid.n_around=64",
            "grid.n_normal=33",
            "time.cfl=0.5",
            "time.end=1.0",
            f"initial={{{MACH20}}}",
            f'boundary=[{{faces=["jmin"],type="slip-wall"}},{{faces=["jmax"],type="far-field",{MACH20}}}]',
        ),
        ("grid.n_around=32", "grid.n_normal=17", "time.end=0.1"),
    ),
)


def least(run: Finished) -> float:
    """The least of density and pressure at any step, over the least that the initial state has, in the smaller of the
    two ratios: positive while the flow is alive."""
    return min((run.samples(f"least_{name}") / run.samples(f"least_{name}")[0]).min() for name in ("rho", "p"))


def checks() -> list[Check]:
    """The small forms with the default positivity."""
    return [
        Check(f"{flow.title}: {flux}, {weights}", at_least(1e-12), least, (flow.run(flux, weights, "limiter", True),))
        for flow in FLOWS
        for flux in kernels.choices("flux")
        for weights in WEIGHTS
    ]


def outcome(flow: StrongFlow, flux: str, weights: str, positivity: str, backend: str, small: bool) -> dict[str, Any]:
    """One cell of the table: what was chosen, the `command`, and either what was left (`steps`, `time`, `least_rho`,
    `least_p`, `error` of the flow, None where there is no exact answer) or the words of what `stopped` it."""
    run = flow.run(flux, weights, positivity, small)
    cell: dict[str, Any] = {
        "flow": flow.title,
        "flux": flux,
        "weights": weights,
        "positivity": positivity,
        "command": run.command,
    }
    began = time.perf_counter()
    try:
        finished = Finished(run, backend)
    except HiresxError as error:
        cell["stopped"] = error.message
    else:
        cell |= {"steps": finished.simulation.step_count, "time": finished.time}
        cell |= {f"least_{name}": finished.samples(f"least_{name}").min() for name in ("rho", "p")}
        cell["error"] = None if flow.error is None else float(flow.error(finished))
    return cell | {"seconds": round(time.perf_counter() - began, 2)}


def table(backend: str, small: bool, jobs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The document of all cells."""
    wanted = [
        (flow, flux, weights, positivity, backend, small)
        for flow in FLOWS
        for positivity in POSITIVITY
        for flux in kernels.choices("flux")
        for weights in WEIGHTS
    ]
    began = time.perf_counter()
    compiled = [
        Check("", at_least(0), least, (flow.run(flux, weights, positivity, small),))
        for flow, flux, weights, positivity, _, _ in wanted
    ]
    runner.compile_ahead(Workbench(backend), compiled)
    cells = []
    # Each job is a process of its own with one thread: these grids are too small to share.
    os.environ["OMP_NUM_THREADS"] = "1"
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for cell in pool.imap(_outcome, wanted):
            cells.append(cell)
            how = f"stopped: {cell['stopped']}" if "stopped" in cell else plural(cell["steps"], "step")
            choices = ", ".join(cell[key] for key in ("flow", "flux", "weights", "positivity"))
            say(f"{choices}: {how} ({cell['seconds']} s)")
    return {
        "kind": "robustness",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": backend,
        "small": small,
        "hardware": machine_record.hardware(),
        "wall_s": round(time.perf_counter() - began, 1),
        "cells": cells,
    }


def _outcome(arguments: tuple[Any, ...]) -> dict[str, Any]:
    return outcome(*arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m hiresx.verify.robustness", description="What lives with which choices."
    )
    parser.add_argument("--backend", default="cpu", help="cpu, cuda or emulated (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs at once")
    parser.add_argument("--small", action="store_true", help="the small forms: about a minute of processor time")
    parser.add_argument("--out", type=Path, required=True, help="the results, e.g. docs/results/robustness-cpu.json")
    asked = parser.parse_args(arguments)
    document = table(asked.backend, asked.small, asked.jobs, lambda line: print(line, file=sys.stderr, flush=True))
    document["command"] = " ".join(
        ["python -m hiresx.verify.robustness", *(sys.argv[1:] if arguments is None else arguments)]
    )
    with files.replacing(asked.out) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
