"""Manufactured solutions: the order of the schemes and of the boundary conditions.

A smooth flow is prescribed, and SymPy computes the source terms that make it a solution (`hiresx.verify.manufactured`,
`pip install 'hiresx[mms]'`). The grids are wavy and have two or three dimensions. For periodic flows the error is that
of the right-hand side: the computed rates of change of all conserved variables less the exact ones. For flows with
boundaries the source is added, and the error is that of density, velocity and pressure at t = 0.5, when the flow has
departed from the exact one. L1 and L2 are means over nodes and variables, Linf is the largest value. The table has the
errors on the finest grid and the orders between the two finest grids. The least of the three orders is checked.

Some boundary conditions have a lower order than the scheme. Viscous flow next to planes of symmetry and slip walls is
of order 3 to 3.6 where grid lines meet them obliquely (up to 11 degrees here), since the ghosts of viscous fluxes there
are parabolas. On lines normal to the plane it is of order 5. No-slip walls are of order 4.4 and more in L1 and of 3.2
and more in Linf. Viscous flow between prescribed faces (Re_c = 100 here) is of order 5.
Viscous flow through a supersonic outflow (Re_c = 500) is of order 5, too, but less in Linf on oblique lines. This holds
as long as the Reynolds number of a cell, formed with u_n - c, is above 4, as it is here. On finer grids the normal
derivative of the viscous flux is set to zero at such an outflow, because some condition is needed there. A flow whose
derivative is not zero is then changed near the outflow.
Characteristic conditions and `far-field` are not in the table: they are made for uniform outer states, and no
manufactured flow is uniform.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.device import backend
from hiresx.solver import Solver, configuration
from hiresx.verify.checks import Check, Workbench, at_least
from hiresx.verify.manufactured import PRIMITIVE, Manufactured, add_source, start, truncation_error

LONG = True

# Of unsteady flows: when the right-hand side is looked at. Of those with boundaries: the end of a run.
TIME, END = 0.2, 0.5
NORMS = ("L1", "L2", "Linf")

# rho, u, v, w, p. No speed of a wave changes its sign, where the split eigenvalues of Steger and Warming have kinks.
PLANE = (
    "1 + 0.1*sin(2*pi*x + 0.3 - t)*cos(2*pi*y + 0.5)",
    "0.4 + 0.1*sin(2*pi*x + 0.7)*cos(2*pi*y - 0.2 + t)",
    "0.3 + 0.1*cos(2*pi*x - 0.4 + t)*sin(2*pi*y + 0.1)",
    "0.05*sin(2*pi*(x + y) - t)",
    "0.7 + 0.1*cos(2*pi*x + 1.1)*cos(2*pi*y + 0.9 - t)",
)
SPACE = (
    "1 + 0.1*sin(2*pi*x + 0.3 - t)*cos(2*pi*y + 0.5)*sin(2*pi*z)",
    "0.4 + 0.1*sin(2*pi*x + 0.7)*cos(2*pi*y - 0.2 + t)*cos(2*pi*z + 0.4)",
    "0.3 + 0.1*cos(2*pi*x - 0.4 + t)*sin(2*pi*y + 0.1)*cos(2*pi*z - 0.3)",
    "0.35 + 0.1*cos(2*pi*x + 0.2)*cos(2*pi*y - 0.6)*sin(2*pi*z + 0.5 - t)",
    "0.7 + 0.1*cos(2*pi*x + 1.1)*cos(2*pi*y + 0.9 - t)*sin(2*pi*z + 0.8)",
)
# Supersonic along x.
THROUGH = (
    "1 + 0.1*sin(2*x + 0.3)*cos(2*pi*y)",
    "2 + 0.1*sin(3*x + 0.7)*cos(2*pi*y + 0.4)",
    "0.3 + 0.1*sin(2*x + 0.7)*cos(2*pi*y + 0.2)",
    "0.1*sin(2*x)*cos(2*pi*y)",
    "0.7 + 0.1*cos(2*x + 1.1)*cos(2*pi*y + 0.1)",
)
# Symmetric about y = 0 and 1.
MIRRORED = (
    "1 + 0.1*sin(2*pi*x + 0.3)*cos(pi*y)",
    "0.4 + 0.1*sin(2*pi*x + 0.7)*cos(pi*y)",
    "(0.2 + 0.1*cos(2*pi*x - 0.4))*sin(pi*y)",
    "0.1*sin(2*pi*x)*cos(pi*y)",
    "0.7 + 0.1*cos(2*pi*x + 1.1)*cos(pi*y)",
)
# At rest at y = 0 and 1, without a flux of mass that changes there: v and dv/dy vanish. T = 1, or dT/dy = 0.
_PRESSURE = "(0.7 + 0.1*cos(2*pi*x + 1.1)*cos(pi*y))"
_AT_REST = ("0.3*sin(pi*y)*(1 + 0.2*sin(2*pi*x))", "0.1*sin(pi*y)**2*cos(2*pi*x)", "0.1*sin(pi*y)*cos(2*pi*x)")
ISOTHERMAL = (f"1.4*{_PRESSURE}/(1 + 0.1*sin(pi*y)*(1 + 0.5*cos(2*pi*x)))", *_AT_REST, _PRESSURE)
ADIABATIC = (f"1.4*{_PRESSURE}/(1 + 0.1*cos(pi*y)*(1 + 0.5*cos(2*pi*x)))", *_AT_REST, _PRESSURE)

_ALONG_X = {"faces": ["imin", "imax"], "type": "periodic"}
_ALONG_Y = {"faces": ["jmin", "jmax"], "type": "periodic"}
# By name; what is given is the flow itself.
BOUNDARIES: dict[str, list[dict[str, Any]]] = {
    "periodic": [{"faces": "all", "type": "periodic"}],
    "inflow and outflow": [
        {"faces": ["imin"], "type": "profile-inflow", "function": "exact"},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        _ALONG_Y,
    ],
    "prescribed": [{"faces": ["imin", "imax"], "type": "profile-inflow", "function": "exact"}, _ALONG_Y],
    "slip-wall": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "slip-wall"}],
    "symmetry": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "symmetry"}],
    "no-slip, T given": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0}],
    "no-slip, adiabatic": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "no-slip-wall"}],
}


@dataclass(frozen=True)
class Setup:
    """A flow on grids of `points` cells along each direction, between `boundary` (its name) in the directions that are
    not `periodic`. `amplitude`: of the grid's waves; `scheme`: keys and values of its table; `reynolds` None: inviscid,
    `law`: of the viscosity."""

    flow: tuple[str, str, str, str, str]
    points: tuple[int, ...]
    scheme: tuple[tuple[str, str], ...] = ()
    boundary: str = "periodic"
    periodic: str = "xy"
    reynolds: float | None = None
    law: str = "constant"
    amplitude: float = 0.03

    def case(self, points: int) -> Case:
        """The case on one of the grids."""
        size = 3 if self.flow is SPACE else 2
        flat = [0.0] * (3 - size)
        grid = {
            "generator": "wavy",
            "n": [points + (axis not in self.periodic) for axis in "xyz"[:size]] + [1] * (3 - size),
            "lower": [0.0] * 3,
            "upper": [1.0] * size + flat,
            "amplitude": [self.amplitude] * size + flat,
            "periodic": list(self.periodic),
        }
        viscous = {"reynolds": self.reynolds, "viscosity": {"law": self.law}} if self.reynolds else {}
        return Case.from_dict(
            {
                "grid": grid,
                "gas": viscous,
                "scheme": dict(self.scheme),
                "time": {"end": END, "cfl": 0.5},
                "initial": {"state": {"rho": 1.0, "p": 0.7}},
                "boundary": BOUNDARIES[self.boundary],
            }
        )


def errors(bench: Workbench, setup: Setup, points: int) -> tuple[float, ...]:
    """L1, L2 and Linf error on one grid."""
    case = setup.case(points)
    flow = bench.once(_solution, setup.flow, setup.reynolds, setup.law)
    solver = Solver(case, backend(bench.backend), plan=bench.plan, profiles={"exact": flow.state})
    if setup.boundary == "periodic":
        (found,) = truncation_error(solver, flow, TIME)
    else:
        start(solver, flow)
        add_source(solver, flow)
        while solver.time < END:
            if not solver.watched_step(lambda stage, task: True):
                return (np.nan,) * len(NORMS)
        block, values = solver.states[0].block, solver.primitives(0)
        exact = flow.state(block.x, block.y, block.z, solver.time)
        found = np.stack([values[name] - wanted for name, wanted in zip(PRIMITIVE, exact, strict=True)])
    sizes = abs(found)
    return float(sizes.mean()), float(np.sqrt((sizes * sizes).mean())), float(sizes.max())


def _solution(bench: Workbench, flow: tuple[str, str, str, str, str], reynolds: float | None, law: str) -> Any:
    setup = Setup(flow, (), reynolds=reynolds, law=law)
    return Manufactured(flow, setup.case(16).gas)


def curves(bench: Workbench, setup: Setup) -> dict[str, list[float]]:
    """Number of nodes of each grid, and the three error norms on it."""
    found = [bench.once(errors, setup, points) for points in setup.points]
    return {"n": [float(n) for n in setup.points]} | dict(zip(NORMS, map(list, zip(*found, strict=True)), strict=True))


def orders(found: Mapping[str, Sequence[float]]) -> list[float]:
    """Order of accuracy of each of the three norms, between the two finest grids."""
    ratio = np.log(found["n"][-1] / found["n"][-2])
    return [float(np.log(found[norm][-2] / found[norm][-1]) / ratio) for norm in NORMS]


def _check(name: str, least: float, setup: Setup) -> Check:
    return Check(
        name,
        at_least(least),
        lambda bench: min(orders(curves(bench, setup))),
        curves=lambda bench: curves(bench, setup),
        configurations=(configuration(setup.case(setup.points[0])),),
    )


def _scheme(**keys: str) -> tuple[tuple[str, str], ...]:
    return tuple(keys.items())


_LINEAR = _scheme(weights="linear")
_FINE, _SOLID, _RUNS = (16, 32, 64, 128), (16, 24, 32, 48), (16, 32, 48)
_VISCOUS = 20.0
# interpolation, weights: least order
_INTERPOLATIONS = {
    ("modified", "linear"): 4.8,
    ("modified", "js"): 4.8,
    ("modified", "z"): 4.8,
    ("original", "linear"): 4.8,
    ("original6", "linear"): 5.8,
    ("original6", "teno"): 5.8,
    ("modified7", "linear"): 6.8,
    ("modified7", "z"): 6.8,
}
# boundary condition: flow, periodic along, Re_c, least order inviscid and viscous, the latter with lines that are
# normal to the face and that are not
_CONDITIONS = {
    "inflow and outflow": (THROUGH, "y", 500.0, 4.5, 4.7, 3.5),
    "prescribed": (THROUGH, "y", 100.0, 4.5, 4.7, 4.7),
    "slip-wall": (MIRRORED, "x", 100.0, 4.4, 4.8, 2.9),
    "symmetry": (MIRRORED, "x", 100.0, 4.4, 4.8, 2.9),
    "no-slip, T given": (ISOTHERMAL, "x", 100.0, None, 3.0, 3.0),
    "no-slip, adiabatic": (ADIABATIC, "x", 100.0, None, 3.2, 3.0),
}

CHECKS = [
    *(
        _check(
            f"Euler, {interpolation}, {weights}",
            least,
            Setup(PLANE, _FINE, _scheme(interpolation=interpolation, weights=weights)),
        )
        for (interpolation, weights), least in _INTERPOLATIONS.items()
    ),
    *(
        _check(
            f"Euler, split, {nodes} nodes",
            least,
            Setup(PLANE, _FINE, _scheme(inviscid="split", interpolation=interpolation, weights="linear")),
        )
        for nodes, interpolation, least in ((6, "modified", 5.8), (8, "modified7", 7.7))
    ),
    *(
        _check(f"Euler, {flux}", 4.8, Setup(PLANE, _FINE, _scheme(weights="linear", flux=flux)))
        for flux in ("van_leer", "local_lax_friedrichs", "hllc", "hllc_lm", "roe")
    ),
    _check("Euler, 3-D", 4.7, Setup(SPACE, _SOLID, _LINEAR, periodic="xyz", amplitude=0.02)),
    *(
        _check(f"Navier-Stokes, {law}", 4.8, Setup(PLANE, _FINE, _LINEAR, reynolds=_VISCOUS, law=law))
        for law in ("constant", "power", "sutherland")
    ),
    _check(
        "Navier-Stokes, modified7",
        5.8,
        Setup(PLANE, _FINE, _scheme(interpolation="modified7", weights="linear"), reynolds=_VISCOUS),
    ),
    _check(
        "Navier-Stokes, 3-D",
        4.7,
        Setup(SPACE, _SOLID, _LINEAR, periodic="xyz", amplitude=0.02, reynolds=_VISCOUS),
    ),
]
for _condition, (_flow, _periodic, _viscous, _inviscid, _straight, _oblique) in _CONDITIONS.items():
    for _name, _least, _reynolds, _amplitude in (
        ("Euler, oblique lines", _inviscid, None, 0.03),
        ("Navier-Stokes, straight lines", _straight, _viscous, 0.0),
        ("Navier-Stokes, oblique lines", _oblique, _viscous, 0.03),
    ):
        if _least is not None:
            _setup = Setup(_flow, _RUNS, _LINEAR, _condition, _periodic, _reynolds, amplitude=_amplitude)
            CHECKS.append(_check(f"{_condition}: {_name}", _least, _setup))
