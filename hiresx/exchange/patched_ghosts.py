"""Ghosts whose values are interpolated between nodes: ghosts of patched faces (faces that touch other blocks without
common nodes), and ghosts behind walls that grid lines meet obliquely. Every part of the grid computes its contribution
to the interpolation, and the process that owns the ghost adds the contributions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Domain, mirror_points, mirror_rows, patched_donors
from hiresx.device.arguments import address
from hiresx.device.call import Call, Calls
from hiresx.device.fields import declared_field
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS, GAS
from hiresx.exchange.device_lists import lists_on_device
from hiresx.mpi.communicator import Communicator
from hiresx.rhs.terms.body_force import acceleration

# Quantities that are exchanged: the state, viscous fluxes, or the field of a term, by its name.
STATE, FLUX = "state", "fluxes"
TAG = 7
# Data of all ghosts of a patch.
Located = patched_donors.PatchedDonors | mirror_points.MirrorSources
# The launches that pack and unpack, and the buffers: of outgoing messages, of incoming messages, and those in host
# memory.
_Prepared = tuple[Callable[[], None], Callable[[], None], Any, Any, np.ndarray]


@dataclass(frozen=True, eq=False)
class _Give:
    """Contributions of one part of this rank, on the device: those to ghosts of this rank, in the buffer `incoming`, or
    those to ghosts of other ranks, in `outgoing`."""

    place: int
    count: int
    widths: tuple[int, int, int]
    start: Any
    to: Any
    weights: Any
    local: bool


@dataclass(frozen=True, eq=False)
class _Take:
    """The launch of `kernel`, with the further arguments `extra`, that computes `count` ghosts behind a wall of one box
    of nodes. `place`: the position of the box among the boxes of this rank. `lists`: as in `Taken`."""

    place: int
    count: int
    kernel: str
    extra: dict[str, Any]
    lists: dict[str, Any]


class Taken(NamedTuple):
    """The ghosts that one launch computes, each as a sum of contributions, in n groups. The ghosts of a group lie
    behind faces of one box of nodes, normal to one direction. `places`: the positions of the n boxes among the boxes of
    this rank. `directions`: the n directions, 0, 1 or 2. `ends`: the number of the first ghost of each group, then the
    number of all ghosts. `lists`: arrays on the device by name: `to`, the flat index of each ghost in the box's array
    with ghosts; `rows`, the positions of the contributions in a buffer, sorted by ghost; `begin`, the place in `rows`
    of the first contribution to each ghost, and then the length of `rows`."""

    places: list[int]
    directions: list[int]
    ends: list[int]
    lists: dict[str, Any]


class InterpolatedGhosts(ABC):
    """Base class of the exchanges that fill ghost nodes by interpolation of the flow at positions between nodes.
    `domain`: the grid and its division. `states`: the arrays of the boxes of nodes of this rank. `found`: a function
    that is called on rank 0 and returns the data of the ghosts, such as their positions; `located` has these data on
    all ranks. `any`: whether there are such ghosts.

    Contributions of several boxes to a ghost are added in the order of the boxes. Results of the same partition are
    therefore bit-identical; results of another partition differ by the round-off of these sums. All calls are
    collective."""

    def __init__(
        self,
        backend: Backend,
        program: Program,
        comm: Communicator,
        domain: Domain,
        states: Sequence[BlockState],
        found: Callable[[], Sequence[Any]],
    ):
        self._backend, self._program, self._comm, self._states = backend, program, comm, states
        with comm.together():
            given = found() if comm.root else None
        self.located: Sequence[Any] = comm.bcast(given)
        self.any = bool(self.located)
        self.between_ranks = False
        self._mpi_comm: Any = None
        self._viscous: Any = None
        if not self.any:
            return
        with comm.together():
            self._prepare(domain, self.located)
        self._mpi_comm = comm.mpi_comm.Dup() if comm.size > 1 else None
        # Whether the host transfers values between ranks.
        self.between_ranks = bool(comm.max([float(bool(self._out or self._into))])[0])
        self._made: dict[str, _Prepared] = {}

    def _prepare(self, domain: Domain, found: Sequence[Any]) -> None:
        cut, rank = domain.cut, self._comm.rank
        places = {state.index: n for n, state in enumerate(self._states)}
        owner = np.array([part.rank for part in cut.parts])
        part, flat, along = patched_donors.targets(domain.whole, domain.cut, found)
        counts = np.array([f.count for f in found])
        ghosts = np.cumsum([0, *counts])
        # for each place, the ghost whose flow is taken there
        of = np.repeat(np.arange(ghosts[-1]), np.repeat([f.per for f in found], counts))
        taker = owner[part[of]]
        self._real = real = np.dtype(self._states[0].real if self._states else np.float64)

        # Every rank processes all contributions in the same order, so that both ends of a message agree.
        sent = {other: 0 for other in range(self._comm.size)}
        received = dict(sent)
        gives, comes = [], []
        for share in self._shares(domain, found):
            giver, takers = int(owner[share.part]), taker[share.ghost] if len(sent) > 1 else None
            takes_all = np.arange(len(share.ghost))
            by_taker = {rank: takes_all} if takers is None else {n: np.flatnonzero(takers == n) for n in sent}
            for other, mine in by_taker.items() if giver == rank else ():
                if mine.size:
                    gives.append((share, mine, other, sent[other] + takes_all[: len(mine)]))
                    sent[other] += len(mine)
            mine = by_taker[rank]
            if mine.size:
                turn = None if share.turn is None else share.turn[mine]
                comes.append((giver, share.ghost[mine], received[giver] + takes_all[: len(mine)], turn))
                received[giver] += len(mine)
        # Own contributions come first, then those of other ranks in their order.
        others = [other for other in range(self._comm.size) if other != rank]
        into, out = {rank: 0}, {}
        held, leaving = received[rank], 0
        for other in others:
            into[other], out[other] = held, leaving
            held, leaving = held + received[other], leaving + sent[other]
        self._into = {o: (into[o] - received[rank], received[o]) for o in others if received[o]}
        self._out = {o: (out[o], sent[o]) for o in others if sent[o]}
        self._own, self._held, self._leaving = received[rank], held, leaving

        device = self._backend.to_device
        self._gives = self._contributions(
            [(places[s.part], s, mine, n + out.get(other, 0), other == rank) for s, mine, other, n in gives]
        )
        ghost = np.concatenate([g for _, g, _, _ in comes]) if comes else np.zeros(0, int)
        row = np.concatenate([into[giver] + n for giver, _, n, _ in comes]) if comes else np.zeros(0, int)
        order = np.argsort(ghost, kind="stable")
        ghost, row = ghost[order], row[order]
        turns = [turn for *_, turn in comes if turn is not None]
        turned = np.concatenate(turns)[order] if turns else None
        takes, numbers = [], []
        # The contributions to each place are consecutive.
        starts = np.concatenate([[0], np.cumsum(np.bincount(ghost, minlength=len(of)))])
        # One launch for the ghosts of a part along a direction, for all faces except walls, which have their own.
        apart = [n + 1 if isinstance(entry, mirror_points.MirrorSources) else 0 for n, entry in enumerate(found)]
        group = 3 * (len(found) + 1) * part + 3 * np.repeat(apart, np.diff(ghosts)) + along
        group[owner[part] != rank] = -1
        # The ghosts of a launch follow each other in `chosen`, and the contributions to them in `taken`.
        chosen, ends = _by_number(group)
        points, ends_of_points = (chosen, ends) if len(of) == len(group) else _by_number(group[of])
        count = starts[points + 1] - starts[points]
        behind = np.concatenate([[0], np.cumsum(count)])
        taken = np.repeat(starts[points] - behind[:-1], count) + np.arange(behind[-1])
        flat, rows = flat[chosen], row[taken]
        if not any(apart):
            [[to, begin, rows]] = lists_on_device(self._backend, [[flat, behind, rows]])
            own = chosen[ends[:-1]]
            self._taken = Taken(
                [places[p] for p in part[own].tolist()], along[own].tolist(), ends,
                {"to": to, "begin": begin, "rows": rows},
            )  # fmt: skip
            return
        for (a, b), (c, d) in zip(pairwise(ends), pairwise(ends_of_points), strict=True):
            own, first, last = chosen[a], behind[c], behind[d]
            n = int(np.searchsorted(ghosts, own, "right")) - 1
            entry, p = found[n], int(part[own])
            numbers.append((flat[a:b], behind[c : d + 1] - first, rows[first:last]))
            extra: dict[str, Any] = {}
            if turned is not None:
                turn = np.ascontiguousarray(turned[taken[first:last]].reshape(-1, 9).T, dtype=real)
                extra |= {"shares": int(last - first), "turn": device(turn)}
            if isinstance(entry, mirror_points.MirrorSources) and entry.geometry is not None:
                geometry = np.ascontiguousarray(entry.geometry[:, chosen[a:b] - ghosts[n]], dtype=real)
                extra |= {"n": b - a, "geometry": device(geometry)}
                extra |= self._acceleration(self._states[places[p]])
            kernel = "mirrored_ghosts" if entry.geometry is None else "curved_ghosts"
            takes.append((places[p], b - a, kernel, extra))
        lists = lists_on_device(self._backend, numbers)
        self._takes = [
            _Take(*take, dict(zip(("to", "begin", "rows"), own, strict=True)))
            for take, own in zip(takes, lists, strict=True)
        ]

    def _contributions(self, of: Sequence[tuple[int, Any, np.ndarray, np.ndarray, bool]]) -> Sequence[Any]:
        """Return contributions of parts of this rank, with their data on the device. `of`: for each the place of the
        part in `states`, the entry of `_shares`, the numbers in it, their places in the buffer, and whether this is the
        buffer of ghosts of this rank."""
        lists = lists_on_device(self._backend, [[share.start[mine], to] for _, share, mine, to, _ in of])
        weights = [
            self._backend.to_device(share.weights_of(mine).reshape(36, -1).astype(self._real, copy=False))
            for _, share, mine, *_ in of
        ]
        return [
            _Give(place, len(mine), share.widths, start, places, own, local)
            for (place, share, mine, _, local), (start, places), own in zip(of, lists, weights, strict=True)
        ]

    def _acceleration(self, state: BlockState) -> dict[str, Any]:
        """Return the arguments of the kernel of curved walls: the body force."""
        return {}

    @abstractmethod
    def _shares(self, domain: Domain, found: Sequence[Any]) -> Iterator[Any]:
        """Return the contributions of all parts, in their order, to the flow at the places of all entries of `found`,
        as `patched_donors.Rows` or in another form that `_contributions` and `_give_calls` know."""

    def state(self) -> None:
        """Set the conservative variables at the ghost nodes that this object fills by interpolation from their present
        values at the nodes. Collective."""
        if self.any:
            self._exchange(STATE)

    def close(self) -> None:
        """Free the MPI communicator of the exchange. Collective."""
        if self._mpi_comm is not None:
            self._mpi_comm.Free()

    def _exchange(self, what: str) -> None:
        width = self._width(what)
        if what not in self._made:
            self._made[what] = self._launches(what, width)
        give, take, outgoing, incoming, host = self._made[what]
        give()
        if self._mpi_comm is not None:
            self._carry(self._mpi_comm, width, outgoing, incoming, host)
        take()

    def _width(self, what: str) -> int:
        """Return the number of reals of a contribution: for the state the sixth-order and the linear value, for the
        viscous fluxes vectors."""
        if what not in (STATE, FLUX):
            return len(self._states[0].array(what)) if self._states else 1  # a rank without parts has no contributions
        system = self._states[0].equations if self._states else GAS
        return 2 * system.variables if what == STATE else len(system.gradients) * DIRECTIONS

    def _carry(self, mpi_comm: Any, width: int, outgoing: Any, incoming: Any, host: np.ndarray) -> None:
        """Transfer messages through the memory of the host."""
        tag = TAG + width
        requests = [
            mpi_comm.Irecv(host[width * a : width * (a + n)], other, tag) for other, (a, n) in self._into.items()
        ]
        if self._out:
            whole = self._backend.to_host(outgoing)
            requests += [
                mpi_comm.Isend(whole[width * a : width * (a + n)], other, tag) for other, (a, n) in self._out.items()
            ]
        for request in requests:
            request.Wait()
        if self._into:
            self._backend.copy(incoming[width * self._own :], self._backend.to_device(host))

    def _launches(self, what: str, width: int) -> _Prepared:
        """Return the prepared launches of one exchange, and its buffers."""
        zeros, real = self._backend.zeros, str(self._real)
        outgoing = zeros((max(width * self._leaving, 1),), real)
        incoming = zeros((max(width * self._held, 1),), real)
        host = np.zeros(width * (self._held - self._own), self._real)
        # Contributions have their own positions in a buffer, and ghosts have theirs in a field.
        give, take = self._give_calls(what, width, outgoing, incoming), self._take_calls(what, width, incoming)
        return self._program.prepare(give), self._program.prepare([take]), outgoing, incoming, host

    def _take_calls(self, what: str, width: int, incoming: Any) -> list[Call]:
        """Return the launch that computes the ghosts of one exchange from the contributions."""
        places, directions, ends, lists = self._taken
        if not places:
            return []
        states, areas = [self._states[place] for place in places], list[Any]()
        if what == FLUX:
            arrays = [self._viscous[0][place][d] for place, d in zip(places, directions, strict=True)]
            areas = [s.areas[d] for s, d in zip(states, directions, strict=True)]
        else:
            arrays = [s.q if what == STATE else s.array(what) for s in states]
        rows = [ends[:-1], [*map(address, arrays)], [*map(address, areas)] or [0] * len(places)]
        table = np.array([*rows, [s.variable_stride for s in states]], np.int64).T
        variables = {} if what in (STATE, FLUX) else {"variables": width}
        kernel = {STATE: "patched_ghosts", FLUX: "patched_fluxes"}.get(what, "patched_field_ghosts")
        call = self._program.call(
            kernel, (ends[-1], 1, 1), **lists, buffer=incoming, parts=len(places),
            part=self._backend.to_device(table.ravel()), **variables,
        )  # fmt: skip
        touched = {id(array): (array, True) for array in arrays} | {id(area): (area, False) for area in areas}
        return [call._replace(touched=[*touched.values()])]

    def _give_calls(self, what: str, width: int, outgoing: Any, incoming: Any) -> Calls:
        """Return the launches that compute the contributions of one exchange."""
        call, give = self._program.call, []
        for g in self._gives:
            s = self._states[g.place]
            extent, (wi, wj, wk) = (g.count, 1, 1), g.widths
            box = {
                "n": g.count, "wi": wi, "wj": wj, "wk": wk, "sj": s.strides[1], "sk": s.strides[2],
                "sv": s.variable_stride, "giving": g.start, "to": g.to, "weights": g.weights,
                "buffer": incoming if g.local else outgoing,
            }  # fmt: skip
            if what == STATE:
                give.append(call("patched_state", extent, **box, q=s.q))
            elif what != FLUX:
                give.append(call("patched_field", extent, **box, variables=width, field=s.array(what)))
            else:
                give.append(call("patched_flux", extent, **box, m=s.metrics, flux=self._viscous[1][g.place]))
        return [give]


def _by_number(numbers: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the positions in `numbers` of all entries that are not negative, in ascending order of the entries, and
    the places in this array at which another entry begins, followed by its length."""
    order = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers < 0) :]
    changes = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    return order, [*changes.tolist(), len(order)]


class PatchedExchange(InterpolatedGhosts):
    """Exchange that interpolates the ghosts behind all patched faces (which touch other blocks without common nodes).
    `domain`: the grid and its decomposition. `states`: the arrays of the boxes of nodes of this rank. Raises
    HiresxError, on all ranks, for a node of a face behind which there is no other block."""

    def __init__(
        self, backend: Backend, program: Program, comm: Communicator, domain: Domain, states: Sequence[BlockState]
    ):  # fmt: skip
        super().__init__(
            backend, program, comm, domain, states, lambda: patched_donors.find_donors(domain.whole, domain.extended)
        )

    def _shares(self, domain: Domain, found: Sequence[Any]) -> Iterator[Any]:
        donor, xi = np.concatenate([f.donor for f in found]), np.concatenate([f.xi for f in found])
        maps = patched_donors.shape_maps(domain.whole)
        return patched_donors.interpolation_rows(domain.whole, domain.cut, maps, donor, xi)

    def nodes(self) -> None:
        """Do nothing, since the nodes of patched faces need no values from other blocks. (Solvers call this method
        before the ghosts are filled. The class for refined grids, `LevelGhosts`, sets nodes here.)"""

    def field(self, name: str) -> None:
        """Interpolate the field `name` at the ghost nodes behind patched faces (which touch other blocks without common
        nodes) from nodes of these blocks. Does nothing for fields with one component for each index direction, since
        the index directions of the blocks may differ. Collective."""
        if self.any and not declared_field(name).directed:
            self._exchange(name)

    def fluxes(self, fluxes: Sequence[Sequence[Any]], work: Sequence[Any]) -> None:
        """Interpolate the viscous fluxes at the ghosts behind patched faces (which touch other blocks without common
        nodes). `fluxes[n][d]`: the flux along index direction d in box number n among the boxes of nodes of this rank.
        `work[n]`: the array that contains the fluxes of box n along all directions, one after the other. Collective."""
        if self.any:
            self._viscous = fluxes, work
            self._exchange(FLUX)


class MirroredGhosts(InterpolatedGhosts):
    """Exchange that interpolates the state at the ghosts behind those walls whose ghosts take the flow at their mirror
    images, if these are not nodes. `places`: the numbers of the boundary patches of these walls. `states`: the arrays
    of the boxes of nodes of this rank."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        program: Program,
        comm: Communicator,
        domain: Domain,
        states: Sequence[BlockState],
    ):
        self._case = case
        none = domain.hierarchy is not None and not domain.hierarchy.mirrors
        super().__init__(
            backend,
            program,
            comm,
            domain,
            states,
            lambda: [] if none else mirror_points.find_mirror_sources(domain.whole, domain.extended),
        )
        self.places = frozenset(entry.place for entry in self.located)

    def _acceleration(self, state: BlockState) -> dict[str, Any]:
        return acceleration(self._case, state)

    def _shares(self, domain: Domain, found: Sequence[mirror_points.MirrorSources]) -> Iterator[patched_donors.Rows]:
        return mirror_rows.rows(domain.whole, domain.cut, found)

    def _take_calls(self, what: str, width: int, incoming: Any) -> list[Call]:
        return [
            self._program.call(
                t.kernel, (t.count, 1, 1), **t.lists, **t.extra, buffer=incoming, sv=s.variable_stride, q=s.q
            )
            for t in self._takes
            for s in (self._states[t.place],)
        ]
