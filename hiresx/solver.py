"""The solver proper: blocks on a device and one time step as an ordered list of named tasks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Decomposition, decompose, extended_coordinates, halo_lists
from hiresx.device.configuration import Configuration
from hiresx.device.state import BlockState
from hiresx.exchange.halo import HaloExchange
from hiresx.grid import Grid, build
from hiresx.rhs import boundary, inviscid, viscous
from hiresx.rhs.gas import conservative, primitive
from hiresx.rhs.metrics import compute_metrics
from hiresx.rhs.sponge import SpongeLayer
from hiresx.time.reduction import Reduction
from hiresx.time.rk3 import STAGES, Update
from hiresx.time.stopwatch import Stopwatch


def configuration(case: Case) -> Configuration:
    """The compile-time choices of a case."""
    scheme, gas = case.scheme, case.gas
    law = gas.viscosity
    extra = {}
    if law.law == "power":
        extra["viscosity_exponent"] = law.exponent
    if law.law == "sutherland":
        extra["sutherland_temperature"] = law.sutherland_temperature
    return Configuration(
        interpolation=scheme.interpolation,
        weights=scheme.weights,
        space=scheme.space,
        flux=scheme.flux,
        flux_smoothing=scheme.flux_smoothing,
        epsilon=scheme.epsilon,
        positivity=scheme.positivity,
        precision=scheme.precision,
        viscosity="none" if gas.reynolds is None else law.law,
        gamma=gas.gamma,
        prandtl=gas.prandtl,
        **extra,
    )


PLANS = {"pencils": inviscid.Pencils, "decomposed": inviscid.Decomposed}


def default_plan(backend_name: str) -> str:
    """Pencils on the CPU, the decomposed kernels on a GPU and where one is emulated."""
    return "pencils" if backend_name == "cpu" else "decomposed"


def work_variables(plan: str, is_viscous: bool) -> int:
    """Reals of work memory per padded point: the inviscid and the viscous terms use the same, one after the other."""
    return max(PLANS[plan].work_variables, viscous.VARIABLES if is_viscous else 0)


class Solver:
    """A case on a device.

    `plan`: "pencils" (CPU) or "decomposed" (any backend); None takes what suits the backend. `profiles` replaces
    functions of case.py by name. Raises HiresxError for a grid that is not right-handed everywhere, for boundary
    conditions that leave a node out, and for what the backend and the compiler have to say.
    """

    def __init__(
        self,
        case: Case,
        backend,
        grid: Grid | None = None,
        plan: str | None = None,
        profiles: dict[str, Callable] | None = None,
    ):
        self.case, self.backend = case, backend
        self._profiles = profiles or {}
        self.grid = build(case.grid, case.directory) if grid is None else grid
        self.decomposition: Decomposition = decompose(case, self.grid)
        self.configuration = configuration(case)
        self.program = backend.compile(self.configuration)
        self.time, self.steps = 0.0, 0
        # Times the case's dt or CFL numbers; lowered when a run goes back after a blow-up.
        self.step_factor = 1.0
        self.plan = plan or default_plan(backend.name)
        plan_class = PLANS[self.plan]
        is_viscous = self.configuration.viscous
        work = work_variables(self.plan, is_viscous)

        blocks = self.decomposition.blocks
        self.states = [BlockState(backend, b, self.configuration.real, work, case.time.local) for b in blocks]
        extended = extended_coordinates(self.decomposition)
        for state, coordinates in zip(self.states, extended, strict=True):
            compute_metrics(backend, self.program, state, coordinates)

        self._halo = HaloExchange(backend, self.program, self.states, halo_lists(self.decomposition))
        self._halo.jacobian()
        self.conditions = sorted(
            (
                boundary.condition(
                    backend, self.program, self.states[p.block], p, case.gas.gamma, self._profile, extended[p.block]
                )
                for p in self.decomposition.patches
            ),
            key=lambda c: c.rank,
        )
        self.sponges = self._sponge_layers()
        self._inviscid = [plan_class(self.program, s, case.scheme.interpolation) for s in self.states]
        self._viscous = [viscous.Viscous(self.program, s, case.gas.reynolds) for s in self.states] if is_viscous else []
        self._updates = [Update(self.program, s) for s in self.states]
        self._reductions = [Reduction(backend, self.program, s) for s in self.states]
        self.stopwatch = Stopwatch(backend)
        self.dt = case.time.dt or 0.0
        self._set_dt_value = None
        self.tasks = self._task_list()

    # ---- set-up

    def _profile(self, name: str) -> Callable:
        function = self._profiles.get(name) or name
        return lambda x, y, z, t: self.case.evaluate(function, x, y, z, t)

    def _sponge_layers(self) -> list[SpongeLayer]:
        layers = []
        for spec in self.case.sponge:
            reference = None
            if spec.function is not None:
                reference = self._steady(self._profiles.get(spec.function) or spec.function)
            for state in self.states:
                if spec.blocks is None or state.block.name in spec.blocks:
                    layer = SpongeLayer(self.backend, self.program, state, spec, self.case.gas.gamma, reference)
                    if not layer.empty:
                        layers.append(layer)
        return layers

    def _steady(self, function) -> Callable:
        return lambda x, y, z: self.case.evaluate(function, x, y, z)

    def _task_list(self) -> list[tuple[str, Callable[[int], None]]]:
        """What one stage does, in order: (name, task(stage)).

        A stage leaves nodes on faces and connected halos as they must be, so that between steps the state can be looked
        at without touching it; the ghosts of physical faces, which nobody else sees, are filled when they are needed.
        """
        tasks = [
            ("boundary", lambda stage: self._each(self.conditions, "ghost")),
            ("inviscid", lambda stage: [block() for block in self._inviscid]),
        ]
        if self._viscous:
            tasks += [
                ("viscous", self._viscous_fluxes),
                ("exchange", lambda stage: self._halo.fluxes([block.fluxes for block in self._viscous])),
                ("viscous", self._viscous_differences),
            ]
        if self.sponges:
            tasks.append(("sponge", lambda stage: [layer() for layer in self.sponges]))
        return [
            *tasks,
            ("update", lambda stage: [update(stage) for update in self._updates]),
            ("boundary", lambda stage: self._boundary_nodes(self.time + STAGES[stage][2] * self.dt)),
            ("exchange", lambda stage: self._halo.state()),
        ]

    # ---- tasks

    @staticmethod
    def _each(items, method: str) -> None:
        for item in items:
            getattr(item, method)()

    def _boundary_nodes(self, time: float) -> None:
        for c in self.conditions:
            c.node(time)

    def _viscous_fluxes(self, stage: int) -> None:
        self._each(self._viscous, "primitives")
        for c in self.conditions:
            c.viscous_primitives(self._viscous[c.patch.block].w)
        self._each(self._viscous, "flux")

    def _viscous_differences(self, stage: int) -> None:
        for c in self.conditions:
            c.viscous_flux(self._viscous[c.patch.block].fluxes)
        self._each(self._viscous, "difference")

    # ---- the step

    def stage(self, stage: int) -> None:
        """One Runge-Kutta stage: every task in order."""
        for name, task in self.tasks:
            with self.stopwatch(name):
                task(stage)

    def right_hand_side(self) -> None:
        """The halo exchange and everything of a stage up to the update: fills `r` of every block (1/J times dq/dt)."""
        with self.stopwatch("exchange"):
            self._halo.state()
        for name, task in self.tasks:
            if name == "update":
                return
            with self.stopwatch(name):
                task(0)

    def choose_dt(self, largest: float = np.inf) -> float:
        """Set the step from the case (fixed, or CFL limits over all blocks), no larger than `largest`; with local steps
        every point gets its own and the returned value is 0."""
        time, factor = self.case.time, self.step_factor
        with self.stopwatch("time step"):
            if time.local:
                for reduction in self._reductions:
                    reduction.local_steps(self.case.gas.reynolds, factor * time.cfl, factor * time.viscous_cfl)
                self.dt = 0.0
                return self.dt
            if time.dt is not None:
                wanted = factor * time.dt
            else:
                radii = np.array([r.radii(self.case.gas.reynolds) for r in self._reductions])
                # a NaN must not lose against a number
                inviscid_radius, viscous_radius = radii.max(axis=0)
                wanted = factor * time.cfl / inviscid_radius
                if viscous_radius > 0:
                    wanted = min(wanted, factor * time.viscous_cfl / viscous_radius)
            self.dt = float(min(wanted, largest))
            if self.dt != self._set_dt_value:
                for state in self.states:
                    value = np.full(state.dt.shape, self.dt, dtype=state.dt.dtype)
                    self.backend.copy(state.dt, self.backend.to_device(value))
                self._set_dt_value = self.dt
        return self.dt

    def step(self, largest: float = np.inf) -> float:
        """One time step, no longer than `largest`. Returns dt (0 with local steps).

        Raises FloatingPointError, the state left as it was, when the flow allows no step: the rates of change are not
        finite, or so large that time would stand still.
        """
        self.choose_dt(largest)
        if not np.isfinite(self.dt) or (0 <= self.dt < largest and self.time + self.dt == self.time and not self.local):
            raise FloatingPointError(f"time step {self.dt:.4g}")
        for stage in range(len(STAGES)):
            self.stage(stage)
        self.time += self.dt
        self.steps += 1
        self.stopwatch.collect()
        return self.dt

    @property
    def local(self) -> bool:
        """Whether each point takes its own step."""
        return self.case.time.local

    # ---- the state

    def set_state(self, block: int, rho, u, v, w, p) -> None:
        """Set the state of a block from primitive arrays broadcastable to (nk, nj, ni). When all blocks are set,
        `complete_state` brings the rest up to them."""
        state = self.states[block]
        shape = state.block.x.shape
        values = [np.broadcast_to(np.asarray(a, float), shape) for a in (rho, u, v, w, p)]
        q = self.backend.to_host(state.q)
        state.interior(q)[...] = np.stack(conservative(self.case.gas.gamma, *values))
        self.backend.copy(state.q, self.backend.to_device(q))

    def initialize(self, initial=None) -> None:
        """The case's initial state, or `initial`: a function f(x, y, z, *, <parameters>) -> (rho, u, v, w, p)."""
        spec = self.case.initial
        for b, block in enumerate(self.decomposition.blocks):
            if initial is None and spec.state is not None:
                s = spec.state
                self.set_state(b, s.rho, s.u, s.v, s.w, s.p)
            else:
                self.set_state(b, *self.case.evaluate(initial or spec.function, block.x, block.y, block.z))
        self.time, self.steps = 0.0, 0
        self.complete_state()

    def complete_state(self) -> None:
        """Impose the conditions on the nodes of physical faces and fill the connected halos."""
        self._boundary_nodes(self.time)
        self._halo.state()

    def values(self) -> dict[str, Any]:
        """With `arrays`, all that the next step depends on: time, steps, dt, step_factor."""
        return {"time": self.time, "steps": self.steps, "dt": float(self.dt), "step_factor": self.step_factor}

    def arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """(name, conservative state (5, nk, nj, ni) without ghosts, in the precision of the run) for each block."""
        for b, state in enumerate(self.states):
            yield f"q.{b}", np.ascontiguousarray(state.interior(self.backend.to_host(state.q)))

    def restore(self, values: Mapping[str, Any], array: Callable[[str], np.ndarray]) -> None:
        """Go on from what `values` and `arrays` gave, to the last bit on the same backend. Raises ValueError for
        numbers that no run can have had, and for an array of another shape or type."""
        time, dt, factor = (float(values[key]) for key in ("time", "dt", "step_factor"))
        steps = int(values["steps"])
        if not (0 <= time < np.inf and 0 <= dt < np.inf and 0 < factor <= 1 and steps >= 0):
            raise ValueError(f"time {time}, dt {dt}, step {steps}, {factor} times the step of the case")
        self._boundary_nodes(0.0)  # a steady profile is that of the beginning
        self.time, self.steps, self.dt, self.step_factor = time, steps, dt, factor
        self._take(array)
        self._boundary_nodes(self.time)
        # Faces had their conditions already: once more might round once more. Ghosts and targets are what was wanted.
        self._take(array)
        self._halo.state()

    def _take(self, array: Callable[[str], np.ndarray]) -> None:
        for b, state in enumerate(self.states):
            q, found = self.backend.to_host(state.q), array(f"q.{b}")
            interior = state.interior(q)
            if found.shape != interior.shape or found.dtype != interior.dtype:
                raise ValueError(f"block {b} is {found.dtype} {found.shape}, not {interior.dtype} {interior.shape}")
            interior[...] = found
            self.backend.copy(state.q, self.backend.to_device(q))

    def given(self) -> dict[str, list[float]]:
        """What the functions of steady profiles and sponges ask for: by place, the mean and the root mean square of
        every conservative variable."""
        found = {}
        for n, layer in enumerate(self.sponges):
            found[f"sponge layer {n} in block '{layer.block}'"] = layer.goal
        for c in self.conditions:
            if (target := c.target) is not None:
                place = f"{c.patch.face} of block '{c.state.block.name}', nodes {c.patch.range}"
                found[f"{c.patch.condition.type} on {place}"] = target
        return {name: _moments(self.backend.to_host(target)) for name, target in found.items()}

    def primitives(self, block: int) -> dict[str, np.ndarray]:
        """rho, u, v, w, p of a block, float64 (nk, nj, ni)."""
        state = self.states[block]
        q = state.interior(self.backend.to_host(state.q)).astype(np.float64)
        return primitive(self.case.gas.gamma, q)

    def norms(self) -> tuple[np.ndarray, float, float]:
        """Root mean square of dq/dt over all points (5), least density, least pressure."""
        found = [r.norms() for r in self._reductions]
        sums = np.sum([f[0] for f in found], axis=0)
        return np.sqrt(sums / self.points), min(f[1] for f in found), min(f[2] for f in found)

    @property
    def points(self) -> int:
        return self.decomposition.points

    @property
    def bytes(self) -> int:
        """Device memory held for the fields."""
        return (
            sum(s.bytes for s in self.states)
            + sum(r.bytes for r in self._reductions)
            + sum(layer.bytes for layer in self.sponges)
        )


def _moments(values: np.ndarray) -> list[float]:
    """Mean and root mean square of each of the variables of `values` (variables, ...)."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    return [*flat.mean(axis=1).tolist(), *np.sqrt(np.mean(flat * flat, axis=1)).tolist()]
