"""The dynamic Smagorinsky model: its coefficient against NumPy, shear, plans, ranks, restarts."""

import numpy as np
import pytest
from arrangements import ring, saved, shaken
from command_line import command
from multiblock import Arrangement
from same_everywhere import same_everywhere
from wholes import whole

from hiresx import Case, HiresxError, Simulation, load
from hiresx.grid import Block, Grid, write_plot3d

MODEL = {"model": "dynamic_smagorinsky"}
SIZE, LENGTHS = (12, 14, 16), (1.0, 2.0, 1.5)


def box(**tables) -> Case:
    grid = {"generator": "box", "n": list(SIZE), "lower": [0, 0, 0], "upper": list(LENGTHS), "periodic": [*"xyz"]}
    given = {"grid": grid, "gas": {"reynolds": 1e4}, "turbulence": MODEL, "time": {"steps": 4}}
    return Case.from_dict(given | {"boundary": [{"faces": "all", "type": "periodic"}]} | tables)


def stirred(x, y, z):
    """Many scales without symmetries."""
    rng = np.random.default_rng(7)
    found = np.zeros((5, *x.shape))
    for k in rng.integers(-3, 4, (30, 3)):
        phases = rng.uniform(0, 2 * np.pi, 5)
        way = 2 * np.pi * (k[0] * x / LENGTHS[0] + k[1] * y / LENGTHS[1] + k[2] * z / LENGTHS[2])
        found += np.sin(way + phases.reshape(5, 1, 1, 1))
    rho, u, v, w, p = 0.05 * found / np.sqrt(15)
    return 1 + rho, u, v, w, (1 + p) / 1.4


def derivative(f, axis, spacing):
    def at(step):
        return np.roll(f, -step, axis)

    return (at(3) - 9 * at(2) + 45 * at(1) - 45 * at(-1) + 9 * at(-2) - at(-3)) / 60 / spacing


def coarse_of(f):
    """f and an eighth of its second differences along each direction."""
    around = sum(np.roll(f, step, axis) for axis in (-1, -2, -3) for step in (-1, 1))
    return f + (around - 6 * f) / 8


def coefficient(rho, velocity, spacings):
    """Lilly's C from Germano's identity, averaged by the test filter, and |S|."""
    width = np.prod(spacings) ** (1 / 3)
    gradient = np.stack([[derivative(u, -1 - d, spacings[d]) for d in range(3)] for u in velocity])
    strain = 0.5 * (gradient + gradient.swapaxes(0, 1))

    def parts(s):
        trace = np.trace(s) / 3 * np.eye(3)[:, :, None, None, None]
        return np.sqrt(2 * np.sum(s * s, axis=(0, 1))), s - trace

    size, free = parts(strain)
    mean, momentum = coarse_of(rho), coarse_of(rho * velocity)
    products = rho * velocity[:, None] * velocity
    found = coarse_of(products) - momentum[:, None] * momentum / mean
    coarse_size, coarse = parts(coarse_of(strain))
    model = 2 * width**2 * (coarse_of(rho * size * free) - 4 * mean * coarse_size * coarse)
    above, below = (coarse_of(np.sum(f * model, axis=(0, 1))) for f in (found, model))
    return np.maximum(above, 0) / below, width**2 * rho * size


def test_the_coefficient_is_that_of_germano_and_lilly():
    run = Simulation(box(), "cpu", initial=stirred)
    rho, *velocity = (run.blocks[0].state(name) for name in ("rho", "u", "v", "w"))
    spacings = [length / n for length, n in zip(LENGTHS, SIZE, strict=True)]
    wanted, eddies = coefficient(rho, np.stack(velocity), spacings)
    found = run.solver.field(0, "eddy_coefficient")[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 * wanted.max())
    assert 0.2 < np.mean(found > 0) < 0.95  # clipped in places
    viscosity = run.solver.field(0, "eddy_viscosity")[0]
    np.testing.assert_allclose(viscosity / 1e4, wanted * eddies, rtol=1e-9, atol=1e-12 * (wanted * eddies).max())


def test_pure_shear_has_none():
    """Of a shear layer u(y), between walls of given temperature, where L_ij M_ij vanishes: to round-off."""
    walls = [
        {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0},
        {"faces": ["imin", "imax", "kmin", "kmax"], "type": "periodic"},
    ]
    grid = {"generator": "box", "n": [8, 12, 8], "lower": [0, 0, 0], "upper": [1, 1, 1], "periodic": ["x", "z"]}
    case = box(grid=grid, boundary=walls)
    run = Simulation(
        case, "cpu", initial=lambda x, y, z: (1 + 0 * y, y * (1 - y) + 0 * x, 0 * y, 0 * y, 1 / 1.4 + 0 * y)
    )
    assert run.solver.field(0, "eddy_coefficient")[0].max() < 1e-12
    assert run.solver.field(0, "eddy_viscosity")[0].max() < 1e-8


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "offset"])
def test_turned_blocks_have_the_coefficient_of_one(tmp_path, shared):
    """Components of the strain are along x, y and z in every block, so ghosts of turned blocks need no change. At the
    outer boundary the order of directions counts."""
    whole = shaken((20, 21, 22), seed=2).blocks[0]
    parts = Arrangement(whole, 8, 2, shared)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    grid = saved(tmp_path, parts.blocks, tables)
    far = {"faces": "all", "type": "far-field", "state": {"rho": 1.0, "p": 1 / 1.4}}
    turned, one = (Simulation(box(boundary=[far]), "cpu", grid=g, initial=stirred) for g in (grid, Grid((whole,))))
    wanted = one.solver.field(0, "eddy_coefficient")[0]
    for n, held in enumerate(parts.held):
        nodes = np.stack(np.meshgrid(*(np.arange(*r) for r in held), indexing="ij"))
        inner = ((nodes > 3) & (nodes < np.array(wanted.shape[::-1])[:, None, None, None] - 4)).all(axis=0)
        (i, j, k), (l, m, o) = nodes[:, inner], parts.index(n, nodes)[:, inner]
        found = turned.solver.field(n, "eddy_coefficient")[0][o, m, l]
        np.testing.assert_allclose(found, wanted[k, j, i], rtol=0, atol=1e-10 * wanted.max())


@pytest.mark.parametrize("verb", ["check", "run"])
def test_connections_with_a_rotation_are_refused(tmp_path, verb):
    """A quarter of a ring had a coefficient that was 3 % off beside its ends."""
    write_plot3d(tmp_path / "g.x", Grid((Block("quarter", *ring(16, angle=90.0, ends=False)),)))
    turn = {"j": {"axis": [0.0, 0.0, 1.0], "angle": 90.0}}
    walls = [{"faces": ["jmin", "jmax"], "type": "periodic"}, {"faces": "all", "type": "slip-wall"}]
    given = box(boundary=walls, grid={"file": "g.x", "period": turn}, initial={"state": {"rho": 1.0, "p": 0.7}})
    (tmp_path / "case.toml").write_text(given.to_toml())
    status, _, err = command(verb, tmp_path, *(["--backend", "cpu"] if verb == "run" else []), cwd=tmp_path)
    assert status == 2 and "connected by a rotation, over which the rate of strain is not transferred" in err


def run_of(comm=None, where="cpu", plan=None, out=None) -> Simulation:
    keys = {"plan": plan} if plan else {}
    return Simulation(box(**keys), where, comm=comm, initial=stirred, out=out)


def on_two_ranks(comm) -> list[np.ndarray]:
    run = run_of(comm)
    run.run(progress=False)
    return whole(run.solver)


@pytest.mark.slow
def test_the_same_everywhere(tmp_path):
    same_everywhere(run_of, tmp_path / "run", 2, plans=("decomposed", "compact"), on_ranks=on_two_ranks)


def test_its_constant_is_not_given():
    with pytest.raises(HiresxError, match=r"takes its constant from the flow: leave turbulence\.constant out"):
        load("taylor-green", overrides=['turbulence.model="dynamic_smagorinsky"', "turbulence.constant=0.2"])
