"""Levels with sponges: in tiles of the blocks that a sponge names, and as on the finest grid throughout."""

import numpy as np
import pytest
from ranks import run_ranks

from hiresx import Simulation
from hiresx.case import Case
from hiresx.grid import Block
from hiresx.grid.cutting import cut_along_i

P0 = 1 / 1.4
STILL = {"rho": 1.0, "u": 0.0, "v": 0.0, "p": P0}
CENTRE, WIDTH, START, STRENGTH, DT = 0.3, 0.08, 0.5, 12.0, 0.005


def pulse(x, y, z):
    """A plane pulse of sound that runs to the right."""
    s = 1e-4 * np.exp(-(((x - CENTRE) / WIDTH) ** 2))
    return 1 + s, s, 0 * x, 0 * x, P0 + s


def channel(n, refine=None, end=1.4, **changes):
    """A channel with a sponge from START to its end, a slip wall at x = 1."""
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": [n, 12, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 11 / (n - 1), 0.0]},
            "time": {"end": end, "dt": DT},
            "initial": {"state": STILL},
            "boundary": [{"faces": "all", "type": "slip-wall"}],
            "sponge": [
                {"axis": "x", "start": START, "end": 1.0, "strength": STRENGTH, "blocks": ["box"], "state": STILL}
            ],
            **({} if refine is None else {"refine": {"tile": 8, **refine}}),
            **changes,
        }
    )


def flow(case, backend="cpu", initial=pulse, **arguments):
    simulation = Simulation(case, backend=backend, initial=initial, **arguments)
    simulation.run(progress=False)
    return simulation


def pressure(simulation):
    """Pressure along the channel on the finest level, by coordinate."""
    found = {}
    for block in simulation.blocks:  # finer levels come last
        x = np.round(np.asarray(block.x)[0, 0], 9).tolist()
        found |= dict(zip(x, (block.state("p")[0, 0] - P0).tolist(), strict=True))
    return found


LEVEL = {"region": [{"x": [0.4, 1.0]}]}


def test_a_sponge_on_a_level_damps_as_on_the_finest_grid_throughout():
    """A pulse goes through the sponge, is reflected at the wall and goes back. What is left of it is that of the
    integral of the strength, twice; the grid of the level throughout gives the same to 1e-3 of the pulse."""
    levels, fine = pressure(flow(channel(41, LEVEL))), pressure(flow(channel(81)))
    left = max(value for x, value in levels.items() if x < START)
    assert left == pytest.approx(1e-4 * np.exp(-2 * STRENGTH * (1 - START) / 3), rel=0.05)
    assert max(abs(value - fine[x]) for x, value in levels.items()) < 1e-3 * 1e-4


def test_the_emulated_gpu_has_the_same_sponges_on_levels():
    case = channel(41, LEVEL, time={"steps": 4, "dt": DT})

    def inside(x, y, z):
        return pulse(x - 0.4, y, z)

    found = [flow(case, backend, inside) for backend in ("cpu", "emulated")]
    for one, other in zip(*(simulation.blocks for simulation in found), strict=True):
        assert all(np.abs(one.state(name) - other.state(name)).max() < 1e-13 for name in ("rho", "u", "p"))


def test_a_sponge_acts_in_the_tiles_of_the_blocks_that_it_names_alone():
    y, x = np.meshgrid(np.linspace(0.0, 0.5, 21), np.linspace(0.0, 1.0, 41), indexing="ij")
    grid = cut_along_i(Block("box", x[None], y[None], 0 * x[None]), [0, 20], ["a", "b"])
    layer = {"axis": "y", "start": 0.01, "end": 0.5, "strength": 1.0, "state": STILL}
    case = channel(
        81, {"region": [{"x": [0.4, 0.6]}]}, grid={"file": "none"},
        sponge=[{**layer, "blocks": ["b"]}, layer],
    )  # fmt: skip
    solver = Simulation(case, backend="cpu", grid=grid).solver
    levels, blocks = solver.decomposition.levels, solver.decomposition.blocks
    named = {blocks[n].name for n, tile in enumerate(levels.tiles) if tile.base == 1}
    assert any(name != "b" for name in named) and len(named) < len(blocks)
    assert {layer.block for layer in solver.sponges if layer.number == 0} == named
    assert {layer.block for layer in solver.sponges if layer.number == 1} == {block.name for block in blocks}


def moved(comm=None, **arguments):
    """The flow by block behind a sponge that draws to a function, with levels that follow the flow."""
    refine = {"criterion": "density-gradient", "refine": 1e-6, "levels": 1, "every": 4}
    case = channel(
        61, refine, time={"steps": 12, "dt": 0.004}, sponge=[
            {"axis": "x", "start": START, "end": 1.0, "strength": 5.0, "blocks": ["box"], "function": "calm"}
        ],
    )  # fmt: skip
    calm = {"calm": lambda x, y, z: (1 + 0.01 * x, 0 * x, 0 * x, 0 * x, P0 + 0 * x)}
    return Simulation(case, backend="cpu", initial=pulse, comm=comm, profiles=calm, **arguments)


def states(simulation):
    return {
        (b.whole, *b.first): np.stack([b.state(name) for name in ("rho", "u", "v", "p")]) for b in simulation.blocks
    }


def on_ranks(comm):
    simulation = moved(comm)
    simulation.run(progress=False)
    return states(simulation)


def test_levels_that_move_through_a_sponge_restart_bit_for_bit_and_are_the_same_on_two_ranks(tmp_path):
    whole = moved()
    whole.run(progress=False)
    assert whole.adaptations.changes > 0
    moved(out=tmp_path).run(6, progress=False)
    again = moved(restart=tmp_path)
    again.run(progress=False)
    expected = states(whole)
    found = states(again)
    assert expected.keys() == found.keys()
    assert all((found[key] == expected[key]).all() for key in expected)
    whole_blocks = {name: values for (name, *_), values in expected.items()}
    for rank in run_ranks(2, on_ranks, timeout=200):
        for (name, *first), values in rank.items():
            k, j, i = (slice(m, m + n) for m, n in zip(reversed(first), values.shape[1:], strict=True))
            assert (values == whole_blocks[name][:, k, j, i]).all()
