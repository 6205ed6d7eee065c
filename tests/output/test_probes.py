"""Probes: points found in blocks, values of high order there, whatever the cut."""

import numpy as np
import pytest
from watched_runs import SLIP, P, cut, pulse, ran, tables, watched

from hiresx import Case, HiresxError, Simulation, load
from hiresx.decomposition import decompose
from hiresx.grid import Block, Grid, build
from hiresx.grid.motions import motion, rotation_about
from hiresx.output.saved import checkpoint
from hiresx.output.watch import filtered as filtered_nodes
from hiresx.output.watch import history, locate
from hiresx.output.watch.locate import Locator
from hiresx.output.watch.monitors import probe


def waves(x, y, z):
    return np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y) + np.cos(2 * np.pi * (x + y + z))


def interpolated(decomposition, points, f) -> np.ndarray:
    """f, known at the nodes only, at `points`."""
    locator, nodes = Locator(decomposition), [f(b.x, b.y, b.z) for b in decomposition.blocks]
    found = []
    for point in points:
        at = locator.find(point)
        known = zip(at.blocks, at.nodes.T, at.weights, strict=True)
        found.append(sum(nodes[b][k, j, i] * weight for b, (i, j, k), weight in known))
    return np.array(found)


@pytest.mark.parametrize(
    ("sizes", "dimensions", "periodic"),
    [((16, 32, 64), 2, False), ((16, 32, 64), 2, True), ((12, 24, 48), 3, True)],
    ids=["2-D between walls", "2-D periodic", "3-D periodic"],
)
def test_probes_are_of_high_order_on_a_wavy_grid(sizes, dimensions, periodic):
    points = np.random.default_rng(1).random((40, 3))
    points[:3] = [[0.0, 0.5, 0.0], [0.999, 0.999, 0.0], [0.5, 0.0, 0.0]]  # on a face, and in the last gap of a period
    points[:, dimensions:] = 0
    errors = []
    for n in sizes:
        size = (n, n, n if dimensions == 3 else 1)
        axes = ("x", "y", "z")[:dimensions] if periodic else ()
        case = Case.from_dict(tables(size, [float(m > 1) for m in size], 0.06, axes))
        found = interpolated(decompose(case, build(case.grid, None)), points, waves)
        errors.append(np.sqrt(np.mean((found - waves(*points.T)) ** 2)))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert orders.min() > 4.5 and errors[-1] < 1e-5, (errors, orders)


def test_a_polynomial_of_fifth_degree_is_exact_on_straight_lines():
    case = Case.from_dict(tables((9, 8, 7), (1.0, 2.0, 3.0)))

    def f(x, y, z):
        return x**5 - 2 * y**5 + z**5 * x - x**2 * y**3 * z**4

    points = np.random.default_rng(2).random((30, 3)) * [1, 2, 3]
    found = interpolated(decompose(case, build(case.grid, None)), points, f)
    np.testing.assert_allclose(found, f(*points.T), rtol=1e-11, atol=1e-11)


def test_points_between_blocks_and_around_the_lip_of_a_nozzle_are_found():
    case = load("planar-jet", preset="quick")
    decomposition = decompose(case, build(case.grid, case.directory))
    rng = np.random.default_rng(3)
    points = np.stack([rng.uniform(-0.06, 0.06, 80), rng.uniform(-0.7, 0.7, 80), np.zeros(80)], axis=1)
    points = points[(points[:, 0] >= 0) | (abs(points[:, 1]) <= 0.5) | (abs(points[:, 1]) >= 0.6)]
    found = interpolated(decomposition, points, lambda x, y, z: np.sin(x) * np.cos(y))
    np.testing.assert_allclose(found, np.sin(points[:, 0]) * np.cos(points[:, 1]), atol=2e-7)
    inside_the_lip = Locator(decomposition).find((-0.1, 0.55, 0.0))
    assert inside_the_lip is None


def test_points_that_are_looked_for_together_are_found_as_alone():
    """To the last bit: between blocks, in the last gaps of periods, and none beyond a face."""
    jet, periodic = load("planar-jet", preset="quick"), Case.from_dict(tables((12, 10, 9), (1.0,) * 3, 0.05, "xyz"))
    rng = np.random.default_rng(4)
    beside = np.stack([rng.uniform(-0.06, 0.06, 8), np.linspace(-1.2, 1.2, 8), np.zeros(8)], axis=1)
    beside[:2] = [[-9.0, 0.3, 0.0], [-0.05, -0.9, 0.0]]
    for case, points, blocks in ((jet, beside, 4), (periodic, rng.uniform(0.85, 1.0, (4, 3)), 1)):
        locator = Locator(decompose(case, build(case.grid, case.directory)))
        together = locator.find_all(points)
        assert len({found.block for found in together if found}) == blocks and (together[0] is None) == (case is jet)
        for point, found in zip(points, together, strict=True):
            alone = locator.find(point)
            assert (alone is None) == (found is None)
            for name in ("block", "index", "blocks", "nodes", "weights", "turns") if found else ():
                np.testing.assert_array_equal(getattr(alone, name), getattr(found, name))


def test_the_first_place_outside_is_named_with_its_table(monkeypatch):
    monkeypatch.setattr(locate, "CHUNK", 2)
    table = {"name": "a", "line": {"start": [0.1, 0.1, 0], "end": [0.9, 0.9, 0], "n": 5}}
    outside = {"name": "b", "points": [[0.5, 0.5, 0], [1.5, 0.5, 0], [0.5, 7.0, 0], [0.2, 0.2, 0]]}
    case = Case.from_dict(tables((16, 16, 1), (1.0, 1.0, 0.0), probe=[table, outside]))
    said = r'^probe\.1 "b": the place \(1\.5, 0\.5, 0\) lies outside the grid, 0\.501 from'
    with pytest.raises(HiresxError, match=said):
        probe.check(case, decompose(case, build(case.grid, None)))
    found = {"probe": [table, {**outside, "points": outside["points"][::3]}]}
    case = Case.from_dict(tables((16, 16, 1), (1.0, 1.0, 0.0), **found))
    assert [len(some) for some in probe.check(case, decompose(case, build(case.grid, None)))] == [5, 2]


def test_points_on_a_curved_wall_are_taken_to_it_and_those_in_the_body_refused():
    case = load("cylinder-bow-shock", overrides=["grid.n_around=25", "grid.n_normal=13"])
    locator = Locator(decompose(case, build(case.grid, case.directory)))
    for angle in np.radians([-89.0, -31.7, 0.3, 44.4, 90.0]):
        point = (-np.cos(angle), np.sin(angle), 0.0)
        assert abs(locator.find(point).index[1]) < 1e-2
        assert locator.find(np.multiply(point, 0.97)) is None


@pytest.mark.parametrize("shared", [True, False], ids=["shared nodes", "beside"])
def test_a_vector_is_turned_on_its_way_through_a_rotational_period(shared):
    period, n = np.pi / 3, 25
    angle = np.linspace(0, period, n) if shared else np.arange(n) * period / n
    radius, angle = np.meshgrid(np.linspace(1, 2, 21), angle)
    sector = Block("sector", *(c[None] for c in (radius * np.cos(angle), radius * np.sin(angle), 0 * angle)))
    turn = motion(rotation_about((0.0, 0.0, 1.0), 60.0))
    grid = Grid([sector], period=({"j": turn},))
    boundary = [{"faces": ["jmin", "jmax"], "type": "periodic"}, {"faces": ["imin", "imax"], **SLIP}]
    probe = [{"name": "seam", "points": [[1.5 * np.cos(a), 1.5 * np.sin(a), 0.0] for a in (1e-3, 1.03, 1.046, 0.5)]}]
    case = Case.from_dict(tables((7, 7, 1), boundary=boundary, probe=probe, conservation={}, kinetic_energy={}))
    simulation, found = watched(case, grid=grid)

    def swirl(x, y):
        r = np.hypot(x, y)
        return (0.1 * r * x / r - 0.2 / r * y / r), (0.1 * r * y / r + 0.2 / r * x / r)

    simulation.solver.set_state(0, 1.0, *swirl(sector.x, sector.y), 0.0, P)
    values = found["seam"].measure(simulation.solver)
    for name, exact in zip("uv", swirl(*np.array(probe[0]["points"]).T[:2]), strict=True):
        np.testing.assert_allclose(values[name], exact, atol=2e-7)
    # a node that both ends of the period hold counts half in each
    assert found["conservation"].measure(simulation.solver)["mass"] == pytest.approx(period * 1.5, rel=1e-6)


@pytest.mark.parametrize("shared", [True, False], ids=["shared nodes", "beside"])
def test_nothing_depends_on_how_the_grid_was_cut(shared):
    lists = {
        "probe": [{"name": "p", "points": [[1.0, 0.5, 0.0], [0.97, 0.3, 0.0], [1.02, 0.7, 0.0]]}],
        "force": [{"name": "f", "faces": ["jmin"]}],
        "conservation": {}, "extrema": {}, "kinetic_energy": {},
    }  # fmt: skip
    case = Case.from_dict(tables((25, 13, 1), amplitude=0.05, gas={"reynolds": 50.0}, **lists))
    whole = build(case.grid, None)
    results = []
    for grid in (whole, cut(whole.blocks[0], 12, shared)):
        simulation, found = watched(case, grid=grid, initial=pulse)
        for _ in range(5):
            simulation.step()
        results.append({name: found[name].measure(simulation.solver) for name in ("p", "f", *list(lists)[2:])})
    for name, values in results[0].items():
        for column, value in values.items():
            # a value that there is more than once has no one place
            if column.endswith(("_block", "_i")) or column.startswith(("w_", "mach_min_")):
                continue
            np.testing.assert_allclose(results[1][name][column], value, rtol=1e-11, atol=1e-12, err_msg=column)


# --- samples are filtered over the steps between them

TONE, SAMPLED = 6.175, 0.2  # cycles per L / c_ref, and a distance of samples that takes it for 1.175


def wave(x, y, z):
    s = 1e-4 * np.sin(2 * np.pi * TONE * x)
    return 1.0 + s, s, 0.0, 0.0, P + s


def amplitude(seen, frequency) -> float:
    window = np.hanning(len(seen["time"])) * np.exp(-2j * np.pi * frequency * seen["time"])
    return abs(2 * np.sum(window * (seen["p"] - seen["p"].mean())) / abs(window).sum())


def test_a_tone_between_the_samples_is_not_heard_at_another_frequency():
    probe = {"x": 0.3, "variables": ["p"], "every_time": SAMPLED}
    probes = [{"name": "filtered", **probe}, {"name": "none", "filter": "none", **probe}]
    box = tables((32, 1, 1), (2 / TONE, 0.0, 0.0), periodic=("x",), time={"end": 8.0, "cfl": 0.5})
    _, found = ran(Case.from_dict(box | {"probe": probes}), initial=wave)
    folded = {name: amplitude(found[name], TONE - 1 / SAMPLED) for name in ("filtered", "none")}
    assert folded["none"] > 7e-5
    assert folded["filtered"] < folded["none"] / 900  # sinc(1.235)^4: 60.8 dB


def spline(x) -> np.ndarray:
    """The cubic B-spline of two intervals on both sides."""
    x = np.abs(x)
    return np.where(x < 1, (4 - 6 * x**2 + 3 * x**3) / 6, np.maximum(2 - x, 0.0) ** 3 / 6)


def filtered(time, values, at, interval) -> np.ndarray:
    """What flows that change linearly between the times (n,) come to at `at` (m,), constant before and behind."""
    place, share = np.polynomial.legendre.leggauss(4)
    time = np.concatenate([[at[0] - 3 * interval], time, [time[-1] + 3 * interval]])
    # no piece over a knot of the weights
    knots = np.unique(np.concatenate([time, *(at + n * interval for n in range(-2, 3))]))
    middle, half = (knots[1:] + knots[:-1]) / 2, np.diff(knots) / 2
    t = (middle[:, None] + half[:, None] * place).ravel()
    flow = np.interp(t, time, np.concatenate([values[:1], values, values[-1:]]))
    weights = (half[:, None] * share).ravel() / interval
    return np.array([np.sum(weights * spline((t - one) / interval) * flow) for one in at])


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_samples_are_the_spline_s_means_of_the_steps(backend):
    place = {"x": 0.97, "y": 0.31, "variables": ["p", "mach"]}
    probes = [
        {"name": "steps", "every": 1, **place},
        {"name": "fifth", "every": 5, **place},
        {"name": "timed", "every_time": 0.1, **place},
        {"name": "moment", "every_time": 0.1, "filter": "none", **place},
    ]
    case, alone = (
        Case.from_dict(tables((25, 13, 1), amplitude=0.05, time={"steps": 38, "cfl": 0.5}, probe=some))
        for some in (probes, probes[1:3])
    )
    grid = cut(build(case.grid, None).blocks[0], 12, True)
    _, found = ran(case, grid=grid, initial=pulse, backend=backend)
    steps, timed, fifth, moment = (found[name] for name in ("steps", "timed", "fifth", "moment"))
    assert len(timed["time"]) >= 6 and np.diff(steps["time"]).min() < 0.7 * np.diff(steps["time"]).max()
    np.testing.assert_array_equal(timed["time"], moment["time"])
    np.testing.assert_array_equal(fifth["step"], np.arange(0, 38, 5))
    # the state that the last step leaves begins no other one: nothing looked at it
    wanted = filtered(steps["time"][:-1], steps["p"][:-1], timed["time"], 0.1)
    np.testing.assert_allclose(timed["p"], wanted, rtol=1e-12)
    # of every so many steps each counts alike, however long it was
    wanted = filtered(np.arange(38.0), steps["p"][:-1], fifth["step"].astype(float), 5.0)
    np.testing.assert_allclose(fifth["p"], wanted, rtol=1e-12)
    assert abs(timed["p"] - moment["p"]).max() > 1e-4
    np.testing.assert_array_equal(moment["p"], steps["p"][np.isin(steps["step"], moment["step"])])
    # with nothing to do between samples, a device takes many steps at a time
    _, undisturbed = ran(alone, grid=grid, initial=pulse, backend=backend)
    for name in ("fifth", "timed"):
        np.testing.assert_array_equal(undisturbed[name]["p"], found[name]["p"])


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_samples_that_stay_on_the_device_for_a_while_are_the_same(backend, tmp_path, monkeypatch):
    place = {"y": 0.31, "variables": ["p", "mach"]}
    probes = [
        {"name": "timed", "every_time": 0.05, "x": 0.97, **place},
        {"name": "third", "every": 3, "x": 0.4, **place},
        {"name": "beside", "every": 3, "x": 0.5, **place},
    ]
    time = {"steps": 40, "cfl": 0.5}
    case = Case.from_dict(tables((25, 13, 1), amplitude=0.05, time=time, probe=probes, checkpoint={"every_steps": 17}))
    fetched, fetch = [], filtered_nodes.FilteredNodes._together
    monkeypatch.setattr(
        filtered_nodes.FilteredNodes,
        "_together",
        lambda nodes, n, parts: (fetched.append(n), fetch(nodes, n, parts))[1],
    )
    monkeypatch.setattr(filtered_nodes, "SECONDS", np.inf)
    kept, most = {}, 6  # samples of every third step between two checkpoints
    for stay, bytes_ in ((1, 1 << 26), (4, 1 << 26), (filtered_nodes.STAY, 1 << 26), (2, 1)):
        monkeypatch.setattr(filtered_nodes, "STAY", stay)
        monkeypatch.setattr(filtered_nodes, "BYTES", bytes_)
        fetched.clear()
        out = tmp_path / f"{stay}"
        stay = stay if bytes_ > 1 else 1  # no more than there is memory for
        _, whole = ran(case, initial=pulse, out=out, backend=backend)
        assert max(fetched) == max(min(stay, most), filtered_nodes.BEHIND)
        Simulation(restart=checkpoint.list_checkpoints(out)[1], backend=backend).run(
            progress=False
        )  # behind the newest, step 40
        again = {name: history.read(path).flat() for name, path in history.histories(out).items() if name in whole}
        kept[stay, bytes_] = (whole, again)
    for some in (table for pair in kept.values() for table in pair):
        for name, table in kept[1, 1 << 26][0].items():
            for column, values in table.items():
                np.testing.assert_array_equal(some[name][column], values, err_msg=f"{name} {column}")


def test_a_step_that_is_taken_again_counts_once():
    probe = [{"name": "one", "x": 0.9, "y": 0.4, "every": 4}]
    case = Case.from_dict(tables((25, 13, 1), time={"steps": 12, "cfl": 0.5}, probe=probe))
    tables_ = []
    for again in (False, True):
        simulation = Simulation(case, backend="cpu", initial=pulse)
        step = simulation.solver.advance

        def twice(count, until, simulation=simulation, step=step):
            solver = simulation.solver
            step(count, until)
            solver.rewind()
            return step(count, until)

        if again:
            simulation.solver.advance = twice
        simulation.run(progress=False)
        history = next(a.history for a in simulation.attachments if a.name == "history.one")
        tables_.append(history.table().flat())
    for column, values in tables_[0].items():
        np.testing.assert_array_equal(tables_[1][column], values, err_msg=column)


def test_the_file_says_what_its_samples_are(tmp_path):
    place = {"x": 0.9, "y": 0.4, "variables": ["p"]}
    probes = [
        {"name": "filtered", "every": 4, **place},
        {"name": "moments", "every": 4, "filter": "none", **place},
        {"name": "steps", "every": 1, **place},
    ]
    ran(Case.from_dict(tables(time={"steps": 8, "cfl": 0.5}, probe=probes)), out=tmp_path)
    said = {name: history.read(path).filter for name, path in history.histories(tmp_path).items() if name != "residual"}
    assert said == {"filtered": "running-means", "moments": "none", "steps": "none"}
