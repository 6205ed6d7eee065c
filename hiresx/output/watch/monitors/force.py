"""`[[force]]`: pressure, friction and heat on walls."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Force as Spec
from hiresx.decomposition import Decomposition, places
from hiresx.device.interface import Calls
from hiresx.errors import HiresxError
from hiresx.grid.blocks import directions_along
from hiresx.output.watch.columns import dimension
from hiresx.output.watch.device_samples import DeviceMonitor
from hiresx.output.watch.force_coefficients import ForceCoefficients
from hiresx.output.watch.history import Column
from hiresx.output.watch.level_walls import level_wall_shares
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.wall_distribution import WallDistribution
from hiresx.output.watch.wall_extremes import WallExtremes
from hiresx.output.watch.wall_file import KIND
from hiresx.output.watch.wall_nodes import WallNodes
from hiresx.output.watch.wall_quadrature import wall_shares
from hiresx.output.watch.watched import WatchedRun
from hiresx.output.watch.watched_surface import FaceFlow, FaceNodes, NodeContributions, WatchedSurface, mask
from hiresx.solver import Solver

# Sums of kernels/face_flow.h: forces of pressure and of friction along x, y, z, heat, moments of both forces about
# these axes, torque of the friction.
ROWS = 11
# Kinds of walls, by whether friction and heat pass through them.
WALLS = (("no-slip-wall", "modelled-wall"), ("slip-wall",))
# Directions of the components of a force, in plane flow and around an axis.
PLANE = tuple(f" along {c}" for c in "xyz")
ROUND = (" along x", ", sum of the radial components", ", sum of the components along the swirl")


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return a list of monitors of the run `simulation`: one for each table `[[force]]` of the case, and one for the
    distribution of pressure and friction along the walls of each force that requests it. Without a run directory there
    are no distributions, since they are too large for the memory."""
    solver, out, found = simulation.solver, simulation.out, list[Monitor]()
    for n, spec in enumerate(case.force):
        force = ForceMonitor(f"force.{n}", spec, solver, out)
        found.append(force)
        if spec.distribution is not None and out is not None:
            found.append(
                WallDistribution(
                    spec.distribution, spec.name, force.nodes, force.measure_nodes, solver, out / KIND.folder
                )
            )
    return found


def check(case: Case, decomposition: Decomposition) -> None:
    """Raise HiresxError for faults in the tables [[force]] of a case: blocks, regions and ranges that do not exist, a
    table that selects no wall, and extrema of y+, friction and heat flux at slip walls, which have none.
    `decomposition`: the blocks of the grid."""
    for n, spec in enumerate(case.force):
        _walls(f"force.{n}", spec, decomposition)
        _coefficients(f"force.{n}", spec, case, 3)


class ForceMonitor(DeviceMonitor):
    """Monitor of the force on the walls that one table [[force]], `spec`, selects. `key`: the name of the table in
    messages. Its columns are force_x, force_y and force_z (pressure and friction together), pressure_x, y, z,
    friction_x, y, z, heat and area. If the case requests them, there are also coefficients and extremes along the
    walls. In axisymmetric flow the y components are sums of radial components, the z components are sums of components
    along the swirl, and there is the torque."""

    def __init__(self, key: str, spec: Spec, solver: Solver, out: Path | None):
        area = ("", " L", " L^2")[dimension(solver) - 1]
        round_ = solver.case.axisymmetric
        with solver.comm.together():
            self._coefficients = _coefficients(key, spec, solver.case, dimension(solver))
        along = dict(zip("xyz", ROUND if round_ else PLANE, strict=True))
        scale = f"rho_ref c_ref^2{area}"
        integrals = [
            *(Column(f"force_{c}", f"force on the walls{way}", scale) for c, way in along.items()),
            *(Column(f"pressure_{c}", f"force of pressure{way}", scale) for c, way in along.items()),
            *(Column(f"friction_{c}", f"force of friction{way}", scale) for c, way in along.items()),
            *([Column("torque", "moment of friction about the x axis", "rho_ref c_ref^2 L^3")] if round_ else []),
            Column("heat", "heat into the walls per time", f"rho_ref c_ref^3{area}"),
            *(self._coefficients.columns if self._coefficients else []),
            Column("area", "area of the walls", area.strip() or "1"),
        ]
        columns = [*integrals, *(WallExtremes.columns if spec.extrema else ())]
        super().__init__(solver.comm, spec.name, "force", columns, spec.every, spec.every_time, out)
        self._integrals = [column.name for column in integrals]
        with solver.comm.together():
            walls = _walls(key, spec, solver.decomposition)
        faces = _face_nodes(solver.decomposition, walls, {state.part.whole for state in solver.states})
        self._solver, self._surface = solver, WatchedSurface(solver, faces, 1)
        self._area = solver.comm.sum(self._surface.areas())[0]
        self._pressure = spec.pressure
        self._arms: np.ndarray | None = None  # of the moment of the coefficients
        if self._coefficients is not None:
            self._arms = self._coefficients.arms(self._surface.coordinates(self._surface.places))
        self._extremes = WallExtremes(solver, self.nodes) if spec.extrema else None
        self.count, self.ghosts = ROWS * self._surface.chunks, self._surface.ghosts
        self.deferred = not spec.extrema and spec.distribution is None
        # The values of the last sample, valid until the flow changes.
        self._measured: FaceFlow | None = None

    def after_step(self, solver: Solver) -> None:
        """Take a sample if one is due after this time step. All ranks must call this method."""
        self._measured = None
        super().after_step(solver)

    def calls(self, numbers: Any) -> Calls:
        """Return the kernel launches that sum pressure, friction, heat and moments over this rank's wall nodes and
        write the sums to the device array `numbers`, float64 (`count`,)."""
        put, round_ = self._solver.backend.to_device, self._solver.case.axisymmetric
        return self._surface.sum_calls(
            "face_force_sums", numbers, pressure=float(self._pressure),
            arms=None if self._arms is None else put(self._arms), radii=put(self._surface.radii) if round_ else None,
        )  # fmt: skip

    def values(self, numbers: np.ndarray, time: float) -> dict[str, float]:
        """Return the integrals over the walls by column. `numbers` (count,): the sums that the launches of the method
        `calls` have computed on this rank. `time` is not used. All ranks must call this method."""
        sums = self._comm.sum(self._surface.by_group(numbers, ROWS))[0]
        pressure, friction, heat, moment, torque = np.split(sums, (3, 6, 7, 10))
        found = [*self._columns(pressure, friction, heat, moment, torque).tolist(), self._area]
        return dict(zip(self._integrals, found, strict=True))

    def measure(self, solver: Solver) -> dict[str, float]:
        """Return the integrals over the walls and, if the case requests them, the extremes along the walls, by column
        and in the unit of the column, for the current state. All ranks must call this method."""
        values = self.integrals()
        if not self.deferred:
            self._measured = self._surface.last()
        extremes = {} if self._extremes is None else self._extremes.measure(self.nodes.measure(self._measured))
        return {**values, **extremes}

    def measure_nodes(self) -> dict[str, np.ndarray]:
        """Return pressure, friction, heat flux and y+ (n,) at the n wall nodes of this rank, by the names of the
        columns, for the current state. If this monitor has taken a sample after the same step, the values of this
        sample are returned."""
        return self.nodes.measure(self._surface.measure() if self._measured is None else self._measured)

    def integrals(self) -> dict[str, float]:
        """Return the integrals over the walls, such as force_x, by name, in the unit of their column, for the current
        state. All ranks must call this method."""
        return self.values(self.numbers(self._solver), self._solver.time)

    @cached_property
    def nodes(self) -> WallNodes:
        """The wall nodes of this rank on which the force acts."""
        return WallNodes(self._solver, self._surface)

    def shares(self) -> NodeContributions:
        """Return the contribution of each wall node of this rank to each integral over the walls except the area, in
        the unit of the integral's column, for the current state."""
        flow, surface = self._surface.measure(), self._surface
        pressure, torque = (flow.p - self._pressure) * flow.push, surface.radii * flow.friction[2]
        moment = np.zeros_like(pressure)
        if self._arms is not None:
            moment = np.cross(self._arms, pressure + flow.friction, axis=0)
        rows = self._columns(pressure, flow.friction, flow.heat[None], moment, torque[None])
        return NodeContributions(surface.states, surface.places, dict(zip(self._integrals[:-1], rows, strict=True)))

    def _columns(
        self, pressure: np.ndarray, friction: np.ndarray, heat: np.ndarray, moment: np.ndarray, torque: np.ndarray
    ) -> np.ndarray:
        """What forces (3, ...) of pressure and friction, `heat` (1, ...), the `moment` (3, ...) about the centre of the
        coefficients and the `torque` (1, ...) about the x axis add to each integral but the area, (columns, ...)."""
        force, round_ = pressure + friction, [torque] if self._solver.case.axisymmetric else []
        more = [] if self._coefficients is None else [self._coefficients.values(force, moment)]
        return np.concatenate([force, pressure, friction, *round_, heat, *more])


def _coefficients(key: str, spec: Spec, case: Case, dimensions: int) -> ForceCoefficients | None:
    if spec.coefficients is None:
        return None
    return ForceCoefficients(f'{key} "{spec.name}": coefficients', spec.coefficients, case, dimensions)


def _walls(key: str, spec: Spec, decomposition: Decomposition) -> dict[tuple[int, str], np.ndarray]:
    """By block and face masks of the nodes ([k, j, i] without the face's direction) of all walls of the blocks of the
    grid that `spec` names."""
    walls: dict[tuple[int, str], np.ndarray] = {}
    slips = True
    for b, face, range_ in places(decomposition.grid_blocks, f'{key} "{spec.name}"', spec):
        named = mask(decomposition, b, face, range_)
        for mirror in (False, True):
            nodes = named & _of_kind(decomposition, b, face, mirror)
            if nodes.any():
                walls[b, face] = walls.get((b, face), False) | nodes
                slips &= mirror
    if not walls:
        raise HiresxError(
            f'{key} "{spec.name}": there is no wall ({" or ".join((*WALLS[0], *WALLS[1]))}) on the faces it names',
            "name the faces, the block or the region of a wall",
        )
    if spec.extrema and slips:
        raise HiresxError(
            f'{key} "{spec.name}": extrema: these are slip walls, which have neither friction nor heat flux nor y+',
            "leave extrema out; distribution records the pressure along slip walls, and 0 for the others",
        )
    return walls


def _of_kind(decomposition: Decomposition, b: int, face: str, mirror: bool) -> np.ndarray:
    """Mask of the nodes of a face of a whole block that are slip walls (`mirror`) or others."""
    found = np.zeros([decomposition.blocks[b].size[e] for e in directions_along(face)], bool)
    for patch in (*decomposition.patches, *decomposition.step_edges):
        if (patch.block, patch.face) == (b, face) and patch.condition.type in WALLS[mirror]:
            found |= mask(decomposition, b, face, patch.range)
    return found


def _face_nodes(
    decomposition: Decomposition, walls: dict[tuple[int, str], np.ndarray], here: set[int]
) -> list[FaceNodes]:
    """The nodes of `walls` of the whole blocks `here`, with their weights in integrals over all of them."""
    shares = (wall_shares if decomposition.levels is None else level_wall_shares)(decomposition, walls)
    return [
        FaceNodes(b, face, weights * nodes, 0, mirror, areas)
        for (b, face), parts in shares.items()
        if b in here
        for mirror in (False, True)
        if (nodes := _of_kind(decomposition, b, face, mirror)).any()
        for weights, areas, _ in parts
    ]
