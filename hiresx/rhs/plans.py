"""The ways of visiting points for the right-hand side, by name, and which one suits a backend."""

from hiresx.equations import GAS, Equations
from hiresx.rhs import compact, inviscid
from hiresx.rhs.fused import Fused

PLANS = {"pencils": inviscid.Pencils, "decomposed": inviscid.Decomposed, "fused": Fused}


def default_plan(backend_name: str, equations: Equations = GAS) -> str:
    """Pencils on the CPU; on a GPU and where one is emulated the fused kernels, or the decomposed ones where there are
    passive scalars, which the fused ones do not carry."""
    if backend_name == "cpu":
        return "pencils"
    return "fused" if not equations.scalars or Fused.carries_scalars else "decomposed"


def inviscid_plan(plan: str, backend_name: str) -> str:
    """The one of PLANS by which `plan` visits points for the inviscid terms: the compact plan takes the default's."""
    return default_plan(backend_name) if plan == compact.NAME else plan


def work_variables(plan: str, is_viscous: bool, equations: Equations = GAS) -> int:
    """Reals of work memory per padded point: the inviscid and the viscous terms use the same, one after the other."""
    if plan == compact.NAME:
        return len(equations.gradients) if is_viscous else 0
    return max(PLANS[plan].work(equations), equations.viscous_variables if is_viscous else 0)
