"""The far field of sources in a uniform stream, from a box around them: amplitude and phase of the exact solution."""

import numpy as np
import pytest
from acoustic_sources import OBSERVERS, OMEGA, SMALL, dipole, fitted, monopole, pressure

from hiresx import HiresxError
from hiresx.post import fwh


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
