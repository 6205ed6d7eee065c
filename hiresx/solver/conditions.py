"""The physical boundary conditions and the sponges of a case on the local blocks."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.functions import evaluate_profile, evaluate_scalar_profile
from hiresx.case.refine import REFINABLE
from hiresx.decomposition.curved_walls import curved_walls
from hiresx.decomposition.prescribed_vectors import check_turned_functions
from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.exchange.signalled_memory import SignalledMemory
from hiresx.grid import Grid
from hiresx.grid.patched import PATCHED
from hiresx.rhs import boundary, scalar_conditions
from hiresx.rhs.face_condition import Face, FaceCondition
from hiresx.rhs.outflow import Outflow
from hiresx.rhs.pole import Poles
from hiresx.rhs.recycling import Recycling
from hiresx.rhs.shared_profiles import shared_profiles
from hiresx.rhs.sponge import SpongeLayer
from hiresx.solver.block_states import LocalBlocks
from hiresx.time.step_clock import StepClock


class Conditions:
    """The physical boundary conditions and the sponges on the local blocks. `all`: the conditions of the patches, in
    the order in which they write shared nodes. `outflow`: the outflow conditions. `recycling`: the inflows that take
    fluctuations from the flow. `poles`: the poles of the grid. `sponges`: the sponge layers. `profiles`: functions that
    replace the functions of case.py with the same names. `memory`: the memory that ranks share, or None. `mirrored`:
    patches of the blocks of the grid whose ghost nodes take their values at mirrored points. `clock`: the device's
    clock, for conditions that are prescribed as waves.

    Collective. Raises the errors of `hiresx.solver.Solver`."""

    def __init__(
        self,
        case: Case,
        blocks: LocalBlocks,
        grid: Grid,
        profiles: Mapping[str, Callable[..., Any]],
        memory: SignalledMemory | None = None,
        mirrored: frozenset[int] = frozenset(),
    ):
        self._case, self._blocks, self._grid, self._profiles = case, blocks, grid, profiles
        backend, program, comm, states = blocks.backend, blocks.program, blocks.comm, blocks.states
        with comm.together():
            check_turned_functions(blocks.decomposition, case, profiles)
            curved = curved_walls(blocks.decomposition)
            faces = [
                Face(
                    backend, program, states[blocks.place[p.block]], p, case, blocks.extended[p.block], blocks.cut,
                    self._profile, p.place in mirrored, p.place in curved,
                )
                # Behind patched faces a condition has nothing to do.
                for p in blocks.cut.patches if p.block in blocks.place and p.condition.type != PATCHED
            ]  # fmt: skip
            of_gas = []
            for face in faces:
                p = face.patch
                if face.mirrored or p.condition.type not in REFINABLE or not boundary.is_of_patch(p):
                    of_gas.append(boundary.condition(face))
                    continue
                # A key that contains the identity of an object is valid as long as the cached result holds the object.
                key = "condition", p.face, p.range, id(p.condition)
                of_gas.append(blocks.kept(key, (face.state,), partial(boundary.condition, face)))
                of_gas[-1].keep(p)
            of_scalars = [c for face in faces for c in scalar_conditions.conditions(face, self._scalar)]
            boundary.share_corners(of_gas)
            scalar_conditions.share_corners(of_scalars)
            self.all = sorted([*of_gas, *of_scalars], key=lambda c: c.rank)
            self.sponges = self._sponge_layers()
            together = None if memory is None else memory.sums
            self.outflow = Outflow(
                backend, program, comm, grid, blocks.decomposition, blocks.cut, states, together
            )  # fmt: skip
        self.outflow.join_ranks()
        with comm.together():
            self.recycling = Recycling(
                backend, comm, case, blocks.decomposition, states, self.all, self._profile
            )  # fmt: skip
        self.poles = Poles(
            backend, program, comm, blocks.decomposition, blocks.cut, states, case.gas.gamma, blocks.equations
        )  # fmt: skip
        self._changing = [c for c in self.all if c.moves or type(c).prepare is not FaceCondition.prepare]
        agreed: set[str] = blocks.kept("functions of place and time alone", (), set)
        self._shared = shared_profiles(backend, self._changing, case.gas.gamma, agreed)
        shared = {id(c) for profile in self._shared for c in profile.members}
        self._alone = [c for c in self._changing if id(c) not in shared]
        self.clock = StepClock(backend)
        self.clocked = False  # whether anything besides the moving conditions needs the time
        self.timed = False  # whether a term needs the time at the beginning of each stage
        self._moves: dict[float, Callable[[], None]] = {}  # by the fraction of the step at which they are evaluated
        self._start, self._nodes = (
            program.prepare(boundary.together(self.all, method)) for method in ("node", "stage_node")
        )
        # launches of scalars before and after outflows set the rate of the density
        self._hold, self._follow = (program.prepare(self.calls(method)) for method in ("hold", "follow"))

    def _profile(self, name: str) -> Callable[..., Any]:
        function = self._profiles.get(name) or name
        return partial(evaluate_profile, self._case, function)

    def _scalar(self, name: str, function: str) -> scalar_conditions.Value:
        return partial(evaluate_scalar_profile, self._case, name, self._profiles.get(function) or function)

    def _sponge_layers(self) -> list[SpongeLayer]:
        layers, blocks, gamma = [], self._blocks, self._case.gas.gamma
        for number, spec in enumerate(self._case.sponge):
            reference = None
            if spec.function is not None:
                reference = partial(self._case.evaluate, self._profiles.get(spec.function) or spec.function)
            for state in blocks.states:
                if spec.blocks is None or state.name in spec.blocks:
                    layer = SpongeLayer(blocks.backend, blocks.program, state, spec, number, gamma, reference)
                    if not layer.empty:
                        layers.append(layer)
        return layers

    def sponge_calls(self) -> list[Call]:
        """Return the kernel launches that add the source terms of all sponges to the right-hand side."""
        calls = (
            (layer.call, *scalar_conditions.sponge_calls(self._blocks.program, self._case, layer))
            for layer in self.sponges
        )
        return [call for of_layer in calls for call in of_layer]

    def calls(self, method: str) -> list[Call]:
        """Return the kernel launches that the method called `method` makes, for all boundary conditions, without making
        them. `method`: the name of a method of `FaceCondition` that launches kernels, such as "stress"."""
        return [call for c in self.all for call in c.calls(method)]

    def ghost_calls(self) -> list[list[Call]]:
        """Return the kernel launches that fill the ghost nodes of physical faces, as lists, to be launched one after
        another, of launches that do not depend on each other. Launches for passive scalars follow those for the gas."""
        lists: list[list[Call]] = [[], [], []]
        for c in self.all:
            lists[2 * isinstance(c, scalar_conditions.ScalarCondition)] += c.calls("ghost")
            lists[1] += c.calls("bend")
        return [calls for calls in lists if calls]

    @property
    def steady(self) -> bool:
        """Whether no boundary condition needs work on the host during a step."""
        return (
            not self.poles.any
            and not self.recycling.any
            and not self.outflow.on_host
            and all(c.is_prepared for c in self._changing)
        )

    def faces_with_flux_sums(self, state: BlockState) -> set[str]:
        """Return the names of those faces ("imin" ... "kmax") of the block `state` whose boundary conditions read the
        sums of mass fluxes that kernels/wall_sums.h stores behind the face."""
        return {c.patch.face for c in self.all if c.closed and c.state is state}

    def axes(self, state: BlockState) -> list[boundary.AxisCondition]:
        """Return those boundary conditions of the block `state` that are conditions on the axis of axisymmetric
        flow."""
        return [c for c in self.all if isinstance(c, boundary.AxisCondition) and c.state is state]

    def nodes(self, time: float, dt: float = 0.0, share: float = 0.0, given: bool = False) -> None:
        """Set the nodes on physical faces by their boundary conditions for the time `time` + `share` * `dt`, in L /
        c_ref. `given`: whether the caller has set the state, as at the start of a run, so that conditions first impose
        what a time step would keep, such as the velocity of a wall."""
        self.prepare(time + share * dt)
        self.recycling()
        self.begin(time, dt)
        self._move(share)
        if given:
            self._start()
        self._nodes()
        if self.poles.any:
            self.poles()

    def finish_reads(self) -> None:
        """Wait until all file reads that boundary conditions have started in the background are complete."""
        for c in self._changing:
            c.finish_reads()

    def prepare(self, time: float) -> None:
        """Evaluate on the host the values that boundary conditions prescribe at `time`, in L / c_ref. The next call of
        `nodes` or the tasks of the next stage apply them."""
        for profile in [*self._shared]:
            if not profile.prepare(time):
                self._shared.remove(profile)
                self._alone += profile.members
        for c in self._alone:
            c.prepare(time)

    def begin(self, time: float, dt: float) -> None:
        """Pass the start `time` of a step and its size `dt`, both in L / c_ref, to the device, if kernels of boundary
        conditions or sources read them."""
        if self.clocked or self.timed or self._moving:
            self.clock.put(time, dt)

    def _move(self, share: float) -> None:
        moving = self._moving
        if moving and share not in self._moves:
            calls = [call for c in moving for call in c.calls("move", self.clock.array, share)]
            self._moves[share] = self._blocks.program.prepare(calls)
        if moving:
            self._moves[share]()

    @property
    def _moving(self) -> list[FaceCondition]:
        return [c for c in self._changing if c.moves]

    def outflow_rates(self, stage: int) -> None:
        """Correct the right-hand side at the nodes of outflows by the waves that enter the domain there. `stage`: the
        number of the Runge-Kutta stage from 0; the means over the faces are computed in stage 0 and used in all
        stages."""
        if stage == 0:
            self.outflow.convection()
        self._hold()
        self.outflow()
        self._follow()

    def profile_statistics(self) -> dict[str, list[float]]:
        """Return the mean and the root mean square of every conservative variable that steady profiles, waves and
        sponges prescribe: lists by the name of the boundary patch or sponge, all means first. All ranks must call
        this."""
        found: dict[str, np.ndarray] = {}
        for layer in self.sponges:
            if layer.moments is not None:
                name = f"sponge.{layer.number} in block '{layer.block}'"
                found[name] = found.get(name, 0) + layer.moments
        for c in self.all:
            if (given := c.function_moments) is not None:
                whole = self._blocks.decomposition.patches[c.patch.place]
                name = (
                    f"{whole.condition.type} on {whole.face} of block '{self._grid.blocks[whole.block].name}', nodes "
                    f"{whole.range}"
                )
                found[name] = found.get(name, 0) + given
        total: dict[str, np.ndarray] = {}
        for part in self._blocks.comm.allgather(found):
            for name, values in part.items():
                total[name] = total.get(name, 0) + values
        return {name: _means(values) for name, values in sorted(total.items())}


def _means(moments: np.ndarray) -> list[float]:
    """Return means and root mean squares from `hiresx.rhs.sponge.moments`."""
    count, sums, squares = moments[0], *np.split(moments[1:], 2)
    return [*(sums / count).tolist(), *np.sqrt(squares / count).tolist()]
