"""Walls with an equilibrium wall model (kernels/boundary/modelled_wall.h)."""

from typing import Any, cast

import numpy as np

from hiresx.case import Case
from hiresx.case.boundaries import ModelledWall as Spec
from hiresx.decomposition import Patch
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.errors import HiresxError
from hiresx.rhs.face_condition import FaceCondition

# The exchange node, counted from the wall.
USUAL_NODES = 4


class ModelledWall(FaceCondition):
    """The flow slips along the wall, as along a slip wall; the viscous flux through it is that of the model. `mirrored`:
    whether ghosts of the state come from the mirror images of their own places.

    `heights` (n2, n1): distances of the exchange nodes from the wall, in L.

    Raises HiresxError where there are too few nodes below the exchange height, or none at it."""

    rank = 1

    def __init__(self, backend: Backend, program: Program, state: BlockState, patch: Patch, case: Case, mirrored: bool):
        super().__init__(backend, program, state, patch)
        spec = cast(Spec, patch.condition)
        self._mirrored, self._normal = mirrored, state.areas[self._direction]
        self.velocity = np.array(spec.velocity)
        wall = dict(zip("uvw", spec.velocity, strict=True))
        exchange, self.heights = self._exchange(spec)
        shape = (4, *self.heights.shape)
        self._modelled = backend.zeros(shape, state.real)
        self._given = {"n1": self.extent[0], "count": self.heights.size, **wall, "modelled": self._modelled}
        self._flow = {
            "temperature": spec.temperature or 0.0,
            "inverse_reynolds": 1.0 / (case.gas.reynolds or np.inf),
            "exchange": backend.to_device(exchange.astype(np.int32)),
            "heights": backend.to_device(self.heights.astype(state.real)),
        }

    def _exchange(self, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
        """Which node before each node of the wall is the exchange node, and its distance from the wall."""
        state, patch, d = self.state, self.patch, self._direction
        box: list[Any] = [slice(*interval) for interval in patch.range]
        area = state.interior(self._backend.to_host(self._normal))[:, *reversed(box)]
        normal = self._inward * area / np.linalg.norm(area, axis=0)
        first, rows = patch.range[d][0], state.size[d]
        distances = []
        for row in range(rows):
            nodes = [*box]
            nodes[d] = slice(first + int(self._inward) * row, first + int(self._inward) * row + 1)
            places = [c[tuple(reversed(nodes))] for c in (state.block.x, state.block.y, state.block.z)]
            distances.append(np.stack(places))
        n2, n1 = self.extent[::-1]
        away = np.sum((np.stack(distances) - distances[0]) * normal, axis=1).reshape(rows, n2, n1)
        if spec.exchange_height is None:
            exchange = np.full((n2, n1), spec.exchange_nodes or USUAL_NODES)
        else:
            exchange = np.sum(away < spec.exchange_height * (1 - 1e-9), axis=0)
        where = f"{spec.type} on {patch.face} of block '{state.name}'"
        if exchange.max() >= rows:
            raise HiresxError(
                f"{where}: its exchange height lies beyond the {rows} nodes that the block, or this rank's part of it, "
                "has before the wall",
                "give a smaller exchange_height or exchange_nodes, or cut the block less (fewer ranks)",
            )
        if exchange.min() < 2:
            raise HiresxError(
                f"{where}: its exchange height {spec.exchange_height:g} lies below the second node before the wall, "
                f"which is at {away[2].max():.4g}: too few nodes",
                "give a larger exchange_height, best that of the third to fifth node, or a finer grid",
            )
        return exchange, np.take_along_axis(away, exchange[None], axis=0)[0]

    def node(self) -> None:
        self._launch("reflect_node", self._box, **self._face, m=self._normal, q=self.state.q)

    def ghost(self) -> None:
        if not self._mirrored:
            self._launch("reflect_ghost", self._box, **self._face, m=self._normal, q=self.state.q)

    def viscous_node(self, fluxes: Any) -> None:
        self.model()

    def model(self) -> None:
        s = self.state
        self._launch("modelled_wall", self._box, **self._face, **self._given, **self._flow, m=self._normal, q=s.q)

    def viscous_flux(self, fluxes: Any) -> None:
        flux = fluxes[self._direction]
        self._launch(
            "modelled_wall_flux", self._box, **self._face, **self._given, direction=self._inward, m=self._normal,
            flux=flux,
        )  # fmt: skip

    def places(self) -> np.ndarray:
        """Of the wall's nodes in the padded arrays, (n,)."""
        first, second = (np.arange(n) * self._nodes[step] for n, step in zip(self.extent, ("s1", "s2"), strict=True))
        found: np.ndarray = (self._nodes["o"] + second[:, None] + first).ravel()
        return found

    def modelled(self) -> np.ndarray:
        """For the state as it is, at `places`, (4, n): the force of the gas on the wall over its area, x, y, z, in
        rho_ref c_ref^2, and the heat flux into the gas, in rho_ref c_ref^3."""
        self.model()
        return self._backend.to_host(self._modelled).reshape(4, -1).astype(np.float64)
