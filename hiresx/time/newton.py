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
    """Make one step of Newton's method from the state x: solve the linear equations with the right-hand side `f` by
    `solve`, store the solution in `direction`, and set `trial` to x + s `direction`. s is at first the largest share,
    at most 1, that `linear.admissible_share` permits. It is halved until `accepts(residual())` is True.

    `product(v, into)`: computes the product of the matrix with a vector. `linear`: the operators, whose matrix blocks
    are the preconditioner. `drop`: the factor by which the linear residual must fall, less than 1. `residual()`:
    returns the nonlinear residual of the state in `trial`.

    Return s, the residual of `trial`, the final linear residual divided by the initial one, and the number of products,
    or None if no share is accepted or the linear equations have no finite solution. Raises HiresxError for singular
    matrix blocks. All ranks must call this.
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
