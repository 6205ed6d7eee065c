"""The diffusivities of momentum, heat and scalars relative to mu/(Re_c rho).

mu itself is the law of the case (`hiresx.case.viscosity`).
"""

from collections.abc import Sequence

# sigma of the Spalart-Allmaras models: nu over the diffusivity of their variable where that is small.
TRANSPORTED_SCHMIDT = 2.0 / 3


def largest_diffusivity(gamma: float, prandtl: float, schmidt: Sequence[float] = ()) -> float:
    """The largest diffusivity over mu / rho: of normal stress (4/3), heat (gamma / Pr) and the scalars (1 / Sc). It
    limits the time step."""
    return max(4.0 / 3, gamma / prandtl, *(1 / number for number in schmidt))
