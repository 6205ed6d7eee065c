"""Exchange between levels of refinement: nodes of a coarser level are overwritten by values of the finer level, and
ghosts of tiles are interpolated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hiresx.base.arrays import Size
from hiresx.base.kept import Kept
from hiresx.decomposition import Domain
from hiresx.decomposition.level_donors import Injection, LevelRows, Line, injections, level_rows
from hiresx.decomposition.tile_ghosts import TileGhosts, find_level_donors, tile_targets
from hiresx.device.call import Calls
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.exchange.patched_ghosts import FLUX, STATE, InterpolatedGhosts, PatchedExchange
from hiresx.exchange.rows import lists_on_device
from hiresx.grid.patched import WIDTH
from hiresx.mpi.communicator import Communicator

TAG = 5


class LevelGhosts(PatchedExchange):
    """Fills the ghosts of tiles that lie between nodes of the next coarser level. They are interpolated along the
    normal of their face first and along the face then, with sixth order in smooth flow and linearly at discontinuities.
    `domain`: the grid and its levels. `states`: the parts of this rank. `kept`: cached results of an earlier solver."""

    def __init__(
        self, backend: Backend, program: Program, comm: Communicator, domain: Domain, states: Sequence[BlockState],
        kept: Kept,
    ):  # fmt: skip
        InterpolatedGhosts.__init__(
            self, backend, program, comm, domain, states, lambda: find_level_donors(domain.whole)
        )
        self._under = UnderFiner(backend, program, comm, domain, states, kept)

    def _shares(self, domain: Domain, found: Sequence[TileGhosts]) -> Iterator[LevelRows]:
        return level_rows(domain.whole, domain.cut, found)

    def _targets(self, domain: Domain, found: Sequence[TileGhosts]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tile_targets(domain.whole, domain.cut, found)

    def _contributions(self, of: Sequence[tuple[int, Any, np.ndarray, np.ndarray, bool]]) -> "Sequence[_BoxedGive]":
        lines: dict[Line, int] = {}  # the first column of each
        columns = 0
        for line in (line for _, share, *_ in of for line in share.lines):
            if line not in lines:
                lines[line] = columns
                columns += len(line.start)
        boxed = [_boxes(self._states[place], share, mine, to, lines) for place, share, mine, to, _ in of]
        start = np.concatenate([np.zeros(0, int), *(line.start for line in lines)])
        weights = np.concatenate([np.zeros((2, WIDTH, 0)), *(line.weights for line in lines)], axis=-1)
        *lists, (first,) = lists_on_device(self._backend, [*([to, table] for to, table, _ in boxed), [start]])
        along = {"columns": columns, "start": first, "weights": self._backend.to_device(weights.astype(self._real))}
        return [
            _BoxedGive(place, share.widths, values, to, {"box": box, "boxes": len(table), **along}, local)
            for (place, share, _, _, local), (_, table, values), (to, box) in zip(of, boxed, lists, strict=True)
        ]

    def _give_calls(self, what: str, width: int, outgoing: Any, incoming: Any) -> Calls:
        call, layers, shares = self._program.call, [], []
        kind = {STATE: "", FLUX: "flux_"}.get(what, "field_")
        variables = {"variables": width} if kind == "field_" else {}
        ends = width * np.cumsum([0, *(g.values for g in self._gives)])
        between = self._backend.empty((max(int(ends[-1]), 1),), str(self._real))
        for g, (first, last) in zip(self._gives, pairwise(ends.tolist()), strict=True):
            s = self._states[g.place]
            given: dict[str, Any]
            if what == STATE:
                given = {"q": s.q}
            elif what == FLUX:
                _, wj, wk = g.widths
                given = {"wj": wj, "wk": wk, "m": s.metrics, "flux": self._viscous[1][g.place]}
            else:
                given = {"field": s.array(what)}
            common = {"n": g.values, **g.lists, **variables, "layers": between[first:last]}
            strides = {"sj": s.strides[1], "sk": s.strides[2], "sv": s.variable_stride}
            layers.append(call(f"level_{kind}layers", (g.values, 1, 1), **common, **strides, **given))
            buffer = incoming if g.local else outgoing
            shares.append(call(f"level_{kind}shares", (len(g.to), 1, 1), **common, to=g.to, buffer=buffer))
        return [layers, shares]

    def close(self) -> None:
        super().close()
        self._under.close()

    def field(self, name: str) -> None:
        """Fill the ghosts of the field `name` of tiles, whose directions are those of the coarser level."""
        if self.any:
            self._exchange(name)

    def nodes(self) -> None:
        """Set the nodes that lie under a finer level to the values of that level. Collective."""
        self._under.take()


@dataclass(frozen=True, eq=False)
class _BoxedGive:
    """Contributions of one part of this rank to boxes of ghosts. `values`: the number of values between the kernels of
    kernels/level_ghosts.h. `to`: the places of the ghosts in the buffer. `lists`: arguments of both kernels."""

    place: int
    widths: Size
    values: int
    to: Any
    lists: Mapping[str, Any]
    local: bool


def _boxes(
    state: BlockState, share: LevelRows, mine: np.ndarray, to: np.ndarray, lines: Mapping[Line, int]
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the places in the buffer of the contributions number `mine` of `share`, box by box, the rows `level_box`
    of kernels/level_ghosts.h, and the number of values between its kernels. `to`: the places by contribution. `lines`:
    the first column of each line."""
    rows, order, ghosts, values = [], [], 0, 0
    for box, places in share.boxes_of(mine):
        face = [d for d in range(3) if d != box.normal]
        starts = [share.lines[d].start[box.columns[d]] for d in face]
        first = [start.min() for start in starts]
        width = [start.max() + share.widths[d] - lo for d, start, lo in zip(face, starts, first, strict=True)]
        columns = [lines[line] + own for line, own in zip(share.lines, box.columns, strict=True)]
        layers = columns[box.normal]
        origin = state.origin + sum(lo * state.strides[d] for d, lo in zip(face, first, strict=True))
        step = 1 if layers[-1] >= layers[0] else -1
        of_face = [len(columns[d]) for d in face] + [columns[d][0] for d in face] + width + first
        rows.append([ghosts, values, box.normal, origin, layers[0], step, *of_face])
        order.append(places)
        ghosts, values = ghosts + len(places), values + len(layers) * width[0] * width[1]
    return to[np.concatenate(order)], np.array(rows), values


class UnderFiner:
    """The copies of the state from nodes of finer levels to nodes of coarser levels at the same points. Between ranks
    they go through the memory of the host. `domain`: the grid and its levels. `states`: the parts of this rank. `kept`:
    cached results of an earlier solver. Collective."""

    def __init__(
        self, backend: Backend, program: Program, comm: Communicator, domain: Domain, states: Sequence[BlockState],
        kept: Kept,
    ):  # fmt: skip
        self._backend, self._program = backend, program
        self._states = {state.index: state for state in states}
        owner, rank = [part.rank for part in domain.cut.parts], comm.rank
        with comm.together():
            found = injections(domain.whole, domain.cut, kept)
            here = [e for e in found if owner[e.donor] == owner[e.block] == rank]

            def copies_of(missing: list[int]) -> list[list[Any]]:
                lists = lists_on_device(backend, [[here[n].to, here[n].source] for n in missing])
                return [[*self._copies(here[n], *own)] for n, own in zip(missing, lists, strict=True)]

            # Launches of parts that stay are taken from the previous solver.
            copies = kept.together(
                [(("copies", e.pairs), (self._states[e.donor], self._states[e.block])) for e in here], copies_of
            )
            self._copy = program.prepare([[call for calls in copies for call in calls]])
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

    def _copies(self, e: Injection, to: Any, giving: Any) -> Iterator[Any]:
        ends = zip(self._arrays(e.donor), self._arrays(e.block), strict=True)
        for (source, variables), (target, _) in ends:
            yield self._program.call(
                "copy_halo", (len(e.to), variables, 1), to=to, giving=giving, source=source,
                source_sv=self._states[e.donor].variable_stride, target=target,
                target_sv=self._states[e.block].variable_stride, sign=1.0,
            )  # fmt: skip

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
        """Copy the present state of the finer levels to the nodes under them."""
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
        """Free the resources of MPI. Collective."""
        if self._mpi_comm is not None:
            self._mpi_comm.Free()
