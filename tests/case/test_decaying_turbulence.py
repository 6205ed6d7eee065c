"""The start of the case `decaying-turbulence`, the measurement that it is made of, and what a model makes of it."""

import numpy as np
import pytest

from hiresx import Simulation, load
from hiresx.exact import grid_turbulence
from hiresx.post.energy_spectrum import shells

LARGEST, NODES = 7, 24


@pytest.fixture(scope="module")
def start():
    """rho, u, v, w, p at the start on a grid that holds all products of its waves."""
    x = 2 * np.pi * np.arange(NODES) / NODES
    z, y, x = np.meshgrid(x, x, x, indexing="ij")
    return load("decaying-turbulence", overrides=[f"parameters.largest={LARGEST}"]).evaluate("initial", x, y, z)


def wanted(time=42):
    """Energies of the shells, by the measured spectrum, L = 9 cm and the sound speed 222 cm/s."""
    return grid_turbulence.spectrum(np.arange(1, LARGEST + 1) / 9, time) / 9 / 222**2


def test_it_starts_with_the_measured_spectrum(start):
    _, held = shells(start[1:4], 2 * np.pi * np.eye(3))
    np.testing.assert_allclose(held[1 : LARGEST + 1], wanted(), rtol=1e-12)
    assert held[0] < 1e-30 and held[LARGEST + 1 :].max() < 1e-30


def test_neither_divergence_nor_its_rate(start):
    """div u = 0, and of incompressible flow so is its rate: the Laplacian of p is - d2(u_i u_j)/dx_i dx_j."""
    rho, *u, p = start
    k = np.meshgrid(*[np.fft.fftfreq(NODES, 1 / NODES)] * 3, indexing="ij")[::-1]
    modes = [np.fft.fftn(part, norm="forward") for part in u]
    assert abs(sum(a * b for a, b in zip(k, modes, strict=True))).max() < 1e-15
    rate = sum(k[a] * k[b] * np.fft.fftn(u[a] * u[b], norm="forward") for a in range(3) for b in range(3))
    square = sum(part * part for part in k)
    inside = (square > 0) & (np.rint(np.sqrt(square)) <= LARGEST)
    np.testing.assert_allclose((square * np.fft.fftn(p, norm="forward"))[inside], -rate[inside], atol=1e-15)
    np.testing.assert_allclose(1.4 * p / rho, 1.0, rtol=1e-14)


def test_finer_grids_add_shorter_waves(start):
    """Those that both have are the same: a coarse run starts from the filtered flow of a fine one."""
    x = 2 * np.pi * np.arange(NODES) / NODES
    z, y, x = np.meshgrid(x, x, x, indexing="ij")
    coarse = load("decaying-turbulence", overrides=["parameters.largest=4"]).evaluate("initial", x, y, z)
    k = np.meshgrid(*[np.fft.fftfreq(NODES, 1 / NODES)] * 3, indexing="ij")
    held = np.rint(np.sqrt(sum(part * part for part in k))) <= 4
    for name, fine, rough in zip("uvw", start[1:4], coarse[1:4], strict=True):
        filtered = np.fft.ifftn(np.fft.fftn(fine) * held).real
        np.testing.assert_allclose(rough, filtered, atol=1e-15, err_msg=name)


@pytest.mark.parametrize(("time", "fluctuation"), list(zip(grid_turbulence.TIMES, (22.2, 12.8, 8.95), strict=True)))
def test_the_table_has_the_energy_that_was_measured(time, fluctuation):
    """By another instrument: within 4 %. And at the points of the table what the table says."""
    k = np.linspace(0.1, 20, 20000)
    assert np.trapezoid(grid_turbulence.spectrum(k, time), k) == pytest.approx(1.5 * fluctuation**2, rel=0.04)
    column = grid_turbulence.SPECTRA[:, 1 + grid_turbulence.TIMES.index(time)]
    found = grid_turbulence.spectrum(grid_turbulence.SPECTRA[column > 0, 0], time)
    np.testing.assert_allclose(found, column[column > 0], rtol=1e-12)


def test_the_measured_times_are_those_of_the_output():
    case = load("decaying-turbulence")
    unit = 9 / 222
    assert case.output.every_time == pytest.approx(grid_turbulence.elapsed_seconds(98) / unit, rel=1e-9)
    assert case.time.end == pytest.approx(grid_turbulence.elapsed_seconds(171) / unit, rel=1e-9)
    assert case.gas.reynolds == pytest.approx(9 * 222 / grid_turbulence.VISCOSITY)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "least", "most"), [("smagorinsky", 0.9, 1.3), ("none", 1.5, 2.0)])
def test_energy_left_98_meshes_behind_the_grid(model, least, most):
    """On 16^3 nodes, over the measured one: a model removes what none leaves."""
    size = ("grid.n=[16,16,16]", f"parameters.largest={LARGEST}")
    case = load("decaying-turbulence", overrides=[*size, f"turbulence.model={model}", "time.end=7.0171733"])
    run = Simulation(case, "cpu")
    run.run(progress=False)
    _, held = shells([run.blocks[0].state(name) for name in "uvw"], 2 * np.pi * np.eye(3))
    assert least < held[1 : LARGEST + 1].sum() / wanted(98).sum() < most
