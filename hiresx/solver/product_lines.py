"""Sweeps over lines along one direction that store only the matrix blocks of neighbours on the same line
(kernels/implicit/product_lines.h)."""

from collections.abc import Iterator

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.solver.face_blocks import FaceBlocks
from hiresx.solver.product_sweeps import ProductSweeps
from hiresx.solver.sweeps import SweepInputs, nodes_of_lines, parities


class ProductLines(ProductSweeps):
    """Block Gauss-Seidel sweeps over the grid lines of two colours along one direction, which solve the equations of
    each line at once. The matrix blocks that couple a line with other lines are not stored; the products with them are
    computed when they are needed. If a block has one node along this direction, its lines have one node. `given`: what
    all sweeps share (`SweepInputs`). `faces`: for each block of this rank the stored matrix blocks of nodes on faces
    with boundary conditions. Collective."""

    def __init__(self, given: SweepInputs, faces: list[FaceBlocks]):
        super().__init__(given, faces)
        self._direction = "ijk".index(given.settings.lines)
        self.lines = [(self._direction,)] * len(self.lines)

    def factor(self, over_cfl: float, over_time: float) -> None:
        """Store the data of the current state from which products with matrix blocks are computed, and factorise the
        block-tridiagonal matrices of the grid lines. `over_cfl`: 1/CFL. `over_time`: the coefficient of the unknown
        state in the equations of the time step, 0 in steady flow."""
        self._record(over_cfl, over_time)
        for s, faces in zip(self._blocks.states, self._faces, strict=True):
            if len(faces.nodes):
                self._program.launch(
                    "keep_line_blocks", (len(faces.nodes), 1, 1), nodes=faces.nodes, faces=faces.blocks.shape[1],
                    row=s.strides[1], direction=self._direction, sv=s.variable_stride, of_faces=faces.blocks,
                    blocks=s.array("implicit_blocks"),
                )  # fmt: skip
        self._factor_lines()

    def _products_of(self, s: BlockState, colour: int) -> Iterator[Call]:
        direction, (ni, nj, _) = self._direction, s.size
        for parity in parities(direction):
            yield self._call(
                "product_right", s, nodes_of_lines(s, direction), ("records", "right", "update"), direction=direction,
                rows=nj, columns=ni, length=s.size[direction], parity=parity, colour=colour,
                first=self._colours.of_first(s, direction), inverse_reynolds=self._inverse_reynolds,
            )  # fmt: skip

    def _rest_of(self, s: BlockState, faces: FaceBlocks, colour: int) -> Iterator[Call]:
        which = faces.colours[colour]
        if len(which):
            yield self._program.call(
                "face_right", (len(which), 1, 1), which=which, nodes=faces.nodes, faces=faces.blocks.shape[1],
                **s.place, **s.derivative_strides, direction=self._direction, length=s.size[self._direction],
                sv=s.variable_stride, of_faces=faces.blocks, right=s.array("sweep_right"),
                update=s.array("sweep_update"),
            )  # fmt: skip
        yield from self._line_sweep(s, 0, colour)
