"""The system of equations: which variables there are, in what order and what they are called.

Everything whose size or order depends on the variables (arrays, halos, checkpoints, memory estimates, names in files,
constants of the kernels) takes these from here. Of the other packages it may use the kernels alone.
"""

from hiresx.equations.system import (
    DIRECTIONS,
    GAS,
    GAS_CONSERVED,
    GAS_GRADIENTS,
    GAS_PRIMITIVE,
    METRICS,
    RESERVED,
    Equations,
    equations,
)

__all__ = [
    "DIRECTIONS",
    "GAS",
    "GAS_CONSERVED",
    "GAS_GRADIENTS",
    "GAS_PRIMITIVE",
    "METRICS",
    "RESERVED",
    "Equations",
    "equations",
]
