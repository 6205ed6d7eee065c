"""Inviscid flows on grids that others published, compared with theory. Each is run with local time steps until it is
steady; public_grid_runs.py does so for the files of its list that have `compared`.

The walls are the regions that the author names, all of them slip walls.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.case.schema import Case
from hiresx.exact import oblique_shock
from hiresx.grid import Grid
from hiresx.simulation import Simulation

GAMMA = 1.4
P = 1 / GAMMA


@dataclass(frozen=True)
class PublicFlow:
    """`boundary(name)`: the condition of a region, without its place; `state`: of the free stream; `steps`;
    `judged(blocks, grid)`: (what, found, wanted) rows."""

    told: str
    state: dict[str, float]
    steps: int
    boundary: Callable[[str], dict[str, Any]]
    judged: Callable[[Any], list[tuple[str, float, float]]]
    initial: Callable[..., Any] | None = None


def compared(case: Case, grid: Grid, name: str) -> dict[str, Any]:
    """The flow `name` on a grid: "told", "steps", "rows" of [what, found, wanted], and "change", the largest relative
    change of the found values over the last tenth of the steps."""
    flow = FLOWS[name]
    dump, boundary = case.model_dump(mode="json", exclude_none=True), []
    for condition in dump["boundary"]:
        place = {key: condition[key] for key in ("faces", "block", "range") if key in condition}
        given = place.get("range")
        region = given if isinstance(given, str) else ""
        boundary.append({**place, **flow.boundary(region)})
    tables = {"boundary": boundary, "initial": {"state": flow.state}, "monitor": {"every": flow.steps}}
    time = {"steps": flow.steps, "local": True, "cfl": 0.5}
    simulation = Simulation(
        Case.from_dict({**dump, **tables, "time": time}), grid=grid, backend="cpu", initial=flow.initial
    )
    before: list[Any] = []
    rows: list[Any] = []
    for steps in (flow.steps - flow.steps // 10, flow.steps):
        before = [found for _, found, _ in rows]
        while simulation.solver.steps < steps:
            simulation.solver.step()
        rows = flow.judged(simulation)
    change = max(abs(found - old) / max(abs(found), 1e-3) for (_, found, _), old in zip(rows, before, strict=True))
    return {"told": flow.told, "steps": flow.steps, "rows": [list(row) for row in rows], "change": change}


def _is_wall(name: str) -> bool:
    return "wall" in name or "solid" in name or "symmetry" in name


# ---- compression ramp: the oblique shock

RAMP = 2.0


def _ramp(simulation: Simulation) -> list[tuple[str, float, float]]:
    block = simulation.blocks[0]
    x, y, p = block.x[0, 0], block.y[0, 0], block.state("p")[0, 0] / P
    slope = np.arctan2(np.diff(y), np.diff(x))
    turn = float(np.median(slope[slope > 0.5 * slope.max()]))
    on = np.flatnonzero(slope > 0.5 * slope.max())
    middle = slice(on[0] + len(on) // 2, on[0] + 3 * len(on) // 4)
    turned = np.degrees(turn)
    wanted = oblique_shock(RAMP, turned, GAMMA).pressure
    return [(f"p/p0 on the ramp of {turned:.2f} degrees", float(p[middle].mean()), wanted)]


def _supersonic(
    name: str, outlet: str = "extrapolation", inflow: str = "supersonic-inflow", u: float = RAMP
) -> dict[str, Any]:
    """The condition of a region; `outlet`: what those are called that the flow leaves."""
    if "wall" in name:
        return {"type": "slip-wall"}
    if outlet in name:
        return {"type": "supersonic-outflow"}
    return {"type": inflow, "state": {"rho": 1.0, "u": u, "p": P}}


# ---- diffuser: a choked nozzle


def _mach_of(ratio: float, low: float, high: float) -> float:
    """The Mach number between `low` and `high` of an isentropic flow through `ratio` times the area of its throat."""

    def off(m: float) -> float:
        return ((1 + 0.2 * m * m) / 1.2) ** 3 / m - ratio

    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if off(middle) * off(low) > 0 else (low, middle)
    return middle


# Ahead of a throat of the area ratio 1.4.
INLET = _mach_of(1.4, 0.1, 1.0)


def _supersonic_behind(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, ...]:
    """The flow ahead of the throat, x < 0, and behind it the one of Mach 1.6 with the same total state."""
    t0 = 1 + 0.2 * INLET**2
    mach = np.where(x > 0, 1.6, INLET)
    t = t0 / (1 + 0.2 * mach**2)
    return t**2.5, mach * np.sqrt(t), 0 * x, 0 * x, P * t**3.5


def _nozzle_condition(name: str) -> dict[str, Any]:
    return _supersonic(name, "outflow", "characteristic-inflow", INLET)


def _nozzle(simulation: Simulation) -> list[tuple[str, float, float]]:
    block = simulation.blocks[0]
    x, y = block.x[0], block.y[0]
    rho, u, v, p = (block.state(name)[0] for name in ("rho", "u", "v", "p"))
    # through the line from wall to wall at every i
    dx, dy = np.diff(x, axis=0), np.diff(y, axis=0)
    fu, fv = (0.5 * (f[1:] + f[:-1]) for f in (rho * u, rho * v))
    mass = (fu * dy - fv * dx).sum(axis=0)
    throat = int(np.argmin(np.ptp(y, axis=0)))
    total = p * (1 + 0.2 * rho * (u * u + v * v) / (GAMMA * p)) ** 3.5
    ahead = P * (1 + 0.2 * INLET**2) ** 3.5
    end = len(mass) - 3
    ratio = np.ptp(y[:, end]) / np.ptp(y[:, throat])
    wanted = _mach_of(ratio, 1.0, 4.0)
    mach = np.sqrt((u * u + v * v) * rho / (GAMMA * p))
    middle = 0.5 * (mach[1:, end] + mach[:-1, end])
    return [
        ("smallest mass flow along the nozzle / largest", float(mass[2:-2].min() / mass[2:-2].max()), 1.0),
        ("mean Mach number at the end; expected: area ratio", float(np.average(middle, weights=dy[:, end])), wanted),
        ("mean total pressure at the end / ahead of the throat", float(total[:, end].mean() / ahead), 1.0),
    ]  # fmt: skip


# ---- airfoil at Mach 0.3

MACH, ANGLE = 0.3, np.radians(2.0)


def _boundary_at_incidence(name: str) -> dict[str, Any]:
    if _is_wall(name):
        return {"type": "slip-wall"}
    return {"type": "far-field", "state": STREAM}


def _panel_lift(x: np.ndarray, y: np.ndarray) -> float:
    """Lift coefficient of incompressible potential flow by sources and one vortex on the panels between nodes that run
    around the profile, clockwise from the trailing edge (Hess & Smith, Prog. Aerosp. Sci. 8 (1967) 1)."""
    n = len(x) - 1
    length = np.hypot(np.diff(x), np.diff(y))
    c, s = np.diff(x) / length, np.diff(y) / length
    xm, ym = 0.5 * (x[1:] + x[:-1]), 0.5 * (y[1:] + y[:-1])
    # in the frame of panel j at the middle of panel i
    dx, dy = xm[:, None] - x[:-1], ym[:, None] - y[:-1]
    along, off = dx * c + dy * s, -dx * s + dy * c
    near, far = along**2 + off**2, (along - length) ** 2 + off**2
    log = 0.5 * np.log(near / far) / (2 * np.pi)
    turn = (np.arctan2(off, along - length) - np.arctan2(off, along)) / (2 * np.pi)
    np.fill_diagonal(turn, 0.5)
    np.fill_diagonal(log, 0.0)
    source = np.stack([log * c - turn * s, log * s + turn * c])
    vortex = np.stack([turn * c + log * s, turn * s - log * c]).sum(axis=2)
    normal, tangent = np.stack([-s, c]), np.stack([c, s])
    stream = np.array([np.cos(ANGLE), np.sin(ANGLE)])
    matrix, wanted = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    matrix[:n, :n] = np.einsum("ai,aij->ij", normal, source)
    matrix[:n, n] = np.einsum("ai,ai->i", normal, vortex)
    wanted[:n] = -stream @ normal
    for end in (0, n - 1):  # Kutta: both sides leave the trailing edge equally fast
        matrix[n, :n] += tangent[:, end] @ source[:, end]
        matrix[n, n] += tangent[:, end] @ vortex[:, end]
        wanted[n] -= stream @ tangent[:, end]
    circulation = np.linalg.solve(matrix, wanted)[n]
    return float(2 * circulation * length.sum() / np.ptp(x))


def _airfoil(simulation: Simulation) -> list[tuple[str, float, float]]:
    block = simulation.blocks[0]
    x, y, p = block.x[0, 0], block.y[0, 0], block.state("p")[0, 0]
    on = np.flatnonzero(np.hypot(x - 0.5, y) < 0.5 + 1e-6)
    x, y, p = (f[on[0] : on[-1] + 1] for f in (x, y, p))
    q, middle = 0.5 * MACH**2, 0.5 * (p[1:] + p[:-1]) - P
    # clockwise: the profile lies on the right
    fx, fy = (middle * np.diff(y)).sum() / q, -(middle * np.diff(x)).sum() / q
    lift, drag = fy * np.cos(ANGLE) - fx * np.sin(ANGLE), fx * np.cos(ANGLE) + fy * np.sin(ANGLE)
    wanted = _panel_lift(x, y) / float(np.sqrt(1 - MACH**2))
    return [
        ("lift coefficient; expected: panels and Prandtl-Glauert", float(lift), wanted),
        ("drag coefficient", float(drag), 0.0),
    ]


STREAM = {"rho": 1.0, "u": MACH * np.cos(ANGLE), "v": MACH * np.sin(ANGLE), "p": P}
FLOWS = {
    "ramp": PublicFlow("Mach 2", {"rho": 1.0, "u": RAMP, "p": P}, 1500, _supersonic, _ramp),
    "nozzle": PublicFlow(
        "choked, supersonic downstream of the throat", {"rho": 1.0, "u": INLET, "p": P}, 6000, _nozzle_condition,
        _nozzle, _supersonic_behind,
    ),
    "airfoil": PublicFlow("Mach 0.3 at 2 degrees", STREAM, 20_000, _boundary_at_incidence, _airfoil),
}  # fmt: skip
