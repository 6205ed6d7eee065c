"""A characteristic outflow is the same whatever the grid, the indices, the precision, the backend and the ranks."""

import shutil

import numpy as np
import pytest
from ranks import run_ranks
from test_outflow import OUTFLOW, PERIODIC, P, case, disturbance, far, largest, vortex

from hiresx import Simulation
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend as make_backend
from hiresx.grid import Block, Grid
from hiresx.output.saved import checkpoint
from hiresx.solver import Solver

HALF, MACH = 5.0, 0.4
SIDES = {"imin": far(MACH), "imax": OUTFLOW, "jmin,jmax": PERIODIC}
# Waves across the outflow's face, which is not straight, and along the stream.
WAVY = {"generator": "wavy", "amplitude": [0.2, 0.2, 0.0], "waves": [1.25, 1.0, 1.0]}


def leaving(conditions, grid=None, nodes=None, **tables) -> float:
    """Share of the core's deficit of pressure that a vortex leaves behind."""
    spec = case([51, 51, 1], [-HALF, -HALF, 0], [HALF, HALF, 0], 1.0, conditions, grid=grid, **tables)
    given = {} if nodes is None else {"grid": Grid((Block("block", *nodes),))}
    simulation = Simulation(spec, "cpu", initial=vortex(0.1), **given)
    deficit = P - simulation.blocks[0].state("p").min()
    return largest(simulation, (HALF + 3.5) / MACH, (HALF + 6) / MACH, disturbance) / deficit


@pytest.mark.parametrize("grid", [None, WAVY], ids=["uniform", "wavy"])
@pytest.mark.parametrize("precision", ["fp64", pytest.param("fp32", marks=pytest.mark.slow)])
def test_a_vortex_leaves_a_wavy_grid_in_both_precisions(grid, precision):
    assert leaving(SIDES, grid, scheme={"precision": precision}) < 0.05


@pytest.mark.slow
def test_a_vortex_leaves_through_whichever_face():
    """x along -j or -i: what is left is the same but for rounding, which the choice of an angle magnifies."""
    b, a = (c[None] for c in np.meshgrid(*2 * [np.linspace(-HALF, HALF, 51)], indexing="ij"))
    flat = np.zeros_like(a)
    sides = {"imin,jmin,jmax": far(MACH), "imax": OUTFLOW}
    plain = leaving(sides, nodes=(a, b, flat))
    turned = leaving({"jmax,imin,imax": far(MACH), "jmin": OUTFLOW}, nodes=(-b, a, flat))
    back = leaving({"imax,jmin,jmax": far(MACH), "imin": OUTFLOW}, nodes=(-a, -b, flat))
    assert plain < 0.05
    assert turned == pytest.approx(plain, rel=1e-6) and back == pytest.approx(plain, rel=1e-6)


def edges(n=(25, 21, 1), **tables):
    """Three outflows around a vortex that starts close to two of them; gas comes in through parts of these."""
    conditions = {"imin": far(MACH), "imax,jmin,jmax": OUTFLOW}
    return case(list(n), [-3, -3, 0], [3, 3, 0], 100.0, conditions, **tables)


def start(x, y, z):
    return vortex(0.3)(x - 1.0, y - 1.0, z)


@pytest.mark.parametrize("precision", ["fp64", pytest.param("fp32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_a_restart_gives_the_same_bits(backend, precision, tmp_path):
    spec = edges(checkpoint={"every_steps": 7}, scheme={"precision": precision})
    whole = Simulation(spec, backend, initial=start, out=tmp_path / "run")
    whole.run(steps=20, progress=False)
    for path in checkpoint.list_checkpoints(tmp_path / "run")[:-1]:
        again = Simulation(spec, backend, initial=start, restart=shutil.copy(path, tmp_path / "copy.hxc"))
        again.run(steps=20 - again.step_count, progress=False)
        for name in ("rho", "u", "v", "p"):
            np.testing.assert_array_equal(again.blocks[0].state(name), whole.blocks[0].state(name))


def test_the_backends_agree():
    found = []
    for backend in ("cpu", "emulated"):
        simulation = Simulation(edges(), backend, initial=start)
        for _ in range(30):
            simulation.solver.step()
        found.append(simulation.blocks[0].state("p"))
    assert abs(found[0] - P).max() > 1e-3
    assert abs(found[0] - found[1]).max() < 1e-12


def test_local_steps_come_to_rest():
    """Every point with a step of its own, on a stretched grid: the pulse is gone, and nothing else has come."""
    stretch = {"stretch": {"x": {"cluster": "upper", "ratio": 8.0}}}
    spec = edges(grid=stretch, time={"steps": 600, "cfl": 0.5, "local": True})

    def pulse(x, y, z):
        wave = 0.01 * np.exp(-2 * (x * x + y * y))
        return 1 + wave, MACH, 0.0, 0.0, P + wave

    simulation = Simulation(spec, "cpu", initial=pulse)
    simulation.run(progress=False)
    assert disturbance(simulation) < 1e-2 * 0.01


def advanced(comm, steps):
    spec = edges((41, 33, 1))
    ground = domain(spec, comm, parts=lambda cut: partition(cut, comm.size))
    solver = Solver(spec, make_backend("cpu"), domain=ground)
    solver.initialize(start)
    for _ in range(steps):
        solver.step()
    p = np.zeros((33, 41))
    for block, state in enumerate(solver.states):
        _, j, i = state.part.slices
        p[j, i] = solver.primitives(block)["p"][0]
    return solver.time, p


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_share_the_means_of_a_face(ranks):
    found = run_ranks(ranks, advanced, 40)
    time, p = run_ranks(1, advanced, 40)[0]
    together = np.zeros_like(p)
    for of_time, part in found:
        assert of_time == pytest.approx(time, rel=1e-13)
        assert 0 < np.count_nonzero(part) < part.size
        together = np.where(part != 0, part, together)
    assert abs(p - P).max() > 1e-3
    assert abs(together - p).max() < 1e-13


@pytest.mark.parametrize("kind", ["characteristic-outflow", "pressure-outflow"])
def test_a_turned_grid_has_the_same_flow(kind):
    """By the default relaxation, from a pressure that the outflow draws back: with one over the largest extent along x,
    y or z the pressures differed by 8e-7 and 8e-6."""
    x, y = (c[None] for c in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(-1, 1, 9)))
    angle = np.deg2rad(30.0)
    flows = []
    for cos, sin in ((1.0, 0.0), (np.cos(angle), np.sin(angle))):
        conditions = {"imin": far(MACH * cos), "imax": OUTFLOW | {"type": kind}, "jmin,jmax": {"type": "slip-wall"}}
        conditions["imin"]["state"]["v"] = MACH * sin
        spec = case([25, 9, 1], [-3, -1, 0], [3, 1, 0], 1.0, conditions)

        def begin(x, y, z, cos=cos, sin=sin):
            return 1 + 0 * x, MACH * cos + 0 * x, MACH * sin + 0 * x, 0 * x, P + 0.01 + 0 * x

        grid = Grid((Block("block", cos * x - sin * y, sin * x + cos * y, 0 * x),))
        simulation = Simulation(spec, "cpu", grid=grid, initial=begin)
        simulation.run(progress=False)
        flows.append(simulation.blocks[0].state("p"))
    assert np.abs(flows[1] - flows[0]).max() < 1e-12
