"""Marks of nodes where the flow wants a finer level: those of the kernel are those of the criterion in NumPy."""

import numpy as np
import pytest

from hiresx import Case, Simulation
from hiresx.decomposition.flags import Flags, criterion, looked_at, marks
from hiresx.grid.blocks import whole_box
from hiresx.simulation import flow_flags


def flow(x, y, z):
    """Waves that fade away along y, so that tiles lie at one of the walls."""
    fade = np.where(y < 0.4, 1.0, 0.01)
    wave = 0.3 * fade * np.sin(5 * x + 1) * np.cos(4 * y) * np.cos(3 * z + 0.5)
    w = 0.4 * fade * np.sin(4 * x + 2 * y) * (np.ptp(z) > 0)
    return 1 + wave, 0.3 * fade * np.sin(6 * y + z), 0.2 * fade * np.cos(5 * x), w, 0.7 + wave


def moved(n, criterion_of, thresholds):
    grid = {
        "generator": "wavy", "n": n, "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0 if n[2] == 1 else 1.0],
        "periodic": ["x"], "amplitude": [0.0, 0.0, 0.0],
    }  # fmt: skip
    refine, coarsen = thresholds
    faces = ["jmin", "jmax"] if n[2] == 1 else ["jmin", "jmax", "kmin", "kmax"]
    return Case.from_dict(
        {
            "grid": grid,
            "refine": {
                "tile": 8,
                "criterion": criterion_of,
                "refine": refine,
                "coarsen": coarsen,
                "levels": 2,
                "every": 1000,
                "margin": 0,
            },
            "boundary": [{"faces": faces, "type": "slip-wall"}, {"faces": "all", "type": "periodic"}],
            "initial": {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": 0.7}},
            "time": {"steps": 1, "cfl": 0.3},
        }
    )


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("n", [(26, 21, 1), (18, 17, 16)])
@pytest.mark.parametrize(
    ("name", "thresholds"),
    [("density-curvature", (0.5, 0.2)), ("density-gradient", (0.03, 0.02)), ("vorticity", (2.5, 1.5))],
)
def test_marks_of_the_device_are_those_of_the_criterion(backend, n, name, thresholds):
    """Thresholds that part of the nodes exceed, by which all three marks occur. The grid is of parallel lines, along
    which the metrics of the criterion of vorticity are exact."""
    simulation = Simulation(moved(n, name, thresholds), initial=flow, backend=backend)
    ground, solver = simulation._ground, simulation.solver
    solver.settle()
    table, levels, seen, at_one_end = ground.hierarchy.table, ground.whole.levels, set(), 0
    states = [state for state in solver.states if levels.tiles[state.part.whole].level < 2]
    for state, found in zip(states, flow_flags.marks_of_flow(ground, solver, states), strict=True):
        around = tuple(
            slice(h - 1, h + m + 1) if h else slice(0, 1)
            for h, m in zip(reversed(state.halo), reversed(state.size), strict=True)
        )
        rho, *momentum = solver.backend.to_host(state.q[: looked_at(table)])[(slice(None), *around)]
        nodes = flow_flags._window(ground.coordinates(state.part), whole_box(state.size), ground.halo)
        tile = levels.tiles[state.part.whole]
        size = levels.spaces[tile.level, 0].size
        walls = [False, True, n[2] > 1]
        beyond = np.array(
            [[wall and lo == 0, wall and hi == m] for wall, (lo, hi), m in zip(walls, tile.box, size, strict=True)]
        )
        at_one_end += (beyond[:, 0] & ~beyond[:, 1]).sum()
        wanted = marks(table, criterion(table, [rho, *(m / rho for m in momentum)], nodes, beyond))
        assert found.dtype == np.int8 and (found == wanted).all()
        seen |= set(np.unique(found).tolist())
    assert seen == {0, 1, 2} and (at_one_end or name == "density-curvature")


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize(("n", "margin"), [((26, 21, 1), 0), ((26, 21, 1), 3), ((18, 17, 16), 2)])
def test_largest_marks_select_the_tiles_that_the_nodes_select(backend, n, margin):
    case = moved(n, "density-gradient", (0.03, 0.02))
    table = case.refine.model_copy(update={"margin": margin})
    simulation = Simulation(case.model_copy(update={"refine": table}), initial=flow, backend=backend)
    ground, solver = simulation._ground, simulation.solver
    by_nodes, by_boxes, rng = Flags(ground.hierarchy), Flags(ground.hierarchy), np.random.default_rng(3)
    places, of_nodes = [], []
    for state in solver.states:
        tile = ground.whole.levels.tiles[state.part.whole]
        if tile.level == 2:
            continue
        # few marked nodes, each of which decides on tiles, and some near a periodic end
        of_nodes.append(rng.choice(np.array([0, 1, 2], np.int8), p=[0.98, 0.01, 0.01], size=state.size[::-1]))
        places.append((tile.level, tile.base, tile.box))
    alike = [by_boxes.alike(*place) for place in places]
    of_boxes = flow_flags._largest_marks(solver, of_nodes, alike)
    assert len(places) > 1
    for place, found, largest, first in zip(places, of_nodes, of_boxes, alike, strict=True):
        assert largest.size < found.size
        by_nodes.add(*place, found)
        by_boxes.add(*place, largest, first)
    for one, other in ((by_nodes.above, by_boxes.above), (by_nodes.held, by_boxes.held)):
        assert all((a == b).all() for of, same in zip(one, other, strict=True) for a, b in zip(of, same, strict=True))
    above = np.concatenate([some.ravel() for some in by_nodes.above[1]])
    assert above.any() and not above.all()


def test_marks_are_two_where_the_criterion_exceeds_refine_and_one_where_it_exceeds_coarsen():
    table = moved((26, 21, 1), "vorticity", (2.0, 1.0)).refine
    assert marks(table, np.array([0.5, 1.0, 1.5, 2.0, 2.5, np.nan])).tolist() == [0, 0, 1, 1, 2, 0]
