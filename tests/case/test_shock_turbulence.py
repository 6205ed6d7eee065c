"""The inflow of the case `shock-turbulence`, and what the shock makes of it on a coarse grid."""

import numpy as np
import pytest

from hiresx import Simulation, load

SMALL = ("parameters.peak=1.5", "parameters.largest=3.5")


def test_the_inflow_is_solenoidal_isotropic_and_frozen():
    """On the points that resolve its modes: mean squares of u, v and w over its period, the divergence by FFT, and the
    face that sees at the time t what is at x - mach t at the start."""
    case = load("shock-turbulence", overrides=SMALL)
    n, mach = 16, case.parameters["mach"]
    along, across = 4 * np.pi * np.arange(2 * n) / (2 * n) - 4 * np.pi, 2 * np.pi * np.arange(n) / n
    z, y, x = np.meshgrid(across, across, along, indexing="ij")
    _, *velocity, _ = case.evaluate("initial", x, y, z)
    u = np.stack([velocity[0] - mach, *velocity[1:]])
    assert (x < 0).all() and np.mean(u**2, axis=(1, 2, 3)) == pytest.approx([(0.02 * mach) ** 2] * 3, rel=1e-3)
    waves = np.meshgrid(*(np.fft.fftfreq(m, 1 / m) / long for m, long in ((n, 1), (n, 1), (2 * n, 2))), indexing="ij")
    divergence = sum(k * np.fft.fftn(part) for k, part in zip(waves[::-1], u, strict=True))
    assert abs(divergence).max() < 1e-10 * abs(np.fft.fftn(u[0])).max()
    t, plane = 0.7, np.zeros((n, n, 1))
    face = case.evaluate("inflow", plane, y[:, :, :1], z[:, :, :1], t)
    there = case.evaluate("initial", plane - mach * t, y[:, :, :1], z[:, :, :1])
    for name, found, wanted in zip("uvw", face[1:4], there[1:4], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13, err_msg=name)


@pytest.mark.slow
def test_the_shock_amplifies_it_as_linear_theory_says(tmp_path):
    """On a grid coarser than that of the preset `coarse`, with few modes: within 5 %; the shock stays at x = 0."""
    pytest.importorskip("xarray", reason="pip install '.[post]'")
    from hiresx.post import amplification

    case = load("shock-turbulence", overrides=(*SMALL, "grid.n=[64,24,24]", "time.end=18.378"))
    Simulation(case, "cpu", out=tmp_path / "run").run(progress=False)
    summary = amplification(tmp_path / "run").summary
    assert abs(summary["shock_at_x"]) < 0.16 and summary["mach"] == pytest.approx(1.5, rel=0.01)
    for row in summary["amplification"]:
        assert abs(row["difference"]) < 0.05, row
