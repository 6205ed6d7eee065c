"""The system of equations: its variables, their order and their names.

Everything whose size or order depends on the variables uses these definitions: arrays, halos, checkpoints, memory
estimates, names in files, and constants of the kernels. Of the other packages this one only uses the kernels.
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
