"""Markers in the sequence of launches of a CPU backend."""

import time
from typing import Any


class NativeEvent:
    """A marker in the sequence of launches, by which elapsed times are measured. Kernels of these backends are complete
    when `launch` returns, so a clock is sufficient."""

    def __init__(self) -> None:
        self._at = 0.0

    def record(self) -> None:
        """Record the present time. All work launched before is complete then."""
        self._at = time.perf_counter()

    def elapsed_time(self, start: Any) -> float:
        """Return the seconds from the event `start` to this event."""
        found: float = self._at - start._at
        return found
