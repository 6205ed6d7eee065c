"""The sweeps that precondition the linear equations of the implicit integrator: over nodes or grid lines of two colours
(kernels/implicit/lines.h)."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.ghosts import Ghosts
from hiresx.time.linearised import ImplicitSettings
from hiresx.time.ode_system import Vector

# A node counts for lines along a direction if its spectral radius there is more than so many times each other one, and
# a block takes lines along every direction for which at least this share of its nodes count.
STIFF, WORTH = 4.0, 0.1
_NAMES = "ijk"


def check_lines(lines: str, blocks: Sequence[Block]) -> None:
    """Raises HiresxError for `implicit.lines` along a direction in which every block has one node."""
    if lines in _NAMES and all(block.size[_NAMES.index(lines)] == 1 for block in blocks):
        raise HiresxError(
            f'implicit.lines = "{lines}": no block has more than one node along {lines}',
            'take "auto" or a direction with nodes',
        )


class Sweeps:
    """Sweeps of the preconditioner over the parts of this rank. `lines`: for each part the directions of its lines,
    which the sweeps use in turn; () for sweeps over nodes. Collective. Raises HiresxError for lines along a direction
    in which every block has one node."""

    def __init__(
        self,
        settings: ImplicitSettings,
        blocks: LocalBlocks,
        ghosts: Ghosts,
        program: Program,
        inverse_reynolds: float,
    ):
        self._settings, self._blocks, self._ghosts, self._program = settings, blocks, ghosts, program
        self._inverse_reynolds = inverse_reynolds
        self._prepared: dict[Any, Callable[[], None]] = {}
        self.lines: list[tuple[int, ...]] = [()] * len(blocks.states)
        if settings.lines in _NAMES:
            d = _NAMES.index(settings.lines)
            self.lines = [(d,) if s.size[d] > 1 else () for s in blocks.states]
        check_lines(settings.lines, blocks.decomposition.blocks)

    def factor(self) -> None:
        """Turn the blocks of the current state into what the sweeps need."""
        if self._settings.lines == "auto":
            self.lines = self._stiffest()
        for s, lines in zip(self._blocks.states, self.lines, strict=True):
            common = {**s.place, "sv": s.variable_stride, "blocks": s.array("implicit_blocks")}
            if not lines:
                self._program.launch("invert_diagonals", s.size, **common)
            for factors, direction in zip(s.fields["line_factors"], lines, strict=False):
                self._program.launch(
                    "factor_lines", _first(s, direction), step=s.strides[direction], direction=direction,
                    length=s.size[direction], factors=factors, **common,
                )  # fmt: skip

    def factors(self, n: int) -> Sequence[Any]:
        """Return the array with the inverses of the diagonal blocks of the part `states[n]`, at least 25 numbers per
        node."""
        s, lines = self._blocks.states[n], self.lines[n]
        return s.fields["line_factors"][: len(lines)] if lines else (s.array("implicit_blocks"),)

    def __call__(self, right: Vector, into: Vector) -> None:
        """Solve roughly for the update `into`, from 0."""
        key = (id(right), id(into), *self.lines)
        if key not in self._prepared:
            self._prepared[key] = self._prepare(right, into)
        self._prepared[key]()

    def _prepare(self, right: Vector, into: Vector) -> Callable[[], None]:
        """Return the launches of all sweeps, colour by colour, each with the exchange of what the other will read."""
        states, call = self._blocks.states, self._program.call
        clear = self._program.prepare([
            call(
                "clear_update", (s.shape[2], s.shape[1], s.shape[0]), o=0, sj=s.strides[1], sk=s.strides[2],
                sv=s.variable_stride, update=s.array("update"),
            )
            for s in states
        ])  # fmt: skip
        turns = [
            [
                self._program.prepare([
                    self._sweep(s, lines, turn, array, colour)
                    for s, lines, array in zip(states, self.lines, right.arrays, strict=True)
                ])
                for colour in (0, 1)
            ]
            for turn in range(math.lcm(*(max(len(lines), 1) for lines in self.lines)))
        ]  # fmt: skip
        result = self._program.prepare([
            call("update_to_vector", s.size, **s.place, sv=s.variable_stride, update=s.array("update"), x=array)
            for s, array in zip(states, into.arrays, strict=True)
        ])  # fmt: skip

        def solve() -> None:
            clear()
            for n in range(self._settings.sweeps):
                for sweep in turns[n % len(turns)]:
                    sweep()
                    self._ghosts.send_field("update")
                    self._ghosts.finish_field("update")
            result()

        return solve

    def _sweep(self, s: BlockState, lines: tuple[int, ...], turn: int, right: Any, colour: int) -> Call:
        common = {
            **s.place, **s.derivative_strides, "colour": colour, "sv": s.variable_stride,
            "blocks": s.array("implicit_blocks"), "right": right, "update": s.array("update"),
        }  # fmt: skip
        if not lines:
            return self._program.call("colour_sweep", s.size, first=sum(s.first), **common)
        n = turn % len(lines)
        direction = lines[n]
        return self._program.call(
            "line_sweep", _first(s, direction), first=sum(s.first) - s.first[direction], direction=direction,
            length=s.size[direction], factors=s.fields["line_factors"][n], **common,
        )  # fmt: skip

    def _stiffest(self) -> list[tuple[int, ...]]:
        """Return the directions of the lines of each part, the same for all parts of a block."""
        whole = self._blocks.decomposition.blocks
        counts = np.zeros((len(whole), DIRECTIONS))
        for s in self._blocks.states:
            counts[s.part.whole] += self._counts(s)
        counts = self._blocks.comm.sum(counts)
        return [directions_of(counts[s.part.whole], math.prod(whole[s.part.whole].size)) for s in self._blocks.states]

    def _counts(self, s: BlockState) -> np.ndarray:
        backend, (ni, nj, nk) = self._blocks.backend, s.size
        counts = backend.zeros((DIRECTIONS, nj, ni), s.real)
        self._program.launch(
            "stiff_nodes", (ni, nj, 1), **s.place, **s.derivative_strides, height=nk, sv=s.variable_stride, q=s.q,
            m=s.metrics, jacobian=s.jacobian, inverse_reynolds=self._inverse_reynolds, ratio=STIFF, width=ni,
            columns=ni * nj, counts=counts,
        )  # fmt: skip
        found: np.ndarray = backend.to_host(counts).sum(axis=(1, 2))
        return found


def directions_of(counts: Sequence[float] | np.ndarray, nodes: int) -> tuple[int, ...]:
    """Return the directions of the lines of a block of `nodes` nodes. `counts`: for each direction, how many of its
    cells are thin along it."""
    return tuple(d for d, count in enumerate(counts) if count >= WORTH * nodes)


def _first(s: BlockState, direction: int) -> tuple[int, int, int]:
    """The range of the first nodes of the lines along a direction."""
    ni, nj, nk = (1 if d == direction else n for d, n in enumerate(s.size))
    return ni, nj, nk
