"""Grid lines behind open faces: on polynomials where these are safe, else at reflected points."""

import numpy as np
import pytest
from arrangements import FAR, decomposed, free_stream_residual

from hiresx.case.boundaries import Condition, SlipWall, SupersonicOutflow
from hiresx.decomposition import extended_coordinates
from hiresx.decomposition.open_faces import OPEN, lines_of, open_degrees
from hiresx.grid import Block, Grid, matched_connections

LAYERS = 3
OUT = SupersonicOutflow(faces="all")


def bent_lines(i, j, k=0.0):
    """A grid that is stretched along i, whose lines bend along i and j; places beyond its ends, too."""
    fan = 0.1 * j + 0.004 * j**2
    return np.exp(0.08 * i) + 0.05 * fan**2 * (1 + 0.1 * k), fan * (1 + 0.02 * i + 0.001 * i**2), k + 0.01 * i * fan


def block(ni=14, nj=11, nk=1, name="box", first=0):
    k, j, i = np.meshgrid(np.arange(nk), np.arange(first, first + nj), np.arange(ni), indexing="ij")
    x, y, z = bent_lines(i, j, k)
    return Block(name, x, y, z if nk > 1 else 0 * z)


def lines(steps, shift=0.0, spacing=0.1):
    """Grid lines along x with the given steps before imax, from the face inwards, and `shift` (nj, ni) along y."""
    x, y = np.meshgrid(-np.cumsum([0.0, *steps])[::-1], spacing * np.arange(9))
    return Block("lines", x[None], (y + shift)[None], 0 * x[None])


def at_imax(made):
    ni, nj, nk = made.size
    return lines_of(made, "imax", ((ni - 1, ni), (0, nj), (0, nk)), LAYERS)


@pytest.mark.parametrize("nk", [1, 9])
def test_ghosts_lie_where_the_grid_would(nk):
    """Behind faces, edges and corners. Reflected points are farther off by more than a tenth of the step; uniform flow
    stays."""
    (nodes,) = extended_coordinates(decomposed(Grid((block(nk=nk),)), FAR))
    depth = LAYERS if nk > 1 else 0
    k, j, i = np.meshgrid(np.arange(-depth, nk + depth), np.arange(-3, 14), np.arange(-3, 17), indexing="ij")
    wanted = bent_lines(i, j, k)
    kept = slice(None) if nk > 1 else slice(LAYERS, LAYERS + 1)
    for found, exact in zip(nodes[: 3 if nk > 1 else 2], wanted, strict=False):
        np.testing.assert_allclose(found[kept], exact, atol=2e-4)
    x = nodes[0][kept]
    reflected = 2 * x[:, 3:-3, -4] - x[:, 3:-3, -7]
    assert np.abs(reflected - x[:, 3:-3, -1]).min() > 0.1
    assert free_stream_residual(nodes) < 1e-14


RNG = np.random.default_rng(5)
_NONE = np.zeros((9, 13))
_CORNER = _NONE + 0.2 * np.maximum(np.arange(13)[::-1] - 2, 0)
SHAPES = {
    # steps from the face inwards, shifts of nodes along the face, degree
    "slowly stretched": (1.1 ** np.arange(12), _NONE, 4),
    "drawn together": (1.3 ** -np.arange(12.0), _NONE, 4),
    "strongly stretched": (1.45 ** np.arange(12), _NONE, 3),
    "so stretched that they would turn back": (2.5 ** np.arange(12), _NONE, 1),
    "with a jump of the step": ([1.0, 1.1, 2.0, 2.1, *[2.2] * 8], _NONE, 1),
    "with a corner": (1.02 ** np.arange(12), _CORNER, 1),
    "rough": (1.05 ** np.arange(12) * RNG.uniform(0.95, 1.05, 12), _NONE, 1),
    "rough and close together": (1.05 ** np.arange(12), 5e-3 * RNG.standard_normal((9, 13)), 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_polynomials_are_taken_where_they_are_safe(shape):
    steps, shift, degree = SHAPES[shape]
    assert at_imax(lines(steps, shift))[0] == degree


def test_lines_that_would_cross_are_reflected():
    """Thin cells between lines of a fan, straight but for their spacing. It closes behind the face, slowly or at the
    second ghost."""
    inwards = np.arange(13)[::-1]
    fans = [lines(1.1 ** np.arange(12), share * 0.02 * np.arange(9)[:, None] * inwards, 0.02) for share in (0.1, 0.5)]
    assert [at_imax(fan)[0] for fan in fans] == [4, 1]


def test_uniform_lines_are_reflected_to_the_last_bit():
    """Noise of single precision counts as none."""
    made = lines(np.ones(12))
    rough = Block("rough", *(c.astype(np.float32).astype(float) for c in (made.x / 3, made.y / 3, made.z)))
    for given in (made, rough):
        whole = decomposed(Grid((given,)), FAR)
        assert set(open_degrees(whole).values()) == {1}
        x = extended_coordinates(whole)[0][0][LAYERS, 3:-3]
        np.testing.assert_array_equal(x[:, -3:], 2 * x[:, -4:-3] - x[:, -5:-8:-1])


@pytest.mark.parametrize("conditions", [(FAR,), (SupersonicOutflow(faces=["imax"], block="upper"), FAR)])
def test_faces_that_continue_each_other_have_one_degree(conditions):
    """Two blocks, of which the lines of the upper one allow a lower degree: both have it, whatever the conditions; and
    the same as one block. Another face keeps its own degree."""
    y = np.arange(13.0)
    ratios = 1.1 + 0.3 * np.clip(y - 6, 0, 6) / 6
    x = np.cumsum(ratios[:, None] ** -np.arange(14.0), axis=1)  # drawn together to imax
    x = x - x[:, -1:]
    whole = Block("whole", x[None], np.broadcast_to(y[:, None], x.shape)[None].copy(), 0 * x[None])
    halves = [Block(n, *(c[:, part] for c in whole.coordinates)) for n, part in
              (("lower", slice(0, 7)), ("upper", slice(6, 13)))]  # fmt: skip
    cut = decomposed(Grid(tuple(halves), tuple(matched_connections(halves))), *conditions)
    degrees = open_degrees(cut)
    assert {degrees[n] for n, patch in enumerate(cut.patches) if patch.face == "imax"} == {3}
    assert [at_imax(half)[0] for half in halves] == [4, 3]
    (wanted,) = extended_coordinates(decomposed(Grid((whole,)), FAR))
    for nodes, rows in zip(extended_coordinates(cut), (slice(0, 13), slice(6, 19)), strict=True):
        np.testing.assert_allclose(nodes[0], wanted[0][:, rows], rtol=0, atol=1e-13)


def test_walls_are_not_open():
    whole = decomposed(Grid((block(),)), SlipWall(faces=["imin"]), OUT)
    assert {whole.patches[n].face for n in open_degrees(whole)} == {"imax", "jmin", "jmax"}


def test_every_condition_is_open_or_known_not_to_be():
    closed = {None, "patched", "reflect", "axis", "pole", "no_slip"}
    assert {condition.kernel for condition in Condition.__subclasses__()} - closed == OPEN
