"""The floating-point types of a precision: the type of its arithmetic, and the types in which it stores each kind of
array."""

import math
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

Precision: TypeAlias = Literal["fp64", "mixed", "differences", "fp32"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
# "long double" for all numbers, 80 or 128 bits; only for differences of the residual (hiresx.gradients), not for cases.
EXTENDED = "extended"
LONGEST = np.dtype(np.longdouble).name
# Storage of the blocks of neighbours in the implicit integrator, and the bits of an entry. With "none" products with
# them are computed anew, and only nodes on faces with conditions have blocks, in FP32.
BlockStorage: TypeAlias = Literal["fp32", "fp16", "int8", "none"]
BLOCK_BITS: dict[BlockStorage, int] = {"fp32": 32, "fp16": 16, "int8": 8}
MATRIX_FREE: BlockStorage = "none"
# Precision of the inverses of the diagonal blocks, and of the update of the sweeps. With "fp16" the update is in FP32.
SweepPrecision: TypeAlias = Literal["fp64", "fp32", "fp16"]


class Storage(NamedTuple):
    """NumPy's names of the number types of kernels/storage.h. `real`: the type of computations. `stored`: that of the
    state. `work`: that of metrics, Jacobian and work arrays. `rate`: that of the right-hand side. `carries`: whether
    the state is stored as differences from a reference, with a further array of their rounding errors."""

    real: str
    stored: str
    work: str
    rate: str
    carries: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Number of bytes of a number in arithmetic, in the stored state, in work arrays and in the rates."""
        real, stored, work, rate = (np.dtype(name).itemsize for name in self[:4])
        return real, stored, work, rate

    @property
    def output(self) -> str:
        """Number format of the flow in output files, unless the case has another."""
        return "fp32" if self.real == "float32" else "fp64"

    @property
    def defines(self) -> dict[str, bool]:
        """Return the macros, besides HX_FP32, that select the number types of this storage in kernels/storage.h."""
        narrow = {name: kept != self.real for name, kept in zip(_MACROS, self[1:4], strict=True)}
        return narrow | {"HX_DIFFERENCES": self.carries}

    @property
    def c_types(self) -> dict[str, str]:
        """The C types of the names in kernels/storage.h."""
        names = ("stored_real", "work_real", "rate_real")
        return {name: "real" if kept == self.real else "float" for name, kept in zip(names, self[1:4], strict=True)}


def precision_of(storage: Storage) -> str:
    """Return the name of the precision (`scheme.precision` or `EXTENDED`) that has the number types of `storage`."""
    return next(name for name, known in STORAGE.items() if known == storage)


def neighbour_words(storage: BlockStorage, variables: int) -> int:
    """Return the number of 8-byte words of the stored block of one neighbour, for a system with `variables`
    conservative variables. These words contain its entries and, if an entry has less than 32 bits, one byte for the
    scale of each row (kernels/implicit/neighbours.h). `storage`: the number format of the entries."""
    bits = BLOCK_BITS.get(storage, 32)
    return math.ceil(variables * (variables * bits // 8 + (bits < 32)) / 8)


def block_reals(storage: BlockStorage, variables: int, directions: int) -> int:
    """Return the number of reals of the block of a node, and of the stored blocks of its two neighbours along each of
    `directions` directions. `variables`: the number of conservative variables. `storage`: the number format of the
    stored blocks."""
    return variables**2 + 2 * directions * neighbour_words(storage, variables)


def record_numbers(variables: int, terms: int) -> int:
    """Return how many numbers of a node are stored for products with blocks that are not stored: its state, the area
    vectors and Jacobians of three faces, its Jacobian, the `terms` of a turbulence model
    (`hiresx.equations.system.recorded_terms`) and the time step (kernels/implicit/records.h). `variables`: the number
    of conservative variables."""
    return variables + terms + 14


def packed_reals(numbers: int, precision: SweepPrecision) -> int:
    """Return the number of 8-byte words of `numbers` numbers in `precision`."""
    return numbers if precision == "fp64" else (numbers + 1) // 2


def line_words(storage: BlockStorage, variables: int, precision: SweepPrecision) -> int:
    """Return the number of 8-byte words of each of the two blocks that sweeps over lines in `precision` read of a node:
    in FP64 the stored blocks of its neighbours, in FP32 their products with the inverse of the pivot, in FP16 or else
    in FP32 (kernels/implicit/lines.h). `variables`: the number of conservative variables."""
    of_products: BlockStorage = storage if storage == "fp16" else "fp32"
    return neighbour_words(storage if precision == "fp64" else of_products, variables)


def factor_reals(storage: BlockStorage, variables: int, precision: SweepPrecision) -> int:
    """Return the number of reals of a node that are stored for lines along one direction: the inverse of its pivot, and
    two blocks of `line_words`."""
    return packed_reals(variables**2, precision) + 2 * line_words(storage, variables, precision)


_MACROS = ("HX_STORED_FP32", "HX_WORK_FP32", "HX_RATE_FP32")

STORAGE: dict[str, Storage] = {
    "fp64": Storage("float64", "float64", "float64", "float64"),
    "mixed": Storage("float64", "float64", "float32", "float64"),
    "differences": Storage("float64", "float32", "float32", "float32", carries=True),
    "fp32": Storage("float32", "float32", "float32", "float32"),
    EXTENDED: Storage(LONGEST, LONGEST, LONGEST, LONGEST),
}
