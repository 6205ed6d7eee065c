"""A case, its steady flow, and the residual of the discretised equations at any state."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from hiresx.case import Case
from hiresx.errors import HiresxError
from hiresx.gradients import numbers
from hiresx.mpi.communicator import Communicator
from hiresx.output.watch.monitors.vortex import VortexMonitor
from hiresx.simulation import Simulation
from hiresx.time.gmres import FlexibleGmres
from hiresx.time.linearised import EXPLICIT_CFL, Linearised, Steady
from hiresx.time.ode_system import System, Vector

# The residual counts as at rest after so many steps that do not halve it.
PATIENCE = 4
# Newton steps of `polish`, at most, and how far GMRES solves its equations in one call.
NEWTON, ONCE = 8, 1e-3

Say = Callable[[str], None]


class SteadyFlow:
    """A steady flow of a `case` on a backend. The grid is divided among the ranks in the same way for all values of a
    parameter. All ranks must call the constructor and the methods.

    The residual of a state x is f(x) = C(x + e R(x)) - x, the change by an explicit step. R is the rate of change by
    the equations, and C applies the boundary conditions at the nodes of faces. The length e of the step follows from x
    as in the implicit integrator (docs/implicit.md). The circulation of a far field with a vortex is that of the lift
    of x."""

    def __init__(self, case: Case, backend: str, comm: Communicator):
        self.simulation = Simulation(
            case, backend, comm=comm, weights=[1.0] * comm.size if comm.size > 1 else None, rebalance="never"
        )
        self.case, self.backend, self.comm = case, backend, comm
        integrator = self.simulation.solver.integrator
        assert isinstance(integrator, Steady)  # see check_steady
        self.integrator = integrator
        self.vortices = [a for a in self.simulation.attachments if isinstance(a, VortexMonitor)]
        # That of the far field, where it does not follow the lift.
        self.circulation: float | None = None
        self.report: dict[str, Any] = {}
        # Steps taken; the simulation counts each measurement as one, too.
        self.steps = 0
        # The largest CFL number with which GMRES has solved the linear equations of a Newton step. With a larger one
        # the sweeps of the preconditioner may not be effective.
        self.solved_cfl = 0.0

    @property
    def system(self) -> System:
        """The discretised flow equations and the operations on vectors of their unknowns."""
        return self.simulation.solver.system

    @property
    def linear(self) -> Linearised:
        """The flow equations, linearised about the current state, with a preconditioner."""
        return self.integrator.linearised

    def close(self) -> None:
        """Free the resources that the exchange of ghost nodes uses."""
        self.simulation.solver.halo.close()

    def converge(self, drop: float, below: float = 0.0) -> None:
        """Iterate towards steady flow until the residual is round-off. The iteration may also end when the residual no
        longer falls, if it has fallen by the factor `drop` or below the value `below` by then. Raises HiresxError, with
        the node of the largest residual, if the flow does not converge within `time.steps`."""
        last, best, resting = self.case.time.steps, math.inf, 0
        while last is None or self.steps < last:
            if self._is_converged(drop, below) and resting >= PATIENCE:
                return
            try:
                self.simulation.step()
                self.steps += 1
            except HiresxError:
                if self._is_converged(drop, below):  # no step lowers a residual that is nearly round-off
                    return
                raise
            self.report = self._report()
            if self.report["linear_drop"] <= self.case.implicit.linear_drop:
                self.solved_cfl = max(self.solved_cfl, self.report["cfl"])
            resting = 0 if self.report["residual"] < 0.5 * best else resting + 1
            best = min(best, self.report["residual"])
            if self.integrator.memory["residual"] <= self.integrator.memory.get("round_off", 0.0):
                return
        if not self._is_converged(drop, below):
            raise self._not_converged(drop)

    def _report(self) -> dict[str, Any]:
        """Return the report of the last step, with the residual for the circulation of the lift after it."""
        report, memory = self.integrator.report, self.integrator.memory
        if not self.vortices:
            return report
        for vortex in self.vortices:
            vortex.set_conditions(self.simulation.solver)
        residual = memory["residual"]
        return report | {
            "residual": residual,
            "drop": memory["first_residual"] / residual if residual > 0 else math.inf,
        }

    def _is_converged(self, drop: float, below: float) -> bool:
        report = self.report
        return bool(report) and (report["drop"] >= drop or report["residual"] <= below)

    def _not_converged(self, drop: float) -> HiresxError:
        report = self.report
        largest = report.get("largest", {})
        asked = f"by {drop:.3g}" if math.isfinite(drop) else "to that of the flow itself"
        error = HiresxError(
            f"the flow is not converged: in {self.steps} steps its residual fell by "
            f"{report.get('drop', 1.0):.3g}, not {asked}; it is largest in the equation of "
            f"{largest.get('equation')} at node (i, j, k) = {largest.get('node')} of block '{largest.get('block')}'",
            "raise time.steps, or see what docs/implicit.md says of a run that stalls",
        )
        error.everywhere = True
        return error

    def polish(self) -> None:
        """Make Newton steps without a pseudo-time step, as long as each halves the residual. They go beyond the
        estimated round-off at which the integrator ends, because a remaining residual falsifies differences with small
        steps."""
        system, x = self.system, self.state()
        value, update, trial = (system.vector() for _ in range(3))
        gmres = FlexibleGmres(system, self.case.implicit.krylov)
        self.residual(x, value)
        left = system.norm(value)
        for _ in range(NEWTON):
            self.assemble(x)
            gmres(self.product(x, value), self.linear.precondition, value, ONCE, update)
            system.copy(x, trial)
            system.axpy(1.0, update, trial)
            system.impose(trial, system.time)
            self.residual(trial, value)
            after = system.norm(value)
            if after < left:
                system.copy(trial, x)
            if not after < 0.5 * left:
                break
            left = after
        self.put(x)

    def assemble(self, x: Vector) -> None:
        """Compute the matrix blocks of the preconditioner at the state x, with the CFL number `solved_cfl`, or the
        largest one of the case if no step of this flow was solved."""
        self.put(x)
        self.linear.begin()
        self.linear.assemble(x, EXPLICIT_CFL / (self.solved_cfl or self.case.implicit.largest_cfl))

    def product(self, x: Vector, value: Vector) -> Callable[[Vector, Vector], None]:
        """Return a function (along, into) that computes the product of -df/dx at x with a vector, where f is the
        residual, by central differences. `value`: f(x). Where the scheme has a kink at x itself, such as at a no-slip
        wall, whose velocity changes its sign, one-sided differences are not linear in the vector."""
        system = self.system
        back, other = system.vector(), system.vector()

        def compute(along: Vector, into: Vector) -> None:
            system.derivative(self.residual, x, value, along, into)
            system.combine(-1.0, along, 0.0, back)
            system.derivative(self.residual, x, value, back, other)
            system.combine(0.5, other, -0.5, into)

        return compute

    def state(self) -> Vector:
        """Return a copy of the current state of the flow as a vector."""
        x = self.system.vector()
        self.system.state(x)
        return x

    def put(self, x: Vector) -> None:
        """Set the state of the flow to x and apply the boundary conditions. Far fields with a vortex get the
        circulation that the attribute `circulation` of this object has or, if it is None, the one that follows from the
        lift."""
        self.system.accept(x, self.system.time)
        for vortex in self.vortices:
            if self.circulation is None:
                vortex.follow()
            else:
                vortex.circulate(self.circulation)

    def start_beside(self, other: "SteadyFlow", x: Vector) -> None:
        """Start the iteration from x, the converged state of `other`, whose case is nearly the same, and with the last
        CFL number of `other`: with the smaller `time.cfl` the difference of the flows would at first travel through the
        grid as a wave, and could grow."""
        self.put(x)
        memory, self.solved_cfl = other.integrator.memory, other.solved_cfl
        self.integrator.memory |= {key: memory[key] for key in ("asked_cfl", "cfl") if key in memory}

    def residual(self, x: Vector, into: Vector) -> None:
        """Compute the residual f(x) and store it in the vector `into`. The state of the flow is overwritten."""
        self.put(x)
        self.change(x, into)

    def change(self, x: Vector, into: Vector) -> None:
        """Compute the residual f(x) and store it in the vector `into`. The state of the flow must already be x; it is
        overwritten."""
        self.linear.begin()
        self.linear.change(x, into)

    def measure(self, x: Vector, wanted: Sequence[str]) -> dict[str, float]:
        """Return the results `wanted` (such as forces) of the flow x, by full name HISTORY.QUANTITY."""
        self.put(x)
        return numbers.measure(self.simulation, wanted)

    def is_cut_as(self, other: "SteadyFlow") -> bool:
        """Return whether the grids of this flow and of `other` are divided among the ranks in the same way. All ranks
        must call this."""
        mine, theirs = ([(s.index, s.size) for s in flow.simulation.solver.states] for flow in (self, other))
        return bool(self.comm.min([float(mine == theirs)])[0] == 1.0)
