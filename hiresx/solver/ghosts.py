"""The ghosts of connected and patched faces and of mirroring walls: their exchange, and computation during it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hiresx.case import Case
from hiresx.decomposition import Domain
from hiresx.device.call import Calls
from hiresx.exchange.halo import HaloExchange
from hiresx.exchange.level_ghosts import LevelGhosts
from hiresx.exchange.patched_ghosts import MirroredGhosts, PatchedExchange
from hiresx.solver.block_states import LocalBlocks


class Ghosts:
    """The operations that fill the ghosts of the local blocks with values of other nodes. `halo`: the exchange of
    connected faces. `patched`: the interpolation at patched faces. `mirrored`: the ghosts of walls that take the flow
    at mirrored positions. If `overlap` is false, a step waits for halos at once, so that the gain of overlapping can be
    measured. Collective."""

    def __init__(self, case: Case, blocks: LocalBlocks, domain: Domain, transport: str, overlap: bool):
        self._program, self.overlap = blocks.program, overlap
        self.halo = HaloExchange(
            blocks.backend,
            blocks.program,
            blocks.comm,
            blocks.cut,
            blocks.states,
            transport,
            blocks.layout,
            blocks.kept,
        )
        for field in blocks.layout.fields_exchanged_once():
            self.halo.start_field(field.name)
            self.halo.finish_field(field.name)
        between: Any = PatchedExchange if domain.whole.levels is None else partial(LevelGhosts, kept=blocks.kept)
        self.patched: PatchedExchange = between(blocks.backend, blocks.program, blocks.comm, domain, blocks.states)
        self.mirrored = MirroredGhosts(
            case, blocks.backend, blocks.program, blocks.comm, domain, blocks.states
        )  # fmt: skip

    @property
    def others(self) -> bool:
        """True if ghosts come from other ranks."""
        return bool(self.halo.neighbours)

    def start_state(self) -> None:
        """Set the nodes under finer levels, start the exchange of connected halos, and fill the ghosts behind patched
        faces, beside finer levels and behind mirroring walls."""
        self.patched.nodes()
        self.halo.start_state()
        self.patched.state()
        self.mirrored.state()

    def finish_state(self) -> None:
        """Wait for the halos of the state."""
        self.halo.finish_state()

    def send_state(self) -> None:
        """Call `start_state` as a task of a stage. If exchanges do not overlap with computations, also wait for the
        halos."""
        self.start_state()
        if not self.overlap:
            self.halo.finish_state()

    def send_fluxes(self, fluxes: list[tuple[Any, ...]], work: Sequence[Any]) -> None:
        """Start the exchange of the viscous `fluxes` of all parts, which are stored in `work`. If exchanges do not
        overlap with computations, also wait for the halos."""
        self.halo.start_fluxes(fluxes)
        self.patched.fluxes(fluxes, work)
        if not self.overlap:
            self.halo.finish_fluxes()

    def finish_fluxes(self) -> None:
        """Wait for the ghosts of the viscous fluxes from other parts."""
        self.halo.finish_fluxes()

    def send_field(self, name: str) -> None:
        """Start the exchange of the field `name`, which a term has computed. If exchanges do not overlap with
        computations, also wait for the halos."""
        self.halo.start_field(name)
        self.patched.field(name)
        if not self.overlap:
            self.halo.finish_field(name)

    def finish_field(self, name: str) -> None:
        """Wait for the ghosts of the field `name` from other parts."""
        self.halo.finish_field(name)

    def close(self) -> None:
        """Free the resources of MPI and of the device."""
        self.halo.close()
        self.patched.close()
        self.mirrored.close()

    def meanwhile(self, parts: Sequence[Calls]) -> Callable[[], None]:
        """Return a function that makes launches of all parts during a halo exchange, and processes messages in
        between."""
        if not self.others:
            return self._program.prepare([call for calls in parts for call in calls])
        prepared = [self._program.prepare(calls) for calls in parts]

        def make() -> None:
            for launch in prepared:
                launch()
                self.halo.progress()

        return make
