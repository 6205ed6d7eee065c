"""The exchange of one quantity by signals in device memory. It consists of kernel launches only, which can be recorded
and repeated."""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from hiresx.device.interface import Backend, Call, Program
from hiresx.exchange.channel import Channel, ExchangedArrays
from hiresx.exchange.endpoint import QuantityMessages
from hiresx.exchange.halo_layout import HaloLayout
from hiresx.exchange.signalled_memory import SignalledMessages


class SignalledChannel(Channel):
    """A `Channel` in which the device waits for the messages of other ranks, so that kernels launched after `finish`
    can read the ghosts. The host does not wait, and cannot measure how long the device waited. `layout`: the nodes and
    ranks from which ghosts come. `width`: numbers per node. `directed`: whether the quantity is a flux along a grid
    direction. `messages`: the buffers and flags. `apart`: whether its number type differs from that of the state."""

    def __init__(
        self, backend: Backend, program: Program, layout: HaloLayout, width: int, directed: bool,
        messages: SignalledMessages, apart: bool = False,
    ):  # fmt: skip
        super().__init__(backend, program, layout, width, directed, QuantityMessages((), ()), later=False, apart=apart)
        self._messages = messages
        self._given: WeakKeyDictionary[ExchangedArrays, Callable[[], None]] = WeakKeyDictionary()
        self._taken: WeakKeyDictionary[ExchangedArrays, Callable[[], None]] = WeakKeyDictionary()

    def start(self, fields: ExchangedArrays) -> None:
        """Begin to exchange the ghosts of the arrays `fields` with other ranks, and copy ghosts between the boxes of
        nodes of this rank, by kernel launches alone. If an earlier exchange is not finished, it is finished first."""
        self.finish()
        self.exchanges += 1
        give = self._given.get(fields)
        if give is None:
            # Data for which other ranks wait are sent first.
            packed = list(self._pack_calls(fields))
            calls: list[Call | list[Call]] = [
                packed,
                self._messages.signals.raise_call(),
                *self._local_copies(fields),
                *self._turns(fields, None),
            ]
            give = self._given[fields] = self._program.prepare(calls)
        self._fields = fields
        give()

    def flush(self) -> None:
        """Do nothing, since `start` sends all messages."""

    def progress(self) -> None:
        """Do nothing, since the device transfers messages without the host."""

    def finish(self) -> None:
        """Launch the kernels that wait for the messages of the exchange that was started and unpack them. The host does
        not wait. Do nothing if no exchange was started."""
        fields = self._fields
        if fields is None:
            return
        take = self._taken.get(fields)
        if take is None:
            unpacked = list(self._unpack_calls(fields))
            calls: list[Call | list[Call]] = [self._messages.signals.wait_call(), unpacked]
            calls += self._turns_of_peers(fields)
            take = self._taken[fields] = self._program.prepare(calls)
        self._fields = None
        take()

    def assume_started(self, fields: ExchangedArrays) -> None:
        """Record that the launches of a CUDA graph have started an exchange of the arrays `fields`, so that the next
        `finish` completes it. No other exchange must have been started since."""
        self._fields = fields

    def _pack_calls(self, fields: ExchangedArrays) -> Iterator[Call]:
        for link, to, giving in self._pack:
            assert link.donor is not None
            yield self._program.call(
                self._kernel("pack_signalled_halo"), (len(to), 1, 1), to=to, giving=giving,
                source=fields.array(link.donor, link.donor_direction), source_sv=fields.strides[link.donor],
                buffer=self._messages.outgoing, turn_reals=self._messages.turn_reals, variables=self._width,
                sign=self._sign(link), count=self._messages.signals.count,
            )  # fmt: skip

    def _unpack_calls(self, fields: ExchangedArrays) -> Iterator[Call]:
        for rank, (buffer, apart) in self._messages.incoming.items():
            for link, to, giving in self._unpack[rank]:
                assert link.block is not None
                yield self._program.call(
                    self._kernel("unpack_signalled_halo"), (len(to), 1, 1), to=to, giving=giving, buffer=buffer,
                    turn_reals=apart, variables=self._width, target=fields.array(link.block, link.direction),
                    target_sv=fields.strides[link.block], count=self._messages.signals.count,
                )  # fmt: skip

    def _turns_of_peers(self, fields: ExchangedArrays) -> Iterator[Call]:
        for rank in self._messages.incoming:
            for call in self._turns(fields, rank):
                given: dict[str, Any] = {**call.arguments, "count": self._messages.signals.count}
                yield self._program.call(self._kernel("rotate_signalled_vectors"), call.extent, **given)
