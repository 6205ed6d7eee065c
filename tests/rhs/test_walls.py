"""No-slip walls: their ghosts, their temperature, what passes them, and how well flows between them come out."""

import numpy as np
import pytest
from wall_sums import total

from hiresx import Simulation, kernels
from hiresx.case import Case, load
from hiresx.device import backend
from hiresx.exact import couette
from hiresx.grid import Block, Grid
from hiresx.grid.blocks import FACES, direction, side
from hiresx.solver import Solver

GAMMA = 1.4
P = 1 / GAMMA
FLUXES = kernels.choices("flux")
SUTHERLAND = {"law": "sutherland", "sutherland_temperature": 0.4}


def viscosity(T):
    return T**1.5 * 1.4 / (T + 0.4)


# --- what the kernels write


def between_walls(n, temperature=None, precision="fp64", **wall):
    """A box with no-slip walls all around: n nodes (i, j, k)."""
    wall = {"type": "no-slip-wall", "faces": "all"} | ({"temperature": temperature} if temperature else {}) | wall
    upper = [1.0 if m > 1 else 0.0 for m in n]
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": upper},
            "gas": {"reynolds": 100.0},
            "time": {"steps": 1, "cfl": 0.5},
            "scheme": {"precision": precision},
            "initial": {"state": {"rho": 1.0, "p": P}},
            "boundary": [wall],
        }
    )


def behind(face, n, values, where="cpu", precision="fp64"):
    """(rho, u, v, w, p) at the ghosts -3..-1, the node on `face` and three inwards, (5, 7), along a line through its
    middle. `values(s)`: the same as functions of the distance from the face, the velocity as (normal, tangential)."""
    d = direction(face)
    tangent = next(e for e in range(3) if e != d and n[e] > 1)
    solver = Solver(between_walls(n, precision=precision), backend(where))
    (state,) = solver.states
    x = (state.block.x, state.block.y, state.block.z)[d]
    rho, normal, along, p = values(x if side(face) < 0 else 1 - x)
    velocity = [0 * x] * 3
    velocity[d], velocity[tangent] = -side(face) * normal, along
    solver.set_state(0, rho, *velocity, p)
    (condition,) = (c for c in solver.conditions if c.patch.face == face)
    condition.node()
    condition.ghost()
    q = solver.backend.to_host(state.q).astype(float)
    middle = [n[e] // 2 + state.halo[e] for e in range(3)]
    line = np.arange(-3, 4)
    middle[d] = state.halo[d] + (line if side(face) < 0 else n[d] - 1 - line)
    q = q[:, middle[2], middle[1], middle[0]]
    u = q[1:4] / q[0]
    pressure = (GAMMA - 1) * (q[4] - 0.5 * q[0] * (u * u).sum(axis=0))
    return np.stack([q[0], -side(face) * u[d], u[tangent], pressure])


@pytest.mark.parametrize(("where", "precision"), [("cpu", "fp64"), ("cpu", "fp32"), ("emulated", "fp64")])
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("dimensions", [2, 3])
def test_temperature_and_shear_go_on_behind_a_wall(face, dimensions, where, precision):
    """A parabola of T with the wall's slope 0 and one of the tangential velocity go on as they are; the pressure is
    even and the normal velocity odd."""
    n = (9, 8, 7) if dimensions == 3 else (9, 8, 1)
    if n[direction(face)] == 1:
        pytest.skip("two dimensions have no such face")

    def smooth(s):
        T, p = 1.2 + 0.1 * s * s, P * (1 + 0.05 * s)
        return GAMMA * p / T, 0.2 * s * s, 0.3 * s + 0.2 * s * s, p

    rho, normal, along, p = behind(face, n, smooth, where, precision)
    s = np.arange(-3, 4) / (n[direction(face)] - 1)
    close = {"atol": 1e-12 if precision == "fp64" else 3e-6, "rtol": 0}
    np.testing.assert_allclose(along, 0.3 * s + 0.2 * s * s, **close)
    np.testing.assert_allclose(normal, 0.2 * s * abs(s), **close)
    np.testing.assert_allclose(p[3:], P * (1 + 0.05 * s[3:]), **close)
    np.testing.assert_allclose(p[:3], p[:3:-1], **close)
    np.testing.assert_allclose(GAMMA * p / rho, 1.2 + 0.1 * s * s, **close)


@pytest.mark.parametrize("face", FACES[:4])
def test_the_order_of_an_adiabatic_walls_temperature(face):
    """The polynomial through three nodes and with no slope at the wall is exact for cubics: T of order 4, its slope of
    order 3. One through two nodes would be of order 3."""

    def smooth(s):
        T = 1.3 + 0.2 * s * s - 0.3 * s**3 + 0.2 * s**4
        return GAMMA * P / T, 0 * s, 0 * s, P + 0 * s

    errors = []
    for nodes in (9, 17, 33):
        n = [9, 9, 1]
        n[direction(face)] = nodes
        rho, _, _, p = behind(face, n, smooth)
        errors.append(abs(GAMMA * p[3] / rho[3] - 1.3))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert errors[0] < 5e-4 and (orders > 3.6).all(), (errors, orders)


@pytest.mark.parametrize("profile", [(1.0, 8.0, 8.5, 8.7), (8.0, 1.0, 1.0, 1.0), (1.0, 1.0, 6.0, 6.0)])
def test_ghosts_stay_in_a_sane_range_where_a_layer_is_not_resolved(profile):
    def steep(s):
        nodes = np.minimum(np.rint(8 * s).astype(int), 3)
        T, along = np.array(profile)[nodes], np.array([0.0, 5.0, 5.1, 5.1])[nodes]
        return GAMMA * P / T, 0 * s, along, P + 0 * s

    rho, _, along, p = behind("jmin", (9, 9, 1), steep)
    T = GAMMA * p / rho
    assert (T[:3] >= 0.5 * T[3:].min() * (1 - 1e-12)).all() and (T[:3] <= 2 * T[3:].max() * (1 + 1e-12)).all()
    assert abs(along[:3]).max() <= 2 * 5.1 + 0.5 * np.sqrt(T[3]) + 1e-12
    np.testing.assert_allclose(p[[0, 1, 2, 4, 5, 6]], P)


# --- what passes a wall


def bent(n=(15, 13, 1)):
    """A box whose sides and inner lines are curved."""
    x, y, z = np.meshgrid(*(np.linspace(0, 1, m) for m in n), indexing="ij")
    x, y = x + 0.08 * np.sin(3 * y + x) + 0.04 * z, y + 0.1 * np.sin(4 * x) * (1 - 0.4 * y) + 0.05 * z
    if n[2] == 1:
        z = 0 * z
    return Grid((Block("bent", *(np.ascontiguousarray(c.transpose(2, 1, 0)) for c in (x, y, z)), {}),), period=({},))


def closed(grid, velocity=(0.0, 0.0, 0.0), temperature=None):
    wall = {"type": "no-slip-wall", "faces": "all", "velocity": list(velocity)}
    case = {
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},
        "gas": {"reynolds": 200.0},
        "time": {"steps": 60, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [wall | ({"temperature": temperature} if temperature else {})],
    }
    return Case.from_dict(case), grid


@pytest.mark.parametrize("temperature", [None, 1.5])
@pytest.mark.parametrize("n", [(15, 13, 1), (9, 8, 9)], ids=["2-D", "3-D"])
def test_a_closed_vessel_keeps_its_mass(n, temperature):
    case, grid = closed(bent(n), temperature=temperature)

    def blast(x, y, z):
        inside = (x - 0.4) ** 2 + (y - 0.5) ** 2 < 0.05
        return np.where(inside, 2.0, 1.0), 0.5, -0.3, 0.0, np.where(inside, 8.0, 1.0) * P

    simulation = Simulation(case, "cpu", initial=blast, grid=grid)
    before = total(simulation.solver)
    simulation.run(progress=False)
    assert simulation.step_count == 60
    assert abs(total(simulation.solver) / before - 1) < 1e-13


@pytest.mark.parametrize("plan", ["pencils", "decomposed"])
@pytest.mark.parametrize("temperature", [None, 1.0])
def test_a_flow_that_moves_with_its_walls_stays(plan, temperature):
    """However the walls are bent: nothing is sheared and what passes them is what their velocity carries."""
    velocity = (0.4, -0.3, 0.2)
    case, grid = closed(bent((9, 8, 9)), velocity=velocity, temperature=temperature)
    solver = Solver(case, backend("cpu"), grid=grid, plan=plan)
    solver.initialize(lambda x, y, z: (1.0, *velocity, P))
    before = solver.backend.to_host(solver.states[0].q).copy()
    for _ in range(10):
        solver.step()
    (state,) = solver.states
    assert abs(state.interior(solver.backend.to_host(state.q)) - state.interior(before)).max() < 1e-13


def test_both_plans_and_the_emulated_threads_agree_between_walls():
    case, grid = closed(bent(), temperature=1.4)
    found = []
    for where, plan in (("cpu", "pencils"), ("cpu", "decomposed"), ("emulated", "decomposed")):
        solver = Solver(case, backend(where), grid=grid, plan=plan)
        solver.initialize(
            lambda x, y, z: (1 + 0.2 * np.sin(5 * x), 0.4 * y, 0.3 * x, 0.0, P * (1 + 0.3 * np.cos(4 * y)))
        )
        for _ in range(5):
            solver.step()
        found.append(solver.states[0].interior(solver.backend.to_host(solver.states[0].q)))
    for other in found[1:]:
        assert abs(other - found[0]).max() < 1e-12


def test_mass_fluxes_are_summed_behind_walls_with_friction_alone():
    data = between_walls((9, 9, 1)).document()
    data["boundary"] = [{"faces": ["jmin"], "type": "no-slip-wall"}, {"faces": ["jmax"], "type": "slip-wall"},
                        {"faces": ["imin", "imax"], "type": "characteristic-outflow", "pressure": P}]  # fmt: skip
    solver = Solver(Case.from_dict(data), backend("cpu"))
    assert solver._conditions.faces_with_flux_sums(solver.states[0]) == {"jmin"}


# --- flows between walls


def couette_errors(flux, nodes, adiabatic, weights="js"):
    """Largest errors of u and T, relative to the wall's speed and the upper wall's temperature, with Sutherland's law.
    From the exact profiles, so that what decays is of the size of these errors: at the end 5 % of it (with the
    adiabatic wall 13 %) is left."""
    speed, lower, upper, re = 1.5, None if adiabatic else 1.0, 1.2, 20.0
    wall = {"type": "no-slip-wall", "faces": ["jmin"]} | ({} if adiabatic else {"temperature": lower})
    top = {"type": "no-slip-wall", "faces": ["jmax"], "temperature": upper, "velocity": [speed, 0.0, 0.0]}
    sides = {"type": "periodic", "faces": ["imin", "imax"]}
    grid = {"generator": "box", "n": [7, nodes, 1], "lower": [0, 0, 0], "upper": [0.5, 1, 0], "periodic": ["x"]}
    case = Case.from_dict(
        {
            "grid": grid,
            "gas": {"reynolds": re, "viscosity": SUTHERLAND},
            "scheme": {"flux": flux, "weights": weights},
            "time": {"end": 12.0 if adiabatic else 6.0, "cfl": 1.0},
            "initial": {"state": {"rho": 1.0, "p": P}},
            "boundary": [sides, wall, top],
        }
    )

    def exact(y):
        return couette(y, speed, lower, upper, GAMMA, case.gas.prandtl, viscosity)[:2]

    def initial(x, y, z):
        u, T = exact(y)
        return 1 / T, u, 0.0, 0.0, P

    simulation = Simulation(case, "cpu", initial=initial)
    simulation.run(progress=False)
    block = simulation.blocks[0]
    u, T = exact(block.y)
    return np.array([abs(block.state("u") - u).max() / speed, abs(block.state("T") - T).max() / upper])


# A set of kernels for each flux, of which the default stands for the others among the quick tests.
FLUX_BY_FLUX = [
    pytest.param(flux, marks=() if flux in ("steger_warming", "hllc") else pytest.mark.slow) for flux in FLUXES
]


@pytest.mark.parametrize("adiabatic", [False, True], ids=["isothermal", "adiabatic"])
@pytest.mark.parametrize("flux", FLUX_BY_FLUX)
@pytest.mark.slow
def test_every_flux_sees_couette_flow_to_third_order(flux, adiabatic):
    """Errors of u and T of third order at least. On 17 nodes HLLC, which does not see that the two states at a half
    point differ, has 6e-7 of u; what the others have more comes of the difference of the two states (next test)."""
    coarse, fine = (couette_errors(flux, n, adiabatic) for n in (17, 33))
    assert (np.log2(coarse / fine) > 3).all(), (coarse, fine)
    assert (coarse < [1e-5, 5e-6]).all(), coarse
    assert flux not in ("hllc", "roe") or coarse[0] < 1e-6, coarse


@pytest.mark.slow
@pytest.mark.parametrize("flux", ["steger_warming", "local_lax_friedrichs"])
def test_on_nine_nodes_it_is_the_weights_that_differ_and_not_the_wall(flux):
    """There the error of u with these fluxes is 20 and 28 times that of HLLC, and a third of that with the ideal
    weights or those of Borges et al.: Jiang and Shu's are far from ideal on so few nodes."""
    js, z, ideal = (couette_errors(flux, 9, False, weights) for weights in ("js", "z", "linear"))
    assert z[0] < 0.4 * js[0] and ideal[0] < 0.4 * js[0], (js, z, ideal)
    assert (z < [8e-5, 4e-5]).all(), z


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [None, 1.0], ids=["adiabatic", "isothermal"])
@pytest.mark.parametrize("flux", FLUX_BY_FLUX)
def test_impulsive_starts_at_walls_survive(flux, temperature):
    """Along walls at Mach 5, where the layer begins within a cell, and against one at Mach 3."""
    case = load("couette", overrides=["grid.n=[7,31,1]"])
    wall = {"type": "no-slip-wall"} | ({"temperature": temperature} if temperature else {})
    base = case.model_dump(exclude={"parameters", "boundary"}) | {
        "gas": {"reynolds": 1e5, "viscosity": SUTHERLAND},
        "scheme": {"flux": flux},
    }
    sides = {"type": "periodic", "faces": ["imin", "imax"]}
    along = Case.from_dict(
        base | {"time": {"end": 0.3, "cfl": 0.5}, "boundary": [sides, wall | {"faces": ["jmin", "jmax"]}]}
    )
    against = Case.from_dict(
        base
        | {
            "time": {"end": 0.3, "cfl": 0.5},
            "boundary": [sides, wall | {"faces": ["jmax"]}, {"type": "supersonic-outflow", "faces": ["jmin"]}],
        }
    )
    for start, u, v in ((along, 5.0, 0.0), (against, 0.0, 3.0)):
        simulation = Simulation(start, "cpu", initial=lambda x, y, z, u=u, v=v: (1.0, u, v, 0.0, P))
        simulation.run(progress=False)
        block = simulation.blocks[0]
        assert simulation.time == pytest.approx(0.3)
        assert block.state("rho").min() > 0.1 and block.state("p").min() > 0.1 * P
