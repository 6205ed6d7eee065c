"""Snapshots of a run, read once one after the other, given back place by place with all their times.

Files hold all places of one time, a transform in time wants all times of a place. What fits is held in memory; more
goes through a temporary file, so that what is in memory does not grow with the number of snapshots.
"""

import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import BinaryIO, Self, cast

import numpy as np
from numpy.typing import DTypeLike

from hiresx.errors import HiresxError

# Bytes that are held in memory rather than in a file.
HELD = 1 << 28


class Snapshots:
    """`times` rows of `places` numbers of the precision `kind`, put in one after the other; a context, for the file
    goes with it."""

    def __init__(self, times: int, places: int, kind: DTypeLike = np.float64):
        self.shape, self._kind = (times, places), np.dtype(kind)
        self._held = np.empty(self.shape, self._kind) if self._bytes <= HELD else None
        self._file: BinaryIO | None = None
        if self._held is None:
            self._file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  (closed on leaving)

    @property
    def _bytes(self) -> int:
        return self._kind.itemsize * self.shape[0] * self.shape[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def fill(self, rows: Iterable[np.ndarray]) -> None:
        """Put in all rows, (places,) each. Raises HiresxError where there is no room for them."""
        for n, row in enumerate(rows):
            row = np.ascontiguousarray(row, dtype=self._kind)
            if self._held is not None:
                self._held[n] = row
                continue
            assert self._file is not None
            try:
                self._file.write(row.data)
            except OSError as error:
                size = f"{1e-9 * self._bytes:.1f} GB of snapshots"
                raise HiresxError(
                    f"{size} do not fit into {tempfile.gettempdir()}: {error.strerror}",
                    "set TMPDIR to a folder with room, or take fewer of them",
                ) from None

    def columns(self, at_once: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Ranges of at most `at_once` places, and all times (times, n) of them, in double precision."""
        times, places = self.shape
        for first in range(0, places, max(at_once, 1)):
            part = slice(first, min(first + max(at_once, 1), places))
            if self._held is not None:
                yield part, self._held[:, part].astype(float, copy=False)
                continue
            assert self._file is not None
            values = np.empty((times, part.stop - first), self._kind)
            for n in range(times):
                self._file.seek(self._kind.itemsize * (n * places + first))
                self._file.readinto(values[n].data)  # type: ignore[attr-defined]
            yield part, values.astype(float, copy=False)
