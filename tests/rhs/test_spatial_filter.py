"""The explicit filter behind time steps: what it does to waves, to uniform flow, near faces; cuts, ranks, restart."""

from math import comb

import numpy as np
import pytest
from kernels_alone import HALO, PLACE, POINTS, SHAPE, SIZE, SMALL, STRIDES, inside, program
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


def differences(n, m, closed, share=None):
    """(delta^m)^T S delta^m / 4^m, a matrix of n nodes in a row that end at faces, or come again."""
    rows = n - m if closed else n
    delta = np.zeros((rows, n))
    for row in range(rows):
        for at in range(m + 1):
            delta[row, (row + at) % n] = (-1) ** at * comb(m, at)
    share = np.ones(rows) if share is None else share
    return delta.T @ (share[:, None] * delta) / 4**m


def line(backend, values, ends, kernel="filter_change", **given):
    """The change of variables (5, n) along k, of which nothing else depends, without strength."""
    n = values.shape[1]
    q = np.full((5, *SHAPE), np.nan)
    q[:, HALO : HALO + n] = values[:, :, None, None]
    reach = np.zeros((3, *SHAPE))
    reach[2, HALO : HALO + n] = ends[:, None, None]
    change = np.zeros_like(q)
    along = PLACE | {"di": 0, "dj": 0, "dk": STRIDES[2], "sv": POINTS, "half": HALO, "strength": 1.0}
    program(backend, SMALL).launch(kernel, SIZE, **along, q=q, reach=reach, change=change, **given)
    return inside(change)[:, :, 2, 3], inside(change)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_kernel_is_a_symmetric_form_between_faces(backend):
    """Between two faces, behind which there are NaN: energy falls, whatever the values, polynomials of degree m - 1
    stay, and nodes of which nothing is filtered stay as they are."""
    n, m = SIZE[2], HALO
    assert n == 8 and m == 3
    rng = np.random.default_rng(5)
    places = np.arange(n, dtype=float)
    ends = np.array([0, 1, 2, 3, 3, -2, -1, 0.0])
    form = differences(n, m, True)
    found, _ = line(backend, np.vstack([np.ones(n), places, places**2, *rng.standard_normal((2, n))]), ends)
    np.testing.assert_allclose(found[:3], 0, atol=1e-13)
    values = rng.standard_normal((5, n))
    found, _ = line(backend, values, ends)
    np.testing.assert_allclose(found[:, 1:-1], -(values @ form)[:, 1:-1], rtol=0, atol=1e-13)
    inner = values.copy()
    inner[:, [0, -1]] = 0.0
    found, every = line(backend, inner, ends)
    assert (np.einsum("vn,vn->v", found, inner) < -1e-3).all()
    least, *_, most = np.linalg.eigvalsh(form)
    assert least > -1e-14 and most < 1
    assert np.isfinite(every).all()
    assert not line(backend, values, np.zeros(n))[1].any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_sensor_takes_rows_of_nodes_out(backend):
    """1 - s, s the largest of the m + 1 nodes of a row; all else is as without a sensor, and a uniform flow is not
    changed."""
    n, m = SIZE[2], HALO
    rng = np.random.default_rng(6)
    values, ends = rng.standard_normal((5, n)), np.array([0, 1, 2, 3, 3, -2, -1, 0.0])
    shock = rng.uniform(0, 1, n) * (rng.uniform(size=n) < 0.3)
    share = np.array([1 - shock[row : row + m + 1].max() for row in range(n - m)])
    assert 0 < share.min() < 1
    sensor = np.full(SHAPE, np.nan)
    sensor[HALO : HALO + n] = shock[:, None, None]
    given = {"kernel": "filter_change_with_sensor", "sensor": sensor}
    found, _ = line(backend, values, ends, **given)
    wanted = -(values @ differences(n, m, True, share))
    np.testing.assert_allclose(found[:, 1:-1], wanted[:, 1:-1], rtol=0, atol=1e-13)
    assert not line(backend, np.ones((5, n)), ends, **given)[0].any()
    sensor[HALO : HALO + n] = 1.0
    assert not line(backend, values, ends, **given)[0].any()


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

    same_everywhere(make, tmp_path / "run", 5, plans=("decomposed",), on_ranks=on_two_ranks)


def test_distances_from_faces():
    """Along the lines of the face alone, of one behind below zero; a face's own nodes are left to the condition."""
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
    for i in (3, 6, 8):
        np.testing.assert_array_equal(along_j[0, :, i], [0, 1, 2, 3, 3, 3, 3, 3, -2, -1, 0])
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


def advance(solver):
    solver.initialize(rough)
    for _ in range(solver.case.time.steps):
        solver.step()
    return solver


def advanced(case, where="cpu", **arguments):
    return advance(Solver(case, device(where), **arguments))


def put_together(solver, size=(25, 13, 9)):
    """The state (5, nk, nj, ni) of the one block of which the parts of a solver are."""
    whole = np.zeros((5, *reversed(size)))
    for state in solver.states:
        whole[(slice(None), *state.part.slices)] = state.interior(solver.backend.to_host(state.q))
    return whole


@pytest.mark.parametrize("where", BACKENDS)
def test_cuts_change_nothing(where):
    """The filter by itself by the rounding of a sum at most, as a compiler contracts products otherwise in whole packs
    than in the rest of a row; a run in its last bits, with or without the filter."""
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
        ends.append(put_together(advance(solver)))
    assert abs(filtered[0] - before).max() > 1e-3
    for found, end in zip(filtered[1:], ends[1:], strict=True):
        np.testing.assert_allclose(found, filtered[0], rtol=0, atol=2 * np.finfo(float).eps)
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
    with pytest.raises(HiresxError, match=r"filter.strength = 0.6 along 2 directions reverses the sign") as error:
        Solver(box((12, 12, 1), strength=0.6), device("cpu"))
    assert "0.5 at most" in error.value.hint
    with pytest.raises(HiresxError, match=r"8 nodes along i; .* and filter.order = 8, with 4 ghost layers, 9 or more"):
        Solver(box((8, 12, 1), 8), device("cpu"))
    with pytest.raises(HiresxError, match=r"filter.order"):
        box((12, 12, 1), 7)
