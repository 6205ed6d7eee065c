"""A change of tiles on the device: what is copied there, what is computed again, what passes through the host."""

from dataclasses import replace

import numpy as np
import pytest
from chosen_tiles import choose_tiles
from test_adapted_levels import adapted, spot, tiles

from hiresx import Simulation, load
from hiresx.decomposition.held_arrays import Piece
from hiresx.decomposition.parts import Part
from hiresx.decomposition.quadrature import face_weights
from hiresx.device.cpu import CpuBackend
from hiresx.device.native import NativeBackend
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import single_process
from hiresx.output.fields import field_output
from hiresx.output.fields.content import Content
from hiresx.output.watch.monitors import outflow_check
from hiresx.output.watch.watched_surface import WatchedSurface, mask
from hiresx.rhs import fused, metrics
from hiresx.simulation.blow_up_error import BlowUp
from hiresx.simulation.redistribution import fill
from hiresx.solver import Solver, block_states
from hiresx.solver import solver as solver_module


def moved_ball(monkeypatch, n, to=0.45, levels=1, backend="cpu"):
    """A simulation whose tiles lie around one place, and will lie around another one."""
    place = [0.3]

    def ball(table, flow, nodes, beyond):
        inner = tuple(slice(1, -1) if m > 1 else slice(None) for m in nodes[0].shape)
        away = sum((c[inner] - place[0]) ** 2 for c in nodes[: 2 + (n[2] > 1)])
        return (away < 0.03).astype(float)

    choose_tiles(monkeypatch, ball)
    amplitude = (0.04, 0.05, 0.0) if n[2] == 1 else (0.03, 0.04, 0.03)
    table = {"levels": levels, "margin": 0, "every": 1000}
    simulation = Simulation(adapted(n, 9, amplitude, table), initial=spot, backend=backend)
    place[0] = to
    return simulation


@pytest.mark.parametrize("n", [(40, 36, 1), (24, 20, 18)])
def test_metrics_of_nodes_that_were_there_are_copied_on_a_cpu(monkeypatch, n):
    simulation = moved_ball(monkeypatch, n)
    before, computed = set(tiles(simulation)), []
    of_box = metrics.compute_in_box

    def counted(program, state, coordinates, box):
        computed.append(np.prod([hi - lo for lo, hi in box]))
        of_box(program, state, coordinates, box)

    with monkeypatch.context() as given:
        given.setattr(block_states, "compute_in_box", counted)
        assert simulation.adapt()
    fresh = [s for s, tile in zip(simulation.solver.states, tiles(simulation), strict=True) if tile not in before]
    assert fresh and 0 < sum(computed) < sum(np.prod(state.size) for state in fresh)
    anew = Solver(simulation.case, simulation.backend, domain=simulation._ground)
    for one, other in zip(simulation.solver.states, anew.states, strict=True):
        assert np.array_equal(one.metrics, other.metrics) and np.array_equal(one.jacobian, other.jacobian)


@pytest.mark.parametrize("n", [(40, 36, 1), (24, 20, 18)])
@pytest.mark.parametrize("room", [True, False])
def test_metrics_of_new_blocks_are_those_of_a_solver_made_anew(monkeypatch, n, room):
    """On a device with its own memory, from coordinates of whole levels, or from those of single blocks where the
    levels are too large."""
    simulation = moved_ball(monkeypatch, n)
    before, hierarchy = set(tiles(simulation)), simulation._ground.hierarchy
    hierarchy.on_device.clear()
    level = sum(c.nbytes for c in hierarchy.nodes[1][0])
    free = int(0.8 * simulation.solver.bytes)  # enough for new blocks, not for all
    with monkeypatch.context() as given:
        given.setattr(NativeBackend, "free_memory", lambda self: free)
        given.setattr(block_states, "RESIDENT", (level + (0.5 if room else -0.5)) / free)
        assert simulation.adapt()
    assert [nodes is not None for nodes in hierarchy.on_device.values()] == [room]
    assert set(tiles(simulation)) - before
    anew = Solver(simulation.case, simulation.backend, domain=simulation._ground)
    for one, other in zip(simulation.solver.states, anew.states, strict=True):
        assert np.array_equal(one.metrics, other.metrics) and np.array_equal(one.jacobian, other.jacobian)


def test_metrics_from_coordinates_of_levels_are_those_from_the_coordinates_of_blocks(monkeypatch):
    """Up to rounding, since single blocks have other strides, and a compiler may then order sums otherwise."""
    simulation = moved_ball(monkeypatch, (24, 20, 18))
    simulation._ground.hierarchy.on_device.update(dict.fromkeys(simulation._ground.hierarchy.on_device))
    anew = Solver(simulation.case, simulation.backend, domain=simulation._ground)
    for one, other in zip(simulation.solver.states, anew.states, strict=True):
        assert np.allclose(one.metrics, other.metrics, rtol=0, atol=1e-13 * np.abs(other.metrics).max())


def test_the_jacobian_behind_faces_is_that_of_the_face(monkeypatch):
    simulation = moved_ball(monkeypatch, (24, 20, 18))
    (state,) = (s for s in simulation.solver.states if s.part.whole == 0)
    metrics.repeat_faces(simulation.solver.program, state)
    ni, nj, nk = (n + 2 * h for n, h in zip(state.size, state.halo, strict=True))
    behind = np.pad(state.interior(state.jacobian), [(h, h) for h in reversed(state.halo)], "edge")
    assert np.array_equal(state.jacobian[:nk, :nj, :ni], behind)


def test_tiles_do_not_change_in_an_invalid_flow(monkeypatch):
    simulation = moved_ball(monkeypatch, (40, 36, 1))
    solver = simulation.solver
    solver.states[0].q[0] = -1.0
    with pytest.raises(BlowUp):
        simulation.adapt()
    assert simulation.solver is solver


class _NaNMemory(CpuBackend):
    """A backend on which memory that nobody wrote shows, that of `zeros` too, as on a GPU under the sanitizers."""

    def zeros(self, shape, dtype="float64"):
        array = super().zeros(shape, dtype)
        if array.dtype.kind == "f":
            array[...] = np.nan
        return array


def test_areas_of_a_direction_with_one_node_are_set():
    solver = Solver(load("isentropic-vortex", overrides=["grid.n=[12,10,1]"]), _NaNMemory())
    (state,) = solver.states
    assert not state.areas[2].any() and state.interior(state.areas[0]).any()


def test_states_stay_on_the_device(monkeypatch):
    """No array of a state passes between host and device, and no values at new nodes."""
    simulation = moved_ball(monkeypatch, (64, 56, 1), 0.33)
    before, seen = set(tiles(simulation)), {"to_host": [], "to_device": []}
    for name, some in seen.items():
        original = getattr(NativeBackend, name)

        def counted(self, array, original=original, some=some):
            some.append(array)
            return original(self, array)

        monkeypatch.setattr(NativeBackend, name, counted)
    assert simulation.adapt() and set(tiles(simulation)) - before
    assert not any(len(a) == 5 and a.ndim == 4 for some in seen.values() for a in some)
    assert seen["to_device"]


def test_a_node_that_nobody_holds_keeps_its_value():
    held = [Piece("q.3", ((2, 6), (0, 4), (0, 1)), np.ones((5, 1, 4, 4)))]
    parts = [Part(3, ((0, 4), (1, 5), (0, 1)), 0), Part(2, ((2, 6), (0, 4), (0, 1)), 0), Part(3, held[0].box, 0)]
    into = {n: np.zeros((5, 1, 4, 4)) for n in (0, 1)}  # the last one keeps what it has
    fill(held, parts, into, single_process(), CpuBackend())
    assert into[0][:, 0, :3, 2:].all() and into[0].sum() == 30 and not into[1].any()


def test_blocks_that_stay_are_not_touched(monkeypatch):
    simulation = moved_ball(monkeypatch, (40, 36, 1))
    stay, copied, copy = simulation.solver.states[0], [], NativeBackend.copy
    state = stay.interior(stay.q).copy()
    monkeypatch.setattr(NativeBackend, "copy", lambda self, to, of: copied.append(to) or copy(self, to, of))
    assert simulation.adapt() and simulation.solver.states[0] is stay
    assert copied and not any(np.shares_memory(to, stay.q) for to in copied)
    assert np.array_equal(stay.interior(stay.q), state)


def test_nodes_of_new_tiles_have_the_flow_at_their_place(monkeypatch):
    simulation = moved_ball(monkeypatch, (64, 56, 1), levels=2)
    before = set(tiles(simulation))
    assert simulation.adapt()
    new = [b for b, tile in zip(simulation.blocks, tiles(simulation), strict=True) if tile not in before]
    assert len(new) > 3
    assert max(np.abs(b.state("rho") - spot(b.x, b.y, b.z)[0]).max() for b in new) < 0.003


def test_launches_of_blocks_that_stay_are_used_again(monkeypatch):
    simulation = moved_ball(monkeypatch, (64, 56, 1), levels=2)
    before = dict(zip(simulation.solver.states, simulation.solver.terms.inviscid, strict=True))
    made = []
    call = type(simulation.solver.program).call

    def counted(program, name, extent, /, **arguments):
        made.append(name)
        return call(program, name, extent, **arguments)

    monkeypatch.setattr(type(simulation.solver.program), "call", counted)
    assert simulation.adapt()
    now = dict(zip(simulation.solver.states, simulation.solver.terms.inviscid, strict=True))
    stay = before.keys() & now.keys()
    assert stay and len(stay) < len(now)
    assert all(now[state] is before[state] for state in stay)
    fresh = len(now) - len(stay)
    assert made.count("update") == 3 * fresh and made.count("inviscid_sweep") == 2 * fresh


@pytest.mark.parametrize(("limit", "again"), [(10**6, True), (70, False)])
def test_inviscid_launches_of_a_block_that_stays_are_used_again_if_its_lines_are_divided_alike(
    monkeypatch, limit, again
):
    """On a GPU the nodes of a segment depend on the number of lines of all blocks: 64 without tiles, more with them."""
    monkeypatch.setattr(fused, "line_chunk", lambda n, lines, itemsize: 4 if lines > limit else 8)
    simulation = moved_ball(monkeypatch, (64, 56, 1), to=9.0, backend="emulated")
    assert len(simulation.solver.states) > 1
    before = simulation.solver.terms.inviscid[0]
    assert simulation.adapt()
    [now] = simulation.solver.terms.inviscid
    assert (now is before) == again
    assert [call.arguments["chunk"] for call in now.early if call.name == "sweep_across"] == [8]


def test_nodes_of_outflows_are_kept_by_face_and_surroundings(monkeypatch):
    """Blocks of tiles of two sizes at outflows, some of which get other neighbours; then a tile away from outflows."""
    place = [0.1, 0.0]

    def corner(table, flow, nodes, beyond):
        x, y = nodes[0][:, 1:-1, 1:-1], nodes[1][:, 1:-1, 1:-1]
        inside = (np.abs(x - 0.5) < place[1]) & (np.abs(y - 0.5) < place[1])
        return ((x > 0.8) & (y > place[0]) & (y < 0.6) | (y > 0.8) & (x < 0.3) | inside).astype(float)

    choose_tiles(monkeypatch, corner)
    grid = {"generator": "box", "n": [40, 36, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0]}
    faces = [{"faces": "all", "type": "supersonic-outflow"}]
    table = {"levels": 1, "margin": 0, "every": 1000}
    simulation = Simulation(adapted(grid=grid, boundary=faces, refine=table, steps=9), initial=spot, backend="cpu")
    seen, surfaces = [], []
    for place[:] in ([0.1, 0.0], [0.4, 0.0], [0.4, 0.02]):
        changed = simulation.adapt()
        solver = simulation.solver
        patches = [p for p in solver.decomposition.patches if p.condition.type == "supersonic-outflow"]
        nodes = [outflow_check._face(solver, p, 0) for p in patches]
        for p, own in zip(patches, nodes, strict=True):
            inside = mask(solver.decomposition, p.block, p.face, p.range)
            assert np.array_equal(own.weights, face_weights(solver.decomposition, p.block, p.face) * inside)
        seen.append([own.weights for own in nodes])
        surface = WatchedSurface(solver, nodes, 1, viscous=False)
        plain = WatchedSurface(solver, [replace(own, key=None) for own in nodes], 1, viscous=False)
        for name in ("states", "places", "push", "sizes", "radii", "mirror"):
            assert np.array_equal(getattr(surface, name), getattr(plain, name))
        assert np.array_equal(surface.measure().p, plain.measure().p)
        surfaces.append(surface)
    assert changed
    again = [own for own in seen[1] if any(own is other for other in seen[0])]
    assert 0 < len(again) < len(seen[1])
    assert surfaces[2].push is surfaces[1].push is not surfaces[0].push


def test_a_change_that_fails_leaves_tiles_and_states_as_they_were(monkeypatch):
    """The new solver cannot be built once its blocks have their metrics."""
    simulation = moved_ball(monkeypatch, (40, 36, 1))
    simulation.step()
    before, states = tiles(simulation), [s.interior(s.q).copy() for s in simulation.solver.states]
    ghosts, failures = solver_module.Ghosts, [HiresxError("no memory", "take less")]

    def failing(*given):
        if failures:
            raise failures.pop()
        return ghosts(*given)

    monkeypatch.setattr(solver_module, "Ghosts", failing)
    with pytest.raises(HiresxError, match="no memory"):
        simulation.adapt()
    assert tiles(simulation) == before
    for state, q in zip(simulation.solver.states, states, strict=True):
        assert np.array_equal(state.interior(state.q), q)
    assert simulation.adapt() and tiles(simulation) != before


def test_what_is_written_is_laid_out_at_the_next_output_and_not_at_each_change(monkeypatch, tmp_path):
    made = []

    def counted(*given):
        made.append(given)
        return Content(*given)

    monkeypatch.setattr(field_output, "Content", counted)
    simulation = Simulation(
        adapted(steps=40, refine={"margin": 0, "levels": 1, "every": 4}, output={"every_steps": 40}), initial=spot,
        backend="cpu", out=tmp_path,
    )  # fmt: skip
    simulation.run(progress=False)
    assert simulation.adaptations.changes > 1 and len(made) == 2
    assert {path.name for path in tmp_path.glob("fields_0*.nc")} == {"fields_000000.nc", "fields_000040.nc"}


@pytest.mark.parametrize("changed", [False, True])
def test_ghosts_of_the_jacobian_of_a_block_that_stays_are_set_where_its_joins_have_changed(monkeypatch, changed):
    simulation = moved_ball(monkeypatch, (40, 36, 1))
    state = simulation.solver.states[0]
    state.jacobian[..., 0, 0] = np.nan  # a ghost beside two faces, which no connection fills
    if changed:
        state.joined = set()
    assert simulation.adapt() and simulation.solver.states[0] is state
    assert np.isnan(state.jacobian[..., 0, 0]).all() != changed
