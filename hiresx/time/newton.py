"""A step of Newton's method whose linear equations flexible GMRES solves, shortened until it is accepted."""

from collections.abc import Callable

from hiresx.time.gmres import FlexibleGmres
from hiresx.time.linearised import Linearised
from hiresx.time.ode_system import System, Vector

# Shares of a step that are tried.
SHORTENINGS = 5


def newton_step(
    system: System,
    linear: Linearised,
    gmres: FlexibleGmres,
    product: Callable[[Vector, Vector], None],
    x: Vector,
    f: Vector,
    direction: Vector,
    trial: Vector,
    residual: Callable[[], float],
    accepts: Callable[[float], bool],
    drop: float,
) -> tuple[float, float, float, int] | None:
    """Solve for `direction` with the blocks of `linear` as preconditioner and the right-hand side `f`, until the linear
    residual is `drop` of that at its start, and put x and a share of it into `trial`: the largest of 1 and its halves
    that is admissible and of which the `residual` of the trial is one that is accepted.

    Returns that share, the residual, that of the linear equations over the one at their start, and the number of
    products; None where no share is any good. Raises HiresxError for blocks without an inverse. Collective.
    """
    try:
        left, products = gmres(product, linear.precondition, f, drop, direction)
    except FloatingPointError:
        linear.check_blocks()
        return None
    share = linear.admissible_share(x, direction)
    for _ in range(SHORTENINGS):
        if share == 0.0:
            return None
        system.copy(x, trial)
        system.axpy(share, direction, trial)
        after = residual()
        if accepts(after):
            return share, after, left, products
        share *= 0.5
    return None
