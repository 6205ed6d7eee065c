"""Implicit steps of unsteady flow: stages that are solved by Newton's method with flexible GMRES."""

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from hiresx.time.linearised import ImplicitIntegrator, Linearised, linear_solver
from hiresx.time.newton import newton_step
from hiresx.time.ode_system import System, Vector

# The residual of the linear equations falls to this fraction of the drop that the stage still needs, but need not fall
# below LOOSEST of its initial value. Inexact steps of Newton's method: S. C. Eisenstat & H. F. Walker, SIAM Journal on
# Scientific Computing 17 (1996) 16; the safeguard against oversolving: C. T. Kelley, Iterative Methods for Linear and
# Nonlinear Equations, SIAM 1995, chapter 6.
OF_NEED, LOOSEST = 0.5, 0.5
# A stage whose residual fell by less than `newton_drop` in `newton_steps` is accepted if it fell by this factor.
ENOUGH = 10.0
# A residual counts as round-off if it is below the change of the rates, in an explicit step, that results from this
# relative change of each variable (four roundings of FP64).
ROUNDING = 2.0 * float(np.finfo(np.float64).eps)
# Walls remove kinetic energy at a rate proportional to the explicit step. This error is of first order in time, so the
# explicit step is at most this fraction of the time step.
EXPLICIT_SHARE = 0.01
# Denominator of the step of every stage in the L-stable, diagonally implicit scheme of two stages and order two: R.
# Alexander, SIAM Journal on Numerical Analysis 14 (1977) 1006, theorem 5.
ALEXANDER = 1 - math.sqrt(0.5)


class Solved(NamedTuple):
    """The result of the solution of a stage. `newton`: number of Newton steps. `products`: number of products with the
    Jacobian. `drop`: the factor by which the residual has fallen. `linear_drop`: the largest ratio of the final to the
    initial residual of linear equations. `share`: the smallest fraction of a Newton step that was made. `residual`: the
    final residual. `assemblies`: number of times that the matrix blocks were computed."""

    newton: int
    products: int
    drop: float
    linear_drop: float
    share: float
    residual: float
    assemblies: int


class Stages(ImplicitIntegrator):
    """An implicit integrator of unsteady flow whose steps have stages. A stage at the time t solves

        `over_time` q - `constant` = R(q, t)

    for the state q, with the boundary conditions of t, as f(q) = 0 (`Linearised.unsteady`). `over_time` is a number
    divided by the time step. The method is Newton's (D. A. Knoll & D. E. Keyes, Journal of Computational Physics 193
    (2004) 357).

    The residual of a stage is the norm of f/e, where e is the length of a short explicit time step of every node. Its
    drop is measured from the state at the start of the step, with the boundary conditions of t. Stages of a step with
    the same `over_time` use the same preconditioner, as long as GMRES converges with it.

    `memory`: the number `stalled` of stages that ended before their residual had dropped as far as required, and the
    smallest drop among them. `last_stall`: the place and the time of the last such stage in this process.
    """

    vectors = 8
    # If the case has no `newton_drop`, the residual falls by at most this factor from that of the state at the start of
    # the step.
    usual_drop = 1e4
    cfl = viscous_cfl = math.inf

    def __init__(self) -> None:
        super().__init__()
        self.last_stall: dict[str, Any] = {}
        # the coefficient of time in the matrix blocks of this step, if they are still valid
        self._blocks_of: float | None = None

    @property
    def obstacle(self) -> str:
        """The reason why the last step found no solution, as the end of a sentence: how far the residual fell and where
        it is largest; "" if no stage stalled."""
        last = self.last_stall
        if not last or last["drop"] >= ENOUGH:
            return ""
        return (
            f"; the implicit equations were not solved: at t = {last['time']:.6g} their residual fell by "
            f"{last['drop']:.3g}, is largest in the equation of {last['equation']} at node "
            f"(i, j, k) = {last['node']} of block '{last['block']}', and "
            f"GMRES left {last['linear_drop']:.2g} of that of the linear equations"
        )

    def attach(self, system: System, linearised: Linearised) -> None:
        """Store the operators `linearised` that Newton's method needs, and allocate vectors of the equations `system`.
        It is called before the first step."""
        self._linear = self.linearised = linearised
        self._start, self._x, self._f, self._d, self._trial, self._of_trial, self._work, self._constant = (
            system.vector() for _ in range(8)
        )
        self._solver = linear_solver(linearised.settings)(system, linearised.settings.krylov)

    def step(self, system: System) -> None:
        """Make one implicit time step of the size `system.dt` from `system.time`. Raises FloatingPointError, on all
        ranks, if no solution is found."""
        system.state(self._start)
        self._linear.begin(EXPLICIT_SHARE * system.dt)
        self._blocks_of = None
        stages = self.advance(system)
        self.report = self._report(stages)
        system.accept(self._x, system.time + system.dt)

    @abstractmethod
    def advance(self, system: System) -> list[Solved]:
        """Make a step from the state in the attribute `_start`, store the new state in the attribute `_x`, and return
        the result of each stage. An integrator that makes a step shorter than `system.dt` stores its size there."""

    def two_stages(self, system: System) -> list[Solved]:
        """Make a step of second order that needs no earlier step, by the diagonally implicit scheme of two stages of
        Alexander (1977), and return the result of each stage. The attribute `_start` contains the state before the
        step, and `_x` the state after it on return."""
        over_time = 1 / (ALEXANDER * system.dt)
        system.copy(self._start, self._x)
        system.combine(over_time, self._start, 0.0, self._constant)
        first = self.solve(system, system.time + ALEXANDER * system.dt, over_time)
        # the rate of change in the first stage, whose step is (1 - share) dt, is its change divided by share dt
        ahead = (1 - ALEXANDER) / ALEXANDER
        system.combine(ahead * over_time, self._x, 1 - ahead, self._constant)
        return [first, self.solve(system, system.time + system.dt, over_time)]

    # ---- a stage

    def solve(self, system: System, time: float, over_time: float, of_guess: float = 0.0) -> Solved:
        """Solve the equations of a stage, R(x) - `over_time` x + c = 0 with the boundary conditions at `time`, by
        Newton's method. `over_time`: a number divided by the time step. The attribute `_constant` contains c. The
        attribute `_x` contains the initial guess, and on return the solution. Return how the iteration went.

        The iteration ends when the residual has dropped, from its value for the state at the start of the step, by the
        factor `implicit.newton_drop` of the case. Without this key it ends when the residual is `of_guess` times the
        residual of the initial guess, which is a measure of the error in time, or when it has dropped by the factor
        `usual_drop`, an attribute of the class. It also ends at the level of round-off and after
        `implicit.newton_steps` steps. Raises FloatingPointError, on all ranks, if no solution is found.
        """
        linear, settings = self._linear, self._linear.settings
        linear.unsteady(time, over_time, self._constant)
        begin, residual = self._begin(system, time)
        linear.rates(self._start, self._work)
        goal = (
            max(begin / self.usual_drop, of_guess * residual)
            if settings.newton_drop is None
            else begin / settings.newton_drop
        )
        goal = max(goal, ROUNDING * system.norm(self._work))
        newton, products, assemblies, linear_drop, share, unsolved = 0, 0, 0, 0.0, 1.0, False
        while residual > goal and newton < settings.newton_steps:
            asked = min(LOOSEST, max(settings.linear_drop, OF_NEED * goal / residual))
            if self._blocks_of != over_time:
                linear.assemble(self._x, 0.0)
                self._blocks_of, assemblies = over_time, assemblies + 1
            found = self._newton(system, time, residual, asked)
            if found is None:
                self._blocks_of = None
                break
            taken, residual, left, more = found
            newton, products = newton + 1, products + more
            linear_drop, share = max(linear_drop, left), min(share, taken)
            if left > asked:
                self._blocks_of, unsolved = None, True
        drop, stalled = begin / residual if residual > 0 else math.inf, residual > goal
        if stalled:
            self._stall(time, drop, linear_drop, unsolved)
        return Solved(newton, products, drop, linear_drop, share, residual, assemblies)

    def _stall(self, time: float, drop: float, linear_drop: float, unsolved: bool) -> None:
        """Record the end of a stage whose residual has not fallen as far as required. `unsolved`: whether GMRES has not
        reached its required accuracy."""
        self._linear.rates(self._f, self._work)
        _, place = self._linear.largest(self._work)
        self.last_stall = {"time": time, "drop": drop, "linear_drop": linear_drop, "unsolved": unsolved}
        self.last_stall |= place._asdict()
        if drop < ENOUGH:
            raise FloatingPointError("no solution of an implicit stage was found")
        self.memory["stalled"] = self.memory.get("stalled", 0) + 1
        self.memory["least_drop"] = min(drop, self.memory.get("least_drop", math.inf))

    def _begin(self, system: System, time: float) -> tuple[float, float]:
        """Return the residual of the state at the start of the step, and that of the guess. The better one of the two
        becomes the guess."""
        system.copy(self._start, self._trial)
        begin = self._residual(system, time, self._trial, self._of_trial)
        if not math.isfinite(begin):
            raise FloatingPointError("the residual is not finite")
        system.copy(self._x, self._d)
        system.axpy(-1.0, self._start, self._d)
        if self._linear.admissible_share(self._start, self._d) == 1.0:
            residual = self._residual(system, time, self._x, self._f)
            if residual < begin:
                return begin, residual
        self._take(system)
        return begin, begin

    def _newton(
        self, system: System, time: float, before: float, drop: float
    ) -> tuple[float, float, float, int] | None:
        """Make a Newton step from `_x`. Returns (the share of the step that was taken, the residual after it, the last
        residual of the linear equations divided by their first one, the number of products). Returns None if no share
        lowers the residual. `drop`: the quotient of the last and the first residual of the linear equations at which
        they are solved."""
        linear, size = self._linear, system.norm(self._x)

        def product(along: Vector, into: Vector) -> None:
            system.derivative(linear.change, self._x, self._f, along, into, size)
            system.scale(-1.0, into)

        found = newton_step(
            system, linear, self._solver, product, self._x, self._f, self._d, self._trial,
            lambda: self._residual(system, time, self._trial, self._of_trial), lambda after: after < before, drop,
        )  # fmt: skip
        if found is not None:
            self._take(system)
        return found

    def _residual(self, system: System, time: float, x: Vector, change: Vector) -> float:
        """Impose the conditions on x, compute f(x) into `change`, and return the residual."""
        system.impose(x, time)
        self._linear.change(x, change)
        self._linear.rates(change, self._work)
        return system.norm(self._work)

    def _take(self, system: System) -> None:
        """Accept the trial state."""
        system.copy(self._trial, self._x)
        system.copy(self._of_trial, self._f)

    def _report(self, stages: list[Solved]) -> dict[str, Any]:
        return {
            "newton": sum(stage.newton for stage in stages),
            "products": sum(stage.products for stage in stages),
            "drop": min(stage.drop for stage in stages),
            "linear_drop": max(stage.linear_drop for stage in stages),
            "share": min(stage.share for stage in stages),
            "residual": max(stage.residual for stage in stages),
            "assemblies": sum(stage.assemblies for stage in stages),
            **self.memory,
            **({"last_stall": self.last_stall} if self.last_stall else {}),
        }
