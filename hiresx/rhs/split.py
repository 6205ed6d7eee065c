"""The split form of the inviscid terms and the hybrid scheme, for every plan (kernels/split.h, kernels/hybrid.h)."""

import math
from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.device.wrappers import TILE
from hiresx.equations import DIRECTIONS
from hiresx.grid.blocks import direction
from hiresx.rhs.chunks import MULTIPROCESSORS, WARPS, march_chunk, resident_lines
from hiresx.rhs.fused import Fused, chunk_along
from hiresx.rhs.inviscid import Decomposed, InviscidPlan, Pencils, face_nodes, flux_arguments

# Planes of a box whose lines are segments (kernels/sensed_segments.h).
SEGMENT_PLANES = 16


class SplitPencils(Pencils):
    """Plan of the split form for CPUs: one kernel per direction processes one bundle of grid lines at a time in
    cache."""

    sweep = "split_sweep"


class SplitDecomposed(InviscidPlan):
    """Plan of the split form with one thread per point. One kernel computes the numerical fluxes at half points, and
    another their difference."""

    work_variables = Decomposed.work_variables

    def launches(self, d: int, first: bool) -> list[Call]:
        """Return the kernel launches that compute the inviscid terms along the index direction `d`: the numerical flux
        at half points, its difference, and for each wall the sums of mass fluxes. If `first` is true they set the
        right-hand side, otherwise they add to it."""
        s = self.state
        sd = s.strides[d]
        flux = s.work[: len(s.equations.conserved_names)]
        ni, nj, nk = (n + (e == d) for e, n in enumerate(s.size))
        calls = [
            self.program.call(
                "split_numerical_flux", (ni, nj, nk), **s.place | {"o": s.origin - sd}, sd=sd, sv=s.variable_stride,
                q=s.q, m=s.areas[d], flux=flux, **flux_arguments(s, d),
            ),
            self.program.call(
                "flux_difference", s.size, **s.place, sd=sd, sv=s.variable_stride, flux=flux, r=s.r, first=int(first)
            ),
        ]  # fmt: skip
        for face in sorted(face for face in self.walls if direction(face) == d):
            extent, nodes = face_nodes(s, face)
            calls.append(self.program.call("face_mass", extent, **nodes, flux=flux, sums=self.sums(d)))
        return calls


class SplitFused(Fused):
    """Plan of the split form for GPUs, without work memory. One kernel computes all directions at once: a block of
    threads processes a tile of grid lines along k, plane by plane (kernels/split_march.h). In the hybrid scheme further
    launches add the difference between the AFWENO flux and the split flux, weighted by the shock sensor: in segments of
    grid lines that a kernel lists (kernels/sensed_segments.h), or everywhere if the weight has a floor above 0."""

    @staticmethod
    def viscous_directions(precision: str) -> Set[int]:
        """Return the empty set: no kernel of this plan computes the differences of the viscous fluxes."""
        return frozenset()

    @staticmethod
    def chunks(state: BlockState, crowd: float) -> tuple[int, ...]:
        """Return what `Fused.chunks` does, and the number of planes of a chunk of the marching kernel."""
        return *Fused.chunks(state, crowd), _march_planes(state, crowd)

    def together(self, directions: Sequence[int], first: bool) -> list[Call]:
        """Return the kernel launches that compute the inviscid terms along the index `directions`: the split form in
        all of them, the lists of segments, then the launches of each direction (`launches`). If `first` is true the
        split form sets the right-hand side, otherwise it adds to it. In the hybrid scheme the split form is computed by
        the launch of `with_sensor` and is left out here."""
        march = [self._march(directions, first)] if directions and not self.state.layout.has("shock_sensor") else []
        listed = [self._list_segments(directions)] if directions and self._segments is not None else []
        return [*march, *listed, *super().together(directions, False)]

    def with_sensor(self, sensor: Call) -> Call:
        """Return a launch that replaces `sensor`, the launch that computes the shock sensor. It computes the sensor,
        marks the tiles of nodes in which it acts, and sets the right-hand side to the split form in all directions. It
        also empties the lists of segments."""
        names = ("jacobian", "threshold", "smooth", "floor", "sensor")
        counts = None if self._segments is None else self._segments[:DIRECTIONS]
        return self._march(
            self.state.active, True, tiles=self.state.array("sensed_tiles"), counts=counts,
            **{name: sensor.arguments[name] for name in names},
        )  # fmt: skip

    @property
    def _segments(self) -> Any:
        """The memory of the lists of segments as one row, or None: the number of segments of each direction, and two
        numbers for each segment (kernels/sensed_segments.h)."""
        found = self.state.array("sensed_segments")
        return None if found is None else found.reshape(-1)

    @property
    def _boxes(self) -> tuple[int, int, int]:
        """The numbers of boxes of nodes along i, j and k."""
        ni, nj, nk = (-(-n // of) for n, of in zip(self.state.size, (*TILE, SEGMENT_PLANES), strict=True))
        return ni, nj, nk

    def _room(self, d: int) -> tuple[int, int]:
        """The numbers of the first segment of direction `d` and of the one after its last, in units of two numbers."""
        size, boxes = self.state.size, self._boxes
        of = [math.prod(size) // size[e] * boxes[e] * (e in self.state.active) for e in range(DIRECTIONS)]
        begin = 2 + sum(of[:d])
        return begin, begin + of[d]

    def _list_segments(self, directions: Sequence[int]) -> Call:
        """Return the launch that lists the segments along the index `directions`."""
        s, segments = self.state, self._segments
        (n0, n1, n2), (_, sj, sk) = s.size, s.strides
        units = DIRECTIONS * math.prod(self._boxes)
        spread = next(n for n in range(math.ceil(0.618 * units), 2 * units) if math.gcd(n, units) == 1)
        share = -(-units // (2 * WARPS * MULTIPROCESSORS))
        starts = {f"start_{d}": self._room(d)[0] for d in range(DIRECTIONS)}
        return self.program.call(
            "list_segments", (-(-units // share), 1, 1), share=share, directions=sum(1 << d for d in directions),
            corner=s.origin, sj=sj, sk=sk, n0=n0, n1=n1, n2=n2, spread=spread, march=self._planes_of_chunk,
            segments=segments, counts=segments[:DIRECTIONS], sensor=s.array("shock_sensor"),
            tiles=s.array("sensed_tiles"), **starts,
        )  # fmt: skip

    def _sweep_segments(self, d: int) -> list[Call]:
        """Return the launches that add the difference between the hybrid and the split flux along the index direction
        `d`: in the listed segments, or everywhere if these are too many."""
        s, segments = self.state, self._segments
        begin, end = self._room(d)
        threads = min(end - begin, resident_lines(np.dtype(s.real).itemsize))
        other, limit = 3 - d if d else 1, (end - begin) * (7 if d else 4) // 8
        lines = s.size[0] * s.size[other] if d else 0
        chunk = chunk_along(s, d, self.crowd)
        fields = {"sv": s.variable_stride, "q": s.q, "m": s.areas[d], "r": s.r, **flux_arguments(s, d)}
        fields |= {"count": segments[d : d + 1], "limit": limit, "corner": s.origin, "n": s.size[d]}
        found = [
            self.program.call(
                "sweep_segments", (threads, 1, 1), threads=threads, s2=s.strides[other], sd=s.strides[d],
                width=s.size[0], lines=lines, chunk=chunk, segments=segments[2 * begin : 2 * end], **fields,
            )
        ]  # fmt: skip
        if d == 0:
            (n, rows, planes), (_, sj, sk) = s.size, s.strides
            warps = min(planes * -(-((rows - 1) * sj + n) // chunk), WARPS * MULTIPROCESSORS)
            found.append(
                self.program.call(
                    "sweep_all_along", (warps, 1, 1), warps=warps, sj=sj, sk=sk, rows=rows, planes=planes, chunk=chunk,
                    **fields,
                )
            )  # fmt: skip
        return found

    @property
    def _planes_of_chunk(self) -> int:
        """Number of planes of a chunk of the marching kernel."""
        return _march_planes(self.state, self.crowd)

    def _march(self, directions: Sequence[int], first: bool, **sensor: Any) -> Call:
        """The split form in these directions; `sensor`: the arguments of the launch that gives that field."""
        s = self.state
        ni, nj, n = s.size
        chunk = self._planes_of_chunk
        steps = {f"d{name}": s.strides[d] if d in directions else 0 for d, name in enumerate("ijk")}
        sensor = {"threshold": 1.0, "smooth": 0, "floor": 0.0, "counts": None} | sensor
        return self.program.call(
            "split_march", (ni, nj, -(-n // chunk)), **s.place, **steps, n=n, chunk=chunk, sv=s.variable_stride, q=s.q,
            m=s.metrics, r=s.r, first=int(first), **sensor,
        )  # fmt: skip

    def launches(self, d: int, first: bool) -> list[Call]:
        """Return the kernel launches along the index direction `d` that follow the split form. In the hybrid scheme one
        of them adds the difference between the hybrid flux and the split flux, where the shock sensor is above 0. The
        others compute sums of mass fluxes at walls. `first` has no effect, since all of them add to the right-hand
        side."""
        s, calls = self.state, []
        if s.layout.has("shock_sensor"):
            whole = self._segments is None
            calls += [self.sweep(d, False, frozenset())] if whole else self._sweep_segments(d)
        for face in sorted(face for face in self.walls if direction(face) == d):
            extent, nodes = face_nodes(s, face)
            calls.append(
                self.program.call(
                    "split_face_mass", extent, **nodes, sv=s.variable_stride, q=s.q, m=s.areas[d], sums=self.sums(d),
                    **flux_arguments(s, d),
                )
            )  # fmt: skip
        return calls


def _march_planes(state: BlockState, crowd: float) -> int:
    """Return the number of planes of a chunk of the marching kernel in the block `state`. `crowd`: as for
    `Fused.chunks`."""
    ni, nj, n = state.size
    return march_chunk(n, math.ceil(-(-ni // TILE[0]) * -(-nj // TILE[1]) * crowd))
