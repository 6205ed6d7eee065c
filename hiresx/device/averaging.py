"""The quantities that the kernels `average_reynolds`, `average_favre` and `average_budget` keep at every node, in their
order."""

from collections.abc import Sequence
from typing import Any

from hiresx.equations import GAS_PRIMITIVE

# The means first, then the second moments.
MEANS = {"reynolds": (*GAS_PRIMITIVE, "T"), "favre": ("rho", "u", "v", "w", "T")}
MOMENTS = {
    "reynolds": ("rho_rho", "u_u", "v_v", "w_w", "p_p", "T_T", "u_v", "u_w", "v_w"),
    "favre": ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w", "u_T", "v_T", "w_T"),
}
_STRESS, _WORK, _RATE = "rho_ref c_ref^2", "rho_ref c_ref^3", "rho_ref c_ref^3 / L"
# Besides means and moments, for the budget of the turbulent kinetic energy: description and scale, by name.
BUDGET = {
    **{f"tau_{ij}": (f"mean viscous stress tau_{ij}", _STRESS) for ij in ("xx", "yy", "zz", "xy", "xz", "yz")},
    **{f"d{u}_d{x}": (f"mean of d{u}/d{x}", "c_ref / L") for u in "uvw" for x in "xyz"},
    **{f"p_{u}": (f"covariance of p and {u}", _WORK) for u in "uvw"},
    "p_dilatation": ("covariance of p and div u", _RATE),
    **{f"u_tau_{x}": (f"sum over i of the covariances of u_i and tau_i{x}", _WORK) for x in "xyz"},
    "tau_gradient": ("sum over i, j of the covariances of tau_ij and du_i/dx_j", _RATE),
    **{f"k_{u}": (f"half the third moments u_i u_i {u} (favre)", "c_ref^3") for u in "uvw"},
}
# The velocities whose covariance with a passive scalar `average_scalars` keeps, besides the scalar's mean.
_WITH = ("u", "v", "w")


def kinds(average: Any) -> list[str]:
    """Return the kinds of averages that a table `[average]` asks for."""
    return [kind for kind in (*MEANS, "budget") if getattr(average, kind)]


def means(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the means, by `kind` "reynolds" or "favre"."""
    return (*MEANS[kind], *scalars)


def names(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """Return all names in the order of the arrays: those of the gas, then the mean and second moments of each
    scalar. `kind`: "reynolds", "favre" or "budget"."""
    if kind == "budget":
        return tuple(BUDGET)
    of_scalars = [name for s in scalars for name in (s, f"{s}_{s}", *(f"{c}_{s}" for c in _WITH))]
    return (*MEANS[kind], *MOMENTS[kind], *of_scalars)
