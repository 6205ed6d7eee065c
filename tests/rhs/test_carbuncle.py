"""Strong shocks along grid lines: what HLLC and Roe's flux make of small noise there, and HLLC-LM, the rotated flux and
the H-correction do not; and that their contacts are as sharp, and that slow flow keeps more of its energy by
HLLC-LM."""

import carbuncle
import numpy as np
import pytest
import robustness_runs
from carbuncle import box, quirk

from hiresx.device import backend
from hiresx.solver import Solver
from hiresx.verify.checks import CheckRun, CompletedRun

P = carbuncle.P
CURES = pytest.mark.parametrize("flux", ["hllc_lm", "rotated_rhll", "roe_h"])


@pytest.mark.slow
def test_noise_grows_at_a_shock_without_a_cure():
    assert quirk("hllc") > 0.1
    assert quirk("roe") > 0.1
    assert quirk("roe", odd_even=True) > 0.1


@pytest.mark.slow
@CURES
def test_noise_does_not_grow_at_a_shock(flux):
    assert quirk(flux) < 0.005
    assert quirk(flux, odd_even=True) < 0.001


@pytest.mark.slow
@CURES
def test_the_cure_is_the_same_in_its_cuda_form(flux):
    emulated, cpu = (quirk(flux, where, 30) for where in ("emulated", "cpu"))
    assert emulated == pytest.approx(cpu, rel=1e-6)


@pytest.mark.slow
@CURES
def test_the_stagnation_line_of_a_blunt_body(flux):
    """Rayleigh's pressure at the Mach 20 cylinder, and symmetry: by Roe's flux the pressure is 55 % off on this grid,
    and the density is not symmetric by 29 % of its largest value."""
    finished = carbuncle.cylinder(flux, 25)
    assert abs(robustness_runs.pitot_error(finished)) < 0.02
    assert carbuncle.asymmetry(finished) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cure", "without", "factor"),
    [("hllc_lm", "hllc", 1.01), ("rotated_rhll", "roe", 1.1), ("roe_h", "roe", 1.01)],
)
def test_contacts_stay_sharp(cure, without, factor):
    """In Sod's tube about as without the cure, and in a layer at rest but for what the weights leave of its jumps.
    Velocities beside a contact that moves differ a little, so that the rotated flux takes some of HLL there."""
    found = {}
    for flux in (without, cure):
        run = CompletedRun(CheckRun("sod", None, (f'scheme.flux="{flux}"',)), "cpu")
        found[flux] = abs(run.state("rho") - run.exact("rho")).mean()
    assert found[cure] < factor * found[without]
    everywhere = [{"faces": "all", "type": "periodic"}]
    solver = Solver(box((16, 16, 1), everywhere, "xy", scheme={"flux": cure}), backend("cpu"))
    j = np.arange(16)[:, None] * np.ones(16)
    layer, rho = np.where(j < 8, 0.5, -0.5), np.where(j < 8, 1.0, 2.0)
    solver.set_state(0, rho, layer, 0.0, 0.0, P)
    solver.complete_state()
    for _ in range(20):
        solver.step()
    state = solver.primitives(0)
    np.testing.assert_allclose(state["u"][0], layer, rtol=0, atol=1e-8)
    np.testing.assert_allclose(state["rho"][0], rho, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_slow_flow_keeps_its_energy():
    """Vortices at Mach 0.01 on 16 x 16 nodes, half a turn: HLLC takes a quarter of their energy."""
    lost = {}
    for flux in ("hllc", "hllc_lm"):
        everywhere = [{"faces": "all", "type": "periodic"}]
        solver = Solver(box((16, 16, 1), everywhere, "xy", scheme={"flux": flux}), backend("cpu"))
        k, mach, block = 2 * np.pi / 16, 0.01, solver.states[0].block
        x, y = k * np.asarray(block.x), k * np.asarray(block.y)
        u, v = mach * np.sin(x) * np.cos(y), -mach * np.cos(x) * np.sin(y)
        solver.set_state(0, 1.0, u, v, 0.0, P + mach**2 / 4 * (np.cos(2 * x) + np.cos(2 * y)))
        solver.complete_state()
        end = 16 * 0.1 / mach
        while solver.time < end:
            solver.advance(1000, end)
        q = solver.primitives(0)
        lost[flux] = 1 - float((q["rho"] * (q["u"] ** 2 + q["v"] ** 2)).mean() / (u * u + v * v).mean())
    assert 0 < lost["hllc_lm"] < 0.2 * lost["hllc"], lost
