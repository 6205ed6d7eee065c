"""The inlet at Mach 4: its exact flow, and both shocks of the implicit integrator's steady flow beside it."""

import numpy as np
import pytest

from hiresx import Simulation, load
from hiresx.exact import oblique_shock
from hiresx.grid import build

GAMMA = 1.4


@pytest.fixture(scope="module")
def shocks():
    first = oblique_shock(4.0, 30.0, GAMMA)
    return first, oblique_shock(first.mach, 15.0, GAMMA)


def exact(case, block):
    return dict(zip(("rho", "u", "v", "w", "p"), case.evaluate("exact", block.x, block.y, block.z, 0.0), strict=True))


def test_exact_flow_keeps_mass_and_enthalpy():
    case = load("inlet-30", "fine")
    (block,) = build(case.grid, case.directory).blocks
    state = exact(case, block)
    x, y = block.x[0], block.y[0]
    enthalpy = 3.5 * state["p"] / state["rho"] + 0.5 * (state["u"] ** 2 + state["v"] ** 2)
    np.testing.assert_allclose(enthalpy, 10.5, rtol=1e-12)
    # What enters below the lip passes every x; the sum does not know where in a cell a shock is.
    mass = np.trapezoid((state["rho"] * state["u"])[0], y, axis=0)
    np.testing.assert_allclose(mass, 4.0 * case.grid.height, rtol=0.02)
    walls = (state["v"] / state["u"])[0]
    np.testing.assert_allclose(walls[0, x[0] > 0.01], np.tan(np.radians(30)), rtol=1e-12)
    np.testing.assert_allclose(walls[-1, x[0] > 1.01], np.tan(np.radians(15)), rtol=1e-12)


def crossings(block, values, low, high):
    """Points (n, 2) at which the lines of one i between x = low and high cross the middle value first from below."""
    found = []
    for i in np.flatnonzero((block.x[0, 0] > low) & (block.x[0, 0] < high)):
        column, y = values[0, :, i], block.y[0, :, i]
        (sides,) = np.nonzero(column[:-1] * column[1:] < 0)
        j = sides[0]
        share = column[j] / (column[j] - column[j + 1])
        found.append((block.x[0, 0, i], y[j] + share * (y[j + 1] - y[j])))
    return np.array(found)


def slope(points):
    return np.degrees(np.arctan(np.polyfit(*points.T, 1)[0]))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["quick", "fine"])
def test_shocks_and_states_of_the_inlet(shocks, preset):
    """All within 1 %, but for density and Mach number on 52 x 16 cells."""
    case = load("inlet-30", preset)
    simulation = Simulation(case, "cpu")
    record = simulation.run(progress=False)
    assert record["implicit"]["drop"] > 1e10
    (block,) = simulation.blocks
    first, second = shocks
    p, (p1, p2, p3) = block.state("p"), np.cumprod([1 / GAMMA, first.pressure, second.pressure])
    # The first one from below is the shock of the ramp before the lip, that of the cowl behind it.
    assert slope(crossings(block, p - 0.5 * (p1 + p2), 0.35, 0.95)) == pytest.approx(first.angle, rel=0.01)
    assert 30 - slope(crossings(block, p - 0.5 * (p2 + p3), 1.06, 1.33)) == pytest.approx(second.angle, rel=0.01)

    spacing = np.diff(block.x[0, 0]).max()
    below = block.x[0] * case.grid.height - block.y[0] > 4 * spacing * 1.42  # sec of about 45 degrees
    descent = np.tan(np.radians(second.angle - 30))
    above = block.y[0] - case.grid.height + (block.x[0] - 1) * descent
    between = below & (block.x[0] > 0.2) & (above < -4 * spacing)
    behind = (block.x[0] > 1) & (above > 4 * spacing)
    assert between.sum() > 100
    assert behind.sum() > 10
    assert np.median(p[0][between]) == pytest.approx(p2, rel=0.01)
    assert np.median(p[0][behind]) == pytest.approx(p3, rel=0.01)
    rho, u, v = (block.state(name)[0] for name in ("rho", "u", "v"))
    mach = block.state("mach")[0]
    for region, density, expected in (
        (between, first.density, first.mach),
        (behind, first.density * second.density, second.mach),
    ):
        within = 0.025 if preset == "quick" else 0.01
        assert np.median(rho[region]) == pytest.approx(density, rel=within)
        assert np.median(mach[region]) == pytest.approx(expected, rel=within)
    mass = np.trapezoid(rho * u, block.y[0], axis=0)
    assert mass[-1] == pytest.approx(mass[0], rel=0.01)
    total = 3.5 * p[0] / rho + 0.5 * (u * u + v * v)
    assert np.trapezoid(rho * u * total, block.y[0], axis=0)[-1] / mass[-1] == pytest.approx(10.5, rel=0.005)
