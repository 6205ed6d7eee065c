"""Small viscous flows of one configuration of kernels, one for each way in which nodes get what their stencils read: by
name, a case and, where the case does not say it, its grid and initial flow."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import patched_grids
from arrangements import ring, saved

from hiresx.case import Case
from hiresx.case.grid_file import Rotation
from hiresx.grid import Block, Grid

P = 1 / 1.4
STATE = {"rho": 1.0, "u": 0.3, "v": 0.1, "p": P}
FAR = {"faces": "all", "type": "far-field", "state": STATE}
COMMON = {"gas": {"reynolds": 200.0}, "time": {"steps": 1, "cfl": 0.5}, "initial": {"state": STATE}}


class Flow(NamedTuple):
    """`steps`: after how many roundings are compared."""

    case: Case
    grid: Grid | None = None
    initial: Callable | None = None
    steps: int = 5


def waves(x, y, z):
    rho, p = 1 + 0.1 * np.sin(6 * x) * np.cos(5 * y), P + 0.1 * np.cos(4 * x + 3 * y + z)
    return rho, 0.3 + 0.2 * np.sin(4 * y + z), 0.1 + 0.2 * np.cos(5 * x), 0.1 * np.sin(3 * x * y) * (np.ptp(z) > 0), p


def swirl(x, y, z):
    """Around the axis z, the same in every quarter."""
    r, t = np.hypot(x, y), np.arctan2(y, x)
    bump = np.sin(np.pi * (r - 1))
    around, outwards = 0.3 * bump * (1 + 0.2 * np.cos(4 * t)), 0.1 * bump * np.sin(4 * t)
    u, v = outwards * np.cos(t) - around * np.sin(t), outwards * np.sin(t) + around * np.cos(t)
    return 1 + 0.1 * np.cos(4 * t) * bump, u, v, 0.05 * np.sin(4 * t), P + 0.05 * r


def strong(x, y, z):
    """A blast: the limiter works."""
    rho, _, _, _, _ = waves(x, y, z)
    return rho, 0 * x, 0 * x, 0 * x, np.where((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.05, 10.0, 0.1)


def _tables(precision: str, boundary: list[dict[str, Any]], **tables: Any) -> dict[str, Any]:
    return COMMON | {"scheme": {"precision": precision}, "boundary": boundary} | tables


def _box(n: tuple[int, int, int], **more: Any) -> dict[str, Any]:
    upper = [1.0 * (m > 1) for m in n]
    shape = {"amplitude": [0.03 * (m > 1) for m in n], "lower": [0, 0, 0], "upper": upper}
    return {"generator": "wavy", "n": n, **shape, **more}


def _open(precision: str, n: tuple[int, int, int] = (20, 18, 1), **tables: Any) -> Case:
    outflow = {"faces": ["imax"], "type": "characteristic-outflow", "pressure": P}
    wall = {"faces": ["jmin"], "type": "no-slip-wall"}
    sponge = {"axis": "x", "start": 0.7, "end": 1.0, "strength": 1.0, "state": STATE}
    given = {"grid": _box(n), "sponge": [sponge]}
    return Case.from_dict(_tables(precision, [outflow, wall, FAR], **(given | tables)))


def open_2d(precision, folder) -> Flow:
    """Outflow, wall, far field, sponge."""
    return Flow(_open(precision), initial=waves)


def box_3d(precision, folder) -> Flow:
    return Flow(_open(precision, (15, 11, 10)), initial=waves)


def local_steps(precision, folder) -> Flow:
    return Flow(_open(precision, time={"steps": 1, "cfl": 0.5, "local": True}), initial=waves)


def low_storage(precision, folder) -> Flow:
    time = {"steps": 1, "cfl": 0.5, "integrator": "carpenter_kennedy_rk4"}
    return Flow(_open(precision, time=time), initial=waves)


def blast(precision, folder) -> Flow:
    walls = [{"faces": "all", "type": "slip-wall"}]
    return Flow(Case.from_dict(_tables(precision, walls, grid=_box((24, 24, 1)))), initial=strong)


def patched(precision, folder) -> Flow:
    blocks = patched_grids.beside((8, 12), (10, 15), (-1.0, 0.0, 1.0), curve=0.1)
    scheme, gas = {"precision": precision}, {"reynolds": 200.0}
    case = patched_grids.case([], {"steps": 1, "cfl": 0.5}, STATE, gas=gas, scheme=scheme)
    return Flow(case, Grid(blocks), patched_grids.waves)


def rotated(precision, folder) -> Flow:
    """A quarter of a ring, joined to itself by a rotation."""
    quarter = Block("quarter", *ring(13, angle=90.0, ends=True))
    grid = saved(folder, [quarter], period={"j": Rotation(axis=(0.0, 0.0, 1.0), angle=90.0)})
    boundary = [{"faces": ["jmin", "jmax"], "type": "periodic"}, {"faces": "all", "type": "no-slip-wall"}]
    # The pressure has a slope at the adiabatic walls at first. What continues it behind them makes roundings four times
    # as large as elsewhere in the first five steps.
    return Flow(Case.from_dict(_tables(precision, boundary, grid={"file": "none"})), grid, swirl, steps=20)


def poles(precision, folder) -> Flow:
    grid = {"generator": "sphere", "n_meridian": 15, "n_normal": 9, "n_around": 12}
    grid |= {"standoff_axis": 0.6, "standoff_side": 0.9}
    wall = {"faces": ["jmin"], "type": "no-slip-wall"}
    boundary = [{"faces": ["imin", "imax"], "type": "pole"}, wall, FAR]
    return Flow(Case.from_dict(_tables(precision, boundary, grid=grid)), initial=waves)


def axisymmetric(precision, folder) -> Flow:
    along = STATE | {"v": 0.0}
    far = FAR | {"state": along}
    boundary = [{"faces": ["jmin"], "type": "axis"}, far]
    grid = {"generator": "box", "n": [15, 14, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}

    def initial(x, y, z):
        bump = 0.1 * np.sin(4 * x) * np.exp(-10 * y * y)
        return 1 + bump, 0.3 + bump, y * bump, 0 * x, P + bump

    tables = _tables(precision, boundary, grid=grid, axisymmetric=True, initial={"state": along})
    return Flow(Case.from_dict(tables), initial=initial)


FLOWS = {
    flow.__name__: flow
    for flow in (open_2d, box_3d, local_steps, low_storage, blast, patched, rotated, poles, axisymmetric)
}
