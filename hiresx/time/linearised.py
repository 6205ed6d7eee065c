"""The flow about one state as an implicit scheme sees it: its change by a short explicit step, and blocks that solve
for an update roughly."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from hiresx.time.integrator import Integrator
from hiresx.time.ode_system import System, Vector

# Vectors that the linearisation and GMRES need besides two for each direction of the latter.
VECTORS = 4 + 1

# What squares of the variable that a model of turbulence transports count in norms: nu_tilde over mu_ref / rho_ref is
# some hundreds in a turbulent layer, and the conserved variables of the gas are of the order of 1.
OF_TRANSPORTED = 1e-6

# The CFL numbers, inviscid and viscous, of the explicit step e.
EXPLICIT_CFL = 0.5


class Place(NamedTuple):
    """A node of a whole block: the `block` by name, `node` (i, j, k), and the `equation`, a conserved variable."""

    block: str
    node: tuple[int, int, int]
    equation: str


class ImplicitSettings(NamedTuple):
    """Settings of the implicit scheme from a case (`hiresx.case.implicit.Implicit`), and `cfl`, its first CFL number;
    inf if the case gives the size of steps."""

    cfl: float
    largest_cfl: float
    krylov: int
    linear_drop: float
    sweeps: int
    drop: float
    lines: str
    newton_drop: float | None
    newton_steps: int
    tolerance: float | None


class Linearised(ABC):
    """Works on the vectors of the `System` of all ranks. Everything is collective.

    The change f(x) = C(x + e R(x)) - x is that by an explicit step with the conditions C at the nodes of faces, each
    node of its own length e in time, of `EXPLICIT_CFL`, that does not change between two calls of `begin`.
    A steady state has f = 0. With a term of time (`unsteady`) R is R less that term.
    """

    settings: ImplicitSettings

    @abstractmethod
    def begin(self) -> None:
        """Set e from the current state."""

    @abstractmethod
    def unsteady(self, time: float, over_time: float, constant: Vector) -> None:
        """From now on R(x) stands for R(x) - `over_time` x + `constant`, with the conditions of `time`."""

    @abstractmethod
    def change(self, x: Vector, into: Vector) -> None:
        """Compute f(x) into `into`. This overwrites the current state of the blocks."""

    @abstractmethod
    def rates(self, change: Vector, into: Vector) -> None:
        """Compute f/e, the rate of change with the conditions, from f."""

    @abstractmethod
    def assemble(self, x: Vector, over_cfl: float) -> None:
        """Make the blocks of 1/c - df/dx at x to first order, `over_cfl` = 1/c."""

    @abstractmethod
    def precondition(self, right: Vector, into: Vector) -> None:
        """Solve the equations of the blocks approximately, by sweeps that start from 0."""

    @abstractmethod
    def check_blocks(self) -> None:
        """Raise HiresxError, on all ranks, for a block of a node that is singular; the first is named."""

    @abstractmethod
    def admissible_share(self, x: Vector, change: Vector) -> float:
        """Return the largest of 1, 1/2, 1/4, ... of `change` that x takes with a density and a pressure that stay
        within a factor; 0 if none does."""

    @abstractmethod
    def largest(self, rates: Vector) -> tuple[float, Place]:
        """Return the largest entry of a vector and its place."""


class Implicit(Integrator):
    """An integrator whose steps solve equations by the linearised flow."""

    implicit = True
    # What `attach` was given.
    linearised: Linearised

    @abstractmethod
    def attach(self, system: System, linearised: Linearised) -> None:
        """Take the system with its linearisation, before the first step, and the vectors needed."""


class Steady(Implicit):
    """Base of integrators that iterate towards steady flow."""

    steady = True

    def look_again(self, system: System) -> None:
        """Between two steps: the conditions at faces have changed, and with them the residual. Collective."""
