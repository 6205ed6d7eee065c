"""Runs of every flow of a list of strong shocks and near-vacuum, with every flux, kind of weights and positivity.

    python docs/make/robustness_runs.py --backend cpu --jobs 16 --out docs/results/robustness-cpu.json

With `--weights low_dissipation` the runs are those of that scheme.choice, by the default positivity alone.
robustness.py makes docs/robustness.md of the results. The group "robustness" of `hiresx verify` runs the small forms of
the same flows with the default positivity.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hiresx import kernels
from hiresx.base.plural import plural
from hiresx.case.named_scheme import LOW_DISSIPATION
from hiresx.errors import HiresxError
from hiresx.exact import rayleigh_pitot
from hiresx.output.saved import files, machine_record
from hiresx.verify import runner
from hiresx.verify.checks import Check, CompletedRun, Workbench, at_least
from hiresx.verify.groups.robustness import FLOWS, WEIGHTS, StrongFlow, least

POSITIVITY = ("limiter", "fallback", "none")


def density_error(run: CompletedRun) -> float:
    """L1 error of the density, relative to its mean."""
    exact = run.exact("rho")
    return float(abs(run.state("rho") - exact).mean() / exact.mean())


def shock_radius_error(run: CompletedRun) -> float:
    """Relative error of the radius of Sedov's blast, where the density is largest, against 0.75 sqrt(t)."""
    block = run.blocks[0]
    rho, radius = run.state("rho"), np.hypot(block.x, block.y)
    return float(abs(radius.flat[rho.argmax()] / (0.75 * run.time**0.5) - 1))


def pitot_error(run: CompletedRun) -> float:
    """Stagnation pressure on the windward side of the cylinder against Rayleigh's formula at Mach 20, relative."""
    block = run.blocks[0]
    wall = np.s_[0, 0, :]
    foremost = block.x[wall].argmin()
    return float(abs(run.state("p")[wall][foremost] * 1.4 / rayleigh_pitot(20.0, 1.4) - 1))


# By flow: its error where there is an exact answer, the largest accepted one, and what a larger one means.
ERRORS: dict[str, tuple[Callable[[CompletedRun], float], float, str]] = {
    "Sedov's blast": (shock_radius_error, 0.1, "shock misplaced"),
    "Mach 20 cylinder": (pitot_error, 0.05, "carbuncle"),
    **dict.fromkeys(("Noh, planar", "Noh", "123 problem", "vacuum", "Le Blanc's tube"), (density_error, np.inf, "")),
}


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
        finished = CompletedRun(run, backend)
    except HiresxError as error:
        cell["stopped"] = error.message
    else:
        cell |= {"steps": finished.simulation.step_count, "time": finished.time}
        cell |= {f"least_{name}": finished.samples(f"least_{name}").min() for name in ("rho", "p")}
        cell["error"] = float(ERRORS[flow.title][0](finished)) if flow.title in ERRORS else None
    return cell | {"seconds": round(time.perf_counter() - began, 2)}


def table(
    backend: str,
    small: bool,
    jobs: int,
    say: Callable[[str], None],
    fluxes: Sequence[str] = (),
    weights: Sequence[str] = WEIGHTS,
) -> dict[str, Any]:
    """The document of all cells; `fluxes`: all, if none are named."""
    wanted = [
        (flow, flux, weighing, positivity, backend, small)
        for flow in FLOWS
        for positivity in POSITIVITY
        for flux in fluxes or kernels.choices("flux")
        for weighing in weights
        if weighing != LOW_DISSIPATION or positivity == POSITIVITY[0]
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
        prog="python docs/make/robustness_runs.py", description="What lives with which choices."
    )
    parser.add_argument("--backend", default="cpu", help="cpu, cuda or emulated (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs at once")
    parser.add_argument("--small", action="store_true", help="the small forms: about a minute of processor time")
    parser.add_argument("--flux", nargs="+", default=[], choices=kernels.choices("flux"), help="all, if none is named")
    named = [*WEIGHTS, LOW_DISSIPATION]
    parser.add_argument("--weights", nargs="+", default=WEIGHTS, choices=named, help="(default: both)")
    parser.add_argument("--out", type=Path, required=True, help="the results, e.g. docs/results/robustness-cpu.json")
    asked = parser.parse_args(arguments)
    document = table(
        asked.backend,
        asked.small,
        asked.jobs,
        lambda line: print(line, file=sys.stderr, flush=True),
        asked.flux,
        asked.weights,
    )
    document["command"] = " ".join(
        ["python docs/make/robustness_runs.py", *(sys.argv[1:] if arguments is None else arguments)]
    )
    with files.replacing(asked.out) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
