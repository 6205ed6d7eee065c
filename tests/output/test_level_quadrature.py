"""Integrals over the levels of a refined grid, and what `[conservation]` and `[kinetic_energy]` find with levels."""

import numpy as np
import pytest
import xarray
from chosen_tiles import choose_tiles
from ranks import run_ranks

from hiresx import Simulation
from hiresx.case import Case
from hiresx.decomposition.quadrature import block_weights
from hiresx.grid.blocks import FACES, direction, slices
from hiresx.output.watch.columns import all_volumes, level_weights

P0 = 1 / 1.4
FLOW = {"rho": 1.0, "u": 0.7, "v": 0.4, "p": P0}
WALLS = [{"faces": "all", "type": "slip-wall"}]
OPEN = [{"faces": "all", "type": "supersonic-outflow"}]
PERIODIC = [{"faces": "all", "type": "periodic"}]
# An L, a tile by itself at a corner of the domain, and a second level.
PLANE = [
    {"level": 1, "i": [6, 20], "j": [5, 9]}, {"level": 1, "i": [6, 9], "j": [5, 22]}, {"level": 1, "i": [37, 40]},
    {"level": 2, "i": [12, 16], "j": [13, 15]}, {"level": 2, "i": [0, 2], "j": [0, 2]},
]  # fmt: skip
SPACE = [{"level": 1, "i": [7, 10], "j": [0, 3], "k": [7, 9]}, {"level": 1, "i": [7, 16], "j": [7, 9], "k": [7, 9]}]


def refined(n, regions, boundary=PERIODIC, amplitude=(0.0, 0.0, 0.0), tile=8, **tables):
    periodic = ["x", "y", "z"][: 3 if n[2] > 1 else 2] if boundary is PERIODIC else []
    refine = {"tile": tile, "region": regions, **tables.pop("refine", {})}
    tables.setdefault("time", {"steps": 10, "cfl": 0.5})
    return Case.from_dict(
        {
            "grid": {
                "generator": "wavy", "n": list(n), "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, float(n[2] > 1)],
                "periodic": periodic, "amplitude": list(amplitude),
            },
            "refine": refine,
            "initial": {"state": FLOW},
            "boundary": boundary,
            **tables,
        }
    )  # fmt: skip


def jacobian(state):
    return np.asarray(state.interior(state.jacobian))


def integral(simulation, f, faces=None):
    """Of f(x, y, z) over all levels, by weights that are not scaled; over a face of the grid, if one is named."""
    solver, total = simulation.solver, 0.0
    weights = level_weights(solver)
    for n, (block, state) in enumerate(zip(simulation.blocks, solver.states, strict=True)):
        values = np.broadcast_to(f(*(np.asarray(c) for c in (block.x, block.y, block.z))), block.x.shape)
        if faces is None:
            total += (weights.nodes[n] * values / jacobian(state)).sum()
            continue
        d = direction(faces)
        area = np.abs(np.asarray(state.interior(state.areas[d]))[d])
        layer = [np.take(a, 0 if FACES.index(faces) % 2 == 0 else -1, axis=2 - d) for a in (values, area)]
        total += (weights.faces[n, faces] * layer[0] * layer[1]).sum()
    return total


@pytest.mark.parametrize(("n", "regions"), [((41, 36, 1), PLANE), ((20, 18, 17), SPACE)])
def test_integrals_of_linear_functions_are_exact_over_levels_and_on_their_faces(n, regions):
    simulation = Simulation(refined(n, regions, WALLS), backend="cpu")
    assert simulation.solver.decomposition.levels.finest == max(region["level"] for region in regions)

    def f(x, y, z):
        return 1 + 2 * x - 3 * y + 4 * z

    z = 4 * 0.5 * (n[2] > 1)
    assert integral(simulation, f) == pytest.approx(1 + 1 - 1.5 + z, abs=1e-13)
    there = {"imin": 1 - 1.5 + z, "imax": 3 - 1.5 + z, "jmin": 1 + 1 + z, "jmax": 1 + 1 - 3 + z}
    for face, wanted in there.items():
        assert integral(simulation, f, face) == pytest.approx(wanted, abs=1e-13)


def test_a_place_counts_on_its_finest_level_alone_away_from_the_ends_of_levels():
    """A node there has the weight 1 on that level and 0 on all others, on a face of the grid too."""
    simulation = Simulation(refined((41, 36, 1), [{"level": 1, "i": [8, 31], "j": [0, 27]}], WALLS), backend="cpu")
    weights, levels = level_weights(simulation.solver), simulation.solver.decomposition.levels
    coarse = weights.nodes[0][0]
    assert np.abs(coarse[14:21, 14:25]).max() < 1e-14
    assert np.abs(coarse[14:21, 8] - 1).min() > 0.1
    seen = 0
    for tile, own in zip(levels.tiles, weights.nodes, strict=True):
        (i0, i1), (j0, j1), _ = tile.box
        if tile.level and max(i0, j0) < 30 and i1 > 50 and j1 > 44:
            inner = own[0, 30 - j0 : 44 - j0, 30 - i0 : 50 - i0]
            assert np.abs(inner - 1).max() < 1e-14
            seen += inner.size
    assert seen == 14 * 20
    on_face = {0: 0.0, 1: 1.0}
    for n, tile in enumerate(levels.tiles):
        (i0, i1), (j0, _), _ = tile.box
        first, last = (14, 25) if tile.level == 0 else (max(i0, 28) - i0, min(i1, 50) - i0)
        if j0 == 0 and first < last:
            assert np.abs(weights.faces[n, "jmin"][:, first:last] - on_face[tile.level]).max() < 1e-14
            on_face[2 + n] = 0
    assert len(on_face) > 3


def test_weights_are_as_symmetric_as_the_levels():
    """A cross and an H, mirrored along both directions; the cross with the directions exchanged, too."""
    cross = [{"i": [4, 36], "j": [14, 26]}, {"i": [14, 26], "j": [4, 36]}]
    letter = [{"i": [4, 12], "j": [4, 36]}, {"i": [28, 36], "j": [4, 36]}, {"i": [4, 36], "j": [18, 22]}]
    for regions in (cross, letter):
        case = refined((41, 41, 1), regions, WALLS, refine={"symmetric": ["i", "j"]})
        own = level_weights(Simulation(case, backend="cpu").solver).nodes[0][0]
        assert np.ptp(own) > 1
        for other in [own[::-1], own[:, ::-1], *([own.T] if regions is cross else [])]:
            assert np.abs(own - other).max() < 1e-13


@pytest.mark.parametrize("kept", [False, True])
def test_a_level_over_the_whole_grid_has_the_weights_of_a_grid_of_its_own(kept):
    """No-slip walls, which have weights of their own, below and above, and a period along i."""
    walls = [
        {"faces": ["imin", "imax"], "type": "periodic"},
        {"faces": "all", "type": "no-slip-wall", "temperature": 1.0},
    ]

    def case(n, **refine):
        grid = {"generator": "box", "n": n, "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0], "periodic": ["x"]}
        return refined(n, [{"i": [0, 23]}], walls, grid=grid, gas={"reynolds": 100.0})

    simulation = Simulation(case([24, 21, 1]), backend="cpu")
    alone = Simulation(case([48, 41, 1]).model_copy(update={"refine": None}), backend="cpu").solver.decomposition
    weights, wanted = level_weights(simulation.solver, kept), block_weights(alone, 0, kept=kept)
    assert np.abs(weights.nodes[0]).max() < 1e-14
    for tile, own in zip(simulation.solver.decomposition.levels.tiles, weights.nodes, strict=True):
        if tile.level:
            assert np.abs(own - wanted[slices(tile.box)]).max() < 1e-14


# Over the end of the period, and up to it.
OVER = [{"level": 1, "x": [0.0, 0.2], "y": [0.3, 0.7]}, {"level": 2, "x": [0.85, 0.9], "y": [0.45, 0.55]}]
UP_TO = [{"level": 1, "x": [0.95, 1.0], "y": [0.1, 0.2]}]


@pytest.mark.parametrize(("boundary", "regions"), [(PERIODIC, OVER), (PERIODIC, UP_TO), (OPEN, OVER)])
def test_the_volume_of_levels_is_that_of_the_grid_to_the_order_of_the_formulas(boundary, regions):
    """Without corrections this would be the second."""
    off = []
    for n, tile in ((40, 8), (80, 16)):
        case = refined((n, n, 1), regions, boundary, (0.04, 0.05, 0.0), tile)
        simulation = Simulation(case, backend="cpu")
        off.append(abs(integral(simulation, lambda x, y, z: 1 + 0 * x) - 1))
        scaled = all_volumes(simulation.solver, level_weights(simulation.solver))
        assert sum(volume.sum() for volume in scaled) == pytest.approx(1, abs=1e-14)
    assert off[0] < 1e-7 and off[1] < off[0] / 2**5


def history(simulation, name="conservation"):
    (found,) = (a for a in simulation.attachments if a.name == f"history.{name}")
    return {key: np.asarray(rows) for key, rows in found.history.memory().items()}


def test_the_integrals_of_a_uniform_flow_stay_while_levels_move_over_wavy_grids(monkeypatch):
    place = [0.3]

    def ball(table, flow, nodes, beyond):
        x, y = nodes[0][:, 1:-1, 1:-1], nodes[1][:, 1:-1, 1:-1]
        return ((x - place[0]) ** 2 + (y - 0.4) ** 2 < 0.02).astype(float)

    choose_tiles(monkeypatch, ball)
    refine = {"criterion": "density-curvature", "levels": 2, "every": 2, "margin": 0}
    tables = {"conservation": {"every": 1}, "kinetic_energy": {"every": 1}}
    case = refined((40, 36, 1), [], amplitude=(0.04, 0.05, 0.0), refine=refine, **tables)
    simulation = Simulation(case, backend="cpu")
    for place[0] in (0.3, 0.5, 0.7):
        simulation.run(3, progress=False)
    assert simulation.adaptations.changes > 1
    found, energy = history(simulation), history(simulation, "kinetic_energy")["kinetic_energy"]
    assert len(found["mass"]) == 10
    for name, value in {"mass": 1.0, "momentum_x": 0.7, "momentum_y": 0.4}.items():
        assert np.abs(found[name] - value).max() < 1e-13
        assert np.abs(found[f"{name}_defect"]).max() < 1e-13
    assert np.abs(energy - 0.5 * (0.7**2 + 0.4**2)).max() < 1e-13


def tube(x, y, z):
    left = x < 0.35
    return np.where(left, 1.0, 0.125), 0 * x, 0 * x, 0 * x, np.where(left, 1.0, 0.1) * P0


def run_tube(regions, **refine):
    faces = [{"faces": ["imin", "imax"], "type": "slip-wall"}, {"faces": ["jmin", "jmax"], "type": "periodic"}]
    grid = {
        "generator": "box",
        "n": [81, 12, 1],
        "lower": [0.0, 0.0, 0.0],
        "upper": [1.0, 0.15, 0.0],
        "periodic": ["y"],
    }
    case = refined(
        (81, 12, 1), regions, faces, grid=grid, time={"end": 0.16, "cfl": 0.4}, conservation={"every": 4}, refine=refine
    )
    simulation = Simulation(case, initial=tube, backend="cpu")
    simulation.run(progress=False)
    return simulation


def test_the_defect_of_a_shock_tube_is_what_leaves_and_appears_at_the_ends_of_levels():
    """In a closed tube mass is conserved to round-off by one level, and to 1e-4 where a shock leaves it. Without fluxes
    the defect is the change of the integral, also over changes of the tiles."""
    whole = history(run_tube([{"level": 1, "i": [0, 80]}]))
    leaving = history(run_tube([{"level": 1, "x": [0.2, 0.5]}]))
    following = run_tube([], criterion="density-curvature", levels=1, every=8)
    assert following.adaptations.changes > 2
    followed = history(following)
    for found in (whole, leaving, followed):
        np.testing.assert_allclose(found["mass_defect"], found["mass"] - found["mass"][0], atol=1e-14)
    assert np.abs(whole["mass_defect"]).max() < 1e-13
    assert 1e-8 < np.abs(leaving["mass_defect"][-1]) < 1e-4
    assert np.abs(followed["mass_defect"]).max() < 1e-5


def test_what_leaves_through_the_boundaries_is_no_defect():
    """A spot that a supersonic flow carries out of the domain, through a level at the outflow."""

    def spot(x, y, z):
        s = 0.3 * np.exp(-((x - 0.7) ** 2 + (y - 0.5) ** 2) / 0.02)
        return 1 + s, 2 + 0 * x, 0 * x, 0 * x, P0 + 0 * x

    tables = {"conservation": {"every": 1}, "time": {"end": 0.3, "cfl": 0.4}}
    region = [{"level": 1, "x": [0.8, 1.0], "y": [0.3, 0.7]}]
    simulation = Simulation(refined((41, 36, 1), region, OPEN, **tables), initial=spot, backend="cpu")
    simulation.run(progress=False)
    found = history(simulation)
    change = found["mass"][0] - found["mass"][-1]
    assert change > 0.01 and np.abs(found["mass_defect"]).max() < 1e-3 * change


def test_a_run_says_its_defects_once_at_its_end(capsys):
    regions = [{"level": 1, "i": [10, 20], "j": [10, 20]}]
    simulation = Simulation(refined((40, 36, 1), regions, conservation={"every": 5}), backend="cpu")
    simulation.run()
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("levels: beside what passed the boundaries mass changed by") == 1


def moving(steps, **checkpoint):
    refine = {"criterion": "density-curvature", "levels": 1, "every": 4, "margin": 0}
    tables = {"conservation": {"every": 2}, "time": {"steps": steps, "dt": 0.006}, **checkpoint}
    return refined((40, 36, 1), [], amplitude=(0.04, 0.05, 0.0), refine=refine, **tables)


def carried(x, y, z):
    s = 0.3 * np.exp(-((x - 0.4) ** 2 + (y - 0.5) ** 2) / 0.006)
    return 1 + s, 0.7 + 0 * x, 0.4 + 0 * x, 0 * x, P0 + 0 * x


def test_a_restart_goes_on_with_the_defect(tmp_path):
    whole = Simulation(moving(14), initial=carried, backend="cpu")
    whole.run(progress=False)
    Simulation(moving(7), initial=carried, backend="cpu", out=tmp_path).run(progress=False)
    again = Simulation(moving(14), backend="cpu", restart=tmp_path)
    again.run(progress=False)
    assert whole.adaptations.changes > 0
    with xarray.open_dataset(tmp_path / "history" / "conservation.nc") as found:
        for name in ("mass", "mass_defect", "energy_defect"):
            assert np.array_equal(found[name], history(whole)[name])
        assert np.abs(found["mass_defect"][-1]) > 1e-12


def totals(comm=None):
    """Histories with levels that move, on the ranks of `comm`."""

    refine = {"criterion": "density-curvature", "levels": 2, "every": 4, "margin": 0}
    tables = {"conservation": {"every": 2}, "time": {"steps": 10, "dt": 0.004}}
    case = refined((40, 36, 1), [], amplitude=(0.04, 0.05, 0.0), refine=refine, **tables)
    simulation = Simulation(case, initial=carried, backend="cpu", **({} if comm is None else {"comm": comm}))
    simulation.run(progress=False)
    return simulation.adaptations.changes, history(simulation)


@pytest.mark.slow
def test_ranks_find_the_same_integrals():
    changes, alone = totals()
    assert changes > 0 and 0 < np.abs(alone["mass_defect"]).max() < 1e-6
    for _, found in run_ranks(2, totals, timeout=200):
        for name, values in alone.items():
            np.testing.assert_allclose(found[name], values, atol=1e-13)
