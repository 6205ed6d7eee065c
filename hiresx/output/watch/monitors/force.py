"""`[[force]]`: pressure, friction and heat on walls."""

from pathlib import Path

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Force as Spec
from hiresx.decomposition import Decomposition, places
from hiresx.errors import HiresxError
from hiresx.output.watch.columns import dimension
from hiresx.output.watch.force_coefficients import ForceCoefficients
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.wall_quadrature import wall_shares
from hiresx.output.watch.watched import WatchedRun
from hiresx.output.watch.watched_surface import FaceNodes, Shares, WatchedSurface, mask
from hiresx.solver import Solver

# By whether friction and heat pass them.
WALLS = (("no-slip-wall", "modelled-wall"), ("slip-wall",))
# Where the components of a force point, in plane flow and around an axis.
PLANE = tuple(f" along {c}" for c in "xyz")
ROUND = (" along x", ", sum of the radial components", ", sum of the components along the swirl")


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Build a monitor for each `[[force]]` of the case."""
    return [ForceMonitor(f"force.{n}", spec, simulation.solver, simulation.out) for n, spec in enumerate(case.force)]


def check(case: Case, decomposition: Decomposition) -> None:
    """Raises HiresxError for blocks, regions and ranges that do not exist, and where no wall is named."""
    for n, spec in enumerate(case.force):
        _walls(f"force.{n}", spec, decomposition)
        _coefficients(f"force.{n}", spec, case, 3)


class ForceMonitor(Monitor):
    """Columns: force_x, y, z by pressure and friction together, pressure_x, y, z, friction_x, y, z, heat, coefficients
    where they are asked for, and area.

    Of axisymmetric flow y and z are sums of radial components and of those along the swirl, and there is the torque."""

    def __init__(self, key: str, spec: Spec, solver: Solver, out: Path | None):
        area = ("", " L", " L^2")[dimension(solver) - 1]
        round_ = solver.case.axisymmetric
        with solver.comm.together():
            self._coefficients = _coefficients(key, spec, solver.case, dimension(solver))
        along = dict(zip("xyz", ROUND if round_ else PLANE, strict=True))
        scale = f"rho_ref c_ref^2{area}"
        columns = [
            *(Column(f"force_{c}", f"force on the walls{way}", scale) for c, way in along.items()),
            *(Column(f"pressure_{c}", f"force of pressure{way}", scale) for c, way in along.items()),
            *(Column(f"friction_{c}", f"force of friction{way}", scale) for c, way in along.items()),
            *([Column("torque", "moment of friction about the x axis", "rho_ref c_ref^2 L^3")] if round_ else []),
            Column("heat", "heat into the walls per time", f"rho_ref c_ref^3{area}"),
            *(self._coefficients.columns if self._coefficients else []),
            Column("area", "area of the walls", area.strip() or "1"),
        ]
        super().__init__(solver.comm, spec.name, "force", columns, spec.every, spec.every_time, out)
        here, faces = {state.part.whole for state in solver.states}, []
        with solver.comm.together():
            walls = _walls(key, spec, solver.decomposition)
        whole: dict[tuple[int, str], np.ndarray] = {}
        for b, face, nodes, _ in walls:
            whole[b, face] = whole.get((b, face), False) | nodes
        shares = wall_shares(solver.decomposition, whole)
        for b, face, nodes, mirror in walls:
            if b in here:
                faces += [FaceNodes(b, face, w * nodes, 0, mirror, areas) for w, areas in shares[b, face]]
        self._surface = WatchedSurface(solver, faces, 1)
        self._area = solver.comm.sum(self._surface.areas())[0]
        self._pressure = spec.pressure
        self._coordinates = self._surface.coordinates(self._surface.places) if self._coefficients else None

    def measure(self, solver: Solver) -> dict[str, float]:
        values = self._comm.sum(self._surface.sums(self._rows(solver)))
        return dict(zip((column.name for column in self.history.columns), (*values[0], self._area), strict=True))

    @property
    def surface(self) -> WatchedSurface:
        """The nodes of the walls of this rank."""
        return self._surface

    def shares(self, solver: Solver) -> Shares:
        """Return what single nodes of this rank add to every column but the area, in the column's unit."""
        names = [column.name for column in self.history.columns[:-1]]
        return Shares(self._surface.states, self._surface.places, dict(zip(names, self._rows(solver), strict=True)))

    def _rows(self, solver: Solver) -> np.ndarray:
        """What every node adds to each column but the area, (columns, n)."""
        flow = self._surface.measure()
        pressure = (flow.p - self._pressure) * flow.push
        torque = [self._surface.moments(flow.friction)[None]] if solver.case.axisymmetric else []
        force, more = pressure + flow.friction, []
        if self._coefficients is not None and self._coordinates is not None:
            more = [self._coefficients.rows(force, self._coordinates)]
        return np.concatenate([force, pressure, flow.friction, *torque, flow.heat[None], *more])


def _coefficients(key: str, spec: Spec, case: Case, dimensions: int) -> ForceCoefficients | None:
    if spec.coefficients is None:
        return None
    return ForceCoefficients(f'{key} "{spec.name}": coefficients', spec.coefficients, case, dimensions)


def _walls(key: str, spec: Spec, decomposition: Decomposition) -> list[tuple[int, str, np.ndarray, bool]]:
    """Block, face, mask of its nodes ([k, j, i] without the face's direction) and whether it is a slip wall, for all
    walls that `spec` names."""
    named = [
        (b, face, mask(decomposition, b, face, range_))
        for b, face, range_ in places(decomposition.blocks, f'{key} "{spec.name}"', spec)
    ]
    walls = []
    for mirror in (False, True):
        chosen: dict[tuple[int, str], np.ndarray] = {}
        for patch in decomposition.patches:
            if patch.condition.type not in WALLS[mirror]:
                continue
            wall = mask(decomposition, patch.block, patch.face, patch.range)
            for b, face, inside in named:
                if (b, face) == (patch.block, patch.face):
                    chosen[b, face] = chosen.get((b, face), False) | (wall & inside)
        walls += [(b, face, nodes, mirror) for (b, face), nodes in chosen.items() if nodes.any()]
    if not walls:
        raise HiresxError(
            f'{key} "{spec.name}": there is no wall ({" or ".join((*WALLS[0], *WALLS[1]))}) on the faces it names',
            "name the faces, the block or the region of a wall",
        )
    return walls
