"""The compressible Navier-Stokes equations, with passive scalars.

A scalar s is a mass fraction (dimensionless). The conserved variable rho s is convected by the mass flux of the gas and
diffuses with the flux mu/(Re_c Sc) grad s. It has no effect on the gas. Scalars come after the variables of the gas in
every array.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx import kernels

# Directions of space, and of the indexes of a block.
DIRECTIONS = 3

GAS_CONSERVED = ("rho", "rho_u", "rho_v", "rho_w", "e")
GAS_PRIMITIVE = ("rho", "u", "v", "w", "p")
# Variables whose gradients the viscous terms need; each drives the flux of the conserved variable after the density.
GAS_GRADIENTS = ("u", "v", "w", "T")
# Components of grad(xi_d)/J.
METRICS = DIRECTIONS * DIRECTIONS

# Reserved names of scalars: those of the gas, and those of the coordinates in field files.
RESERVED = frozenset({*GAS_CONSERVED, *GAS_PRIMITIVE, *GAS_GRADIENTS, *"xyzijkt", "time", "step"})


@dataclass(frozen=True)
class Equations:
    """The system of conservation equations of the gas and of the passive scalars. `scalars`: the names of the
    scalars."""

    scalars: tuple[str, ...] = ()

    @property
    def conserved_names(self) -> tuple[str, ...]:
        """Names of the conserved variables in the order of the state arrays: density, momentum, energy, then rho s of
        each scalar s."""
        return (*GAS_CONSERVED, *(f"rho_{name}" for name in self.scalars))

    @property
    def primitive(self) -> tuple[str, ...]:
        """Names of the primitive variables: rho, u, v, w, p, then the scalars."""
        return (*GAS_PRIMITIVE, *self.scalars)

    @property
    def gradients(self) -> tuple[str, ...]:
        """Names of the variables whose gradients the viscous terms need, in the order of the viscous fluxes: u, v, w,
        T, then the scalars."""
        return (*GAS_GRADIENTS, *self.scalars)

    @property
    def variables(self) -> int:
        """Number of conserved variables."""
        return len(self.conserved_names)

    @property
    def momentum(self) -> slice:
        """Positions of the three momentum components among the conserved variables, as a slice."""
        return slice(1, 1 + DIRECTIONS)

    @property
    def scalar_rows(self) -> slice:
        """Positions of the scalars (rho s) among the conserved variables, as a slice."""
        return slice(len(GAS_CONSERVED), self.variables)


# The gas alone.
GAS = Equations()


def equations(case: Any) -> Equations:
    """Return the system of equations of `case`, a `Case` or a dictionary with the structure of a case file. The scalars
    of the system are the passive scalars of the case, if any, and then the variables that its turbulence model
    transports."""
    scalars = case.get("scalar", ()) if isinstance(case, Mapping) else case.scalar
    named = [s["name"] if isinstance(s, Mapping) else s.name for s in scalars]
    turbulence = case.get("turbulence") if isinstance(case, Mapping) else getattr(case, "turbulence", None)
    model = turbulence.get("model") if isinstance(turbulence, Mapping) else getattr(turbulence, "model", None)
    return Equations((*named, *transported_names(model)))


def transported_names(model: str | None) -> tuple[str, ...]:
    """Return the names of the variables that the turbulence model `model` transports; empty for other models and for
    None."""
    if model in (None, "none") or model not in kernels.choices("turbulence"):
        return ()
    return kernels.names("turbulence", model, "transported_names")


def transported_units(model: str, root: Path = kernels.ROOT) -> tuple[float, ...]:
    """Return the units in which the implicit integrator stores the variables that the turbulence model `model`
    transports: powers of two near the typical magnitudes of the variables in turbulent layers. The tuple is empty for
    other models. `root`: the folder of the kernels."""
    if not kernels.trait("turbulence", model, "transported_variables", root, silent=0):
        return ()
    sizes = kernels.fractions("turbulence", model, "transported_sizes", root)
    return tuple(2.0 ** math.ceil(math.log2(size)) for size in sizes)


def recorded_terms(model: str, root: Path = kernels.ROOT) -> int:
    """Return how many numbers per node the implicit integrator stores for the turbulence model `model` if it stores no
    matrix blocks of neighbours (kernels/implicit/records.h). For a model that transports n variables these are n^2
    derivatives of the sources with respect to the values at the node, n^2 with respect to the changes between
    neighbours along each index direction, and the constants of the fluxes. For other models it is the eddy viscosity,
    if they have one. `root`: the folder of the kernels."""
    count = kernels.trait("turbulence", model, "transported_variables", root, silent=0)
    if not count:
        return kernels.trait("turbulence", model, "eddy_fields", root)
    constants = kernels.trait("turbulence", model, "transported_constants", root, silent=0)
    return constants + (1 + DIRECTIONS) * count**2
