"""Shock tubes: L1 error of the density, integrated over the domain, with 200 and 400 points.

Sod and Lax are compared with the exact solution. Shu-Osher and the blast waves of Woodward and Colella are compared
with the project's own solution on 6400 points (hiresx/verify/data). The schemes are the default one and the one with
the original variant of the interpolation.
"""

import numpy as np

from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_most
from hiresx.verify.reference_solutions import table

LONG = False

# case -> (reference, overrides for 200 and 400 points, thresholds)
CASES = {
    "sod": ("exact", ((None, ()), ("n400", ())), (0.0031, 0.0017)),
    "lax": ("exact", ((None, ()), ("n400", ())), (0.108, 0.056)),
    "shu-osher": ("own", ((None, ()), ("n400", ())), (0.70, 0.26)),
    "blast-waves": ("own", ((None, ()), (None, ("grid.n=[401,1,1]",))), (0.170, 0.095)),
}


def line(run: CompletedRun) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coordinates x, the computed density and the reference density at the nodes along the shock tube, each
    (ni,). The reference is the exact solution or a stored fine-grid solution."""
    x = run.blocks[0].x[0, 0]
    if CASES[run.case.name][0] == "exact":
        reference = run.exact("rho")[0, 0]
    else:
        fine = table(run.case.name)
        reference = np.interp(x, fine["x"], fine["rho"])
    return x, run.state("rho")[0, 0], reference


def error(run: CompletedRun) -> float:
    """Return the L1 error of the density of a shock tube, integrated over the domain, in rho_ref L."""
    x, rho, reference = line(run)
    return np.sum(abs(rho - reference)) * (x[1] - x[0])


def curves(run: CompletedRun) -> dict[str, np.ndarray]:
    """Return the curves of the picture along the shock tube, each (ni,): the coordinate "x", the computed density "rho"
    and the reference density "reference", in the scales of the case."""
    return dict(zip(("x", "rho", "reference"), line(run), strict=True))


CHECKS = [
    Check(
        f"{case}, {points} points, {interpolation}",
        at_most(threshold),
        error,
        (
            CheckRun(
                case,
                preset,
                sets if interpolation == "modified" else (*sets, f'scheme.interpolation="{interpolation}"'),
            ),
        ),
        curves if (points, interpolation) == (200, "modified") else None,
    )
    for case, (_, grids, thresholds) in CASES.items()
    for interpolation in ("modified", "original")
    for points, (preset, sets), threshold in zip((200, 400), grids, thresholds, strict=True)
]
