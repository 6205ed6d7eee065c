"""Schemes sharper than Jiang-Shu weights on five nodes: fine structure kept behind a shock, and overshoots at one.

For Shu-Osher with 200 and 400 points (Jiang-Shu: 0.643 and 0.234) and Titarev-Toro with 1000 (0.635) the number is the
L1 error of the density, integrated over the domain, against the project's own fine-grid solutions (hiresx/verify/data).
The waves behind the shock of Titarev-Toro have seven points each. With five and six nodes their phases are wrong, so
the L1 error says less about a scheme than the share of the fine solution's total variation that it keeps (Jiang-Shu:
0.07). For Sod's tube with 200 points the number is the excess of the density's total variation over the exact one. For
a density wave that crosses its box once it is the order, as in the group "accuracy".
"""

import numpy as np

from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_least, at_most, between
from hiresx.verify.groups import accuracy, shock_tubes
from hiresx.verify.reference_solutions import table

LONG = False

# interpolation, weights: Shu-Osher 200 and 400 points, Titarev-Toro, the least variation that must remain there, the
# largest excess variation in Sod's tube, least order
SCHEMES = {
    ("modified", "za"): (0.45, 0.17, 0.55, 0.25, 0.02, 4.9),
    ("modified", "teno"): (0.45, 0.17, 0.55, 0.25, 0.03, 4.9),
    ("modified", "teno_adaptive"): (0.45, 0.17, 0.55, 0.25, 0.05, 4.9),
    ("original6", "teno"): (0.34, 0.17, 0.8, 0.85, 0.06, 5.7),
    ("modified7", "z"): (0.42, 0.17, 0.4, 0.6, 0.02, 6.5),
}
ORDERS = {"modified": 5, "original6": 6, "modified7": 7}


def titarev_toro_error(run: CompletedRun) -> float:
    """Return the L1 error of the density of Titarev and Toro's problem, integrated over the domain, in rho_ref L, with
    respect to a stored fine-grid solution."""
    fine, x = table("titarev-toro"), run.blocks[0].x[0, 0]
    return float(np.sum(abs(run.state("rho")[0, 0] - np.interp(x, fine["x"], fine["rho"]))) * (x[1] - x[0]))


def variation_left(run: CompletedRun) -> float:
    """Return the total variation of the density of Titarev and Toro's problem at the end of `run`, divided by the total
    variation of a stored fine-grid solution."""
    return float(np.sum(abs(np.diff(run.state("rho")[0, 0]))) / np.sum(abs(np.diff(table("titarev-toro")["rho"]))))


def excess_variation(run: CompletedRun) -> float:
    """Return the total variation of the density of a shock tube at the end of `run`, divided by that of the exact
    solution, minus 1: a measure of spurious oscillations."""
    found, exact = (np.sum(abs(np.diff(rho[0, 0]))) for rho in (run.state("rho"), run.exact("rho")))
    return float(found / exact - 1)


def _wave(scheme: tuple[str, ...], order: int) -> tuple[CheckRun, ...]:
    """Return the runs of a wave with 20 and 40 points. The time step is proportional to h^(order/3), so that the third
    order of the time integrator is not visible."""
    steps = {points: 0.4 * (20 / points) ** (order / 3 - 1) for points in (20, 40)}
    return tuple(
        CheckRun("density-wave", None, (*scheme, f"grid.n=[{points},1,1]", f"time.cfl={cfl:.6g}"))
        for points, cfl in steps.items()
    )


CHECKS = []
for (interpolation, weights), limits in SCHEMES.items():
    chosen = (f'scheme.interpolation="{interpolation}"', f'scheme.weights="{weights}"')
    coarse, fine, waves, tube = (
        (CheckRun(case, preset, chosen),)
        for case, preset in (("shu-osher", None), ("shu-osher", "n400"), ("titarev-toro", None), ("sod", None))
    )
    wanted = (
        ("shu-osher, 200 points", at_most(limits[0]), shock_tubes.error, coarse),
        ("shu-osher, 400 points", at_most(limits[1]), shock_tubes.error, fine),
        ("titarev-toro", at_most(limits[2]), titarev_toro_error, waves),
        ("titarev-toro, variation left", between(limits[3], 1.0), variation_left, waves),
        ("sod, too much variation", at_most(limits[4]), excess_variation, tube),
        ("density wave, order", at_least(limits[5]), accuracy.order, _wave(chosen, ORDERS[interpolation])),
    )
    CHECKS += [
        Check(f"{interpolation}, {weights}: {name}", limit, measure, runs) for name, limit, measure, runs in wanted
    ]
