"""Base class of the sweeps that store no matrix blocks of neighbours, except those along lines. They compute products
with these blocks anew (kernels/implicit/products.h). Nodes on faces with conditions have stored blocks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.equations.storage import STORAGE, Precision, record_numbers
from hiresx.equations.system import recorded_terms
from hiresx.solver.block_arguments import of_flow
from hiresx.solver.face_blocks import FaceBlocks
from hiresx.solver.sweeps import SweepInputs, Sweeps


class ProductSweeps(Sweeps, ABC):
    """Base class of sweeps that do not store the matrix blocks of neighbours, but compute the products with them when
    they are needed. `given`: what all sweeps share (`SweepInputs`). `faces`: for each block of this rank the stored
    matrix blocks of nodes on faces with boundary conditions. Collective."""

    def __init__(self, given: SweepInputs, faces: Sequence[FaceBlocks]):
        super().__init__(given)
        self._faces, blocks, chosen = faces, given.blocks, given.configuration
        self._precision = chosen.sweep_precision
        self._real: Precision = "fp64" if self._precision == "fp64" else "fp32"
        self._products = blocks.compile_kernels(replace(chosen, program="products", precision=self._real))
        self._scale = self._scale_of_areas() if self._precision == "fp16" else 1.0
        variables, terms = blocks.equations.variables, recorded_terms(chosen.turbulence)
        # for each field of the sweeps, the numbers of a node
        self._numbers = {
            "records": record_numbers(variables, terms), "inverses": variables**2, "right": variables,
            "update": variables,
        }  # fmt: skip

    def _record(self, over_cfl: float, over_time: float) -> None:
        """Record the current state, with the contributions to the diagonal blocks that `factor` describes."""
        for s, faces in zip(self._blocks.states, self._faces, strict=True):
            common = {"sv": s.variable_stride, "records": s.array("sweep_records"), "scale": self._scale}
            self._program.launch(
                "record_nodes", s.shape[::-1], o=0, sj=s.strides[1], sk=s.strides[2], q=s.q, m=s.metrics,
                jacobian=s.jacobian, inverse_reynolds=self._inverse_reynolds, **s.derivative_strides, **common,
            )  # fmt: skip
            common |= {**s.place, "numbers": faces.numbers}
            self._program.launch(
                "record_steps", s.size, jacobian=s.jacobian, dt=s.dt, over_cfl=over_cfl, over_time=over_time, **common
            )
            if "record_turbulence" in self._program.signatures:
                self._program.launch(
                    "record_turbulence", s.size, inverse_reynolds=self._inverse_reynolds,
                    **of_flow(s), **{name: value for name, value in common.items() if name != "scale"},
                )  # fmt: skip

    def _scale_of_areas(self) -> float:
        """Return the power of two that brings the largest component of an area vector to between 2^13 and 2^14."""
        blocks = self._blocks
        largest = [np.abs(blocks.host_values(s, s.metrics)).max() for s in blocks.states]
        return float(2.0 ** (14 - np.frexp(blocks.comm.max([max(largest, default=0.0)])[0])[1]))

    def _prepare_alone(self, turn: int) -> Callable[[], None]:
        assert self._copies is not None
        colours, copy = [self._prepare_colour(turn, colour) for colour in (0, 1)], self._program.prepare([self._copies])

        def sweep() -> None:
            for solve_colour in colours:
                solve_colour()
                copy()

        return sweep

    def _prepare_colour(self, turn: int, colour: int) -> Callable[[], None]:
        products = self._products.prepare([
            call for s in self._blocks.states for call in self._products_of(s, colour)
        ])  # fmt: skip
        rest = self._program.prepare([
            call
            for s, faces in zip(self._blocks.states, self._faces, strict=True)
            for call in self._rest_of(s, faces, colour)
        ])  # fmt: skip

        def solve() -> None:
            products()
            rest()

        return solve

    @abstractmethod
    def _products_of(self, s: BlockState, colour: int) -> Iterator[Call]:
        """Yield the launches of the program of products over one colour of a part."""

    @abstractmethod
    def _rest_of(self, s: BlockState, faces: FaceBlocks, colour: int) -> Iterator[Call]:
        """Yield the launches of the other program that follow them."""

    def _call(
        self, kernel: str, s: BlockState, extent: tuple[int, int, int], fields: Sequence[str], **given: float
    ) -> Call:
        """Return the launch of a kernel over nodes of a part, with these fields of the sweeps."""
        kind = STORAGE[self._real].real
        arrays = {name: s.view(f"sweep_{name}", self._numbers[name], kind) for name in fields}
        return self._products.call(
            kernel, extent, **s.place, **s.derivative_strides, sv=s.variable_stride,
            **arrays, **given,
        )  # fmt: skip
