"""Bow shock of a circular cylinder at Mach 5.

The stand-off distance on the axis is compared with Billig's correlation, and the pressure at the stagnation point with
Rayleigh's pitot formula. The place of the shock is where the pressure has half of the rise of a normal shock. The flow
must be symmetric about the axis. Billig's formula is a fit to measurements, and is used to judge Mach 5 only. The
picture shows other Mach numbers, too. At lower Mach numbers the distance of the computed shock from the cylinder is
larger in relation to the formula. At Mach 3 it differs from the formula by more than the 5 % allowed here, on the
coarse grid and on a finer one.
"""

import numpy as np

from hiresx.exact import billig_standoff, normal_shock, rayleigh_pitot
from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_most, between

LONG = True

MACH = 5.0
# Mach number -> stand-off of the outer boundary on the axis and at the side; about 1.5 times that of the shock.
OTHERS = {3.0: (1.0, 3.4), 4.0: (0.8, 2.8), 6.0: (0.7, 2.4), 8.0: (0.65, 2.3)}


def mach(run: CompletedRun) -> float:
    """Return the Mach number of the free stream, which is the initial flow of the run."""
    state = run.case.initial.state
    assert state is not None
    return state.u / np.sqrt(run.case.gas.gamma * state.p / state.rho)


def axis(run: CompletedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (n,) at the nodes on the stagnation line upstream of the cylinder at the end of `run`: the
    distance from the wall, in units of the length scale L, and the pressure divided by that of the free stream."""
    block, p, free = run.blocks[0], run.state("p")[0], run.case.initial.state
    assert free is not None
    middle = block.x.shape[2] // 2
    return -block.x[0, :, middle] - 1, p[:, middle] / free.p


def standoff(run: CompletedRun) -> float:
    """Return the distance of the bow shock from the cylinder on the stagnation line at the end of `run`, in units of
    the length scale L. The shock is where the pressure passes half the rise of a normal shock."""
    distance, p = axis(run)
    half = 0.5 * (1 + normal_shock(mach(run), run.case.gas.gamma).pressure)
    j = np.flatnonzero(p > half)[-1]
    return distance[j] + (distance[j + 1] - distance[j]) * (p[j] - half) / (p[j] - p[j + 1])


def standoff_error(run: CompletedRun, *others: CompletedRun) -> float:
    """Return the relative error of the stand-off distance of the bow shock in `run` with respect to Billig's
    correlation. `others`: further runs of the check, which are not used."""
    return standoff(run) / billig_standoff(mach(run))[0] - 1


def pitot_error(run: CompletedRun) -> float:
    """Return the relative error of the pressure at the stagnation point at the end of `run` with respect to Rayleigh's
    pitot formula."""
    return axis(run)[1][0] / rayleigh_pitot(mach(run), run.case.gas.gamma) - 1


def asymmetry(run: CompletedRun) -> float:
    """Return the largest difference of the density at the end of `run` from its mirror image about the stagnation line,
    divided by the largest density."""
    rho = run.state("rho")
    return abs(rho - rho[:, :, ::-1]).max() / rho.max()


def standoffs(*runs: CompletedRun) -> dict[str, list[float]]:
    """Return the Mach numbers "mach" of all runs in ascending order, and the stand-off distances "standoff" of their
    bow shocks, in units of the length scale L."""
    ordered = sorted(runs, key=mach)
    return {"mach": [mach(run) for run in ordered], "standoff": [standoff(run) for run in ordered]}


def _other(number: float) -> CheckRun:
    on_axis, at_side = OTHERS[number]
    sets = (
        f"initial.state.u={number}",
        f"boundary.1.state.u={number}",
        f"grid.standoff_axis={on_axis}",
        f"grid.standoff_side={at_side}",
        "time.end=16.0",
    )
    return CheckRun("cylinder-bow-shock", "quick", sets)


CYLINDER = CheckRun("cylinder-bow-shock")

CHECKS = [
    Check(
        "stand-off, relative to Billig's",
        between(-0.05, 0.05),
        standoff_error,
        (CYLINDER, *map(_other, OTHERS)),
        standoffs,
    ),
    Check("stagnation pressure, relative to the pitot formula", between(-0.005, 0.005), pitot_error, (CYLINDER,)),
    Check("asymmetry of the density", at_most(1e-3), asymmetry, (CYLINDER,)),
]
