"""Inflow with the planes that another run recorded (kernels/boundary/precursor.h)."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, cast

import numpy as np

from hiresx.case import Case
from hiresx.case.boundaries import PrecursorInflow as Spec
from hiresx.decomposition import Decomposition
from hiresx.decomposition.oblique_walls import inward_rows
from hiresx.equations import GAS_PRIMITIVE
from hiresx.errors import HiresxError
from hiresx.rhs.face_condition import Face, GivenNodes, place_of
from hiresx.rhs.face_values import place_at
from hiresx.rhs.plane_file import PlaneFile
from hiresx.rhs.plane_places import PlanePlaces

# Bytes of planes of one face of a part on the device, if the case does not give the number of planes.
HELD = 256 << 20
LEAST = 8
# Number of numbers that are read from the file at once.
_PIECE = 1 << 24


class Planes:
    """The recorded planes of `spec.file`, interpolated to `nodes`, which are x, y, z (3, n). `read(first, last)`
    returns rho, u, v, w, p as an array (planes, 5, n). `who`: the beginning of messages. Raises the errors of
    `PlaneFile` and `PlanePlaces`."""

    def __init__(self, case: Case, spec: Spec, nodes: np.ndarray, who: str):
        self.file = PlaneFile(Path(case.directory or "") / spec.file, case.gas.gamma, who)
        self._who, self._nodes = who, nodes
        places = PlanePlaces(
            who, self.file.places + np.array(spec.shift), {str(axis): length for axis, length in spec.period.items()}
        )
        points, self._weights = places.interpolation(nodes, spec.interpolation == "cubic")
        self._points, columns = np.unique(points, return_inverse=True)
        self._columns = columns.reshape(points.shape)
        times = self.file.times
        self.begin = times[0] if spec.start is None else spec.start
        self.period = (times[-1] - times[0]) * len(times) / (len(times) - 1) if spec.repeat else 0.0
        if not spec.repeat:
            self._check_duration(case)

    def _check_duration(self, case: Case) -> None:
        """Raises HiresxError if the planes begin after the run or end before it, or if this is unknown."""
        times, steps = self.file.times, case.time
        last = None if steps.dt is None or steps.steps is None else steps.dt * steps.steps
        ends = [end for end in (steps.end, last) if end is not None]
        if not ends:
            raise HiresxError(
                f"{self._who}: whether its planes last until the end of the run is not known",
                "give time.end, or repeat = true",
            )
        until, close = self.begin + min(ends), 1e-9 * (times[-1] - times[0])
        if self.begin < times[0] - close or until > times[-1] + close:
            raise HiresxError(
                f"{self._who}: the planes of {self.file.path} go from time {times[0]:.9g} to {times[-1]:.9g}, this run "
                f"needs them from {self.begin:.9g} to {until:.9g}",
                "record more of them, begin earlier (start), end earlier (time.end), or give repeat = true",
            )

    def read(self, first: int, last: int) -> np.ndarray:
        """Return rho, u, v, w, p of the recorded planes `first` to `last` - 1, interpolated to the n nodes of the face,
        as an array (planes, 5, n) in the scales of the case. Raises HiresxError if an interpolated density or pressure
        is not positive."""
        found = self.file.read(first, last, self._points)
        values = np.zeros((*found.shape[:2], self._weights.shape[1]))
        for column, weight in zip(self._columns, self._weights, strict=True):
            values += weight * found[..., column]
        bad = ~(values[:, [0, 4]] > 0)
        if bad.any():
            plane, variable, n = (int(m) for m in np.argwhere(bad)[0])
            raise HiresxError(
                f"{self._who}: {('rho', 'p')[variable]} of plane {first + plane} is not positive where it is "
                f"interpolated to {place_at(self._nodes, n)}",
                'take interpolation = "linear" for planes with jumps',
            )
        return values

    def place(self, time: float) -> int:
        """Return the index of the last recorded plane that is not later than `time` of this run, in L / c_ref."""
        times, t = self.file.times, self.begin + time
        if self.period > 0:
            t -= self.period * np.floor((t - times[0]) / self.period)
        return int(np.clip(np.searchsorted(times, t, "right") - 1, 0, len(times) - 1))


def check(case: Case, decomposition: Decomposition) -> None:
    """Raise HiresxError if the planes in the file of a precursor inflow do not fit its face or the duration of the run.
    Only coordinates and times are read from the files. `decomposition`: the blocks of the grid."""
    for patch in decomposition.patches:
        if isinstance(patch.condition, Spec):
            block = decomposition.blocks[patch.block]
            nodes = inward_rows(block, patch.face, patch.range, 1).reshape(3, -1)
            Planes(case, patch.condition, nodes, place_of(patch, block.name))


class PrecursorInflow(GivenNodes):
    """An inflow whose state is interpolated in time between recorded planes. The device stores all planes, or a
    consecutive part of them. In the second case the host reads the next planes in the background and must start every
    step. A plane is interpolated to the nodes of the face once, when it is read. The state depends only on the time."""

    kernel = "precursor"
    of_patch = False

    def __init__(self, face: Face):
        super().__init__(face)
        backend, state = face.backend, face.state
        spec = cast(Spec, face.patch.condition)
        nodes = np.stack([c[0].ravel() for c in self._coordinates(face.extended, 1)])
        self._planes = Planes(face.case, spec, nodes, place_of(face.patch, state.name))
        self._count, self._points, real = len(self._planes.file.times), nodes.shape[1], np.dtype(state.real)
        of_plane = len(GAS_PRIMITIVE) * self._points
        wanted = spec.planes or max(LEAST, HELD // (of_plane * real.itemsize))
        self._room = min(self._count, wanted)
        self._times = backend.to_device(self._planes.file.times)
        self._slots = backend.to_device(np.zeros(self._count, np.int32))
        self._held = backend.zeros((self._room, len(GAS_PRIMITIVE), self._points), str(real))
        self._first = 0
        self._coming: tuple[int, Future[np.ndarray]] | None = None
        self._reader: ThreadPoolExecutor | None = None
        self._put(0, self._look_at_all(max(1, _PIECE // of_plane)))

    def _look_at_all(self, piece: int) -> np.ndarray:
        """Read every plane once, so that a wrong value ends the run before it begins. Returns the first planes."""
        kept = self._planes.read(0, self._room)
        for first in range(self._room, self._count, piece):
            self._planes.read(first, min(first + piece, self._count))
        return kept

    @property
    def is_prepared(self) -> bool:
        """Whether the device stores all recorded planes, so that the host need not read more."""
        return self._room == self._count

    @property
    def moves(self) -> bool:
        """True, since the device interpolates the prescribed state in time."""
        return True

    def prepare(self, time: float) -> None:
        """Copy to the device those recorded planes that are needed at `time`, in L / c_ref, unless they are there, and
        start to read the next ones in the background."""
        if self.is_prepared:
            return
        place = self._planes.place(time)
        if self._covers(self._first, place):
            return
        if self._coming is None or not self._covers(self._coming[0], place):
            # Planes before those that are needed are kept: stages of a step may go back in time.
            first = self._wrap(place - self._behind)
            self._coming = first, self._read(first)
        (first, coming), self._coming = self._coming, None
        self._put(first, coming.result())
        ahead = self._wrap(first + self._room - 3 - self._behind)
        self._coming = ahead, self._read(ahead)

    def finish_reads(self) -> None:
        """Wait until the planes that are read in the background are complete."""
        if self._coming is not None:
            wait([self._coming[1]])

    @property
    def _behind(self) -> int:
        return max(2, self._room // 4)

    def _wrap(self, first: int) -> int:
        if self._planes.period > 0:
            return first % self._count
        return int(np.clip(first, 0, self._count - self._room))

    def _covers(self, first: int, place: int) -> bool:
        """Return whether the planes from `first` on include those around `place`: those of the polynomial and one more
        on both sides."""
        ahead = place - first
        if self._planes.period > 0:
            return 2 <= ahead % self._count < self._room - 3
        return (ahead >= 2 or first == 0) and (ahead < self._room - 3 or first + self._room == self._count)

    def _read(self, first: int) -> "Future[np.ndarray]":
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1)
        return self._reader.submit(self._window, first)

    def _window(self, first: int) -> np.ndarray:
        last = min(first + self._room, self._count)
        pieces = [self._planes.read(first, last)]
        if (rest := self._room - (last - first)) > 0:
            pieces.append(self._planes.read(0, rest))
        return np.concatenate(pieces)

    def _put(self, first: int, values: np.ndarray) -> None:
        """Copy the planes from `first` on to the device."""
        backend, slots = self._backend, np.zeros(self._count, np.int32)
        slots[(first + np.arange(self._room)) % self._count] = np.arange(self._room)
        backend.copy(self._held, backend.to_device(values.astype(self._held.dtype)))
        backend.copy(self._slots, backend.to_device(slots))
        self._first = first

    def move(self, clock: Any, share: float) -> None:
        """Interpolate the prescribed state on the device between recorded planes, at the start of the time step plus
        the fraction `share` of its size, both read from the device array `clock`."""
        planes = self._planes
        self._launch(
            "precursor_planes", (self._points, 1, 1), n=self._points, planes=self._count, begin=float(planes.begin),
            period=float(planes.period), share=share, clock=clock, times=self._times, slots=self._slots,
            held=self._held, target=self._target,
        )  # fmt: skip
