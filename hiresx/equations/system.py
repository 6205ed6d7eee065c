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
        """Names of the conserved variables in the order of `q`: density, momentum, energy, then rho s of each
        scalar."""
        return (*GAS_CONSERVED, *(f"rho_{name}" for name in self.scalars))

    @property
    def primitive(self) -> tuple[str, ...]:
        """Names of the primitive variables: those of the gas, then the passive scalars."""
        return (*GAS_PRIMITIVE, *self.scalars)

    @property
    def gradients(self) -> tuple[str, ...]:
        """Names of the variables whose gradients the viscous terms need, in the order of their fluxes: all primitive
        variables except the density."""
        return (*GAS_GRADIENTS, *self.scalars)

    @property
    def variables(self) -> int:
        """Number of conserved variables."""
        return len(self.conserved_names)

    @property
    def momentum(self) -> slice:
        """The slice of the momentum in `conserved`. (In `gradients` and their fluxes the velocity has the first
        rows.)"""
        return slice(1, 1 + DIRECTIONS)

    @property
    def scalar_rows(self) -> slice:
        """Position of the scalars among `conserved`."""
        return slice(len(GAS_CONSERVED), self.variables)


# The gas alone.
GAS = Equations()


def equations(case: Any) -> Equations:
    """Return the system of equations of a case, or of a resolved case as a dictionary. A dictionary that an earlier
    version without scalars has written has no scalars."""
    scalars = case.get("scalar", ()) if isinstance(case, Mapping) else case.scalar
    named = [s["name"] if isinstance(s, Mapping) else s.name for s in scalars]
    turbulence = case.get("turbulence") if isinstance(case, Mapping) else getattr(case, "turbulence", None)
    model = turbulence.get("model") if isinstance(turbulence, Mapping) else getattr(turbulence, "model", None)
    return Equations((*named, *transported_names(model)))


def transported_names(model: str | None) -> tuple[str, ...]:
    """Return the names of the variables that a turbulence model transports."""
    if model in (None, "none") or model not in kernels.choices("turbulence"):
        return ()
    return kernels.names("turbulence", model, "transported_names")


def transported_units(model: str, root: Path = kernels.ROOT) -> tuple[float, ...]:
    """Return the units in which the implicit integrator stores the variables that a turbulence model transports. They
    are powers of two near the typical sizes of the variables in turbulent layers."""
    if not kernels.trait("turbulence", model, "transported_variables", root, silent=0):
        return ()
    sizes = kernels.fractions("turbulence", model, "transported_sizes", root)
    return tuple(2.0 ** math.ceil(math.log2(size)) for size in sizes)


def recorded_terms(model: str, root: Path = kernels.ROOT) -> int:
    """Return how many numbers of a turbulence model the implicit integrator stores for each node, for products with
    blocks that are not stored (kernels/implicit/records.h). For a model that transports n variables these are n^2
    derivatives of the sources with respect to the node, n^2 with respect to the changes along each direction, and the
    constants of the fluxes. For other models it is the eddy viscosity."""
    count = kernels.trait("turbulence", model, "transported_variables", root, silent=0)
    if not count:
        return kernels.trait("turbulence", model, "eddy_fields", root)
    constants = kernels.trait("turbulence", model, "transported_constants", root, silent=0)
    return constants + (1 + DIRECTIONS) * count**2
