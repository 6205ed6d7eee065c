"""Sweeps over nodes that store no matrix blocks of neighbours (kernels/implicit/products.h)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.solver.coloured_arrays import in_precision
from hiresx.solver.face_blocks import FaceBlocks
from hiresx.solver.product_sweeps import ProductSweeps
from hiresx.solver.sweep_colours import NODES

_FIELDS = ("records", "inverses", "right", "update")


class ProductNodes(ProductSweeps):
    """Block Gauss-Seidel sweeps over the nodes of two colours. The matrix blocks that couple a node with its neighbours
    are not stored; the products with them are computed when they are needed. `given`: what all sweeps share
    (`SweepInputs`). `faces`: for each block of this rank the stored matrix blocks of nodes on faces with boundary
    conditions. Collective."""

    @property
    def _is_split(self) -> bool:
        """Whether the products are those of a split Jacobian (kernels/implicit/split_jacobian.h)."""
        return "split_sweep" in self._products.signatures

    def factor(self, over_cfl: float, over_time: float) -> None:
        """Store the data of the current state from which products with matrix blocks are computed, and compute and
        invert the diagonal matrix block of each node; with a split Jacobian only of nodes with conditions. `over_cfl`:
        1/CFL, and `over_time`: the coefficient of the unknown state in the equations of the time step (0 in steady
        flow); both contribute to the diagonal blocks."""
        self._record(over_cfl, over_time)
        for s, faces in zip(self._blocks.states, self._faces, strict=True):
            for colour in () if self._is_split else (0, 1):
                self._products.run(
                    self._of_colour(
                        "diagonal_blocks", s, colour, _FIELDS[:2], over_cfl=over_cfl, over_time=over_time,
                        inverse_reynolds=self._inverse_reynolds,
                    )
                )  # fmt: skip
            self._program.launch(
                "invert_recorded", s.size, **s.place, sv=s.variable_stride, numbers=faces.numbers,
                blocks=s.array("implicit_blocks"), inverses=s.array("sweep_inverses"),
            )  # fmt: skip

    def inverses(self, n: int) -> Iterator[np.ndarray]:
        """Yield one array (row, column, k, j, i) on the host: the inverses of the diagonal matrix blocks of the nodes
        of block number `n` of this rank. With a split Jacobian they are 0 at nodes without conditions."""
        s = self._blocks.states[n]
        variables = s.equations.variables
        backend = self._blocks.backend
        kept = backend.to_host(s.array("sweep_inverses"))
        found = in_precision(kept, variables**2, s.layout.sweep_precision, backend.chunk_bytes)
        yield s.interior(found.reshape(variables, variables, *found.shape[1:]))

    def _products_of(self, s: BlockState, colour: int) -> Iterator[Call]:
        if self._is_split:
            yield self._of_colour(
                "split_sweep", s, colour, ("records", "right", "update"), left=s.halo[0],
                back=colour * (s.size[2] - 1),
            )  # fmt: skip
        else:
            yield self._of_colour("product_sweep", s, colour, _FIELDS, inverse_reynolds=self._inverse_reynolds)

    def _rest_of(self, s: BlockState, faces: FaceBlocks, colour: int) -> Iterator[Call]:
        if len(faces.colours[colour]):
            yield self._program.call(
                "face_sweep", (len(faces.colours[colour]), 1, 1), which=faces.colours[colour], nodes=faces.nodes,
                faces=faces.blocks.shape[1], row=s.strides[1], **s.derivative_strides, sv=s.variable_stride,
                of_faces=faces.blocks, inverses=s.array("sweep_inverses"), right=s.array("sweep_right"),
                update=s.array("sweep_update"),
            )  # fmt: skip

    def _of_colour(self, kernel: str, s: BlockState, colour: int, fields: tuple[str, ...], **given: Any) -> Call:
        """Return the launch of a kernel over the nodes of one colour."""
        ni, nj, nk = s.size
        first = self._colours.of_first(s, NODES)
        return self._call(kernel, s, ((ni + 1) // 2, nj, nk), fields, first=first, colour=colour, **given)
