"""The distance to the nearest wall against exact ones: planes, a cylinder and a sphere, periodic images, ranks."""

import numpy as np
import pytest
from ranks import run_ranks

from hiresx import Case, HiresxError, Simulation
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.grid import Block, Grid
from hiresx.solver import Solver

WALL = {"type": "no-slip-wall"}


def distance(case, **options) -> tuple[Simulation, np.ndarray]:
    run = Simulation(case, "cpu", **options)
    return run, run.solver.field(0, "wall_distance").reshape(run.blocks[0].x.shape)


def sheared(n=(9, 7, 8), boundary=None) -> Case:
    """A box with walls at jmin and kmax, which may be given others."""
    walls = [{"faces": ["jmin", "kmax"], **WALL}, {"faces": ["imin", "imax", "jmax", "kmin"], "type": "symmetry"}]
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": [1, 2, 1.5]},
            "gas": {"reynolds": 10.0},
            "time": {"steps": 1, "cfl": 0.5},
            "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
            "output": {"variables": ["rho", "wall_distance"]},
            "boundary": walls if boundary is None else boundary,
        }
    )


def test_two_planes():
    run, found = distance(sheared())
    y, z = run.blocks[0].y, run.blocks[0].z
    np.testing.assert_allclose(found, np.minimum(y, 1.5 - z), rtol=0, atol=1e-14)


FAR = {"type": "far-field", "state": {"rho": 1.0, "p": 1 / 1.4}}


def inside(shape: str, n: int, angle: float) -> Block:
    """A piece of the inside of a cylinder or a sphere of radius 1 about the origin, imax on it, its lines turned by up
    to `angle` against the radii."""
    r, t, f = np.meshgrid(np.linspace(0.6, 1, 9), np.linspace(1, 2, n), np.linspace(0, 1, n), indexing="ij")
    if shape == "cylinder":
        r, t, f = r[:, :, :1], t[:, :, :1], f[:, :, :1]
        t = t + angle * (1 - r)
        nodes = (r * np.cos(t), r * np.sin(t), 0 * r)
    else:
        f = f + angle * (1 - r)
        nodes = (r * np.sin(t) * np.cos(f), r * np.sin(t) * np.sin(f), r * np.cos(t))
    return Block(shape, *(np.ascontiguousarray(c.transpose(2, 1, 0)) for c in nodes))


@pytest.mark.parametrize("shape", ["cylinder", "sphere"])
def test_curved_walls_converge_with_the_square_of_the_facets(shape):
    off = []
    for n in (11, 21):
        faces = ["imin", "jmin", "jmax", *(["kmin", "kmax"] if shape == "sphere" else [])]
        case = sheared(boundary=[{"faces": ["imax"], **WALL}, {"faces": faces, **FAR}])
        block = inside(shape, n, 0.2)
        found = distance(case, grid=Grid((block,)))[1]
        error = np.abs(found - (1 - np.sqrt(block.x**2 + block.y**2 + block.z**2)))
        # the ends, beyond whose walls there are none, are left out
        off.append(float(error[tuple(slice(m // 5, m - m // 5) for m in error.shape)].max()))
    assert 1e-5 < off[0] < 2e-3 and 3.5 < off[0] / off[1] < 4.5, off


def test_the_directions_of_indexes_do_not_matter():
    """On a bent wall, whose cells lie in no plane."""
    k, j, i = np.meshgrid(*(np.linspace(0, 1, n) for n in (9, 8, 7)), indexing="ij")
    x, y, z = i, j + 0.1 * np.sin(3 * i + 4 * k), k
    case = sheared(boundary=[{"faces": ["jmin"], **WALL}, {"faces": "all", **FAR}])
    found = distance(case, grid=Grid((Block("bent", x, y, z),)))[1]
    mirrored = Block("mirrored", -x[..., ::-1], y[..., ::-1].copy(), z[..., ::-1].copy())
    np.testing.assert_allclose(distance(case, grid=Grid((mirrored,)))[1][..., ::-1], found, rtol=0, atol=1e-14)


def test_the_wall_behind_a_periodic_face_is_nearer():
    """A strip of wall, which nodes at the other end see through the periodic face."""
    n = 16
    walls = [
        {"faces": ["jmin"], "range": {"i": [0, 5]}, **WALL},
        {"faces": ["jmin"], "range": {"i": [5, n]}, "type": "slip-wall"},
        {"faces": ["jmax"], "type": "symmetry"},
        {"faces": ["imin", "imax"], "type": "periodic"},
    ]
    data = sheared((n, 9, 1), walls).document()
    data["grid"] |= {"periodic": ["x"], "upper": [1.0, 2.0, 0.0]}
    run, found = distance(Case.from_dict(data))
    x, y = run.blocks[0].x, run.blocks[0].y
    aside = np.minimum(np.maximum(x - 4 / n, 0), 1 - x)
    np.testing.assert_allclose(found, np.hypot(aside, y), rtol=0, atol=1e-14)
    assert aside[0, 0, -1] == pytest.approx(1 / n)


def on_ranks(comm) -> float:
    """The largest difference between the distances on these ranks and on one."""
    ground = domain(sheared((17, 9, 8)), comm, parts=lambda cut: partition(cut, comm.size))
    solver = Solver(sheared((17, 9, 8)), backend("cpu"), domain=ground)
    alone = Solver(sheared((17, 9, 8)), backend("cpu")).field(0, "wall_distance")
    off = 0.0
    for n, state in enumerate(solver.states):
        off = max(off, float(np.max(np.abs(solver.field(n, "wall_distance")[0] - alone[0][state.part.slices]))))
    solver.halo.close()
    return off


@pytest.mark.slow
def test_the_same_on_two_ranks():
    assert run_ranks(2, on_ranks) == [0.0, 0.0]


def test_a_grid_without_walls_is_refused():
    with pytest.raises(HiresxError, match="no face of the grid is a wall"):
        Simulation(sheared(boundary=[{"faces": "all", "type": "symmetry"}]), "cpu")
