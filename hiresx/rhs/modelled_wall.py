"""Walls with an equilibrium wall model (kernels/boundary/modelled_wall.h)."""

from typing import Any, cast

import numpy as np

from hiresx.case.boundaries import ModelledWall as Spec
from hiresx.decomposition import Patch
from hiresx.decomposition.oblique_walls import inward_rows
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, direction
from hiresx.rhs.face_condition import Face, FaceCondition

# Number of the exchange node, counted from the wall.
USUAL_NODES = 4
# Recovery factor of an adiabatic wall, as in kernels/boundary/modelled_wall.h.
RECOVERY = 0.89


def wall_temperature(spec: Spec, gamma: float, gas: Any, slip: Any) -> Any:
    """Return the temperature of a wall with a wall model, in units of the reference temperature: the given one, or the
    recovery temperature if the wall is adiabatic. `spec`: the table of the wall in the case. `gamma`: ratio of specific
    heats. `gas`: temperature of the gas at the nodes of the wall. `slip`: square of the velocity of the gas relative to
    the wall there, in c_ref^2. Both are numbers or arrays."""
    return gas + 0.5 * (gamma - 1) * RECOVERY * slip if spec.temperature is None else 0 * gas + spec.temperature


def exchange_nodes(block: Block, patch: Patch, normal: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (n2, n1) for the nodes of a wall with a wall model: the number of cells to the exchange node
    (the node inside at which the model takes the velocity), and the distance of this node in units of the length scale
    L. The axes are those of [k, j, i] without the direction normal to the face. `patch`: the wall on `block`. If
    `normal` is given, unit vectors (3, nk, nj, ni) at the nodes of the wall, the distance is measured along them.
    Raises HiresxError if there are too few nodes below the exchange height, or if this height lies beyond the block."""
    spec = cast(Spec, patch.condition)
    d = direction(patch.face)
    rows = block.size[d]
    nodes = inward_rows(block, patch.face, patch.range, rows)
    steps = nodes - nodes[0]
    away = np.linalg.norm(steps, axis=1) if normal is None else np.abs(np.sum(steps * normal, axis=1))
    n1, n2 = (patch.range[e][1] - patch.range[e][0] for e in range(3) if e != d)
    away = away.reshape(rows, n2, n1)
    exchange = np.full((n2, n1), spec.exchange_nodes or USUAL_NODES)
    if spec.exchange_height is not None:
        exchange = np.sum(away < spec.exchange_height * (1 - 1e-9), axis=0)
    where = f"{spec.type} on {patch.face} of block '{block.name}'"
    if exchange.max() >= rows:
        raise HiresxError(
            f"{where}: its exchange height lies beyond the {rows} nodes that the block, or this rank's part of it, has "
            "from the wall on",
            "give a smaller exchange_height or exchange_nodes, or cut the block less (fewer ranks)",
        )
    if exchange.min() < 2:
        raise HiresxError(
            f"{where}: its exchange height {spec.exchange_height:g} is below the second node before the wall, which is "
            f"{away[2].max():.4g} away: too few nodes",
            "give a larger exchange_height, best that of the third to fifth node, or a finer grid",
        )
    return exchange, np.take_along_axis(away, exchange[None], axis=0)[0]


class ModelledWall(FaceCondition):
    """A wall with an equilibrium wall model. The velocity of its nodes is tangential, as on a slip wall; the model
    gives the viscous flux through it. Raises the errors of `exchange_nodes`."""

    rank = 1
    of_patch = False

    def __init__(self, face: Face):
        super().__init__(face)
        backend, state, patch, case = face.backend, face.state, face.patch, face.case
        spec = cast(Spec, patch.condition)
        self._mirrored, self._normal = face.mirrored, state.areas[self._direction]
        self.velocity, self._gamma = np.array(spec.velocity), case.gas.gamma
        wall = dict(zip("uvw", spec.velocity, strict=True))
        box = tuple(slice(*interval) for interval in reversed(patch.range))
        area = state.interior(backend.to_host(self._normal))[:, *box]
        exchange, heights = exchange_nodes(state.block, patch, area / np.linalg.norm(area, axis=0))
        zeros, kinds = backend.zeros, state.real
        self._flow, self._modelled = (zeros((n, *heights.shape), kinds) for n in (6, 4))
        self._given: dict[str, Any] = {"n1": self.extent[0], "count": heights.size, **wall}
        self._exchange = backend.to_device(exchange.astype(np.int32))
        self._layer = {
            "temperature": spec.temperature or 0.0,
            "inverse_reynolds": 1.0 / (case.gas.reynolds or np.inf),
            "heights": backend.to_device(heights.astype(state.real)),
        }

    def node(self) -> None:
        """Remove the velocity normal to the wall at its nodes."""
        given = {"m": self._normal, "q": self.state.q}
        self._launch("reflect_node", self._box, **self._face, **self.corner_arguments, **given)

    def ghost(self) -> None:
        """Set the ghost nodes behind the wall to the mirror image of the flow, unless they are interpolated at mirrored
        points."""
        if not self._mirrored:
            self._launch("reflect_ghost", self._box, **self._face, m=self._normal, q=self.state.q)

    def viscous_primitives(self, w: Any) -> None:
        """Set the ghost layers of `w` (variables, k, j, i), the primitive variables of the viscous terms, to mirrored
        values. Also store the flow at the exchange nodes, the nodes inside from which the wall model takes the
        velocity."""
        super().viscous_primitives(w)
        self._take_flow()

    def viscous_state(self) -> None:
        """Set the ghost layers of the conservative variables for the viscous terms, and read the flow at the exchange
        nodes, the nodes inside at which the wall model takes the velocity."""
        super().viscous_state()
        self._take_flow()

    def _take_flow(self) -> None:
        given = {"exchange": self._exchange, "flow": self._flow, "m": self._normal, "q": self.state.q}
        self._launch("exchange_flow", self._box, **self._face, **self._given, **given)

    def viscous_node(self, fluxes: Any) -> None:
        """Compute the wall stress and the heat flux of the wall model from the flow that was last read at the exchange
        nodes, the nodes inside at which the model takes the velocity. `fluxes` is not used."""
        count = self._given["count"]
        self._launch(
            "modelled_wall", (count, 1, 1), count=count, **self._layer, flow=self._flow, modelled=self._modelled
        )

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the viscous fluxes, `fluxes[d]` (variables, k, j, i) along index direction d, such
        that the flux at the wall is the flux of the wall model."""
        flux = fluxes[self._direction]
        self._launch(
            "modelled_wall_flux", self._box, **self._face, **self._given, direction=self._inward,
            modelled=self._modelled, m=self._normal, flux=flux,
        )  # fmt: skip

    def model_flow(self) -> None:
        """Compute the wall stress and the heat flux of the wall model for the present state of the flow."""
        self._take_flow()
        self.viscous_node(None)

    @property
    def modelled(self) -> Any:
        """Wall stress and heat flux of the wall model (4, n2, n1) at the nodes of the wall, from the last call of
        `model_flow` or the last stage: the force of the gas on the wall per area, along x, y, z, in rho_ref c_ref^2,
        and the heat flux into the gas, in rho_ref c_ref^3."""
        return self._modelled

    def temperature(self, gas: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Return the temperature of the wall (n,) at n of its nodes, in units of the reference temperature. `gas` (n,):
        the temperature of the gas there, in the same units. `velocity` (3, n): the velocity of the gas there, in
        c_ref."""
        slip = velocity - self.velocity[:, None]
        return np.asarray(
            wall_temperature(cast(Spec, self.patch.condition), self._gamma, gas, (slip * slip).sum(axis=0))
        )
