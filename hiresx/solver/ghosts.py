"""The ghosts of connected and patched faces and of mirroring walls: their exchange, and computation during it."""

from collections.abc import Callable, Sequence
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
    at mirrored positions. `domain`: the grid and its division. `transport`: how ghosts are sent to other ranks. If
    `overlap` is false, a step waits for the ghost nodes at once, so that the gain of overlapping can be measured.
    Collective."""

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
        )
        for field in blocks.layout.fields_exchanged_once():
            self.halo.start_field(field.name)
            self.halo.finish_field(field.name)
        between = PatchedExchange if domain.whole.levels is None else LevelGhosts
        self.patched = between(blocks.backend, blocks.program, blocks.comm, domain, blocks.states)
        self.mirrored = MirroredGhosts(
            case, blocks.backend, blocks.program, blocks.comm, domain, blocks.states
        )  # fmt: skip

    @property
    def others(self) -> bool:
        """Whether ghost nodes of this rank come from other ranks."""
        return bool(self.halo.neighbours)

    def start_state(self) -> None:
        """Set the nodes that lie under finer levels to the values of the coincident nodes there, start the exchange of
        the state between connected blocks, and fill the ghost nodes behind patched faces (which touch other blocks
        without common nodes), around finer levels, and behind walls whose ghosts are interpolated at their mirror
        images."""
        self.patched.nodes()
        self.halo.start_state()
        self.patched.state()
        self.mirrored.state()

    def finish_state(self) -> None:
        """Wait until the exchange of the state between blocks is complete."""
        self.halo.finish_state()

    def send_state(self) -> None:
        """Start the exchange of the state and the interpolation of its ghosts (`start_state`). If exchanges do not
        overlap with computations, also wait until the exchange is complete."""
        self.start_state()
        if not self.overlap:
            self.halo.finish_state()

    def send_fluxes(self, fluxes: list[tuple[Any, ...]], work: Sequence[Any]) -> None:
        """Start the exchange of the viscous fluxes of all blocks of this rank. `fluxes[n][d]`: the array of the fluxes
        of block n along index direction d. `work[n]`: the array that contains all fluxes of block n, one direction
        after the other. If exchanges do not overlap with computations, also wait until the exchange is complete."""
        self.halo.start_fluxes(fluxes)
        self.patched.fluxes(fluxes, work)
        if not self.overlap:
            self.halo.finish_fluxes()

    def finish_fluxes(self) -> None:
        """Wait until the exchange of the viscous fluxes between blocks is complete."""
        self.halo.finish_fluxes()

    def send_field(self, name: str) -> None:
        """Start the exchange of the field `name`, which a term of the right-hand side has computed. If exchanges do not
        overlap with computations, also wait until the exchange is complete."""
        self.halo.start_field(name)
        self.patched.field(name)
        if not self.overlap:
            self.halo.finish_field(name)

    def finish_field(self, name: str) -> None:
        """Wait until the exchange of the field `name` between blocks is complete."""
        self.halo.finish_field(name)

    def close(self) -> None:
        """Free the resources of MPI and of the device that the exchanges use."""
        self.halo.close()
        self.patched.close()
        self.mirrored.close()

    def meanwhile(self, parts: Sequence[Calls]) -> Callable[[], None]:
        """Return a function that makes kernel launches while an exchange of ghost nodes is in progress. `parts`: lists
        of launches that do not use the ghost nodes of other ranks. The function makes them in order, and lets MPI
        process messages after each list."""
        if not self.others:
            return self._program.prepare([call for calls in parts for call in calls])
        prepared = [self._program.prepare(calls) for calls in parts]

        def make() -> None:
            for launch in prepared:
                launch()
                self.halo.progress()

        return make
