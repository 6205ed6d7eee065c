"""Buffers that hold the messages of several peers one behind the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hiresx.exchange.halo_layout import Peer


@dataclass(frozen=True, eq=False)
class MessageBuffers:
    """An array per turn to send from and to receive into, with `width` reals per point; each peer's message lies where
    its `out` and `into` say, in points."""

    outgoing: Sequence[Any]
    incoming: Sequence[Any]
    width: int

    def outgoing_messages(self, peers: Sequence[Peer]) -> list[list[Any]]:
        """The messages to `peers`, by turn."""
        return [[self._part(out, p.out) for p in peers] for out in self.outgoing]

    def incoming_messages(self, peers: Sequence[Peer]) -> list[dict[int, Any]]:
        """The messages from `peers`, by turn and rank."""
        return [{p.rank: self._part(into, p.into) for p in peers} for into in self.incoming]

    def _part(self, array: Any, points: tuple[int, int]) -> Any:
        first, last = points
        return array[self.width * first : self.width * last]
