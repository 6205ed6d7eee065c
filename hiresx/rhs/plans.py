"""The plans, which are ways to compute the right-hand side (kernels, loops and temporary arrays), and the plan that
suits a backend."""

from typing import Any

from hiresx import kernels
from hiresx.case import Case
from hiresx.equations import DIRECTIONS, GAS, Equations, equations
from hiresx.rhs import compact, inviscid, split
from hiresx.rhs.fused import Fused

PLANS: dict[str, Any] = {"pencils": inviscid.Pencils, "decomposed": inviscid.Decomposed, "fused": Fused}
# The plans of the split form, with or without a sensor, under the same names.
SPLIT_PLANS: dict[str, Any] = {
    "pencils": split.SplitPencils,
    "decomposed": split.SplitDecomposed,
    "fused": split.SplitFused,
}


def default_plan(backend_name: str) -> str:
    """Return the default plan, the order in which kernels compute the right-hand side, of the backend `backend_name`:
    "pencils" on a CPU, "fused" on a GPU or an emulated one."""
    return "pencils" if backend_name == "cpu" else "fused"


def inviscid_plan(plan: str, backend_name: str) -> str:
    """Return the name of the plan (a key of PLANS, an order of computation) by which the inviscid terms are computed
    when `plan` is the plan of the whole right-hand side. It is `plan` itself, except that for "compact" it is the
    default plan of the backend `backend_name`."""
    return default_plan(backend_name) if plan == compact.NAME else plan


def inviscid_class(plan: str, backend_name: str, scheme: str) -> Any:
    """Return the class that launches the kernels of the inviscid terms in the order of computation called `plan`, on
    the backend `backend_name`. `scheme`: the key `scheme.inviscid` of the case."""
    return (SPLIT_PLANS if scheme in ("split", "hybrid") else PLANS)[inviscid_plan(plan, backend_name)]


def fluxes_ahead(plan: str) -> bool:
    """Return whether the order of computation called `plan` computes the viscous fluxes before the inviscid terms. It
    does so where the inviscid terms need no temporary memory, except in the plan `compact`."""
    return plan != compact.NAME and not PLANS[plan].work()


def needed_fields(case: Case, plan: str) -> dict[str, int]:
    """Return the fields (named arrays at the nodes) that the order of computation called `plan` needs in every block of
    `case`: a dictionary from the name to the number of arrays or components."""
    found = {"work": work_variables(plan, case.gas.reynolds is not None, equations(case))}
    found["sensed_tiles"] = int(case.scheme.inviscid == "hybrid" and plan in ("fused", compact.NAME))
    found["sensed_segments"] = found["sensed_tiles"] * int(case.scheme.hybrid.floor == 0)
    if plan == compact.NAME or not kernels.trait("positivity", case.scheme.positivity, "limits_flux"):
        return found
    return found | {"rough": int(inviscid_class(plan, plan, case.scheme.inviscid).stores_roughness)}


def work_variables(plan: str, is_viscous: bool, equations: Equations = GAS) -> int:
    """Return the number of reals of temporary memory per node, ghost nodes included, that the order of computation
    called `plan` needs for a system of `equations`. `is_viscous`: whether the flow is viscous. Viscous flow needs the
    fluxes along three directions, and the primitive variables if they do not fit into the array of the right-hand side.
    The inviscid terms use the same memory before."""
    if plan == compact.NAME:
        return len(equations.gradients) if is_viscous else 0
    inviscid_work: int = PLANS[plan].work(equations)
    kept = DIRECTIONS + (not fluxes_ahead(plan))
    return max(inviscid_work, kept * len(equations.gradients) if is_viscous else 0)
