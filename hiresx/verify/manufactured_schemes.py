"""Periodic manufactured flows, and the schemes whose orders `hiresx verify mms` measures with them."""

from typing import Any, TypeAlias

# Formulas of rho, u, v, w and p.
Formulas: TypeAlias = tuple[str, str, str, str, str]

# rho, u, v, w, p. No wave speed changes its sign, since the split eigenvalues of Steger and Warming have kinks there.
PLANE: Formulas = (
    "1 + 0.1*sin(2*pi*x + 0.3 - t)*cos(2*pi*y + 0.5)",
    "0.4 + 0.1*sin(2*pi*x + 0.7)*cos(2*pi*y - 0.2 + t)",
    "0.3 + 0.1*cos(2*pi*x - 0.4 + t)*sin(2*pi*y + 0.1)",
    "0.05*sin(2*pi*(x + y) - t)",
    "0.7 + 0.1*cos(2*pi*x + 1.1)*cos(2*pi*y + 0.9 - t)",
)
SPACE: Formulas = (
    "1 + 0.1*sin(2*pi*x + 0.3 - t)*cos(2*pi*y + 0.5)*sin(2*pi*z)",
    "0.4 + 0.1*sin(2*pi*x + 0.7)*cos(2*pi*y - 0.2 + t)*cos(2*pi*z + 0.4)",
    "0.3 + 0.1*cos(2*pi*x - 0.4 + t)*sin(2*pi*y + 0.1)*cos(2*pi*z - 0.3)",
    "0.35 + 0.1*cos(2*pi*x + 0.2)*cos(2*pi*y - 0.6)*sin(2*pi*z + 0.5 - t)",
    "0.7 + 0.1*cos(2*pi*x + 1.1)*cos(2*pi*y + 0.9 - t)*sin(2*pi*z + 0.8)",
)
# u and v change their signs.
TURNING: Formulas = (PLANE[0], PLANE[1].replace("0.4 +", "0.05 +"), PLANE[2].replace("0.3 +", "-0.02 +"), *PLANE[3:])
CARRIED: Formulas = (PLANE[0], "0.4", "0.3", "0.1", PLANE[4])

_LINEAR = {"weights": "linear"}
_HYBRID = {"inviscid": "hybrid", **_LINEAR}
# With this threshold s is 0 at some nodes of PLANE and 1 at others, on every grid.
_SENSED = {"sensor": "bhagatwala_lele", "threshold": 0.002}

# scheme: least order in L1, L2 and Linf, keys and values of the table [scheme]
SCHEMES: dict[str, tuple[float, dict[str, Any]]] = {
    **{
        f"{interpolation}, {weights}": (least, {"interpolation": interpolation, "weights": weights})
        for interpolation, least, possible in (
            ("modified", 4.8, ("linear", "js", "z", "za", "teno", "teno_adaptive")),
            ("original", 4.8, ("linear", "js", "z", "za", "teno", "teno_adaptive")),
            ("original6", 5.8, ("linear", "teno", "teno_adaptive")),
            ("modified7", 6.8, ("linear", "z")),
            ("modified7", 6.6, ("js",)),
        )
        for weights in possible
    },
    **{
        f"{interpolation}, {weights}, component": (
            least,
            {"interpolation": interpolation, "weights": weights, "space": "component"},
        )
        for interpolation, weights, least in (
            ("modified", "js", 4.8),
            ("modified", "z", 4.8),
            ("original6", "teno", 5.8),
            ("modified7", "z", 6.8),
        )
    },
    "split, 6 nodes": (5.8, {"inviscid": "split", **_LINEAR}),
    "split, 8 nodes": (7.7, {"inviscid": "split", "interpolation": "modified7", **_LINEAR}),
    "hybrid": (5.8, _HYBRID),
    "hybrid, floor 0.5": (4.8, {**_HYBRID, "hybrid": {"floor": 0.5}}),
    "hybrid, smooth blending": (4.2, {**_HYBRID, "hybrid": {**_SENSED, "blending": "smooth"}}),
    "hybrid, sharp blending": (4.0, {**_HYBRID, "hybrid": {**_SENSED, "blending": "sharp"}}),
    **{
        f"regularised, {stress}{flow}": (least, {"inviscid": "regularised", "regularised": {"stress": stress}})
        for stress in ("isotropic", "compressive")
        for flow, least in (("", 1.8), (", uniform velocity", 4.8))
    },
    **{
        flux: (4.8, {"flux": flux, **_LINEAR})
        for flux in ("van_leer", "local_lax_friedrichs", "hllc", "hllc_lm", "roe", "roe_h", "rotated_rhll")
    },
    "rotated_rhll, coarse grids": (4.0, {"flux": "rotated_rhll", **_LINEAR}),
}
# Flows and numbers of cells that differ from PLANE and 16, 32, 64, 128.
OTHERS: dict[str, dict[str, Any]] = {
    "regularised, isotropic, uniform velocity": {"flow": CARRIED},
    "regularised, compressive, uniform velocity": {"flow": CARRIED},
    "roe_h": {"flow": TURNING},
    "rotated_rhll, coarse grids": {"points": (16, 20, 24, 28)},
}
