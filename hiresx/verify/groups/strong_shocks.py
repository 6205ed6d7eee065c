"""Strong shocks and near-vacuum: run to the end, density and pressure positive at every step.

The double Mach reflection (h = 1/60), the blast waves of Woodward and Colella, a cylindrical blast (p = 1000 in 0.01),
the 123 problem and Le Blanc's tube. The foot of the Mach stem of the double Mach reflection is the node ahead of which
the wall pressure falls most steeply; an independent program of the same scheme has it at x = 2.758. A node tells it
to one spacing, which is the tolerance.
"""

import numpy as np

from hiresx.verify.check import Check, Finished, Run, at_least, between

LONG = False

# Positive: above a thousandth of the least pressure of any exact solution here (6.7e-11, Le Blanc).
FLOOR = 6.7e-14

EVERY = "monitor.every=1"
DOUBLE_MACH = Run("double-mach", "coarse", (EVERY,))
RUNS = {
    "double Mach reflection": DOUBLE_MACH,
    "blast waves, 200 points": Run("blast-waves", None, (EVERY,)),
    "blast waves, 400 points": Run("blast-waves", None, ("grid.n=[401,1,1]", EVERY)),
    "two-dimensional blast": Run("blast-2d", None, (EVERY,)),
    "123 problem": Run("einfeldt-123", None, (EVERY,)),
    "Le Blanc's tube": Run("le-blanc", None, (EVERY,)),
}


def least(name: str):
    def measure(run: Finished) -> float:
        return run.samples(name).min()

    return measure


def stem_foot(run: Finished) -> float:
    """x of the node ahead of which the pressure along the wall y = 0 falls most steeply."""
    x, p = run.blocks[0].x[0, 0], run.state("p")[0, 0]
    # The shock that stands in front of the wall at the start lies behind x = 1/6.
    return x[:-1][np.argmax(np.where(x[:-1] > 1, p[:-1] - p[1:], 0))]


CHECKS = [
    *(
        Check(f"{name}: least {title}", at_least(FLOOR), least(f"least_{key}"), (run,))
        for name, run in RUNS.items()
        for key, title in (("rho", "density"), ("p", "pressure"))
    ),
    Check(
        "double Mach reflection: foot of the Mach stem",
        between(2.758 - 1 / 60, 2.758 + 1 / 60),
        stem_foot,
        (DOUBLE_MACH,),
    ),
]
