"""Manufactured solutions: the order of the schemes and of the boundary conditions.

A smooth flow is prescribed, and SymPy computes the source terms that make it a solution (`hiresx.verify.manufactured`,
`pip install '.[mms]'`). The grids are wavy and have two or three dimensions. For periodic flows the error is that
of the right-hand side: the computed rates of change of all conserved variables less the exact ones. For flows with
boundaries the source is added, and the error is that of density, velocity and pressure at t = 0.5, when the flow has
departed from the exact one. L1 and L2 are means over nodes and variables, Linf is the largest value. The table has the
errors on the finest grid and the orders between the two finest grids. The least of the three orders is checked.

The first rows are of periodic inviscid flows, by every interpolation with each of its weights, every flux and every
inviscid form. If a row names no flux, it is that of Steger and Warming. AFWENO has order 5, and order 6 or 7 with six
or seven nodes. The split form has order 6, and 8 with the seven nodes of `modified7`. The following cases differ or
need an explanation:

- With seven nodes and the weights `js` the order in Linf is 6.1 from 32 to 64 cells, 6.8 from 64 to 128, and 8.1 from
  128 to 256. On 128 cells the error is still 15 times that of the ideal weights.
- The regularised form has order 2, since its entropic pressure and its compressive stress are proportional to the
  square of the spacing. Where the velocity is uniform both are 0, and the order is 5.
- The hybrid form has the order of the split form where the weight s of AFWENO is 0. With the defaults of all sensors
  except `ducros` this is so on all of these grids. With `ducros`, s is above 0 at 32 % of the nodes of the coarsest
  grid and at 10 % of those of the finest grid. With `hybrid.floor` above 0 the order is 5. Where s changes in space,
  the order is 5 in L1 and less in Linf. Two rows have a threshold of `bhagatwala_lele` with which s is 0 at some nodes
  and 1 at others, on every grid. With the blending `smooth` the order in Linf is 4.4 from 64 to 128 cells, and 4.6 from
  128 to 256 cells. With `sharp`, where s jumps, it is 4.1 and 3.8; in L2 it is 4.6 and 4.5.
- The flux `rotated_rhll` rotates by the direction of the difference of the interpolated velocities. This direction
  changes from node to node where the difference vanishes. From 24 to 28 cells the order is 4.8 in L1 and L2, and 4.2 in
  Linf. On 64 cells and more the difference is below 1e-6 of the sound speed, and the flux is Roe's.
- The H-correction of `roe_h` acts only where a wave speed is small. In the flow of its row u and v change their signs.
  Its order is 5 in all norms.

Next to these boundaries the order of AFWENO5 is lower, in Linf or in all norms:

- Viscous flow next to planes of symmetry and slip walls has the order 3 to 3.6 where grid lines meet them obliquely (up
  to 11 degrees from the normal here), since the ghosts of viscous fluxes are extrapolated there by parabolas. On lines
  normal to the plane the order is 5. The same holds for the axis, where the order on oblique lines is 3.9 and more.
- Next to no-slip walls the order is 4.1 or more in L1. In Linf it is 3.2 or more, and 3.9 or more at adiabatic walls
  and walls of given heat flux. At moving walls, if gas is blown through one and sucked through another, it is 2.9.
- `pressure-outflow` has order 4.2 in Linf and 4.7 in L1, in inviscid flow and where the Reynolds numbers of cells, c
  d/nu, are above 20. There its ghosts are on cubics. With quartics the order is 5, but noise grows (Numerics).
- Viscous flow through subsonic outflows has the order 4.9 or more on straight lines. On oblique lines the order in Linf
  falls with the Reynolds number of a cell: 4.9 at Re_c = 320, 4.0 at 100 and 3.7 at 10.
- A passive scalar that leaves with viscous gas has the order 4.3 in Linf on straight lines and 3.8 on oblique ones.
- Next to open faces where the spacing along the lines is stretched (ratio 4), the order is that of straight lines or
  more. Only inviscid flow has less in Linf: 4.5 behind a `total-pressure-inflow`, and 4 behind a
  `characteristic-inflow` on wide cells. Checks of outflows therefore prescribe the flow at the opposite face.
  Supersonic outflow of viscous gas is not measured on stretched lines, as the Reynolds numbers of cells fall below 4
  there.
- Viscous flow through a supersonic outflow (Re_c = 500) has the order 4.9 or more if the Reynolds number of a cell,
  formed with u_n - c, is above 4, as it is here. On finer grids the normal derivative of the viscous flux is set to
  zero at such an outflow. A flow whose derivative is not zero is then changed near the outflow.

A manufactured flow must be one that its condition allows. At the outflows pressure and normal velocity do not change
along the normal and the pressure is uniform: no sound enters. At `total-pressure-inflow` the flow leaves the reservoir
without losses, normal to the face. At `characteristic-inflow` the manufactured flow itself is given, at both faces.
`far-field` has the same kernel. Next to it the flow is uniform up to the sixth power of the distance.

At subsonic open faces viscous flow needs a further condition: the viscous flux through the face has no derivative along
the grid lines there. The manufactured flows have such a derivative, which the source at the nodes of the face contains.
Without this part of the source another problem would be solved: at Re_c = 100 the flows would change by up to 5e-3 at
`pressure-outflow` and by 1e-3 at `characteristic-inflow`, by the same amount on every grid.

Four conditions are not in the table. Connected faces, whose ghosts are the neighbour's nodes, are checked by the group
`cuts`. `precursor-inflow` and `recycling-inflow` prescribe values that are interpolated from a file or from the flow
itself, and `modelled-wall` is a model.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.device import backend
from hiresx.grid import Grid
from hiresx.solver import Solver, configuration
from hiresx.verify.checks import Check, Workbench, at_least
from hiresx.verify.manufactured import PRIMITIVE, ManufacturedSolution, add_source, start, truncation_error
from hiresx.verify.manufactured_grids import drum, patched_box
from hiresx.verify.manufactured_schemes import OTHERS, PLANE, SCHEMES, SPACE, Formulas

LONG = True

# For unsteady flows: the time at which the right-hand side is evaluated. For flows with boundaries: the end of a run.
TIME, END = 0.2, 0.5
NORMS = ("L1", "L2", "Linf")
SCHMIDT = 0.7  # of passive scalars

# rho, u, v, w, p. Supersonic along x.
THROUGH = (
    "1 + 0.1*sin(2*x + 0.3)*cos(2*pi*y)",
    "2 + 0.1*sin(3*x + 0.7)*cos(2*pi*y + 0.4)",
    "0.3 + 0.1*sin(2*x + 0.7)*cos(2*pi*y + 0.2)",
    "0.1*sin(2*x)*cos(2*pi*y)",
    "0.7 + 0.1*cos(2*x + 1.1)*cos(2*pi*y + 0.1)",
)
# Symmetric about y = 0 and y = 1.
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

# Data of other walls at the same places: the heat flux, equal to the one that the gradient of T conducts; and the
# velocity of walls of which one blows gas and the other one sucks it.
_CONDUCTION = 1 / (100.0 * 0.72 * 0.4)
_HEAT = f"-{0.1 * np.pi * _CONDUCTION}*(1 + 0.5*cos({2 * np.pi}*x))"
_BLOWN = (f"0.05*(1 + 0.4*sin({2 * np.pi}*x))", f"-0.05*(1 + 0.4*sin({2 * np.pi}*x))")
BLOWING = (ISOTHERMAL[0], f"0.2 + {_AT_REST[0]}", f"{_BLOWN[0]} + {_AT_REST[1]}", _AT_REST[2], _PRESSURE)
# Odd and even in y, about an axis.
ROUND = (*MIRRORED[:3], "0.1*sin(2*pi*x)*sin(pi*y)", MIRRORED[4])
# Subsonic along x and y; if prescribed, it changes in time.
SUBSONIC = (THROUGH[0], "0.4 + 0.1*sin(3*x + 0.7)*cos(2*pi*y + 0.4)", *THROUGH[2:])
_rho, _u, _v, _w, _p = (formula.replace("2*pi*y", "2*pi*y - t") for formula in THROUGH)
MOVING = (_rho, _u, _v, _w, _p)
# From a reservoir with p = 0.75 and T = 1.05, without losses, normal to the face x = 0.
_SPEEDS = (
    "(0.4 + 0.1*sin(2*x + 0.7)*cos(2*pi*y + 0.4))",
    "(0.1*sin(2*x)*cos(2*pi*y + 0.2))",
    "(0.1*sin(2*x)*cos(2*pi*y))",
)
_COOLED = f"(1 - 0.2/1.05*({'**2 + '.join(_SPEEDS)}**2))"
RESERVOIR = (f"{1.4 * 0.75 / 1.05}*{_COOLED}**2.5", *_SPEEDS, f"0.75*{_COOLED}**3.5")
# At x = 1 the pressure is uniform, and neither p nor u changes along x, so that no sound enters there.
LEAVING = (
    "1 + 0.1*sin(2*x + 0.3)*cos(2*pi*y)",
    "0.4 + 0.1*cos(pi*x)*cos(2*pi*y + 0.4)",
    "0.1*sin(pi*x)*cos(2*pi*y + 0.2)",
    "0.1*sin(2*x)*cos(2*pi*y)",
    "0.7 + 0.05*sin(pi*x)**2*cos(2*pi*y + 0.1)",
)
# The mean of rho u over y at x = 1, where cos(pi x) is -1.
_LEAVES = 0.4 - 0.005 * float(np.sin(2.3) * np.cos(0.4))
# Uniform at all sides, or where it enters, up to the sixth power of the distance.
_BUMP = "sin(pi*x)**6*sin(pi*y)**6"
ENCLOSED = (f"1 + 0.2*{_BUMP}", f"0.4 + 0.15*{_BUMP}", f"0.3 - 0.1*{_BUMP}", f"0.1*{_BUMP}", f"0.7 + 0.1*{_BUMP}")
_RISE = "sin(1.5*x)**6*cos(2*pi*y)"
ENTERING = (f"1 + 0.1*{_RISE}", f"2 + 0.1*{_RISE}", f"0.3 + 0.1*{_RISE}", f"0.1*{_RISE}", f"0.7 + 0.1*{_RISE}")
# Around a pole along the z axis, in a cylinder of the diameter 2.
ACROSS = (
    "1 + 0.1*sin(2*x + 0.3)*cos(2*y)",
    "0.4 + 0.1*sin(3*x + 0.7)*cos(2*y + 0.4)",
    "0.3 + 0.1*sin(2*x + 0.7)*cos(3*y + 0.2)",
    "0.3 + 0.1*sin(2*x)*cos(2*z)",
    "0.7 + 0.1*cos(2*x + 1.1)*cos(2*y + 0.1)*cos(z)",
)

_ALONG_X = {"faces": ["imin", "imax"], "type": "periodic"}
_ALONG_Y = {"faces": ["jmin", "jmax"], "type": "periodic"}
_ALONG_Z = {"faces": ["kmin", "kmax"], "type": "periodic"}
_GIVEN = {"type": "profile-inflow", "function": "exact"}
_OUTSIDE = {"type": "characteristic-inflow", "function": "exact"}
_WALL = {"type": "no-slip-wall", "temperature": 1.0}
_OUTLET = {"faces": ["imax"], "relaxation": 1.0}
_SUPERSONIC, _UNIFORM = ({"rho": 1.0, "u": u, "v": 0.3, "w": 0.0, "p": 0.7} for u in (2.0, 0.4))
# Data of conditions by name; they are taken from the flow itself.
BOUNDARIES: dict[str, list[dict[str, Any]]] = {
    "periodic": [{"faces": "all", "type": "periodic"}],
    "inflow and outflow": [
        {"faces": ["imin"], **_GIVEN},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        _ALONG_Y,
    ],
    "supersonic-inflow": [
        {"faces": ["imin"], "type": "supersonic-inflow", "state": _SUPERSONIC},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        _ALONG_Y,
    ],
    "prescribed": [{"faces": ["imin", "imax"], **_GIVEN}, _ALONG_Y],
    "prescribed, unsteady": [{"faces": ["imin", "imax"], **_GIVEN, "steady": False}, _ALONG_Y],
    "characteristic-inflow": [{"faces": ["imin", "imax"], **_OUTSIDE}, _ALONG_Y],
    "total-pressure-inflow": [
        {"faces": ["imin"], "type": "total-pressure-inflow", "total_pressure": 0.75, "total_temperature": 1.05},
        {"faces": ["imax"], **_OUTSIDE},
        _ALONG_Y,
    ],
    "characteristic-outflow": [
        {"faces": ["imin"], **_OUTSIDE},
        {"type": "characteristic-outflow", "pressure": 0.7, **_OUTLET},
        _ALONG_Y,
    ],
    "pressure-outflow": [
        {"faces": ["imin"], **_OUTSIDE},
        {"type": "pressure-outflow", "pressure": 0.7, **_OUTLET},
        _ALONG_Y,
    ],
    "pressure-outflow, mass flux": [
        {"faces": ["imin"], **_OUTSIDE},
        {"type": "pressure-outflow", "mass_flux": _LEAVES, **_OUTLET},
        _ALONG_Y,
    ],
    "pressure-outflow, scalar": [
        {"faces": ["imin"], **_OUTSIDE, "scalars": {"s": 0.5}},
        {"type": "pressure-outflow", "pressure": 0.7, **_OUTLET},
        _ALONG_Y,
    ],
    "far-field": [{"faces": "all", "type": "far-field", "state": _UNIFORM}],
    "slip-wall": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "slip-wall"}],
    "symmetry": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "symmetry"}],
    "axis": [_ALONG_X, {"faces": ["jmin"], "type": "axis"}, {"faces": ["jmax"], **_GIVEN}],
    "no-slip, T given": [_ALONG_X, {"faces": ["jmin", "jmax"], **_WALL}],
    "no-slip, adiabatic": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "no-slip-wall"}],
    "no-slip, heat flux": [_ALONG_X, {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "heat_flux": _HEAT}],
    "no-slip, moving, blowing": [
        _ALONG_X,
        *(
            {"faces": [face], **_WALL, "velocity": [0.2, 0.0, 0.0], "normal_velocity": blown}
            for face, blown in zip(("jmin", "jmax"), _BLOWN, strict=True)
        ),
    ],
    "patched": [
        {"block": "left", "faces": ["imax"], "type": "patched"},
        {"block": "right", "faces": ["imin"], "type": "patched"},
        {"faces": "all", **_GIVEN},
    ],
    "pole": [{"faces": ["imin"], "type": "pole"}, {"faces": "all", **_GIVEN}],
}
for _name in ("characteristic-outflow", "pressure-outflow"):
    BOUNDARIES[f"given to {_name}"] = [{"faces": ["imin"], **_GIVEN}, *BOUNDARIES[_name][1:]]
# Those on grids that no generator makes, and those of axisymmetric flow.
GRIDS: dict[str, Callable[[int], Grid]] = {"patched": patched_box, "pole": drum}
AXISYMMETRIC = ("axis",)


@dataclass(frozen=True)
class Setup:
    """A manufactured flow on several grids, whose numbers of cells along each direction are `points`. `flow`: the
    formulas of its rho, u, v, w and p. `boundary`: the name of the condition in the directions that are not `periodic`.
    `amplitude`: the amplitude of the waves of the grid, in all directions or in each. `scheme`: the keys and values of
    the table [scheme] as pairs; the value of a nested table consists of pairs, too. `reynolds`: the Reynolds number,
    None for an inviscid flow. `law`: the viscosity law. `end`: the end time. `ratio`: the largest spacing along x
    divided by that at one end, `cluster`; the grid has no waves if it is not 1. `scalar`: the formula of a passive
    scalar s; if it is given, the errors are those of the scalar."""

    flow: Formulas
    points: tuple[int, ...]
    scheme: tuple[tuple[str, Any], ...] = ()
    boundary: str = "periodic"
    periodic: str = "xy"
    reynolds: float | None = None
    law: str = "constant"
    amplitude: float | tuple[float, ...] = 0.03
    end: float = END
    ratio: float = 1.0
    cluster: str = "upper"
    scalar: str | None = None

    @property
    def axisymmetric(self) -> bool:
        """Whether the flow is axisymmetric, so that y is the distance from the axis."""
        return self.boundary in AXISYMMETRIC

    def grid(self, points: int) -> Grid | None:
        """Return the grid with `points` cells along each direction; None if the case has the grid from a generator."""
        return GRIDS[self.boundary](points) if self.boundary in GRIDS else None

    def case(self, points: int) -> Case:
        """Return the case of this set-up on the grid with `points` cells along each direction."""
        size = 3 if any("z" in formula for formula in self.flow) else 2
        flat = [0.0] * (3 - size)
        across = [_ALONG_Z] if "z" in self.periodic and self.boundary != "periodic" else []
        shape: dict[str, Any] = {"generator": "box", "stretch": {"x": {"cluster": self.cluster, "ratio": self.ratio}}}
        if self.ratio == 1:
            shape = {"generator": "wavy", "amplitude": [*np.broadcast_to(self.amplitude, size), *flat]}
        grid: dict[str, Any] = {
            "n": [points + (axis not in self.periodic) for axis in "xyz"[:size]] + [1] * (3 - size),
            "lower": [0.0] * 3,
            "upper": [1.0] * size + flat,
            "periodic": list(self.periodic),
            **shape,
        }
        viscous = {"reynolds": self.reynolds, "viscosity": {"law": self.law}} if self.reynolds else {}
        return Case.from_dict(
            {
                "grid": {"file": "none"} if self.boundary in GRIDS else grid,
                "gas": viscous,
                "axisymmetric": self.axisymmetric,
                "scheme": {key: dict(value) if isinstance(value, tuple) else value for key, value in self.scheme},
                "time": {"end": self.end, "cfl": 0.5},
                "initial": {"state": {"rho": 1.0, "p": 0.7}},
                "scalar": [{"name": "s", "schmidt": SCHMIDT}] if self.scalar else [],
                "boundary": [*BOUNDARIES[self.boundary], *across],
            }
        )


def errors(bench: Workbench, setup: Setup, points: int) -> tuple[float, ...]:
    """Return the L1, L2 and Linf errors of the manufactured flow `setup` with `points` cells along each direction: of
    the right-hand side if it is periodic, else of the flow at the end. NaN if it fails. `bench`: has the backend."""
    case = setup.case(points)
    flow = bench.once(_solution, setup.flow, setup.reynolds, setup.law, setup.axisymmetric, setup.scalar)
    grid = setup.grid(points)
    solver = Solver(case, backend(bench.backend), grid=grid, plan=bench.plan, profiles={"exact": flow.state})
    if setup.boundary == "periodic":
        (found,) = truncation_error(solver, flow, TIME)
    else:
        start(solver, flow)
        add_source(solver, flow)
        while solver.time < setup.end:
            if not solver.watched_step(lambda stage, task: True):
                return (np.nan,) * len(NORMS)
        found = np.concatenate([_departure(solver, flow, part) for part in range(len(solver.states))], axis=1)
    sizes = abs(found)
    return float(sizes.mean()), float(np.sqrt((sizes * sizes).mean())), float(sizes.max())


def _departure(solver: Solver, flow: ManufacturedSolution, part: int) -> np.ndarray:
    """Return the errors of the primitive variables of a part, or of its scalar if there is one, (variables, nodes)."""
    block, values = solver.states[part].block, solver.primitives(part)
    names, exact = (("s",), flow.scalars) if solver.case.scalar else (PRIMITIVE, flow.state)
    wanted = exact(block.x, block.y, block.z, solver.time)
    return np.stack([np.ravel(values[name] - value) for name, value in zip(names, wanted, strict=True)])


def _solution(
    bench: Workbench, flow: Formulas, reynolds: float | None, law: str, axisymmetric: bool, scalar: str | None
) -> Any:
    gas = Setup(flow, (), reynolds=reynolds, law=law).case(16).gas
    return ManufacturedSolution(flow, gas, axisymmetric, [(scalar, SCHMIDT)] if scalar else [])


def curves(bench: Workbench, setup: Setup) -> dict[str, list[float]]:
    """Return the errors of the manufactured flow of `setup` on each of its grids: the numbers of cells along a side,
    "n", and the errors by norm ("L1", "L2", "Linf"). `bench`: the `Workbench` with the backend under test."""
    found = [bench.once(errors, setup, points) for points in setup.points]
    return {"n": [float(n) for n in setup.points]} | dict(zip(NORMS, map(list, zip(*found, strict=True)), strict=True))


def orders(found: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the order of accuracy of each error norm between the two finest grids in `found`, a result of `curves`."""
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


def _in_space(flow: Formulas) -> Formulas:
    """Return a plane flow that also varies along z: terms that vary along y have the factor cos(2 pi z)."""
    rho, u, v, w, p = (re.sub(r"cos\(2\*pi\*y[^)]*\)", r"\g<0>*cos(2*pi*z)", formula) for formula in flow)
    return rho, u, v, w, p


def _scheme(**keys: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((key, _scheme(**value) if isinstance(value, dict) else value) for key, value in keys.items())


_LINEAR = _scheme(weights="linear")
_SEVEN = _scheme(interpolation="modified7", weights="linear")
_FINE, _SOLID, _RUNS, _CUBES = (16, 32, 64, 128), (16, 24, 32, 48), (16, 32, 48), (16, 24, 32)
_VISCOUS = 20.0
_STRAIGHT, _OBLIQUE = "straight lines", "oblique lines"
# boundary condition: flow, periodic directions, Re_c, least order inviscid, and viscous with lines that are normal to
# the face and that are not; None if it is not measured
_CONDITIONS: dict[str, tuple[Formulas, str, float, float | None, float | None, float | None]] = {
    "inflow and outflow": (THROUGH, "y", 500.0, 4.7, 4.7, 4.7),
    "supersonic-inflow": (ENTERING, "y", 500.0, 4.6, 4.7, 4.6),
    "prescribed": (THROUGH, "y", 100.0, 4.5, 4.7, 4.7),
    "prescribed, unsteady": (MOVING, "y", 100.0, 4.5, None, None),
    "characteristic-inflow": (SUBSONIC, "y", 100.0, 4.5, 4.5, 4.5),
    "total-pressure-inflow": (RESERVOIR, "y", 100.0, 4.6, 4.7, 4.7),
    "characteristic-outflow": (LEAVING, "y", 100.0, 4.4, 4.7, 3.8),
    "pressure-outflow": (LEAVING, "y", 100.0, 4.0, 4.7, 3.8),
    "pressure-outflow, mass flux": (LEAVING, "y", 100.0, 4.0, 4.7, 3.8),
    "far-field": (ENCLOSED, "", 100.0, 4.5, 4.5, 4.5),
    "slip-wall": (MIRRORED, "x", 100.0, 4.4, 4.8, 2.9),
    "symmetry": (MIRRORED, "x", 100.0, 4.4, 4.8, 2.9),
    "axis": (ROUND, "x", 100.0, 4.4, 4.8, 3.6),
    "no-slip, T given": (ISOTHERMAL, "x", 100.0, None, 3.0, 3.0),
    "no-slip, adiabatic": (ADIABATIC, "x", 100.0, None, 3.2, 3.0),
    "no-slip, heat flux": (ISOTHERMAL, "x", 100.0, None, 3.9, 3.7),
    "no-slip, moving, blowing": (BLOWING, "x", 100.0, None, 2.7, 3.2),
}
# Subsonic open faces at other Re_c: least order on straight and on oblique lines. The Reynolds numbers of the cells,
# c d/nu, are 0.6, 0.3 and 0.2 at 10, 20, 10 and 6.7 at 320, and 125 to 42 at 2000.
_OTHER_NUMBERS: dict[float, dict[str, tuple[float | None, float]]] = {
    10.0: {"pressure-outflow": (4.7, 3.5)},
    320.0: dict.fromkeys(("characteristic-outflow", "pressure-outflow"), (4.7, 4.7)),
    2000.0: {
        "characteristic-inflow": (None, 4.7),
        "total-pressure-inflow": (None, 4.6),
        "characteristic-outflow": (None, 4.3),
        "pressure-outflow": (None, 4.2),
    },
}
# Subsonic open faces in three dimensions: flow, least order on oblique lines, viscous. At the outflow w vanishes, too.
_LEAVING_IN_SPACE = _in_space((*LEAVING[:3], "0.1*sin(pi*x)*cos(2*pi*y)", LEAVING[4]))
_IN_SPACE: dict[str, tuple[Formulas, float]] = {
    "characteristic-inflow": (_in_space(SUBSONIC), 4.6),
    "total-pressure-inflow": (_in_space(RESERVOIR), 4.6),
    "characteristic-outflow": (_LEAVING_IN_SPACE, 4.6),
    "pressure-outflow": (_LEAVING_IN_SPACE, 4.6),
}
# A passive scalar that leaves with LEAVING and is uniform where it enters: grid lines, those of the grid, least order.
COLOUR = "0.5 + 0.3*sin(1.5*x)**6*cos(2*pi*y + 0.3)"
_SCALAR: dict[str, tuple[dict[str, Any], float]] = {
    _STRAIGHT: ({"amplitude": 0.0}, 4.0),
    "wavy spacing": ({"amplitude": (0.03, 0.0)}, 4.2),
    _OBLIQUE: ({}, 3.6),
    "stretched lines": ({"ratio": 4.0}, 4.0),
}
# Open faces with stretched lines: the end with the smallest spacing, and the least order by Re_c (None: inviscid).
_STRETCHED: dict[str, tuple[str, dict[float | None, float]]] = {
    "inflow and outflow": ("upper", {None: 4.7}),
    "prescribed": ("lower", {None: 4.6, 100.0: 4.6}),
    "characteristic-inflow": ("lower", {None: 4.5, 100.0: 4.7}),
    "total-pressure-inflow": ("lower", {None: 4.2, 100.0: 4.6}),
    "characteristic-outflow": ("upper", {None: 4.6, 100.0: 4.7}),
    "pressure-outflow": ("upper", {None: 4.6, 100.0: 4.7}),
}
# Interfaces on grids of their own: flow, periodic directions, numbers of cells, end of the runs, least order.
_INTERFACES: dict[str, tuple[Formulas, str, tuple[int, ...], float, float]] = {
    "patched": (SUBSONIC, "", _RUNS, END, 4.5),
    "pole": (ACROSS, "", (16, 24), 0.05, 4.0),
}

CHECKS = [
    *(
        _check(
            f"Euler, {name}",
            least,
            Setup(**{"flow": PLANE, "points": _FINE} | OTHERS.get(name, {}), scheme=_scheme(**keys)),
        )
        for name, (least, keys) in SCHEMES.items()
    ),
    _check("Euler, 3-D", 4.7, Setup(SPACE, _SOLID, _LINEAR, periodic="xyz", amplitude=0.02)),
    *(
        _check(f"Navier-Stokes, {law}", 4.8, Setup(PLANE, _FINE, _LINEAR, reynolds=_VISCOUS, law=law))
        for law in ("constant", "power", "sutherland")
    ),
    *(
        _check(f"Navier-Stokes, modified7{name}", least, Setup(PLANE, _FINE, scheme, reynolds=_VISCOUS))
        for name, least, scheme in (("", 5.8, _SEVEN), (", viscous_order 8", 6.8, (*_SEVEN, ("viscous_order", 8))))
    ),
    _check("Navier-Stokes, 3-D", 4.7, Setup(SPACE, _SOLID, _LINEAR, "periodic", "xyz", _VISCOUS, amplitude=0.02)),
]
for _condition, (_flow, _periodic, _viscous, _inviscid, _straight, _oblique) in _CONDITIONS.items():
    for _name, _least, _reynolds, _amplitude in (
        (f"Euler, {_OBLIQUE}", _inviscid, None, 0.03),
        (f"Navier-Stokes, {_STRAIGHT}", _straight, _viscous, 0.0),
        (f"Navier-Stokes, {_OBLIQUE}", _oblique, _viscous, 0.03),
    ):
        if _least is not None:
            _setup = Setup(_flow, _RUNS, _LINEAR, _condition, _periodic, _reynolds, amplitude=_amplitude)
            CHECKS.append(_check(f"{_condition}: {_name}", _least, _setup))
for _reynolds, _found in _OTHER_NUMBERS.items():
    for _condition, (_straight, _oblique) in _found.items():
        for _name, _least, _amplitude in ((_STRAIGHT, _straight, 0.0), (_OBLIQUE, _oblique, 0.03)):
            if _least is not None:
                _flow, _periodic = _CONDITIONS[_condition][:2]
                _setup = Setup(_flow, _RUNS, _LINEAR, _condition, _periodic, _reynolds, amplitude=_amplitude)
                CHECKS.append(_check(f"{_condition}: Navier-Stokes, Re_c = {_reynolds:g}, {_name}", _least, _setup))
for _name, (_lines, _least) in _SCALAR.items():
    _condition = "pressure-outflow, scalar"
    _setup = Setup(LEAVING, _RUNS, _LINEAR, _condition, "y", 100.0, scalar=COLOUR, **_lines)
    CHECKS.append(_check(f"{_condition}: Navier-Stokes, {_name}", _least, _setup))
for _condition, (_cluster, _orders) in _STRETCHED.items():
    for _reynolds, _least in _orders.items():
        _flow, _name = _CONDITIONS[_condition][0], "Navier-Stokes" if _reynolds else "Euler"
        _ends = f"given to {_condition}" if f"given to {_condition}" in BOUNDARIES else _condition
        _setup = Setup(_flow, _RUNS, _LINEAR, _ends, "y", _reynolds, ratio=4.0, cluster=_cluster)
        CHECKS.append(_check(f"{_condition}: {_name}, stretched lines", _least, _setup))
for _condition, (_flow, _least) in _IN_SPACE.items():
    _setup = Setup(_flow, _CUBES, _LINEAR, _condition, "yz", 100.0, amplitude=0.02)
    CHECKS.append(_check(f"{_condition}: Navier-Stokes, 3-D, {_OBLIQUE}", _least, _setup))
for _condition, (_flow, _periodic, _points, _end, _least) in _INTERFACES.items():
    for _name, _reynolds in (("Euler", None), ("Navier-Stokes", 100.0)):
        _setup = Setup(_flow, _points, _LINEAR, _condition, _periodic, _reynolds, end=_end)
        CHECKS.append(_check(f"{_condition}: {_name}", _least, _setup))
