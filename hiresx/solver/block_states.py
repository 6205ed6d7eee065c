"""The local blocks: the parts of the grid that this rank computes, with their fields on its device."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.kept import Kept, Results
from hiresx.base.threads import lines_of, map_ahead, planes
from hiresx.case import Case
from hiresx.decomposition import Domain
from hiresx.decomposition.held_arrays import LazyArray, Piece
from hiresx.decomposition.levels import Tile, part_on_level
from hiresx.decomposition.oblique_walls import mirroring_planes
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition
from hiresx.decomposition.prescribed_vectors import check_turned_flow
from hiresx.device.configuration import Configuration
from hiresx.device.fields import Layout
from hiresx.device.interface import Backend, Program
from hiresx.device.state import BlockState
from hiresx.equations.gas import Gas, LazyPrimitives, alive, conservative
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, face_range, slices, whole_box
from hiresx.grid.patched import PATCHED
from hiresx.rhs import grid_spacings, wall_distance
from hiresx.rhs.metrics import check_volumes, clear_inactive_areas, compute_in_box, repeat_faces
from hiresx.rhs.pole import set_pole_metrics
from hiresx.rhs.repeated import repeat_at_faces
from hiresx.rhs.terms import viscous_damping
from hiresx.solver.case_configuration import check_reference, check_stress, configuration
from hiresx.solver.held_blocks import HeldBlock, copy_metrics, shared_nodes
from hiresx.solver.initial_flow import INITIAL, Flow

# Number of bytes of an array of a block that is filled in one piece.
AT_ONCE = 1 << 20

# Fraction of the free memory of a device that the coordinates of a whole level may take there.
RESIDENT = 0.1

# Planes k and lines j of a block.
Lines: TypeAlias = tuple[slice, slice]


class Reused(NamedTuple):
    """Data that a solver uses again from an earlier solver of the same case. `configuration`, `program`: its kernels.
    `states`: the states of its blocks on levels of refinement, by their nodes. The new solver uses a state, with its
    metrics, if it has a block with the same nodes. `kept`: cached results that depend only on these states, or on
    blocks of the grid that the new solver has, too. `held`: arrays of all blocks on levels, from which the arrays of
    new blocks are copied."""

    configuration: Configuration
    program: Program
    states: Mapping[Tile, BlockState] = {}
    kept: Results = MappingProxyType({})
    held: Sequence[HeldBlock] = ()

    @property
    def bytes(self) -> int:
        """Number of bytes of the arrays of the block states that may be used again."""
        return sum(state.bytes for state in self.states.values())


def nodes_of(whole: Decomposition, part: Part) -> Tile | None:
    """Return which nodes of its level of grid refinement the subdivision `part` of a block has, as half-open index
    ranges (i, j, k) on this level; None in a run without levels. `whole`: the blocks of the grid and its levels."""
    return None if whole.levels is None else part_on_level(whole.levels, part)


class LocalBlocks:
    """Kernels, fields and metrics of the blocks of this rank in the divided grid `domain`. `states`: the state of each
    block. `place[index]`: the position in `states` of the block with the number `index` among the blocks of all ranks.
    `extended`: coordinates with ghost nodes, by index. `layout`: the fields of the blocks. `flow`: the initial state of
    the nodes, or None. `reused`: data of a previous solver, which are used if their configuration is that of the case.
    `kept`: results that the next solver can use as well.

    Collective. Raises the errors of `hiresx.solver.Solver`."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        domain: Domain,
        layout: Layout,
        flow: Flow | None = None,
        reused: Reused | None = None,
    ):
        self.backend, self.comm, self.gas = backend, domain.comm, Gas.of(case)
        self.decomposition, self.cut = domain.whole, domain.cut
        self.configuration = configuration(case)
        check_reference(self.configuration, self.cut)
        check_stress(self.configuration, self.cut)
        self.layout, self.equations = layout, layout.equations
        names = [block.name for block in domain.grid.blocks]
        if reused is not None and reused.configuration != self.configuration:
            reused = None
        there = {} if reused is None else reused.states
        before = [there.get(nodes) for n in domain.mine if (nodes := nodes_of(self.decomposition, self.cut.parts[n]))]
        before = before or [None] * len(domain.mine)
        self.kept = Kept(None if reused is None else reused.kept)
        with self.comm.together():
            self.states = []
            common: dict[str, tuple[Any, ...]] = {}  # one array for all blocks
            for n, old in zip(domain.mine, before, strict=True):
                name = names[self.cut.parts[n].whole]
                if old is None:
                    old = BlockState(backend, self.cut, n, name, layout, self.configuration.reference, common)
                else:
                    old.renumber(self.cut, n, name)
                    old.fields |= common
                self.states.append(old)
                for name in ("kept_acceleration", *([] if layout.local_steps else ["dt"])):
                    common[name] = old.fields[name]
            # Needs all cores but no kernels, so that it runs while the compiler uses one core.
            if flow is not None:
                self.evaluate(flow)
        compiling = time.monotonic()
        self.program = self.compile_kernels(self.configuration) if reused is None else reused.program
        self.compile_s = time.monotonic() - compiling
        with self.comm.together():
            self.extended = {s.index: domain.coordinates(s.part) for s in self.states}
            fresh = [state for state, old in zip(self.states, before, strict=True) if old is None]
            poles = [patch for patch in self.cut.patches if patch.condition.kernel == "pole"]
            new = [nodes for state in fresh if (nodes := nodes_of(self.decomposition, state.part)) is not None]
            shared = shared_nodes(() if reused is None else reused.held, new) or [[] for _ in fresh]
            for n, (state, held) in enumerate(zip(fresh, shared, strict=True)):
                _fill_coordinates(backend, state)
                clear_inactive_areas(state)
                boxes = copy_metrics(backend, held, state, new[n]) if held else [whole_box(state.size)]
                coordinates = self._coordinates(domain, state)
                for box in boxes:
                    compute_in_box(self.program, state, coordinates, box)
                set_pole_metrics(backend, state, poles)
            check_volumes(backend, self.program, fresh)
            joined: dict[int, set[tuple[str, Range]]] = {}
            for c in self.cut.connections:
                joined.setdefault(c.block, set()).add((c.face, c.range))
            for state in self.states:
                # The ghosts that are not those of connections; of a block that stays these may be others now.
                if state.joined != joined.get(state.index, set()):
                    repeat_faces(self.program, state)
                    state.joined = joined.get(state.index, set())
            if layout.has("damping_reach") or layout.has("transported_reach"):
                planes = mirroring_planes(self.decomposition)
                patches = [patch for patch in self.cut.patches if patch.place in planes]
                for s in self.states:
                    self.program.prepare([[*repeat_at_faces(self.program, s, "jacobian", patches, planes)]])()
                    viscous_damping.fill(backend, s, self.decomposition, planes, case.implicit.damping_at_walls)
            if layout.has(wall_distance.FIELD):
                wall_distance.check(case, self.decomposition)
                grid_spacings.check(case, self.decomposition)
                walls = wall_distance.WallSearch(backend, self.program, self.decomposition)
                for s in self.states:
                    walls(np.stack([s.block.x, s.block.y, s.block.z]), s.array(wall_distance.FIELD), s.place)
                    grid_spacings.fill(backend, s, self.extended[s.index], walls)
        self.place = {state.index: n for n, state in enumerate(self.states)}

    def _coordinates(self, domain: Domain, state: BlockState) -> tuple[Any, Any, Any]:
        """Return the coordinates of a block with ghosts on the device. Those of a whole level stay there if they are
        few, because changes of tiles need parts of them again and again."""
        tile, levels = nodes_of(self.decomposition, state.part), domain.hierarchy
        if tile is not None and tile.level and levels is not None:
            key = self.backend, tile.level, tile.base
            if key not in levels.on_device:
                nodes, free = levels.nodes[tile.level][tile.base], self.backend.free_memory()
                few = free is None or sum(c.nbytes for c in nodes) <= RESIDENT * free
                levels.on_device[key] = triple(map(self.backend.mirror, nodes)) if few else None
            if (whole := levels.on_device[key]) is not None:
                box = slices(triple((lo, hi + 2 * domain.halo) for lo, hi in tile.box))
                return triple(c[box] for c in whole)
        return triple(map(self.backend.mirror, self.extended[state.index]))

    def reusable(self, domain: Domain) -> Reused:
        """Return the data of these blocks that the next solver, on the geometry `domain`, can use again: the kernels,
        the states of blocks with the same nodes, and arrays to copy from."""
        wanted = {nodes_of(domain.whole, domain.cut.parts[n]): n for n in domain.mine}
        own = {nodes: s for s in self.states if (nodes := nodes_of(self.decomposition, s.part)) is not None}
        kept = {nodes: state for nodes, state in own.items() if nodes in wanted}
        # To copy metrics saves time on a CPU. A GPU computes them faster than its host launches the copies.
        copies = self.backend.free_memory() is None
        held = [HeldBlock.of(state, nodes, copies) for nodes, state in own.items()]
        results = self.kept.with_all_of({domain.whole, *kept.values()})
        return Reused(self.configuration, self.program, kept, results, held)

    def compile_kernels(self, chosen: Configuration) -> Program:
        """Return the compiled kernels of the configuration `chosen`. One rank of each host compiles them; the others
        then find them in the cache. All ranks must call this."""
        program: Program | None = None
        for turn in (True, False):
            with self.comm.together():
                if self.comm.local.root == turn:
                    program = self.backend.compile(chosen)
        assert program is not None  # compiled in one of the rounds
        return program

    def set_state(
        self, n: int, rho: Any, u: Any, v: Any, w: Any, p: Any, scalars: Mapping[str, Any] | None = None
    ) -> None:
        """Set the state at the nodes of block number `n` of this rank. `rho`, `u`, `v`, `w` and `p`: density,
        velocities and pressure in the scales of the case, numbers or arrays that broadcast to (nk, nj, ni). Passive
        scalars that `scalars` omits keep their values. Raises HiresxError for another n."""
        if not isinstance(n, int | np.integer) or not -len(self.states) <= n < len(self.states):
            there = ", ".join(f"{m} is '{state.name}'" for m, state in enumerate(self.states))
            raise HiresxError(f"set_state: {n!r} is not the number of a block of this rank", f"block {there}")
        shape, scalars = self.states[n].block.x.shape, scalars or {}
        kept = self.primitives(n) if any(name not in scalars for name in self.gas.scalars) else {}
        carried = [scalars.get(name, kept.get(name)) for name in self.gas.scalars]
        values = [np.broadcast_to(np.asarray(a, float), shape) for a in (rho, u, v, w, p, *carried)]
        self._set(self.states[n], lambda at: conservative(self.gas.gamma, *(a[at] for a in values)))

    def evaluate(self, flow: Flow) -> None:
        """Set the state at the nodes of all blocks of this rank to the state that the function `flow` returns at their
        coordinates. For many nodes it is called for ranges of planes k, in several threads. Raises HiresxError if a
        rotational period turns the velocity of the flow."""
        check_turned_flow(self.decomposition, INITIAL, lambda x, y, z: flow(x, y, z)[0])
        for state in self.states:
            self._set(state, partial(self._evaluate_piece, state.block, flow))

    def _evaluate_piece(self, block: Block, flow: Flow, at: Lines) -> Sequence[np.ndarray]:
        x, y, z = (np.ascontiguousarray(c[at]) for c in (block.x, block.y, block.z))
        gas, scalars = flow(x, y, z)
        carried = [scalars[name] for name in self.gas.scalars]
        return conservative(self.gas.gamma, *(np.broadcast_to(np.asarray(a, float), x.shape) for a in (*gas, *carried)))

    def primitives(self, n: int) -> dict[str, np.ndarray]:
        """Return rho, u, v, w, p and the passive scalars of block number `n` of this rank by name, float64 (nk, nj,
        ni)."""
        return dict(self.lazy_primitives(n))

    def lazy_primitives(self, n: int) -> LazyPrimitives:
        """Return the primitive variables of block number `n` of this rank as `primitives` does, but copy each conserved
        variable from the device only when a primitive variable that needs it is first read. All must be read before the
        state changes."""
        return LazyPrimitives(self.gas.gamma, partial(self._conserved, self.states[n]), self.gas.scalars)

    def _conserved(self, state: BlockState, n: int) -> np.ndarray:
        """Return conserved variable number `n` of a block, float64 (nk, nj, ni)."""
        rows = slice(n, n + 1)
        q = state.from_storage(self.host_values(state, state.q[rows]), rows)
        if state.carry is not None:
            q += self.host_values(state, state.carry[rows])
        return q[0]

    def pieces(self) -> Iterator[Piece]:
        """Yield the conservative variables of each block of this rank as a checkpoint stores them, as the array called
        `q.<number of the block in the grid>`: (n, nk, nj, ni) with n variables, in the scales of the case and the
        number type of the run. With the precision "differences" these are the differences from the reference state, and
        their rounding errors are also yielded, as `carry.<number of the block in the grid>` in the same shape."""
        for state in self.states:
            for name, array in state.restarting.items():
                piece = LazyArray(
                    (len(array), *reversed(state.size)), array.dtype, partial(self.host_values, state, array)
                )
                yield Piece(f"{name}.{state.part.whole}", state.part.box, piece)

    def read(self, read: Callable[[str, Range], np.ndarray]) -> list[dict[str, np.ndarray]]:
        """Return, for each block of this rank, its arrays of a checkpoint by name, which the method `take` puts into
        the block. `read(name, box)`: returns the nodes in the half-open index ranges `box` (i, j, k) of the array
        `name`. Raises ValueError for an array of another shape or type."""
        found = []
        for state in self.states:
            arrays = {name: read(f"{name}.{state.part.whole}", state.part.box) for name in state.restarting}
            for name, values in arrays.items():
                wanted = state.array(name)
                shape = (len(wanted), *reversed(state.size))
                if values.shape != shape or values.dtype != wanted.dtype:
                    raise ValueError(f"{name} is {values.dtype} {values.shape}, not {wanted.dtype} {shape}")
            found.append(arrays)
        return found

    def take(self, found: Sequence[dict[str, np.ndarray]]) -> None:
        """Set the states of the blocks of this rank to the arrays `found` of a checkpoint, the result of the method
        `read`."""
        for state, arrays in zip(self.states, found, strict=True):
            ni, nj, nk = state.size
            for name, array in state.restarting.items():
                for k in planes(nk, ni * nj):
                    values = np.ascontiguousarray(arrays[name][:, k])
                    self.backend.copy(state.interior(array)[:, k], self.backend.to_device(values))

    def copy_at_conditions(self) -> Callable[[], None]:
        """Copy the state at the nodes of all faces with a boundary condition, on the device, and return a function that
        sets the nodes to these values again."""
        faces = {(p.block, p.face) for p in self.cut.patches if p.condition.type != PATCHED and p.block in self.place}
        copies = []
        for index, face in sorted(faces):
            state = self.states[self.place[index]]
            for array in state.restarting.values():
                nodes = state.interior(array)[(..., *slices(face_range(face, state.size)))]
                copies.append((nodes, self.backend.empty(nodes.shape, nodes.dtype.name)))
                self.backend.copy(copies[-1][1], nodes)

        def put_back() -> None:
            for nodes, copy in copies:
                self.backend.copy(nodes, copy)

        return put_back

    def alive_before(self) -> bool:
        """Return whether density and pressure at the start of the last step are positive at all nodes."""
        starts = ((state, state.interior(self.backend.to_host(state.q0))) for state in self.states)
        return all(alive(state.from_storage(q0) if state.storage.carries else q0) for state, q0 in starts)

    def keep_start(self) -> None:
        """Copy the entropic pressure, if there is one, at the start of a step, so that the method `back` can undo the
        step. The integrator stores the conserved variables (the array `q0`)."""
        for state in self.states if self.layout.has("entropic_start") else ():
            if (entropic := _entropic(state)) is not None:
                self.backend.copy(state.array("entropic_start"), entropic)

    def back(self) -> None:
        """Undo the last step: restore the state at its start. Stored rounding errors are set to zero."""
        for state in self.states:
            self.backend.copy(state.interior(state.q), state.interior(state.q0))
            if (entropic := _entropic(state)) is not None:
                self.backend.copy(entropic, state.array("entropic_start"))
            if state.carry is not None:
                state.carry[:] = 0

    def host_values(self, state: BlockState, array: Any) -> np.ndarray:
        """Return the values of `array`, an array of the block `state`, at the nodes without ghost layers, as a host
        array (..., nk, nj, ni)."""
        return np.ascontiguousarray(state.interior(self.backend.to_host(array)))

    def _set(self, state: BlockState, values: Callable[[Lines], Any]) -> None:
        """Set the nodes from their conservative values, piece by piece. The entropic pressure is set to zero."""
        if (entropic := _entropic(state)) is not None:
            entropic[:] = 0
        if state.carry is None:
            self._fill(state, state.q, values)
            return
        for n, array in enumerate((state.q, state.carry)):
            self._fill(state, array, partial(_in_storage, state, values, n))

    def _fill(self, state: BlockState, array: Any, values: Callable[[Lines], Any]) -> None:
        """Set the nodes of an array from pieces (k, j) of slabs of planes k. The next slab is evaluated while the last
        one is copied to the device."""
        inner, (ni, nj, nk) = state.interior(array), state.size
        if inner.nbytes <= AT_ONCE:
            found = np.stack(list(values((slice(None), slice(None))))).astype(inner.dtype, copy=False)
            self.backend.copy(inner, self.backend.to_device(found))
            return
        # Memory of copied slabs is reused: new memory would cost as much as the values in it.
        done: list[np.ndarray] = []

        def fill_slab(rows: slice) -> tuple[slice, np.ndarray]:
            shape = (len(inner), rows.stop - rows.start, nj, ni)
            there = done.pop() if done else np.empty(shape, inner.dtype)
            to = there if there.shape == shape else np.empty(shape, inner.dtype)
            for lines in lines_of(nj, ni * shape[1]):
                for own, value in zip(to, values((rows, lines)), strict=True):
                    own[:, lines] = value
            return rows, to

        for rows, found in map_ahead(fill_slab, planes(nk, ni * nj)):
            self.backend.copy(inner[:, rows], self.backend.to_device(found))
            done.append(found)


def _fill_coordinates(backend: Backend, state: BlockState) -> None:
    """Set the field of coordinates, if the run has one."""
    held = state.array("coordinates")
    if held is not None:
        nodes = np.stack([state.block.x, state.block.y, state.block.z]).astype(state.real)
        backend.copy(state.interior(held), backend.to_device(nodes))


def _in_storage(state: BlockState, values: Callable[[Lines], Any], n: int, at: Lines) -> np.ndarray:
    """Return conservative values as q (n = 0) or `carry` (n = 1) stores them."""
    return state.to_storage(np.stack(values(at)))[n]


def _entropic(state: BlockState) -> Any:
    """Return the field of the entropic pressure; None if the fluxes do not use it."""
    return state.array("entropic_pressure")
