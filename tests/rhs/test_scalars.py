"""Passive scalars: carried with the mass flux of the gas, spread by mu/Sc, through every condition, cut and backend."""

import bytes_moved
import numpy as np
import pytest
from arrangements import saved, shaken
from multiblock import Arrangement
from ranks import run_ranks
from scalar_cases import (
    CARRIED,
    CONDITIONS,
    NAMES,
    OPEN,
    SCHMIDT,
    SPONGE,
    STATE,
    WALLS,
    P,
    at_rest,
    case,
    patches,
    shocks,
    start,
)
from touched import touched
from wall_sums import total

from hiresx import Simulation
from hiresx.device import backend
from hiresx.grid import Grid
from hiresx.solver import Solver

SEVEN_NODES = {"interpolation": "modified7", "weights": "z"}


def solver(spec, flow=shocks, scalars=patches, where="cpu", **keys):
    made = Solver(spec, backend(where), **keys)
    start(made, flow, scalars)
    return made


def off(made, wanted):
    """Largest deviation of the scalars from uniform ones."""
    return max(
        abs(made.primitives(n)[name] - value).max()
        for n in range(len(made.states))
        for name, value in zip(NAMES, wanted, strict=True)
    )


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("reynolds", [pytest.param(None, marks=pytest.mark.slow), 100.0], ids=["inviscid", "viscous"])
@pytest.mark.parametrize("kind", CONDITIONS)
def test_uniform_scalars_stay_uniform(kind, reynolds, where):
    """Whatever the flow does: shocks on a bent grid, all conditions, a sponge that takes mass."""
    closed = ("x", "y") if kind == "periodic" else ()
    made = solver(
        case(boundary=CONDITIONS[kind], reynolds=reynolds, periodic=closed, **SPONGE), scalars=None, where=where
    )
    for _ in range(20):
        made.step()
    assert np.ptp(made.primitives(0)["rho"]) > 0.2
    assert off(made, (0.7, 0.25)) <= 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_uniform_scalars_stay_uniform_with_seven_nodes(where):
    made = solver(case(boundary=WALLS, periodic=(), scheme=SEVEN_NODES, **SPONGE), scalars=None, where=where)
    for _ in range(20):
        made.step()
    assert np.ptp(made.primitives(0)["rho"]) > 0.2
    assert off(made, (0.7, 0.25)) <= 1e-13


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_the_gas_does_not_feel_them(where):
    """To the last bit, on one plan."""
    spec = case(boundary=WALLS, reynolds=100.0, periodic=())
    with_them = solver(spec, where=where, plan="decomposed")
    without = Solver(spec.model_copy(update={"scalar": ()}), backend(where), plan="decomposed")
    x, y, z = (getattr(without.states[0].block, axis) for axis in "xyz")
    without.set_state(0, *shocks(x, y, z))
    without.complete_state()
    for _ in range(5):
        assert with_them.step() == without.step()
    for name, values in without.primitives(0).items():
        # an optimiser may fuse other multiplications and additions where kernels are others
        np.testing.assert_allclose(with_them.primitives(0)[name], values, rtol=0, atol=1e-14)


def test_the_update_with_viscous_fluxes_moves_what_is_counted():
    """The launch with which a stage ends on GPUs, which no measurement on a CPU makes; here with the differences of all
    directions, of which the sweeps carry some."""
    made = solver(case((8, 8, 8), reynolds=100.0, periodic=("x", "y", "z")), where="emulated")
    made.choose_dt()
    (state,), (viscous,) = made.states, made.terms.viscous
    ((carried,), *_) = made.integrator.viscous_updates(made.program, state, viscous.difference.inner)
    call = made.program.call(carried.name, carried.extent, **carried.arguments | state.derivative_strides)
    assert touched(made.program, call) == bytes_moved.reals(call.name, call.arguments)


def advected(n, order, scheme):
    """L1 error of a smooth profile that a uniform flow has carried half a wave length along x and y, by steps so small
    that the error is that of a scheme of `order` in space."""
    spec = case((n, n, 1), boundary=None, time={"end": 1.0, "cfl": 0.4 * (16 / n) ** (order / 3 - 1)}, scheme=scheme,
                grid={"generator": "wavy", "n": [n, n, 1], "lower": [0, 0, 0], "upper": [1, 1, 0],
                      "amplitude": [0.02, 0.02, 0.0], "periodic": ["x", "y"]})  # fmt: skip

    def wave(x, y, z, t=0.0):
        return {name: 0.5 + 0.3 * np.sin(2 * np.pi * (x - t)) * np.cos(2 * np.pi * (y + t)) for name in NAMES}

    made = solver(spec, lambda x, y, z: (1.0 + 0 * x, 1.0, -1.0, 0.0, P), wave)
    while made.time < 0.25 - 1e-12:
        made.step(0.25 - made.time)
    block = made.states[0].block
    return abs(made.primitives(0)["dye"] - wave(block.x, block.y, block.z, made.time)["dye"]).mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "order", "n"),
    [
        ({}, 5, 48),
        ({"interpolation": "original6", "weights": "teno"}, 6, 32),
        (SEVEN_NODES, 7, 32),
    ],
    ids=["modified", "original6", "modified7"],
)
def test_advection_is_of_the_order_of_the_interpolation(scheme, order, n):
    """On a curvilinear grid."""
    errors = [advected(n, order, scheme) for n in (n, 3 * n // 2)]
    assert np.log(errors[0] / errors[1]) / np.log(1.5) > order - 0.25, errors


def decayed(n, wall, where="cpu"):
    """Largest error of cosines that have decayed in a gas at rest between walls that nothing passes, by scalar."""
    wall = [{"faces": ["imin", "imax"], "type": wall}, {"faces": ["jmin", "jmax"], "type": "periodic"}]
    spec = case((n, 8, 1), wall, 10.0, time={"steps": 100, "dt": 2e-4},
                grid={"generator": "box", "n": [n, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0],
                      "periodic": ["y"]})  # fmt: skip

    def cosine(x, y, z):
        return dict.fromkeys(NAMES, np.cos(np.pi * x))

    made = solver(spec, at_rest, cosine, where)
    for _ in range(100):
        made.step()
    x = made.states[0].block.x
    rates = {name: np.pi**2 / (10.0 * SCHMIDT[name]) for name in NAMES}
    return {
        name: abs(made.primitives(0)[name] - np.exp(-rate * made.time) * np.cos(np.pi * x)).max()
        for name, rate in rates.items()
    }


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_diffusion_decays_as_it_must(where):
    """exp(-k^2 t/(Re Sc)): between planes of symmetry of sixth order in space, what is left is that of time; at no-slip
    walls of third order at least."""
    assert max(decayed(17, "symmetry", where).values()) < 1e-7
    coarse, fine = (decayed(n, "no-slip-wall", where) for n in (17, 33))
    for name in NAMES:
        assert np.log2(coarse[name] / fine[name]) > 2.8 and fine[name] < 2e-5, name


def test_what_diffuses_leaves_with_order_four():
    """Re(C exp(a x - t)) in uniform flow, D a^2 = a u - 1, with the C of which the second derivative vanishes at the
    outflow. With straight lines behind it the error was the same on all grids."""
    u, diffusivity = 0.4, 0.1
    a = (u + 1j * np.sqrt(4 * diffusivity - u * u)) / (2 * diffusivity)

    def dye(x, y, z, t):
        return 0.5 + 0.3 * np.real(1j * np.exp(a * (x - 1)) / a**2) * abs(a) ** 2 * np.exp(-t)

    def gas(x, y, z, t=0.0):
        return 1.0 + 0 * x, u + 0 * x, 0 * x, 0 * x, P + 0 * x

    ends = [
        {"faces": ["imin"], "type": "profile-inflow", "function": "gas", "steady": False,
         "scalars": {"dye": "dye", "ink": 0.5}},
        {"faces": ["imax"], "type": "pressure-outflow", "pressure": P},
    ]  # fmt: skip
    errors = []
    for n in (17, 33):
        spec = case(
            (n, 1, 1), ends, 1 / diffusivity / SCHMIDT["dye"], periodic=(), scheme={"weights": "linear"},
            time={"end": 0.5, "cfl": 0.3, "viscous_cfl": 0.3},
            grid={"generator": "box", "n": [n, 1, 1], "lower": [0, 0, 0], "upper": [1, 0, 0]},
        )  # fmt: skip
        profiles = {"dye": dye, "gas": gas}
        made = solver(spec, gas, lambda x, y, z: {"dye": dye(x, y, z, 0.0), "ink": 0.5 + 0 * x}, profiles=profiles)
        while made.time < 0.5:
            made.step(0.5 - made.time)
        errors.append(abs(made.primitives(0)["dye"] - dye(made.states[0].block.x, 0, 0, made.time)).max())
    assert np.log2(errors[0] / errors[1]) > 3.7 and errors[1] < 1e-5, errors


def test_a_wall_that_holds_a_scalar_lets_it_in():
    """The error function behind a wall at which s is 1."""
    from math import erfc

    held = {"dye": 1.0, "ink": 1.0}
    wall = [
        {"faces": ["imin"], "type": "no-slip-wall", "scalars": held}, {"faces": ["imax"], "type": "slip-wall"},
        {"faces": ["jmin", "jmax"], "type": "periodic"},
    ]  # fmt: skip
    spec = case((65, 8, 1), wall, 10.0, time={"steps": 400, "dt": 2e-4},
                grid={"generator": "box", "n": [65, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0],
                      "periodic": ["y"]})  # fmt: skip

    def profile(x, t):
        found = {}
        for name in NAMES:
            width = 2 * np.sqrt(t / (10.0 * SCHMIDT[name]))
            found[name] = np.vectorize(lambda c, w=width: erfc(c / w))(x)
        return found

    made = solver(spec, at_rest, lambda x, y, z: profile(x, 0.02))
    for _ in range(200):
        made.step()
    exact = profile(made.states[0].block.x, 0.02 + made.time)
    for name in NAMES:
        assert abs(made.primitives(0)[name] - exact[name]).max() < 1e-4, name


def test_diffusion_of_a_jump_overshoots_by_what_the_page_says():
    """Gas at rest on a uniform grid: central differences are no convex combination (docs/numerics.md)."""
    n, share = 48, 0.05  # of a step: time over spacing^2 and diffusivity
    grid = {"generator": "box", "n": [n, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x", "y"]}
    spec = case((n, 8, 1), None, 10.0, time={"steps": 20, "dt": share * 10.0 * SCHMIDT["dye"] / n**2}, grid=grid)
    made = solver(spec, at_rest, lambda x, y, z: dict.fromkeys(NAMES, 1.0 * (abs(x - 0.5) < 0.25)))
    worst = 0.0
    for _ in range(20):
        made.step()
        dye = made.primitives(0)["dye"]
        worst = max(worst, -dye.min(), dye.max() - 1)
    assert worst == pytest.approx(0.0304, abs=1e-4)


@pytest.mark.parametrize(
    ("where", "scheme"),
    [("cpu", {}), ("emulated", {}), ("cpu", {"viscous_order": 8})],
    ids=["cpu", "emulated", "eighth"],
)
def test_what_there_is_of_a_scalar_stays(where, scheme):
    """In a periodic box, and between no-slip walls, to round-off; viscous, with shocks and jumps of the scalar."""
    for boundary in (None, [{"faces": "all", "type": "no-slip-wall"}]):
        closed = () if boundary else ("x", "y")
        made = solver(case(boundary=boundary, reynolds=200.0, periodic=closed, scheme=scheme), where=where)
        rows = [made.states[0].equations.conserved_names.index(f"rho_{name}") for name in NAMES]
        before = [total(made, row) for row in rows]
        for _ in range(20):
            made.step()
        assert [total(made, row) for row in rows] == pytest.approx(before, rel=2e-14)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [{}, SEVEN_NODES], ids=["modified", "modified7"])
def test_a_jump_of_a_scalar_overshoots_little(scheme):
    """A square carried once through the box by a uniform flow: how far it leaves 0..1 (docs/numerics.md)."""
    spec = case((48, 9, 1), grid={"generator": "box", "n": [48, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0],
                                  "periodic": ["x", "y"]}, scheme=scheme)  # fmt: skip
    made = solver(
        spec, lambda x, y, z: (1.0 + 0 * x, 1.0, 0.0, 0.0, P),
        lambda x, y, z: dict.fromkeys(NAMES, 1.0 * (abs(x - 0.5) < 0.25)),
    )  # fmt: skip
    worst = 0.0
    while made.time < 1.0:
        made.step()
        dye = made.primitives(0)["dye"]
        worst = max(worst, -dye.min(), dye.max() - 1)
    assert worst < 5e-3
    assert dye.max() > 0.99 and dye.min() < 0.01


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [
        pytest.param("open", {}, marks=pytest.mark.slow),
        ("walls", {}),
        pytest.param("walls", SEVEN_NODES, marks=pytest.mark.slow),
    ],
    ids=["open", "walls", "walls-modified7"],
)
def test_backends_and_plans_agree(kind, scheme):
    boundary = CONDITIONS[kind] + [{"faces": ["kmin", "kmax"], "type": "slip-wall"}]
    spec = case((20, 18, 12), boundary, 100.0, periodic=(), scheme=scheme)
    found = [solver(spec, where="cpu"), solver(spec, where="cpu", plan="decomposed")]
    found += [solver(spec, where="emulated", plan=plan) for plan in ("decomposed", "fused")]
    found += [solver(spec, where=where, plan="compact") for where in ("cpu", "emulated")]
    for _ in range(5):
        for made in found:
            made.step()
    for name, values in found[0].primitives(0).items():
        for other in found[1:]:
            np.testing.assert_allclose(other.primitives(0)[name], values, rtol=0, atol=2e-13)


def test_ghosts_of_scalars_come_behind_those_of_the_gas():
    """Launches of one list run side by side: what reads the density behind a face must stand in a later one."""
    made = solver(case(boundary=OPEN, reynolds=100.0, periodic=()))
    of_gas, of_scalars = made._conditions.ghost_calls()
    assert {call.name for call in of_scalars} == {"scalar_open"}
    assert not any(call.name.startswith("scalar") for call in of_gas)


def test_an_inflow_gives_scalars_in_all_layers_behind_it():
    made = solver(case(boundary=OPEN, reynolds=100.0, periodic=()))
    state, halo = made.states[0], made.decomposition.stencil.halo
    for n, wanted in enumerate((0.7, 0.25)):
        behind = (..., slice(halo + 1, -halo - 1), slice(0, halo + 1))
        np.testing.assert_allclose(state.scalars[n][0][behind], wanted * state.q[0][behind], rtol=1e-14)


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_steps_taken_together_are_those_taken_one_by_one(where):
    spec = case(boundary=WALLS, reynolds=100.0, periodic=(), time={"steps": 6, "cfl": 0.5})
    together = Simulation(spec, backend=where)
    start(together.solver, shocks, patches)
    alone = solver(spec, where=where)
    together.run(progress=False)
    for _ in range(6):
        alone.step()
    for name, values in alone.primitives(0).items():
        np.testing.assert_array_equal(together.blocks[0].state(name), values)


def test_turned_blocks_carry_as_one(tmp_path):
    """Eight blocks cut and turned at random, behind a far field, give what the uncut block does."""
    whole = shaken((20, 21, 22), seed=2).blocks[0]
    parts = Arrangement(whole, 8, 2, True)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    grid = saved(tmp_path, parts.blocks, tables)
    far = [{"faces": "all", "type": "far-field", "state": STATE, **CARRIED}]
    spec = case((20, 21, 22), far, 200.0)
    a, b = (solver(spec, grid=g) for g in (grid, Grid((whole,))))
    for _ in range(10):
        assert a.step() == pytest.approx(b.step(), rel=1e-12)
    wanted = b.primitives(0)
    for p, held in enumerate(parts.held):
        nodes = np.stack(np.meshgrid(*(np.arange(*r) for r in held), indexing="ij"))
        (i, j, k), (l, m, o) = nodes, parts.index(p, nodes)
        for name in NAMES:
            np.testing.assert_allclose(a.primitives(p)[name][o, m, l], wanted[name][k, j, i], rtol=0, atol=1e-12)


def _on_ranks(comm, where, scheme):
    made = Simulation(case((24, 20, 1), OPEN, 100.0, periodic=(), scheme=scheme), backend=where, comm=comm)
    start(made.solver, shocks, patches)
    for _ in range(5):
        made.solver.step()
    return [(state.part.box, made.solver.primitives(n)) for n, state in enumerate(made.solver.states)]


@pytest.mark.parametrize("scheme", [{}, SEVEN_NODES], ids=["modified", "modified7"])
@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.slow
def test_ranks_agree_with_one(where, scheme):
    alone = solver(case((24, 20, 1), OPEN, 100.0, periodic=(), scheme=scheme), where=where)
    for _ in range(5):
        alone.step()
    wanted = alone.primitives(0)
    parts = [part for rank in run_ranks(2, _on_ranks, where, scheme) for part in rank]
    assert len(parts) > 1
    for box, found in parts:
        i, j, k = (slice(*ends) for ends in box)
        for name in (*NAMES, "rho"):
            np.testing.assert_allclose(found[name], wanted[name][k, j, i], rtol=0, atol=1e-13)
