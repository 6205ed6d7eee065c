"""The split form of the inviscid terms, and the hybrid one, by every plan (kernels/split.h, kernels/hybrid.h)."""

from collections.abc import Set

from hiresx.device.interface import Call
from hiresx.grid.blocks import direction
from hiresx.rhs.inviscid import Decomposed, InviscidPlan, Pencils, face_nodes


class SplitPencils(Pencils):
    """CPU plan, as that of AFWENO."""

    sweep = "split_sweep"


class SplitDecomposed(InviscidPlan):
    """A thread per point: flux at half points, difference."""

    work_variables = Decomposed.work_variables

    def launches(self, d: int, first: bool) -> list[Call]:
        s = self.state
        sd = s.strides[d]
        flux = s.work[: len(s.equations.conserved_names)]
        ni, nj, nk = (n + (e == d) for e, n in enumerate(s.size))
        calls = [
            self.program.call(
                "split_numerical_flux", (ni, nj, nk), **s.place | {"o": s.origin - sd}, sd=sd, sv=s.variable_stride,
                q=s.q, m=s.areas[d], flux=flux, **self.flux_arguments,
            ),
            self.program.call(
                "flux_difference", s.size, **s.place, sd=sd, sv=s.variable_stride, flux=flux, r=s.r, first=int(first)
            ),
        ]  # fmt: skip
        for face in sorted(face for face in self.walls if direction(face) == d):
            extent, nodes = face_nodes(s, face)
            calls.append(self.program.call("face_mass", extent, **nodes, flux=flux, sums=self.sums(d)))
        return calls


class SplitFused(InviscidPlan):
    """A thread per node, without work memory: its pairs with the nodes around, and where a sensor is above 0 what the
    hybrid flux has over theirs."""

    work_variables = 0

    @staticmethod
    def carried(precision: str) -> Set[int]:
        """None."""
        return frozenset()

    def launches(self, d: int, first: bool) -> list[Call]:
        s = self.state
        place = s.place | {"sd": s.strides[d], "sv": s.variable_stride, "q": s.q, "m": s.areas[d], "r": s.r}
        calls = [self.program.call("split_rates", s.size, **place, first=int(first))]
        if "sensor" in self.flux_arguments:
            calls.append(self.program.call("hybrid_rates", s.size, **place, **self.flux_arguments))
        for face in sorted(face for face in self.walls if direction(face) == d):
            extent, nodes = face_nodes(s, face)
            calls.append(
                self.program.call(
                    "split_face_mass", extent, **nodes, sv=s.variable_stride, q=s.q, m=s.areas[d], sums=self.sums(d),
                    **self.flux_arguments,
                )
            )  # fmt: skip
        return calls
