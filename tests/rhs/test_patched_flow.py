"""Flow across patched faces: free stream, order, sound, friction, shocks."""

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from kernels_alone import Numpy
from patched_grids import P0, PERIODIC, beside, case, errors, waves

from hiresx import Simulation
from hiresx.case import Case
from hiresx.exchange.patched_ghosts import PatchedExchange
from hiresx.grid import Grid, matched_connections

# ---- free stream


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("viscous", [False, True], ids=["inviscid", "viscous"])
@pytest.mark.parametrize("span", [(1, 1), (7, 9)], ids=["2d", "3d"])
def test_free_stream(where, viscous, span):
    state = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": 0.1 * (span[0] > 1), "p": P0}
    gas = {"reynolds": 200.0} if viscous else {}
    blocks = beside((8, 12), (8, 12), (-1.0, 0.0, 1.0), curve=0.1, n_span=span)
    simulation = Simulation(case([], {"steps": 100, "cfl": 0.5}, state, gas=gas), backend=where, grid=Grid(blocks))
    assert simulation.solver.device_resident_steps.possible == (where == "emulated")
    for _ in range(100 if span[0] == 1 else 12):
        simulation.solver.step()
    for name, value in state.items():
        assert errors(simulation, name, lambda x, y, z, v=value: v)[0] < 1e-12, name


@pytest.mark.slow
def test_free_stream_in_single_precision():
    state = {"rho": 1.0, "u": 0.5, "v": 0.2, "p": P0}
    blocks = beside((10, 15), (12, 18), (-1.0, 0.0, 1.0), curve=0.1)
    spec = case([], {"steps": 20, "cfl": 0.5}, state, scheme={"precision": "fp32"})
    simulation = Simulation(spec, backend="cpu", grid=Grid(blocks))
    for _ in range(20):
        simulation.solver.step()
    assert errors(simulation, "rho", lambda x, y, z: 1.0)[0] < 1e-5


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_ghosts_of_a_field_that_a_term_gives_are_interpolated(where, monkeypatch):
    """Of each of its numbers: a linear one is met, and what steps from 0 to 1 stays between them."""
    blocks = beside((8, 12), (8, 12), (-1.0, 0.0, 1.0))
    run = Simulation(case([], {"steps": 1, "cfl": 0.5}, gas={"reynolds": 200.0}), backend=where, grid=Grid(blocks))
    solver = run.solver
    fields = []
    for state in solver.states:
        fields.append(np.zeros((2, *state.shape)))
        linear, step = state.interior(fields[-1])
        linear[...] = 1 + 2 * state.block.x - 3 * state.block.y
        step[...] = state.block.y > 0.4
        monkeypatch.setattr(state, "array", lambda name, own=fields[-1]: own)
    # The name of a field whose halo is exchanged by itself: of connected faces there are none.
    solver._ghosts.send_field("jacobian")
    for state, field, before in zip(solver.states, fields, (False, True), strict=True):
        (h, _, _), (ni, nj, _) = state.halo, state.size
        ghosts = slice(0, h) if before else slice(h + ni, 2 * h + ni)
        x, y, _ = (c[h, h : h + nj, ghosts] for c in solver._blocks.extended[state.index])
        linear, step = field[:, 0, h : h + nj, ghosts]
        np.testing.assert_allclose(linear, 1 + 2 * x - 3 * y, rtol=0, atol=1e-12)
        assert step.min() == 0 and step.max() == 1


# ---- accuracy


@pytest.mark.parametrize("comes", [True, False])
def test_what_other_ranks_send_lies_behind_the_own(comes):
    """Three values of two numbers each of rank 1, or none; one goes there."""
    sent = []

    class Rank:
        def Irecv(self, buffer, other, tag):
            buffer[:] = 10 * other + np.arange(len(buffer))
            return SimpleNamespace(Wait=lambda: None)

        def Isend(self, buffer, other, tag):
            sent.append((other, buffer.tolist()))
            return SimpleNamespace(Wait=lambda: None)

    exchange = PatchedExchange.__new__(PatchedExchange)
    exchange._backend, exchange._own = Numpy(), 2
    exchange._into, exchange._out = {1: (0, 3)} if comes else {}, {1: (1, 1)}
    outgoing, incoming = np.arange(6.0), np.full(4 + 6 * comes, -1.0)
    exchange._carry(Rank(), 2, outgoing, incoming, np.zeros(6 * comes))
    assert incoming.tolist() == [-1.0] * 4 + [10.0, 11.0, 12.0, 13.0, 14.0, 15.0] * comes
    assert sent == [(1, [2.0, 3.0])]


def test_equal_nodes_give_what_a_connection_gives():
    blocks = beside((12, 12), (12, 12), (-1.0, 0.0, 1.0), curve=0.0)
    spec = case([], {"steps": 10, "cfl": 0.5}, gas={"reynolds": 100.0})
    joined = Case.from_dict({**spec.model_dump(), "boundary": spec.model_dump()["boundary"][-1:]})
    a = Simulation(spec, backend="cpu", grid=Grid(blocks), initial=waves)
    b = Simulation(joined, backend="cpu", grid=Grid(blocks, tuple(matched_connections(blocks))), initial=waves)
    for _ in range(10):
        a.solver.step(), b.solver.step()
    for one, other in zip(a.blocks, b.blocks, strict=True):
        for name in ("rho", "u", "v", "p"):
            np.testing.assert_allclose(one.state(name), other.state(name), rtol=0, atol=1e-12)


def vortex(time):
    """An isentropic vortex of radius 0.7 that the flow carries along x at 0.5; it starts at x = -1.25."""

    def state(x, y, z):
        r, s = (x + 1.25 - 0.5 * time) / 0.7, y / 0.7
        f = 0.6 * np.exp(0.5 * (1 - r * r - s * s))
        temperature = 1 - 0.2 * f * f
        return temperature**2.5, 0.5 - f * s, f * r, 0 * x, temperature**3.5 / 1.4

    return state


@cache
def vortex_error(cells):
    """RMS error of density when the vortex has come to the curved face between two blocks of `cells` along y."""
    ends, joined = (-4.5, 0.0, 4.5), cells[0] == cells[1]
    blocks = beside([n // 2 for n in cells], cells, ends, ys=(-4.5, 4.5), curve=0.3)
    dt = 0.5 * 9 / max(cells) * (32 / max(cells)) ** (2 / 3)
    spec = case([], {"end": 2.5, "dt": dt}, {"rho": 1.0, "u": 0.5, "p": P0}, scheme={"weights": "linear"})
    grid = Grid(blocks, tuple(matched_connections(blocks))) if joined else Grid(blocks)
    if joined:
        spec = Case.from_dict({**spec.model_dump(), "boundary": spec.model_dump()["boundary"][-1:]})
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=vortex(0))
    simulation.run()
    return errors(simulation, "rho", lambda x, y, z: vortex(2.5)(x, y, z)[0])[1]


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [(2, 3), (1, 2)], ids=str)
def test_a_vortex_keeps_its_order(ratio):
    """Across curved faces of 2:3 and 1:2 spacing: the order that one block has at these spacings, and no more error
    than the coarser of the two grids throughout."""
    one = [vortex_error((n, n)) for n in (32, 64)]
    found = [vortex_error((n, n * ratio[1] // ratio[0])) for n in (32, 64)]
    assert math.log2(found[0] / found[1]) > math.log2(one[0] / one[1]) - 0.1 > 3.5
    assert found[0] < one[0] and found[1] < one[1]


@pytest.mark.parametrize("cells", [(40, 60), (40, 80), (80, 40)], ids=str)
def test_sound_passes(cells):
    """Of a pulse with 12 points across on the coarser side less than 0.1 % comes back."""
    blocks = beside(cells, [n // 4 for n in cells], (-4.0, 0.0, 4.0), offset=True, curve=0.1)

    def pulse(x, y, z):
        s = 1e-4 * np.exp(-(((x + 2) / 0.5) ** 2))
        return 1 + s, s, 0 * x, 0 * x, P0 + s

    grid = Grid(blocks, period=({"j": (0.0, 1.0, 0.0)},) * 2)
    simulation = Simulation(case([PERIODIC], {"end": 3.5, "cfl": 0.5}), backend="cpu", grid=grid, initial=pulse)
    simulation.run()
    left, right = simulation.blocks
    came = 0.5 * (left.state("p") - P0 - left.state("u"))[simulation.solver.states[0].block.x < -0.3]
    passed = 0.5 * (right.state("p") - P0 + right.state("u"))
    assert np.abs(came).max() < 1e-3 * 1e-4
    assert passed.max() > 0.97e-4


def test_friction_passes():
    """A decaying shear wave of which the interface cuts the middle, to the accuracy of one block."""
    decay = math.pi**2 / 20.0

    def wave(time):
        return lambda x, y, z: (
            1 + 0 * x, 0 * x, 1e-3 * np.exp(-decay * time) * np.sin(math.pi * x), 0 * x, P0 + 0 * x
        )  # fmt: skip

    found = []
    for cells in ((10, 15), (20, 30)):
        blocks = beside(cells, cells, (-1.0, 0.0, 1.0), offset=True)
        grid = Grid(blocks, period=({"j": (0.0, 1.0, 0.0)},) * 2)
        time = {"end": 0.5, "dt": 0.5 / max(cells) ** 2}
        walls = {"faces": "all", "type": "no-slip-wall"}
        spec = case([PERIODIC, walls], time, gas={"reynolds": 20.0})
        simulation = Simulation(spec, backend="cpu", grid=grid, initial=wave(0))
        simulation.run()
        found.append(errors(simulation, "v", lambda x, y, z: wave(0.5)(x, y, z)[2])[1] / 1e-3)
    assert found[0] < 2e-4
    assert math.log2(found[0] / found[1]) > 3.7


@pytest.mark.slow
def test_a_shear_layer_stays():
    def layer(x, y, z, t=0.0):
        return 1 + 0 * x, 0.5 + 0.25 * np.tanh(y / 0.1), 0 * x, 0 * x, P0 + 0 * x

    worst = {}
    for name, cells, across in (("patched", (18, 27), (27, 40)), ("joined", (18, 18), (27, 27))):
        blocks = beside(cells, across, (-0.5, 0.0, 0.5), ys=(-0.5, 0.5), curve=0.1)
        walls = {"faces": ["jmin", "jmax"], "type": "slip-wall"}
        spec = case(
            [walls, {"block": "b0", "faces": ["imin"], "type": "profile-inflow", "function": "layer"},
             {"block": "b1", "faces": ["imax"], "type": "characteristic-outflow", "pressure": P0}],
            {"end": 6.0, "cfl": 0.5},
        )  # fmt: skip
        boundary = spec.model_dump()["boundary"][:-1]
        boundary = boundary if name == "patched" else boundary[2:]
        grid = Grid(blocks) if name == "patched" else Grid(blocks, tuple(matched_connections(blocks)))
        spec = Case.from_dict({**spec.model_dump(), "boundary": boundary})
        simulation = Simulation(spec, backend="cpu", grid=grid, initial=layer, profiles={"layer": layer})
        simulation.run()
        worst[name] = errors(simulation, "v", lambda x, y, z: 0.0)[0]
    assert worst["patched"] < 1.2 * worst["joined"] < 1e-3


def test_a_shock_passes():
    """Sod's tube across a curved face of 2:3 spacing; mass and energy are kept to a thousandth."""

    def tube(x, y, z):
        left = x < -0.2
        return np.where(left, 1.0, 0.125), 0 * x, 0 * x, 0 * x, np.where(left, 1.0, 0.1)

    blocks = beside((32, 48), (16, 24), (-0.5, 0.0, 0.5), ys=(0.0, 0.25), offset=True, curve=0.02)
    grid = Grid(blocks, period=({"j": (0.0, 0.25, 0.0)},) * 2)
    time = {"end": 0.15, "cfl": 0.5}
    tables = {"conservation": {"every": 1000}}
    spec = case([PERIODIC, {"faces": "all", "type": "supersonic-outflow"}], time, **tables)
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=tube)
    begin = totals(simulation)
    simulation.run()
    change = (totals(simulation) / begin - 1)[[0, 4]]
    assert 1e-8 < np.abs(change).max() < 1e-3  # not conservative, but nearly
    for block in simulation.blocks:
        assert block.state("p").min() > 0.09 and block.state("rho").min() > 0.12


def totals(simulation):
    """Integrals of the conservative variables; the shared face counts half on each side."""
    total = np.full(5, 1e-300)
    for state in simulation.solver.states:
        weight = 1 / state.interior(state.jacobian)
        weight[..., 0] *= 0.5
        weight[..., -1] *= 0.5
        total += (state.interior(state.q) * weight).sum(axis=(1, 2, 3))
    return total


def test_a_strong_shock_passes():
    """A pressure ratio of a million: the interpolation steps back to the linear one, which is convex."""

    def tube(x, y, z):
        return 1 + 0 * x, 0 * x, 0 * x, 0 * x, np.where(x < -0.1, 1e5, 0.1)

    blocks = beside((24, 16), (12, 8), (-0.5, 0.0, 0.5), ys=(0.0, 0.3), offset=True, curve=0.02)
    grid = Grid(blocks, period=({"j": (0.0, 0.3, 0.0)},) * 2)
    spec = case([PERIODIC, {"faces": "all", "type": "supersonic-outflow"}], {"end": 8e-4, "cfl": 0.4})
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=tube)
    simulation.run()
    assert simulation.blocks[1].state("p").max() > 1e4
