"""Measures the storages of the implicit integrator's blocks (implicit.storage): how far sweeps solve the equations of
one Newton step, and what a sweep costs.

    python docs/make/block_storage.py residuals naca0012 laminar --steps 10 --cfl 1000
    python docs/make/block_storage.py times --nodes 64

It prints tables of docs/implicit.md and docs/linear-solver.md. `residuals`: the flow after so many Newton steps, and
the residual of the linear equations at this CFL number, over that without an update, after sweeps of each storage; the
matrix is that of fp32.
`--picture FILE.png` draws them too: docs/implicit-sweeps.png, from the same command.
`times`: on one core; a part of measure_gpu.py measures the same on a GPU.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast, get_args

import kernel_times
import numpy as np
from markdown_tables import table
from sweep_blocks import diagonal_blocks, neighbour_blocks
from sweep_times import measure

from hiresx import Simulation, load
from hiresx.base.arrays import Reals
from hiresx.bench import rhs
from hiresx.case import Case
from hiresx.device import backend as find_backend
from hiresx.device.interface import Backend
from hiresx.equations.storage import BLOCK_BITS, MATRIX_FREE, SweepPrecision
from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.solver import Solver
from hiresx.solver.coloured_arrays import in_precision
from hiresx.time.linearised import EXPLICIT_CFL, ImplicitIntegrator

Row = dict[str, Any]
SWEEPS = (1, 2, 5, 10, 20, 40, 80)
REPEATS = 5


def measurements(device: Backend, nodes: int) -> Iterator[Callable[[], Row]]:
    """Yield functions that measure the rate of a copy, and then a sweep for each storage (sweep_times):
    over nodes, and over lines along i and along k."""
    yield lambda: {"copy_gb_per_s": kernel_times.copy_bandwidth(device, REPEATS)}
    for lines, storage, precision in product(("none", "i", "k"), (*BLOCK_BITS, MATRIX_FREE), get_args(SweepPrecision)):
        if precision == "fp16" and (storage, lines) != (MATRIX_FREE, "none"):
            continue
        yield partial(measure, device, nodes, storage, precision, lines, REPEATS)


def residuals(case: Case, steps: int, cfl: float) -> Iterator[Row]:
    """Yield a row for each storage, of sweeps over nodes and over the lines that the flow asks for."""
    simulation = Simulation(case, "cpu")
    simulation.run(steps=steps, progress=False)
    system = simulation.solver.system
    x = system.vector()
    system.state(x)
    flow = system.gather(x)
    # Along j, so that the diagonal blocks are left as they are.
    exact, right, _ = _solved(_with(case, storage="fp32", lines="j", sweeps=1), flow, cfl)
    blocks = [state.array("implicit_blocks").copy() for state in exact.states]
    for lines in ("none", "auto"):
        for storage in BLOCK_BITS:
            found: Row = {"sweeps over": "nodes" if lines == "none" else "lines", "storage": storage}
            for count in SWEEPS:
                _, _, update = _solved(_with(case, storage=storage, lines=lines, sweeps=count), flow, cfl)
                rest = [_rest(exact, n, *pieces) for n, pieces in enumerate(zip(blocks, right, update, strict=True))]
                found[str(count)] = _norm(rest) / _norm([_interior(exact, n, b) for n, b in enumerate(right)])
            yield found


def draw(rows: Sequence[Row], path: Path) -> Path:
    """Draw the rows of `residuals`: a panel for sweeps over nodes and one for those over lines. Raises HiresxError for
    want of matplotlib and for a file that cannot be written."""
    picture_file.require_matplotlib()
    with picture_file.style({"savefig.dpi": 120}):
        figure = picture_file.figure(2.8)
        panels = figure.subplots(1, 2, sharey=True)
        colours = dict(zip(BLOCK_BITS, picture_file.distinct_colours(len(BLOCK_BITS)), strict=True))
        for ax, over in zip(panels, ("nodes", "lines"), strict=True):
            for row, look in zip((row for row in rows if row["sweeps over"] == over), ("o-", "x--", "s:"), strict=True):
                name = row["storage"]
                ax.loglog(SWEEPS, [row[str(n)] for n in SWEEPS], look, ms=4, color=colours[name], label=name)
            ax.set_xticks(SWEEPS, [str(n) for n in SWEEPS])
            ax.minorticks_off()
            ax.set_title(f"sweeps over {over}")
            ax.set_xlabel("sweeps")
        panels[0].set_ylabel("linear residual / that at the start")
        panels[0].legend()
        return picture_file.save(figure, path)


def _with(case: Case, **keys: Any) -> Case:
    """The same case with other keys of [implicit]."""
    return case.model_copy(update={"implicit": case.implicit.model_copy(update=keys)})


def _solved(case: Case, flow: Reals, cfl: float) -> tuple[Solver, list[Reals], list[Reals]]:
    """A solver of the case, the right-hand side of a Newton step from the flow, and the update, with ghosts."""
    solver = Solver(case, find_backend("cpu"))
    solver.initialize()
    system, linear = solver.system, cast(ImplicitIntegrator, solver.integrator).linearised
    x, right, found = (system.vector() for _ in range(3))
    system.scatter(flow, x)
    system.accept(x, 0.0)
    linear.begin()
    linear.change(x, right)
    linear.assemble(x, EXPLICIT_CFL / cfl)
    linear.precondition(right, found)
    updates = [
        in_precision(state.array("sweep_update"), state.equations.variables, case.implicit.sweep_precision)
        for state in solver.states
    ]
    return solver, [array.copy() for array in right.arrays], updates


def _rest(solver: Solver, n: int, blocks: Reals, right: Reals, update: Reals) -> Reals:
    """right - A update at the nodes of a part."""
    state = solver.states[n]
    variables = state.equations.variables
    diagonal = diagonal_blocks(blocks, variables)
    rest: Reals = right - np.einsum("ab...,b...->a...", diagonal, update)
    beside = neighbour_blocks(blocks, "fp32", variables)
    for side in range(6):
        axis = 3 - side // 2
        if state.size[side // 2] > 1:
            rest -= np.einsum("ab...,b...->a...", beside[side], np.roll(update, -1 if side % 2 else 1, axis))
    return _interior(solver, n, rest)


def _interior(solver: Solver, n: int, array: Reals) -> Reals:
    found: Reals = solver.states[n].interior(array)
    return found


def _norm(pieces: Sequence[Reals]) -> float:
    return float(np.sqrt(sum(np.square(piece).sum() for piece in pieces)))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    of_flow = parts.add_parser("residuals")
    of_flow.add_argument("case")
    of_flow.add_argument("preset", nargs="?")
    of_flow.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    of_flow.add_argument("--steps", type=int, default=10, help="default: %(default)s")
    of_flow.add_argument("--cfl", type=float, default=1000.0, help="default: %(default)s")
    of_flow.add_argument("--picture", type=Path, metavar="FILE.png")
    parts.add_parser("times").add_argument("--nodes", type=int, default=64, help="in a direction; default: %(default)s")
    given = parser.parse_args(arguments)
    try:
        if given.part == "residuals":
            if given.picture:  # before the flow that takes minutes
                picture_file.check_target(given.picture)
            overrides = ['time.integrator="implicit"', *given.overrides]
            found = [*residuals(load(given.case, preset=given.preset, overrides=overrides), given.steps, given.cfl)]
            if given.picture:
                draw(found, given.picture)
            rows = [
                {name: f"{value:.1e}" if isinstance(value, float) else value for name, value in row.items()}
                for row in found
            ]
        else:
            device = find_backend("cpu")
            with rhs.only(device, 1):
                copy, *rows = (measured() for measured in measurements(device, given.nodes))
            print(f"copying: {copy['copy_gb_per_s']:.1f} GB/s")
    except HiresxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    shown = [name for name, value in rows[0].items() if not isinstance(value, dict)]
    print(table(shown, [[row[name] for name in shown] for row in rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
