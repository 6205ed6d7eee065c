"""What is integrated over volumes and walls: weights, balances of fluxes, forces, friction and heat."""

import math

import numpy as np
import pytest
from watched_runs import P, bang, flux_sums, ran, tables, watched

from hiresx import Case, load
from hiresx.decomposition import decompose
from hiresx.decomposition.quadrature import (
    BESIDE,
    PHYSICAL,
    REACH,
    SHARED,
    block_weights,
    corrections,
    ends,
    face_weights,
)
from hiresx.grid import build
from hiresx.grid.blocks import FACES
from hiresx.output.fields.differences import Metrics
from hiresx.output.watch import watched_surface

# --- integrals


def test_gregory_s_weights():
    # Fröberg (1969): the first weights of the formula with fifth differences
    known = [19087 / 60480, 84199 / 60480, 18869 / 30240, 37621 / 30240, 55031 / 60480, 61343 / 60480]
    np.testing.assert_allclose(1 + corrections(20), known, rtol=1e-14)
    for n in range(2, 12):
        weights = np.ones(n)
        weights[: len(corrections(n))] += corrections(n)
        weights[n - len(corrections(n)) :] += corrections(n)[::-1]
        for power in range(min(n, 6)):
            exact = (n - 1) ** (power + 1) / (power + 1)
            assert weights @ np.arange(n) ** power == pytest.approx(exact, rel=1e-12), (n, power)


def test_weights_of_a_face_are_those_of_the_block_along_it():
    """A face some of whose lines end where the block is joined, and others at a wall. Along k the grid is periodic."""
    case = load(
        "planar-jet", preset="quick",
        overrides=[
            "grid.points_per_height=12", "grid.boundary_layer_points=2", "grid.exit_spacing=0.08", "grid.nk=12",
        ],
    )  # fmt: skip
    decomposition = decompose(case, build(case.grid, case.directory))
    first, mixed = {PHYSICAL: 1 + corrections(REACH)[0], SHARED: 0.5, BESIDE: 1.0}, 0
    for b, block in enumerate(decomposition.blocks):
        weights = face_weights(decomposition, b, "kmin")
        assert np.array_equal(weights, block_weights(decomposition, b)[0])
        for d, lines in enumerate((weights.T, weights)):
            if block.size[d] <= 2 * REACH:
                continue  # no node of the line is away from both ends
            for at in (0, -1):
                kinds = ends(decomposition, b, FACES[2 * d - at])[0]
                mixed += len(np.unique(kinds)) > 1
                expected = np.array([first[kind] for kind in kinds])
                assert lines[at] / lines[block.size[d] // 2] == pytest.approx(expected)
    assert mixed


def test_integrals_over_a_wavy_block_are_of_high_order():
    errors = []
    for n in (16, 32, 64):
        case = Case.from_dict(tables((n, n, 1), amplitude=0.05))
        decomposition = decompose(case, build(case.grid, None))
        b = decomposition.blocks[0]
        m = Metrics(b.x, b.y, b.z)
        volume = 1 / (m.slope[0][2] * m.slope[1][1] - m.slope[0][1] * m.slope[1][2])
        found = (block_weights(decomposition, 0) * volume * np.exp(b.x) * np.cos(b.y)).sum()
        errors.append(abs(found - (math.exp(2) - 1) * math.sin(1)))
    assert np.log2(np.divide(errors[:-1], errors[1:])).min() > 4.5, errors


def test_integrals_of_a_periodic_vortex_are_constant_to_round_off():
    case = load("isentropic-vortex", preset="wavy", overrides=["conservation.every=5"])
    simulation, found = ran(case)
    totals = found["conservation"]
    assert len(totals["step"]) >= 14 and simulation.time == pytest.approx(2.0)
    for name in ("mass", "momentum_x", "momentum_y", "energy"):
        assert np.ptp(totals[name]) < 2e-14 * abs(totals[name][0]), name
    assert totals["mass"][0] == pytest.approx(98.2417, abs=1e-4)


@pytest.mark.parametrize("lengths", [(24, 14, 1), (9, 8, 8)], ids=["2-D", "3-D"])
def test_monitors_see_that_closed_walls_keep_the_mass(lengths):
    wall = [{"type": "no-slip-wall", "faces": "all", "temperature": 1.2}]
    upper = (2.0, 1.0, 1.0 * (lengths[2] > 1))
    changes = {"boundary": wall, "gas": {"reynolds": 100.0}, "conservation": {"every": 5}}
    mass = ran(Case.from_dict(tables(lengths, upper, 0.05, **changes)), initial=bang)[1]["conservation"]["mass"]
    assert len(mass) >= 8 and np.ptp(mass) < 1e-13 * mass[0]


SPEED = 2.0


def carried(x, y, z, t):
    """A density wave carried along by a uniform flow: an exact solution."""
    return 1 + 0.1 * np.sin(1.5 * np.pi * (x - SPEED * t) + 0.7) * (1 + 0.5 * np.cos(np.pi * y)), SPEED, 0.0, 0.0, P


def through(n: int, **changes) -> Case:
    boundary = [
        {"faces": ["imin"], "type": "profile-inflow", "function": "carried", "steady": False},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        {"faces": ["jmin", "jmax"], "type": "slip-wall"},
    ]
    changes = {"time": {"end": 0.3, "dt": 0.08 / n}, "conservation": {"every": 1}, "scheme": {"flux": "hllc"}} | changes
    return Case.from_dict(tables((2 * n, n, 1), amplitude=0.04, boundary=boundary, **changes))


def imbalance(totals: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Rate of change of an integral and what leaves, less what is added."""
    net = sum(values for column, values in totals.items() if column.startswith(f"{name}_flux"))
    rate = np.gradient(totals[name], totals["time"], edge_order=2)
    return (rate + net - totals.get(f"{name}_source", 0))[3:-3]


def test_fluxes_and_integrals_of_an_exact_flow_balance_at_high_order():
    errors = []
    for n in (12, 24, 48):
        simulation, found = watched(
            through(n), initial=lambda x, y, z: carried(x, y, z, 0.0), profiles={"carried": carried}
        )
        block, step, values = simulation.blocks[0], 1e-5, []
        for t in (-step, 0.0, step):
            simulation.solver.set_state(0, *carried(block.x, block.y, block.z, t))
            values.append(found["conservation"].measure(simulation.solver))
        for name in ("mass", "momentum_x", "energy"):
            rate = (values[2][name] - values[0][name]) / (2 * step)
            net = sum(flux for column, flux in values[1].items() if column.startswith(f"{name}_flux"))
            assert abs(rate) > 0.01
            errors.append(abs(rate + net))
    orders = np.log2(np.divide(errors[:-3], errors[3:]))
    assert orders.min() > 3.5 and max(errors[-3:]) < 1e-6, (errors, orders)


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_fluxes_through_each_boundary_are_sums_over_its_nodes(backend):
    """On faces of more nodes than the device sums up at a time."""
    simulation, found = watched(
        through(80), backend=backend, initial=lambda x, y, z: carried(x, y, z, 0.0), profiles={"carried": carried}
    )
    block, solver, gamma = simulation.blocks[0], simulation.solver, 1.4
    x, y = block.x, block.y
    rho, u, v, p = 1 + 0.2 * np.cos(2 * x), 2 + 0.1 * y, 0.3 * np.sin(x + y), P * (1 + 0.3 * np.sin(3 * x - y))
    solver.set_state(0, rho, u, v, 0.0 * x, p)
    monitor = found["conservation"]
    surface = monitor._surface
    _, i, j, k = surface.nodes(surface.places)
    rho, u, v, p = (values[k, j, i] for values in (rho, u, v, p))
    through_area = surface.push[0] * u + surface.push[1] * v
    energy = gamma / (gamma - 1) * p + 0.5 * rho * (u * u + v * v)
    momentum = (
        rho * velocity * through_area + p * area for velocity, area in zip((u, v, 0.0), surface.push, strict=True)
    )
    wanted = surface.sums(np.stack([rho * through_area, *momentum, energy * through_area]))
    sums = flux_sums(solver, surface)
    np.testing.assert_allclose(sums, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert len(np.unique(sums[:, 4].round(3))) == len(sums) > 2
    values = monitor.measure(solver)
    own = [value for name, value in values.items() if name.startswith("energy_flux")]
    np.testing.assert_allclose(own, sums[:, 4], rtol=1e-12)


def test_fluxes_and_integrals_of_an_open_run_balance_to_the_order_of_its_boundary():
    # The nodes on a supersonic outflow are of first order: their ghosts repeat them.
    found = []
    for n in (12, 24):
        _, histories = ran(through(n), initial=lambda x, y, z: carried(x, y, z, 0.0), profiles={"carried": carried})
        totals = histories["conservation"]
        rate = np.abs(np.gradient(totals["mass"], totals["time"])).max()
        found.append(np.abs(imbalance(totals, "mass")).max() / rate)
    assert found[1] < 0.6 * found[0] and found[1] < 0.06, found


def test_the_momentum_of_a_closed_box_is_what_its_walls_push():
    errors = []
    for n in (16, 32):
        case = Case.from_dict(
            tables((2 * n, n, 1), amplitude=0.05, time={"end": 0.6, "dt": 0.16 / n}, conservation={"every": 1})
        )
        totals = ran(case, initial=bang)[1]["conservation"]
        assert np.abs(np.gradient(totals["momentum_x"], totals["time"])).max() > 0.02
        errors.append(np.abs(imbalance(totals, "momentum_x")).max())
    assert errors[1] < 0.5 * errors[0] and errors[1] < 2e-4, errors


def test_what_a_sponge_adds_closes_the_balance():
    sponge = [{"axis": "x", "start": 0.5, "end": 2.0, "strength": 2.0, "state": {"rho": 1.1, "p": P}}]
    case = Case.from_dict(
        tables((48, 12, 1), sponge=sponge, time={"end": 0.2, "dt": 2.5e-3}, conservation={"every": 1})
    )
    totals = ran(case)[1]["conservation"]
    rate = np.gradient(totals["mass"], totals["time"])
    assert totals["mass_source"][0] == pytest.approx(2.0 * 0.1 * 1.5 / 3, rel=1e-3)
    assert np.abs(imbalance(totals, "mass")).max() < 5e-4 * rate.max()


# --- forces


def test_friction_and_heat_of_couette_flow():
    case = load("couette", overrides=['force=[{name = "low", faces = ["jmin"]}, {name = "up", faces = ["jmax"]}]'])
    simulation, found = watched(case)
    b = simulation.blocks[0]
    simulation.solver.set_state(0, *case.evaluate("exact", b.x, b.y, b.z, 0.0))
    low, up = (found[name].measure(simulation.solver) for name in ("low", "up"))
    heating, conduction, width = 0.5 * 0.72 * 0.4, 1 / (20 * 0.72 * 0.4), 0.25
    for wall, sign, slope in ((low, 1, 0.2 + heating), (up, -1, -(0.2 - heating))):
        assert wall["area"] == pytest.approx(width, rel=1e-14)
        assert wall["friction_x"] == pytest.approx(sign * width / 20, rel=1e-12)
        assert wall["heat"] == pytest.approx(conduction * slope * width, rel=1e-11)
        assert wall["force_y"] == pytest.approx(-sign * width * b.state("p")[0, 0, 0], rel=1e-12)


def test_the_work_of_a_wall_does_not_depend_on_its_direction():
    """Couette flow along z, or along both: the energy that goes through the walls is that of the flow along x."""
    case = load("couette", overrides=["conservation.every=1"])
    simulation, found = watched(case)
    b = simulation.blocks[0]
    rho, u, _, _, p = case.evaluate("exact", b.x, b.y, b.z, 0.0)
    energy = []
    for share_u, share_w in ((1.0, 0.0), (0.0, 1.0), (0.6, 0.8)):
        simulation.solver.set_state(0, rho, share_u * u, 0.0 * u, share_w * u, p)
        values = found["conservation"].measure(simulation.solver)
        energy.append([value for name, value in values.items() if name.startswith("energy_flux")])
    assert max(map(abs, energy[0])) > 1e-3
    np.testing.assert_allclose(energy[1:], [energy[0]] * 2, rtol=1e-12)


def test_slopes_at_a_face_are_exact_for_polynomials():
    """Inwards up to the fourth degree, along the face up to the sixth."""
    for power in range(7):
        slope = float(power == 1)
        if power < 5:
            assert watched_surface._INWARD @ np.arange(5.0) ** power == pytest.approx(slope, abs=1e-12)
        assert watched_surface._CENTRAL @ np.arange(-3.0, 4.0) ** power == pytest.approx(slope, abs=1e-10)
        for node, factors in enumerate(watched_surface._ONE_SIDED):
            assert factors @ (np.arange(7.0) - node) ** power == pytest.approx(slope, abs=1e-9)


@pytest.mark.slow
def test_the_force_on_the_cylinder_converges():
    forces = []
    for n in (2, 4, 8):
        overrides = [f"grid.n_around={8 * n + 1}", f"grid.n_normal={6 * n + 1}", "time.end=8.0", "monitor.every=400"]
        overrides += [f'force=[{{name = "body", faces = ["jmin"], pressure = {P}, every = 50}}]']
        overrides += ['scheme.positivity="fallback"']
        body = ran(load("cylinder-bow-shock", overrides=overrides))[1]["body"]
        assert abs(body["force_y"][-1]) < 1e-3 and np.ptp(body["force_x"][-3:]) < 0.1
        assert body["area"][-1] == pytest.approx(np.pi, abs=1e-2 / n**2)
        forces.append(body["force_x"][-1])
    coarse, fine = abs(np.diff(forces))
    assert fine < 0.4 * coarse, forces
    # modified Newtonian theory, cp = cp_max sin^2: 2/3 cp_max rho u^2/2 2R with cp_max from Rayleigh's pitot formula
    newton = 2 / 3 * (32.65 - 1) * P * 2
    assert forces[-1] == pytest.approx(newton, rel=0.06)


def test_neighbouring_conditions_leave_no_gap_in_a_wall():
    halves = [
        {"faces": ["jmin"], "type": "slip-wall", "range": {"i": [0, 10]}},
        {"faces": ["jmin"], "type": "slip-wall", "range": {"i": [10, "end"]}},
        {"faces": ["imin", "imax", "jmax"], "type": "slip-wall"},
    ]
    lists = [{"name": "all", "faces": ["jmin"]}, {"name": "some", "faces": ["jmin"], "range": {"i": [3, 12]}}]
    simulation, found = watched(Case.from_dict(tables((25, 13, 1), boundary=halves, force=lists)))
    values = found["all"].measure(simulation.solver)
    assert values["area"] == pytest.approx(2.0, rel=1e-13) and values["pressure_y"] == pytest.approx(-2 * P)
    assert found["some"].measure(simulation.solver)["area"] == pytest.approx(8 * 2 / 24, rel=1e-13)


def test_the_walls_of_the_nozzle_are_as_long_as_they_are():
    case = load("planar-jet", preset="quick", overrides=['force=[{name = "nozzle", range = "walls"}]'])
    simulation, found = watched(case)
    _, nozzle, above, below = simulation.solver.decomposition.blocks
    lines = sum(np.ptp(block.x) for block in (nozzle, nozzle, above, below)) + 2 * 0.1  # from a wall's node to its last
    assert found["nozzle"].measure(simulation.solver)["area"] == pytest.approx(lines, rel=2e-3)
