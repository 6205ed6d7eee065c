"""The ways of visiting points for the right-hand side, by name, and which one suits a backend."""

from hiresx.rhs import inviscid, viscous
from hiresx.rhs.fused import Fused

PLANS = {"pencils": inviscid.Pencils, "decomposed": inviscid.Decomposed, "fused": Fused}


def default_plan(backend_name: str) -> str:
    """Pencils on the CPU, the fused kernels on a GPU and where one is emulated."""
    return "pencils" if backend_name == "cpu" else "fused"


def work_variables(plan: str, is_viscous: bool) -> int:
    """Reals of work memory per padded point: the inviscid and the viscous terms use the same, one after the other."""
    return max(PLANS[plan].work_variables, viscous.VARIABLES if is_viscous else 0)
