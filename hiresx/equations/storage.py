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
# Precision of the inverses of the diagonal blocks, and of the update of the sweeps. "fp16" is that of the areas of
# faces in sweeps without stored blocks and, with a split Jacobian, of velocities. All other numbers are in FP32.
SweepPrecision: TypeAlias = Literal["fp64", "fp32", "fp16"]


class Storage(NamedTuple):
    """NumPy's names of the number types of kernels/storage.h. `real`: the type of computations. `stored`: the type of
    the state. `work`: the type of metrics, Jacobian and work arrays. `rate`: the type of the right-hand side.
    `carries`: whether the state is stored as differences from a reference, with a further array of their rounding
    errors."""

    real: str
    stored: str
    work: str
    rate: str
    carries: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Number of bytes of a number in arithmetic, in the stored state, in work arrays and in the right-hand side."""
        real, stored, work, rate = (np.dtype(name).itemsize for name in self[:4])
        return real, stored, work, rate

    @property
    def output(self) -> str:
        """Default number format of the flow in output files, "fp64" or "fp32"."""
        return "fp32" if self.real == "float32" else "fp64"

    @property
    def defines(self) -> dict[str, bool]:
        """The C++ macros, apart from HX_FP32, that select these number types in kernels/storage.h, each with whether it
        is defined."""
        narrow = {name: kept != self.real for name, kept in zip(_MACROS, self[1:4], strict=True)}
        return narrow | {"HX_DIFFERENCES": self.carries}

    @property
    def c_types(self) -> dict[str, str]:
        """The C++ type, "real", "float" or "double", of each type name in kernels/storage.h, such as "stored_real"."""
        names = ("stored_real", "work_real", "rate_real")
        narrow = {name: "real" if kept == self.real else "float" for name, kept in zip(names, self[1:4], strict=True)}
        return narrow | {"wide": "real" if self.wide == self.real else "double"}

    @property
    def wide(self) -> str:
        """NumPy's name of the number type of sums whose terms cancel: that of the arithmetic, but at least double."""
        return max("float64", self.real, key=lambda name: np.dtype(name).itemsize)


def precision_of(storage: Storage) -> str:
    """Return the name of the precision (a value of `scheme.precision`, or "extended") that has the number types of
    `storage`."""
    return next(name for name, known in STORAGE.items() if known == storage)


def neighbour_words(storage: BlockStorage, variables: int) -> int:
    """Return the number of 8-byte words in which the implicit integrator stores the matrix block of one neighbouring
    node, for a system with `variables` conservative variables. These words contain the entries of the block and, if an
    entry has less than 32 bits, one byte for the scale of each row (kernels/implicit/neighbours.h). `storage`: the
    number format of the entries."""
    bits = BLOCK_BITS.get(storage, 32)
    return math.ceil(variables * (variables * bits // 8 + (bits < 32)) / 8)


def block_reals(storage: BlockStorage, variables: int, directions: int) -> int:
    """Return the number of 8-byte reals per node in which the implicit integrator stores the diagonal matrix block and
    the blocks of the two neighbours along each of `directions` index directions. `variables`: the number of
    conservative variables. `storage`: the number format of the neighbours' blocks."""
    return variables**2 + 2 * directions * neighbour_words(storage, variables)


def record_numbers(variables: int, terms: int) -> int:
    """Return how many numbers per node the implicit integrator stores in place of the matrix blocks of the neighbours,
    from which it computes products with these blocks: the state, area vectors and Jacobians of three faces, the
    Jacobian, the `terms` of a turbulence model (see `hiresx.equations.system.recorded_terms`) and the time step
    (kernels/implicit/records.h). `variables`: the number of conservative variables."""
    return variables + terms + 14


def packed_reals(numbers: int, precision: SweepPrecision) -> int:
    """Return the number of 8-byte words that `numbers` numbers in `precision` take."""
    return numbers if precision == "fp64" else (numbers + 1) // 2


def line_words(storage: BlockStorage, variables: int, precision: SweepPrecision) -> int:
    """Return the number of 8-byte words in which each of the two off-diagonal matrix blocks of a node is stored for
    sweeps over grid lines. In FP64 these are the blocks of the neighbours in the format `storage`; in FP32 they are
    products of these blocks with the inverse of the pivot, in FP16 if `storage` is "fp16", else in FP32
    (kernels/implicit/lines.h). `variables`: the number of conservative variables. `precision`: the number format of the
    sweeps."""
    of_products: BlockStorage = storage if storage == "fp16" else "fp32"
    return neighbour_words(storage if precision == "fp64" else of_products, variables)


def factor_reals(storage: BlockStorage, variables: int, precision: SweepPrecision) -> int:
    """Return the number of 8-byte reals per node that the implicit integrator stores for solving along the grid lines
    of one direction: the inverse of the pivot and two off-diagonal matrix blocks (see `line_words`). `variables`: the
    number of conservative variables. `storage`: the number format of the neighbours' blocks. `precision`: the number
    format of the sweeps."""
    return packed_reals(variables**2, precision) + 2 * line_words(storage, variables, precision)


_MACROS = ("HX_STORED_FP32", "HX_WORK_FP32", "HX_RATE_FP32")

STORAGE: dict[str, Storage] = {
    "fp64": Storage("float64", "float64", "float64", "float64"),
    "mixed": Storage("float64", "float64", "float32", "float64"),
    "differences": Storage("float64", "float32", "float32", "float32", carries=True),
    "fp32": Storage("float32", "float32", "float32", "float32"),
    EXTENDED: Storage(LONGEST, LONGEST, LONGEST, LONGEST),
}
