"""Exchange between levels of refinement: nodes of a coarser level are overwritten by values of the finer level, and
ghosts of tiles are interpolated."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hiresx.base.kept import Kept
from hiresx.decomposition import Domain
from hiresx.decomposition.level_donors import Injection, TileGhosts, find_level_donors, injections, level_rows
from hiresx.decomposition.patched_donors import Rows
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.exchange.patched_ghosts import InterpolatedGhosts, PatchedExchange
from hiresx.exchange.rows import lists_on_device
from hiresx.grid.patched import WIDTH
from hiresx.mpi.communicator import Communicator

TAG = 5


class LevelGhosts(PatchedExchange):
    """Fills the ghosts of tiles that lie between nodes of the next coarser level. The kernels of patched faces
    interpolate them, with sixth order in smooth flow and linearly at discontinuities. `domain`: the grid and its
    levels. `states`: the parts of this rank. `kept`: cached results of an earlier solver."""

    def __init__(
        self, backend: Backend, program: Program, comm: Communicator, domain: Domain, states: Sequence[BlockState],
        kept: Kept,
    ):  # fmt: skip
        self._kept = kept
        InterpolatedGhosts.__init__(
            self, backend, program, comm, domain, states, lambda: find_level_donors(domain.whole)
        )
        self._under = UnderFiner(backend, program, comm, domain, states, kept)

    def _shares(self, domain: Domain, found: Sequence[TileGhosts]) -> Iterator[Rows]:
        return level_rows(domain.whole, domain.cut, found, self._kept)

    def _weights(self, shares: Sequence[tuple[Rows, np.ndarray]]) -> list[tuple[Any, int]]:
        # the kernel copies numbers of the state type
        if not shares or self._states[0].storage.stored != self._real.name:
            return super()._weights(shares)
        return self._weights_of_lines([(share.weights, mine) for share, mine in shares])

    def _weights_of_lines(self, shares: Sequence[tuple[Any, np.ndarray]]) -> list[tuple[Any, int]]:
        """Return the result of `_weights`, assembled on the device from the weights along lines. The weights of all
        contributions are in one array, which few launches fill."""
        backend, real = self._backend, self._real.name
        ends = np.cumsum([0, *(len(mine) for _, mine in shares)]).tolist()
        lines = [np.concatenate([own.lines[d] for own, _ in shares], axis=-1) for d in range(3)]
        firsts = [np.cumsum([0, *(own.lines[d].shape[-1] for own, _ in shares)]) for d in range(3)]
        columns = [
            np.concatenate([own.columns[d, mine] + first for (own, mine), first in zip(shares, of, strict=False)])
            for d, of in enumerate(firsts)
        ]
        ((every, *of_ghosts),) = lists_on_device(backend, [[np.arange(ends[-1]), *columns]])
        given = backend.to_device(np.concatenate([line.ravel() for line in lines]).astype(real))
        made = backend.empty((2, 3, WIDTH, ends[-1]), real)
        calls, first = [], 0
        for d, (line, column) in enumerate(zip(lines, of_ghosts, strict=True)):
            for weights in made:
                along = given[first : first + line[0].size]
                calls.append(
                    self._program.call(
                        "copy_halo", (ends[-1], WIDTH, 1), to=every, giving=column, source=along,
                        source_sv=line.shape[-1], target=weights[d], target_sv=ends[-1], sign=1.0,
                    )
                )  # fmt: skip
                first += line[0].size
        self._program.prepare([calls])()
        flat = made.reshape(-1)
        return [(flat[begin:], ends[-1]) for begin in ends[:-1]]

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
