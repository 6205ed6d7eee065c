"""Surfaces of refined runs: samples are taken on the finest level that holds a place."""

import numpy as np
import pytest

from hiresx import Case, Simulation
from hiresx.output.watch import surface_file
from hiresx.results import Run

P0 = 1 / 1.4
STATE = {"rho": 1.0, "u": 0.5, "v": 0.2, "p": P0}
BOX = {"lower": [0.2, 0.2, 0.0], "upper": [0.75, 0.7, 0.0], "spacing": 0.013}
NODES = [{"faces": ["jmin"], "index": 12}]


def waves(x, y, z):
    """Uniform but for the density, whose waves the flow carries along."""
    return 1 + 0.1 * np.sin(14 * np.pi * (x + y)), 0.5 + 0 * x, 0.2 + 0 * x, 0 * x, P0 + 0 * x


def case(refine, **changes):
    return Case.from_dict(
        {
            "grid": {
                "generator": "wavy", "n": [40, 36, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0],
                "periodic": ["x", "y"], "amplitude": [0.03, 0.04, 0.0],
            },
            "time": {"steps": 4, "dt": 0.002},
            "initial": {"state": STATE},
            "boundary": [{"faces": "all", "type": "periodic"}],
            "surface": [{"name": "box", "every": 1, "box": BOX}, {"name": "line", "every": 1, "nodes": NODES}],
            **({} if refine is None else {"refine": {"tile": 8, **refine}}),
            **changes,
        }
    )  # fmt: skip


def sampled(out, refine, initial=waves, steps=0, **changes):
    """The run, and what its surfaces have."""
    simulation = Simulation(case(refine, **changes), backend="cpu", initial=initial, out=out)
    simulation.run(steps, progress=False)
    return simulation, {name: surface_file.read(path) for name, path in surface_file.surfaces(out).items()}


def errors(stored, number=0):
    x, y, z = stored.fixed_columns("x", "y", "z").T
    time = float(stored.records["time"][number])
    return np.abs(np.asarray(stored.records["rho"][number]) - waves(x - 0.5 * time, y - 0.2 * time, z)[0])


REGION = {"region": [{"level": 2, "x": [0.35, 0.6], "y": [0.15, 0.85]}]}


def test_values_are_those_of_the_finest_level_that_holds_a_place(tmp_path):
    """Waves of 5 nodes, in the gaps between blocks of a level too: interpolated on the grid itself they are off by more
    than 2e-3 of their amplitude, on the second level by less than 5e-5."""
    _, found = sampled(tmp_path / "levels", REGION)
    x = found["box"].fixed["x"]
    within = (x > 0.36) & (x < 0.59)
    assert within.sum() > 20
    assert errors(found["box"])[within].max() < 5e-6
    assert errors(found["box"]).max() > 2e-4
    _, alone = sampled(tmp_path / "alone", None)
    assert errors(alone["box"])[within].max() > 2e-4


def test_a_surface_of_nodes_is_one_of_the_grid_itself(tmp_path):
    """Its nodes under finer levels have the values of these."""
    simulation, found = sampled(tmp_path, REGION, steps=4)
    grid = simulation.blocks[0]
    assert len(found["line"].fixed["x"]) == 40
    assert (np.asarray(found["line"].fixed["x"]) == np.asarray(grid.x)[0, 12]).all()
    assert (np.asarray(found["line"].records["p"][-1]) == grid.state("p")[0, 12]).all()


def test_surfaces_go_on_while_levels_change_and_after_a_restart(tmp_path):
    def spot(x, y, z):
        s = 0.5 * np.exp(-((x - 0.18) ** 2 + (y - 0.45) ** 2) / 0.004)
        return 1 + s, 0.5 + 0 * x, 0.2 + 0 * x, 0 * x, P0 + 0 * x

    table = {"criterion": "density-curvature", "every": 2, "margin": 2, "levels": 1}
    time = {"steps": 12, "dt": 0.005}
    whole, expected = sampled(tmp_path / "whole", table, spot, 12, time=time)
    assert whole.adaptations.changes > 0
    sampled(tmp_path / "part", table, spot, 6, time=time)
    Simulation(case(table, time=time), backend="cpu", restart=tmp_path / "part", out=tmp_path / "part").run()
    for name, stored in expected.items():
        found = surface_file.read(surface_file.surfaces(tmp_path / "part")[name])
        assert stored.records["step"].tolist() == list(range(13))
        for column in stored.records.dtype.names:
            assert (found.records[column] == stored.records[column]).all(), column
    x, y, z = expected["box"].fixed_columns("x", "y", "z").T
    now = float(expected["box"].records["time"][-1])
    exact = spot(x - 0.5 * now, y - 0.2 * now, z)[0]
    assert np.ptp(exact) > 0.1
    assert np.abs(expected["box"].records["rho"][-1] - exact).max() < 2e-3


def test_a_place_outside_the_grid_is_refused_with_levels_too(tmp_path):
    beyond = {"lower": [0.2, 0.2, 0.0], "upper": [0.75, 0.7, 0.0], "spacing": 0.1}
    made = case(REGION, surface=[{"name": "s", "every": 1, "box": {**beyond, "upper": [3.0, 0.7, 0.0]}}])
    with pytest.raises(Exception, match=r'surface\.0 "s": the place .* lies outside the grid'):
        Simulation(made, backend="cpu", out=tmp_path)


def written(out, subset):
    """The subset of the flow at the start, of a run on levels, by block."""
    output = {"subset": [{"name": "part", "every_steps": 1, **subset}]}
    sampled(out, REGION, output=output, surface=[])
    return Run(out).fields(0, subset="part").children


def test_a_range_of_nodes_is_one_of_the_grid_itself(tmp_path):
    """Taken of tiles, too, it ended the run where these have fewer nodes, and gave nodes of other places elsewhere."""
    found = written(tmp_path, {"range": {"i": [3, 30], "j": [5, 20]}})
    assert list(found) == ["wavy"] and found["wavy"]["rho"].shape == (1, 15, 27)


@pytest.mark.parametrize("blocks", [{}, {"blocks": ["wavy"]}])
def test_a_line_goes_through_the_finest_level(tmp_path, blocks):
    """Between x = 0.36 and 0.59, where it has four samples for one of the grid, off by a sixteenth of what they are off
    on the grid itself at most."""
    line = written(tmp_path, {"line": {"y": 0.45}, **blocks})["line"]
    x, rho = (np.squeeze(line[name].values) for name in ("x", "rho"))
    off = np.abs(rho - waves(x, 0.45, 0.0)[0])
    fine = (x > 0.37) & (x < 0.58)
    assert (np.diff(x) > 0).all() and fine.sum() > 28
    assert off[fine].max() < off[~fine].max() / 10
