"""The explicit filter behind time steps: what it does to waves, to uniform flow, near faces; cuts, ranks, restart."""

import numpy as np
import pytest
from kernels_alone import HALO, PLACE, POINTS, SHAPE, SIZE, SMALL, STRIDES, inside, program, random, states
from ranks import run_ranks
from same_everywhere import same_everywhere
from watched_runs import P, pulse, tables
from wholes import whole

from hiresx import Case, HiresxError, Simulation
from hiresx.decomposition import decompose, domain
from hiresx.device import backend as device
from hiresx.estimate import memory_bytes
from hiresx.grid import build
from hiresx.rhs import spatial_filter
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference, random_parts, turn_blocks

BACKENDS = ["cpu", "emulated"]
# Gaitonde & Visbal 2000, Table 1 with alpha_f = 0: a_0, a_1, ... of the filtered value, (a_n/2) (q[n] + q[-n]).
PUBLISHED = {
    2: (1 / 2, 1 / 2),
    4: (5 / 8, 1 / 2, -1 / 8),
    6: (11 / 16, 15 / 32, -3 / 16, 1 / 32),
    8: (93 / 128, 7 / 16, -7 / 32, 1 / 16, -1 / 128),
    10: (193 / 256, 105 / 256, -15 / 64, 45 / 512, -5 / 256, 1 / 512),
}


def published(order, phase):
    return sum(a * np.cos(n * phase) for n, a in enumerate(PUBLISHED[order]))


def box(n, order=6, strength=0.3, every=1, **changes):
    periodic = tuple("xyz"[: sum(m > 1 for m in n)])
    changes = {"filter": {"order": order, "strength": strength, "every": every}} | changes
    return Case.from_dict(tables(n, tuple(1.0 * (m > 1) for m in n), periodic=periodic, **changes))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("order", [6, *(pytest.param(order, marks=pytest.mark.slow) for order in (8, 10))])
def test_waves_are_multiplied_with_the_published_function(backend, order):
    """Of every phase up to that of the shortest wave, along i and along j, in a step that is too short for the flow."""
    nodes, size = 24, 1e-3
    for n, axis in (((nodes, 12, 1), 2), ((12, nodes, 1), 1)):
        solver = Solver(box(n, order, time={"steps": 1, "dt": 1e-13}), device(backend))
        shape = [1, 1, 1]
        shape[axis] = nodes
        for waves in range(1, nodes // 2 + 1):
            phase = 2 * np.pi * waves / nodes
            wave = np.cos(phase * np.arange(nodes)).reshape(shape)
            solver.set_state(0, 1 + size * wave, 0.0, 0.0, 0.0, P)
            solver.complete_state()
            solver.step()
            left = (solver.primitives(0)["rho"] - 1) / size
            wanted = 1 - 0.3 * (1 - published(order, phase))
            np.testing.assert_allclose(left, np.broadcast_to(wanted * wave, left.shape), rtol=0, atol=1e-9)
            assert wanted == pytest.approx(1 - 0.3 * np.sin(phase / 2) ** order, abs=1e-12)


@pytest.mark.parametrize("backend", [pytest.param("cpu", marks=pytest.mark.slow), "emulated"])
def test_the_kernel_is_that_of_the_weights(backend):
    """In three directions, of any order that the ghosts hold; where nothing is filtered a NaN is not looked at."""
    _, q = states()
    reach = random(3).integers(0, HALO + 1, (3, *SHAPE)).astype(float)
    reach[:, HALO + 2, HALO + 1, HALO + 1], q[1, HALO + 2, HALO + 1, HALO] = 0.0, np.nan
    wanted = np.zeros_like(q)
    for d in range(3):
        for m in range(1, HALO + 1):
            filtered = PUBLISHED[2 * m][0] * q
            for n, a in enumerate(PUBLISHED[2 * m][1:], 1):
                filtered += 0.5 * a * (np.roll(q, n, 3 - d) + np.roll(q, -n, 3 - d))
            wanted += np.where(reach[d] == m, 0.2 * (filtered - q), 0.0)
    change = np.zeros_like(q)
    kernels = program(backend, SMALL)
    along = dict(zip(("di", "dj", "dk"), STRIDES, strict=True))
    kernels.launch("filter_change", SIZE, **PLACE, **along, sv=POINTS, q=q, reach=reach, strength=0.2, change=change)
    np.testing.assert_allclose(inside(change), inside(wanted), rtol=0, atol=1e-13)
    assert np.isfinite(inside(change)[1, 2, 1, 1])
    before = q.copy()
    kernels.launch("add_filter_change", SIZE, **PLACE, sv=POINTS, change=change, q=q)
    np.testing.assert_array_equal(inside(q), inside(before + change))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_sensor_takes_of_both_fluxes_of_a_node(backend):
    """1 - s, s the largest of the nodes that the flux at a half point reads. Where there is no shock the filter is the
    one without a sensor; a uniform flow is not changed."""
    _, q = states()
    rng, kernels = random(3), program(backend, SMALL)
    reach = rng.integers(0, HALO + 1, (3, *SHAPE)).astype(float)
    sensor = rng.uniform(0, 1, SHAPE) * (rng.uniform(size=SHAPE) < 0.2)
    along = PLACE | dict(zip(("di", "dj", "dk"), STRIDES, strict=True)) | {"sv": POINTS, "reach": reach}

    def changed(q, kernel="filter_change_with_sensor", **given):
        change = np.zeros_like(q)
        kernels.launch(kernel, SIZE, **along, q=q, strength=0.2, change=change, **given)
        return inside(change)

    wanted = np.zeros_like(q)
    for d in range(3):
        for m in range(1, HALO + 1):
            at = [np.roll(q, -n, 3 - d) for n in range(1 - m, m + 1)]
            shock = np.max([np.roll(sensor, -n, 2 - d) for n in range(1 - m, m + 1)], axis=0)
            flux = (1 - shock) * np.diff(at, 2 * m - 1, axis=0)[0] / (-4) ** m
            wanted -= np.where(reach[d] == m, 0.2 * (flux - np.roll(flux, 1, 3 - d)), 0.0)
    np.testing.assert_allclose(changed(q, sensor=sensor), inside(wanted), rtol=0, atol=1e-13)
    plain = changed(q, "filter_change")
    np.testing.assert_allclose(changed(q, sensor=np.zeros(SHAPE)), plain, rtol=0, atol=1e-13)
    assert not changed(q, sensor=np.ones(SHAPE)).any() and abs(plain).max() > 0.01
    assert not changed(np.ones_like(q), sensor=sensor).any()


def blast(where="cpu", comm=None, plan=None, out=None, n=(40, 36, 1), rise=1e3):
    """A pressure jump in a periodic box, by the hybrid form."""

    def flow(x, y, z):
        inside = np.hypot(x - 0.45, y - 0.55) < 0.2
        return 1 + 0.1 * np.cos(2 * np.pi * x), 0.1 + 0 * x, 0.2 + 0 * x, 0 * x, P * np.where(inside, rise, 1.0)

    plan = {"plan": plan} if plan else {}
    case = box(n, scheme={"inviscid": "hybrid"}, time={"steps": 12, "cfl": 0.5}, **plan)
    return Simulation(case, where, comm=comm, initial=flow, out=out)


def test_a_blast_lives_and_sums_stay():
    """Beside a jump by a factor of 1000 a filter without the sensor takes the pressure below zero at the first step."""
    run = blast()
    (before,) = (array.sum(axis=(1, 2, 3)) for array in whole(run.solver))
    run.run(progress=False)
    (state,) = whole(run.solver)
    assert run.blocks[0].state("p").min() > 0.5 * P
    np.testing.assert_allclose(state.sum(axis=(1, 2, 3)), before, rtol=1e-13, atol=1e-10)


def on_two_ranks(comm):
    run = blast(comm=comm, rise=3.0)
    run.run(progress=False)
    return whole(run.solver)


@pytest.mark.slow
def test_beside_shocks_it_is_the_same_everywhere(tmp_path):
    def make(**given):
        return blast(rise=3.0, **given)

    same_everywhere(make, on_two_ranks, tmp_path / "run", 5, plans=("decomposed",))


def test_the_order_falls_towards_faces():
    """By two a node, along the lines of the face alone; its own nodes are left to the condition. Before walls there
    is none of lower order."""
    boundary = [
        {"faces": ["jmin"], "type": "slip-wall", "range": {"i": [0, 5]}},
        {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "range": {"i": [7, "end"]}},
        {"faces": ["jmin", "jmax"], "type": "supersonic-outflow", "range": {"i": [5, 7]}},
        {"faces": ["imin", "imax"], "type": "periodic"},
        {"faces": "all", "type": "slip-wall"},
    ]
    flow = {"boundary": boundary, "filter": {"order": 6}, "gas": {"reynolds": 100.0}}
    case = Case.from_dict(tables((9, 11, 1), periodic=("x",), **flow))
    state = Solver(case, device("cpu")).states[0]
    along_i, along_j, along_k = spatial_filter.reaches(state, decompose(case, build(case.grid, None)).patches, 3)
    np.testing.assert_array_equal(along_j[0, :, 6], [0, 1, 2, 3, 3, 3, 3, 3, 2, 1, 0])
    for i in (3, 8):
        np.testing.assert_array_equal(along_j[0, :, i], [0, 0, 0, 3, 3, 3, 3, 3, 0, 0, 0])
    np.testing.assert_array_equal(along_i[0, 5], np.full(9, 3))
    assert not along_i[0, 0].any() and not along_k.any() and not along_i[0, -1].any()


def test_the_friction_of_walls_stays():
    """Of laminar flow between plates that a body force drives: it was 8 % less with the filter."""
    grid = {"generator": "box", "n": [12, 17, 1], "lower": [0, -1, 0], "upper": [1, 1, 0], "periodic": ["x"]}
    along = {"faces": ["imin", "imax"], "type": "periodic"}
    flow = {
        "grid": grid,
        "gas": {"reynolds": 20.0},
        "boundary": [along, {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0}],
        "body_force": {"acceleration": [0.015, 0.0, 0.0]},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "time": {"end": 5.0, "cfl": 0.6},
    }
    found = []
    for filtered in ({}, {"filter": {"order": 6, "strength": 0.1}}):
        run = Simulation(
            Case.from_dict(flow | filtered), "cpu", initial=lambda x, y, z: (1 + 0 * x, 0.15 * (1 - y * y), 0, 0, P)
        )
        run.run(progress=False)
        found.append(run.blocks[0].state("u")[0, 1, 0])
    assert found[1] == pytest.approx(found[0], rel=1e-4)


@pytest.mark.slow
def test_gas_under_gravity_between_slip_walls_keeps_its_mass():
    """With orders that fall before the walls it grew by 1.4e-3."""
    grid = {"generator": "box", "n": [12, 17, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x"]}
    along = {"faces": ["imin", "imax"], "type": "periodic"}
    flow = {
        "grid": grid,
        "boundary": [along, {"faces": ["jmin", "jmax"], "type": "slip-wall"}],
        "body_force": {"acceleration": [0.0, -0.5, 0.0]},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "filter": {"order": 8},
        "time": {"end": 5.0, "cfl": 0.6},
    }

    def layer(x, y, z):
        rho = np.exp(-0.7 * y)
        return rho, 0, 0, 0, rho * P

    run = Simulation(Case.from_dict(flow), "cpu", initial=layer)
    rho = run.blocks[0].state("rho")[0]
    run.run(progress=False)
    weights = np.where(np.isin(np.arange(17), (0, 16)), 0.5, 1.0)[:, None]
    kept = (run.blocks[0].state("rho")[0] * weights).sum() / (rho * weights).sum()
    assert kept == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_uniform_flow_is_what_it_is_without(backend):
    """On a wavy grid between walls that move with it, to the last bit."""
    walls = [{"faces": ["imin", "imax"], "type": "periodic"}, {"faces": ["jmin", "jmax"], "type": "slip-wall"}]
    ends = []
    for filtered in ({}, {"filter": {"strength": 0.5, "order": 6}}):
        case = Case.from_dict(
            tables(
                (16, 13, 1), (1.0, 1.0, 0.0), 0.03, ("x",), boundary=walls, time={"steps": 3, "dt": 0.01}, **filtered
            )
        )
        solver = Solver(case, device(backend))
        solver.set_state(0, 1.0, 0.3, 0.0, 0.1, P)
        solver.complete_state()
        solver.step()
        ends.append(solver.primitives(0))
    for name, values in ends[0].items():
        # the step itself leaves round-off, which the filter sees
        np.testing.assert_allclose(ends[1][name], values, rtol=0, atol=1e-15, err_msg=name)


def rough(x, y, z):
    rho, u, v, w, p = pulse(x, y, z)
    return rho, u + 0.05 * np.cos(40 * x + 31 * y + 23 * z), v, w, p


BETWEEN_WALLS = {"time": {"steps": 5, "dt": 0.004}, "filter": {"order": 6, "strength": 0.3, "every": 2}}


def advanced(case, where="cpu", **arguments):
    solver = Solver(case, device(where), **arguments)
    solver.initialize(rough)
    for _ in range(case.time.steps):
        solver.step()
    return solver


def put_together(solver, size=(25, 13, 9)):
    """The state (5, nk, nj, ni) of the one block of which the parts of a solver are."""
    whole = np.zeros((5, *reversed(size)))
    for state in solver.states:
        whole[(slice(None), *state.part.slices)] = state.interior(solver.backend.to_host(state.q))
    return whole


@pytest.mark.parametrize("where", BACKENDS)
def test_cuts_change_nothing(where):
    """The filter by itself not a bit; a run is changed by them in its last ones, with or without it."""
    case = Case.from_dict(tables((25, 13, 9), (2.0, 1.0, 1.0), 0.03, ("z",), **BETWEEN_WALLS))
    filtered, ends = [], []
    for parts in (1, 2, 4):
        chance = np.random.default_rng(parts)
        cut = domain(case, parts=lambda whole, n=parts, chance=chance: random_parts(whole, n, chance))
        solver = Solver(case, device(where), domain=cut)
        solver.initialize(rough)
        before = put_together(solver)
        calls = spatial_filter.filter_calls(case, solver.backend, solver.program, solver.states, solver.cut.patches)
        solver.program.prepare(calls)()
        filtered.append(put_together(solver))
        ends.append(put_together(advanced(case, where, domain=cut)))
    assert abs(filtered[0] - before).max() > 1e-3
    for found, end in zip(filtered[1:], ends[1:], strict=True):
        np.testing.assert_array_equal(found, filtered[0])
        np.testing.assert_allclose(end, ends[0], rtol=0, atol=1e-13)
    without = Case.from_dict({**case.model_dump(mode="json", exclude_none=True), "filter": None})
    assert abs(put_together(advanced(without, where)) - ends[0]).max() > 1e-3


def test_turned_blocks_are_filtered_alike():
    case = Case.from_dict(tables((25, 17, 1), (2.0, 1.0, 0.0), 0.03, ("x",), **BETWEEN_WALLS))
    whole = decompose(case, build(case.grid, None))
    turned = turn_blocks(case, whole, 4, np.random.default_rng(1))
    one = advanced(case)
    several = advanced(turned.case, grid=turned.grid)
    wanted = one.states[0].interior(one.states[0].q)
    found = turned.wholes([state.interior(state.q) for state in several.states])
    assert difference(found, [wanted]) < 1e-13


def on_ranks(comm, case):
    simulation = Simulation(case, backend="cpu", comm=comm, initial=rough)
    simulation.run(progress=False)
    return [(b.first, b.state("u")) for b in simulation.blocks]


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 2])
def test_ranks_see_the_same(every):
    changes = BETWEEN_WALLS | {"filter": {"order": 6, "strength": 0.3, "every": every}}
    case = Case.from_dict(tables((25, 13, 9), (2.0, 1.0, 1.0), 0.03, ("z",), **changes))
    alone = Simulation(case, backend="cpu", initial=rough)
    alone.run(progress=False)
    whole = alone.blocks[0].state("u")
    for blocks in run_ranks(2, on_ranks, case):
        for (i, j, k), u in blocks:
            nk, nj, ni = u.shape
            np.testing.assert_allclose(u, whole[k : k + nk, j : j + nj, i : i + ni], rtol=0, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_restart_goes_on_with_the_same_steps(backend, tmp_path):
    """Filtered behind the steps 2 and 4, and not behind the first one of the second run."""
    changes = BETWEEN_WALLS | {"checkpoint": {"every_steps": 3}}
    case = Case.from_dict(tables((16, 12, 1), (2.0, 1.0, 0.0), 0.0, ("x",), **changes))
    ends = []
    for steps in ((5,), (3, 5)):
        folder, restart = tmp_path / str(len(steps)), None
        for n, last in enumerate(steps):
            out = folder if n == 0 else None
            simulation = Simulation(case, backend=backend, initial=rough, out=out, restart=restart)
            simulation.run(steps=last - simulation.step_count, progress=False)
            restart = folder
        ends.append(simulation.blocks[0].state("u"))
    np.testing.assert_array_equal(ends[0], ends[1])


def test_it_comes_behind_every_so_many_steps_and_is_planned_for():
    changes = BETWEEN_WALLS | {"filter": {"order": 6, "strength": 0.3, "every": 3}}
    case = Case.from_dict(tables((16, 12, 1), (2.0, 1.0, 0.0), 0.0, ("x",), **changes))
    solvers = [Solver(c, device("cpu")) for c in (case, case.model_copy(update={"filter": None}))]
    for solver in solvers:
        solver.initialize(rough)
    for step in range(1, 7):
        for solver in solvers:
            solver.step()
        filtered, plain = (solver.primitives(0) for solver in solvers)
        assert np.array_equal(filtered["u"], plain["u"]) == (step < 3), step
    planned = memory_bytes(case, solvers[0].grid.blocks, "cpu", solvers[0].plan)
    assert 0 <= solvers[0].bytes - planned <= 8 and solvers[0].bytes > solvers[1].bytes


def test_what_cannot_be_filtered_is_refused():
    with pytest.raises(HiresxError, match=r"filter.strength = 0.6 along 2 directions takes more away") as error:
        Solver(box((12, 12, 1), strength=0.6), device("cpu"))
    assert "0.5 at most" in error.value.hint
    with pytest.raises(HiresxError, match=r"8 nodes along i; .* and filter.order = 8, with 4 ghost layers, 9 or more"):
        Solver(box((8, 12, 1), 8), device("cpu"))
    with pytest.raises(HiresxError, match=r"filter.order"):
        box((12, 12, 1), 7)
