"""What the kernels `average_reynolds` and `average_favre` keep of every node, in their order."""

from collections.abc import Sequence

from hiresx.equations import GAS_PRIMITIVE

# The means first, then the second moments.
MEANS = {"reynolds": (*GAS_PRIMITIVE, "T"), "favre": ("rho", "u", "v", "w", "T")}
MOMENTS = {
    "reynolds": ("rho_rho", "u_u", "v_v", "w_w", "p_p", "T_T", "u_v", "u_w", "v_w"),
    "favre": ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w", "u_T", "v_T", "w_T"),
}
# Of a passive scalar, what `average_scalars` keeps: its mean, and what it varies with.
_WITH = ("u", "v", "w")


def means(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """The means, by `kind` "reynolds" or "favre"."""
    return (*MEANS[kind], *scalars)


def names(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """All that is kept, in the order of the arrays: of the gas, then of each scalar its mean and second moments."""
    of_scalars = [name for s in scalars for name in (s, f"{s}_{s}", *(f"{c}_{s}" for c in _WITH))]
    return (*MEANS[kind], *MOMENTS[kind], *of_scalars)
