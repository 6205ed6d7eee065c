"""The halo exchange: ghosts of connected faces receive the values of their donor nodes, in the same process or another
one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hiresx.decomposition import Decomposition, halo_lists
from hiresx.device.fields import Field, Layout
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations.storage import precision_of
from hiresx.exchange.buffer_layout import BufferLayout
from hiresx.exchange.channel import Channel, ExchangedArrays
from hiresx.exchange.choice import known_transport
from hiresx.exchange.endpoint import Endpoint, QuantityMessages
from hiresx.exchange.halo_layout import HaloLayout
from hiresx.exchange.signalled_channel import SignalledChannel
from hiresx.exchange.signalled_memory import SignalledMemory
from hiresx.mpi.communicator import Communicator

if TYPE_CHECKING:
    from hiresx.exchange.gpu import Gpu


class Neighbour(NamedTuple):
    """A rank with which halos are exchanged. `transport`: the name of the transport. `state_bytes`: bytes that one
    exchange of the state sends to the rank, including the fields that are exchanged with the state. `flux_bytes`: bytes
    that one exchange of the fluxes sends to the rank."""

    rank: int
    transport: str
    state_bytes: int
    flux_bytes: int


class HaloExchange:
    """Fills the ghosts of connected faces from the donor nodes that the connections name. `cut`: the boxes of nodes of
    all ranks with their connections. `states`: the arrays of the boxes of this rank. Ghosts beside edges and corners
    are not exchanged, since no kernel reads them.

    One message per neighbour and exchange is sent by `transport` (`hiresx.exchange.choice.NAMES`), packed and unpacked
    by kernels. An exchange is started, then finished. Between these calls, kernels may run that do not read ghosts of
    the faces `remote` (for each box, the faces with ghosts from another rank). The values at the start are sent. The
    fields to exchange are declared in `hiresx.device.fields`; each has a channel. `known`: the field layout of the
    other ranks, needed on a rank without boxes, which sends nothing.

    All ranks make the same calls in the same order; the constructor and `close` are collective. Raises HiresxError, on
    all ranks, for a transport that cannot be used, with the reason, and if memory is lacking."""

    def __init__(
        self,
        backend: Backend,
        program: Program,
        comm: Communicator,
        cut: Decomposition,
        states: Sequence[BlockState],
        transport: str = "auto",
        known: Layout | None = None,
    ):
        with comm.together():
            transport = known_transport(transport)
            gpu = _gpu(backend) if comm.size > 1 else None
            places = {state.index: n for n, state in enumerate(states)}
            layout = HaloLayout(halo_lists(cut, mine=places), places, [part.rank for part in cut.parts])
        self.remote = layout.remote
        known = states[0].layout if states else known
        assert known is not None  # or there are no parts
        in_stages = known.exchanged_fields("viscous_flux" in program.signatures)
        fields = (*in_stages, *known.fields_exchanged_once())
        widths, kinds = [field.width(known) for field in fields], [field.kind(known) for field in fields]
        fluxes = [field.halo == "fluxes" for field in fields]
        directed = [field.directed or flux for field, flux in zip(fields, fluxes, strict=True)]
        self._peers = layout.peers
        # Bytes per point in an exchange of the state and its accompanying fields, and in an exchange of the fluxes.
        bytes_ = list(zip(fluxes, BufferLayout(kinds, widths).bytes_per_point, strict=True))[: len(in_stages)]
        self._bytes = tuple(sum(size for along, size in bytes_ if along == wanted) for wanted in (False, True))
        # Seconds waited in the exchange that preceded this one in the run.
        self.waited_before = 0.0
        self._endpoint = None
        self._channels: list[Channel] = []
        self._signalled: list[SignalledChannel] = []
        messages: Sequence[QuantityMessages] = [QuantityMessages((), ())] * len(widths)
        if comm.size > 1:
            precision = precision_of(known.storage)
            self._endpoint = Endpoint(backend, program, gpu, comm, layout, kinds, widths, precision, transport)
            messages = self._endpoint.messages
        try:
            with comm.together():
                if self._endpoint is not None:
                    self._signalled = [
                        SignalledChannel(
                            backend, program, layout, widths[n], directed[n], given, apart=kinds[n] != kinds[0]
                        )
                        for n, given in enumerate(self._endpoint.signalled)
                    ]
                later = gpu is not None
                self._channels = [*self._signalled] or [
                    Channel(backend, program, layout, width, directed[n], given, later, kinds[n] != kinds[0])
                    for n, (width, given) in enumerate(zip(widths, messages, strict=True))
                ]
        except BaseException as error:
            if self._endpoint is not None:
                self._endpoint.close(error)
            raise

        # Views are made once: a backend remembers the address of an array object.
        momentum = [state.q[state.equations.momentum] for state in states]
        self._strides = [state.variable_stride for state in states]
        # The channels of the state and its accompanying fields, with their arrays; those of the fields of terms and
        # metrics, by name; and that of the fluxes.
        arrays = {
            field.name: (
                channel,
                _arrays(states, field, self._strides, momentum if n == 0 else None),
            )
            for n, (field, channel) in enumerate(zip(fields, self._channels, strict=True))
            if not fluxes[n]
        }
        self._by_name = {field.name: arrays.pop(field.name) for field in fields if field.halo in ("term", "metrics")}
        self._with_state = list(arrays.values())
        self._of_fluxes = [channel for channel, along in zip(self._channels, fluxes, strict=True) if along]
        self._flux_arrays: Sequence[Sequence[Any]] | None = None

    def start_state(self) -> None:
        """Begin to exchange the ghosts of the conservative variables, and of the fields that are always sent with them
        (those whose declaration in `hiresx.device.fields` has the halo "state"). `finish_state` completes it."""
        for channel, arrays in self._with_state:
            channel.start(arrays)

    def finish_state(self) -> None:
        """Wait until the exchange of ghosts that `start_state` began is complete. Return at once if there is none."""
        for channel, _ in self._with_state:
            channel.finish()

    def start_field(self, name: str) -> None:
        """Begin to exchange the ghosts of the field `name`, an auxiliary quantity at the nodes that has already been
        computed, by a term of the right-hand side or as a metric. `finish_field` completes it."""
        channel, arrays = self._by_name[name]
        channel.start(arrays)

    def finish_field(self, name: str) -> None:
        """Wait until the exchange of ghosts of the field `name` that `start_field` began is complete. Return at once if
        there is none."""
        self._by_name[name][0].finish()

    def assume_started(self) -> None:
        """Record that the launches of a CUDA graph have started an exchange of the state, so that the next
        `finish_state` completes it. CUDA graphs start exchanges only with the transport "signals"."""
        for channel, arrays in self._with_state:
            if isinstance(channel, SignalledChannel):
                channel.assume_started(arrays)

    @property
    def memory(self) -> SignalledMemory | None:
        """Device memory that the ranks share with the transport "signals"; None with another transport."""
        return None if self._endpoint is None else self._endpoint.memory

    def start_fluxes(self, fluxes: Sequence[Sequence[Any]]) -> None:
        """Begin to exchange the ghosts of the viscous fluxes along the normals of connected faces. `fluxes[n][d]`: the
        array of the fluxes along index direction d in box number n among the boxes of nodes of this rank. If the index
        directions of two blocks differ in order or sense, the fluxes are converted. `finish_fluxes` completes it."""

        def array(part: int, direction: int) -> Any:
            return fluxes[part][direction]

        if self._flux_arrays is not fluxes:
            self._flux_arrays, self._fluxes = fluxes, ExchangedArrays(array, self._strides, vectors=array)
        for channel in self._of_fluxes:
            channel.start(self._fluxes)

    def finish_fluxes(self) -> None:
        """Wait until the exchange of viscous fluxes that `start_fluxes` began is complete. Return at once if there is
        none."""
        for channel in self._of_fluxes:
            channel.finish()

    def flush(self) -> None:
        """Send all messages that are packed but not sent yet. Call this before other collective operations."""
        for channel in self._channels:
            channel.flush()

    def progress(self) -> None:
        """Unpack messages of other ranks that have arrived, without waiting. MPI transfers long messages only during
        its calls, so calls between kernels let the transfer overlap with computation."""
        for channel in self._channels:
            channel.progress()

    @property
    def neighbours(self) -> list[Neighbour]:
        """Ranks with which this rank exchanges ghosts, in ascending order, with the transport and the bytes sent to
        each."""
        found = []
        for peer in self._peers:
            points = peer.out[1] - peer.out[0]
            assert self._endpoint is not None  # if there are peers there is a transport
            name = self._endpoint.names[peer.rank]
            found.append(Neighbour(peer.rank, name, *(points * size for size in self._bytes)))
        return found

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of exchanges of ghosts started so far: (of the state, of viscous fluxes)."""
        return self._channels[0].exchanges, sum(channel.exchanges for channel in self._of_fluxes)

    @property
    def seconds_waited(self) -> float:
        """Seconds that this rank has spent waiting for messages of other ranks."""
        return self.waited_before + sum(channel.seconds_waited for channel in self._channels)

    def close(self) -> None:
        """Finish all exchanges, and free the resources of MPI and CUDA. Collective."""
        for channel in self._channels:
            channel.finish()
        if self._endpoint is not None:
            self._endpoint.close()


def _arrays(
    states: Sequence[BlockState], field: Field, strides: Sequence[int], vectors: Sequence[Any] | None
) -> ExchangedArrays:
    """Return the access to the array of a field of each part, or to the components of a directed one. `vectors`: the
    arrays from the first component of a vector on."""
    arrays = [state.array(field.name) for state in states]
    found = None if vectors is None else (lambda part, _: vectors[part])
    if field.directed:
        rows = [[array[d : d + 1] for d in range(len(array))] for array in arrays]
        return ExchangedArrays(lambda part, direction: rows[part][direction], strides, found)
    return ExchangedArrays(lambda part, _: arrays[part], strides, found)


def _gpu(backend: Backend) -> "Gpu | None":
    """Return the GPU functions for transports; None on a CPU."""
    if backend.name != "cuda":
        return None
    from hiresx.exchange.gpu import Gpu

    return Gpu()
