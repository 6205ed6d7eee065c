"""Inflow of given total pressure, total temperature and direction (kernels/boundary/total_inflow.h)."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from hiresx.case.boundaries import TotalPressureInflow
from hiresx.decomposition import Patch
from hiresx.errors import HiresxError
from hiresx.rhs.face_condition import Face, place_of
from hiresx.rhs.subsonic_face import SubsonicFace
from hiresx.rhs.wall_corners import slip_walls_beside

# Least cosine of the angle between the direction of an inflow and the normal of its face.
LEAST_COSINE = 0.05


class TotalInflow(SubsonicFace):
    """An inflow with given total pressure, total temperature and direction at the nodes on the face."""

    kernel = "total_inflow"
    gives_nodes = True

    def __init__(self, face: Face):
        super().__init__(face)
        spec = cast(TotalPressureInflow, face.patch.condition)
        flow = np.zeros(3) if spec.direction is None else np.array(spec.direction) / np.linalg.norm(spec.direction)
        self._total = {"total_pressure": spec.total_pressure, "total_temperature": spec.total_temperature}
        self._total |= dict(zip(("dx", "dy", "dz"), map(float, flow), strict=True))
        n1, n2 = self.extent
        area = self.areas(self._direction, face.patch.range).reshape(3, n2, n1)
        self._normal = self._inward * area / np.linalg.norm(area, axis=0)
        # unit vectors (3, n2, n1) of the flow
        self._flow = np.broadcast_to(flow[:, None, None], area.shape) if flow.any() else self._normal
        self._check(self._flow, "does not lead into the block")

    def _check(self, flow: np.ndarray, fault: str) -> None:
        """Raise HiresxError, which says `fault`, if the unit vectors `flow` (3, n2, n1) do not lead inwards."""
        across = np.einsum("cji,cji->ji", flow, self._normal)
        if across.min() >= LEAST_COSINE:
            return
        patch, block = self.patch, self.state.block
        box = tuple(slice(*interval) for interval in reversed(patch.range))
        x, y, z = (float(c[box].ravel()[across.argmin()]) for c in (block.x, block.y, block.z))
        direction = cast(TotalPressureInflow, patch.condition).direction
        raise HiresxError(
            f"boundary {place_of(patch, self.state.name)}: the direction "
            f"{'normal to the face' if direction is None else list(direction)} {fault} "
            f"at x, y, z = {x:.4g}, {y:.4g}, {z:.4g}",
            "give a direction that leads inwards everywhere, or leave it out: normal to the face",
        )

    def turn_along(self, walls: Sequence[Patch]) -> None:
        """Project the direction of the flow onto the slip `walls` of the block, at nodes where they meet the inflow.
        Raises HiresxError if the projected direction does not lead into the block."""
        met = slip_walls_beside(self.state.size, self.patch, self._flow, walls, self.areas)
        if met is None:
            return
        along, there = self._flow.copy(), met.which >= 0
        projected = np.einsum("nce,en->cn", met.left[met.which[there]].reshape(-1, 3, 3), along[:, there])
        along[:, there] = projected / np.maximum(np.linalg.norm(projected, axis=0), np.finfo(float).tiny)
        self._check(along, "does not lead into the block along the slip walls")
        self.meet_slip_walls(*met)

    def node(self) -> None:
        """Set density, velocity and pressure at the nodes on the face from the given total pressure, total temperature
        and direction and the outgoing acoustic wave."""
        given = {"direction": self._inward, "m": self.state.areas[self._direction], "q": self.state.q}
        self._launch("total_inflow_node", self._box, **self._face, **self._total, **self.corner_arguments, **given)

    def ghost(self) -> None:
        """Extrapolate the flow to the ghost nodes by quartics through the node on the face and nodes inside."""
        self._continue_flow(1.0)
