"""Probes: points found in blocks, values of high order there, whatever the cut."""

import numpy as np
import pytest
from watched_runs import SLIP, P, cut, pulse, tables, watched

from hiresx import Case, load
from hiresx.decomposition import decompose
from hiresx.grid import Block, Grid, build
from hiresx.grid.motions import motion, rotation_about
from hiresx.output.watch.locate import Locator


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
