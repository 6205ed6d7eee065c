"""A step of Newton's method, shortened until it is accepted."""

from collections.abc import Callable

from hiresx.time.gmres import LinearSolver
from hiresx.time.linearised import Linearised
from hiresx.time.ode_system import System, Vector

# Fractions of a step that are tried.
SHORTENINGS = 5


def newton_step(
    system: System,
    linear: Linearised,
    solve: LinearSolver,
    product: Callable[[Vector, Vector], None],
    x: Vector,
    f: Vector,
    direction: Vector,
    trial: Vector,
    residual: Callable[[], float],
    accepts: Callable[[float], bool],
    drop: float,
) -> tuple[float, float, float, int] | None:
    """Make one step of Newton's method: solve the linear equations with the right-hand side `f` by `solve`, store the
    solution in `direction`, and set `trial` to x + share `direction`.

    The linear iteration ends when the linear residual has fallen to `drop` times its initial value. `product`: a
    function that computes products with the matrix. `linear`: the operators, whose matrix blocks are the
    preconditioner. The share is at first the largest admissible one, at most 1. It is halved until `accepts` returns
    True for the `residual` of `trial`.

    Return the share, the residual of `trial`, the final linear residual divided by the initial one, and the number of
    products, or None if no share is accepted. Raises HiresxError for singular matrix blocks. All ranks must call
    this.
    """
    try:
        left, products = solve(product, linear.precondition, f, drop, direction)
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
