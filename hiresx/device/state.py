"""The arrays of one block, or a part of one, on a device, allocated once."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from hiresx.decomposition.halo_copies import ROW, padded_shape, padding
from hiresx.device.arguments import CHUNK
from hiresx.device.fields import FIELDS, Field, Layout, declared_field
from hiresx.equations import DIRECTIONS
from hiresx.grid.blocks import Range


class BlockState:
    """Fields and geometry of block `index` of the decomposition `cut`, padded by the ghost layers, with indices
    [variable, k, j, i].

    `part`: which nodes of the whole block it has; `first` (i, j, k): the first of them; `name`: the name of the whole
    block. `fields`: the arrays of every field of the run (`hiresx.device.fields`), by name; the most used ones are also
    attributes, which are None if the run has no such field. If the state is stored as differences, `reference` (one
    value per conserved variable) is subtracted from it, and `carry` contains the rounding errors of the differences.
    `layout`: the declarations of these fields. `shared`: the arrays of fields that all blocks have in common, by
    name."""

    def __init__(
        self, backend: Any, cut: Any, index: int, name: str, layout: Layout, reference: Sequence[float] = (),
        shared: Mapping[str, tuple[Any, ...]] = MappingProxyType({}),
    ):  # fmt: skip
        self.layout, self.storage, self.equations = layout, layout.storage, layout.equations
        self.real, equations = self.storage.real, self.equations
        self.renumber(cut, index, name)
        block = self.block
        self.size = block.size
        self.active = block.active
        self.halo = padding(block, cut.stencil.halo)
        shape = padded_shape(block, cut.stencil.halo)
        self.shape = shape
        self.variable_stride = shape[0] * shape[1] * shape[2]
        self.strides = (1, shape[2], shape[1] * shape[2])
        self.origin = sum(h * s for h, s in zip(self.halo, self.strides, strict=True))
        conserved = equations.conserved_names
        self.reference = np.array(reference if self.storage.carries else [0.0] * len(conserved))
        self.fields: dict[str, tuple[Any, ...]] = {
            # Most of the fields that may exist are not those of this run.
            name: tuple(self._allocate(backend, declared_field(name)) for _ in range(count)) if count else ()
            for name, count in layout.arrays.items()
            if name not in shared
        } | dict(shared)
        self.q, self.r, self.metrics, self.jacobian = map(self.array, ("q", "r", "metrics", "jacobian"))
        self.carry, self.work = self.array("carry"), self.array("work")
        self.inverse_radius, self.registers = self.array("inverse_radius"), self.fields["registers"]
        # Kernels over whole arrays read ghosts that no kernel fills (edges and corners): these need an admissible
        # state.
        for row in map(conserved.index, ("rho", "e")):
            self.q[row] = 1 - self.reference[row]
        # The parts of faces that were connected to other blocks when the ghosts of the Jacobian were set; None before.
        self.joined: set[tuple[str, Range]] | None = None
        self.dt_stride = 1 if layout.local_steps else 0
        # Views are made once: a backend caches the address of an array object.
        self.areas = tuple(self.metrics[DIRECTIONS * d : DIRECTIONS * (d + 1)] for d in range(DIRECTIONS))
        # rho s and its right-hand side, of each scalar
        rows = range(*equations.scalar_rows.indices(equations.variables))
        self.scalars = tuple((self.q[row], self.r[row]) for row in rows)

    def renumber(self, cut: Any, index: int, name: str) -> None:
        """Set the number `index` of this block in the new division `cut` of the grid into the blocks of all ranks, and
        the `name` of the grid's block that it belongs to. This block must have the same nodes in both divisions."""
        self.block, self.index, self.name = cut.blocks[index], index, name
        self.part = cut.parts[index]
        self.first = self.part.first

    @property
    def q0(self) -> Any:
        """The first register of the time integrator, an array like the state. Some integrators store the state at the
        start of the step there."""
        return self.registers[0]

    @property
    def dt(self) -> Any:
        """The time step on the device, in L / c_ref: an array with one value, or with local time steps one value per
        node."""
        return self.array("dt")

    @property
    def bytes(self) -> int:
        """Number of bytes of all arrays of this block."""
        return sum(array.nbytes for arrays in self.fields.values() for array in arrays)

    @property
    def restarting(self) -> dict[str, Any]:
        """The arrays that a checkpoint contains, by the name of the field."""
        return {field.name: self.array(field.name) for field in FIELDS if field.restarts and self.fields[field.name]}

    def array(self, name: str) -> Any:
        """Return the first array of the field `name`, or None if the run has no such field. A field that shares the
        memory of another field is a view of that memory."""
        field = declared_field(name)
        if field.lies_in is not None:
            return self.view(field.lies_in, field.variables(self.layout), field.kind(self.layout))
        arrays = self.fields[name]
        return arrays[0] if arrays else None

    def _allocate(self, backend: Any, field: Field) -> Any:
        kind = field.kind(self.layout)
        if not field.per_point(self.layout):
            return backend.zeros((1,), kind)
        shape = self.shape if field.components is None else (field.variables(self.layout), *self.shape)
        lead = -self.halo[0] % ROW
        if field.chunked:
            lead += -lead % (CHUNK // field.size(self.layout))
        return _zeros(backend, lead, self.real, shape, kind)

    @property
    def place(self) -> dict[str, int]:
        """Arguments of most kernels: the flat index "o" of node (0, 0, 0) in an array with ghost layers, and the
        strides "sj" and "sk" along j and k, as numbers of array elements."""
        return {"o": self.origin, "sj": self.strides[1], "sk": self.strides[2]}

    @property
    def derivative_strides(self) -> dict[str, int]:
        """Arguments of kernels that compute differences: the strides "di", "dj" and "dk", the distances in memory
        between neighbours along i, j and k as numbers of array elements. A stride is 0 in a direction with one node, so
        that differences vanish there."""
        names = zip(("di", "dj", "dk"), self.strides, self.size, strict=True)
        return {name: stride if n > 1 else 0 for name, stride, n in names}

    @property
    def eddy_arguments(self) -> dict[str, Any]:
        """Arguments of kernels that read or write the eddy viscosity, by name; empty without a turbulence model."""
        eddies = self.array("eddy_viscosity")
        return {} if eddies is None else {"eddies": eddies}

    @property
    def eddy_model(self) -> dict[str, Any]:
        """Arguments of kernels that compute the eddy viscosity, by name; empty without a turbulence model."""
        coefficient = self.array("eddy_coefficient")
        known = self.eddy_arguments | ({} if coefficient is None else {"coefficient": coefficient})
        if self.layout.has("transported_source"):
            known |= {name: self.array(name) for name in ("wall_distance", "transported_source")}
        if self.layout.has("grid_spacings"):
            known |= {name: self.array(name) for name in ("grid_spacings", "length_ratio", "resolved_share")}
        return known

    def view(self, name: str, count: int, kind: str) -> Any:
        """Return a view of the memory of the field `name` as an array of the NumPy type `kind`, [component, k, j, i],
        with `count` components."""
        array = self.array(name)
        if str(array.dtype) == kind:
            return array[:count]
        return array.reshape(-1).view(kind)[: count * self.variable_stride].reshape(count, *self.shape)

    def from_storage(self, kept: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return the conservative variables (n, ...), float64, from `kept`, the numbers that the state or a register of
        the time integrator stores; with the precision "differences" the reference state is added. Both are arrays on
        the host. `rows`: which of the conservative variables these are."""
        values = kept.astype(np.float64)
        return values + self._reference(values)[rows] if self.storage.carries else values

    def to_storage(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers that are stored for the conservative variables `values` (n, ...), float64, and their
        rounding errors. With the precision "differences" the stored numbers are differences from the reference
        state."""
        differences = values - self._reference(values)
        kept = differences.astype(self.storage.stored)
        return kept, (differences - kept).astype(self.storage.stored)

    def _reference(self, values: np.ndarray) -> np.ndarray:
        return self.reference.reshape(-1, *(1,) * (values.ndim - 1))

    def interior(self, array: Any) -> Any:
        """Return a view [..., k, j, i] of `array` without its ghost layers."""
        hi, hj, hk = self.halo
        ni, nj, nk = self.size
        return array[..., hk : hk + nk, hj : hj + nj, hi : hi + ni]


def _zeros(backend: Any, lead: int, real: str, shape: Sequence[int], kind: str) -> Any:
    """Return an array of zeros that starts `lead` numbers into its memory, so that the rows after their ghosts begin at
    multiples of `ROW`. An array of smaller numbers than `real` has no lead: its memory also holds reals."""
    if np.dtype(kind).itemsize < np.dtype(real).itemsize:
        return backend.zeros(shape, kind)
    return backend.zeros((math.prod(shape) + lead,), kind)[lead:].reshape(shape)
