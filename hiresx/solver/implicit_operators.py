"""The linearised flow on the local blocks: launches of kernels/implicit.h."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hiresx.case import Case
from hiresx.case.implicit_table import NAME, UNSTEADY_SWEEPS
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS, equations
from hiresx.errors import HiresxError
from hiresx.grid.blocks import FACES, slices
from hiresx.solver.block_arguments import of_flow
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.conditions import Conditions
from hiresx.solver.face_blocks import face_blocks
from hiresx.solver.flow_system import VECTORS, FlowSystem
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.product_lines import ProductLines
from hiresx.solver.product_nodes import ProductNodes
from hiresx.solver.step_size import StepSize
from hiresx.solver.sweep_colours import Colours
from hiresx.solver.sweep_count import count_sweeps
from hiresx.solver.sweeps import SweepInputs, Sweeps
from hiresx.time.integrator import Integrator
from hiresx.time.linearised import EXPLICIT_CFL, ImplicitIntegrator, ImplicitSettings, Linearised, ResidualPlace
from hiresx.time.ode_system import Vector

# Kinds of faces with conditions, by the kernel of the condition (kernels/implicit/blocks.h); all others have given
# values.
_SIDES = {"reflect": 2, "no_slip": 3}
_GIVEN = 1
# Conditions whose ghosts are nodes of other blocks.
_NEIGHBOURS = ("patched",)
# Relative change of a variable for the numerical derivative of conditions at nodes.
_SHIFT = 1e-7
# A step leaves density and pressure at least this fraction of their values.
_LEAST = 0.25


class _TimeTerm(NamedTuple):
    """The terms `constant` - `over_time` q of an implicit stage, and the `time` of its boundary conditions."""

    time: float
    over_time: float
    constant: Vector


class ImplicitOperators(Linearised):
    """Operators of the implicit integrator on the blocks of this rank. The matrix blocks, and the update with its
    ghosts, are fields of the block states. Collective. Raises HiresxError for a case that the implicit integrator does
    not support. `ghosts`, `conditions`: the exchanges of ghosts and the boundary conditions of these `blocks`.
    `step_size`: the computation of explicit steps. `system`: the flow equations."""

    def __init__(
        self,
        case: Case,
        blocks: LocalBlocks,
        ghosts: Ghosts,
        conditions: Conditions,
        step_size: StepSize,
        system: FlowSystem,
    ):
        self.settings = settings(case)
        self._blocks, self._conditions, self._system = blocks, conditions, system
        self._step_size = step_size
        self._inverse_reynolds = 0.0 if case.gas.reynolds is None else 1.0 / case.gas.reynolds
        self._variables, sizes = equations(case).variables, case.turbulence.sizes
        # the magnitudes by which norms divide the variables
        self._scales = np.array([*[1.0] * (self._variables - len(sizes)), *sizes])[:, None, None, None]
        chosen = replace(
            blocks.configuration,
            program="implicit",
            implicit_storage=case.implicit.storage,
            stored_directions=case.implicit.stored_directions,
            sweep_precision=case.implicit.sweep_precision,
            source=(),
            face_formulas=(),
        )
        self._program = blocks.compile_kernels(chosen)
        # whether a GPU makes blocks for sweeps in FP32 (kernels/implicit/block_columns.h)
        self._in_fp32 = "block_columns" in self._program.signatures and case.implicit.sweep_precision == "fp32"
        device, sides = blocks.backend.to_device, _sides(blocks)
        self._sides = [device(of_part) for of_part in sides]
        colours = Colours(len(blocks.decomposition.blocks), blocks.decomposition.connections)
        self._faces = face_blocks(case, blocks, sides, colours)
        of_sweeps = SweepInputs(self.settings, blocks, ghosts, self._program, chosen, self._inverse_reynolds, colours)
        kind = ProductLines if self.settings.lines != "none" else ProductNodes
        self._sweeps = kind(of_sweeps, self._faces) if self._faces else Sweeps(of_sweeps)
        # the directions along which blocks are stored: all, or only that of the lines
        self._stored, self._along = case.implicit.stored_directions, case.implicit.direction
        # for each part with nodes on outflows: these nodes, their faces, and memory for their conditions
        self._outflow = [
            (s, device(nodes), device(faces), blocks.backend.zeros((self._variables**2, len(nodes)), s.real))
            for s, nodes, faces in conditions.outflow.nodes
        ]
        self._shifted, self._kept, self._result = (system.vector() for _ in range(3))
        self._in_time: _TimeTerm | None = None

    # ---- the explicit step

    def begin(self, longest: float = math.inf) -> None:
        """Compute, for every node, the time step that would be stable for an explicit integrator in the current state,
        but at most `longest`, and store it in the array `dt` of the block states. The other methods use these steps
        until the next call of `begin`."""
        self._step_size.fill_by(EXPLICIT_CFL, EXPLICIT_CFL, longest)

    def unsteady(self, time: float, over_time: float, constant: Vector) -> None:
        """Replace the rates of change R(x) by R(x) - `over_time` x + `constant` in all later calls, with the boundary
        conditions at `time`, so that their zero is the solution of an implicit step. `over_time`: the coefficient of
        the unknown state in the discrete time derivative. `constant`: the part that depends on earlier states."""
        self._in_time = _TimeTerm(time, over_time, constant)

    @property
    def _time(self) -> float:
        return self._system.time if self._in_time is None else self._in_time.time

    @property
    def _over_time(self) -> float:
        return 0.0 if self._in_time is None else self._in_time.over_time

    def change(self, x: Vector, into: Vector) -> None:
        """Compute the change of the state x by a step with the explicit time step of each node (`begin`), boundary
        conditions included, and store it in `into`. The state of the blocks is overwritten."""
        system, term = self._system, self._in_time
        system.rates(x, self._time, into)  # the state is x with its conditions, and r its rates
        with system.timed(VECTORS):
            if term is None:
                self._launch("explicit_change", _flow)
            else:
                self._launch("implicit_change", _flow, over_time=term.over_time, constant=term.constant)
        with system.timed("boundary"):
            self._conditions.nodes(self._time)
        system.state(into)
        system.axpy(-1.0, x, into)

    def rates(self, change: Vector, into: Vector) -> None:
        """Divide `change` by the explicit time step of every node, and store the result in `into`."""
        with self._system.timed(VECTORS):
            self._launch("over_step", lambda s: {"dt": s.dt}, f=change, x=into)

    # ---- matrix blocks

    def assemble(self, x: Vector, over_cfl: float) -> None:
        """Compute the matrix blocks of the linear equations of a pseudo-time step from the state x. `over_cfl`: 1/c,
        where c is the pseudo-time step divided by the explicit step."""
        with self._system.timed("blocks"):
            self._assemble(x, over_cfl)

    def _assemble(self, x: Vector, over_cfl: float) -> None:
        system = self._system
        system.copy(x, self._kept)
        system.impose(self._kept, self._time)
        for which in range(self._variables):
            self._launch("shift_faces", self._of_sides, which=which, length=_SHIFT, x=x, y=self._shifted)
            system.copy(self._shifted, self._result)
            system.impose(self._result, self._time)
            self._launch(
                "face_derivative", self._of_blocks, which=which, length=_SHIFT, x=x, kept=self._kept, y=self._result
            )
        system.fill_ghosts(x, self._time)
        for s, nodes, _, kept in self._outflow:
            self._program.launch(
                "keep_conditions", (len(nodes), 1, 1), n1=len(nodes), nodes=nodes, row=s.strides[1],
                sv=s.variable_stride, blocks=s.array("implicit_blocks"), kept=kept,
            )  # fmt: skip
        given = {"inverse_reynolds": self._inverse_reynolds, "over_cfl": float(over_cfl), "over_time": self._over_time}
        self._launch("condition_blocks", lambda s: {**self._of_flow(s), **self._of_faces(s)}, **given)
        if self._stored:
            self._interior_blocks(given)
        self._outflow_blocks(over_cfl)
        self._sweeps.factor(float(over_cfl), self._over_time)
        self.sweeps = self.settings.sweeps

    def _interior_blocks(self, given: dict[str, Any]) -> None:
        """Compute the blocks of nodes without conditions."""
        if not self._in_fp32:
            self._launch("implicit_blocks", self._of_flow, direction=self._along, **given)
            return
        inverted = self._sweeps.inverted = {
            s.index: self._sides[n] for n, s in enumerate(self._blocks.states) if self._reads_inverses(n)
        }
        self._launch(
            "block_columns", lambda s: {**self._of_flow(s), "inverted": int(s.index in inverted)},
            direction=self._along, **given,
        )  # fmt: skip

    def _reads_inverses(self, n: int) -> bool:
        """True if the sweeps over the part `states[n]` need its diagonal blocks for their inverses alone: sweeps over
        nodes do. Where lines may be chosen later they need the blocks."""
        return self._stored == DIRECTIONS and self.settings.lines != "auto" and not self._sweeps.lines[n]

    def _outflow_blocks(self, over_cfl: float) -> None:
        for s, nodes, faces, kept in self._outflow:
            self._program.launch(
                "outflow_blocks", (len(nodes), 1, 1), n1=len(nodes), nodes=nodes, codes=faces,
                given=self._conditions.outflow.given, kept=kept, row=s.strides[1], sv=s.variable_stride,
                **s.derivative_strides, q=s.q, m=s.metrics, jacobian=s.jacobian, dt=s.dt,
                inverse_reynolds=self._inverse_reynolds, over_cfl=float(over_cfl), over_time=self._over_time,
                **self._of_faces(s), blocks=s.array("implicit_blocks"),
            )  # fmt: skip

    def _of_flow(self, s: BlockState) -> dict[str, Any]:
        """Return the arguments of kernels for the flow from which blocks are computed, and for the blocks."""
        return {**of_flow(s), "dt": s.dt, **self._of_blocks(s)}

    def _of_faces(self, s: BlockState) -> dict[str, Any]:
        """Return the arguments for matrix blocks of neighbours that are stored only at nodes on faces."""
        if not self._faces:
            return {"numbers": None, "of_faces": None, "faces": 0}
        return self._faces[self._blocks.place[s.index]].arguments

    def _of_sides(self, s: BlockState) -> dict[str, Any]:
        return {"sides": self._sides[self._blocks.place[s.index]]}

    def _of_blocks(self, s: BlockState) -> dict[str, Any]:
        return {**self._of_sides(s), "blocks": s.array("implicit_blocks")}

    def precondition(self, right: Vector, into: Vector) -> None:
        """Solve the linear equations approximately by sweeps from the initial guess 0. `right`: the right-hand side.
        `into`: the solution."""
        with self._system.timed("sweeps"):
            if self.sweeps is None:
                self.sweeps = count_sweeps(self._sweeps, self._system, right, into, self._result)
            else:
                self._sweeps(right, into, self.sweeps)

    # ---- step lengths and places

    def admissible_share(self, x: Vector, change: Vector) -> float:
        """Return the largest of the factors 1, 1/2, 1/4, ... by which `change` can be multiplied and added to x, such
        that density and pressure keep at least a quarter of their values at every node; 0 if there is none."""
        backend, least = self._blocks.backend, 1.0
        for s, own, along in zip(self._blocks.states, x.arrays, change.arrays, strict=True):
            ni, nj, nk = s.size
            share = backend.zeros((nj, ni), s.real)
            self._program.launch(
                "admissible_share", (ni, nj, 1), **s.place, height=nk, sv=s.variable_stride, least=_LEAST, x=own,
                d=along, width=ni, share=share,
            )  # fmt: skip
            least = min(least, float(backend.to_host(share).min()))
        return float(self._blocks.comm.min([least])[0])

    def show(self, rates: Vector) -> None:
        """Store the largest magnitude of the components of `rates` at each node in the field `residual`."""
        self._launch("largest_of_node", lambda s: {"largest": s.array("residual")}, x=rates)

    def largest(self, rates: Vector) -> tuple[float, ResidualPlace]:
        """Return the largest magnitude of a component of the vector `rates` on all ranks, with the block, node and
        equation of this component. As in norms, variables of a turbulence model are divided by their typical sizes.
        Collective."""
        found: list[tuple[float, ResidualPlace]] = []
        for s, array in zip(self._blocks.states, rates.arrays, strict=True):
            values = np.abs(self._blocks.host_values(s, array)) / self._scales
            found.append((float(values.max()), _place(s, np.unravel_index(int(values.argmax()), values.shape))))
        everywhere = [one for theirs in self._blocks.comm.allgather(found) for one in theirs]
        return max(everywhere, key=lambda one: one[0])

    def check_blocks(self) -> None:
        """Raise HiresxError on all ranks if the diagonal matrix block of a node is singular; the message names the
        first such node. Collective."""
        found: ResidualPlace | None = None
        for n, s in enumerate(self._blocks.states):
            for inverses in self._sweeps.inverses(n):
                bad = np.argwhere(~np.isfinite(inverses).all(axis=(0, 1)))
                if len(bad) and found is None:
                    found = _place(s, (0, *bad[0]))
        first = next((place for place in self._blocks.comm.allgather(found) if place is not None), None)
        if first is not None:
            raise HiresxError(
                f"the implicit equations of node (i, j, k) = {first.node} of block '{first.block}' are singular",
                "take a smaller time.cfl, or another state to start from",
            )

    def _launch(self, kernel: str, of_state: Callable[[BlockState], dict[str, Any]], /, **given: Any) -> None:
        for n, s in enumerate(self._blocks.states):
            arguments = {name: value.arrays[n] if isinstance(value, Vector) else value for name, value in given.items()}
            self._program.launch(kernel, s.size, **s.place, sv=s.variable_stride, **of_state(s), **arguments)


def connect(
    case: Case,
    integrator: Integrator,
    blocks: LocalBlocks,
    ghosts: Ghosts,
    conditions: Conditions,
    step_size: StepSize,
    system: FlowSystem,
) -> None:
    """Give an implicit time `integrator` the operators of the linearised flow on the `blocks` of this rank, with their
    `ghosts` and boundary `conditions`; `step_size` gives the pseudo-time step, and `system` the operations on vectors
    of the size of the state. Other integrators are left unchanged. All ranks must call this."""
    if isinstance(integrator, ImplicitIntegrator):
        integrator.attach(system, ImplicitOperators(case, blocks, ghosts, conditions, step_size, system))


def settings(case: Case) -> ImplicitSettings:
    """Return the settings of the implicit integrator of `case`, with defaults for keys that the case does not set."""
    given, first = case.implicit, case.time.cfl
    sweeps = UNSTEADY_SWEEPS if given.sweeps is None and case.time.integrator != NAME else given.sweeps
    return ImplicitSettings(
        math.inf if first is None else first, given.largest_cfl, given.krylov, given.krylov_residual,
        given.linear_drop, sweeps, given.drop, given.lines, given.newton_drop, given.newton_steps, given.tolerance,
    )  # fmt: skip


def _flow(s: BlockState) -> dict[str, Any]:
    return {"q": s.q, "r": s.r, "jacobian": s.jacobian, "dt": s.dt}


def _place(s: BlockState, at: Any) -> ResidualPlace:
    variable, k, j, i = (int(n) for n in at)
    node = (s.first[0] + i, s.first[1] + j, s.first[2] + k)
    return ResidualPlace(s.name, node, s.equations.conserved_names[variable])


def _sides(blocks: LocalBlocks) -> list[np.ndarray]:
    """Return the kinds of faces on each side of the nodes of every part, two bits for each side, in arrays of the
    padded shape."""
    found = [np.zeros(s.shape, np.int32) for s in blocks.states]
    for patch in blocks.cut.patches:
        n = blocks.place.get(patch.block)
        if n is None or patch.condition.kernel in _NEIGHBOURS:
            continue
        bits = _SIDES.get(patch.condition.kernel or "", _GIVEN) << (2 * FACES.index(patch.face))
        interior = blocks.states[n].interior(found[n])
        interior[slices(patch.range)] |= np.int32(bits)
    return found
