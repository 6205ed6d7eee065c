"""Sweeps over nodes that store no blocks of neighbours: products with them are computed anew
(kernels/implicit/products.h), but for nodes on faces with conditions, which have blocks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.equations.storage import STORAGE, record_numbers
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.coloured_arrays import in_precision
from hiresx.solver.face_blocks import FaceBlocks
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.sweeps import Sweeps
from hiresx.time.linearised import ImplicitSettings

# Of the fields of the sweeps, the numbers of a node by its variables.
_NUMBERS: dict[str, Callable[[int], int]] = {
    "records": record_numbers,
    "inverses": lambda n: n * n,
    "right": lambda n: n,
    "update": lambda n: n,
}


class ProductSweeps(Sweeps):
    """As `Sweeps` of settings without lines. `faces`: where each part has the blocks of nodes on faces. Collective."""

    def __init__(
        self,
        settings: ImplicitSettings,
        blocks: LocalBlocks,
        ghosts: Ghosts,
        program: Program,
        inverse_reynolds: float,
        faces: Sequence[FaceBlocks],
    ):
        super().__init__(settings, blocks, ghosts, program, inverse_reynolds)
        self._faces = faces
        precision = blocks.states[0].layout.sweep_precision if blocks.states else "fp64"
        self._products = blocks.compile_kernels(
            replace(
                blocks.configuration, program="products", implicit_storage="none", sweep_precision=precision,
                precision=precision, source=(), face_formulas=(),
            )
        )  # fmt: skip

    def factor(self, over_cfl: float, over_time: float) -> None:
        """Record the current state, and make and invert the diagonal blocks."""
        for s, faces in zip(self._blocks.states, self._faces, strict=True):
            common = {"sv": s.variable_stride, "jacobian": s.jacobian, "records": s.array("sweep_records")}
            self._program.launch(
                "record_nodes", s.shape[::-1], o=0, sj=s.strides[1], sk=s.strides[2], q=s.q, m=s.metrics, **common
            )
            self._program.launch(
                "record_steps", s.size, **s.place, dt=s.dt, numbers=faces.numbers, **common
            )  # fmt: skip
            for colour in (0, 1):
                self._products.run(
                    self._call(
                        "diagonal_blocks", s, colour, ("records", "inverses"), over_cfl=over_cfl, over_time=over_time
                    )
                )
            self._program.launch(
                "invert_recorded", s.size, **s.place, sv=s.variable_stride, numbers=faces.numbers,
                blocks=s.array("implicit_blocks"), inverses=s.array("sweep_inverses"),
            )  # fmt: skip

    def inverses(self, n: int) -> Iterator[np.ndarray]:
        """See `Sweeps.inverses`."""
        s = self._blocks.states[n]
        variables = s.equations.variables
        kept = self._blocks.backend.to_host(s.array("sweep_inverses"))
        found = in_precision(kept, variables**2, s.layout.sweep_precision)
        yield s.interior(found.reshape(variables, variables, *found.shape[1:]))

    def _prepare_alone(self, turn: int) -> Callable[[], None]:
        assert self._copies is not None
        colours, copy = [self._prepare_colour(turn, colour) for colour in (0, 1)], self._program.prepare([self._copies])

        def sweep() -> None:
            for solve_colour in colours:
                solve_colour()
                copy()

        return sweep

    def _prepare_colour(self, turn: int, colour: int) -> Callable[[], None]:
        states = self._blocks.states
        products = self._products.prepare([self._call("product_sweep", s, colour, tuple(_NUMBERS)) for s in states])
        on_faces = self._program.prepare([
            self._face_sweep(s, faces, faces.colours[colour])
            for s, faces in zip(states, self._faces, strict=True)
            if len(faces.colours[colour])
        ])  # fmt: skip

        def solve() -> None:
            products()
            on_faces()

        return solve

    def _call(self, kernel: str, s: BlockState, colour: int, fields: Sequence[str], **given: float) -> Call:
        """The launch of a kernel over the nodes of one colour of a part, with these fields of the sweeps."""
        ni, nj, nk = s.size
        variables, kind = s.equations.variables, STORAGE[s.layout.sweep_precision].real
        arrays = {name: s.view(f"sweep_{name}", _NUMBERS[name](variables), kind) for name in fields}
        return self._products.call(
            kernel, ((ni + 1) // 2, nj, nk), **s.place, **s.derivative_strides, first=sum(s.first), colour=colour,
            sv=s.variable_stride, inverse_reynolds=self._inverse_reynolds, **arrays, **given,
        )  # fmt: skip

    def _face_sweep(self, s: BlockState, faces: FaceBlocks, which: Any) -> Call:
        return self._program.call(
            "face_sweep", (len(which), 1, 1), which=which, nodes=faces.nodes, faces=faces.blocks.shape[1],
            row=s.strides[1], **s.derivative_strides, sv=s.variable_stride, of_faces=faces.blocks,
            inverses=s.array("sweep_inverses"), right=s.array("sweep_right"), update=s.array("sweep_update"),
        )  # fmt: skip
