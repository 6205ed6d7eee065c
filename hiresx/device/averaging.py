"""The quantities that the kernels `average_reynolds` and `average_favre` keep at every node, in their order."""

from collections.abc import Sequence

from hiresx.equations import GAS_PRIMITIVE

# The means first, then the second moments.
MEANS = {"reynolds": (*GAS_PRIMITIVE, "T"), "favre": ("rho", "u", "v", "w", "T")}
MOMENTS = {
    "reynolds": ("rho_rho", "u_u", "v_v", "w_w", "p_p", "T_T", "u_v", "u_w", "v_w"),
    "favre": ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w", "u_T", "v_T", "w_T"),
}
# The velocities whose covariance with a passive scalar `average_scalars` keeps, besides the scalar's mean.
_WITH = ("u", "v", "w")


def means(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the means, by `kind` "reynolds" or "favre"."""
    return (*MEANS[kind], *scalars)


def names(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """Return all names in the order of the arrays: those of the gas, then the mean and second moments of each
    scalar."""
    of_scalars = [name for s in scalars for name in (s, f"{s}_{s}", *(f"{c}_{s}" for c in _WITH))]
    return (*MEANS[kind], *MOMENTS[kind], *of_scalars)
