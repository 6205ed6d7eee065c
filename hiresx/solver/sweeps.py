"""The sweeps that precondition the linear equations of the implicit integrator: over nodes or grid lines of two colours
(kernels/implicit/lines.h)."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hiresx.decomposition import HaloList, halo_lists
from hiresx.device.configuration import Configuration
from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.equations.storage import factor_reals, packed_reals
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.coloured_arrays import inverse_blocks, of_lines, unpacked_inverses
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.sweep_colours import NODES, Colours
from hiresx.time.linearised import ImplicitSettings
from hiresx.time.ode_system import Vector

# A cell is thin along a direction if its spectral radius there is more than this multiple of each other one. A block
# has lines along every direction along which at least this fraction of its cells is thin.
STIFF, WORTH = 4.0, 0.1
_NAMES = "ijk"
# The kernel of lines for GPUs (kernels/implicit/lines.h).
AHEAD = "line_sweep_ahead"


def check_lines(lines: str, blocks: Sequence[Block]) -> None:
    """Raise HiresxError if every block has only one node along the direction `lines`. `lines`: the value of the key
    `implicit.lines`, "i", "j", "k" or another word, for which nothing is checked. `blocks`: the blocks, not divided
    among ranks."""
    if lines in _NAMES and all(block.size[_NAMES.index(lines)] == 1 for block in blocks):
        raise HiresxError(
            f'implicit.lines = "{lines}": no block has more than one node along {lines}',
            'take "auto" or a direction with nodes',
        )


class SweepInputs(NamedTuple):
    """The data on which the sweeps of the preconditioner operate. `settings`: settings of the implicit scheme.
    `blocks`: the blocks of this rank. `ghosts`: the exchanges that fill their ghosts. `program`: the compiled kernels
    of kernels/implicit.h. `configuration`: the configuration of these kernels. `inverse_reynolds`: 1/Re_c, 0 for
    inviscid flow. `colours`: the colours of nodes and grid lines."""

    settings: ImplicitSettings
    blocks: LocalBlocks
    ghosts: Ghosts
    program: Program
    configuration: Configuration
    inverse_reynolds: float
    colours: Colours


class _Launches(NamedTuple):
    """The launches of sweeps: of the start from 0, of a sweep in each turn, and of the copy to the vector."""

    begin: Callable[[], None]
    sweeps: list[Callable[[], None]]
    result: Callable[[], None]


class Sweeps:
    """Block Gauss-Seidel sweeps over nodes or grid lines of two colours, by which the implicit integrator preconditions
    its linear equations. `given`: settings, blocks, ghosts, kernels and colours (`SweepInputs`). `lines`: for each
    block of this rank the directions of its lines, which the sweeps use in turn; () for sweeps over nodes. Collective.
    Raises HiresxError for lines along a direction in which every block has one node."""

    def __init__(self, given: SweepInputs):
        self._settings, self._blocks, self._ghosts = settings, blocks, ghosts = given[:3]
        self._program, self._inverse_reynolds = given.program, given.inverse_reynolds
        self._storage = given.configuration.implicit_storage
        self._colours = given.colours
        self._prepared: dict[Any, _Launches] = {}
        # by the number of a part: the kinds of neighbours of its nodes, if nodes without conditions already have the
        # inverses of their diagonal blocks
        self.inverted: dict[int, Any] = {}
        # If all ghosts come from nodes of this process: the copies that fill them. Otherwise, for each part, the nodes
        # whose values are exchanged and the ghosts that exchanges fill.
        lists, alone = halo_lists(blocks.cut, mine=blocks.place), not ghosts.others and not ghosts.patched.any
        self._copies = self._local_copies(lists) if alone else None
        self._exchanged = [] if alone else _exchanged(blocks, ghosts, lists)
        self.lines: list[tuple[int, ...]] = [()] * len(blocks.states)
        if settings.lines in _NAMES:
            d = _NAMES.index(settings.lines)
            self.lines = [(d,) if s.size[d] > 1 else () for s in blocks.states]
        check_lines(settings.lines, blocks.decomposition.blocks)

    def factor(self, over_cfl: float, over_time: float) -> None:
        """Prepare the sweeps for the matrix of the current state: invert the diagonal block of each node, or factorise
        the block-tridiagonal matrix of each grid line. If the key `implicit.lines` is "auto", the directions of the
        lines are chosen anew before. Collective.

        `over_cfl`: 1/CFL. `over_time`: the coefficient of the unknown state in the equations of the time step, 0 in
        steady flow. Only subclasses that compute the diagonal blocks here need both numbers; diagonal blocks that are
        stored contain their effect."""
        if self._settings.lines == "auto":
            self.lines = self._stiffest()
        for s, lines in zip(self._blocks.states, self.lines, strict=True):
            if not lines:
                self._program.launch(
                    "invert_diagonals", s.size, **s.place, sv=s.variable_stride, sides=self.inverted.get(s.index),
                    blocks=s.array("implicit_blocks"),
                )  # fmt: skip
        self._factor_lines()

    def _factor_lines(self) -> None:
        for s, lines in zip(self._blocks.states, self.lines, strict=True):
            common = {**s.place, "sv": s.variable_stride, "blocks": s.array("implicit_blocks")}
            for n, direction in enumerate(lines):
                across, others = _across(s.size, direction)
                self._program.launch(
                    "factor_lines", (across, others, 1), across=across, others=others, step=s.strides[direction],
                    direction=direction, length=s.size[direction], factors=self._factors(s, n), **common,
                )  # fmt: skip

    def _factors(self, s: BlockState, n: int) -> Any:
        """Return the stored factors of a part for lines along the n-th of their directions."""
        count = factor_reals(self._storage, s.equations.variables, s.layout.sweep_precision)
        return s.array("line_factors")[n * count : (n + 1) * count]

    def inverses(self, n: int) -> Iterator[np.ndarray]:
        """Yield the inverses of matrix blocks at the nodes of block number `n` of this rank, as host arrays (row,
        column, k, j, i). Sweeps over nodes yield one array, with the inverses of the diagonal blocks. Sweeps over lines
        yield one array for each direction of lines, with the inverses of the pivots of the block elimination along a
        line."""
        s, lines = self._blocks.states[n], self.lines[n]
        of_blocks, device = (s.equations.variables, s.layout.sweep_precision), self._blocks.backend
        for number, direction in enumerate(lines):
            yield unpacked_inverses(of_lines(device.to_host(self._factors(s, number)), s.size, direction), *of_blocks)
        if not lines:
            reals = packed_reals(s.equations.variables**2, s.layout.sweep_precision)
            yield s.interior(inverse_blocks(device.to_host(s.array("implicit_blocks")[:reals]), *of_blocks))

    def __call__(self, right: Vector, into: Vector, count: int) -> None:
        """Solve the linear equations with the right-hand side `right` approximately by `count` sweeps that start from
        0. `into` receives the solution. Collective."""
        launches = self._launches(right, into)
        launches.begin()
        for n in range(count):
            launches.sweeps[n % len(launches.sweeps)]()
        launches.result()

    def rounds(self, right: Vector, into: Vector, most: int) -> Iterator[int]:
        """Solve the linear equations approximately by `most` sweeps that start from 0. Yields the number of sweeps
        made, each time when lines of all directions have been solved equally often, and at the end. `into` then
        contains the solution so far. `right`: the right-hand side. Collective."""
        launches = self._launches(right, into)
        launches.begin()
        turns = len(launches.sweeps)
        for n in range(most):
            launches.sweeps[n % turns]()
            if (n + 1) % turns == 0 or n + 1 == most:
                launches.result()
                yield n + 1

    def _launches(self, right: Vector, into: Vector) -> _Launches:
        key = (id(right), id(into), *self.lines)
        if key not in self._prepared:
            self._prepared[key] = self._prepare(right, into)
        return self._prepared[key]

    def _prepare(self, right: Vector, into: Vector) -> _Launches:
        """Return the launches of the sweeps, colour by colour, each followed by the exchange of the values that the
        other colour reads."""
        states, call = self._blocks.states, self._program.call
        begin = self._program.prepare([
            call(
                "begin_sweeps", s.shape[::-1], o=0, sj=s.strides[1], sk=s.strides[2], sv=s.variable_stride, x=array,
                right=s.array("sweep_right"), update=s.array("sweep_update"),
            )
            for s, array in zip(states, right.arrays, strict=True)
        ])  # fmt: skip
        result = self._program.prepare([
            call("update_to_vector", s.size, **s.place, sv=s.variable_stride, update=s.array("sweep_update"), x=array)
            for s, array in zip(states, into.arrays, strict=True)
        ])  # fmt: skip
        turns = range(math.lcm(*(max(len(lines), 1) for lines in self.lines)))
        sweeps = [
            self._prepare_alone(turn) if self._copies is not None else self._prepare_exchanged(turn) for turn in turns
        ]
        return _Launches(begin, sweeps, result)

    def _prepare_alone(self, turn: int) -> Callable[[], None]:
        """Return the launches of a sweep over both colours, with the ghosts behind connected faces of this process."""
        assert self._copies is not None
        calls: list[Call | list[Call]] = []
        for colour in (0, 1):
            calls += self._colour(turn, colour)
            calls.append(self._copies)
        return self._program.prepare(calls)

    def _prepare_exchanged(self, turn: int) -> Callable[[], None]:
        """Return a sweep over both colours with the exchange of the update."""
        colours = [self._prepare_colour(turn, colour) for colour in (0, 1)]
        gather = self._around_exchange("update_to_exchange", 0)
        spread = self._around_exchange("update_from_exchange", 1)

        def sweep() -> None:
            for solve_colour in colours:
                solve_colour()
                gather()
                self._ghosts.send_field("update")
                self._ghosts.finish_field("update")
                spread()

        return sweep

    def _prepare_colour(self, turn: int, colour: int) -> Callable[[], None]:
        """Return the launches over one colour of all parts."""
        return self._program.prepare(self._colour(turn, colour))

    def _colour(self, turn: int, colour: int) -> list[Call]:
        """Yield the launches over one colour of all parts."""
        return [
            call
            for s, lines in zip(self._blocks.states, self.lines, strict=True)
            for call in self._sweep(s, lines, turn, colour)
        ]

    def _sweep(self, s: BlockState, lines: tuple[int, ...], turn: int, colour: int) -> list[Call]:
        read = {**s.derivative_strides, "right": s.array("sweep_right")}
        if not lines:
            ni, nj, nk = s.size
            common = _of_sweep(s, colour) | read
            return [
                self._program.call(
                    "colour_sweep", ((ni + 1) // 2, nj, nk), length=ni, first=self._colours.of_first(s, NODES),
                    **common,
                )
            ]  # fmt: skip
        n, direction = turn % len(lines), lines[turn % len(lines)]
        ni, nj, _ = s.size
        across, others = _across(s.size, direction)
        ordered = AHEAD in self._program.signatures and direction != 0
        beside = [
            self._program.call(
                "line_right", nodes_of_lines(s, direction), columns=ni, rows=nj, direction=direction, across=across,
                others=others, parity=parity, values=s.array("line_values") if ordered else None,
                **self._of_lines(s, direction), **_of_sweep(s, colour), **read,
            )
            for parity in parities(direction)
        ]  # fmt: skip
        return [*beside, *self._line_sweep(s, n, colour, ordered)]

    def _line_sweep(self, s: BlockState, n: int, colour: int, ordered: bool = False) -> list[Call]:
        """Return the launches that solve the equations of the lines of one colour along the n-th direction of lines of
        the part. `ordered`: whether their right-hand sides have the order of the factors."""
        direction = self.lines[self._blocks.place[s.index]][n]
        across, others = _across(s.size, direction)
        common = self._of_lines(s, direction) | {
            **s.place, "across": across, "others": others, "colour": colour, "sv": s.variable_stride,
        }  # fmt: skip
        along = {
            "step": s.strides[direction], "direction": direction, "factors": self._factors(s, n),
            "update": s.array("sweep_update"),
        }  # fmt: skip
        half = (across + 1) // 2
        if AHEAD not in self._program.signatures:
            return [self._program.call("line_sweep", (half, others, 1), **along, **common)]
        values = s.array("line_values")
        ordered = ordered or direction == 0
        warps = -(-half * others // 32)
        sweep = self._program.call(AHEAD, (warps, 1, 1), ordered=int(ordered), values=values, **along, **common)
        if direction != 0:
            return [sweep]
        before, behind = (
            self._program.call(
                "turn_lines", (-(-s.size[0] // 32), -(-across // 64), others), way=way, update=along["update"],
                values=values, **common,
            )
            for way in (0, 1)
        )  # fmt: skip
        return [before, sweep, behind]

    def _of_lines(self, s: BlockState, direction: int) -> dict[str, Any]:
        return {"length": s.size[direction], "first": self._colours.of_first(s, direction)}

    def _local_copies(self, lists: Sequence[HaloList]) -> list[Call]:
        """Return the launches that fill ghosts of the update from nodes of parts of this process."""
        states, place, device = self._blocks.states, self._blocks.place, self._blocks.backend.to_device
        found = []
        for entry in lists:
            source, target = states[place[entry.donor]], states[place[entry.block]]
            first = _first_ghosts(target, entry.destination)
            if first.any():
                found.append(
                    self._program.call(
                        "copy_update", (int(first.sum()), 1, 1), to=device(entry.destination[first].astype(np.int32)),
                        giving=device(entry.source[first].astype(np.int32)), source_row=source.strides[1],
                        source_sv=source.variable_stride, source=source.array("sweep_update"),
                        target_row=target.strides[1], target_sv=target.variable_stride,
                        target=target.array("sweep_update"),
                    )
                )  # fmt: skip
        return found

    def _around_exchange(self, kernel: str, end: int) -> Callable[[], None]:
        """Return the launches that copy the update between the order of the sweeps and that of the exchange, for the
        nodes that are sent (`end` 0) or for the ghosts that are received (1)."""
        return self._program.prepare([
            self._program.call(
                kernel, (len(places[end]), 1, 1), p=places[end], row=s.strides[1], sv=s.variable_stride,
                update=s.array("sweep_update"), exchanged=s.array("update"),
            )
            for s, places in zip(self._blocks.states, self._exchanged, strict=True)
            if len(places[end])
        ])  # fmt: skip

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


def _of_sweep(s: BlockState, colour: int) -> dict[str, Any]:
    return {
        **s.place, "colour": colour, "sv": s.variable_stride, "blocks": s.array("implicit_blocks"),
        "update": s.array("sweep_update"),
    }  # fmt: skip


def nodes_of_lines(s: BlockState, direction: int) -> tuple[int, int, int]:
    """Return the extent (ni, nj, nk) of one launch of a kernel for sweeps over lines along `direction` (0, 1, 2). The
    nodes of one colour of the block `s` are every second node of a row along i, so that the extent along i is half of
    the number of nodes, rounded up. For lines along i a launch visits only every second row, so that the extent along j
    is halved, too, and a colour needs two launches (`parities`)."""
    ni, nj, nk = s.size
    return ((ni + 1) // 2, (nj + 1) // 2 if direction == 0 else nj, nk)


def parities(direction: int) -> range:
    """Return the numbers of the launches of a kernel that together visit all nodes of one colour, for sweeps over lines
    along `direction` (0, 1, 2). A launch visits every second node of a row along i (`nodes_of_lines`). Lines along i
    need two launches, for even and odd i, since all nodes of a row have one colour. Other lines need one, as colours
    alternate in a row."""
    return range(2 if direction == 0 else 1)


def directions_of(counts: Sequence[float] | np.ndarray, nodes: int) -> tuple[int, ...]:
    """Return the directions (0, 1, 2) of the grid lines over which sweeps are made in a block of `nodes` nodes: those
    along which at least a fixed fraction (`WORTH`) of its cells is thin. A cell is thin along a direction if its
    spectral radius there is several times (`STIFF`) each other one. `counts` (3,): the number of thin cells along each
    direction."""
    return tuple(d for d, count in enumerate(counts) if count >= WORTH * nodes)


def _exchanged(blocks: LocalBlocks, ghosts: Ghosts, lists: Sequence[HaloList]) -> list[tuple[Any, Any]]:
    """Return, for each part, the positions in a padded array, int32 on the device, of nodes whose values are exchanged,
    and of ghosts that exchanges fill. Interpolated ghosts may need any nodes."""
    found = []
    for s in blocks.states:
        ends = (
            [entry.source for entry in lists if entry.donor == s.index],
            [entry.destination for entry in lists if entry.block == s.index],
        )
        places = [np.unique(np.concatenate(end)) if end else np.zeros(0) for end in ends]
        if ghosts.patched.any:
            places = [np.arange(s.variable_stride)] * 2
        sent, filled = (blocks.backend.to_device(place.astype(np.int32)) for place in places)
        found.append((sent, filled))
    return found


def _first_ghosts(s: BlockState, places: np.ndarray) -> np.ndarray:
    """Return which of these positions of a padded array lie at most one node outside the part."""
    index = np.stack(np.unravel_index(places, s.shape))[::-1]
    beyond = [np.maximum(h - n, n - (h + size - 1)) for n, h, size in zip(index, s.halo, s.size, strict=True)]
    near: np.ndarray = np.max(beyond, axis=0) <= 1
    return near


def _across(size: Sequence[int], direction: int) -> tuple[int, int]:
    """Return the numbers of lines along a direction of a part, along the two other directions."""
    first, second = (n for d, n in enumerate(size) if d != direction)
    return first, second
