"""Ghosts of patched faces: shares of interpolations, summed by whoever has the ghost, in this process or in others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.communicator import Communicator
from hiresx.decomposition import Domain, patched_donors
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS, GAS_CONSERVED, GAS_GRADIENTS

# Reals of a share: of the state, the sixth-order and the linear value; of the viscous fluxes, vectors of four.
STATE, FLUX = 2 * len(GAS_CONSERVED), len(GAS_GRADIENTS) * DIRECTIONS
TAG = 7
# What launches the giving and the taking, and the buffers: of what leaves, of what comes, and of that in host memory.
_Prepared = tuple[Callable[[], None], Callable[[], None], Any, Any, np.ndarray]


@dataclass(frozen=True, eq=False)
class _Give:
    """Shares of one part of this rank, on the device: of the buffer `incoming` for ghosts of this rank, else of
    `outgoing`."""

    place: int
    count: int
    widths: tuple[int, int, int]
    start: Any
    to: Any
    weights: Any
    inner: bool


@dataclass(frozen=True, eq=False)
class _Take:
    """Ghosts of one part of this rank behind faces of one direction, and the shares whose sums they are."""

    place: int
    direction: int
    count: int
    to: Any
    first: Any
    rows: Any


class PatchedExchange:
    """Fills the ghosts of all patched faces of the parts `states` of this rank; nothing where there are none (`any`).

    The shares of one ghost are added in the order of the parts, so that a result repeats to the last bit on the same
    cut and differs by the order of sums between cuts. All calls are collective. Raises HiresxError, on all ranks, for a
    node that no other block lies behind.
    """

    def __init__(
        self, backend: Backend, program: Program, comm: Communicator, domain: Domain, states: Sequence[BlockState]
    ):  # fmt: skip
        self._backend, self._program, self._comm, self._states = backend, program, comm, states
        with comm.together():
            found = patched_donors.located(domain.whole, domain.extended) if comm.root else None
        found = comm.bcast(found)
        self.located = found
        self.any = bool(found)
        if not self.any:
            return
        with comm.together():
            self._prepare(domain, found)
        self._mpi_comm = comm.mpi_comm.Dup() if comm.size > 1 else None
        self._made: dict[int, _Prepared] = {}

    def _prepare(self, domain: Domain, found: Sequence[patched_donors.Located]) -> None:
        whole, cut, rank = domain.whole, domain.cut, self._comm.rank
        places = {state.index: n for n, state in enumerate(self._states)}
        owner = np.array([part.rank for part in cut.parts])
        part, flat, along = patched_donors.targets(whole, cut, found)
        donor, xi = np.concatenate([f.donor for f in found]), np.concatenate([f.xi for f in found])
        maps = patched_donors.block_maps(whole, domain.extended)
        taker = owner[part]
        self._real = real = np.dtype(self._states[0].real if self._states else np.float64)

        # Every rank goes through all shares in one order, so that both ends of a message agree on it.
        sent = {other: 0 for other in range(self._comm.size)}
        received = dict(sent)
        gives, comes = [], []
        for share in patched_donors.rows(whole, cut, maps, donor, xi):
            giver = int(owner[share.part])
            if giver == rank:
                for other in np.unique(taker[share.ghost]):
                    mine = taker[share.ghost] == other
                    number = sent[int(other)] + np.arange(mine.sum())
                    sent[int(other)] += len(number)
                    gives.append((share, mine, int(other), number))
            mine = taker[share.ghost] == rank
            if mine.any():
                comes.append((giver, share.ghost[mine], received[giver] + np.arange(mine.sum())))
                received[giver] += int(mine.sum())
        # Own shares first, then those of the others by rank.
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
        self._gives = []
        for share, mine, other, number in gives:
            to = number + (0 if other == rank else out[other])
            weights = np.ascontiguousarray(share.weights[..., mine]).reshape(36, -1).astype(real)
            self._gives.append(
                _Give(
                    places[share.part], len(to), share.widths, device(share.start[mine].astype(np.int32)),
                    device(to.astype(np.int32)), device(weights), other == rank,
                )
            )  # fmt: skip
        ghost = np.concatenate([g for _, g, _ in comes]) if comes else np.zeros(0, int)
        row = np.concatenate([into[giver] + n for giver, _, n in comes]) if comes else np.zeros(0, int)
        order = np.argsort(ghost, kind="stable")
        ghost, row = ghost[order], row[order]
        self._takes = []
        for p, d in sorted({(int(part[g]), int(along[g])) for g in np.unique(ghost)}):
            chosen = np.flatnonzero((part == p) & (along == d))
            first = np.searchsorted(ghost, chosen, "left")
            last = np.searchsorted(ghost, chosen, "right")
            ends = np.concatenate([[0], np.cumsum(last - first)])
            rows = np.concatenate([row[a:b] for a, b in zip(first, last, strict=True)])
            lists = (flat[chosen], ends, rows)
            self._takes.append(_Take(places[p], d, len(chosen), *(device(m.astype(np.int32)) for m in lists)))

    def state(self) -> None:
        """Fill the ghosts of the conservative state from the nodes as they are now."""
        if self.any:
            self._exchange(STATE)

    def fluxes(self, fluxes: Sequence[Sequence[Any]], work: Sequence[Any]) -> None:
        """Fill the ghosts of the viscous fluxes through patched faces. `fluxes[part][direction]`, 4 variables each, lie
        one behind the other in `work[part]`."""
        if self.any:
            self._viscous = fluxes, work
            self._exchange(FLUX)

    def _exchange(self, width: int) -> None:
        if width not in self._made:
            self._made[width] = self._launches(width)
        give, take, outgoing, incoming, host = self._made[width]
        give()
        if self._mpi_comm is not None:
            self._carry(self._mpi_comm, width, outgoing, incoming, host)
        take()

    def _carry(self, mpi_comm: Any, width: int, outgoing: Any, incoming: Any, host: np.ndarray) -> None:
        """Messages through the memory of the host."""
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

    def _launches(self, width: int) -> _Prepared:
        """What one exchange launches, prepared, and its buffers."""
        zeros, real = self._backend.zeros, str(self._real)
        outgoing = zeros((max(width * self._leaving, 1),), real)
        incoming = zeros((max(width * self._held, 1),), real)
        host = np.zeros(width * (self._held - self._own), self._real)
        call = self._program.call
        give, take = [], []
        for g in self._gives:
            s = self._states[g.place]
            extent, (wi, wj, wk) = (g.count, 1, 1), g.widths
            box = {
                "n": g.count, "wi": wi, "wj": wj, "wk": wk, "sj": s.strides[1], "sk": s.strides[2],
                "sv": s.variable_stride, "giving": g.start, "to": g.to, "weights": g.weights,
                "buffer": incoming if g.inner else outgoing,
            }  # fmt: skip
            if width == STATE:
                give.append(call("patched_state", extent, **box, q=s.q))
            else:
                give.append(call("patched_flux", extent, **box, m=s.metrics, flux=self._viscous[1][g.place]))
        for t in self._takes:
            s = self._states[t.place]
            extent = (t.count, 1, 1)
            lists = {"to": t.to, "begin": t.first, "rows": t.rows, "buffer": incoming, "sv": s.variable_stride}
            if width == STATE:
                take.append(call("patched_ghosts", extent, **lists, q=s.q))
            else:
                flux = self._viscous[0][t.place][t.direction]
                take.append(call("patched_fluxes", extent, **lists, area=s.areas[t.direction], flux=flux))
        return self._program.prepare(give), self._program.prepare(take), outgoing, incoming, host
