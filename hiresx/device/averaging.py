"""The quantities that the kernels of averages (kernels/averages.h) keep at every node, in their order."""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

from hiresx.base.arrays import Size, triple
from hiresx.equations import GAS_PRIMITIVE

# The means first, then the second moments.
MEANS = {"reynolds": (*GAS_PRIMITIVE, "T"), "favre": ("rho", "u", "v", "w", "T")}
MOMENTS = {
    "reynolds": ("rho_rho", "u_u", "v_v", "w_w", "p_p", "T_T", "u_v", "u_w", "v_w"),
    "favre": ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w", "u_T", "v_T", "w_T"),
}
_STRESS, _WORK, _RATE = "rho_ref c_ref^2", "rho_ref c_ref^3", "rho_ref c_ref^3 / L"
_SYMMETRIC = ("xx", "yy", "zz", "xy", "xz", "yz")
_IN_BOTH = {
    **{f"tau_{ij}": (f"mean viscous stress tau_{ij}", _STRESS) for ij in _SYMMETRIC},
    **{f"d{u}_d{x}": (f"mean of d{u}/d{x}", "c_ref / L") for u in "uvw" for x in "xyz"},
    **{f"p_{u}": (f"covariance of p and {u}", _WORK) for u in "uvw"},
}
# Names, descriptions and scales of the further averages for the budget of the turbulent kinetic energy, and for the
# budgets of all Reynolds stresses.
BUDGETS = {
    "budget": {
        **_IN_BOTH,
        "p_dilatation": ("covariance of p and div u", _RATE),
        **{f"u_tau_{x}": (f"sum over i of the covariances of u_i and tau_i{x}", _WORK) for x in "xyz"},
        "tau_gradient": ("sum over i, j of the covariances of tau_ij and du_i/dx_j", _RATE),
        **{f"k_{u}": (f"half the third moments u_i u_i {u} (favre)", "c_ref^3") for u in "uvw"},
    },
    "stress_budgets": {
        **_IN_BOTH,
        **{f"p_strain_{ij}": (f"covariance of p and du_i/dx_j + du_j/dx_i, ij = {ij}", _RATE) for ij in _SYMMETRIC},
        **{f"{u}_tau_{ij}": (f"covariance of {u} and tau_{ij}", _WORK) for u in "uvw" for ij in _SYMMETRIC},
        **{
            f"tau_gradient_{ij}": (
                f"sum over k of the covariances of tau_ik and du_j/dx_k, and of tau_jk and du_i/dx_k, ij = {ij}", _RATE,
            )
            for ij in _SYMMETRIC
        },
        **{
            f"{a}_{b}_{c}": (f"third moment of {a}, {b} and {c} (favre)", "c_ref^3")
            for a, b, c in combinations_with_replacement("uvw", 3)
        },
    },
}  # fmt: skip
# The arguments of the kernels that compute several kinds of averages at once, in this order.
BITS = {"reynolds": 1, "favre": 2, "budget": 4, "stress_budgets": 8}
# Number of lanes along i, so that neighbouring threads read neighbouring nodes; and the wanted total numbers of lanes,
# of a CPU, whose threads take rows, and of a GPU.
_CPU_LANES, _GPU_LANES = (1, 256), (32, 32768)
# The velocities whose covariances with a passive scalar `average_moments` computes, besides the scalar's mean.
_WITH = ("u", "v", "w")


def kinds(average: Any) -> list[str]:
    """Return which kinds of averages the table `[average]` of a case requests, from "reynolds", "favre", "budget" and
    "stress_budgets". If "stress_budgets" is requested, "budget" is left out, since "stress_budgets" contains its
    averages."""
    asked = [kind for kind in (*MEANS, *BUDGETS) if getattr(average, kind)]
    return [kind for kind in asked if kind != "budget" or "stress_budgets" not in asked]


def means(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the first moments (means) of the averages of a `kind`, "reynolds" or "favre". `scalars`: the
    names of the passive scalars, whose means follow the means of the gas."""
    return (*MEANS[kind], *scalars)


def names(kind: str, scalars: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of all averages of a `kind`, "reynolds", "favre", "budget" or "stress_budgets", in the order of
    their arrays. For "reynolds" and "favre", the moments of the gas are followed by mean, second moment and covariances
    with the velocity of each scalar. `scalars`: the names of the passive scalars."""
    if kind in BUDGETS:
        return tuple(BUDGETS[kind])
    of_scalars = [name for s in scalars for name in (s, f"{s}_{s}", *(f"{c}_{s}" for c in _WITH))]
    return (*MEANS[kind], *MOMENTS[kind], *of_scalars)


def quantities(kinds: Sequence[str], scalars: Sequence[str] = ()) -> int:
    """Return the number of averages that are stored at a node for several `kinds`, from "reynolds", "favre", "budget"
    and "stress_budgets", such as ["reynolds", "budget"]. `scalars`: the names of the passive scalars."""
    return sum(len(names(kind, scalars)) for kind in kinds)


def lanes(size: Size, over: Sequence[str], backend: str) -> Size:
    """Return the numbers of lanes (li, lj, lk) for averages over index directions in a block of `size` nodes (ni, nj,
    nk). A lane is the set of nodes that one thread sums. `over`: the directions that are averaged, such as ["i", "k"];
    along the other directions there is a lane for every node. `backend`: the name of the backend."""
    row, wanted = _CPU_LANES if backend == "cpu" else _GPU_LANES
    found = [1 if letter in over else n for letter, n in zip("ijk", size, strict=True)]
    for d, most in ((0, row), (1, wanted), (2, wanted)):
        if "ijk"[d] in over:
            found[d] = max(1, min(size[d], most, -(-wanted // math.prod(found))))
    return triple(found)
