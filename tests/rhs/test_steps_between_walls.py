"""The edge of a step between walls: two or three blocks have copies of its nodes."""

import numpy as np
import pytest
from same_everywhere import same_everywhere

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid, build
from hiresx.grid.blocks import whole_faces
from hiresx.grid.matching import matched_connections
from hiresx.grid.shaping import extrude
from hiresx.output.watch import monitors
from hiresx.output.watch.monitors.force import ForceMonitor

P = 1 / 1.4
SLIP = {"type": "slip-wall"}


# A level of finer spacing around the edge.
FINER = {"refine": {"tile": 8, "region": [{"x": [-0.2, 0.2], "y": [-0.2, 0.2]}]}}


WARM = {"wall": {"type": "no-slip-wall", "temperature": 1.1, "velocity": [0.1, 0.0, 0.0]}, "gas": {"reynolds": 200.0}}
ADIABATIC = {"wall": {"type": "no-slip-wall"}, "gas": {"reynolds": 200.0}}


def step(steps=30, depth=1, where="cpu", comm=None, out=None, one_block=None, wall=SLIP, **tables):
    """A stream of Mach 0.3 that begins at once over a step; with `depth` nodes along the edge. `one_block`: "down", the
    blocks behind the step are one block; "along", those above it are."""
    case = {
        "grid": {
            "generator": "backward-step", "spacing": 0.1, "upstream": 0.8, "length": 0.8, "height": 0.8, "depth": 0.8,
        },
        "time": {"steps": steps, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "u": 0.3, "p": P}},
        "boundary": [
            {"type": "characteristic-outflow", "faces": ["imin"], "range": "inlet", "pressure": P},
            {"type": "characteristic-outflow", "faces": ["imax"], "range": "outlet", "pressure": P},
            {"type": "periodic", "faces": ["kmin", "kmax"]},
            wall | {"faces": "all"},
        ],
    }  # fmt: skip
    if depth == 1:
        del case["boundary"][2]
    case = Case.from_dict(case | tables)
    if depth == 1 and one_block is None:
        return Simulation(case, where, comm=comm, out=out)
    grid = build(case.grid)
    if one_block:
        grid = of_two_blocks(*grid.blocks, one_block)
    if depth > 1:
        grid, _ = extrude(grid, depth, 0.1 * depth)
    return Simulation(case, where, grid=grid, comm=comm, out=out)


def of_two_blocks(channel, above, below, one_block):
    """The grid with two of its blocks joined to one."""
    first, second, axis = (below, above, 1) if one_block == "down" else (channel, above, 2)
    of_both = zip(first.coordinates, second.coordinates, strict=True)
    both = Block("both", *(np.concatenate([a, np.delete(b, 0, axis)], axis) for a, b in of_both))
    both.regions["outlet"] = whole_faces(both, "imax")
    if one_block == "along":
        both.regions["inlet"] = whole_faces(both, "imin")
    blocks = (channel, both) if one_block == "down" else (both, below)
    return Grid(blocks, tuple(matched_connections(blocks)))


def flow(run):
    """The states of all copies of the nodes at each place."""
    found = {}
    for block in run.blocks:
        places = zip(*(np.round(c, 9).ravel() for c in (block.x, block.y, block.z)), strict=True)
        states = np.stack([block.state(name) for name in ("rho", "u", "v", "w", "p")], axis=-1).reshape(-1, 5)
        for place, state in zip(places, states, strict=True):
            found.setdefault(place, []).append(state)
    return found


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


@pytest.mark.parametrize("walls", [WARM, ADIABATIC], ids=["warm", "adiabatic"])
def test_copies_of_the_edge_between_no_slip_walls_are_equal(walls):
    """They differed by 0.2 in p, and those of nodes beside it by 0.02."""
    runs = [step(10, one_block=which, **walls) for which in (None, "down", "along")]
    for run in runs:
        run.run(progress=False)
    expected, *others = map(flow, runs)
    (state, *_) = expected[0.0, 0.0, 0.0]
    np.testing.assert_allclose(state[1], walls["wall"].get("velocity", [0.0])[0], atol=1e-15)
    for found in (expected, *others):
        for place, states in found.items():
            np.testing.assert_allclose(states, [expected[place][0]] * len(states), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("depth", "walls"), [(1, {}), (9, {}), (1, ADIABATIC)], ids=["2-D", "3-D", "2-D and no-slip walls"]
)
def test_copies_of_the_edge_are_equal_on_all_levels(depth, walls):
    run = step(10, depth=depth, **walls, **FINER)
    run.run(progress=False)
    found = flow(run)
    for k in range(depth):
        assert len(found[0.0, 0.0, round(0.1 * k, 9)]) == 6
    for place, states in found.items():
        assert np.ptp(states, axis=0).max() <= 1e-13, place


# A vessel, with the finer level on all of it: ghosts at the end of a level depend on the blocks.
FINER_VESSEL = {"boundary": [SLIP | {"faces": "all"}], "refine": {"tile": 8, "region": [{"y": [-1.0, 1.0]}]}}


@pytest.mark.parametrize("tables", [{}, FINER_VESSEL], ids=["grid", "levels"])
@pytest.mark.parametrize("one_block", ["down", "along"])
def test_the_step_is_the_same_of_two_blocks(one_block, tables):
    """Copies differed by 0.3 in p."""
    expected, found = (step(10, one_block=which, **tables) for which in (None, one_block))
    for run in (expected, found):
        run.run(progress=False)
    expected, found = flow(expected), flow(found)
    assert found.keys() == expected.keys()
    for place, (state, *_) in expected.items():
        np.testing.assert_allclose(found[place], [state] * len(found[place]), rtol=0, atol=1e-13)


@pytest.mark.parametrize("tables", [{}, FINER], ids=["grid", "levels"])
def test_forces_reach_to_the_edge(tables):
    still = {"initial": {"state": {"rho": 1.0, "p": P}}}
    run = step(**still, **tables, force=[{"name": "step", "faces": ["jmin", "imin"], "range": "step"}])
    (monitor,) = (m for m in monitors.build(run.case, run) if isinstance(m, ForceMonitor))
    found = monitor.measure(run.solver)
    assert found["area"] == pytest.approx(0.8 + 0.8, rel=1e-12)
    for name, length in (("pressure_x", -0.8), ("pressure_y", -0.8)):
        assert found[name] == pytest.approx(length * P, rel=1e-12)


def with_friction(**options):
    return step(20, **ADIABATIC, **options)


@pytest.mark.slow
@pytest.mark.parametrize("make", [step, with_friction])
def test_plans_ranks_backends_and_restart(make, tmp_path):
    same_everywhere(make, tmp_path / "run", 10, ("decomposed", "compact"))
