"""Inflow of given total pressure, total temperature and direction (kernels/boundary/total_inflow.h)."""

from typing import cast

import numpy as np

from hiresx.case.boundaries import TotalPressureInflow
from hiresx.errors import HiresxError
from hiresx.rhs.face_condition import Face, place_of
from hiresx.rhs.subsonic_face import SubsonicFace

# Least cosine of the angle between the direction of an inflow and the normal of its face.
LEAST_COSINE = 0.05


class TotalInflow(SubsonicFace):
    """An inflow with given total pressure, total temperature and direction at the nodes on the face."""

    kernel = "total_inflow"
    gives_nodes = True

    def __init__(self, face: Face):
        super().__init__(face)
        state, patch = face.state, face.patch
        spec = cast(TotalPressureInflow, patch.condition)
        flow = np.zeros(3) if spec.direction is None else np.array(spec.direction) / np.linalg.norm(spec.direction)
        self._total = {"total_pressure": spec.total_pressure, "total_temperature": spec.total_temperature}
        self._total |= dict(zip(("dx", "dy", "dz"), map(float, flow), strict=True))
        area = state.interior(face.backend.to_host(state.areas[self._direction]))
        box = tuple(slice(*interval) for interval in reversed(patch.range))
        normal = self._inward * area[:, *box].reshape(3, -1)
        across = flow @ normal / np.linalg.norm(normal, axis=0)
        if flow.any() and across.min() < LEAST_COSINE:
            x, y, z = (float(c[box].ravel()[across.argmin()]) for c in (state.block.x, state.block.y, state.block.z))
            raise HiresxError(
                f"boundary {place_of(patch, state.name)}: the direction "
                f"{list(spec.direction or ())} does not lead into the block at x, y, z = {x:.4g}, {y:.4g}, {z:.4g}",
                "give a direction that leads inwards everywhere, or leave it out: normal to the face",
            )

    def node(self) -> None:
        """Set density, velocity and pressure at the nodes on the face from the given total pressure, total temperature
        and direction and the outgoing acoustic wave."""
        q, area = self.state.q, self.state.areas[self._direction]
        self._launch("total_inflow_node", self._box, **self._face, direction=self._inward, **self._total, m=area, q=q)

    def ghost(self) -> None:
        """Extrapolate the flow to the ghost nodes by quartics through the node on the face and nodes inside."""
        self._continue_flow(1.0)
