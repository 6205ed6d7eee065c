"""Poles whose rings go on from block to block, and half models: half a ring between two planes of symmetry."""

from functools import partial

import numpy as np
import pytest
from ranks import run_ranks
from wholes import advanced, off_on_ranks

from hiresx import HiresxError, Simulation
from hiresx.case import Case
from hiresx.case.grid_file import GridFile
from hiresx.case.grids import Sphere
from hiresx.decomposition import decompose, domain
from hiresx.device import backend
from hiresx.grid import Block, Grid, build, matched_connections, write_plot3d
from hiresx.grid.blocks import FACES
from hiresx.rhs import outflow
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference, random_parts

P = 1 / 1.4
AROUND = 20
SPHERE = {"generator": "sphere", "n_meridian": 15, "n_normal": 9, "standoff_axis": 0.6, "standoff_side": 0.9}
# Directions of the whole shell along the blocks' own i, j, k, and whether they run backwards; all right-handed.
TURNS = {"as it was": ((0, 1, 2), ()), "backwards": ((0, 1, 2), (0, 2)), "rolled": ((2, 0, 1), (1, 2))}


def shell(turn=2 * np.pi, around=AROUND, **grid) -> Block:
    """A shell around a sphere, its first nodes around the x axis held once more at the end of a whole ring."""
    spec = Sphere.model_validate(SPHERE | {"n_around": 8} | grid)
    block = build(spec).blocks[0]
    angle = np.linspace(0, turn, around + 1)[:, None, None]
    r = np.hypot(block.y[:1], block.z[:1])
    # the ends lie in the plane to the last bit
    sine = np.where(np.isclose(np.sin(angle), 0, atol=1e-12), 0.0, np.sin(angle))
    return Block("shell", np.broadcast_to(block.x[:1], (around + 1, *r.shape[1:])), r * np.cos(angle), r * sine)


def turned(block: Block, turn) -> Block:
    order, backwards = turn
    nodes = [np.flip(c, [2 - d for d in backwards]) for c in (block.x, block.y, block.z)]
    axes = [2 - order[2 - axis] for axis in range(3)]
    return Block(block.name, *(np.transpose(c, axes) for c in nodes))


def face_of(turn, face: str) -> str:
    """What a face of a block is called once it is turned."""
    order, backwards = turn
    d, high = FACES.index(face) // 2, FACES.index(face) % 2
    return FACES[2 * order.index(d) + (high != (d in backwards))]


def pieces(whole: Block, ends, turns, doubled=True) -> list[Block]:
    """Blocks of the nodes around the axis from each of `ends` to the next, which both have, or only the second."""
    return [
        turned(Block(f"piece-{n}", *(c[lo : hi + doubled] for c in (whole.x, whole.y, whole.z))), turn)
        for n, (lo, hi, turn) in enumerate(zip(ends, ends[1:], turns, strict=False))
    ]


def case(turns, state, half=False, poles=("imin", "imax"), wall=None, **tables) -> Case:
    """`turns` of the blocks `piece-0`, ..."""
    boundary = []
    for n, turn in enumerate(turns):
        for face in poles:
            boundary.append({"block": f"piece-{n}", "faces": [face_of(turn, face)], "type": "pole"})
        if wall is not None:
            boundary.append({"block": f"piece-{n}", "faces": [face_of(turn, "jmin")]} | wall)
        for end, face in ((0, "kmin"), (len(turns) - 1, "kmax")):
            if half and n == end:
                boundary.append({"block": f"piece-{n}", "faces": [face_of(turn, face)], "type": "symmetry"})
    boundary.append({"faces": "all", "type": "far-field", "state": state})
    tables = {"time": {"steps": 1}} | tables
    return Case.from_dict({"grid": {"file": "none"}, "boundary": boundary, "initial": {"state": state}} | tables)


def delivered(folder, half, ends, turns, tables) -> Case:
    """The case of a model whose grid is read from a file, in which only coinciding nodes say what is joined."""
    made, grid = model(half, ends, turns, tables)
    write_plot3d(folder / "grid.xyz", grid)
    names = ", ".join(f'"{block.name}"' for block in grid.blocks)
    (folder / "join.toml").write_text(f"blocks = [{names}]\nmatch = true\n")
    file = GridFile(file=str(folder / "grid.xyz"), connectivity=str(folder / "join.toml"))
    return made.model_copy(update={"grid": file})


def joined(blocks) -> Grid:
    return Grid(tuple(blocks), matched_connections(blocks))


def model(half: bool, ends, turns, tables, **shape) -> tuple[Case, Grid]:
    grid = joined(pieces(shell(np.pi if half else 2 * np.pi, ends[-1], **shape), ends, turns))
    return case(turns, half=half, **tables), grid


SEVERAL = [TURNS["as it was"], TURNS["rolled"], TURNS["backwards"]]
MODELS = {
    "three blocks": (False, (0, 6, 13, 20), SEVERAL),
    "half": (True, (0, 10), SEVERAL[:1]),
    "half in two": (True, (0, 7, 13), SEVERAL[1:]),
}


@pytest.fixture(params=MODELS)
def of(request):
    return partial(model, *MODELS[request.param])


# ---- uniform flow


def departure(chosen: Case, grid: Grid, state: dict[str, float]) -> float:
    simulation = Simulation(chosen, "cpu", grid=grid)
    simulation.run(progress=False)
    return max(float(np.abs(b.state(name) - value).max()) for b in simulation.blocks for name, value in state.items())


@pytest.mark.parametrize("reynolds", [float("inf"), 100.0])
def test_uniform_flow_stays(of, reynolds):
    state = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}
    chosen, grid = of({"state": state, "time": {"steps": 50, "cfl": 0.5}, "gas": {"reynolds": reynolds}})
    assert departure(chosen, grid, state | {"w": 0.0}) < 1e-13


def test_uniform_flow_in_the_mirror_and_in_a_tilted_plane(tmp_path):
    """A half model made whole by `mirror`, and one whose plane of symmetry lies anyhow."""
    state = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}
    time = {"steps": 20, "cfl": 0.5}
    write_plot3d(tmp_path / "grid.xyz", joined(pieces(shell(np.pi, 10), (0, 10), SEVERAL)))
    grid = build(GridFile(file=str(tmp_path / "grid.xyz"), mirror=["z"]))
    far = {"faces": "all", "type": "far-field", "state": state}
    tables = {"grid": {"file": "none"}, "initial": {"state": state}, "time": time}
    whole = Case.from_dict(tables | {"boundary": [{"faces": ["imin", "imax"], "type": "pole"}, far]})
    assert departure(whole, grid, state | {"w": 0.0}) < 1e-13
    a, b = 0.37, 0.2
    turn = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    turn = turn @ np.array([[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]])
    half = shell(np.pi, 10)
    nodes = np.einsum("ab,bkji->akji", turn, np.stack([half.x, half.y, half.z])) + np.reshape([10, -5, 3], (3, 1, 1, 1))
    turned_state = {"rho": 1.0, "p": P} | dict(zip("uvw", (turn @ [0.3, 0.2, 0]).tolist(), strict=True))
    chosen = case(SEVERAL[:1], turned_state, half=True, time=time)
    assert departure(chosen, joined([Block("piece-0", *nodes)]), turned_state) < 1e-13


def test_uniform_flow_on_rings_made_in_single_precision():
    """They close, and collapse, to 1e-7 only."""
    state = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}
    t, angle = (np.linspace(0, end, n, dtype="f4") for end, n in ((np.pi, 15), (2 * np.pi, 21)))
    r = np.linspace(1, 2, 9, dtype="f4")[:, None]
    away = r * np.sin(t)
    x = np.broadcast_to(-r * np.cos(t), (21, 9, 15))
    block = Block("piece-0", x, away * np.cos(angle)[:, None, None], away * np.sin(angle)[:, None, None])
    assert 0 < np.abs(block.y[:, :, -1]).max() < 1e-6
    chosen = case(SEVERAL[:1], state, time={"steps": 20, "cfl": 0.5})
    assert departure(chosen, joined([block]), state | {"w": 0.0}) < 1e-12


# ---- the same flow as in one block


def moving(state, steps=10) -> dict:
    return {
        "state": state,
        "wall": {"type": "no-slip-wall"},
        "time": {"steps": steps, "cfl": 0.5},
        "gas": {"reynolds": 100.0},
    }


def apart(blocks: list[np.ndarray], ends, turns, expected: np.ndarray) -> float:
    """How far states on pieces (of whose order of i, j, k `pieces` says) are off those of the whole shell."""
    found = 0.0
    for q, lo, hi, turn in zip(blocks, ends, ends[1:], turns, strict=False):
        order, backwards = turn
        axes = [2 - order[2 - axis] for axis in range(3)]
        piece = expected[:, lo : hi + 1]
        piece = np.transpose(np.flip(piece, [3 - d for d in backwards]), [0, *(a + 1 for a in axes)])
        found = max(found, float(np.abs(q - piece).max()))
    return found


# tangential to no face of the far field, where round-off would say what enters
OBLIQUE = {"rho": 1.0, "u": 0.3, "v": 0.4, "w": 0.07, "p": P}
LEVEL = {"rho": 1.0, "u": 0.3, "v": 0.4, "p": P}


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_pieces_around_the_pole_are_one_ring(where):
    whole = model(False, (0, 20), SEVERAL[:1], moving(OBLIQUE))
    expected = advanced(Solver(whole[0], backend("cpu"), grid=whole[1]), 10)[0]
    assert np.ptp(expected[1]) > 0.1
    ends, turns = MODELS["three blocks"][1:]
    chosen, grid = model(False, ends, turns, moving(OBLIQUE))
    assert apart(advanced(Solver(chosen, backend(where), grid=grid), 10), ends, turns, expected) < 1e-13


def test_half_a_model_is_half_the_whole():
    """To round-off, of a flow along the plane of symmetry."""
    for ends, turns in (MODELS["half"][1:], ((0, 6, 12), SEVERAL[1:])):
        chosen, grid = model(False, (0, 2 * ends[-1]), SEVERAL[:1], moving(LEVEL))
        expected = advanced(Solver(chosen, backend("cpu"), grid=grid), 10)[0]
        chosen, grid = model(True, ends, turns, moving(LEVEL))
        found = advanced(Solver(chosen, backend("cpu"), grid=grid), 10)
        assert apart(found, ends, turns, expected) < 1e-12


@pytest.mark.parametrize("name", ["half", "half in two"])
def test_half_a_model_has_the_relaxation_of_the_whole(name):
    """The outflow behind a body whose ends differ. Nodes of a pole counted half in the half, at each place of it."""
    given = []
    for half, ends, turns in (MODELS[name], (False, (0, 2 * MODELS[name][1][-1]), SEVERAL[:1])):
        chosen, grid = model(half, ends, turns, {"state": LEVEL})
        tables = chosen.model_dump(mode="json", exclude_unset=True)
        tables["boundary"][-1] = {"faces": "all", "type": "characteristic-outflow", "pressure": P}
        blocks = [Block(b.name, b.x + 0.15 * b.x**2, b.y, b.z) for b in grid.blocks]
        solver = Solver(Case.from_dict(tables), backend("cpu"), grid=joined(blocks))
        given.append(solver.backend.to_host(solver._conditions.outflow.given)[0, : outflow.GIVEN])
    assert given[0] == pytest.approx(given[1], rel=1e-14)


# ---- files, cuts, ranks, restarts


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_nothing_depends_on_cuts(tmp_path, name):
    half, ends, turns = MODELS[name]
    chosen = delivered(tmp_path, half, ends, turns, moving(LEVEL if half else OBLIQUE))
    assert build(chosen.grid).connections == model(half, ends, turns, moving(LEVEL))[1].connections
    expected = advanced(Solver(chosen, backend("cpu")), 5)
    for seed in range(3):
        chance = np.random.default_rng(seed)
        cut = domain(chosen, parts=lambda of, chance=chance: random_parts(of, 5, chance))
        where = backend("cpu" if seed else "emulated")
        assert difference(advanced(Solver(chosen, where, domain=cut), 5), expected) < 1e-13


def _on_ranks(comm, folder):
    return [
        off_on_ranks(comm, delivered(folder, *MODELS[name], moving(LEVEL)), 3)
        for name in ("three blocks", "half in two")
    ]


@pytest.mark.slow
def test_nothing_depends_on_ranks(tmp_path):
    assert np.max(run_ranks(2, _on_ranks, tmp_path)) < 1e-13


@pytest.mark.parametrize("name", ["three blocks", "half in two"])
def test_restart_to_the_last_bit(tmp_path, name):
    def finished(steps, **options):
        simulation = Simulation(delivered(tmp_path, *MODELS[name], moving(LEVEL, steps)), "cpu", **options)
        simulation.run(progress=False)
        return simulation

    whole = finished(6)
    finished(3, out=tmp_path / "run")
    again = finished(6, restart=tmp_path / "run")
    for mine, wanted in zip(again.blocks, whole.blocks, strict=True):
        for variable in ("rho", "u", "v", "w", "p"):
            np.testing.assert_array_equal(mine.state(variable), wanted.state(variable))


# ---- what is refused


def _sector():
    return pieces(shell(np.pi / 2, 10), (0, 10), SEVERAL)


def _bent():
    return pieces(shell(1.2 * np.pi, 10), (0, 10), SEVERAL)


def _uneven(shorter):
    """Two blocks of which one ends before the other's line does."""
    blocks = pieces(shell(np.pi, 14), (0, 7, 14), SEVERAL[:1] * 2)
    block = blocks[shorter]
    blocks[shorter] = Block(block.name, *(c[:, :8] for c in (block.x, block.y, block.z)))
    return blocks


@pytest.mark.parametrize(
    ("blocks", "half", "words"),
    [
        (_bent, True, "do not lie in one plane"),
        (_sector, False, "does not close on itself"),
        (lambda: _uneven(1), True, "do not go on in one block beyond kmax"),
        (lambda: _uneven(0), True, "does not end at the same line"),
        (lambda: pieces(shell(2 * np.pi, 21), (0, 10, 21), SEVERAL[:1] * 2), False, "21 nodes around the pole"),
    ],
)
def test_refusals(blocks, half, words):
    blocks = blocks()
    with pytest.raises(HiresxError, match=words) as error:
        decompose(case(SEVERAL[:1] * len(blocks), LEVEL, half), joined(blocks))
    assert "docs/grids.md" in error.value.hint


def test_a_block_of_the_ring_that_is_no_pole():
    half, ends, turns = MODELS["three blocks"]
    chosen, grid = model(half, ends, turns, moving(OBLIQUE))
    kept = [c for c in chosen.boundary if not (c.type == "pole" and c.block == "piece-1")]
    with pytest.raises(HiresxError, match="ring continues in block 'piece-1'"):
        decompose(chosen.model_copy(update={"boundary": kept}), grid)
