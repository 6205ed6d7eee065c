"""The split form of the inviscid terms and the hybrid scheme, for every plan (kernels/split.h, kernels/hybrid.h)."""

from collections.abc import Sequence, Set
from typing import Any

from hiresx.device.interface import Call
from hiresx.device.wrappers import TILE
from hiresx.grid.blocks import direction
from hiresx.rhs.chunks import ENDS, LANES, march_chunk
from hiresx.rhs.fused import Fused
from hiresx.rhs.inviscid import Decomposed, InviscidPlan, Pencils, face_nodes, flux_arguments


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
    launches add the difference between the AFWENO flux and the split flux, weighted by the shock sensor. They do
    nothing in segments of grid lines in which the sensor is 0."""

    longest, longest_row = 32, 4 * (2 * LANES - ENDS)

    @staticmethod
    def viscous_directions(precision: str) -> Set[int]:
        """Return the empty set: no kernel of this plan computes the differences of the viscous fluxes."""
        return frozenset()

    def together(self, directions: Sequence[int], first: bool) -> list[Call]:
        """Return the kernel launches that compute the inviscid terms along the index `directions`: the split form in
        all of them, then the launches of each direction (`launches`). If `first` is true the split form sets the
        right-hand side, otherwise it adds to it. In the hybrid scheme the split form is computed by the launch of
        `with_sensor` and is left out here."""
        march = [self._march(directions, first)] if directions and not self.state.layout.has("shock_sensor") else []
        return [*march, *super().together(directions, False)]

    def with_sensor(self, sensor: Call) -> Call:
        """Return a launch that replaces `sensor`, the launch that computes the shock sensor. It computes the sensor,
        marks the tiles of nodes in which it acts, and sets the right-hand side to the split form in all directions."""
        names = ("jacobian", "threshold", "smooth", "floor", "sensor")
        return self._march(
            self.state.active, True, tiles=self.marks["tiles"], **{name: sensor.arguments[name] for name in names}
        )

    @property
    def marks(self) -> dict[str, Any]:
        """Further arguments of the kernel `sweep_across`, which computes the inviscid terms along j and k, by name.
        `march`: the number of planes along k that a thread block of the split form processes. `tiles`: in the hybrid
        scheme, the device array of the field that marks the tiles in which the sensor acts."""
        tiles = self.state.array("sensed_tiles")
        return {"march": self._planes_of_chunk} | ({} if tiles is None else {"tiles": tiles})

    @property
    def _planes_of_chunk(self) -> int:
        """Number of planes of a chunk of the marching kernel."""
        ni, nj, n = self.state.size
        return march_chunk(n, self._of_all(-(-ni // TILE[0]) * -(-nj // TILE[1])))

    def _march(self, directions: Sequence[int], first: bool, **sensor: Any) -> Call:
        """The split form in these directions; `sensor`: the arguments of the launch that gives that field."""
        s = self.state
        ni, nj, n = s.size
        chunk = self._planes_of_chunk
        steps = {f"d{name}": s.strides[d] if d in directions else 0 for d, name in enumerate("ijk")}
        return self.program.call(
            "split_march", (ni, nj, -(-n // chunk)), **s.place, **steps, n=n, chunk=chunk, sv=s.variable_stride, q=s.q,
            m=s.metrics, r=s.r, first=int(first), **(sensor or {"threshold": 1.0, "smooth": 0, "floor": 0.0}),
        )  # fmt: skip

    def launches(self, d: int, first: bool) -> list[Call]:
        """Return the kernel launches along the index direction `d` that follow the split form. In the hybrid scheme one
        of them adds the difference between the hybrid flux and the split flux, where the shock sensor is above 0. The
        others compute sums of mass fluxes at walls. `first` has no effect, since all of them add to the right-hand
        side."""
        s, calls = self.state, []
        if s.layout.has("shock_sensor"):
            calls.append(self.sweep(d, False, frozenset()))
        for face in sorted(face for face in self.walls if direction(face) == d):
            extent, nodes = face_nodes(s, face)
            calls.append(
                self.program.call(
                    "split_face_mass", extent, **nodes, sv=s.variable_stride, q=s.q, m=s.areas[d], sums=self.sums(d),
                    **flux_arguments(s, d),
                )
            )  # fmt: skip
        return calls
