"""Slip walls and planes of symmetry that grid lines meet at other angles than right ones, and curved ones."""

from functools import cache

import numpy as np
import pytest
from oblique_grids import (
    GAMMA,
    REST,
    SMALL,
    P,
    case,
    plane,
    pulse,
    ring,
    rotation,
    sides,
    sound,
    standing,
    strip,
    vortex,
)  # fmt: skip
from ranks import run_ranks

from hiresx import Simulation
from hiresx.cli import check_walls
from hiresx.decomposition import decompose, domain, extended_coordinates
from hiresx.device import backend
from hiresx.grid import Block, Grid
from hiresx.grid.cutting import cut_along_i
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import random_parts

FAR = {"faces": "all", "type": "far-field", "state": REST}


def finished(spec, grid, initial, where="cpu", **options):
    simulation = Simulation(spec, where, grid=grid, initial=initial, **options)
    simulation.run()
    return simulation.blocks[0]


def orders(errors):
    return np.log2(np.divide(errors[:-1], errors[1:]))


# ---- plane walls


@cache
def pulse_error(n, skew, kind="slip-wall"):
    time = {"end": 0.4, "cfl": 0.5 * (16 / (n - 1)) ** (2 / 3)}
    block = finished(case([{"faces": ["jmin"], "type": kind}, FAR], time), plane(n, skew), sound(pulse))
    off = np.abs(block.state("p") - P - SMALL * pulse(block.x, block.y, block.z, 0.4)) / SMALL
    return off[(np.abs(block.x) < 0.6) & (block.y < 0.8)].max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["slip-wall", "symmetry"])
@pytest.mark.parametrize("skew", [0.3, 0.6])
def test_a_pulse_on_a_plane_wall(skew, kind):
    """Order 4, and no more than four times the error on orthogonal nodes (the cells themselves are longer); it was of
    first order, 0.018, 0.0055, 0.0027 and twice that."""
    errors = [pulse_error(n, skew, kind) for n in (17, 33, 65)]
    assert (orders(errors) > 4).all(), errors
    assert errors[2] < 5 * pulse_error(65, 0.0)


def standing_error(n, skew, span=None, where="cpu", until=0.3, **tables):
    time = {"end": until, "cfl": 0.5 * (12 / (n - 1)) ** (2 / 3)}
    periodic = [sides("imin", "imax"), *([] if span is None else [sides("kmin", "kmax")])]
    spec = case([*periodic, {"faces": "all", "type": "slip-wall"}], time, **tables)
    block = finished(spec, strip(n, skew, span), sound(standing), where)
    return np.abs(block.state("p") - P - SMALL * standing(block.x, block.y, block.z, until)).max() / SMALL


@pytest.mark.parametrize("skew", [0.3, 0.6, -1.2])
def test_a_standing_wave_between_plane_walls(skew):
    errors = [standing_error(n, skew) for n in (13, 25)]
    assert orders(errors)[0] > 4, errors
    assert errors[1] < 2.5 * standing_error(25, 0.0) * (1 + skew * skew) ** 3


@pytest.mark.slow
@pytest.mark.parametrize("skew", [0.3, 0.6])
def test_a_standing_wave_on_lines_oblique_in_two_directions(skew):
    errors = [standing_error(n, skew, (-0.5 * skew, n)) for n in (13, 25)]
    assert orders(errors)[0] > 4, errors


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("reynolds", [None, 100.0], ids=["inviscid", "viscous"])
def test_a_uniform_flow_along_oblique_lines_stays(reynolds, where):
    gas = {} if reynolds is None else {"reynolds": reynolds}
    state = {"rho": 1.0, "u": 0.5, "w": 0.2, "p": P}
    spec = case(
        [sides("imin", "imax"), sides("kmin", "kmax"), {"faces": "all", "type": "symmetry"}],
        {"steps": 10, "cfl": 0.5}, gas=gas, initial={"state": state},
    )  # fmt: skip
    block = finished(spec, strip(9, 0.7, (0.4, 9)), None, where)
    for name, value in {"v": 0.0, **state}.items():
        assert np.abs(block.state(name) - value).max() < 1e-13, name


# ---- viscous


def warm(x, y, z):
    return 1 / (1 + 1e-3 * np.cos(2 * np.pi * x)), 0 * x, 0 * x, 0 * x, P + 0 * x


@cache
def warmed(n, skew):
    """What is left of `warm` between slip walls."""
    time = {"end": 0.25, "cfl": 0.5, "viscous_cfl": 0.4}
    boundary = [sides("imin", "imax"), {"faces": "all", "type": "slip-wall"}]
    return finished(case(boundary, time, gas={"reynolds": 20.0}), strip(n, skew), warm)


def warm_errors(n, skew):
    """Of T, u and p over the amplitude of T, against orthogonal lines: three waves of what 49 nodes have along x."""
    exact, block = warmed(49, 0.0), warmed(n, skew)
    x, found = exact.x[0, 24, :-1], []
    for name, at_rest in (("T", 1.0), ("u", 0.0), ("p", P)):
        line, got = (
            (b.state("p") * GAMMA / b.state("rho") if name == "T" else b.state(name)) - at_rest for b in (exact, block)
        )
        line = line[0, 24, :-1]
        waves = [
            (2 * (line * np.exp(-2j * np.pi * k * x)).mean() * np.exp(2j * np.pi * k * block.x)).real for k in (1, 2, 3)
        ]
        found.append(np.abs(got - line.mean() - sum(waves)).max() / 1e-3)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("skew", [0.3, 0.6])
def test_viscous_slip_walls_let_no_heat_through(skew):
    """It was .068, .078, .082 of T at skew .3, whatever the nodes."""
    coarse, fine = warm_errors(13, skew), warm_errors(25, skew)
    assert (orders([coarse, fine]) > 2.9).all(), (coarse, fine)
    assert max(fine) < 3e-5


@pytest.mark.parametrize("skew", [1.0, 1.2])
def test_a_blast_beside_leaning_viscous_slip_walls(skew):
    """A hundredfold pressure and temperature a few cells from the wall: parabolas of the viscous flux across the jump
    took the heat of the wall's node away, up to a negative pressure."""

    def blast(x, y, z):
        inside = 0.5 - 0.5 * np.tanh((np.hypot((x % 1) - 0.5, y - 0.15) - 0.1) / 0.02)
        return 1 + 0 * x, 0 * x, 0 * x, 0 * x, P * (1 + 99 * inside)

    walls = {"faces": ["jmin", "jmax"], "type": "slip-wall"}
    scheme = {"flux": "hllc", "weights": "js"}
    spec = case([sides("imin", "imax"), walls], {"end": 0.008, "cfl": 0.4}, gas={"reynolds": 100.0}, scheme=scheme)
    assert finished(spec, strip(33, skew), blast).state("p").min() > 0.1  # 0.71 around it


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_plans_agree(where):
    """With the CPU and with each other, in three dimensions and viscous."""
    spec = case(
        [sides("imin", "imax"), sides("kmin", "kmax"), {"faces": "all", "type": "slip-wall"}], {"steps": 4, "cfl": 0.4},
        gas={"reynolds": 100.0},
    )  # fmt: skip
    found = []
    for on, plan in [("cpu", "pencils"), (where, "decomposed"), (where, "compact" if where == "cpu" else "fused")]:
        solver = Solver(spec, backend(on), strip(9, 0.6, (-0.3, 9)), plan=plan)
        solver.initialize(loud)
        for _ in range(4):
            solver.step()
        found.append(solver.primitives(0))
    for other in found[1:]:
        for name in ("rho", "u", "v", "w", "p"):
            np.testing.assert_allclose(other[name], found[0][name], rtol=0, atol=2e-13)


def loud(x, y, z):
    s = 0.1 * np.sin(2 * np.pi * x) * np.cos(2 * np.pi * z + 1) * np.cos(2 * y)
    return 1 + s, 0.3 + s, 0.2 * np.sin(3 * y), 0.1 * np.cos(2 * np.pi * x), P + s


# ---- curved walls


@cache
def ring_error(n, skew, flow, until=0.5, kind="slip-wall", **scheme):
    spec = case(
        [{"faces": "all", "type": kind}],
        {"end": until, "cfl": 0.5 * (8 / n) ** (2 / 3)},
        scheme={"flux": "hllc"} | scheme,
    )
    block = finished(spec, ring(n, skew), flow)
    wanted = flow(block.x, block.y, block.z)
    return max(np.abs(block.state(name) - of).max() for name, of in (("rho", wanted[0]), ("p", wanted[4])))


@pytest.mark.slow
@pytest.mark.parametrize("skew", [0.0, 0.5], ids=["orthogonal", "oblique"])
@pytest.mark.parametrize("flow", [vortex, rotation], ids=["vortex", "rotation"])
def test_flow_around_between_circles(flow, skew):
    """The pressure has the slope that keeps it on the wall; without it the order is 1: 0.0027 with 16 cells."""
    errors = [ring_error(n, skew, flow) for n in (8, 16, 32)]
    assert (orders(errors) > 2.9).all(), errors
    assert errors[1] < 1e-5
    assert ring_error(8, skew, flow, kind="symmetry") == errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("flux", ["hllc", "steger_warming"])
@pytest.mark.parametrize("skew", [0.0, 0.5], ids=["orthogonal", "oblique"])
def test_nothing_grows_at_curved_walls(skew, flux):
    """More than three times around at the inner circle. What extrapolates density and velocity behind the wall as
    parabolas are has errors of density of 0.5 with Steger and Warming's flux."""
    assert ring_error(12, skew, vortex, 40.0, flux=flux, weights="js") < (2e-4 if flux == "hllc" else 1e-2)


def test_a_jet_of_one_row_on_a_curved_wall_is_not_continued():
    """Where the wall's nodes are faster than the gas before them by several sound speeds, 6 and 0.3, ghosts have about
    the speed of that gas. With the slope of the velocity they had 46."""
    spec = case([{"faces": "all", "type": "slip-wall"}], {"steps": 1, "cfl": 0.5})

    def jet(x, y, z):
        r = np.hypot(x, y)
        speed = np.where(r < 1.01, 6.0, 0.3)
        return 1 + 0 * r, -speed * y / r, speed * x / r, 0 * r, P + 0 * r

    solver = after(spec, ring(12, 0.0), 0, initial=jet)
    solver.right_hand_side()
    (state,) = solver.states
    whole = np.asarray(solver.backend.to_host(state.q))
    whole = whole.reshape(len(whole), -1)[:, : np.prod(state.shape)].reshape(len(whole), *state.shape)
    hi, hj, hk = state.halo
    rho, u, v = whole[:3, hk, :, hi : hi + state.size[0]]
    speed = np.hypot(u, v) / rho
    assert abs(speed[hj] - 6).max() < 1e-9
    assert speed[:hj].max() < 0.5
    assert speed[:hj].min() > 0


# ---- cuts, ranks, precisions, what is carried


def after(spec, grid, steps=6, where="cpu", initial=loud, **how):
    solver = Solver(spec, backend(where), grid if "domain" not in how else None, **how)
    solver.initialize(initial)
    for _ in range(steps):
        solver.step()
    return solver


GRIDS = {
    "strip": (lambda: strip(21, 0.6), [sides("imin", "imax"), {"faces": "all", "type": "slip-wall"}]),
    "ring": (lambda: ring(12, 0.5), [{"faces": "all", "type": "slip-wall"}]),
}


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("name", GRIDS)
def test_nothing_depends_on_cuts(name, where):
    make, boundary = GRIDS[name]
    spec, grid = case(boundary, {"steps": 6, "cfl": 0.5}), make()
    wanted = after(spec, grid).primitives(0)
    chance = np.random.default_rng(3)
    made = after(
        spec, grid, where=where, domain=domain(spec, grid=grid, parts=lambda whole: random_parts(whole, 4, chance))
    )
    assert len(made.states) == 4
    for n, state in enumerate(made.states):
        found = made.primitives(n)
        for variable in ("rho", "u", "v", "p"):
            off = np.abs(found[variable] - wanted[variable][state.part.slices])
            assert off.max() < 2e-13, variable


def _on_ranks(comm, name):
    make, boundary = GRIDS[name]
    spec = case(boundary, {"steps": 6, "cfl": 0.5})
    made = Simulation(spec, backend="cpu", comm=comm, grid=make(), initial=loud)
    for _ in range(6):
        made.solver.step()
    return [(state.part.box, made.solver.primitives(n)) for n, state in enumerate(made.solver.states)]


@pytest.mark.slow
@pytest.mark.parametrize("name", GRIDS)
def test_nothing_depends_on_ranks(name):
    make, boundary = GRIDS[name]
    wanted = after(case(boundary, {"steps": 6, "cfl": 0.5}), make()).primitives(0)
    parts = [part for rank in run_ranks(3, _on_ranks, name) for part in rank]
    assert len(parts) > 2
    for box, found in parts:
        i, j, k = (slice(*ends) for ends in box)
        for variable in ("rho", "u", "v", "p"):
            np.testing.assert_allclose(found[variable], wanted[variable][k, j, i], rtol=0, atol=1e-13)


@pytest.mark.slow
def test_single_precision():
    for make, boundary in GRIDS.values():
        found = [
            after(case(boundary, {"steps": 6, "cfl": 0.5}, scheme={"precision": of}), make()).primitives(0)
            for of in ("fp64", "fp32")
        ]
        for variable in ("rho", "u", "v", "p"):
            assert np.abs(found[0][variable] - found[1][variable]).max() < 2e-5, variable


@pytest.mark.slow
def test_a_scalar_at_oblique_walls():
    """One that is uniform stays so; a wave that sound carries along the walls goes as on orthogonal lines."""
    errors = []
    for skew in (0.0, 0.6):
        spec = case(
            [sides("imin", "imax"), {"faces": "all", "type": "slip-wall"}], {"end": 0.5, "cfl": 0.5},
            scalar=[{"name": "one"}, {"name": "wave"}],
        )  # fmt: skip
        simulation = Simulation(spec, "cpu", grid=strip(25, skew))
        state = simulation.solver.states[0]
        x, y = state.block.x, state.block.y

        def wave(x, y):
            return 0.5 + 0.4 * np.cos(2 * np.pi * x) * np.cos(np.pi * y)

        simulation.solver.set_state(0, 1.0, 0.5, 0.0, 0.0, P, {"one": 1 + 0 * x, "wave": wave(x, y)})
        simulation.solver.complete_state()
        simulation.run()
        found = simulation.solver.primitives(0)
        assert np.abs(found["one"] - 1).max() < 1e-12
        errors.append(np.abs(found["wave"] - wave(x - 0.25, y)).max())
    assert errors[0] < 2e-4 and errors[1] < 4 * errors[0], errors


# ---- what is said of them


def told(grid, viscous=False):
    whole = decompose(case([{"faces": "all", "type": "slip-wall"}], {"steps": 1}), grid)
    return check_walls.rows(check_walls.report(whole, extended_coordinates(whole)), viscous)


def test_check_tells_the_angle_of_lines():
    assert told(strip(9, 0.0)) == []
    oblique = {face: (angle, what) for face, _, angle, what in told(strip(9, 0.5))}
    assert oblique["strip jmin"][0] == "26.6" and "no order is lost" in oblique["strip jmin"][1]
    assert {what for *_, what in told(ring(12, 0.4))} == {"ghosts mirror places: third order"}
    for skew, viscous, steep in [(1.2, True, False), (1.5, True, True), (1.5, False, False)]:
        for face, _, angle, what in told(strip(9, skew), viscous):
            assert ("temperatures" in what) == steep, (face, angle, what)


def test_an_edge_on_a_wall_is_told():
    """Beside it ghosts mirror nodes, and all along the wall where its pieces are straight."""
    x, y = np.meshgrid(np.linspace(0, 2, 21), np.linspace(0, 1, 9))
    for bend, angle, what in (
        (0.0, "21.8", "ghosts mirror nodes; there is an edge, first order"),
        (-0.05, "21.3", "ghosts mirror places: third order; beside its edge they mirror nodes, first order"),
    ):
        ramp = Grid((Block("ramp", x[None], (y + (1 - y) * rise(x, 0.4, bend))[None], 0 * x[None]),))
        (row,) = (row for row in told(ramp) if row[0] == "ramp jmin")
        assert row[2:] == (angle, what)


def rise(x, slope, bend):
    """A wall that turns upwards at x = 1, and is curved from there on where `bend` is not 0."""
    return np.where(x > 1, slope * (x - 1) + bend * (x - 1) ** 2, 0.0)


def test_an_edge_takes_nothing_from_the_wall_away_from_it():
    """Behind the edge at x = 1 the curved wall has the ghosts of the same nodes without it, and the flow, as far as
    nothing of a step's three stages reaches."""
    x, y = np.meshgrid(np.linspace(0, 4, 161), np.linspace(0, 1, 9))
    nodes = x, y + (1 - y) * rise(x, 0.4, -0.05), 0 * x
    first = 46
    spec = case([{"faces": "all", "type": "slip-wall"}], {"steps": 1, "cfl": 0.5})
    edged, plain = (
        after(spec, Grid((Block("ramp", *(c[None, :, start:] for c in nodes)),)), 1).primitives(0)
        for start in (0, first)
    )
    away = 30
    for variable in ("rho", "u", "v", "p"):
        apart = edged[variable][..., first + away :] - plain[variable][..., away:]
        assert np.abs(apart).max() < 1e-13, variable


@pytest.mark.parametrize("skew", [0.0, 0.3])
@pytest.mark.parametrize(("slope", "bend"), [(0.4, 0.0), (0.4, -0.2), (0.03, 0.0), (0.0, 0.3), (0.0, 0.6)])
def test_a_wall_that_turns_at_a_join_of_blocks(slope, bend, skew):
    """By an edge, by less than one, and without: as within one block, to round-off. The feet of normals on the most
    curved wall take 34 steps to that; after 12 they were off by 1e-12."""
    x, y = np.meshgrid(np.linspace(0, 2, 21), np.linspace(0, 1, 9))
    block = Block("ramp", (x + skew * y)[None], (y + (1 - y) * rise(x, slope, bend))[None], 0 * x[None])
    spec = case([{"faces": "all", "type": "slip-wall"}], {"steps": 6, "cfl": 0.5})
    wanted = after(spec, Grid((block,))).primitives(0)
    for start in (9, 10, 11):
        made = after(spec, cut_along_i(block, (0, start), ("level", "rising")))
        for variable in ("rho", "u", "v", "p"):
            found = np.concatenate([made.primitives(n)[variable] for n in range(2)], axis=-1)
            assert np.abs(found - wanted[variable]).max() < 1e-13, (start, variable)
