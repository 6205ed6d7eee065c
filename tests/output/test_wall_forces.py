"""Forces on walls do not depend on how the grid is cut into blocks."""

import numpy as np
import pytest
from arrangements import decomposed, saved
from lens_grids import lens_grid, lower, upper
from multiblock import Arrangement
from watched_runs import SLIP, cut, watched

from hiresx import Case
from hiresx.base.arrays import triple
from hiresx.case.boundaries import NoSlipWall
from hiresx.grid import Block, Connection, Grid, matched_connections
from hiresx.grid.blocks import face_range
from hiresx.output.watch.wall_quadrature import wall_shares

STICKS = {"type": "no-slip-wall", "temperature": 1.1}


def bent(n) -> Block:
    k, j, i = np.meshgrid(*(np.linspace(0, 1, m) if m > 1 else np.zeros(1) for m in reversed(n)), indexing="ij")
    z = k + 0.1 * j if n[2] > 1 else 0 * k
    return Block("whole", 2 * i + 0.2 * j + 0.05 * np.sin(3 * j), j + 0.1 * np.sin(2 * i) + 0.1 * k, z)


def flow(x, y, z):
    wave = np.sin(1.3 * x + 2 * y - 1.7 * z)
    return 1 + 0.1 * wave, 0.2 + 0.1 * np.cos(2 * y), 0.1 * np.sin(x - z), -0.1 * wave, 0.72 + 0.1 * np.cos(x * y + z)


def forces(grid: Grid, boundary, **force) -> dict[str, float]:
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "gas": {"reynolds": 50.0},
        "initial": {"state": {"rho": 1.0, "p": 0.7}},
        "time": {"steps": 1},
        "boundary": boundary,
        "force": [{"name": "walls", "faces": "all", **force}],
    })  # fmt: skip
    simulation, monitors = watched(case, grid=grid, initial=flow)
    return monitors["walls"].measure(simulation.solver)


def same(found, expected) -> None:
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-11, abs=1e-11), name


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "offset"])
def test_a_plate_that_begins_where_blocks_meet(shared):
    """In one block and in two, the second of which has the plate: what lies before it does not count. A cell less or
    half a cell more was counted at its edge before."""
    whole = bent((25, 13, 1))
    plate, before = {"i": [10, 25]}, {"i": [0, 10]}
    others = SLIP | {"faces": ["imin", "imax", "jmax"]}
    uncut = [STICKS | {"faces": ["jmin"], "range": plate}, SLIP | {"faces": ["jmin"], "range": before}, others]
    expected = forces(Grid((whole,)), uncut, faces=["jmin"], range=plate)
    grid = cut(whole, 10 if shared else 9, shared)
    first, second = (block.name for block in grid.blocks)
    walls = [STICKS | {"faces": ["jmin"], "block": second}, SLIP | {"faces": "all"}]
    same(forces(grid, walls, faces=["jmin"], block=second), expected)
    assert first != second


@pytest.mark.parametrize("n", [(26, 23, 1), (17, 16, 15)], ids=["2-D", "3-D"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "offset"])
def test_walls_of_turned_parts(tmp_path, n, shared):
    whole = bent(n)
    walls = [STICKS | {"faces": "all"}]
    parts = Arrangement(whole, 4, 7, shared)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    same(forces(saved(tmp_path, parts.blocks, tables), walls), forces(Grid((whole,)), walls))


def test_a_slip_wall_that_goes_on_as_another_wall_leaves_no_gap():
    whole = bent((25, 13, 1))
    halves = [
        STICKS | {"faces": ["jmin"], "range": {"i": [10, 25]}},
        SLIP | {"faces": ["jmin"], "range": {"i": [0, 10]}},
        SLIP | {"faces": ["imin", "imax", "jmax"]},
    ]
    one = forces(Grid((whole,)), [STICKS | {"faces": ["jmin"]}, halves[-1]], faces=["jmin"])
    assert forces(Grid((whole,)), halves, faces=["jmin"])["area"] == pytest.approx(one["area"], rel=1e-13)


def test_weights_of_a_ring_that_is_closed(tmp_path):
    """Of one block and of three with indexes in other senses: each node counts once."""
    angle = np.linspace(0, 2 * np.pi, 43)
    r, angle = np.meshgrid(np.linspace(1, 2, 9), angle)
    x, y = r * np.cos(angle), r * np.sin(angle)
    x[-1], y[-1] = x[0], y[0]
    cuts = ((0, 15), (14, 29), (28, 43))
    turned = [np.s_[:], np.s_[::-1, ::-1], np.s_[:]]
    blocks = [
        Block(f"b{n}", *(np.ascontiguousarray(c[lo:hi][turned[n]])[None] for c in (x, y, 0 * x)))
        for n, (lo, hi) in enumerate(cuts)
    ]
    grid = Grid(tuple(blocks), tuple(matched_connections(blocks)))
    cut_up = decomposed(grid, NoSlipWall(faces="all"))
    walls = {(n, face): np.ones((1, 15), bool) for n, face in ((0, "imin"), (1, "imax"), (2, "imin"))}
    for ((weights, areas, _),) in wall_shares(cut_up, walls).values():
        np.testing.assert_array_equal(weights, [[0.5, *[1.0] * 13, 0.5]])
        assert np.isnan(areas).all()


# --- planes of symmetry


def round_body(whole: bool, sphere: bool, n: int = 16) -> Grid:
    """A ring about a cylinder, or a shell about a sphere with poles on the x axis: whole, or what has y (z) >= 0."""
    r = np.linspace(1, 2, 9)
    around = np.arange(n) * (2 * np.pi / n) if whole else np.linspace(0, np.pi, n // 2 + 1)
    cosine, sine = np.cos(around), np.where(np.abs(np.sin(around)) < 1e-12, 0, np.sin(around))
    if sphere:
        t = np.linspace(0, np.pi, 13)
        off = np.where(np.abs(np.sin(t)) < 1e-12, 0, np.sin(t)) * r[:, None]
        x = np.broadcast_to(-r[:, None] * np.cos(t), (len(around), *off.shape))
        block = Block("body", x, off * cosine[:, None, None], off * sine[:, None, None])
    else:
        x, y = -r[:, None] * cosine, r[:, None] * sine
        block = Block("body", x[None], y[None], 0 * x[None])
    ends, offset = (("kmin", "kmax"), (0, 0, n)) if sphere else (("imin", "imax"), (n, 0, 0))
    seam = [
        Connection(0, face, face_range(face, block.size), 0, offset=triple(step * m for m in offset))
        for face, step in zip(ends, (1, -1), strict=True)
    ]
    return Grid((block,), seam if whole else ())


@pytest.mark.parametrize("sphere", [False, True], ids=["cylinder", "sphere"])
def test_half_of_a_body_has_half_of_the_force(sphere):
    """Both differed by 1e-6 to 1e-4, since sums ended at the plane of symmetry."""

    def force(whole: bool) -> np.ndarray:
        boundary = [SLIP | {"faces": ["jmin", "jmax"]}]
        boundary += [{"type": "pole", "faces": ["imin", "imax"]}] if sphere else []
        ends = ["kmin", "kmax"] if sphere else ["imin", "imax"]
        boundary += [] if whole else [{"type": "symmetry", "faces": ends}]
        case = Case.from_dict({
            "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
            "initial": {"state": {"rho": 1.0, "p": 0.7}},
            "time": {"steps": 1},
            "boundary": boundary,
            "force": [{"name": "wall", "faces": ["jmin"]}],
        })  # fmt: skip
        simulation, monitors = watched(
            case, grid=round_body(whole, sphere),
            initial=lambda x, y, z: (1 + 0 * x, 0.0, 0.0, 0.0, 0.7 + 0.1 * x + 0.05 * x**2),
        )  # fmt: skip
        found = monitors["wall"].measure(simulation.solver)
        return np.array([found[name] for name in ("pressure_x", "area")])

    np.testing.assert_allclose(2 * force(whole=False), force(whole=True), rtol=1e-12)


# --- edges


def lens_forces(m: int, kind: str) -> np.ndarray:
    boundary = [SLIP | {"faces": ["jmin", "jmax"]}]
    found = forces(lens_grid(m, kind), boundary, faces=["jmin"])
    return np.array([found[name] for name in ("pressure_x", "pressure_y", "area")])


def test_the_force_on_a_wall_with_edges_is_of_high_order():
    """Against the integrals of the pressure over both arcs, by Gauss's rule."""
    s, weights = np.polynomial.legendre.leggauss(60)
    exact = np.zeros(3)
    for sign, arc in ((1, upper), (-1, lower)):
        y = sign * arc(s)
        slope = sign * np.polyval(np.polyder(np.polyfit(s, arc(s), 3)), s)
        p = flow(s, y, 0)[4]
        exact += np.stack([sign * p * slope, -sign * p, np.hypot(1, slope)]) @ weights
    errors = [np.abs(lens_forces(m, "apart doubled") - exact) for m in (12, 24, 48)]
    assert np.log2(np.divide(errors[:-1], errors[1:])).min() > 4.5, errors


@pytest.mark.parametrize("kind", ["edge doubled", "edge", "apart", "two"])
def test_the_force_on_a_wall_with_edges_does_not_depend_on_where_blocks_meet(kind):
    np.testing.assert_allclose(lens_forces(14, kind), lens_forces(14, "apart doubled"), rtol=1e-11)
