"""Passive scalars over patched faces, at the axis and at poles: uniform ones stay, smooth ones go where they must."""

import numpy as np
import patched_grids
import pytest
from patched_grids import P0, beside, errors
from scalar_cases import NAMES, SCHMIDT
from scipy import special

from hiresx import Simulation
from hiresx.case import Case
from hiresx.grid import Block, Grid, matched_connections

SCALARS = {"scalar": [{"name": name, "schmidt": SCHMIDT[name]} for name in NAMES]}
UNIFORM = dict(zip(NAMES, (0.7, 0.25), strict=True))
FAR = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P0}


def far(**keys):
    return {"faces": "all", "type": "far-field", "state": FAR, "scalars": UNIFORM} | keys


def started(case, where, grid, flow, scalars) -> Simulation:
    made = Simulation(case, where, grid=grid)
    for n, state in enumerate(made.solver.states):
        x, y, z = state.block.x, state.block.y, state.block.z
        made.solver.set_state(n, *flow(x, y, z), scalars(x, y, z))
    made.solver.complete_state()
    return made


def blast(x, y, z):
    inside = (x + 0.1) ** 2 + (y - 0.4) ** 2 + (z - np.mean(z)) ** 2 < 0.1
    return 1 + 2.0 * inside, 0.3 * np.sin(3 * y), 0.1 * y, 0 * x, P0 * (1 + 3.0 * inside)


def stays(case, where, grid, steps=15):
    """How far uniform scalars get from what they were while a blast goes by."""
    made = started(case, where, grid, blast, lambda x, y, z: {name: value + 0 * x for name, value in UNIFORM.items()})
    for _ in range(steps):
        made.solver.step()
    assert max(np.ptp(block.state("rho")) for block in made.blocks) > 0.5
    return max(abs(block.state(name) - value).max() for block in made.blocks for name, value in UNIFORM.items())


def patched(reynolds=None, boundary=(), **keys):
    gas = {} if reynolds is None else {"reynolds": reynolds}
    return patched_grids.case([*boundary, far()], {"steps": 10, "cfl": 0.5} | keys, FAR, gas=gas, **SCALARS)


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("plan", ["auto", "decomposed"])
def test_uniform_scalars_stay_over_patched_faces(where, plan):
    blocks = beside((12, 14), (12, 17), (-1.0, 0.0, 1.0), curve=0.08)
    case = patched(100.0).model_copy(update={"plan": plan})
    assert stays(case, where, Grid(blocks)) < 1e-13


def smooth(x, y, z):
    return {"dye": 0.5 + 0.3 * np.sin(3 * x + 1) * np.cos(4 * y), "ink": 0.4 + 0.2 * np.cos(2 * x - y)}


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_equal_nodes_give_what_a_connection_gives(where):
    blocks = beside((12, 12), (12, 12), (-1.0, 0.0, 1.0), curve=0.0)
    spec = patched(100.0)
    joined = Case.from_dict({**spec.model_dump(), "boundary": spec.model_dump()["boundary"][-1:]})
    grids = Grid(blocks), Grid(blocks, tuple(matched_connections(blocks)))
    found = [started(c, where, g, patched_grids.waves, smooth) for c, g in zip((spec, joined), grids, strict=True)]
    for _ in range(10):
        for made in found:
            made.solver.step()
    for one, other in zip(*(made.blocks for made in found), strict=True):
        for name in ("rho", *NAMES):
            np.testing.assert_allclose(one.state(name), other.state(name), rtol=0, atol=1e-12)


def carried(n) -> float:
    """Error of a bump that a uniform flow has brought across a patched face, twice as fine along y behind it."""

    def bump(x, y, z, t=0.0):
        return 0.25 + 0.5 * np.exp(-20 * ((x + 0.35 - t) ** 2 + (y - 0.5) ** 2))

    blocks = beside((n, n), (n, 3 * n // 2), (-1.0, 0.0, 1.0), offset=False)
    flow = {"rho": 1.0, "u": 1.0, "v": 0.0, "p": P0}
    ends = [{"faces": "all", "type": "far-field", "state": flow, "scalars": dict.fromkeys(NAMES, 0.25)}]
    case = patched_grids.case(ends, {"end": 0.5, "cfl": 0.4 * (16 / n) ** (2 / 3)}, flow, **SCALARS)
    made = started(
        case, "cpu", Grid(blocks), lambda x, y, z: (1.0 + 0 * x, 1.0, 0.0, 0.0, P0),
        lambda x, y, z: dict.fromkeys(NAMES, bump(x, y, z)),
    )  # fmt: skip
    made.run(progress=False)
    return errors(made, "dye", lambda x, y, z: bump(x, y, z, made.time))[1]


@pytest.mark.slow
def test_a_smooth_scalar_crosses_a_patched_face_at_the_order_of_the_method():
    coarse, fine = carried(24), carried(36)
    assert np.log(coarse / fine) / np.log(1.5) > 4.0, (coarse, fine)


# ---- the axis


def around(n, lean=0.0):
    """A block over 0 <= x, y <= 1 whose lines lean against the axis."""
    j, i = np.mgrid[: n + 1, : n + 1] / n
    y = j + 0.05 * np.sin(np.pi * j) * np.sin(2 * np.pi * i)
    y[0] = 0.0
    x = i + lean * j * (1 - j) * np.sin(np.pi * i)
    return Grid((Block("plane", x[None], y[None], np.zeros((1, *x.shape))),))


def axis(reynolds, others, **keys):
    return Case.from_dict(
        {
            "axisymmetric": True, "grid": {"file": "none"}, "gas": {"reynolds": reynolds},
            "time": {"steps": 10, "cfl": 0.5} | keys, "initial": {"state": FAR | {"v": 0.0}}, **SCALARS,
            "boundary": [{"faces": ["jmin"], "type": "axis"}, *others],
        }
    )  # fmt: skip


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("lean", [0.0, 0.3], ids=["normal", "leaning"])
def test_uniform_scalars_stay_at_the_axis(where, lean):
    case = axis(100.0, [far(faces=["imin", "imax"]), {"faces": ["jmax"], "type": "slip-wall"}])
    assert stays(case, where, around(20, lean)) < 1e-13


def decayed(n, lean, where="cpu") -> dict:
    """Error, by scalar, of a Bessel function that decays in a gas at rest within a tube; away from its wall, across
    which it is not even."""
    k = special.jn_zeros(1, 1)[0]
    closed = [{"faces": ["imin", "imax"], "type": "slip-wall"}, {"faces": ["jmax"], "type": "slip-wall"}]
    case = axis(10.0, closed, cfl=None, dt=2e-4, steps=50)
    made = started(
        case, where, around(n, lean), lambda x, y, z: (1.0 + 0 * x, 0.0, 0.0, 0.0, P0),
        lambda x, y, z: dict.fromkeys(NAMES, special.j0(k * y)),
    )  # fmt: skip
    made.run(progress=False)
    (block,) = made.blocks
    rates = {name: k**2 / (10.0 * SCHMIDT[name]) for name in NAMES}
    exact = {name: np.exp(-rate * made.time) * special.j0(k * block.y) for name, rate in rates.items()}
    return {name: abs(block.state(name) - exact[name])[block.y < 0.6].max() for name in NAMES}


@pytest.mark.parametrize("lean", [0.0, 0.3], ids=["normal", "leaning"])
def test_diffusion_around_the_axis_is_that_of_a_tube(lean):
    coarse, fine = decayed(16, lean), decayed(24, lean)
    for name in NAMES:
        assert np.log(coarse[name] / fine[name]) / np.log(1.5) > 3.0 and fine[name] < 1e-4, (name, coarse, fine)


def test_backends_agree_at_the_axis():
    closed = [far(faces=["imin", "imax"]), {"faces": ["jmax"], "type": "no-slip-wall"}]
    found = [
        started(axis(100.0, closed).model_copy(update={"plan": plan}), where, around(16, 0.2), blast, smooth)
        for where, plan in (("cpu", "pencils"), ("cpu", "decomposed"), ("emulated", "fused"))
    ]
    for _ in range(5):
        for made in found:
            made.solver.step()
    for name in ("rho", *NAMES):
        for other in found[1:]:
            np.testing.assert_allclose(other.blocks[0].state(name), found[0].blocks[0].state(name), rtol=0, atol=2e-13)


# ---- poles


def shell(n):
    """Around a sphere, between the radii 1 and 2, in two halves; poles on the x axis."""
    halves = []
    for side in (0, 1):
        turn = np.arange(n + 1) * np.pi / n
        b, r, a = np.meshgrid(turn, np.linspace(1, 2, n + 1), np.linspace(0, np.pi, n + 1), indexing="ij")
        around = r * np.sin(a) * (1 - 2 * side)
        sine = np.sin(b)
        sine[[0, -1]] = 0.0  # both halves have the same nodes there
        halves.append(Block(f"half-{side}", -r * np.cos(a), around * np.cos(b), around * sine))
    return Grid(tuple(halves), tuple(matched_connections(halves)))


def poles(reynolds, **keys):
    return Case.from_dict(
        {
            "grid": {"file": "none"}, "gas": {"reynolds": reynolds}, "time": {"steps": 3, "cfl": 0.5} | keys,
            "initial": {"state": FAR}, **SCALARS,
            "boundary": [
                {"faces": ["imin", "imax"], "type": "pole"}, far(faces=["jmin", "jmax"]),
            ],
        }
    )  # fmt: skip


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_uniform_scalars_stay_at_poles(where):
    assert stays(poles(100.0), where, shell(8), 8) < 1e-13


def at_pole(n) -> float:
    """Error of smooth scalars around the poles, away from the spheres, soon after the start of a uniform flow."""

    def wave(x, y, z, t=0.0):
        return 0.5 + 0.3 * np.sin(x - 0.3 * t + 0.4) * np.cos(y - 0.2 * t)

    made = started(
        poles(float("inf"), cfl=None, dt=0.02 * 8 / n**2, steps=n * n // 8), "cpu", shell(n),
        lambda x, y, z: (1.0 + 0 * x, 0.3, 0.2, 0.0, P0), lambda x, y, z: dict.fromkeys(NAMES, wave(x, y, z)),
    )  # fmt: skip
    made.run(progress=False)
    away = slice(n // 3, -(n // 3))
    found = [(b.state("dye") - wave(b.x, b.y, b.z, made.time))[:, away] for b in made.blocks]
    return float(np.abs(found).max())


@pytest.mark.slow
def test_a_smooth_scalar_passes_a_pole():
    coarse, fine = at_pole(12), at_pole(18)
    assert np.log(coarse / fine) / np.log(1.5) > 3.0, (coarse, fine)


# ---- more nodes


@pytest.mark.slow
@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("place", ["patched", "axis", "pole"])
def test_uniform_scalars_stay_there_with_seven_nodes(place, where):
    ends = [far(faces=["imin", "imax"]), {"faces": ["jmax"], "type": "slip-wall"}]
    case, grid = {
        "patched": (patched(100.0), Grid(beside((12, 14), (12, 17), (-1.0, 0.0, 1.0), curve=0.08))),
        "axis": (axis(100.0, ends), around(20, 0.3)),
        "pole": (poles(100.0), shell(8)),
    }[place]
    scheme = case.scheme.model_copy(update={"interpolation": "modified7", "weights": "z"})
    assert stays(case.model_copy(update={"scheme": scheme}), where, grid, 8) < 1e-13
