"""Presets of bundled cases with levels: against the finest grid throughout, and symmetry."""

import numpy as np
import pytest
from chosen_tiles import choose_tiles

from hiresx import Simulation, load
from hiresx.case import Case
from hiresx.errors import HiresxError
from hiresx.grid.blocks import slices


def finished(case):
    simulation = Simulation(case, backend="cpu")
    simulation.run(progress=False)
    return simulation


def tiles(simulation):
    return simulation.solver.decomposition.levels.tiles


def whole_density(simulation):
    """The density at the nodes of the grid itself, which have the values of the finest level there."""
    return simulation.blocks[0].state("rho")


def test_the_double_mach_reflection_with_a_level_is_that_on_its_finest_grid_throughout():
    """To 1e-4 of what the coarser grid is off. The case without a preset has the grid of this level."""
    end = "time.end=0.006"
    levels = finished(load("double-mach", preset="levels-quick", overrides=[end, "refine.levels=1"]))
    fine = whole_density(finished(load("double-mach", overrides=[end])))[:, ::2, ::2]
    coarse = whole_density(finished(load("double-mach", preset="coarse", overrides=[end])))
    assert max(tile.level for tile in tiles(levels)) == 1 and levels.adaptations.changes > 0
    off = np.abs(whole_density(levels) - fine).mean()
    assert off < 1e-4 * np.abs(coarse - fine).mean()


def test_tiles_at_a_profile_have_its_values_at_their_own_nodes():
    """On the upper edge of the double Mach reflection, along which the shock runs."""
    simulation = finished(load("double-mach", preset="levels-quick", overrides=["time.end=0.003"]))
    case, seen = simulation.case, 0
    for block, tile in zip(simulation.blocks, tiles(simulation), strict=True):
        last = simulation._ground.hierarchy.grids[tile.level].blocks[0].size[1]
        if tile.level == 0 or tile.box[1][1] != last:
            continue
        edge = tuple(np.asarray(c)[:, -1:] for c in (block.x, block.y, block.z))
        rho = np.broadcast_to(case.evaluate("shock", *edge, simulation.time)[0], edge[0].shape)
        assert np.ptp(rho) > 1 or tile.level == 1
        assert np.abs(block.state("rho")[:, -1:] - rho).max() < 1e-12
        seen += 1
    assert seen > 1


def asymmetry(simulation, axes):
    """The largest difference of the density to that mirrored along these axes, in shares of its largest value."""
    rho = whole_density(simulation)
    return max(np.abs(rho - np.flip(rho, axis)).max() / rho.max() for axis in axes)


def test_a_blast_stays_symmetric_in_the_plane():
    """Its tiles change. Also with x and y exchanged; without `refine.symmetric` it is off by 1e-9 and more."""
    simulation = finished(load("sedov", preset="levels-quick", overrides=["time.end=0.2"]))
    assert simulation.adaptations.changes > 2
    assert asymmetry(simulation, (1, 2)) < 1e-13
    rho = whole_density(simulation)
    assert np.abs(rho - rho.swapaxes(1, 2)).max() < 1e-13 * rho.max()
    overrides = ["time.end=0.05", "refine.symmetric=[]"]
    assert asymmetry(finished(load("sedov", preset="levels-quick", overrides=overrides)), (1, 2)) > 1e-9


@pytest.mark.slow
def test_a_blast_stays_symmetric_in_space():
    overrides = ["time.end=0.02", "refine.levels=1", "refine.region.0.level=1"]
    simulation = finished(load("sedov", preset="levels-space", overrides=overrides))
    assert simulation.adaptations.changes > 0
    assert asymmetry(simulation, (0, 1, 2)) < 1e-13


def box(n, tile, **tables):
    refine = {"tile": tile, "symmetric": ["i"], "region": [{"i": [2, 4]}], **tables.pop("refine", {})}
    tables.setdefault("boundary", [{"faces": "all", "type": "slip-wall"}])
    grid = {"generator": "box", "n": [n, 20, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0]}
    return Case.from_dict(
        {
            "grid": grid | tables.pop("grid", {}),
            "refine": refine,
            "initial": {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": 1 / 1.4}},
            "time": {"steps": 1, "cfl": 0.5},
            **tables,
        }
    )


@pytest.mark.parametrize("n", [9, 20, 21, 25, 40, 41])
def test_symmetric_tiles_lie_opposite_to_each_other(n):
    """Along i, where a region at the beginning of the block is one at its end too; along j as before."""
    simulation = Simulation(box(n, 8), backend="cpu")
    size = 2 * n - 1
    covered = np.zeros((1, 39, size), bool)
    ends = set()
    for tile in tiles(simulation):
        if tile.level:
            covered[slices(tile.box)] = True
            ends.add(tile.box[0])
    assert (covered == np.flip(covered, 2)).all() and covered[:, :, 4].all()
    assert ends == {(size - hi, size - lo) for lo, hi in ends}


def test_tiles_are_symmetric_where_what_is_flagged_is_not(monkeypatch):
    """As by round-off, or by the order in which gaps are filled."""

    def left(table, flow, nodes, beyond):
        x, y = nodes[0][:, 1:-1, 1:-1], nodes[1][:, 1:-1, 1:-1]
        return ((x < 0.2) & (y < 0.2)).astype(float)

    choose_tiles(monkeypatch, left)
    refine = {"criterion": "density-curvature", "margin": 0, "region": []}
    (_, *found) = tiles(Simulation(box(81, 8, refine=refine), backend="cpu"))
    assert {tile.box[0] for tile in found} == {(0, 32), (129, 161)}


def test_symmetric_tiles_are_refused_along_a_period():
    periodic = [{"faces": ["imin", "imax"], "type": "periodic"}, {"faces": "all", "type": "slip-wall"}]
    with pytest.raises(HiresxError, match=r"refine\.symmetric: block 'box' continues along i"):
        Simulation(box(20, 8, grid={"periodic": ["x"]}, boundary=periodic), backend="cpu")
