"""Snapshots of a run. They are read once in the order of time, and returned for each position with all times.

A file contains all positions at one time, but a Fourier transform in time needs all times at a position. Snapshots that
do not fit into memory are stored in a temporary file.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import DTypeLike

from hiresx.errors import HiresxError

# Largest number of bytes that are stored in memory and not in a file.
HELD = 1 << 28


class Snapshots:
    """An array of `times` rows, each with `places` numbers of the NumPy type `kind`. Rows are stored one after the
    other, in memory or in a temporary file. Raises HiresxError if there is not enough space for them."""

    def __init__(self, times: int, places: int, kind: DTypeLike = np.float64):
        size = np.dtype(kind).itemsize * times * places
        if size <= HELD:
            self._held = np.empty((times, places), kind)
            return
        try:
            with tempfile.TemporaryFile() as file:  # it is removed together with the mapped memory
                os.posix_fallocate(file.fileno(), 0, size)
                self._held = np.memmap(file, kind, "r+", shape=(times, places))
        except OSError as error:
            raise HiresxError(
                f"{1e-9 * size:.1f} GB of snapshots do not fit into {tempfile.gettempdir()}: {error.strerror}",
                "set TMPDIR to a folder with room, or take fewer of them",
            ) from None

    def fill(self, rows: Iterable[np.ndarray]) -> None:
        """Store all `rows`, (places,) each."""
        for n, row in enumerate(rows):
            self._held[n] = row

    def columns(self, at_once: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of at most `at_once` places (at least one) with their values at all times, (times, n), in double
        precision."""
        places = self._held.shape[1]
        for first in range(0, places, at_once):
            part = slice(first, min(first + at_once, places))
            yield part, np.asarray(self._held[:, part], dtype=float)
