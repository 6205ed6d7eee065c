"""The far field of sources in a uniform stream, from a box around them: amplitude and phase of the exact solution."""

import numpy as np
import pytest

from hiresx import HiresxError
from hiresx.post import fwh

OMEGA, SMALL = 2.0, 1e-6
OBSERVERS = np.array([[12.0, 0.0, 0.0], [-9.0, 3.0, 1.0], [0.0, 10.0, 0.0], [4.0, -6.0, 7.0], [-2.0, 1.0, -14.0]])


def monopole(x, mach):
    """phi and its derivatives (4, n) of a volume source in the stream M along x: phi, phi_x, phi_y, phi_z, all times
    exp(i w t); phi = exp(-i k R) / (4 pi r*)."""
    b2, k = 1 - mach**2, OMEGA
    star = np.sqrt(x[:, 0] ** 2 + b2 * (x[:, 1] ** 2 + x[:, 2] ** 2))
    radius = (star - mach * x[:, 0]) / b2
    phi = np.exp(-1j * k * radius) / (4 * np.pi * star)
    ex = -x[:, 0] / star**2 - 1j * k * (x[:, 0] / star - mach) / b2
    ey, ez = (-b2 * x[:, n] / star**2 - 1j * k * x[:, n] / star for n in (1, 2))
    return np.stack([phi, phi * ex, phi * ey, phi * ez])


def dipole(x, mach, step=1e-3):
    """d/dy of the monopole, by differences of fourth order."""
    at = [monopole(x + np.array([0.0, n * step, 0.0]), mach) for n in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)


def pressure(source, x, mach):
    """p' over exp(i w t)."""
    phi, phi_x, *_ = source(x, mach)
    return -(1j * OMEGA * phi + mach * phi_x)


def heard(source, mach, observers, lower=(-1.0, -0.8, -0.9), upper=(1.2, 0.9, 0.8), counts=(24, 20, 20)):
    """p' at the observers, over exp(i w t), from samples of the flow on a box; and its residual in time."""
    surface = fwh.box(lower, upper, counts)
    stream = fwh.Stream(mach)
    time = 0.2 * np.arange(190)
    turn = SMALL * np.exp(1j * OMEGA * time)[:, None]
    _, *gradient = source(surface.places, mach)
    p = (turn * pressure(source, surface.places, mach)).real
    velocity = np.stack([(turn * part).real for part in gradient], axis=-1)
    velocity[..., 0] += mach
    times, found = fwh.far_field(surface, time, 1 + p, velocity, stream.pressure + p, observers, stream)
    basis = np.stack([np.cos(OMEGA * times), -np.sin(OMEGA * times)], axis=1)
    fitted, *_ = np.linalg.lstsq(basis, found.T, rcond=None)
    return (fitted[0] + 1j * fitted[1]) / SMALL, np.abs(found.T - basis @ fitted).max() / np.abs(found).max()


@pytest.mark.parametrize("mach", [0.0, 0.3, 0.6, -0.4])
@pytest.mark.parametrize("source", [monopole, dipole], ids=lambda source: source.__name__)
def test_amplitude_and_phase_at_the_observers(source, mach):
    observers = OBSERVERS if source is monopole else OBSERVERS[1:]  # a dipole along y is not heard on the x axis
    found, residual = heard(source, mach, observers)
    exact = pressure(source, observers, mach)
    assert np.abs(np.abs(found / exact) - 1).max() < 0.01
    assert np.abs(np.degrees(np.angle(found / exact))).max() < 2.0
    assert residual < 1e-3


def test_the_error_is_that_of_the_quadrature():
    """Of second order: half the cells' size, a quarter of the error."""
    exact = pressure(monopole, OBSERVERS, 0.3)
    errors = []
    for n in (10, 20):
        found, _ = heard(monopole, 0.3, OBSERVERS, counts=(n, n, n))
        errors.append(np.abs(found / exact - 1).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)


def test_a_source_outside_the_surface_is_not_heard():
    """A closed surface without a source in it radiates nothing."""
    source = lambda x, mach: monopole(x + np.array([4.0, 0.0, 0.0]), mach)  # noqa: E731
    found, _ = heard(source, 0.3, OBSERVERS)
    assert np.abs(found).max() < 0.01 * np.abs(pressure(source, OBSERVERS, 0.3)).max()


def test_faults():
    surface = fwh.box([-1, -1, -1], [1, 1, 1], (4, 4, 4))
    assert surface.areas.sum() == pytest.approx(24) and np.abs(surface.areas @ surface.normals).max() < 1e-12
    n = surface.areas.size
    flow = {"rho": np.ones((20, n)), "velocity": np.zeros((20, n, 3)), "pressure": np.full((20, n), 1 / 1.4)}

    def ask(time, mach):
        return fwh.far_field(surface, time, **flow, observers=OBSERVERS, stream=fwh.Stream(mach))

    with pytest.raises(HiresxError, match=r"Mach number 1\.2"):
        ask(np.arange(20.0), 1.2)
    with pytest.raises(HiresxError, match="unequal distances"):
        ask(np.arange(20.0) ** 1.1, 0.0)
    with pytest.raises(HiresxError, match="less time than sound takes"):
        ask(0.01 * np.arange(20), 0.0)
    times, silent = ask(np.arange(20.0), 0.0)
    assert np.abs(silent).max() < 1e-15 and times.size == silent.shape[1]
