"""Snapshots of a field, which are stored in the order of time and read again point by point with all times.

A file contains all points at one time, but a Fourier transform in time needs all times at a point. Snapshots that do
not fit into memory are stored in a temporary file."""

import os
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import DTypeLike

from hiresx.errors import HiresxError

# Largest number of bytes that are stored in memory and not in a file.
HELD = 1 << 28


class Snapshots:
    """An array of `times` snapshots, each with `places` numbers of the NumPy type `kind`. It is in memory or, if it is
    large, in a temporary file. Raises HiresxError if there is not enough space."""

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
        """Store all snapshots in the order of time. `rows`: an iterable with an array (places,), the values at all
        points, for each time."""
        for n, row in enumerate(rows):
            self._held[n] = row

    def columns(self, at_once: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the values of all snapshots in groups of at most `at_once` points (at least one): the range of the
        points as a slice, and a float64 array (times, points)."""
        places = self._held.shape[1]
        for first in range(0, places, at_once):
            part = slice(first, min(first + at_once, places))
            yield part, np.asarray(self._held[:, part], dtype=float)
