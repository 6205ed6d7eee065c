"""The case of a round jet: states, disturbances of the nozzle's layer, sponges."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.case import load, presets
from hiresx.case.schema import Sponge
from hiresx.rhs.sponge import share_and_box

WAVES = {"speed": 0.64, "layer": 0.1, "modes": 4, "highest": 1.5, "seed": 1}


@pytest.mark.parametrize("preset", [None, *presets("round-jet")])
def test_it_fits_its_grid(preset):
    case = load("round-jet", preset)
    grid, (downstream, upstream, around) = case.grid, case.sponge
    assert case.parameters["layer"] == grid.boundary_layer_thickness
    assert (downstream.start, downstream.end) == (grid.length, grid.length + grid.sponge_length)
    assert (upstream.start, upstream.end) == (-grid.nozzle_length, -grid.upstream)
    assert (around.axis, around.start, around.end) == ("r", grid.radius, grid.radius + grid.sponge_height)
    lip = next(probe for probe in case.probe if probe.name == "lip")
    radii = {round(float(np.hypot(y, z)), 5) for _, y, z in lip.places}
    assert radii == {0.65} and 0.5 + grid.lip_thickness < 0.65 and len(lip.places) == 16
    # the shortest disturbances have five cells or more per wave
    speed = 0.7 * case.parameters["exit_mach"] / np.sqrt(1 + 0.2 * case.parameters["exit_mach"] ** 2)
    assert speed / case.parameters["disturbance_frequency"] > 5 * grid.exit_spacing


@pytest.mark.parametrize(("preset", "mach"), [(None, 1.42), ("axisymmetric", 1.19), ("ideal", 1.4)])
def test_states(preset, mach):
    """Fully expanded: Mach number, ambient pressure, total temperature; the momentum of the estimate is that jet's."""
    case = load("round-jet", preset, ["parameters.disturbance=0.0"])
    rho, u, v, w, p = case.evaluate("nozzle", *np.zeros((3, 1)), 0.0)
    exit_mach = case.parameters["exit_mach"]
    assert float((u / np.sqrt(1.4 * p / rho))[0]) == pytest.approx(exit_mach, rel=1e-9)
    assert float(1.4 * p[0]) == pytest.approx(case.parameters["pressure_ratio"]) and v[0] == w[0] == 0
    wall = case.evaluate("nozzle", np.zeros(2), np.array([0.0, 0.3]), np.array([0.5, -0.4]), 0.0)
    np.testing.assert_allclose(wall[1], 0.0, atol=1e-12)
    rho, u, _, _, p = (a[0] for a in case.evaluate("developed", np.full(1, 0.3), np.zeros(1), np.zeros(1)))
    assert u / np.sqrt(1.4 * p / rho) == pytest.approx(mach, rel=1e-3) and p == pytest.approx(1 / 1.4)
    assert 1.4 * p / rho + 0.2 * u**2 == pytest.approx(1.0)
    area = {1.42: 1.061**2, 1.19: 1.014**2, 1.4: 1.0}[mach]
    for x in (1.0, 5.0, 20.0):
        r = np.linspace(0, 40, 40001)
        along = case.evaluate("developed", np.full_like(r, x), r, 0 * r)[1]
        assert np.trapezoid(8 * along**2 * r, r) == pytest.approx(u**2 * area, rel=2e-3)


def places(n=300):
    random = np.random.default_rng(0)
    r, theta = random.uniform(0.22, 0.499, n), random.uniform(0, 2 * np.pi, n)
    return random.uniform(-0.7, -0.5, n), r * np.cos(theta), r * np.sin(theta)


def test_disturbances_are_free_of_divergence_and_carried_along():
    found = load("round-jet", "quick").function("disturbances")
    x, y, z = places()
    slopes = []
    for n in range(3):
        ends = [found(*(c + s * 1e-4 * (m == n) for m, c in enumerate((x, y, z))), 1.3, **WAVES) for s in (1, -1)]
        slopes.append((ends[0] - ends[1]) / 2e-4)
    divergence = sum(slopes[n][n] for n in range(3))
    assert np.abs(divergence).max() < 1e-5 * np.abs(np.stack(slopes)).max()
    later = found(x + 0.64 * 0.7, y, z, 2.0, **WAVES)
    np.testing.assert_allclose(later, found(x, y, z, 1.3, **WAVES), atol=1e-12)


def test_size_of_the_disturbances_and_where_they_are():
    found = load("round-jet", "quick").function("disturbances")
    r = np.linspace(0.0, 0.5, 26)
    squares = [np.sum(found(0 * r - 0.6, 0 * r, r, t, **WAVES) ** 2, axis=0) for t in np.arange(0, 300, 0.17)]
    size = np.sqrt(np.mean(squares, axis=0))
    assert size.max() == pytest.approx(1.0, abs=0.07)
    assert size[-1] == 0 and (size[r < 0.2] == 0).all() and (size[(r > 0.3) & (r < 0.499)] > 0.1).all()


def test_disturbances_follow_from_seed_time_and_place_alone():
    """Ranks that hold a part of the inflow, and a restart, have what a whole run has."""
    case = load("round-jet", "quick")
    x, y, z = places()
    whole = np.array(case.evaluate("nozzle", x, y, z, 2.5))
    case.evaluate("nozzle", x, y, z, 7.0)
    parts = [
        np.array(case.evaluate("nozzle", *(c[s] for c in (x, y, z)), 2.5)) for s in (slice(0, 90), slice(90, None))
    ]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-14)
    again = np.array(load("round-jet", "quick").evaluate("nozzle", x, y, z, 2.5))
    np.testing.assert_array_equal(again, whole)
    other = np.array(load("round-jet", "quick", ["parameters.seed=2"]).evaluate("nozzle", x, y, z, 2.5))
    assert np.abs(other - whole)[1:4].max() > 1e-3 and (other[[0, 4]] == whole[[0, 4]]).all()


def test_a_sponge_around_the_axis():
    y, z = np.meshgrid(np.linspace(-2, 2, 9), np.linspace(-2, 2, 9))
    block = SimpleNamespace(x=0 * y[None], y=y[None], z=z[None])
    spec = Sponge(axis="r", start=1.0, end=2.0, strength=0.2, state={"rho": 1.0, "p": 0.7})
    share, _ = share_and_box(spec, block)
    np.testing.assert_allclose(share[0], np.clip(np.hypot(y, z) - 1, 0, 1))
