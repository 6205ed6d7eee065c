"""Cuts: the result does not depend on how the grid is cut, nor on the directions of the indexes of its blocks.

The grid of a case is cut at random places into 2 to 12 blocks. The index directions of each block are exchanged and
reversed in one of the right-handed ways (24 in three dimensions, 4 in two). Its boundary conditions are kept. The table
has the largest difference from the uncut grid after 20 steps, relative to the largest value of the variable or, if this
is larger, of the density. Data that cross a cut must be those of the uncut grid, and metrics, fluxes, viscous terms and
conditions must not depend on the direction of an index.
"""

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import decompose
from hiresx.device import backend as find_backend
from hiresx.grid import Grid, build
from hiresx.solver import Solver
from hiresx.verify.checks import Check, CheckRun, Workbench, at_most
from hiresx.verify.turned_blocks import difference, turn_blocks

LONG = False
AGREE = 1e-12
STEPS = 20
COUNTS = (2, 3, 4, 7, 8, 12)

RUNS = {
    "free stream, viscous": CheckRun("free-stream", None, ("gas.reynolds=100.0", 'scheme.flux="hllc"')),
    "vortex, wavy grid": CheckRun("isentropic-vortex", "wavy", ("grid.n=[64,64,1]",)),
    "Taylor-Green, viscous": CheckRun("taylor-green", None, ("grid.n=[24,24,24]",)),
    "planar jet": CheckRun("planar-jet", "quick"),
    "cylinder, O-grid, viscous": CheckRun("cylinder-o", "quick"),
    "airfoil, C-grid": CheckRun("naca0012", "quick"),
}


def _run(backend: str, case: Case, grid: Grid) -> list[np.ndarray]:
    solver = Solver(case, find_backend(backend), grid=grid)
    solver.initialize()
    for _ in range(STEPS):
        solver.step()
    return [np.asarray(piece.array, np.float64) for piece in solver.pieces()]


def largest_difference(bench: Workbench, run: CheckRun) -> float:
    """Return the largest relative difference, after 20 steps of `run`, between the flow on the grid of the case and the
    flow on the same grid divided at random into 2 to 12 blocks, whose index directions are permuted and reversed at
    random. `bench`: the `Workbench` with the backend under test."""
    case = bench.case(run)
    grid = build(case.grid, case.directory)
    expected = _run(bench.backend, case, grid)
    differences = []
    for count in COUNTS:
        new = turn_blocks(case, decompose(case, grid), count, np.random.default_rng(count))
        differences.append(difference(new.wholes(_run(bench.backend, new.case, new.grid)), expected))
    return float(np.max(differences))


def _check(name: str, run: CheckRun) -> Check:
    return Check(
        name, at_most(AGREE), lambda bench: largest_difference(bench, run), configurations=(run.configuration,)
    )


CHECKS = [_check(name, run) for name, run in RUNS.items()]
