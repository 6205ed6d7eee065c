"""The diffusivities of momentum, heat and scalars relative to mu/(Re_c rho).

mu itself is the law of the case (`hiresx.case.viscosity`).
"""

from collections.abc import Sequence
from pathlib import Path

from hiresx import kernels


def transported_schmidt(model: str, root: Path = kernels.ROOT) -> tuple[float, ...]:
    """Return the Schmidt number (nu divided by the molecular diffusivity) of each variable that the turbulence model
    `model` transports. The tuple is empty for models without such variables. `root`: the folder of the kernels."""
    transports = kernels.trait("turbulence", model, "transported_variables", root, silent=0)
    return kernels.fractions("turbulence", model, "transported_schmidt", root) if transports else ()


def largest_diffusivity(gamma: float, prandtl: float, schmidt: Sequence[float] = ()) -> float:
    """Return the largest diffusivity divided by mu / rho, which limits the time step: the maximum of 4/3 (normal
    stress), gamma / Pr (heat) and 1 / Sc of each scalar. `prandtl`: the Prandtl number. `schmidt`: the Schmidt number
    of each scalar."""
    return max(4.0 / 3, gamma / prandtl, *(1 / number for number in schmidt))
