"""Forces on walls of refined runs: every part of a wall counts once, with the finest level that is there."""

from collections.abc import Sequence

import numpy as np
import pytest
from lens_grids import lens_grid, lower, upper
from ranks import run_ranks
from test_level_quadrature import PLANE, SPACE, WALLS, refined
from test_wall_forces import STICKS, flow
from watched_runs import watched

from hiresx import Case, HiresxError, Simulation
from hiresx import open as open_run
from hiresx.grid import Block, Connection, Grid
from hiresx.grid.blocks import face_range
from hiresx.output.watch import wall_file
from hiresx.post.wall import wall

REYNOLDS, SHEAR, WARMING = 50.0, 0.3, 0.2
INTEGRALS = ("area", "pressure_x", "pressure_y", "friction_x", "friction_y", "heat")


@pytest.mark.parametrize(("n", "regions"), [((41, 36, 1), PLANE), ((20, 18, 17), SPACE)], ids=["plane", "space"])
def test_the_force_of_a_linear_pressure_is_exact_over_levels(n, regions):
    """Levels in the form of an L, at corners of the domain, and two levels over one another."""
    faces = ["imin", "imax", "jmin", "jmax", "kmin", "kmax"][: 6 if n[2] > 1 else 4]
    named = [{"name": face, "faces": [face]} for face in faces]
    case = refined(n, regions, WALLS, force=[*named, {"name": "all", "faces": "all"}])

    def linear(x, y, z):
        return 1 + 0 * x, 0 * x, 0 * x, 0 * x, 1 + 0.2 * x - 0.3 * y + 0.1 * z

    simulation, monitors = watched(case, initial=linear)
    middle = [0.5, 0.5, 0.5 * (n[2] > 1)]
    for d, face in enumerate(faces):
        found = monitors[face].measure(simulation.solver)
        place = [*middle]
        place[d // 2] = float(d % 2)
        force = (2 * (d % 2) - 1) * linear(*place)[4]
        wanted = [force if axis == d // 2 else 0.0 for axis in range(3)]
        assert [found[f"pressure_{axis}"] for axis in "xyz"] == pytest.approx(wanted, abs=1e-13)
        assert found["area"] == pytest.approx(1.0, abs=1e-13)
        nodes = monitors[face].nodes
        assert nodes.areas.sum() == pytest.approx(1.0, abs=1e-13)
        # no place is there twice
        assert len(np.unique(nodes.places.round(9), axis=1).T) == len(nodes.areas)
    found = monitors["all"].measure(simulation.solver)
    assert [found["area"], found["pressure_x"]] == pytest.approx([len(faces), 0.2], abs=1e-13)


def test_part_of_a_wall_ends_where_it_does_without_levels():
    """Also within a cell of the second level, and where that level goes on in the rest of the wall."""
    case = refined((41, 36, 1), PLANE, WALLS, force=[{"name": "part", "faces": ["jmin"], "range": {"i": [2, 39]}}])
    simulation, monitors = watched(case, initial=lambda x, y, z: (1 + 0 * x, 0 * x, 0 * x, 0 * x, 1 + 0.2 * x))
    found = monitors["part"].measure(simulation.solver)
    begin, end = 2 / 40, 38 / 40
    assert found["area"] == pytest.approx(end - begin, abs=1e-13)
    assert found["pressure_y"] == pytest.approx(-(end - begin + 0.1 * (end**2 - begin**2)), abs=1e-13)


# --- curved no-slip walls


def ring(m: int, doubled: bool) -> Grid:
    """A ring of `m` cells around the unit circle, denser on one side; with `doubled` its last nodes are its first."""
    angle = np.linspace(0, 2 * np.pi, m + 1)[: m + doubled]
    r, angle = np.meshgrid(np.linspace(1, 2, m // 4 + 1), angle + 0.15 * np.sin(angle), indexing="ij")
    x, y = r * np.cos(angle), -r * np.sin(angle)
    if doubled:
        x[:, -1], y[:, -1] = x[:, 0], y[:, 0]
    block = Block("ring", x[None], y[None], 0 * x[None])
    ends = [Connection(0, face, face_range(face, block.size), 0, offset=(o, 0, 0))
            for face, o in (("imin", m), ("imax", -m))]  # fmt: skip
    return Grid((block,), ends)


def turning(x, y, z):
    """A flow around the circle that grows from 0 at it, as the temperature does from 1; a peak of pressure that cells
    of the coarsest ring do not resolve."""
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    speed = SHEAR * (r - 1) * (1 + 0.5 * np.cos(angle))
    p = 0.7 + 0.1 * np.cos(2 * angle + 0.3) + peak(angle)
    return 1.4 * p / (1 + WARMING * (r - 1)), -speed * np.sin(angle), speed * np.cos(angle), 0 * x, p


def peak(angle):
    return 0.2 * np.exp(-(((angle + 1.3) / 0.07) ** 2))


def exact() -> dict[str, float]:
    angle = np.linspace(-np.pi, np.pi, 4000, endpoint=False)
    x, y = np.cos(angle), np.sin(angle)
    p, stress = turning(x, y, 0 * x)[4], SHEAR * (1 + 0.5 * np.cos(angle)) / REYNOLDS
    warming = 2 * np.pi * WARMING / (REYNOLDS * 0.7 * 0.4)
    around = 2 * np.pi * np.stack([-p * x, -p * y, -stress * y, stress * x]).mean(axis=1)
    return dict(zip(INTEGRALS, (2 * np.pi, *around, warming), strict=True))


def rings(m: int, doubled: bool, levels: bool, **changes) -> tuple[Case, Grid]:
    per = m // 48
    regions = [
        # the peak, with a second level, and a level over the end of the ring
        {"level": 1, "i": [4 * per, 16 * per], "j": [0, 3 * per]},
        {"level": 2, "i": [6 * per, 12 * per], "j": [0, per]},
        {"level": 1, "i": [44 * per, 47 * per], "j": [0, 3 * per]},
        {"level": 1, "i": [0, per], "j": [0, 3 * per]},
    ]
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "gas": {"reynolds": REYNOLDS, "prandtl": 0.7, "viscosity": {"law": "constant"}},
        "initial": {"state": {"rho": 1.0, "p": 0.7}}, "time": {"steps": 1, "dt": 1e-9},
        "boundary": [
            {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0},
            {"faces": ["jmax"], "type": "supersonic-outflow"},
        ],
        "force": [{"name": "circle", "faces": ["jmin"], "extrema": True, "distribution": {}}],
        **({"refine": {"tile": 8 * per, "region": regions}} if levels else {}), **changes,
    })  # fmt: skip
    return case, ring(m, doubled)


def errors(m: int, doubled: bool, levels: bool) -> np.ndarray:
    case, grid = rings(m, doubled, levels)
    simulation, monitors = watched(case, grid=grid, initial=turning)
    found = monitors["circle"].measure(simulation.solver)
    return np.abs([found[name] - value for name, value in exact().items()])


@pytest.mark.parametrize("doubled", [False, True], ids=["offset", "doubled"])
def test_the_force_on_a_curved_wall_is_of_high_order_with_levels(doubled):
    """And where the peak of pressure is, that of the finest level: the grid alone has errors of 1e-3 there."""
    coarse, fine = (errors(m, doubled, True) for m in (96, 192))
    assert np.log2(coarse / fine).min() > 4.5, (coarse, fine)
    assert errors(48, doubled, False)[1:3].max() > 1e-3
    assert errors(48, doubled, True)[1:3].max() < 1e-4


def lens_errors(m: int, kind: str, arcs: Sequence[tuple[float, float]]) -> np.ndarray:
    """Of pressure and area, against Gauss's rule on both arcs. `arcs`: shares of the way around that levels cover."""
    s, weights = np.polynomial.legendre.leggauss(60)
    wanted = np.zeros(3)
    for sign, arc in ((1, upper), (-1, lower)):
        y = sign * arc(s)
        slope = sign * np.polyval(np.polyder(np.polyfit(s, arc(s), 3)), s)
        p = flow(s, y, 0)[0] * STICKS["temperature"] / 1.4
        wanted += np.stack([sign * p * slope, -sign * p, np.hypot(1, slope)]) @ weights
    regions = [{"i": [round(2 * m * a), round(2 * m * b)], "j": [0, 3]} for a, b in arcs]
    tables = {"refine": {"tile": 8, "region": regions}, "force": [{"name": "lens", "faces": ["jmin"]}]}
    walls = [STICKS | {"faces": ["jmin"]}, {"faces": ["jmax"], "type": "supersonic-outflow"}]
    case, _ = rings(48, False, False, boundary=walls, **tables)
    simulation, monitors = watched(case, grid=lens_grid(m, kind), initial=flow)
    found = monitors["lens"].measure(simulation.solver)
    return np.abs(np.array([found[name] for name in ("pressure_x", "pressure_y", "area")]) - wanted)


@pytest.mark.parametrize(
    ("kind", "arcs"),
    [
        # within the block of the level is an edge, it ends near one, it goes on over one between its ends
        ("apart doubled", [(0.58, 0.92), (0.0, 0.08)]),
        ("edge", [(0.25, 0.42)]),
        ("edge", [(0.75, 0.98), (0.0, 0.08)]),
    ],
    ids=["over an edge", "beside an edge", "over an edge of ends"],
)
def test_the_force_on_a_wall_with_edges_is_of_high_order_with_levels(kind, arcs):
    coarse, fine = lens_errors(24, kind, arcs), lens_errors(48, kind, arcs)
    assert (coarse < 1e-6).all() and np.log2(np.max(coarse) / np.max(fine)) > 4.5, (coarse, fine)


def test_nodes_of_a_wall_and_what_post_wall_shows_of_them(tmp_path):
    case, grid = rings(48, False, True)
    simulation = Simulation(case, "cpu", out=tmp_path, initial=turning, grid=grid)
    simulation.run(progress=False)
    samples = open_run(tmp_path).wall("circle")
    found, history = samples.isel(time=0), open_run(tmp_path).history("circle").isel(time=0)
    angle = np.arctan2(found["y"], found["x"])
    np.testing.assert_allclose(found["p"], turning(found["x"], found["y"], 0)[4], atol=1e-7)
    stress = SHEAR * (1 + 0.5 * np.cos(angle)) / REYNOLDS
    np.testing.assert_allclose(found["friction_x"], -stress * np.sin(angle), atol=2e-6)
    np.testing.assert_allclose(found["heat"], WARMING / (REYNOLDS * 0.7 * 0.4), rtol=1e-4)
    np.testing.assert_allclose(found["normal_x"], -np.cos(angle), atol=1e-5)
    places = np.stack([found[axis].values for axis in "xy"]).round(6)
    assert len(np.unique(places, axis=1).T) == len(angle) > 48
    # what nodes count adds up to the force, and extremes are those of the same nodes
    assert float((found["p"] * found["normal_y"] * found["area"]).sum()) == pytest.approx(
        float(history["pressure_y"]), abs=1e-9
    )
    assert float(found["area"].sum()) == pytest.approx(float(history["area"]), rel=1e-13)
    assert float(history["y_plus_max"]) == float(found["y_plus"].max())
    name = found["block"].values[int(found["y_plus"].values.argmax())]
    assert simulation.solver.decomposition.blocks[int(history["y_plus_max_block"])].name == name
    shown = wall(tmp_path, time=float(samples["time"][0])).data
    assert shown["p"].values.tolist() == found["p"].values.tolist()
    cut = wall(tmp_path, at="y=0.2", mean=True).data  # on the grid itself and on a level
    np.testing.assert_allclose(np.sort(cut["x"]), [-np.sqrt(0.96), np.sqrt(0.96)], atol=2e-3)


def test_post_wall_shows_the_finest_nodes_of_a_checkpoint(tmp_path):
    case = refined((41, 36, 1), PLANE, [STICKS | {"faces": ["jmin"]}, *WALLS], gas={"reynolds": 50.0})
    Simulation(case, "cpu", out=tmp_path).run(2, progress=False)
    shown = wall(tmp_path).data
    jmin = shown.where(shown["y"] == 0, drop=True)
    # nodes of the second level as far as x = 1/10, then of the first one, and of the grid from x = 9/40 on
    steps = np.diff(np.sort(jmin["x"]))
    np.testing.assert_allclose(np.unique(steps.round(9)), [1 / 160, 1 / 80, 1 / 40])
    assert (np.diff(steps) > -1e-9)[: len(steps) // 2].all()


def pushed(m: int, **refine) -> tuple[int, dict[str, np.ndarray]]:
    """Number of changes of the levels, and the history of the force of a pulse of sound that leaves a spot beside the
    wall."""

    def pulse(x, y, z):
        p = 0.7 * (1 + 0.1 * np.exp(-((x - 0.95) ** 2 + (y - 0.9) ** 2) / 0.02))
        return 1.4 * p, 0 * x, 0 * x, 0 * x, p

    walls = [{"faces": ["jmin"], "type": "no-slip-wall"}, {"faces": ["jmax"], "type": "supersonic-outflow"}]
    tables = {"boundary": walls, "time": {"steps": 40, "dt": 0.008}, **refine}
    case, grid = rings(m, False, False, force=[{"name": "circle", "faces": ["jmin"], "every": 10}], **tables)
    simulation = Simulation(case, "cpu", grid=grid, initial=pulse)
    simulation.run(progress=False)
    (history,) = (a.history.table().flat() for a in simulation.attachments if a.name == "history.circle")
    return getattr(simulation.adaptations, "changes", 0), history


def test_forces_while_a_criterion_moves_levels():
    """Within 0.5 % of those with half the spacing throughout, from which those of the grid alone are off by 8 %."""
    table = {"tile": 8, "criterion": "density-gradient", "refine": 0.002, "every": 10}
    changes, found = pushed(48, refine=table)
    _, wanted = pushed(96)
    _, alone = pushed(48)
    assert changes > 0
    np.testing.assert_allclose(found["area"], 2 * np.pi, rtol=1e-6)
    for name in ("pressure_x", "pressure_y"):
        scale = np.abs(wanted[name]).max()
        assert np.abs(found[name] - wanted[name]).max() < 5e-3 * scale
        assert np.abs(alone[name] - wanted[name]).max() > 5e-2 * scale
    with pytest.raises(HiresxError, match=r"refine.criterion is not supported with force.distribution"):
        rings(48, False, False, refine=table)


def measured(comm=None):
    case, grid = rings(48, True, True)
    arguments = {} if comm is None else {"comm": comm}
    simulation, monitors = watched(case, grid=grid, initial=turning, **arguments)
    return monitors["circle"].measure(simulation.solver)


@pytest.mark.slow
def test_ranks_find_the_same_forces():
    alone = measured()
    for found in run_ranks(3, measured, timeout=200):
        for name, value in alone.items():
            assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-13), name


def sampled(out, steps=None, comm=None, restart=None):
    force = {"name": "circle", "faces": ["jmin"], "every": 1, "extrema": True, "distribution": {"every": 1}}
    case, grid = rings(48, True, True, time={"steps": 4, "dt": 1e-3}, force=[force])
    arguments = {"initial": turning} if restart is None else {"restart": restart, "comm": comm}
    Simulation(case, "cpu", out=out, grid=grid, **arguments).run(steps, progress=False)


def go_on(comm, out):
    sampled(out, comm=comm, restart=out)


@pytest.mark.slow
def test_a_distribution_goes_on_on_other_ranks(tmp_path):
    sampled(tmp_path / "whole")
    sampled(tmp_path / "cut", 2)
    run_ranks(2, go_on, tmp_path / "cut", timeout=200)
    whole, cut = (wall_file.read(tmp_path / name / "walls" / "circle.nc") for name in ("whole", "cut"))
    assert whole.samples == cut.samples == 5
    for name in whole.quantities:
        np.testing.assert_allclose(cut.records[name], whole.records[name], rtol=1e-12, atol=1e-14)
