"""The nodes of walls, and pressure, friction, heat flux and y+ there, for the tables `[[force]]` of a case and for
`hiresx post wall`."""

import numpy as np

from hiresx.case import Case
from hiresx.output.watch.history import Column
from hiresx.output.watch.node_numbers import NodeNumbers
from hiresx.output.watch.watched_surface import FaceFlow, WatchedSurface
from hiresx.solver import Solver

# The quantities of a node. Friction is the force of the gas on the wall, along the wall and per area.
COLUMNS = (
    Column("p", "pressure", "rho_ref c_ref^2"),
    *(Column(f"friction_{axis}", f"shear stress along {axis}", "rho_ref c_ref^2") for axis in "xyz"),
    Column("heat", "heat flux into the wall", "rho_ref c_ref^3"),
    Column("y_plus", "distance of the first node in wall units", "1"),
)


class WallNodes:
    """The nodes of this rank on the walls of `surface`. Each node is listed once, in the order of block, k, j, i.

    - `numbers` (n,): numbers of the nodes in this order over all ranks.
    - `where` (4, n): block, i, j, k in the whole blocks.
    - `places` (3, n): x, y, z, in units of the length scale L.
    - `normals` (3, n): outward unit normals; nan for a node without area, such as a node on an axis.
    - `areas` (n,): in L^2 (per unit length in plane flow).
    - `slips` (n,): whether all walls at the node are slip walls.

    If a node belongs to several faces, as at an edge, their forces and areas are added, and the normal is that of the
    sum of their area vectors. With levels of refinement `areas` are the quadrature weights of the nodes of the finest
    level; some of them are negative near the end of a level."""

    def __init__(self, solver: Solver, surface: WatchedSurface):
        self._case, self._surface = solver.case, surface
        numbering, where = NodeNumbers(solver.decomposition.blocks), surface.nodes(surface.places)
        self.numbers, self._first, self._same = np.unique(
            numbering.of(where[0], where[1:]), return_index=True, return_inverse=True
        )
        self.where = where[:, self._first]
        places = surface.coordinates(surface.places)
        self.places = places[:, self._first]
        # Means over the contributions of a node are weighted by the magnitudes of their areas, including those that are
        # subtracted in integrals.
        self._signs = np.sign(surface.sizes)
        area, (self.areas,) = self._sums(self._signs * surface.push), self._sums(surface.sizes[None])
        (sizes,) = self._sums(np.abs(surface.sizes)[None])
        self._sizes = np.where(sizes > 0, sizes, np.nan)
        length = np.linalg.norm(area, axis=0)
        self.normals = area / np.where(length > 0, length, np.nan)
        self.slips = self._sums(~surface.mirror[None])[0] == 0
        self._heights = np.zeros(len(self.numbers))
        if surface.inner.size:
            apart = (surface.coordinates(surface.inner) - places)[:, self._first]
            self._heights = np.abs((apart * self.normals).sum(axis=0))

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sums (m, n) of `values` over the parts of each node."""
        return np.stack([np.bincount(self._same, row, len(self.numbers)) for row in values])

    def measure(self, flow: FaceFlow | None = None) -> dict[str, np.ndarray]:
        """Return the flow at the n wall nodes of this rank, arrays (n,) by name: the pressure "p" and the shear stress
        "friction_x", "friction_y", "friction_z" in rho_ref c_ref^2, the heat flux "heat" into the wall in rho_ref
        c_ref^3, and "y_plus". `flow`: the flow at the walls; None to compute it from the current state. In inviscid
        flow and at slip walls, friction, heat flux and y+ are 0. At walls with a wall model, friction and heat flux are
        computed by the model, and y+ of the first node follows from this friction."""
        flow = self._surface.measure() if flow is None else flow
        p, temperature = flow.p[self._first], flow.temperature[self._first]
        stress = self._sums(self._signs * flow.friction) / self._sizes
        stress = np.where(self.slips, 0.0, stress - (stress * self.normals).sum(axis=0) * self.normals)
        heat = self._sums(self._signs * flow.heat[None])[0] / self._sizes
        y_plus = _wall_units(self._case, p, temperature, shear(stress), self._heights)
        return dict(zip((column.name for column in COLUMNS), (p, *stress, heat, y_plus), strict=True))


def shear(stress: np.ndarray) -> np.ndarray:
    """Return the magnitudes (n,) of n shear stress vectors `stress` (3, n)."""
    return np.asarray(np.linalg.norm(stress, axis=0))


def _wall_units(
    case: Case, p: np.ndarray, temperature: np.ndarray, friction: np.ndarray, height: np.ndarray
) -> np.ndarray:
    """`height` (n,) over nu/u_tau, with the density and the viscosity of the wall; 0 without viscosity."""
    gas = case.gas
    if gas.reynolds is None:
        return np.zeros(len(p))
    viscosity = gas.viscosity.viscosity(temperature) / gas.reynolds
    return np.asarray(height * np.sqrt(friction * gas.gamma * p / temperature) / viscosity)
