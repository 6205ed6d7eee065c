"""Manufactured solutions: a flow is prescribed by formulas, and source terms are computed with which it solves the
equations (Roache, Journal of Fluids Engineering 124 (2002) 4). SymPy differentiates; NumPy evaluates.

The equations are those of the solver: rho, rho u, rho v, rho w and e with the inviscid fluxes, and with the stress

    tau_ij = mu/Re_c (du_i/dx_j + du_j/dx_i - 2/3 delta_ij div u),    q_i = -mu/(Re_c Pr (gamma - 1)) dT/dx_i

where the gas has a Reynolds number, mu by its viscosity law, and rho s of passive scalars with the diffusive flux
-mu/(Re_c Sc) ds/dx_i. Scales are those of the solver.

    gas = case.gas
    flow = ManufacturedSolution(("1 + 0.1*sin(x)", "0.3", "0", "0", "0.7"), gas)
    solver = Solver(case, backend("cpu"))
    errors = truncation_error(solver, flow)       # of the right-hand side
    start(solver, flow)
    add_source(solver, flow)                      # the flow is now a solution, from which a run departs by its errors
    while solver.time < 1.0:
        solver.watched_step(lambda stage, task: True)
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.base.arrays import Reals
from hiresx.case.schema import Gas
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.grid.blocks import direction, shift_range, side, slices
from hiresx.rhs.subsonic_face import SubsonicFace
from hiresx.solver import Solver
from hiresx.time.explicit import Explicit

INSTALL = optional.install_command("mms")
# Quantities of a flow, in the order of a manufactured solution.
PRIMITIVE = ("rho", "u", "v", "w", "p")
# Step of numerical differences, in L.
NEAR_AXIS = 1e-5
# The first derivative at the first of seven nodes, of sixth order.
_ONE_SIDED = (-49 / 20, 6.0, -15 / 2, 20 / 3, -15 / 4, 6 / 5, -1 / 6)


def sympy() -> ModuleType:
    """Return the module SymPy. Raises HiresxError if it is missing or broken."""
    return optional.import_required("sympy", "manufactured solutions need SymPy", INSTALL)


class ManufacturedSolution:
    """A manufactured flow of a `gas`. `formulas`: the texts of rho, u, v, w and p as functions of x, y, z and t in
    Python's notation, such as "1 + 0.1*sin(2*pi*x)", with the functions of SymPy. If it is `axisymmetric`, y is the
    distance from the axis, v the radial velocity and w the swirl; v and w must be odd functions of y, the others even.
    `scalars`: the formula and the Schmidt number of each passive scalar, in the order of the case.

    Raises HiresxError if SymPy is missing, and ValueError for a formula that is not valid or contains other names.
    """

    def __init__(
        self,
        formulas: tuple[str, str, str, str, str],
        gas: Gas,
        axisymmetric: bool = False,
        scalars: Sequence[tuple[str, float]] = (),
    ):
        sp = sympy()
        self.formulas, self.gas, self.axisymmetric = formulas, gas, axisymmetric
        self._names = sp.symbols("x y z t", real=True)
        named = {str(name): name for name in self._names}
        found = []
        for variable, text in (*zip(PRIMITIVE, formulas, strict=True), *(("s", text) for text, _ in scalars)):
            try:
                formula = sp.sympify(text, locals=named)
            except (sp.SympifyError, TypeError, SyntaxError) as error:
                raise ValueError(f'{variable} = "{text}" is not a formula: {error}') from None
            if strange := formula.free_symbols - set(self._names):
                raise ValueError(f'{variable} = "{text}": {min(map(str, strange))} is none of x, y, z and t')
            found.append(formula)
        self._primitive, self._scalars = found[: len(PRIMITIVE)], found[len(PRIMITIVE) :]
        self._schmidt = [schmidt for _, schmidt in scalars]
        rho, u, v, w, p = self._primitive
        energy = p / (sp.nsimplify(gas.gamma) - 1) + rho * (u * u + v * v + w * w) / 2
        self._conservative = [rho, rho * u, rho * v, rho * w, energy, *(rho * s for s in self._scalars)]

    def state(self, x: Reals, y: Reals, z: Reals, t: float = 0.0) -> tuple[np.ndarray, ...]:
        """Return rho, u, v, w, p of the manufactured flow at the points x, y, z and the time t, arrays of the shape to
        which x, y and z broadcast."""
        return _values(self._state, x, y, z, t)[: len(PRIMITIVE)]

    def scalars(self, x: Reals, y: Reals, z: Reals, t: float = 0.0) -> tuple[np.ndarray, ...]:
        """Return the passive scalars of the manufactured flow at the points x, y, z and the time t, arrays of the shape
        to which x, y and z broadcast."""
        return _values(self._state, x, y, z, t)[len(PRIMITIVE) :]

    def flux_divergence(self, x: Reals, y: Reals, z: Reals, t: float = 0.0) -> np.ndarray:
        """Return the divergence of the inviscid minus the viscous fluxes of the n conservative variables, those of
        scalars last, (n, ...), at the points x, y, z and the time t. The exact right-hand side, dq/dt without a source,
        is its negative."""
        return np.stack(_values(self._divergence, x, self._off_the_axis(y), z, t))

    def source(self, x: Reals, y: Reals, z: Reals, t: float = 0.0) -> np.ndarray:
        """Return the source dq/dt + div(F - F_viscous), (n, ...), of the n conservative variables at the points x, y, z
        and the time t. With this source the manufactured flow is a solution of the equations."""
        return np.stack(_values(self._source, x, self._off_the_axis(y), z, t))

    def viscous_flux(self, x: Reals, y: Reals, z: Reals, t: float = 0.0) -> np.ndarray:
        """Return the viscous fluxes, (n - 1, 3, ...), of a viscous gas at the points x, y, z and the time t. The n - 1
        rows are the fluxes of the three components of the momentum, of the energy, and of each scalar; n is the number
        of conservative variables. The second index is the direction x, y or z. The fluxes of the momentum are the
        stresses tau_ij."""
        found = np.stack(_values(self._fluxes, x, y, z, t))
        return found.reshape(-1, 3, *found.shape[1:])

    def _off_the_axis(self, y: Reals) -> Reals:
        """Return y. If the flow is axisymmetric, a place on the axis is replaced by one beside it: the formulas are 0/0
        on the axis, and even functions of y change only by the second power of the distance."""
        return np.where(np.abs(y) < NEAR_AXIS, NEAR_AXIS, y) if self.axisymmetric else y

    @cached_property
    def _state(self) -> Callable[..., Any]:
        return self._function([*self._primitive, *self._scalars])

    @cached_property
    def _divergence(self) -> Callable[..., Any]:
        return self._function(self._flux_divergence)

    @cached_property
    def _source(self) -> Callable[..., Any]:
        changes = [sympy().diff(q, self._names[3]) for q in self._conservative]
        return self._function([change + out for change, out in zip(changes, self._flux_divergence, strict=True)])

    @cached_property
    def _fluxes(self) -> Callable[..., Any]:
        return self._function([part for row in self._viscous_fluxes() for part in row])

    def _function(self, expressions: list[Any]) -> Callable[..., Any]:
        function: Callable[..., Any] = sympy().lambdify(self._names, expressions, "numpy", cse=True)
        return function

    @cached_property
    def _flux_divergence(self) -> list[Any]:
        sp = sympy()
        space, (rho, *velocity, p) = self._names[:3], self._primitive
        energy = self._conservative[4]
        viscous = self._viscous_fluxes()
        total = [sp.Integer(0)] * len(self._conservative)
        for d, (axis, speed) in enumerate(zip(space, velocity, strict=True)):
            flux = [rho * speed, *(rho * speed * component for component in velocity), speed * (energy + p)]
            flux += [rho * speed * s for s in self._scalars]
            flux[1 + d] += p
            for n, row in enumerate(viscous):
                flux[1 + n] -= row[d]
            total = [before + sp.diff(part, axis) for before, part in zip(total, flux, strict=True)]
            if self.axisymmetric and d == 1:
                # Per ring of the width dy, with the hoop stress, which points to the axis, and the terms of the
                # rotating directions.
                flux[2] -= rho * velocity[2] ** 2 + p - (viscous[2][2] if viscous else 0)
                flux[3] *= 2
                total = [before + part / axis for before, part in zip(total, flux, strict=True)]
        return total

    def _viscous_fluxes(self) -> list[list[Any]]:
        """Return the viscous fluxes along x, y and z, of momentum (tau_ij), of energy, and of each scalar; empty for an
        inviscid gas."""
        gas, sp = self.gas, sympy()
        if gas.reynolds is None:
            return []
        space, (rho, *velocity, p) = self._names[:3], self._primitive
        temperature = sp.nsimplify(gas.gamma) * p / rho
        mu = viscosity(gas)(temperature) / sp.Float(gas.reynolds)
        g = [[sp.diff(component, axis) for axis in space] for component in velocity]
        if self.axisymmetric:
            g[1][2], g[2][2] = -velocity[2] / space[1], velocity[1] / space[1]
        dilatation = g[0][0] + g[1][1] + g[2][2]
        stress = [
            [mu * (g[i][j] + g[j][i] - (sp.Rational(2, 3) * dilatation if i == j else 0)) for j in range(3)]
            for i in range(3)
        ]
        conduction = mu / (sp.Float(gas.prandtl) * (sp.nsimplify(gas.gamma) - 1))
        work = [sum(velocity[c] * stress[c][d] for c in range(3)) for d in range(3)]
        energy = [done + conduction * sp.diff(temperature, axis) for done, axis in zip(work, space, strict=True)]
        diffusion = [
            [mu / sp.Float(schmidt) * sp.diff(s, axis) for axis in space]
            for s, schmidt in zip(self._scalars, self._schmidt, strict=True)
        ]
        return [*stress, energy, *diffusion]


def viscosity(gas: Gas) -> Callable[[Any], Any]:
    """Return the viscosity law mu(T) of `gas` as a function of SymPy expressions (hiresx.case.viscosity)."""
    sp = sympy()
    functions = {
        "minimum": sp.Min, "maximum": sp.Max,
        "where": lambda condition, yes, no: sp.Piecewise((yes, condition), (no, True)),
    }  # fmt: skip
    named = {name: sp.Float(value) for name, value in gas.viscosity.parameters}
    law = gas.viscosity.formula

    def mu(temperature: Any) -> Any:
        return sp.sympify(law, locals=functions | named | {"T": temperature})

    return mu


def _values(function: Callable[..., Any], x: Reals, y: Reals, z: Reals, t: float) -> tuple[np.ndarray, ...]:
    """Return the values of a function of x, y, z and t, in the shape to which the coordinates broadcast."""
    shape = np.broadcast_shapes(np.shape(x), np.shape(y), np.shape(z))
    return tuple(np.array(np.broadcast_to(found, shape), np.float64) for found in function(x, y, z, t))


def truncation_error(solver: Solver, flow: ManufacturedSolution, time: float = 0.0) -> list[np.ndarray]:
    """Return the error of the right-hand side of `solver` for the state of `flow` at `time`: for each block the
    computed rates of change of the conserved variables minus the exact ones, those of scalars last, (n, nk, nj, ni).
    The state of the solver is set to `flow`. At nodes whose rates are not used, such as the nodes of an inflow, the
    values have no meaning."""
    start(solver, flow, time)
    solver.right_hand_side()
    found = []
    for state in solver.states:
        rates, jacobian = (state.interior(solver.backend.to_host(a)) for a in (state.r, state.jacobian))
        exact = -flow.flux_divergence(*_places(state), time)
        found.append(rates[: len(exact)] * jacobian - exact)
    return found


def start(solver: Solver, flow: ManufacturedSolution, time: float = 0.0) -> None:
    """Set the state of `solver` at all nodes to the state of the manufactured `flow` at `time`, in L / c_ref."""
    for n, state in enumerate(solver.states):
        rho, u, v, w, p = flow.state(*_places(state), time)
        names = (scalar.name for scalar in solver.case.scalar)
        solver.set_state(n, rho, u, v, w, p, dict(zip(names, flow.scalars(*_places(state), time), strict=True)))
    solver.complete_state()


def add_source(solver: Solver, flow: ManufacturedSolution) -> None:
    """Add the source of the manufactured `flow` to the right-hand side of `solver`. The source is a further entry of
    `solver.tasks`, the functions that the host calls in each stage, before the entry "update". Time steps must then be
    made by `Solver.watched_step`, which calls these functions. `Solver.step` and `Solver.advance` may make steps by
    prepared launches of kernels instead, which leave the source out. Raises ValueError for a time integrator that
    iterates."""
    if not isinstance(solver.integrator, Explicit):
        raise ValueError("the source is added at the stages of an explicit integrator")
    times = (0.0, *solver.integrator.times)
    volumes = [1 / state.interior(solver.backend.to_host(state.jacobian)) for state in solver.states]
    viscous = flow.gas.reynolds is not None
    open_faces = [face for face in solver.conditions if isinstance(face, SubsonicFace) and viscous]

    def add(stage: int) -> None:
        time = solver.time + times[stage] * solver.dt
        for state, volume in zip(solver.states, volumes, strict=True):
            source = flow.source(*_places(state), time) * volume
            for face in open_faces:
                if face.state is state:
                    _add_flux_derivative(source, flow, face, time)
            state.interior(state.r)[: len(source)] += solver.backend.to_device(source)

    behind = next(n for n, (name, _) in enumerate(solver.tasks) if name == "update")
    solver.tasks.insert(behind, ("source", add))


def _add_flux_derivative(source: np.ndarray, flow: ManufacturedSolution, face: SubsonicFace, time: float) -> None:
    """Add to the `source` (n, nk, nj, ni), which has the factor 1/J of the nodes, the derivative of the viscous
    flux of `flow` along the grid lines that meet a subsonic `face`, at its nodes, which the scheme sets to zero
    (kernels/boundary/subsonic_face.h). The derivative is the one of sixth order of the flux at the nodes."""
    d, inward = direction(face.patch.face), -side(face.patch.face)
    places, total = _places(face.state), np.zeros(())
    for n, weight in enumerate(_ONE_SIDED):
        i, j, k = (inward * n * (e == d) for e in range(DIRECTIONS))
        box = shift_range(face.patch.range, (i, j, k))
        x, y, z = (c[slices(box)] for c in places)
        stresses = flow.viscous_flux(x, y, z, time)
        total = total + inward * weight * np.einsum("dkji,vdkji->vkji", face.areas(d, box), stresses)
    source[(slice(1, None), *slices(face.patch.range))] += total


def _places(state: BlockState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, y, z of the nodes of a part, (nk, nj, ni) each."""
    return np.asarray(state.block.x), np.asarray(state.block.y), np.asarray(state.block.z)
