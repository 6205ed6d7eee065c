"""Strong shocks and near-vacuum: the run ends normally, and density and pressure are positive at every step.

The flows are the double Mach reflection (h = 1/60), the blast waves of Woodward and Colella, a cylindrical blast (p =
1000 in 0.01), Sedov's blast (1e8), Noh's problem, the 123 problem, a vacuum, Le Blanc's tube and the impulsive start of
a cylinder at Mach 20, all with the default settings of each case. Where the exact solution is a vacuum, a small
positive density is correct.
Sedov's shock is the node of largest density. The foot of the Mach stem of the double Mach reflection is the node ahead
of which the wall pressure falls most steeply. An independent program of the same scheme has the foot at x = 2.758.
A node gives the place to within one spacing, which is the tolerance.
"""

from collections.abc import Callable

import numpy as np

from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_least, between

LONG = False

# Positive: above a thousandth of the least pressure of any exact solution here (6.7e-11, Le Blanc).
FLOOR = 6.7e-14

EVERY = "monitor.every=1"
DOUBLE_MACH = CheckRun("double-mach", "coarse", (EVERY,))
SEDOV = CheckRun("sedov", "quick", ("time.end=0.5", EVERY))
RUNS = {
    "double Mach reflection": DOUBLE_MACH,
    "blast waves, 200 points": CheckRun("blast-waves", None, (EVERY,)),
    "blast waves, 400 points": CheckRun("blast-waves", None, ("grid.n=[401,1,1]", EVERY)),
    "two-dimensional blast": CheckRun("blast-2d", None, (EVERY,)),
    "Sedov's blast": SEDOV,
    "Noh's problem, planar": CheckRun("noh", "planar", (EVERY,)),
    "Noh's problem": CheckRun("noh", None, ("grid.n=[40,40,1]", "time.end=0.3", EVERY)),
    "vacuum": CheckRun("vacuum", None, (EVERY,)),
    "cylinder at Mach 20": CheckRun(
        "cylinder-bow-shock", "mach20", ("grid.n_around=49", "grid.n_normal=33", "time.end=0.5", EVERY)
    ),
    "123 problem": CheckRun("einfeldt-123", None, (EVERY,)),
    "Le Blanc's tube": CheckRun("le-blanc", None, (EVERY,)),
}


def least(name: str) -> Callable[[CompletedRun], float]:
    """Return a function that returns, for a completed run, the smallest value of the entry `name` (such as "least_rho")
    in the records of the run (`Simulation.history`)."""

    def measure(run: CompletedRun) -> float:
        return run.samples(name).min()

    return measure


def stem_foot(run: CompletedRun) -> float:
    """Return the coordinate x of the foot of the Mach stem in the double Mach reflection, in units of the length scale
    L. The foot is the node ahead of which the pressure along the wall y = 0 falls most steeply."""
    x, p = run.blocks[0].x[0, 0], run.state("p")[0, 0]
    # The shock that is in front of the wall at the start lies behind x = 1/6.
    return x[:-1][np.argmax(np.where(x[:-1] > 1, p[:-1] - p[1:], 0))]


def sedov_radius(run: CompletedRun) -> float:
    """Return the radius of the shock of Sedov's blast, which is the radius of the node with the largest density at the
    end of `run`, divided by the exact radius 0.75 sqrt(t)."""
    block, rho = run.blocks[0], run.state("rho")
    return np.hypot(block.x, block.y).flat[rho.argmax()] / (0.75 * run.time**0.5)


CHECKS = [
    *(
        Check(f"{name}: least {title}", at_least(FLOOR), least(f"least_{key}"), (run,))
        for name, run in RUNS.items()
        for key, title in (("rho", "density"), ("p", "pressure"))
    ),
    # One spacing is a tenth of the radius.
    Check("Sedov's blast: radius of the shock", between(0.9, 1.1), sedov_radius, (SEDOV,)),
    Check(
        "double Mach reflection: foot of the Mach stem",
        between(2.758 - 1 / 60, 2.758 + 1 / 60),
        stem_foot,
        (DOUBLE_MACH,),
    ),
]
