"""Levels at a nozzle's lip, whose face is a wall between joins: against the finest grid throughout, and a restart."""

import numpy as np
import pytest
from levels import finest_grid

from hiresx import Simulation, load
from hiresx.output.watch import surface_file

# The preset on a smaller domain, with fewer nodes.
SMALL = [
    "grid.points_per_height=16", "grid.length=3.0", "grid.half_height=2.5", "grid.upstream=1.5",
    "grid.sponge_length=3.0", "grid.sponge_height=2.0", "probe=[]", "time.dt=0.002", "time.end=0.02",
    "average.start=0.0", "average.every=2", "output.every_time=1000.0", "surface.0.every_time=0.004",
    "surface.0.box.caps=[]",
]  # fmt: skip
NEAR = ["refine.region=[{block='nozzle'}, {block='jet', x=[0.0, 1.0], y=[-0.9, 0.9]}]"]


def case(*overrides):
    return load("planar-jet", preset="levels-quick", overrides=[*SMALL, *overrides])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    simulation = Simulation(case(*NEAR), backend="cpu", out=out)
    simulation.run(progress=False)
    return simulation, out


def test_a_level_at_the_lip_is_the_finest_grid_throughout(whole):
    """Within 0.3 heights of the exit, to 1e-6 where the coarser grid is off by 1e-2 and more."""
    found, made = whole[0], case(*NEAR)
    grid = finest_grid(made)
    fine = Simulation(made.model_copy(update={"refine": None, "surface": ()}), backend="cpu", grid=grid)
    coarse = Simulation(made.model_copy(update={"refine": None, "surface": ()}), backend="cpu")
    for simulation in (fine, coarse):
        simulation.run(progress=False)
    off, seen = 0.0, set()
    for block, tile in zip(found.blocks, found.solver.decomposition.levels.tiles, strict=True):
        if tile.level:
            k, j, i = (slice(*ends) for ends in reversed(tile.box))
            near = (np.abs(block.x) < 0.3) & (np.abs(block.y) < 0.65)
            for name in ("rho", "u", "v", "p"):
                away = np.abs(block.state(name) - fine.blocks[tile.base].state(name)[k, j, i])
                off = max(off, away[near].max(initial=0.0))
            seen.add(tile.base)
    assert seen == {0, 1, 2, 3}, "the tiles on the other side of the joins are there"
    jet = np.abs(coarse.blocks[0].state("u") - fine.blocks[0].state("u")[:, ::2, ::2])
    assert jet[np.asarray(coarse.blocks[0].x) < 0.3].max() > 1e-2
    assert off < 1e-6


def test_the_wall_of_a_finer_level_is_that_of_the_lip(whole):
    """Its first and last nodes are the corners, at half a height and a tenth more."""
    decomposition = whole[0].solver.decomposition
    walls = [p for p in decomposition.patches if p.face == "imin" and p.condition.type == "no-slip-wall"]
    ends = []
    for patch in walls:
        y = decomposition.blocks[patch.block].y[0, slice(*patch.range[1]), 0]
        ends.append((round(float(y.min()), 12), round(float(y.max()), 12)))
    assert sorted(ends) == [(-0.6, -0.5), (-0.6, -0.5), (0.5, 0.6), (0.5, 0.6)]


def states(simulation):
    names = ("rho", "u", "v", "p")
    return {block.name: np.stack([block.state(name) for name in names]) for block in simulation.blocks}


def test_a_jet_on_levels_restarts_bit_for_bit_with_its_sponges_surface_and_averages(whole, tmp_path):
    part = Simulation(case(*NEAR), backend="cpu", out=tmp_path)
    part.run(5, progress=False)
    again = Simulation(case(*NEAR), backend="cpu", out=tmp_path, restart=tmp_path)
    again.run(progress=False)
    expected, found = states(whole[0]), states(again)
    assert expected.keys() == found.keys()
    assert all((found[key] == expected[key]).all() for key in expected)
    one, other = (surface_file.read(surface_file.surfaces(out)["around"]).records for out in (whole[1], tmp_path))
    assert len(one) == 6
    assert all((one[column] == other[column]).all() for column in one.dtype.names)
