"""The diffusivities of momentum, heat and scalars relative to mu/(Re_c rho).

mu itself is the law of the case (`hiresx.case.viscosity`).
"""

from collections.abc import Sequence
from pathlib import Path

from hiresx import kernels


def transported_schmidt(model: str, root: Path = kernels.ROOT) -> tuple[float, ...]:
    """Of a model of turbulence, nu over the diffusivity of each variable that it transports where there are no eddies;
    none of a model that transports nothing."""
    transports = kernels.trait("turbulence", model, "transported_variables", root, silent=0)
    return kernels.fractions("turbulence", model, "transported_schmidt", root) if transports else ()


def largest_diffusivity(gamma: float, prandtl: float, schmidt: Sequence[float] = ()) -> float:
    """The largest diffusivity over mu / rho: of normal stress (4/3), heat (gamma / Pr) and the scalars (1 / Sc). It
    limits the time step."""
    return max(4.0 / 3, gamma / prandtl, *(1 / number for number in schmidt))
