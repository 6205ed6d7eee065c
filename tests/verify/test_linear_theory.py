"""The linear theories that runs are judged by, against what others found and against themselves."""

import numpy as np
import pytest

from hiresx import HiresxError
from hiresx.exact import plane_wave, shear_layer
from hiresx.exact.linear_interaction import behind, critical_angle, isotropic_amplification, vorticity_ratio

FLUXES = ("steger_warming", "van_leer", "hllc", "roe", "local_lax_friedrichs")


def euler(gamma=1.4):
    """Jacobian of the flux of a gas at rest: rho = 1, p = 1/gamma."""
    return np.array([[0, 1, 0], [0, 0, gamma - 1], [0, 1 / (gamma - 1), 0]])


@pytest.mark.parametrize("flux", FLUXES)
def test_jacobians_add_up_to_that_of_the_flux(flux):
    upwind, downwind = plane_wave.jacobians(flux, 1.4)
    assert upwind + downwind == pytest.approx(euler(), abs=1e-9)
    # What leaves to the right does not come from the right.
    assert np.linalg.eigvals(upwind).real.min() > -1e-6 and np.linalg.eigvals(downwind).real.max() < 1e-6


@pytest.mark.parametrize("flux", FLUXES)
def test_a_wave_loses_by_the_fifth_power_of_the_spacing(flux):
    # Over one wave length; the CFL number so small that time integration is not seen.
    lost = [1 - abs(plane_wave.amplitude_ratio(flux, points, 1.0, 1e-3)) for points in (32, 64)]
    assert np.log2(lost[0] / lost[1]) == pytest.approx(5, abs=0.05) and lost[1] > 0


def test_a_wave_that_is_upwinded_exactly_is_scalar_advection():
    """Roe's flux takes the sound wave as u_t + u_x = 0 with the left-biased interpolation: by sums written out."""
    points, cfl = 9.0, 0.1
    theta = 2 * np.pi / points
    value = sum(c * np.exp(1j * theta * n) for n, c in zip(range(-2, 3), (3, -20, 90, 60, -5), strict=True)) / 128
    slope = value * (1 - np.exp(-1j * theta))
    for n, c in ((1, 17 / 256), (2, -13 / 320), (3, 19 / 3840)):
        slope += c * (np.exp(1j * n * theta) - np.exp(-1j * n * theta))
    z = cfl * slope
    steps = round(2 * points / cfl)
    wanted = (1 - z + z**2 / 2 - z**3 / 6) ** steps * np.exp(1j * theta * 2 * points)
    assert plane_wave.amplitude_ratio("roe", points, 2.0, cfl) == pytest.approx(wanted, rel=1e-9)


def test_the_largest_rate_of_an_incompressible_layer_is_michalkes():
    found = shear_layer.growing_mode(0.01, 0.4446, 25.0)
    assert found.rate / 0.01 == pytest.approx(0.1897, abs=5e-5) and abs(found.frequency) < 1e-12
    # Walls near the layer hold it back, and so does compressibility.
    assert shear_layer.growing_mode(0.01, 0.4446, 4.0).rate < found.rate
    rates = [shear_layer.growing_mode(mach, 0.4, 10.0).rate / mach for mach in (0.2, 0.4, 0.6, 0.8)]
    assert (np.diff(rates) < 0).all()


def test_the_mode_obeys_the_linearised_equations_between_its_nodes():
    mach, a = 0.4, 0.4
    mode = shear_layer.growing_mode(mach, a, 10.0)
    y, h = np.linspace(-9.5, 9.5, 400), 1e-4
    rho, u, v, p = mode(y)
    dv, dp = ((mode(y + h) - mode(y - h))[n] / (2 * h) for n in (2, 3))
    w, mean = 1j * mode.rate, mach * np.tanh(y)
    assert w * u == pytest.approx(a * mean * u - 1j * mach / np.cosh(y) ** 2 * v + a * p, abs=1e-6)
    assert w * v == pytest.approx(a * mean * v - 1j * dp, abs=1e-6)
    assert w * p == pytest.approx(a * mean * p + a * u - 1j * dv, abs=1e-6)
    assert rho == pytest.approx(p) and np.abs(v).max() == pytest.approx(1, abs=0.01)
    assert mode(np.array([-10.0, 10.0]))[2] == pytest.approx(0, abs=1e-12)


def test_short_waves_do_not_grow():
    with pytest.raises(HiresxError, match=r"no wave of wavenumber 1\.3 grows"):
        shear_layer.growing_mode(0.4, 1.3, 10.0)


@pytest.mark.parametrize(
    ("angle", "ratios"),
    [(30, (1.845, 2.159, 1.531)), (45, (1.840, 2.293, 1.387)), (75, (1.613, 2.128, 1.099))],
)
def test_vorticity_behind_a_shock(angle, ratios):
    """Of waves without entropy, and with as much of it in phase and against it: values of an analysis of its own. The
    last angle is above the critical one, 61.36 degrees, where the sound decays."""
    found = [vorticity_ratio(1.5, angle, entropy=entropy) for entropy in (0.0, 1.0, -1.0)]
    assert found == pytest.approx(list(ratios), abs=6e-4)


def test_a_weak_shock_leaves_vorticity_as_it_is():
    assert vorticity_ratio(1.0001, 40.0) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("mach", "wanted"),
    [(1.2, (1.366, 1.154, 1.225)), (1.5, (1.602, 1.38, 1.454)), (2, (1.63, 1.669, 1.656)), (3, (1.466, 1.929, 1.775))],
)
def test_isotropic_turbulence_behind_a_shock(mach, wanted):
    """R11, R22 and energy, against an analysis of its own."""
    assert isotropic_amplification(mach) == pytest.approx(wanted, abs=1e-3)


def test_sound_decays_above_the_critical_angle():
    assert critical_angle(1.5) == pytest.approx(61.36, abs=5e-3)
    assert behind(1.5, 61.3).acoustic.imag == 0 < behind(1.5, 61.4).acoustic.imag
