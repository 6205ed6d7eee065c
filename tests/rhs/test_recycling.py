"""Inflow of a mean flow with the fluctuations of a plane downstream."""

import inspect
import re
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from same_everywhere import same_everywhere
from wholes import whole

from hiresx import Case, HiresxError, Simulation, load
from hiresx.decomposition import decompose
from hiresx.device import backend
from hiresx.grid import Block, Grid, build, matched_connections
from hiresx.rhs.recycling import planes
from hiresx.solver import Solver

P = 1 / 1.4
N = (12, 9, 16)


def mean(x, y, z):
    """A layer on the wall y = 0."""
    return 1 / (1.2 - 0.2 * np.tanh(y)), 1.6 * np.tanh(2 * y), 0.0, 0.0, P


def flow(x, y, z, t=0.0):
    """The mean with fluctuations that vanish in the mean over z, and a part that does not."""
    rho, u, *_, p = mean(x, y, z)
    wave = np.sin(np.pi * y) * np.sin(2 * np.pi * z + x)
    rho = rho / (1 + 0.05 * wave * rho)
    return rho, u + 0.1 * wave + 0.05 * y, 0.08 * np.cos(3 * x) * wave, 0.06 * wave, p + 0.02 * wave


def case(steps=4, n=N, initial=None, **keys):
    inflow = {"faces": ["imin"], "type": "recycling-inflow", "function": "mean", "distance": 0.72}
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": [1.1, 1, 1], "periodic": ["z"]},
            "gas": {"reynolds": 500.0},
            "time": {"steps": steps, "dt": 0.01},
            "initial": initial or {"state": {"rho": 1.0, "u": 1.6, "p": P}},
            "boundary": [
                inflow | keys,
                {"faces": ["imax"], "type": "supersonic-outflow"},
                {"faces": ["kmin", "kmax"], "type": "periodic"},
                {"faces": ["jmin"], "type": "no-slip-wall"},
                {"faces": ["jmax"], "type": "slip-wall"},
            ],
        }
    )  # fmt: skip


def started(where="cpu", **keys):
    solver = Solver(case(**keys), backend(where), profiles={"mean": mean})
    solver.initialize(flow)
    return solver


def primitives(solver):
    found = solver.primitives(0)
    return np.stack([found[name] for name in ("rho", "u", "v", "w", "p")])


def rows():
    return np.linspace(0, 1, N[1])[None, :], (np.arange(N[2]) / N[2])[:, None]


@pytest.mark.parametrize("shift", [0.0, 0.25])
def test_fluctuations_of_the_plane_enter(shift):
    """Without their mean over the span, without those of the pressure, with zero on the walls."""
    found = primitives(started(shift=shift, amplitude=1.5))[:, :, :, 0]
    y, z = rows()
    there = [np.asarray(v) + 0 * y * z for v in flow(0.7, y, z)]
    rho, u, v, w, p = (np.asarray(a) + 0 * y * z for a in mean(0.0, y, z))
    change = np.stack([*there[1:4], there[4] / there[0]])
    change = 1.5 * np.roll(change - change.mean(axis=1, keepdims=True), round(shift * N[2]), axis=1)
    wanted = np.stack([p / (p / rho + change[3]), u + change[0], v + change[1], w + change[2], p])
    assert np.abs(found - wanted)[:, :, 1:-1].max() < 1e-13
    assert np.abs(change[:, :, 1:-1]).max() > 0.1


def test_a_layer_is_rescaled():
    """Lund, Wu & Squires, eqs. (15) to (17): fluctuations of the same height in wall units, and in thicknesses."""
    growth, thickness = 1.5, 0.4
    found = primitives(started(wall="jmin", thickness=thickness, growth=growth, shift=0.0))[:, :, :, 0]
    friction = growth ** (1 / 8)
    y, z = rows()
    there = [np.asarray(v) + 0 * y * z for v in flow(0.7, y, z)]
    change = there[3] - there[3].mean(axis=0)
    change[:, [0, -1]] = 0.0
    eta = y[0] / thickness
    weight = 0.5 * (1 + np.tanh(4 * (eta - 0.2) / ((1 - 0.4) * eta + 0.2)) / np.tanh(4.0))
    weight = np.minimum(weight, 1)
    wanted = np.zeros_like(change)
    for n, line in enumerate(change):
        inner, outer = (np.interp(f * y[0], y[0], line, right=0.0) for f in (friction, growth))
        wanted[n] = friction * ((1 - weight) * inner + weight * outer)
    assert np.abs(found[3] - wanted)[:, 1:-1].max() < 1e-13
    assert np.abs(wanted - change).max() > 0.02


def test_temperatures_are_bounded():
    found = primitives(started(amplitude=2.0, shift=0.0))
    solver = started(amplitude=2.0)
    rho = lambda x, y, z, t=0.0: (1 / (1 + 0.9 * np.sin(2 * np.pi * z)), 1.6, 0.0, 0.0, P)  # noqa: E731
    solver.initialize(rho)
    cold = primitives(solver)[:, :, 1:-1, 0]
    of_mean = mean(0.0, rows()[0][:, 1:-1], 0.0)[0]
    assert np.isclose((cold[0] / of_mean).max(), 2.0) and np.isclose((cold[0] / of_mean).min(), 0.5)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("faces", [("imax", "imin", "kmin"), ("jmin", "jmax", "kmin"), ("kmax", "kmin", "imin")])
def test_any_face_and_span(faces):
    """A uniform flow that enters through other faces, with fluctuations in its plane: the mean over the span stays."""
    enters, leaves, low = faces
    span = low[0]
    axis = {"i": "x", "j": "y", "k": "z"}[span]
    d = "ijk".index(enters[0])
    velocity = np.zeros(3)
    velocity[d] = 1.6 if enters.endswith("min") else -1.6
    n = [12, 12, 12]
    spec = Case.from_dict(
        {
            "grid": {"generator": "box", "n": n, "lower": [0, 0, 0], "upper": [1, 1, 1], "periodic": [axis]},
            "time": {"steps": 1, "dt": 0.01},
            "initial": {"state": {"rho": 1.0, "p": P}},
            "boundary": [
                {
                    "faces": [enters], "type": "recycling-inflow", "function": "mean", "distance": 0.5, "span": span,
                    "shift": 0.0,
                },
                {"faces": [leaves], "type": "supersonic-outflow"},
                {"faces": [f"{span}min", f"{span}max"], "type": "periodic"},
                {"faces": "all", "type": "slip-wall"},
            ],
        }
    )  # fmt: skip

    def uniform(x, y, z, t=0.0):
        return (1.0, *velocity, P)

    def wavy(x, y, z, t=0.0):
        wave = 0.1 * np.sin(2 * np.pi * {"x": x, "y": y, "z": z}[axis])
        return 1.0, velocity[0] + wave, velocity[1] + wave, velocity[2] + wave, P

    solver = Solver(spec, backend("cpu"), profiles={"mean": uniform})
    solver.initialize(wavy)
    found = primitives(solver)
    at = [slice(1, -1)] * 3
    at[2 - d] = 0 if enters.endswith("min") else -1
    along = [slice(1, -1)] * 3
    along[2 - d] = 5
    assert np.abs(found[(slice(None), *at)] - found[(slice(None), *along)]).max() < 1e-14


def write(folder):
    """The case with its functions in files."""
    text = "import numpy as np\n\nP = 1 / 1.4\n\n\n" + inspect.getsource(mean) + "\n\n" + inspect.getsource(flow)
    (folder / "case.py").write_text(text)
    path = folder / "case.toml"
    path.write_text(case(6, initial={"function": "flow"}, wall="jmin", thickness=0.4, growth=1.3).to_toml())
    return path


def on_ranks(comm):
    with TemporaryDirectory() as folder:
        run = Simulation(load(comm.bcast(write(Path(folder)))), "cpu", comm=comm)
        run.run(progress=False)
        return whole(run.solver)


@pytest.mark.slow
def test_plans_ranks_backends_and_restart(tmp_path):
    path = write(tmp_path)

    def make(where="cpu", out=None, **plan):
        return Simulation(load(path, (), [f"{key}={value}" for key, value in plan.items()]), where, out=out)

    alone = same_everywhere(make, tmp_path / "run", 3, ("decomposed",), on_ranks=on_ranks)
    assert np.ptp(alone[0][1][:, :, 0]) > 0.05


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"span": "i"}, "normal to the face"),
        ({"span": "j"}, "not periodic along the span"),
        ({"distance": 2.0}, "leads to no node inside the block, which is 1.1 long"),
        ({"distance": 0.01}, "leads to no node inside the block"),
        ({"wall": "kmin", "thickness": 0.4}, 'wall = "kmin" is not a face across j'),
        ({"wall": "jmax", "thickness": 0.4}, "jmax of the block, its wall, is no wall with friction"),
        ({"wall": "jmin", "thickness": 1.4}, "thickness = 1.4 is more than the 1 that the face is high"),
        ({"n": (12, 9, 7)}, "it has 7 of 7 nodes along its span"),
    ],
)
def test_what_cannot_be_is_refused(keys, said):
    spec = case(**keys)
    for make in (lambda: Solver(spec, backend("cpu"), profiles={"mean": mean}), lambda: planes_of(spec)):
        with pytest.raises(HiresxError, match=re.escape(said)) as error:
            make()
        assert "recycling-inflow on imin of block" in str(error.value)


def planes_of(spec):
    whole_blocks = decompose(spec, build(spec.grid))
    return planes(spec, whole_blocks, lambda name: mean)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"wall": "jmin"}, "wall needs thickness"),
        ({"thickness": 1.0}, "thickness needs wall"),
        ({"growth": 2.0}, "growth needs wall"),
        ({"friction": 1.1}, "friction needs wall"),
    ],
)
def test_keys_that_need_others(keys, said):
    with pytest.raises(HiresxError, match=said):
        case(**keys)


@pytest.mark.parametrize("amplitude", [-0.1, 2.1])
def test_an_amplitude_beyond_its_bounds_is_refused(amplitude):
    with pytest.raises(HiresxError, match=rf"amplitude = {amplitude}: must be"):
        case(amplitude=amplitude)


def own_grid(end, radius=None, bend=0.0, nj=N[1]):
    """A block with nodes along z from 0 to `end`, or around the x axis."""
    x, y, z = np.meshgrid(np.linspace(0, 1.1, N[0]), np.linspace(0, 1, nj), np.linspace(0, end, N[2]), indexing="ij")
    if radius is not None:
        y, z = (y + radius) * np.cos(2 * np.pi * z), (y + radius) * np.sin(2 * np.pi * z)
    nodes = (c.transpose(2, 1, 0) for c in (x, y, z + bend * np.sin(2 * np.pi * z)))
    return Grid((Block("box", *nodes),), period=({"k": (0.0, 0.0, 0.0 if radius else 1.0)},))


def test_a_span_whose_last_node_is_the_first_again():
    """Both have one state: the fluctuations of the first, and neither counts twice in the mean."""
    tables, found = case().model_copy(deep=True), []
    for grid, nodes in ((own_grid(1.0), N[2] - 1), (build(case(n=(*N[:2], N[2] - 1)).grid, None), N[2] - 1)):
        simulation = Simulation(tables, backend="cpu", grid=grid, profiles={"mean": mean}, initial=flow)
        simulation.run(progress=False)
        inflow = simulation.blocks[0].state("u")[..., 0]
        assert len(inflow) == nodes or np.abs(inflow[0] - inflow[-1]).max() < 1e-13
        found.append(inflow[:nodes])
    assert np.abs(found[0] - found[1]).max() < 1e-12


def test_a_block_above_another():
    """Its rows at the common nodes and at its own wall are those of one block."""
    found = []
    for ends in ((0, 12), (0, 6, 12)):
        (box,) = own_grid(1.0, nj=13).blocks
        blocks = tuple(
            Block(f"layer-{n}", *(c[:, first : last + 1] for c in box.coordinates))
            for n, (first, last) in enumerate(pairwise(ends))
        )
        grid = Grid(blocks, matched_connections(blocks), period=({"k": (0.0, 0.0, 1.0)},) * len(blocks))
        simulation = Simulation(case(), backend="cpu", grid=grid, profiles={"mean": mean}, initial=flow)
        simulation.run(progress=False)
        rows = [block.state("u")[:, bool(n) :, 0] for n, block in enumerate(simulation.blocks)]
        found.append(np.concatenate(rows, axis=1))
    assert np.abs(found[0] - found[1]).max() < 1e-12


@pytest.mark.parametrize("grid", [own_grid(1 - 1 / N[2], radius=1.0), own_grid(1 - 1 / N[2], bend=0.05)])
def test_a_span_along_which_the_flow_is_not_homogeneous_is_refused(grid):
    """Around an axis the mean of v and w is none, and a steady swirl came in as a fluctuation."""
    with pytest.raises(HiresxError, match="not straight, or not evenly divided"):
        Simulation(case(), backend="cpu", grid=grid, profiles={"mean": mean})
