"""The derivative of a steady flow with respect to a parameter.

The flow x(p) satisfies f(x, p) = 0. The derivative y = dx/dp satisfies df/dx y = -df/dp, where both derivatives are
those of the whole high-order residual. These linear equations are solved by flexible GMRES, which computes products by
central differences. GMRES is restarted until r(y) = d/dt f(x + t y, p + t) is 0 at t = 0. This derivative along the
tangent is a central difference of fourth order, in which the grid, the conditions and all constants are those of p + t.
It determines the accuracy of y; that of the products does not matter. Its round-off, which thin cells enlarge, is lower
by a factor of a thousand and more where these flows are computed in extended precision.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hiresx.case import Case
from hiresx.case.implicit_table import more_solved
from hiresx.equations.storage import EXTENDED
from hiresx.errors import HiresxError
from hiresx.gradients import numbers
from hiresx.gradients.flow import ONCE, Say, SteadyFlow
from hiresx.gradients.parameters import CaseFamily, Parameter
from hiresx.time.gmres import FlexibleGmres
from hiresx.time.ode_system import System, Vector

# Where a central difference of fourth order takes a function, in steps, and with which factors.
POINTS = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))
# The step as a share of the parameter while nothing is known of the flow's derivative, and then the largest change of
# a variable in it as a share of the largest variable. The error of the difference is of the fourth power, round-off is
# over the first.
STEP = 3e-4
# A step is at most this share of the parameter.
LARGEST = 5e-4
# In extended precision: the share of that change, and how much further the linear equations are solved.
FINER, FURTHER = 1 / 4, 1e-3
# The backend with kernels in extended precision: packs of such numbers do not exist.
EXTENDED_BACKEND = "emulated"
# The equations are solved so far before the step is chosen, and at last.
ROUGHLY, DROP = 1e-2, 1e-11
# Calls of GMRES, and how many in a row may gain little. Below the last number, a residual is round-off if it does not
# fall by half, and is left twice as large as by the estimate of the linear solver.
CALLS, IDLE, SMALL = 60, 4, 1e-8
# Multiples of updates are added where they change the residual by more than this share of the change by the last one.
WORTH = 0.1
# So many updates are kept, each if more than this share of its change of the residual is not one by the others.
KEPT, INDEPENDENT = 20, 1e-3
# What a step changes of the residual is round-off below this share of the state.
ROUND_OFF = 1e-14
# Above this the equations are not solved.
UNSOLVED = 1e-5


@dataclass(frozen=True)
class Tangent:
    """The derivatives of a steady flow by one parameter p. `flow`: dx/dp. `numbers`: the derivatives of numbers, by
    name. `step`: the step of the differences. `residual`: the final residual of the linear equations divided by the
    norm of df/dp. `products`: the number of products with the Jacobian."""

    flow: Vector
    numbers: dict[str, float]
    step: float
    residual: float
    products: int


class TangentSolver:
    """Solver for the derivatives of a converged `flow` by parameters of its `family`. It stops when the residual of the
    linear equations is at most `drop` times the initial one. `say`: a function that is called with lines about the
    progress. `extended`: whether that residual is computed in extended precision. Collective."""

    drop, further = DROP, FURTHER

    def __init__(self, family: CaseFamily, flow: SteadyFlow, say: Say, extended: bool = False):
        self._extended, self._further = extended, self.further if extended else 1.0
        self._family, self._flow, self._say = family, flow, say
        self._system = flow.system
        self._x = flow.state()
        self._value, self._right, self._update, self._before = (self._system.vector() for _ in range(4))
        # Updates of y, and the orthonormal changes of the residual r(y) that they make, with the opposite sign.
        self._kept: list[tuple[Vector, Vector]] = []
        self._prepare()

    @property
    def hint(self) -> str:
        """Advice for the user if the linear equations are not solved, for the hint of an error."""
        more = more_solved(self._flow.case.implicit.sweeps)
        return f"take {more}, or a smaller implicit.largest_cfl (docs/gradients.md)"

    def _prepare(self) -> None:
        """Prepare what solves the linear equations."""
        self._gmres = FlexibleGmres(self._system, self._flow.case.implicit.krylov)
        self._flow.residual(self._x, self._value)
        self._flow.assemble(self._x)
        self._product = self._flow.product(self._x, self._value)

    @property
    def case(self) -> Case:
        """The case of the flow."""
        return self._flow.case

    @property
    def state(self) -> Vector:
        """The converged state of the steady flow."""
        return self._x

    def solve(self, parameter: Parameter, wanted: Sequence[str], step: float | None) -> Tangent:
        """Return the derivatives of the flow and of the results `wanted` (by full name, HISTORY.QUANTITY) with respect
        to `parameter`. `step`: the absolute change of the parameter in the finite differences; None: it is chosen from
        the derivative of the flow. Raises HiresxError if the parameter has no influence on the flow, and if GMRES does
        not converge."""
        system = self._system
        self._kept.clear()
        first = step or _power_of_two(LARGEST * abs(parameter.value) or STEP)
        differences = Differences(self._family, self._flow, parameter, first, self._extended)
        y, left, products = differences.vector(), 1.0, 0
        try:
            size = self._tangent_residual(differences, y)
            if size * first <= ROUND_OFF * system.norm(self._x):  # the flow does not depend on it
                size = 0.0
            if size > 0:
                left, products = self._improve(differences, y, size, roughly=step is None)
                if step is None:
                    step = self._step(parameter, differences.rounded(y))
                    if step != first:
                        differences.close()
                        differences = Differences(self._family, self._flow, parameter, step, self._extended)
                    left, more = self._improve(differences, y, size)
                    products += more
            # Without a move a subclass has nothing to correct but round-off, which would look like an influence.
            found = (type(self) if size > 0 else TangentSolver)._numbers(self, differences, y, wanted)
            y = differences.rounded(y)
        finally:
            differences.close()
        with self._flow.comm.together():
            _check(parameter, size > 0, left, any(found.values()), self.hint)
        return Tangent(y, found, differences.step, left if size > 0 else 0.0, products)

    def _solve(self) -> tuple[float, int]:
        """Compute an update of y from the right-hand side r(y). Returns the share of r(y) that is left of it by the
        linear solver's own estimate, and the products made."""
        return self._gmres(self._product, self._precondition, self._right, ONCE, self._update)

    def _precondition(self, x: Vector, into: Vector) -> None:
        """Compute the product of x with an approximate inverse of -df/dx."""
        self._flow.linear.precondition(x, into)

    def _numbers(self, differences: "Differences", y: Vector, wanted: Sequence[str]) -> dict[str, float]:
        """Return the derivatives of numbers with the flow's derivative y."""
        return differences.numbers(self._x, y, wanted)

    def _step(self, parameter: Parameter, y: Vector) -> float:
        """Return the step in which the flow changes by `STEP`, with its derivative y."""
        largest = self._flow.linear.largest
        step = STEP * (FINER if self._extended else 1.0) * largest(self._x)[0] / largest(y)[0]
        return _power_of_two(min(step, LARGEST * abs(parameter.value)) if parameter.value else step)

    def _tangent_residual(self, differences: "Differences", y: Vector) -> float:
        """Put r(y) into the right-hand side, and return its norm."""
        differences.residual(self._x, y, self._right)
        return self._system.norm(self._right)

    def _is_solved(self, left: float, before: float) -> bool:
        """True where `left` of the residual, `before` the last correction of y more, is little enough."""
        return left <= self.drop * self._further

    def _improve(self, differences: "Differences", y: Vector, size: float, roughly: bool = False) -> tuple[float, int]:
        """Improve y until |r(y)| / `size` is small enough or does not decrease any more. `roughly`: whether the weaker
        limit for the choice of a step is used. Returns (|r(y)| / `size` at the end, number of products)."""
        products, idle, before = 0, 0, math.inf
        left = self._tangent_residual(differences, y) / size
        for _ in range(CALLS):
            if left <= ROUGHLY if roughly else self._is_solved(left, before):
                break
            if idle >= IDLE:
                break
            estimate, more = self._solve()
            products += more
            after = self._correct(differences, y) / size
            if after >= left:  # round-off of the differences
                differences.add(-1.0, self._update, y)
                break
            idle = idle + 1 if after > 0.7 * left else 0
            if left < SMALL and after > max(0.5, 2 * estimate) * left:
                idle = IDLE
            left, before = after, left
            self._say(f"{differences.parameter.key}: linear residual {left:.2e} after {products} products")
        return left, products

    def _correct(self, differences: "Differences", y: Vector) -> float:
        """Add to y the update and those multiples of it and of earlier updates that make the residual least; the update
        becomes their sum. Returns the residual. Where the linear solver does not see some modes, such as at nodes where
        the scheme has a kink, other updates than its own lower the residual. Source: GMRESR, H. A. van der Vorst & C.
        Vuik, Numerical Linear Algebra with Applications 1 (1994) 369."""
        system, before, kept = self._system, self._before, self._kept
        system.copy(self._right, before)
        differences.add(1.0, self._update, y)
        after = self._tangent_residual(differences, y)
        system.combine(-1.0, self._right, 1.0, before)
        change = size = system.norm(before)
        if not change > 0:
            return after
        along = system.vector()
        system.copy(self._update, along)
        for direction, its_change in kept:
            weight = -system.dot(before, its_change)
            system.axpy(weight, its_change, before)
            system.axpy(weight, direction, along)
            size = system.norm(before)
        if size > INDEPENDENT * change:
            changed = system.vector()
            system.combine(1 / size, before, 0.0, changed)
            system.scale(1 / size, along)
            kept.append((along, changed))
        more = [system.dot(self._right, its_change) for _, its_change in kept]
        if math.hypot(*more) > WORTH * change:
            for weight, (direction, _) in zip(more, kept, strict=True):
                differences.add(weight, direction, y)
                system.axpy(weight, direction, self._update)
            after = self._tangent_residual(differences, y)
        del kept[:-KEPT]
        return after


def _power_of_two(step: float) -> float:
    """Return the largest power of two up to `step`. It shifts the parameter without round-off, and is the same for
    another derivative of the flow that is as rough."""
    return 2.0 ** math.floor(math.log2(step))


def _check(parameter: Parameter, moves: bool, left: float, changes: bool, hint: str) -> None:
    """Raises HiresxError where the flow does not move with the parameter nor a number changes, and where `left` of the
    linear equations is too much; `hint` says what to do then."""
    if not moves and not changes:
        raise HiresxError(
            f"--by {parameter.key}: neither the steady flow nor the results depend on this key",
            "name a key that enters the grid, the boundary conditions, the gas or a monitor",
        )
    if moves and not left <= UNSOLVED:
        raise HiresxError(
            f"--by {parameter.key}: the linear equations of the derivative are solved to {left:.2g} only",
            hint,
        )


class Differences:
    """Derivatives of steady flows by one parameter. They are central differences of fourth order, from four cases in
    which `parameter` is shifted by multiples of `step`; `family` makes these cases. Their states have arrays of the
    same shapes as the state of `flow`. `extended`: whether these flows, and the derivative of the flow, are computed in
    extended precision. Collective. Raises HiresxError if one of the cases has another grid."""

    def __init__(self, family: CaseFamily, flow: SteadyFlow, parameter: Parameter, step: float, extended: bool = False):
        self.parameter, self.step = parameter, step
        self._given, self._comm = flow.system, flow.comm
        backend, precision = (EXTENDED_BACKEND, EXTENDED) if extended else (flow.backend, None)
        with flow.comm.together():
            cases = [family.with_shift(parameter, n * step, krylov=1, precision=precision) for n, _ in POINTS]
        self._flows = [SteadyFlow(case, backend, flow.comm) for case in cases]
        alike = [there.is_cut_as(flow) for there in self._flows]
        with flow.comm.together():
            if not all(alike):
                raise HiresxError(
                    f"--by {parameter.key}: the grid has other numbers of nodes a step {step:.3g} away",
                    "name a key that moves the nodes of the grid, not one that adds some",
                )
        self._system = self._flows[0].system if extended else self._given
        self._at, self._found = self._system.vector(), self._system.vector()

    def close(self) -> None:
        """Free the resources of the flows with shifted parameter."""
        for flow in self._flows:
            flow.close()

    def vector(self) -> Vector:
        """Return a new vector of zeros for the derivative of the flow by the parameter (y). It has the precision of the
        flows with shifted parameter. Differences with another size of the shift can use the same vector."""
        return self._system.vector()

    def add(self, a: float, update: Vector, y: Vector) -> None:
        """Add a multiple of `update`, a vector of the flow itself, to y: y = a `update` + y."""
        self._system.axpy(a, _as_vector_of(self._system, self._given, update), y)

    def rounded(self, y: Vector) -> Vector:
        """Return y as a vector of the flow itself."""
        return _as_vector_of(self._given, self._system, y)

    def residual(self, x: Vector, y: Vector, into: Vector) -> None:
        """Compute d/dt f(x + t y, p + t) at t = 0, where f is the residual and p the parameter, and store it in the
        vector `into`."""
        found = _as_vector_of(self._system, self._given, into)
        self._system.scale(0.0, found)
        for weight, flow in self._shift(x, y):
            flow.residual(self._at, self._found)
            self._system.axpy(weight, self._found, found)
        if found is not into:
            self._given.scatter(self._system.gather(found), into)

    def numbers(self, x: Vector, y: Vector, wanted: Sequence[str]) -> dict[str, float]:
        """Return the derivatives d/dt at t = 0 of the results `wanted` (by full name) of the flow x + t y, in the case
        with the parameter p + t. Of a force, the contributions of each node are subtracted before they are summed up,
        in the precision of these flows. Other results are in FP64."""
        found: dict[str, Any] = {}
        for weight, flow in self._shift(x, y):
            flow.put(self._at)
            forces = {k: v for of_walls in numbers.shares(flow.simulation, wanted) for k, v in of_walls.values.items()}
            others = [name for name in wanted if name not in forces]
            values = forces | (numbers.measure(flow.simulation, others) if others else {})
            found = {name: weight * values[name] + found.get(name, 0.0) for name in wanted}
        sums = self._comm.sum([found[name].sum() for name in forces])
        return found | dict(zip(forces, sums.astype(float).tolist(), strict=True))

    def _shift(self, x: Vector, y: Vector) -> Iterator[tuple[float, SteadyFlow]]:
        """Yield each flow with its weight in the difference, while `_at` is the state x + n `step` y. `y`: a vector of
        `vector`."""
        x = _as_vector_of(self._system, self._given, x)
        for (n, factor), flow in zip(POINTS, self._flows, strict=True):
            self._system.copy(x, self._at)
            self._system.axpy(n * self.step, y, self._at)
            yield factor / self.step, flow


def _as_vector_of(system: System, given: System, x: Vector) -> Vector:
    """Return the vector x of the system `given` as one of `system`, which may have other number types. Numbers beyond
    FP64 are lost."""
    if system is given:
        return x
    found = system.vector()
    system.scatter(given.gather(x), found)
    return found


def difference(values: Callable[[int], dict[str, float]], step: float) -> dict[str, float]:
    """Return the derivatives of several quantities, by name, by central differences of fourth order. `values(n)`: the
    quantities, by name, at n steps of the size `step` from the centre."""
    found: dict[str, float] = {}
    for n, factor in POINTS:
        for name, value in values(n).items():
            found[name] = found.get(name, 0.0) + factor / step * value
    return found
