"""What checks take from a run, on flows that are written down here."""

from types import SimpleNamespace

import numpy as np
import pytest
import robustness_runs

from hiresx.exact import normal_shock, rayleigh_pitot
from hiresx.verify.groups import bow_shock, mixing_layer, shock_vorticity, strong_shocks


def flow(x, y=0.0, **state):
    """A run on one block that ended with these (nk, nj, ni) values."""
    x, y = np.broadcast_arrays(x, y)
    free = SimpleNamespace(u=5.0, rho=1.4, p=1.0)
    case = SimpleNamespace(initial=SimpleNamespace(state=free), gas=SimpleNamespace(gamma=1.4))
    return SimpleNamespace(blocks=[SimpleNamespace(x=x, y=y)], state=state.__getitem__, case=case, time=4.0)


def test_the_shock_stands_where_the_pressure_passes_half_its_rise():
    """A straight ramp of the pressure over three nodes on the axis, which the half rise meets between two of them."""
    along = np.linspace(0, 1, 11)
    x = np.broadcast_to(-1 - along[:, None], (1, 11, 3))
    rise = normal_shock(5.0, 1.4).pressure - 1
    ramp = 1 + rise * np.clip(1 - (along - 0.43) / 0.2, 0, 1)
    p = np.where(np.arange(3) == 1, ramp[:, None], 1.0)[None]
    run = flow(x, p=p, rho=p)
    assert bow_shock.mach(run) == pytest.approx(5.0)
    # between the nodes at .5 and .6
    assert bow_shock.standoff(run) == pytest.approx(0.53, abs=1e-12)
    assert bow_shock.standoffs(run, run)["mach"] == pytest.approx([5.0, 5.0])
    assert bow_shock.pitot_error(run) == pytest.approx((1 + rise) / rayleigh_pitot(5.0, 1.4) - 1)
    assert bow_shock.asymmetry(run) == 0
    assert bow_shock.asymmetry(flow(x, rho=p + 0.1 * np.arange(3))) == pytest.approx(0.2 / (p.max() + 0.1))


def test_the_rate_of_a_wave_is_the_slope_of_its_logarithm(monkeypatch):
    time = np.linspace(0, 20, 41)
    amplitude = np.where(time < 5, 3.0, 1e-3) * np.exp(0.2 * time)
    history = [{"time": t, "wave": a} for t, a in zip(time, amplitude, strict=True)]
    run = SimpleNamespace(simulation=SimpleNamespace(history=[{"time": 0.0}, *history]))
    assert mixing_layer.rate(run) == pytest.approx(0.2)
    assert mixing_layer.growth(run) == pytest.approx(np.exp(0.2 * 15))
    monkeypatch.setattr(mixing_layer, "exact", lambda run: 0.25)
    assert mixing_layer.error(run) == pytest.approx(-0.2)
    theory = mixing_layer.curves(run)["theory"]
    assert theory[10] == pytest.approx(amplitude[10]) and theory[40] == pytest.approx(amplitude[10] * np.exp(0.25 * 15))


def test_the_amplitude_of_a_wave_is_that_of_its_first_harmonic():
    x, _ = np.meshgrid(2 * np.pi / 0.4 * np.arange(16) / 16, [0.0, 1.0], indexing="xy")
    v = np.array([[0.3], [0.4]]) * np.cos(0.4 * x + 1) + 0.2 * np.sin(0.8 * x) + 0.1
    block = SimpleNamespace(x=x[None], state=lambda name: {"v": v[None]}[name])
    simulation = SimpleNamespace(blocks=[block], case=SimpleNamespace(parameters={"wavenumber": 0.4}))
    assert mixing_layer.wave(simulation)["wave"] == pytest.approx(np.sqrt((0.3**2 + 0.4**2) / 2))


def test_the_vorticity_behind_a_shock_is_that_of_one_period_across():
    """u = a cos(k x + y), v of another amplitude and phase, and what has two periods along y."""
    y, x = np.meshgrid(2 * np.pi * np.arange(12) / 12, np.linspace(0, 8, 201), indexing="ij")
    u, v = 0.1 * np.cos(1.2 * x + y), 0.3 * np.cos(1.2 * x + y + 0.5) + 0.2 * np.cos(2 * y + x) + 0.1 * x
    run = flow(x[None], y[None], u=u[None], v=v[None])
    run.case.parameters, run.case.gas = {"mach": 1.5, "angle": 30.0, "amplitude": 0.02}, SimpleNamespace(gamma=1.4)
    ratio = abs(0.3 * 1.2 * np.exp(0.5j) - 0.1) * np.sin(np.pi / 6) / (0.02 * 1.5)
    np.testing.assert_allclose(shock_vorticity.profile(run)[1], ratio, rtol=1e-8)
    assert shock_vorticity.error(run) == pytest.approx(ratio / 1.845 - 1, abs=2e-3)


def test_feet_and_radii_of_strong_shocks():
    x = np.linspace(0, 3, 31)
    p = 10.0 - 9 * (x > 2.25) - 0.5 * (x > 1.25) + 50 * (x < 0.25)
    assert strong_shocks.stem_foot(flow(x[None, None], p=p[None, None])) == pytest.approx(2.2)
    x, y = np.meshgrid(np.linspace(0, 2, 21), np.linspace(0, 2, 21), indexing="ij")
    rho = np.exp(-((np.hypot(x, y) - 1.5) ** 2) * 100) * (1 + 0.1 * (y == 0))
    assert strong_shocks.sedov_radius(flow(x[None], y[None], rho=rho[None])) == pytest.approx(1.5 / (0.75 * 2.0))


def test_the_radius_of_a_blast_is_that_of_the_largest_density():
    """At t = 4 the shock of Sedov's blast is at 0.75 * 2; a shell of gas there, and one 10 % further out."""
    along = np.linspace(0, 2, 81)
    x, y = along, along[:, None]
    for radius, error in ((1.5, 0.0), (1.65, 0.1)):
        rho = np.exp(-(((np.hypot(x, y) - radius) / 0.02) ** 2))
        assert robustness_runs.shock_radius_error(flow(x, y, rho=rho)) == pytest.approx(error, abs=5e-3)
