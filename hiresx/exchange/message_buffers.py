"""Buffers that hold the messages of several peers one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hiresx.exchange.halo_layout import Peer


@dataclass(frozen=True, eq=False)
class MessageBuffers:
    """Two buffers of messages in each direction, which consecutive exchanges use alternately; "turn" is the number of
    the buffer, 0 or 1. `outgoing`: the two arrays to send from. `incoming`: the two arrays to receive into. `width`:
    the number of reals per point. The message for a peer lies at the points `out` of `outgoing`, and the message from
    it at the points `into` of `incoming` (`hiresx.exchange.halo_layout.Peer`)."""

    outgoing: Sequence[Any]
    incoming: Sequence[Any]
    width: int

    def outgoing_messages(self, peers: Sequence[Peer]) -> list[list[Any]]:
        """Return the messages to the ranks `peers` as views of the buffers to send from: for each of the two buffers,
        used alternately, a list of arrays in the order of `peers`."""
        return [[self._part(out, p.out) for p in peers] for out in self.outgoing]

    def incoming_messages(self, peers: Sequence[Peer]) -> list[dict[int, Any]]:
        """Return the messages from the ranks `peers` as views of the buffers to receive into: for each of the two
        buffers, used alternately, a dictionary from the rank to the array."""
        return [{p.rank: self._part(into, p.into) for p in peers} for into in self.incoming]

    def _part(self, array: Any, points: tuple[int, int]) -> Any:
        first, last = points
        return array[self.width * first : self.width * last]
