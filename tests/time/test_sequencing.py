"""Steady flow that starts from the flow on the grid of every second node."""

from dataclasses import replace

import numpy as np
import pytest
from wholes import whole

from hiresx import Simulation, load
from hiresx.decomposition.partition import partition
from hiresx.errors import HiresxError
from hiresx.grid.shaping import coarsen
from hiresx.simulation import sequencing
from hiresx.simulation.prolongation import line_weights

BUMP = [
    'time.integrator="implicit"', "time.cfl=2.0", "grid.cells=[4, 8, 4]", "grid.n_normal=13", "time.steps=60",
    "grid.first_spacing=0.1", "monitor.every=10",
]  # fmt: skip


def bump(*overrides):
    return load("bump", preset="subsonic", overrides=[*BUMP, *overrides])


def halves(cut):
    return [replace(part, rank=0) for part in partition(cut, 2)]


def test_a_coarser_grid_gives_the_start(monkeypatch):
    """On a block that is cut in two: at every second node the steady flow of these nodes alone, told in one line. At
    walls the nodes of the two grids have other normals."""
    monkeypatch.setattr(sequencing, "ENOUGH", 1e8)
    grid = "grid.cells=[8, 16, 8]", "grid.n_normal=25"
    started = Simulation(bump("implicit.sequence=1", *grid), "cpu", parts=halves)
    lines = started.restarted
    started.run(0, progress=False)
    assert len(started.blocks) == 2 and started.step_count == 0
    (line,) = lines
    assert "221 nodes" in line
    coarse = Simulation(bump(*grid), "cpu", grid=coarsen(started.solver.grid)[0])
    (begun,) = whole(coarse.solver)
    coarse.run(progress=False)
    (found,), (wanted,) = whole(started.solver), whole(coarse.solver)
    inner = np.s_[:, :, 1:-1, 1:-1]
    assert np.abs(begun - wanted)[inner].max() > 0.05
    assert np.abs(found[..., ::2, ::2] - wanted)[inner].max() < 1e-6


def test_the_coarser_grid_begins_with_the_functions_given_in_python():
    made = bump("implicit.sequence=1", "grid.cells=[8, 16, 8]", "grid.n_normal=25", "time.steps=1")
    made = made.model_copy(update={"initial": made.initial.model_copy(update={"state": None, "function": "stream"})})
    started = Simulation(made, "cpu", initial=lambda x, y, z: (1.0, 0.5, 0.0, 0.0, 1 / 1.4))
    started.run(0, progress=False)
    assert started.step_count == 0


@pytest.mark.slow
def test_each_of_the_coarser_grids_has_its_line():
    """From the coarsest on."""
    started = Simulation(bump("implicit.sequence=2", "grid.cells=[8, 16, 8]", "grid.n_normal=25"), "cpu")
    lines = started.restarted
    started.run(0, progress=False)
    assert [line.split(":")[0] for line in lines] == [
        f"started from the flow on {nodes} nodes" for nodes in (9 * 7, 17 * 13)
    ]


def test_nodes_of_the_coarser_grid_keep_their_values():
    for step, nodes in ((1, 8), (2, 13)):
        high, linear = line_weights(nodes, step)
        place = np.arange(nodes)
        coarse = place[::step]
        np.testing.assert_array_equal(high[::step], np.eye(len(coarse)))
        np.testing.assert_allclose(linear @ coarse, place, atol=1e-13)
        if step == 2:
            np.testing.assert_allclose(high @ coarse**5.0, place**5.0, rtol=1e-12, atol=1e-9)


def test_what_has_no_coarser_grid_is_refused():
    with pytest.raises(HiresxError, match=r"implicit\.sequence = 1: coarsen: there is no direction"):
        Simulation(bump("implicit.sequence=1", "grid.cells=[5, 9, 5]", "grid.n_normal=12"), "cpu").run(progress=False)
    with pytest.raises(HiresxError, match=r"boundary\.0\.range gives nodes by number"):
        load("bump", overrides=[*BUMP, "implicit.sequence=1", "boundary.0.range={j=[1, 5]}"])
    with pytest.raises(HiresxError, match=r"implicit\.sequence is not for"):
        load("bump", overrides=['time.integrator="bdf2"', "time.end=1.0", "time.local=false", "implicit.sequence=1"])
