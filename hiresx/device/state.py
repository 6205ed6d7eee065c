"""The arrays of one block, or part of one, on a device, allocated once."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx.decomposition.halo_copies import ROW, padded_shape, padding
from hiresx.equations import DIRECTIONS, GAS, METRICS, Equations
from hiresx.equations.storage import Storage


def permanent_variables(equations: Equations = GAS) -> int:
    """q, r, metrics, jacobian."""
    return 2 * equations.variables + METRICS + 1


def variables_per_point(
    work_variables: int, registers: int, local_step: bool, axisymmetric: bool = False, equations: Equations = GAS
) -> int:
    """Numbers a block holds per padded point, what a precision carries along not among them."""
    kept = permanent_variables(equations) + equations.variables * registers
    return kept + work_variables + int(local_step) + int(axisymmetric)


def bytes_per_point(
    storage: Storage, work_variables: int, registers: int, local_step: bool, axisymmetric: bool = False,
    equations: Equations = GAS,
) -> int:  # fmt: skip
    """Bytes that a block holds per padded point."""
    real, stored, work, rate = storage.sizes
    n = equations.variables
    of_state = n * (1 + registers + int(storage.carries)) * stored + n * rate
    return of_state + (METRICS + 1 + work_variables) * work + (int(local_step) + int(axisymmetric)) * real


class BlockState:
    """Fields and geometry of block `index` of the decomposition `cut`, padded by the ghost layers, index order
    [variable, k, j, i].

    `part` says which nodes of which whole block it holds, `first` (i, j, k) is the first of them, `name` that block's.

    Permanent, of each conserved variable of the `equations`: `q` state, `registers` what the time integrator keeps
    besides, `r` right-hand side times 1/J; `metrics` (9) area components grad(xi)/J, `jacobian` (1), `dt` (1 value, or
    1 per point with local steps).
    `work` (`work_variables`): interpolated states and fluxes of the decomposed inviscid kernels, then primitives and
    fluxes of the viscous ones; empty where neither is used. Viscous fluxes that come ahead of the inviscid terms have
    their primitives in `r` (hiresx.rhs.viscous).

    `storage` says in which numbers they are kept. Where the state is kept as differences, `reference` (per conserved
    variable) is what they are differences from, and `carry` what their rounding lost, of each; else that is None.
    """

    def __init__(
        self, backend: Any, cut: Any, index: int, name: str, storage: Storage, work_variables: int,
        local_step: bool, registers: int = 1, equations: Equations = GAS, reference: Sequence[float] = (),
    ):  # fmt: skip
        self.storage, self.real = storage, storage.real
        self.equations = equations
        block = cut.blocks[index]
        self.block, self.index, self.name = block, index, name
        self.part = cut.parts[index]
        self.first = self.part.first
        self.size = block.size
        self.active = block.active
        self.halo = padding(block)
        shape = padded_shape(block)
        self.shape = shape
        self.variable_stride = shape[0] * shape[1] * shape[2]
        self.strides = (1, shape[2], shape[1] * shape[2])
        self.origin = sum(h * s for h, s in zip(self.halo, self.strides, strict=True))
        # A ghost no kernel fills (edges and corners) is read by whole-array kernels: keep it an admissible state.
        conserved = equations.conserved
        self.reference = np.array(reference if storage.carries else [0.0] * len(conserved))
        zeros = partial(_zeros, backend, -self.halo[0] % ROW, self.real)
        self.q = zeros((len(conserved), *shape), storage.stored)
        for row in map(conserved.index, ("rho", "e")):
            self.q[row] = 1 - self.reference[row]
        self.registers = tuple(zeros((len(conserved), *shape), storage.stored) for _ in range(registers))
        self.carry: Any = zeros((len(conserved), *shape), storage.stored) if storage.carries else None
        self.r = zeros((len(conserved), *shape), storage.rate)
        self.metrics = zeros((METRICS, *shape), storage.work)
        self.jacobian = zeros(shape, storage.work)
        self.dt_stride = 1 if local_step else 0
        self.dt = zeros(shape, self.real) if local_step else backend.zeros((1,), self.real)
        self.work: Any = zeros((work_variables, *shape), storage.work) if work_variables else None
        # 1/y of axisymmetric flow (hiresx.rhs.axisymmetric)
        self.inverse_radius: Any = None
        # Views are made once: a backend remembers the address of an array object.
        self.areas = tuple(self.metrics[DIRECTIONS * d : DIRECTIONS * (d + 1)] for d in range(DIRECTIONS))
        # rho s and its right-hand side, of each scalar
        rows = range(*equations.scalar_rows.indices(equations.variables))
        self.scalars = tuple((self.q[row], self.r[row]) for row in rows)

    @property
    def q0(self) -> Any:
        """The first of the registers: the state at the start of the step, where the integrator keeps that."""
        return self.registers[0]

    @property
    def bytes(self) -> int:
        """Bytes of the arrays above."""
        arrays = (
            self.q, *self.registers, self.carry, self.r, self.metrics, self.jacobian, self.dt, self.work,
            self.inverse_radius,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def place(self) -> dict[str, int]:
        """o, sj, sk: index of node (0, 0, 0) and strides, as most kernels take them."""
        return {"o": self.origin, "sj": self.strides[1], "sk": self.strides[2]}

    @property
    def derivative_strides(self) -> dict[str, int]:
        """di, dj, dk: strides of derivatives, 0 in a direction with one node."""
        names = zip(("di", "dj", "dk"), self.strides, self.size, strict=True)
        return {name: stride if n > 1 else 0 for name, stride, n in names}

    def work_in_rates(self, variables: int) -> Any:
        """So many variables of a work array in the memory of `r`."""
        if self.storage.work == self.storage.rate:
            return self.r[:variables]
        numbers = self.r.reshape(-1).view(self.storage.work)
        return numbers[: variables * self.variable_stride].reshape(variables, *self.shape)

    def numbers(self, kept: np.ndarray) -> np.ndarray:
        """The conservative state, float64, of what `q` or a register holds of it, (n, ...) on the host."""
        values = kept.astype(np.float64)
        return values + self._reference(values) if self.storage.carries else values

    def kept(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Conservative values (n, ...), float64, as `q` and `carry` keep them."""
        differences = values - self._reference(values)
        kept = differences.astype(self.storage.stored)
        return kept, (differences - kept).astype(self.storage.stored)

    def _reference(self, values: np.ndarray) -> np.ndarray:
        return self.reference.reshape(-1, *(1,) * (values.ndim - 1))

    def interior(self, array: Any) -> Any:
        """View of the nodes without ghosts, [..., k, j, i]."""
        hi, hj, hk = self.halo
        ni, nj, nk = self.size
        return array[..., hk : hk + nk, hj : hj + nj, hi : hi + ni]


def _zeros(backend: Any, lead: int, real: str, shape: Sequence[int], kind: str) -> Any:
    """An array of zeros, `lead` numbers into its memory, so that rows behind their ghosts begin at multiples of `ROW`.
    Not one of smaller numbers than `real`, whose memory is used for such as well."""
    if np.dtype(kind).itemsize < np.dtype(real).itemsize:
        return backend.zeros(shape, kind)
    return backend.zeros((math.prod(shape) + lead,), kind)[lead:].reshape(shape)
