"""Steady flow by Newton's method with pseudo-time steps and GMRES."""

import math
from typing import Any

import numpy as np

from hiresx.case.implicit_table import more_solved
from hiresx.errors import HiresxError
from hiresx.time.linearised import EXPLICIT_CFL, Linearised, ResidualPlace, Steady, linear_solver
from hiresx.time.newton import newton_step
from hiresx.time.ode_system import System, Vector

# A step is accepted if the residual after it is at most this multiple of the one before; otherwise it is shortened.
GROWTH = 2.0
# Largest factors by which the pseudo-time step changes from one step to the next.
SLOWER, FASTER = 0.1, 2.0
# If GMRES leaves more than the first fraction of the residual of the linear equations, the pseudo-time step does not
# grow. If it leaves more than the second fraction, the step shrinks by the factor.
UNSOLVED, HARDLY_SOLVED, SLOWER_UNSOLVED = 0.1, 0.3, 0.5
# The pseudo-time step after a failed Newton step, as a fraction of the last one.
BACK = 0.2
# The iteration ends without convergence if CFL is below this fraction of the first one.
COLLAPSED = 1e-3
# A residual counts as round-off if it is below the change of the rates, in an explicit step, that results from one
# rounding of each variable (half a unit in the last place of FP64).
ROUNDING = 0.5 * float(np.finfo(np.float64).eps)


class NewtonSteady(Steady):
    """Newton's method with pseudo-time steps for steady flow. A step solves (1/c - df/dx) d = f(x) for the update d of
    x. f is the change of x by an explicit step with the boundary conditions at nodes (`hiresx.time.linearised`), and c
    is the pseudo-time step divided by the explicit one. Sources: W. A. Mulder & B. van Leer, Journal of Computational
    Physics 59 (1985) 232, and D. A. Knoll & D. E. Keyes, Journal of Computational Physics 193 (2004) 357. c grows as
    the residual falls (switched evolution relaxation)."""

    order, vectors = 1, 5
    cfl = viscous_cfl = math.inf

    def attach(self, system: System, linearised: Linearised) -> None:
        """Store the operators `linearised` that Newton's method needs, and allocate vectors of the equations `system`.
        It is called before the first step."""
        self._linear = self.linearised = linearised
        self._x, self._f, self._d, self._trial, self._work = (system.vector() for _ in range(self.vectors))
        self._solver = linear_solver(linearised.settings)(system, linearised.settings.krylov)

    @property
    def converged(self) -> bool:
        """Whether the residual has dropped as far as the case requires, or consists of round-off."""
        first, last = self.memory.get("first_residual"), self.memory.get("residual")
        if first is None or last is None:
            return False
        return last * self._linear.settings.drop <= first or last <= self.memory.get("round_off", 0.0)

    def step(self, system: System) -> None:
        """Make one step of Newton's method with pseudo-time steps towards steady flow. Raises FloatingPointError if the
        residual is not finite, and HiresxError if the CFL number has become too small for progress."""
        settings, linear = self._linear.settings, self._linear
        system.state(self._x)
        linear.begin()
        linear.rates(self._x, self._work)
        self.memory["round_off"] = ROUNDING * system.norm(self._work)
        linear.change(self._x, self._f)
        before = self._residual(system)
        if not math.isfinite(before):
            raise FloatingPointError("the residual is not finite")
        self.memory.setdefault("first_residual", before)
        cfl, found = self._first_cfl(), None
        if before <= self.memory["round_off"]:  # no update is better than the present state
            system.copy(self._x, self._trial)
            found = 1.0, before, 0.0, 0
        while found is None:
            if cfl < COLLAPSED * settings.cfl:
                raise self._collapse(system, cfl)
            found = self._newton(system, cfl, before)
            if found is None:
                cfl *= BACK
        share, after, linear_drop, products = found
        value, place = linear.largest(self._work)
        linear.show(self._work)
        system.accept(self._trial, system.time)
        self.report = self._report(cfl, share, linear_drop, products, after, value, place)
        ratio = (before / after if after > 0 else FASTER) * (1.2 if share == 1.0 else 1.0)
        factor = min(FASTER, max(SLOWER, ratio)) * (1.0 if share > 0.2 else 0.5)
        if linear_drop > UNSOLVED:
            factor = min(factor, 1.0 if linear_drop < HARDLY_SOLVED else SLOWER_UNSOLVED)
        self.memory |= {"residual": after, "cfl": min(settings.largest_cfl, cfl * factor)}

    def look_again(self, system: System) -> None:
        """Compute the residual of the current state again, after a caller has changed boundary values between two
        steps. All ranks must call this."""
        if "residual" not in self.memory:
            return
        system.state(self._x)
        self._linear.change(self._x, self._f)
        self.memory["residual"] = self._residual(system)
        system.accept(self._x, system.time)

    def _first_cfl(self) -> float:
        """Return the CFL number at the beginning of a step: that of the case if it differs from that of the last step,
        as in a restart."""
        settings, memory = self._linear.settings, self.memory
        if memory.setdefault("asked_cfl", settings.cfl) != settings.cfl:
            memory |= {"asked_cfl": settings.cfl, "cfl": settings.cfl}
        return min(memory.get("cfl", settings.cfl), settings.largest_cfl)

    def _collapse(self, system: System, cfl: float) -> HiresxError:
        """Return the error for a CFL number that has become so small that the iteration makes no progress, the same on
        all ranks."""
        residual = self._residual(system)
        _, place = self._linear.largest(self._work)
        error = HiresxError(
            f"the implicit integrator makes no progress: its CFL number fell to {cfl:.3g}, from time.cfl = "
            f"{self._linear.settings.cfl:g}, and no step from there lowers the residual {residual:.3g}, which is "
            f"largest in the equation of {place.equation} at node (i, j, k) = {place.node} of block '{place.block}'",
            "start nearer to the steady flow, from a coarser or an explicit run, or take "
            f"{more_solved(self._linear.settings.sweeps)}; there may be no steady flow (docs/implicit.md)",
        )
        error.everywhere = True
        return error

    def _newton(self, system: System, cfl: float, before: float) -> tuple[float, float, float, int] | None:
        """Put the state after a Newton step into the trial vector and its rates into the work vector. Returns (the
        share of the step that was taken, the residual after it, the residual of the linear equations, the number of
        products). Returns None if no share is accepted."""
        linear, over_cfl = self._linear, EXPLICIT_CFL / cfl
        linear.assemble(self._x, over_cfl)
        size = system.norm(self._x)

        def product(along: Vector, into: Vector) -> None:
            system.derivative(linear.change, self._x, self._f, along, into, size)
            system.combine(over_cfl, along, -1.0, into)

        def residual() -> float:
            system.impose(self._trial, system.time)
            linear.change(self._trial, self._work)
            linear.rates(self._work, self._work)
            return system.norm(self._work)

        return newton_step(
            system, linear, self._solver, product, self._x, self._f, self._d, self._trial, residual,
            lambda after: after <= GROWTH * before, linear.settings.linear_drop,
        )  # fmt: skip

    def _residual(self, system: System) -> float:
        self._linear.rates(self._f, self._work)
        return system.norm(self._work)

    def _report(
        self, cfl: float, share: float, drop: float, products: int, residual: float, value: float, place: ResidualPlace
    ) -> dict[str, Any]:
        first = self.memory["first_residual"]
        return {
            "cfl": cfl,
            "share": share,
            "linear_drop": drop,
            "products": products,
            "sweeps": math.nan if self._linear.sweeps is None else self._linear.sweeps,
            "residual": residual,
            "drop": first / residual if residual > 0 else math.inf,
            "largest": {"value": value, **place._asdict()},
        }
