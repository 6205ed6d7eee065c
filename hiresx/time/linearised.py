"""The linearised flow for implicit schemes: its change by a short explicit step, and blocks that solve approximately
for an update."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

from hiresx.case import Case
from hiresx.case.implicit_table import Implicit as Given
from hiresx.case.implicit_table import viscous_damping
from hiresx.equations import equations
from hiresx.equations.storage import MATRIX_FREE, block_reals, factor_reals, packed_reals, record_numbers
from hiresx.equations.system import recorded_terms
from hiresx.time.gmres import FlexibleGmres, LinearSolver, PreconditionedGmres, PreconditionerAlone
from hiresx.time.integrator import Integrator
from hiresx.time.ode_system import System, Vector

# Number of vectors that the linearisation and GMRES need besides those of the search directions.
VECTORS = 4 + 1

# The inviscid and the viscous CFL number of the explicit step e.
EXPLICIT_CFL = 0.5


class ResidualPlace(NamedTuple):
    """The position of a residual: the `block` by name, `node` (i, j, k) in the block before its division among ranks,
    and the `equation`, a conserved variable."""

    block: str
    node: tuple[int, int, int]
    equation: str


class ImplicitSettings(NamedTuple):
    """Settings of the implicit scheme. `cfl`: the initial CFL number; inf if the case gives the size of steps. The
    other fields are those of the table `[implicit]` with the same names (`hiresx.case.implicit_table.Implicit`).
    `sweeps`: None if their number is found in every Newton step."""

    cfl: float
    largest_cfl: float
    krylov: int
    krylov_residual: str
    linear_drop: float
    sweeps: int | None
    drop: float
    lines: str
    newton_drop: float | None
    newton_steps: int
    tolerance: float | None


class Linearised(ABC):
    """Interface of the operators that Newton's method needs: the residual, its linearisation and a preconditioner. They
    act on the vectors of the `System` of all ranks. Every method is collective. `settings`: settings of the implicit
    scheme.

    f(x) = C(x + e R(x)) - x is the change of the state x by an explicit step, where C applies the boundary conditions
    at the nodes of faces. Every node has its own step e, with the CFL numbers `EXPLICIT_CFL`, which only `begin`
    changes. A steady state has f = 0. For unsteady flow (`unsteady`) the discrete time derivative is subtracted from R.

    `sweeps`: the number of sweeps in a preconditioning; None from `assemble` to the next `precondition` if the settings
    have None.
    """

    settings: ImplicitSettings
    sweeps: int | None = None

    @abstractmethod
    def begin(self, longest: float = math.inf) -> None:
        """Compute the explicit time step e of every node, at most `longest`, from the current state."""

    @abstractmethod
    def unsteady(self, time: float, over_time: float, constant: Vector) -> None:
        """Let all later calls use R(x) - `over_time` x + `constant`, with the boundary conditions at `time`, in place
        of the rates of change R(x), so that its zero is the solution of an implicit step. `over_time`: the coefficient
        of the unknown state in the discrete time derivative. `constant`: the part that depends on earlier states."""

    @abstractmethod
    def change(self, x: Vector, into: Vector) -> None:
        """Compute f(x), the change of the state x by a short explicit step with boundary conditions, and store it in
        `into`. The blocks, whose memory is used for this, no longer contain the current state afterwards."""

    @abstractmethod
    def rates(self, change: Vector, into: Vector) -> None:
        """Divide `change`, a change of the state by a short explicit step, by the size of this step at every node, and
        store the quotient in `into`."""

    @abstractmethod
    def assemble(self, x: Vector, over_cfl: float) -> None:
        """Compute and store the matrix blocks of 1/c - df/dx at the state x, with the first-order scheme, for
        `precondition`. `over_cfl`: 1/c, where c is the pseudo-time step divided by the explicit step. f(x): the change
        of the state x by a short explicit step (`change`)."""

    @abstractmethod
    def precondition(self, right: Vector, into: Vector) -> None:
        """Solve approximately the linear equations with the matrix blocks that `assemble` has stored, by sweeps over
        the grid from the initial guess 0. `right`: the right-hand side. `into`: the vector that receives the
        solution."""

    @abstractmethod
    def check_blocks(self) -> None:
        """Raise HiresxError, on all ranks, that names the first node whose diagonal matrix block is singular, if there
        is one."""

    @abstractmethod
    def admissible_share(self, x: Vector, change: Vector) -> float:
        """Return the largest of the factors 1, 1/2, 1/4, ... by which `change` can be multiplied and added to x, such
        that density and pressure change by at most a fixed factor at every node; 0 if there is none."""

    @abstractmethod
    def show(self, rates: Vector) -> None:
        """Store the largest magnitude among the components of the vector `rates` at each node in the field `residual`,
        which steady runs have for output."""

    @abstractmethod
    def largest(self, rates: Vector) -> tuple[float, ResidualPlace]:
        """Return the largest magnitude among the components of the vector `rates`, scaled as in its norm, with the
        block, node and equation of this component."""


def linear_solver(given: Given | ImplicitSettings) -> type[LinearSolver]:
    """Return the class that solves the linear equations for the settings `given` of the implicit integrator: sweeps
    alone, or the GMRES method that minimises the residual chosen by `implicit.krylov_residual`."""
    if given.krylov == 0:
        return PreconditionerAlone
    return PreconditionedGmres if given.krylov_residual == "preconditioned" else FlexibleGmres


class ImplicitIntegrator(Integrator):
    """Base class of the implicit integrators. The nonlinear equations of a step are solved by Newton's method with the
    linearised right-hand side, and its linear equations by `linear_solver`."""

    implicit = True
    # The arguments of `attach`.
    linearised: Linearised

    @classmethod
    def needed_fields(cls, case: Case) -> dict[str, int]:
        """Return the fields (named arrays at the nodes) that every block of `case` must store because of the implicit
        integrator: a dictionary from the name to the number of arrays or components."""
        given, variables = case.implicit, equations(case).variables
        precision, is_free = given.sweep_precision, given.storage == MATRIX_FREE
        records = record_numbers(variables, recorded_terms(case.turbulence.model)) if is_free else 0
        found = super().needed_fields(case) | {
            "dt": 1,
            "damping_reach": int(viscous_damping(case) > 0),
            "implicit_blocks": block_reals(given.storage, variables, given.stored_directions),
            "sweep_right": packed_reals(variables, precision if is_free else "fp64"),
            "sweep_update": 1,
            "update": 1,
            "line_factors": given.directions * factor_reals(given.storage, variables, precision),
            "line_values": int(given.directions > 0),
            "sweep_records": packed_reals(records, precision),
            "sweep_inverses": int(is_free and not given.directions),
        }
        return found

    @abstractmethod
    def attach(self, system: System, linearised: Linearised) -> None:
        """Store the operators `linearised` that Newton's method needs, and allocate vectors of the equations `system`.
        It is called before the first step."""


class Steady(ImplicitIntegrator):
    """Base class of integrators that iterate towards steady flow."""

    steady = True

    @classmethod
    def needed_fields(cls, case: Case) -> dict[str, int]:
        """Return the fields (named arrays at the nodes) that every block of `case` must store because of the implicit
        integrator, including the residual: a dictionary from the name to the number of arrays or components."""
        return super().needed_fields(case) | {"residual": 1}

    def look_again(self, system: System) -> None:
        """Compute the residual of the current state again, after a caller has changed boundary values between two
        steps. All ranks must call this."""
