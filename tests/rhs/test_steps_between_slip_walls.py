"""The edge of a step between slip walls: three blocks have copies of its nodes."""

import numpy as np
import pytest
from same_everywhere import same_everywhere

from hiresx import Case, Simulation
from hiresx.grid import build
from hiresx.grid.shaping import extrude
from hiresx.output.watch import monitors
from hiresx.output.watch.monitors.force import ForceMonitor

P = 1 / 1.4
SLIP = {"type": "slip-wall"}


def step(steps=30, depth=1, where="cpu", comm=None, out=None, **tables):
    """A stream of Mach 0.3 that begins at once over a step; with `depth` nodes along the edge."""
    case = {
        "grid": {
            "generator": "backward-step", "spacing": 0.1, "upstream": 1.0, "length": 1.0, "height": 0.8, "depth": 0.8,
        },
        "time": {"steps": steps, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "u": 0.3, "p": P}},
        "boundary": [
            {"type": "characteristic-outflow", "faces": ["imin"], "range": "inlet", "pressure": P},
            {"type": "characteristic-outflow", "faces": ["imax"], "range": "outlet", "pressure": P},
            {"type": "periodic", "faces": ["kmin", "kmax"]},
            SLIP | {"faces": "all"},
        ],
    }  # fmt: skip
    if depth == 1:
        del case["boundary"][2]
    case = Case.from_dict(case | tables)
    grid = build(case.grid)
    if depth > 1:
        grid, _ = extrude(grid, depth, 0.1 * depth)
    return Simulation(case, where, grid=grid, comm=comm, out=out)


@pytest.mark.parametrize("depth", [1, 9], ids=["2-D", "3-D"])
def test_copies_of_the_edge_are_equal(depth):
    """They differed by 0.1 in p. So did the nodes beside them that two blocks have."""
    run = step(depth=depth)
    run.run(progress=False)
    channel, above, below = (
        np.stack([block.state(name) for name in ("rho", "u", "v", "w", "p")]) for block in run.blocks
    )
    assert np.ptp(above[4]) > 0.1
    for own, other in ((channel[..., -1], above[..., 0]), (below[..., -1, :], above[..., 0, :])):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-13)


def test_forces_reach_to_the_edge():
    still = {"initial": {"state": {"rho": 1.0, "p": P}}}
    run = step(**still, force=[{"name": "step", "faces": ["jmin", "imin"], "range": "step"}])
    (monitor,) = (m for m in monitors.build(run.case, run) if isinstance(m, ForceMonitor))
    found = monitor.measure(run.solver)
    assert found["area"] == pytest.approx(1.0 + 0.8, rel=1e-12)
    for name, length in (("pressure_x", -0.8), ("pressure_y", -1.0)):
        assert found[name] == pytest.approx(length * P, rel=1e-12)


@pytest.mark.slow
def test_plans_ranks_backends_and_restart(tmp_path):
    same_everywhere(step, tmp_path / "run", 20, ("decomposed", "compact"))
