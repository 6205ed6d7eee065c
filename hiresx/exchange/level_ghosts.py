"""Exchange between levels of refinement: nodes of a coarser level are overwritten by values of the finer level, and
ghosts of tiles (boxes of nodes of a finer level) are interpolated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hiresx.decomposition import Domain
from hiresx.decomposition.level_donors import (
    Cells,
    CoincidentBoxes,
    Injection,
    LevelShares,
    coincident_boxes,
    level_shares,
)
from hiresx.decomposition.tile_ghosts import TileGhosts, first_places
from hiresx.device.arguments import address
from hiresx.device.call import Calls
from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.exchange.copied_boxes import CopiedBoxes
from hiresx.exchange.device_lists import lists_on_device
from hiresx.exchange.filled_lists import ListBoxes, filled_lists
from hiresx.exchange.patched_ghosts import FLUX, STATE, InterpolatedGhosts, PatchedExchange, Taken
from hiresx.grid.patched import PATCHED, WIDTH
from hiresx.mpi.communicator import Communicator

TAG = 5


class LevelGhosts(PatchedExchange):
    """Exchange between levels of refinement. It interpolates the ghost nodes at the ends of a level from nodes of the
    next coarser level, along the normal of the face first and then along the face. The interpolation has sixth order in
    smooth flow and is linear at discontinuities. It also sets the nodes under a finer level (`nodes`). `domain`: the
    grid and its levels. `states`: the arrays of the boxes of nodes that this rank computes. Collective."""

    def __init__(
        self, backend: Backend, program: Program, comm: Communicator, domain: Domain, states: Sequence[BlockState]
    ):  # fmt: skip
        patches = domain.whole.patches
        InterpolatedGhosts.__init__(
            self, backend, program, comm, domain, states,
            lambda: [n for n, patch in enumerate(patches) if patch.condition.type == PATCHED],
        )  # fmt: skip
        self._under = UnderFiner(backend, program, comm, domain, states)

    def _prepare(self, domain: Domain, found: Sequence[Any]) -> None:
        cut, rank = domain.cut, self._comm.rank
        owner = np.array([part.rank for part in cut.parts])
        ghosts = TileGhosts.of(domain.whole, cut, found)
        shares = level_shares(domain.whole, cut, ghosts)
        count, giver, taker = shares.count, owner[shares.part], owner[ghosts.part[shares.ghosts]]
        # Own contributions come first, then those of other ranks in their order. Every rank has all contributions in
        # the same order, so that both ends of a message agree.
        comes, leaves = np.flatnonzero(taker == rank), np.flatnonzero((giver == rank) & (taker != rank))
        row = np.zeros(len(count), int)  # of the first ghost of each box, in its buffer
        row[comes] = first_places(count[comes], np.where(giver[comes] == rank, -1, giver[comes]))
        row[leaves] = first_places(count[leaves], taker[leaves])
        self._held, self._leaving = int(count[comes].sum()), int(count[leaves].sum())
        self._own = int(count[comes][giver[comes] == rank].sum())
        self._into = _messages(giver[comes], row[comes] - self._own, count[comes], rank)
        self._out = _messages(taker[leaves], row[leaves], count[leaves], rank)
        self._real = np.dtype(self._states[0].real if self._states else np.float64)

        places = {state.index: n for n, state in enumerate(self._states)}
        gives = np.flatnonzero(giver == rank)
        gives = gives[np.lexsort((shares.part[gives], taker[gives] == rank))]
        cells = Cells.of(ghosts, shares, np.flatnonzero(owner[ghosts.part] == rank))
        points, contributions = cells.points, cells.contributions
        total, rows = int(points.sum()), int((points * contributions).sum())
        # The lists of all launches in one array: nodes, where their contributions begin, these, and places of shares.
        ends = [0, total, 2 * total + 1, 2 * total + 1 + rows, 2 * total + 1 + rows + int(count[gives].sum())]
        number, first = first_places(points), first_places(points * contributions)
        of, cell, share = cells.ghosts, cells.cell, cells.share
        strides = ghosts.strides[of]
        at_cell, at_share = cells.low - ghosts.low[of], cells.low[cell] - shares.low[share]
        turn = np.arange(len(cell)) - first_places(contributions)[cell]
        sizes, line = cells.high - cells.low, np.array([1, 0, 0])
        lists = filled_lists(
            self._backend, self._program, ends[-1],
            [
                ListBoxes(sizes, ghosts.place[of] + (strides * at_cell).sum(axis=1), strides, number),
                ListBoxes(points[:, None] ** line, first, contributions[:, None] * line, ends[1] + number),
                ListBoxes(np.ones((1, 3), int), rows, 0, ends[2] - 1),
                ListBoxes(
                    sizes[cell], row[share] + shares.start[share] + (shares.steps[share] * at_share).sum(axis=1),
                    shares.steps[share], ends[2] + first[cell] + turn, contributions[cell],
                ),
                ListBoxes(count[gives, None] ** line, row[gives], line, ends[3] + first_places(count[gives])),
            ],
        )  # fmt: skip
        to, begin, taken, given = (lists[a:b] for a, b in pairwise(ends))
        begins = [a for a, _ in _runs(ghosts.part[of] * DIRECTIONS + ghosts.direction[of])]
        self._taken = Taken(
            [places[p] for p in ghosts.part[of[begins]].tolist()], ghosts.direction[of[begins]].tolist(),
            [*number[begins].tolist(), total], {"to": to, "begin": begin, "rows": taken},
        )  # fmt: skip
        self._gives = self._boxed_gives(places, ghosts, shares, gives, taker == rank, given)

    def _boxed_gives(
        self, places: Mapping[int, int], ghosts: TileGhosts, shares: LevelShares, gives: np.ndarray, local: np.ndarray,
        to: Any,
    ) -> "list[_BoxedGive]":  # fmt: skip
        """Return the contributions `gives` of parts of this rank, with their data on the device: those to ghosts of
        other ranks, then those to ghosts of this rank. `places`: the place of each part in the list of parts. `local`
        (n,): whether each contribution is one to ghosts of this rank. `to`: the places of the contributions in their
        buffers."""
        part, d, count = shares.part[gives], ghosts.direction[shares.ghosts[gives]], shares.count[gives]
        launches = _runs(local[gives].astype(int))
        begins = first_places(np.array([len(line.start) for line in shares.lines], int))
        start = np.concatenate([*(line.start for line in shares.lines), np.zeros(1, int)])
        weights = np.concatenate([np.zeros((2, WIDTH, 0)), *(line.weights for line in shares.lines)], axis=-1)
        sizes = shares.high[gives] - shares.low[gives]
        column = begins[shares.line[gives]] + shares.columns[gives]
        ends = np.stack([column, column + sizes], axis=-1).ravel()
        least, most = (of.reduceat(start, ends)[::2].reshape(-1, 3) for of in (np.minimum, np.maximum))
        width = most + shares.widths[gives] - least
        face, every = np.array([[1, 2], [0, 2], [0, 1]])[d], np.arange(len(gives))
        place = np.array([places[p] for p in part.tolist()], int)
        strides = np.array([s.strides for s in self._states], int).reshape(-1, 3)[place]
        origin = np.array([s.origin for s in self._states], int)[place] + (strides * shares.corner[gives]).sum(axis=1)
        along = (strides[:, :, None] * shares.turn[gives]).sum(axis=1)
        sizes_of_face, columns, widths, first, steps = (
            np.take_along_axis(of, face, axis=1) for of in (sizes, column, width, least, along)
        )
        origin += (first * steps).sum(axis=1)
        outwards = ghosts.side[shares.ghosts[gives]]
        layer = column[every, d] + np.where(outwards > 0, 0, sizes[every, d] - 1)
        values = sizes[every, d] * widths.prod(axis=1)
        ahead = np.stack([first_places(count), first_places(values)], axis=1)
        for a, b in launches:
            ahead[a:b] -= ahead[a].copy()
        steps = np.column_stack([along[every, d], steps])
        table = np.column_stack([ahead, steps, origin, layer, outwards, place, sizes_of_face, columns, widths, first])
        [[boxes, start]] = lists_on_device(self._backend, [[table, start]])
        lines = {
            "columns": len(start) - 1, "start": start, "weights": self._backend.to_device(weights.astype(self._real)),
        }  # fmt: skip
        number, width = np.append(first_places(count), count.sum()), table.shape[1]
        return [
            _BoxedGive(
                int(values[a:b].sum()), to[number[a] : number[b]],
                {"box": boxes[width * a : width * b], "boxes": b - a, **lines}, bool(local[gives[a]]),
            )
            for a, b in launches
        ]  # fmt: skip

    def _give_calls(self, what: str, width: int, outgoing: Any, incoming: Any) -> Calls:
        call, layers, shares = self._program.call, [], []
        kind = {STATE: "", FLUX: "flux_"}.get(what, "field_")
        variables = {"variables": width} if kind == "field_" else {}
        ends = width * np.cumsum([0, *(g.values for g in self._gives)])
        between = self._backend.empty((max(int(ends[-1]), 1),), str(self._real))
        arrays = (
            [(s.metrics, flux) for s, flux in zip(self._states, self._viscous[1], strict=True)]
            if what == FLUX
            else [(s.q if what == STATE else s.array(what),) for s in self._states]
        )
        table = [
            [*map(address, of), *[0] * (2 - len(of)), s.variable_stride] + [WIDTH if n > 1 else 1 for n in s.size[1:]]
            for s, of in zip(self._states, arrays, strict=True)
        ]
        part = self._backend.to_device(np.array(table, np.int64).ravel())
        touched = [(array, False) for of in arrays for array in of]
        for g, (first, last) in zip(self._gives, pairwise(ends.tolist()), strict=True):
            common = {"n": g.values, **g.lists, **variables, "layers": between[first:last]}
            layers.append(call(f"level_{kind}layers", (g.values, 1, 1), **common, part=part)._replace(touched=touched))
            buffer = incoming if g.local else outgoing
            shares.append(call(f"level_{kind}shares", (len(g.to), 1, 1), **common, to=g.to, buffer=buffer))
        return [layers, shares]

    def close(self) -> None:
        """Free the two MPI communicators of the exchange between levels of refinement. Collective."""
        super().close()
        self._under.close()

    def field(self, name: str) -> None:
        """Interpolate the field `name` at the ghost nodes beyond the borders of refined regions, from nodes of the next
        coarser level of refinement. This includes fields with one component for each index direction, since both levels
        have the same index directions. Collective."""
        if self.any:
            self._exchange(name)

    def nodes(self) -> None:
        """Copy the state from nodes of finer levels of refinement to the coincident nodes of coarser levels.
        Collective."""
        self._under.take()


@dataclass(frozen=True, eq=False)
class _BoxedGive:
    """Contributions of the parts of this rank to boxes of ghosts: of this rank (`local`), or of other ranks. `values`:
    the number of values between the kernels of kernels/level_ghosts.h. `to`: the places of the ghosts in the buffer.
    `lists`: arguments of both kernels."""

    values: int
    to: Any
    lists: Mapping[str, Any]
    local: bool


def _runs(numbers: np.ndarray) -> list[tuple[int, int]]:
    """Return the first place and that after the last of each run of equal numbers, none of which is negative."""
    return [*pairwise([*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(numbers)])] if len(numbers) else []


def _messages(other: np.ndarray, first: np.ndarray, count: np.ndarray, rank: int) -> dict[int, tuple[int, int]]:
    """Return the place of the first contribution and the number of contributions in the message to or from each other
    rank. `other`, `first`, `count` (n,): the rank, the place and the number of some of these. `rank`: this rank."""
    return {
        n: (int(first[other == n].min()), int(count[other == n].sum())) for n in np.unique(other).tolist() if n != rank
    }


class UnderFiner:
    """Exchange that copies the state from nodes of finer levels to the coincident nodes of coarser levels (injection).
    Between ranks the values pass through the memory of the host. `domain`: the grid and its levels. `states`: the
    arrays of the boxes of nodes that this rank computes. Collective."""

    def __init__(
        self, backend: Backend, program: Program, comm: Communicator, domain: Domain, states: Sequence[BlockState]
    ):  # fmt: skip
        self._backend, self._program = backend, program
        self._states = {state.index: state for state in states}
        owner, rank = [part.rank for part in domain.cut.parts], comm.rank
        with comm.together():
            boxes = coincident_boxes(domain.whole, domain.cut)
            self._copy = program.prepare(self._copies(boxes, np.array(owner) == rank))
            found = boxes.injections() if comm.size > 1 else []
            # Both ends of a message use the same order of its entries.
            self._out = self._messages(found, owner, rank, lambda e: (owner[e.donor], owner[e.block]))
            self._into = self._messages(found, owner, rank, lambda e: (owner[e.block], owner[e.donor]))
        self._mpi_comm = comm.mpi_comm.Dup() if comm.size > 1 else None

    def _arrays(self, index: int) -> Iterator[tuple[Any, int]]:
        """Return the fields of a part that hold its state, each with its number of variables."""
        state = self._states[index]
        for array in (state.q, state.carry):
            if array is not None:
                yield array, len(array)

    def _copies(self, boxes: CoincidentBoxes, own: np.ndarray) -> list[Call]:
        """Return the launches that copy within this rank, one for each field that holds a state. `own` (n,): whether
        this rank has each of the n parts."""
        here, nodes = own[boxes.block] & own[boxes.donor], boxes.nodes
        ends = np.stack([boxes.block, boxes.donor])[:, here]
        if not ends.size:
            return []
        signs = np.ones(ends.shape[1], int)
        copied = CopiedBoxes(ends, nodes.sizes[here], nodes.first[:, here], nodes.steps[:, here], signs)
        arrays = {n: [*self._arrays(n)] for n in np.unique(ends).tolist()}

        def calls(turn: int, variables: int) -> list[Call]:
            return copied.calls(
                self._backend, self._program, "copy_halo", variables, lambda n: arrays[n][turn][0],
                lambda n: self._states[n].variable_stride,
            )  # fmt: skip

        return [call for turn, (_, width) in enumerate(arrays[int(ends[0, 0])]) for call in calls(turn, width)]

    def _messages(
        self, found: Sequence[Injection], owner: Sequence[int], rank: int, ends: Callable[[Injection], tuple[int, int]]
    ) -> list[tuple[int, Any, Callable[[], None]]]:
        """Yield, for each message of this rank, the rank at the other end, the buffer, and the launches that pack or
        unpack it."""
        made = []
        mine = [e for e in found if ends(e)[0] == rank and ends(e)[1] != rank]
        for other in sorted({ends(e)[1] for e in mine}):
            entries = [e for e in mine if ends(e)[1] == other]
            own = [e.donor if owner[e.donor] == rank else e.block for e in entries]
            widths = [sum(variables for _, variables in self._arrays(n)) for n in own]
            kind = str(self._states[own[0]].q.dtype)
            size = sum(len(e.to) * width for e, width in zip(entries, widths, strict=True))
            buffer, calls, first = self._backend.zeros((size,), kind), [], 0
            for e, n in zip(entries, own, strict=True):
                for array, variables in self._arrays(n):
                    part = buffer[first : first + len(e.to) * variables]
                    calls.append(self._message_call(e, n, owner[e.donor] == rank, part, array, variables))
                    first += len(e.to) * variables
            made.append((other, buffer, self._program.prepare([calls])))
        return made

    def _message_call(self, e: Injection, n: int, leaves: bool, part: Any, array: Any, variables: int) -> Any:
        points, stride = np.arange(len(e.to), dtype=np.int32), self._states[n].variable_stride
        device, call = self._backend.to_device, self._program.call
        if leaves:
            return call(
                "pack_halo", (len(points), 1, 1), to=device(points), giving=device(e.source), source=array,
                source_sv=stride, buffer=part, variables=variables, sign=1.0,
            )  # fmt: skip
        return call(
            "unpack_halo", (len(points), 1, 1), to=device(e.to), giving=device(points), buffer=part,
            variables=variables, target=array, target_sv=stride,
        )  # fmt: skip

    def take(self) -> None:
        """Copy the present state to all nodes of coarser levels of refinement that coincide with nodes of finer levels,
        from the finest level that has the node. Collective."""
        requests, received = [], []
        if self._mpi_comm is not None:
            for other, buffer, _ in self._into:
                host = np.empty(buffer.shape, buffer.dtype)
                requests.append(self._mpi_comm.Irecv(host, other, TAG))
                received.append(host)
            held = []
            for other, buffer, pack in self._out:
                pack()
                held.append(self._backend.to_host(buffer))
                requests.append(self._mpi_comm.Isend(held[-1], other, TAG))
        self._copy()
        for request in requests:
            request.Wait()
        for (_, buffer, unpack), host in zip(self._into, received, strict=True):
            self._backend.copy(buffer, self._backend.to_device(host))
            unpack()

    def close(self) -> None:
        """Free the MPI communicator of the exchange. Collective."""
        if self._mpi_comm is not None:
            self._mpi_comm.Free()
