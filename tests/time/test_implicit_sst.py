"""The implicit integrator with Menter's model SST: a turbulent channel beside the ordinary differential equations of
its mean flow, sweeps of any cut and backend, the flat plate and its restart."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_bvp
from turbulent_channel import KAPPA, RE_TAU, U_TAU, all_sweeps, channel_of, reichardt, started_from

from hiresx import Simulation, load
from hiresx.grid import build
from hiresx.solver import Solver

BETA_STAR, A1 = 0.09, 0.31
# sigma_k, sigma_omega, beta, gamma of the layer at the wall and outside
INNER, OUTER = (0.85, 0.5, 0.075, 5 / 9), (1.0, 0.856, 0.0828, 0.44)
# where the equations begin, in wall units
FIRST = 0.05
VARIABLES = ("rho", "u", "p", "turbulent_k", "turbulent_g")


def mean_rates(y, unknowns, re_tau):
    """Derivatives in wall units of u, of k and its flux by diffusion, of g = omega^(-1/2) and its flux: the stress
    falls linearly, and the equations of Menter, Kuntz & Langtry (2003) are in balance."""
    _, k, flux_k, g, flux_g = unknowns
    k, g, stress, f1 = np.maximum(k, 1e-12), np.maximum(g, 1e-9), 1 - y / re_tau, np.ones_like(y)
    omega = g**-2
    turbulent, viscous = np.sqrt(k) / (BETA_STAR * omega * y), 500 / (y * y * omega)
    f2 = np.tanh(np.minimum(np.maximum(2 * turbulent, viscous) ** 2, 30))
    # where the shear, stress/(1 + nu_t), limits nu_t = a1 k/(shear F2)
    part = A1 * k / np.maximum(stress * f2, 1e-12)
    limited = np.where(part < 1, part / np.maximum(1 - part, 1e-9), 1e9)
    eddy = np.where(stress / (1 + k / omega) * f2 > A1 * omega, np.minimum(k / omega, limited), k / omega)
    shear = stress / (1 + eddy)
    for _ in range(4):  # F1 knows the slopes, and of these the fluxes know F1
        sigma_k, sigma_w, beta, gamma = (f1 * i + (1 - f1) * o for i, o in zip(INNER, OUTER, strict=True))
        slope_k, slope_g = flux_k / (1 + sigma_k * eddy), flux_g / (1 + sigma_w * eddy)
        cross = np.maximum(-4 * OUTER[1] * slope_k * slope_g / g, 1e-20)
        one = np.minimum(np.maximum(turbulent, viscous), 4 * OUTER[1] * k / (cross * y * y))
        f1 = np.tanh(np.minimum(one**4, 30))
    of_k = np.minimum(eddy * shear**2, 10 * BETA_STAR * k * omega) - BETA_STAR * k * omega
    of_omega = gamma * shear**2 - beta * omega**2 - 4 * (1 - f1) * OUTER[1] * slope_k * slope_g / g
    of_g = -0.5 * g**3 * of_omega - 3 * (1 + sigma_w * eddy) * slope_g**2 / g
    return np.stack([shear, slope_k, -of_k, slope_g, -of_g])


def mean_flow(re_tau: float):
    """u+, k+ and g+ as functions of y+. At the wall k is y^3.23, of which the exponent n has n (n - 1) = 6 beta*/beta,
    and omega is 6/(beta y^2)."""
    y, power, slope = np.geomspace(FIRST, re_tau, 500), 0.5 + np.sqrt(0.25 + 7.2), np.sqrt(0.075 / 6)
    eddy = KAPPA * y * (1 - 0.5 * y / re_tau) * (1 - np.exp(-y / 26)) ** 2
    k = 3.3 * (1 - np.exp(-y / 10)) ** 2 * (1 - 0.7 * y / re_tau) * (y / (y + 5))
    g = (6 / (0.075 * y * y) + 1 / (0.3 * KAPPA * y)) ** -0.5
    guess = np.stack([reichardt(y), k, np.gradient(k, y) * (1 + eddy), g, np.gradient(g, y) * (1 + 0.5 * eddy)])

    def ends(at_wall, in_middle):
        held = at_wall[0] - FIRST, at_wall[2] * FIRST - power * at_wall[1], at_wall[3] - slope * FIRST
        return np.array([*held, in_middle[2], in_middle[4]])

    found = solve_bvp(lambda y, w: mean_rates(y, w, re_tau), ends, y, guess, tol=1e-5, max_nodes=40000)
    assert found.success
    return lambda at: found.sol(at)[[0, 1, 3]]


def of_layer(x: np.ndarray) -> dict[str, np.ndarray]:
    """k of the logarithmic layer, and omega of the viscous and the logarithmic one."""
    y = np.maximum(RE_TAU * x, 1e-9)
    k = 1e6 * U_TAU**2 * 3.3 * (1 - np.exp(-y / 10)) ** 2 * (1 - 0.7 * x)
    omega = 1e6 * U_TAU**2 * (6 / (0.075 * y * y) + 1 / (0.3 * KAPPA * y))
    return {"turbulent_k": k, "turbulent_g": np.where(x > 0, omega**-0.5, 0)}


def started(n: int, where: str = "cpu", parts: int = 1) -> Solver:
    return started_from(channel_of("sst", n, drop=1e8), of_layer, where, parts)


@pytest.mark.slow
def test_a_turbulent_channel_is_that_of_its_equations():
    """Velocity, k and omega at all nodes, at the density that the iteration settles on, and nearer by refinement. What
    is left of u is the change of density."""
    off = []
    for n in (33, 65):
        solver = started(n)
        while not solver.integrator.converged:
            solver.step()
        assert solver.steps < 60
        x = solver.decomposition.blocks[0].x[0, 0, 1:]
        flow = {name: values[0, 0, 1:] for name, values in solver.primitives(0).items()}
        density = flow["rho"].mean()
        u, k, g = mean_flow(density * RE_TAU)(np.clip(x * density * RE_TAU, FIRST, density * RE_TAU))
        off.append((np.abs(flow["v"] / U_TAU / u - 1).max(), np.abs(flow["turbulent_k"] / (1e6 * U_TAU**2) - k).max(),
                    np.abs(flow["turbulent_g"] * 1e3 * U_TAU / g - 1).max()))  # fmt: skip
    assert off[0][0] < 1e-3 and off[1][0] < 6e-4
    assert off[0][1] < 6e-3 and off[1][1] < 2e-3  # of 4.3 at most
    assert off[0][2] < 3e-3 and off[1][2] < 8e-4


@cache
def swept(where: str, parts: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """What the sweeps make of the change by an explicit step, and the blocks that were assembled; on other
    backends the sweeps take those of the CPU."""
    return all_sweeps(started(33, where, parts), None if where == "cpu" else swept("cpu", 1)[1])


@pytest.mark.slow
@pytest.mark.parametrize(("where", "parts"), [("cpu", 2), ("emulated", 1)])
def test_sweeps_do_not_depend_on_the_cut_or_the_backend(where, parts):
    """With the same blocks: those at walls are differences over 1e-7 of a variable, which round-off changes by more."""
    (wanted, blocks), (found, own) = swept("cpu", 1), swept(where, parts)
    for variables in (slice(5), slice(5, 6), slice(6, None)):
        assert np.abs(wanted[variables]).max() > 0
        assert np.abs((found - wanted)[variables]).max() < 1e-12 * np.abs(wanted[variables]).max()
    if parts == 1:
        assert np.abs(own[0] - blocks[0]).max() < np.finfo(float).eps / 1e-7 * np.abs(blocks[0]).max()


@pytest.mark.slow
def test_blocks_are_good_enough_for_few_products():
    solver, products = started(33), 0
    for _ in range(18):
        solver.step()
        products += solver.integrator.report["products"]
        assert solver.integrator.report["linear_drop"] < 0.01
    assert solver.integrator.report["cfl"] > 500 and products < 98


@pytest.mark.slow
def test_norms_weigh_the_variables_by_their_sizes():
    """k is some hundreds, g of order 1."""
    system = started(33).system
    ones = system.vector()
    system.scatter(np.ones(7 * 33), ones)
    assert system.dot(ones, ones) == pytest.approx(33 * (5 + 1e-6 + 1), rel=1e-12)


@pytest.mark.slow
def test_a_step_leaves_a_quarter_of_g():
    """Of a change that takes more of it the half is taken that leaves 0.4; k may become negative."""
    solver = started(33)
    system, linear = solver.system, solver.integrator._linear
    x, change = system.vector(), system.vector()
    system.state(x)
    for variable, wanted in ((5, 1.0), (6, 0.5)):
        along = np.zeros((7, 33))
        along[variable, 9] = -1.2 * system.gather(x).reshape(7, 33)[variable, 9]
        system.scatter(along, change)
        assert linear.admissible_share(x, change) == wanted


@pytest.mark.slow
def test_the_plate_is_turbulent_and_goes_on_from_a_checkpoint(tmp_path):
    """By eight orders on a coarser grid than the preset's, and the same numbers from a checkpoint on."""
    given = ["grid.n=[35,25,1]", "grid.first_spacing=8e-6", "grid.leading_edge_spacing=1.6e-2", "implicit.drop=1e8"]
    through = Simulation(load("flat-plate-sa", "sst", overrides=given), "cpu", out=tmp_path / "through")
    report = through.run(progress=False)["implicit"]
    assert report["drop"] > 1e8 and through.step_count < 40
    first = load("flat-plate-sa", "sst", overrides=[*given, "time.steps=5"])
    Simulation(first, "cpu", out=tmp_path / "parts").run(progress=False)
    rest = Simulation(through.case, "cpu", out=tmp_path / "parts", restart=tmp_path / "parts")
    assert rest.run(progress=False)["implicit"] == report
    for name in VARIABLES:
        np.testing.assert_array_equal(rest.blocks[0].state(name), through.blocks[0].state(name))
    friction = through.case.function("friction")
    found = friction(through, **through.case.arguments(friction))
    assert found["cf"] == pytest.approx(0.0023226, rel=1e-3)  # of this grid; 0.0027 of fine ones


@pytest.mark.slow
def test_g_does_not_run_away_where_a_front_makes_k_negative():
    """On a sheared grid, from the uniform flow: g stays that of the decay in the free stream."""
    given = {"grid.n": [33, 33, 1], "grid.first_spacing": 8e-6, "grid.leading_edge_spacing": 1.6e-2,
             "initial": {"state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}}, "time.steps": 60, "implicit.drop": 1e10,
             "turbulence.initial": {"turbulent_k": 0.009, "turbulent_g": 1.0}}  # fmt: skip
    case = load("flat-plate-sa", "sst", overrides=given)
    grid = build(case.grid, case.directory)
    grid = replace(grid, blocks=tuple(replace(b, x=b.x - 0.5 * b.y) for b in grid.blocks))
    run = Simulation(case, "cpu", grid=grid)
    run.run(progress=False)
    k, g = (run.blocks[0].state(name) for name in VARIABLES[3:])
    assert k.min() < 0 and g.max() < 5.5


@pytest.mark.slow
def test_the_friction_of_a_plate_is_that_of_other_codes():
    """On the grid of the preset, within 1 % of CFL3D's and FUN3D's on their finest (docs/implicit.md)."""
    simulation = Simulation(load("flat-plate-sa", "sst"), "cpu")
    assert simulation.run(progress=False)["implicit"]["drop"] > 1e6
    friction = simulation.case.function("friction")
    found = friction(simulation, **simulation.case.arguments(friction))
    assert found["cf"] == pytest.approx(0.0026909, rel=0.01)
