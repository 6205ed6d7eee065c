"""What is computed does not depend on how the grid is cut: into how many blocks, where, and how their indexes run."""

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vortices import PRANDTL

from hiresx.case import load
from hiresx.decomposition import Part, decompose, domain, split
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.grid import build
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference, random_parts, turn_back, turn_blocks, turns

STEPS = 20
SAME = 1e-12

CASES = {
    "free stream": ("free-stream", None, ()),
    "free stream, viscous": ("free-stream", None, ("gas.reynolds=100.0", 'scheme.flux="hllc"')),
    "vortex on a wavy grid": ("isentropic-vortex", "wavy", ("grid.n=[40,40,1]",)),
    "Taylor-Green": ("taylor-green", None, ("grid.n=[20,20,20]", PRANDTL)),
    "jet": ("planar-jet", "quick", ()),
    "bow shock, local steps, limiter": (
        "cylinder-bow-shock",
        None,
        ("time.local=true", "time.steps=20", 'scheme.positivity="limiter"'),
    ),
    "cylinder, O-grid": ("cylinder-o", "quick", ()),
    "airfoil, C-grid": ("naca0012", "quick", ("scheme.epsilon=1e-6",)),
}


def computed(case, where="cpu", **how) -> list[np.ndarray]:
    """The conservative states of the blocks after STEPS steps."""
    solver = Solver(case, backend(where), **how)
    solver.initialize()
    for _ in range(STEPS):
        solver.step()
    wholes = [np.full((5, *block.x.shape), np.nan) for block in solver.decomposition.blocks]
    for state, piece in zip(solver.states, solver.pieces(), strict=True):
        wholes[state.part.whole][(slice(None), *state.part.slices)] = piece.array
    return wholes


@cache
def reference(name: str):
    case = load(*CASES[name])
    return case, decompose(case, build(case.grid, case.directory)), computed(case)


def parameters(names, quick):
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


@pytest.mark.parametrize(
    "name", parameters(CASES, ("free stream", "vortex on a wavy grid", "bow shock, local steps, limiter"))
)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(blocks=st.sampled_from([2, 3, 4, 7, 8, 12]), seed=st.integers(0, 2**32 - 1))
def test_any_cut_and_any_orientation(name, blocks, seed):
    case, whole, expected = reference(name)
    new = turn_blocks(case, whole, blocks, np.random.default_rng(seed))
    found = new.wholes(computed(new.case, grid=new.grid))
    assert difference(found, expected) <= SAME


@pytest.mark.parametrize(
    "name", parameters(("vortex on a wavy grid", "Taylor-Green", "jet"), ("vortex on a wavy grid", "Taylor-Green"))
)
@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_parts_of_one_block(name, where):
    case, _, expected = reference(name)
    chance = np.random.default_rng(5)
    cut = domain(case, parts=lambda whole: random_parts(whole, 6, chance))
    assert difference(computed(case, where, domain=cut), expected) <= SAME


@pytest.mark.parametrize("seed", [9, 34, 39, 47])
def test_cuts_through_the_end_of_a_c_cut(seed):
    """Where the ways through the C-grid's own connection and through the cut lead to different ghosts at an edge."""
    case, whole, expected = reference("airfoil, C-grid")
    new = turn_blocks(case, whole, 8, np.random.default_rng(seed))
    assert difference(new.wholes(computed(new.case, grid=new.grid)), expected) <= SAME


@pytest.mark.slow
def test_the_free_stream_stays_on_any_arrangement():
    case, whole, _ = reference("free stream, viscous")
    new = turn_blocks(case, whole, 12, np.random.default_rng(0))
    solver = Solver(new.case, backend("cpu"), grid=new.grid)
    solver.initialize()
    before = [np.asarray(piece.array) for piece in solver.pieces()]
    for _ in range(STEPS):
        solver.step()
    change = max(np.abs(np.asarray(a.array) - b).max() for a, b in zip(solver.pieces(), before, strict=True))
    assert change <= SAME


def test_turns_are_all_right_handed_ones():
    assert [len(turns(size)) for size in ((8, 9, 10), (8, 9, 1), (8, 1, 1))] == [24, 4, 1]
    chance = np.random.default_rng(0)
    values = chance.random((2, 10, 9, 8))
    for turn in turns((8, 9, 10)):
        there = np.stack([turn.array(one) for one in values])
        assert (turn_back(there, turn) == values).all()
        matrix, offset = turn.matrix((8, 9, 10))
        i, j, k = matrix.T @ (np.array([3, 1, 7]) - offset)
        assert round(np.linalg.det(matrix)) == 1
        assert (there[:, k, j, i] == values[:, 7, 1, 3]).all()


def test_parts_must_cover_the_blocks_once():
    case = load(*CASES["vortex on a wavy grid"])
    whole = decompose(case, build(case.grid, case.directory))
    half, rest = ((0, 20), (0, 40), (0, 1)), ((20, 40), (0, 40), (0, 1))
    split(whole, [Part(0, half), Part(0, rest)])
    for parts in (
        [Part(0, half)],
        [Part(0, half), Part(0, half)],
        [Part(0, half), Part(0, ((20, 41), (0, 40), (0, 1)))],
        [Part(0, half), Part(0, ((19, 39), (0, 40), (0, 1)))],
    ):
        with pytest.raises(HiresxError, match="do not cover block 'wavy'"):
            split(whole, parts)


@pytest.mark.parametrize("nodes", [2, 6])
def test_a_part_thinner_than_the_ghosts_is_refused(nodes):
    case = load(*CASES["vortex on a wavy grid"])
    whole = decompose(case, build(case.grid, case.directory))
    thin, enough = (
        [Part(0, (range_, (0, 40), (0, 1))) for range_ in ((0, 20), (20, 20 + n), (20 + n, 40))] for n in (nodes, 7)
    )
    with pytest.raises(HiresxError, match=r"two of its pieces|needs 7 or more"):
        split(whole, thin)
    assert len(split(whole, enough).parts) == 3
