"""Symmetry: a flow that is symmetric at the start stays symmetric, to round-off.

For configurations 3, 4 and 12 of the two-dimensional Riemann problems on 200 x 200 points, the number is the largest
|rho - rho^T|. For a cylindrical blast (p = 1000 in 0.01) on 200 x 200 points the density is compared with its three
mirror images.
"""

from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_most

LONG = False


def transposition_error(run: CompletedRun) -> float:
    """Return the largest difference of the density at the end of `run` from its transpose (x and y exchanged), in
    rho_ref, which should be round-off."""
    rho = run.state("rho")[0]
    return abs(rho - rho.T).max()


def mirror_error(run: CompletedRun) -> float:
    """Return the largest difference of the density at the end of `run` from its mirror images in x, in y and in both,
    in rho_ref, which should be round-off."""
    rho = run.state("rho")[0]
    return max(abs(rho - other).max() for other in (rho[::-1], rho[:, ::-1], rho[::-1, ::-1]))


CHECKS = [
    Check(
        f"Riemann problem, configuration {n}: diagonal",
        at_most(1e-12),
        transposition_error,
        (CheckRun("riemann-2d", None if n == 3 else f"configuration-{n}"),),
    )
    for n in (3, 4, 12)
] + [
    Check("cylindrical blast: mirror images", at_most(1e-12), mirror_error, (CheckRun("blast-2d"),)),
    Check("cylindrical blast: diagonal", at_most(1e-12), transposition_error, (CheckRun("blast-2d"),)),
]
