"""The ghosts of connected and patched faces, and of walls that mirror places: what is sent, what is waited for, and
what is computed meanwhile."""

from collections.abc import Callable, Sequence
from typing import Any

from hiresx.decomposition import Domain
from hiresx.device.call import Calls
from hiresx.exchange.halo import HaloExchange
from hiresx.exchange.patched_ghosts import MirroredGhosts, PatchedExchange
from hiresx.solver.block_states import LocalBlocks


class Ghosts:
    """`halo`: the exchange of connected faces, `patched` that of patched ones, `mirrored` the ghosts of walls that
    mirror places. `overlap` false waits for halos at once,
    to measure what is won by computing meanwhile. Collective."""

    def __init__(self, blocks: LocalBlocks, domain: Domain, transport: str, overlap: bool):
        self._program, self.overlap = blocks.program, overlap
        self.halo = HaloExchange(
            blocks.backend,
            blocks.program,
            blocks.comm,
            blocks.cut,
            blocks.states,
            transport,
            blocks.layout,
        )
        for field in blocks.layout.exchanged_once():
            self.halo.start_field(field.name)
            self.halo.finish_field(field.name)
        self.patched = PatchedExchange(blocks.backend, blocks.program, blocks.comm, domain, blocks.states)
        self.mirrored = MirroredGhosts(blocks.backend, blocks.program, blocks.comm, domain, blocks.states)

    @property
    def others(self) -> bool:
        """Whether ghosts come from other ranks."""
        return bool(self.halo.neighbours)

    def start_state(self) -> None:
        """Ghosts of patched faces and of walls that mirror places, and connected halos on their way."""
        self.halo.start_state()
        self.patched.state()
        self.mirrored.state()

    def finish_state(self) -> None:
        """Wait for the halos that are on their way."""
        self.halo.finish_state()

    def send_state(self) -> None:
        """`start_state` as a task of a stage."""
        self.start_state()
        if not self.overlap:
            self.halo.finish_state()

    def send_fluxes(self, fluxes: list[tuple[Any, ...]], work: Sequence[Any]) -> None:
        """The viscous `fluxes` of all parts, which lie in `work`, on their way."""
        self.halo.start_fluxes(fluxes)
        self.patched.fluxes(fluxes, work)
        if not self.overlap:
            self.halo.finish_fluxes()

    def finish_fluxes(self) -> None:
        self.halo.finish_fluxes()

    def send_field(self, name: str) -> None:
        """The field of that name, which a term gave, on its way."""
        self.halo.start_field(name)
        self.patched.field(name)
        if not self.overlap:
            self.halo.finish_field(name)

    def finish_field(self, name: str) -> None:
        self.halo.finish_field(name)

    def meanwhile(self, parts: Sequence[Calls]) -> Callable[[], None]:
        """Launches of all parts, made while halos are on their way: what has come is taken in between."""
        if not self.others:
            return self._program.prepare([call for calls in parts for call in calls])
        prepared = [self._program.prepare(calls) for calls in parts]

        def make() -> None:
            for launch in prepared:
                launch()
                self.halo.progress()

        return make
