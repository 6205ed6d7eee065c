"""The far field of sources in a uniform stream, from a box around them: amplitude and phase of the exact solution."""

import numpy as np
import pytest
from acoustic_sources import (
    IN_PLANE,
    OBSERVERS,
    SMALL,
    derivative,
    dipole,
    fitted,
    line_monopole,
    monopole,
    pressure,
    sampled,
)  # fmt: skip

from hiresx import HiresxError
from hiresx.post import far_field, fwh, fwh_plane


def heard(source, mach, observers, lower=(-1.0, -0.8, -0.9), upper=(1.2, 0.9, 0.8), counts=(24, 20, 20)):
    """p' at the observers, over exp(i w t), from samples of the flow on a box; and its residual in time."""
    surface = fwh.box(lower[: len(counts)], upper[: len(counts)], counts)
    time = 0.2 * np.arange(190)
    flow = sampled(source, mach, surface.places, time)
    times, found = far_field(surface, time, *flow, observers, fwh.Stream(mach))
    amplitude, residual = fitted(times, found)
    return amplitude / SMALL, residual


@pytest.mark.parametrize("mach", [0.0, 0.3, 0.6, -0.4])
@pytest.mark.parametrize("source", [monopole, dipole], ids=lambda source: source.__name__)
def test_amplitude_and_phase_at_the_observers(source, mach):
    observers = OBSERVERS if source is monopole else OBSERVERS[1:]  # a dipole along y is not heard on the x axis
    found, residual = heard(source, mach, observers)
    exact = pressure(source, observers, mach)
    assert np.abs(np.abs(found / exact) - 1).max() < 0.01
    assert np.abs(np.degrees(np.angle(found / exact))).max() < 2.0
    assert residual < 1e-3


LINES = {
    "monopole": line_monopole,
    "dipole": derivative(line_monopole, 1),
    "quadrupole": derivative(derivative(line_monopole, 0), 1),
}


@pytest.mark.parametrize("mach", [0.0, 0.3, 0.6, -0.4])
@pytest.mark.parametrize("name", LINES)
def test_line_sources_in_the_plane(name, mach):
    source, observers = LINES[name], IN_PLANE if name == "monopole" else IN_PLANE[1:]
    if name == "quadrupole":  # at rest it is not heard on the axes
        observers = IN_PLANE[[1, 3, 4]]
    found, residual = heard(source, mach, observers, counts=(44, 34))
    exact = pressure(source, observers, mach)
    assert np.abs(np.abs(found / exact) - 1).max() < 0.01
    assert np.abs(np.degrees(np.angle(found / exact))).max() < 1.0
    assert residual < 2e-3


@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_error_is_that_of_the_quadrature(dimensions):
    """Of second order: half the cells' size, a quarter of the error."""
    source, observers = (monopole, OBSERVERS) if dimensions == 3 else (line_monopole, IN_PLANE)
    exact = pressure(source, observers, 0.3)
    errors = []
    for n in (10, 20):
        found, _ = heard(source, 0.3, observers, counts=(n,) * dimensions)
        errors.append(np.abs(found / exact - 1).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)


@pytest.mark.parametrize(("whole", "counts"), [(monopole, (24, 20, 20)), (line_monopole, (44, 34))])
def test_a_source_outside_the_surface_is_not_heard(whole, counts):
    """A closed surface without a source in it radiates nothing."""
    source = lambda x, mach: whole(x + np.array([4.0, 0.0, 0.0]), mach)  # noqa: E731
    observers = OBSERVERS if whole is monopole else IN_PLANE
    found, _ = heard(source, 0.3, observers, counts=counts)
    assert np.abs(found).max() < 0.01 * np.abs(pressure(source, observers, 0.3)).max()


def test_a_weak_vortex_that_the_stream_carries_through_the_line_makes_no_sound():
    """To first order in its strength what passes as mass and as momentum cancel. Of a warm spot, which has no momentum
    beside it, they do not: it is heard, as it should not be."""
    mach, strength, size, observers = 0.4, 1e-5, 0.25, np.array([[0.0, 12.0, 0.0], [14.0, 5.0, 0.0], [-5.0, 0.0, 0.0]])
    time, line = 0.05 * np.arange(500), fwh.box([-1.0, -1.0], [1.0, 1.2], (60, 66))
    dx = (line.places[:, 0] - mach * (time - 10.0)[:, None]) / size
    dy = (line.places[:, 1] - 0.15) / size
    spot = strength * np.exp(-(dx**2) - dy**2)
    still, p = np.stack([mach + 0 * dx, 0 * dx, 0 * dx], axis=-1), np.full_like(dx, 1 / 1.4)
    turning = still + np.stack([-spot * dy, spot * dx, 0 * dx], axis=-1)
    _, vortex = far_field(line, time, np.ones_like(dx), turning, p, observers, fwh.Stream(mach))
    _, warm = far_field(line, time, 1 - spot, still, p, observers, fwh.Stream(mach))
    assert (np.abs(warm).max(axis=1) > 1e-3 * strength).all()
    assert (np.abs(vortex).max(axis=1) < 1e-3 * np.abs(warm).max(axis=1)).all()


RATES = {"pulse": lambda late: -2 * late * np.exp(-(late**2)), "step": lambda late: np.exp(-(late**2))}


@pytest.mark.parametrize("name", RATES)
def test_what_begins_in_the_plane_is_heard_with_its_wake(name):
    """A volume source q(t) of which dq/dt is a pulse's or a step's, at rest before: its potential is the integral of q
    over the wake 1 / sqrt(s^2 - r^2), of which s = r cosh(a) makes a smooth one."""
    time, observers = 0.05 * np.arange(300), np.array([[5.0, 0.0, 0.0], [-3.0, 4.5, 0.0], [40.0, 30.0, 0.0]])
    line = fwh.box([-0.5, -0.5], [0.5, 0.5], (40, 40))
    far = np.cosh(np.linspace(0, 5, 1500))[:, None]
    step = np.linspace(0, 5, 1500)[1] / (2 * np.pi)

    def at(place, clock):
        """p' and velocity (time,), (2, time)."""
        r = np.linalg.norm(place)
        rate = RATES[name]((clock - 4 - r * far) / 0.6)
        p, along = (step * (part.sum(axis=0) - 0.5 * part[0]) for part in (rate, rate * far))
        return SMALL * p, SMALL * along * place[:2, None] / r

    p, velocity = np.zeros((time.size, line.areas.size)), np.zeros((time.size, line.areas.size, 3))
    for n, place in enumerate(line.places):
        p[:, n], along = at(place, time)
        velocity[:, n, :2] = along.T
    reader = lambda some: (1 + p[:, some], velocity[:, some], 1 / 1.4 + p[:, some])  # noqa: E731
    times, (found,) = fwh_plane.pressure_by_group(line, time, reader, observers, fwh.Stream(), still=True)
    for signal, clock, observer in zip(found, times, observers, strict=True):
        exact, _ = at(observer, clock)
        assert clock[0] == pytest.approx(np.linalg.norm(observer) - 0.5, abs=0.3)
        np.testing.assert_allclose(signal, exact, atol=0.005 * np.abs(exact).max())


def test_faults():
    surface = fwh.box([-1, -1, -1], [1, 1, 1], (4, 4, 4))
    assert surface.areas.sum() == pytest.approx(24) and np.abs(surface.areas @ surface.normals).max() < 1e-12
    n = surface.areas.size
    flow = {"rho": np.ones((20, n)), "velocity": np.zeros((20, n, 3)), "pressure": np.full((20, n), 1 / 1.4)}

    def ask(time, mach):
        return far_field(surface, time, **flow, observers=OBSERVERS, stream=fwh.Stream(mach))

    with pytest.raises(HiresxError, match=r"Mach number 1\.2"):
        ask(np.arange(20.0), 1.2)
    with pytest.raises(HiresxError, match="unequal distances"):
        ask(np.arange(20.0) ** 1.1, 0.0)
    with pytest.raises(HiresxError, match="less time than sound takes"):
        ask(0.01 * np.arange(20), 0.0)
    times, silent = ask(np.arange(20.0), 0.0)
    assert np.abs(silent).max() < 1e-15 and times.size == silent.shape[1]
    surface = fwh.box([-1, -1], [1, 1], (12, 12))
    assert surface.areas.sum() == pytest.approx(8) and np.abs(surface.areas @ surface.normals).max() < 1e-12
    for match, time, mach in (("Mach number -1", np.arange(20.0), -1.0), ("less time", 0.01 * np.arange(20), 0.0)):
        with pytest.raises(HiresxError, match=match):
            far_field(surface, time, *flow_of(20, 48), IN_PLANE, fwh.Stream(mach=mach))
    np.testing.assert_allclose(fwh.inside(surface, np.array([[0.2, 0.7, 0.0], [1.5, 0.0, 0.0]])), [1, 0], atol=0.05)


def flow_of(samples, places):
    return np.ones((samples, places)), np.zeros((samples, places, 3)), np.full((samples, places), 1 / 1.4)
