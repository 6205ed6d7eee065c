"""Facets of walls: without gaps where blocks and periodic faces meet."""

import numpy as np
import pytest
from arrangements import saved
from multiblock import Arrangement
from test_wall_distance import WALL, sheared

from hiresx import Case
from hiresx.decomposition import decompose
from hiresx.grid import Block, build
from hiresx.rhs.wall_distance import facet_tree, wall_facets


def areas(facets):
    return np.linalg.norm(np.cross(facets[:, 1] - facets[:, 0], facets[:, 2] - facets[:, 0]), axis=1) / 2


def test_a_facet_leads_over_each_periodic_face():
    """On both sides, so that those of the seam are there twice; all 8 nodes of i are 1/8 apart, the 9 of k 1/6."""
    around = {"faces": ["imin", "imax", "kmin", "kmax"], "type": "periodic"}
    data = sheared((8, 7, 9), [{"faces": ["jmin", "jmax"], **WALL}, around]).document()
    data["grid"] |= {"periodic": ["x", "z"]}
    case = Case.from_dict(data)
    facets = wall_facets(decompose(case, build(case.grid, None)))
    for y in (0.0, 2.0):
        plane = facets[(facets[..., 1] == y).all(axis=1)]
        np.testing.assert_allclose(areas(plane), 1 / 8 * 1 / 6 / 4, rtol=1e-12)
        assert len(plane) == 4 * (7 * 8 + 2 * 8 + 2 * 7)
        np.testing.assert_allclose(plane.min(axis=(0, 1)), [-1 / 8, y, -1 / 6], atol=1e-14)
        np.testing.assert_allclose(plane.max(axis=(0, 1)), [1, y, 1.5], atol=1e-14)
    assert len(facets) == 8 * (7 * 8 + 2 * 8 + 2 * 7)


def holds(triangles, points):
    """Whether one of the plane triangles (n, 3, 2) holds each of the points (m, 2)."""
    a, b, c = np.moveaxis(triangles, 1, 0)[:, :, None]

    def side(p, q):
        return (q - p)[..., 0] * (points - p)[..., 1] - (q - p)[..., 1] * (points - p)[..., 0]

    sides = np.stack([side(a, b), side(b, c), side(c, a)])
    return ((sides >= -1e-12).all(axis=0) | (sides <= 1e-12).all(axis=0)).any(axis=0)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_facets_of_turned_blocks_leave_no_gap(tmp_path, seed):
    """All faces of a box of two blocks, each turned in index space, and with a layer of cells between them."""
    z, y, x = np.meshgrid(np.linspace(0, 3, 10), np.linspace(0, 2, 9), np.linspace(0, 1, 18), indexing="ij")
    parts = Arrangement(Block("box", x, y, z), 2, seed, False)
    grid = saved(tmp_path, parts.blocks, {"blocks": [b.name for b in parts.blocks], "connection": parts.tables})
    facets = wall_facets(decompose(sheared(boundary=[{"faces": "all", **WALL}]), grid))
    for axis, end in enumerate((1.0, 2.0, 3.0)):
        for level in (0.0, end):
            plane = facets[(np.abs(facets[..., axis] - level) < 1e-12).all(axis=1)]
            others = [n for n in range(3) if n != axis]
            points = np.random.default_rng(seed).uniform(0, 1, (400, 2)) * np.array([1.0, 2.0, 3.0])[others]
            assert holds(plane[:, :, others], points).all(), (axis, level)


def test_boxes_of_the_tree_hold_their_facets():
    """Walked without skipping, every facet comes once, inside the box of its leaf and of all boxes above."""
    facets = np.random.default_rng(4).uniform(-1, 1, (75, 1, 3)) + np.random.default_rng(5).uniform(0, 0.1, (75, 3, 3))
    tree = facet_tree(facets)
    held = [tree.corners[slice(*leaf)].reshape(-1, 3) for leaf in tree.leaves]
    assert sum(len(corners) for corners in held) == 3 * 75
    np.testing.assert_array_equal(np.sort(tree.corners, axis=0), np.sort(facets.reshape(-1, 9), axis=0))
    for n, (bounds, skip) in enumerate(zip(tree.bounds, tree.skip, strict=True)):
        below = np.concatenate(held[n:skip])
        np.testing.assert_array_equal(bounds, [*below.min(axis=0), *below.max(axis=0)])
        leaf = len(held[n]) // 3
        assert skip > n and leaf <= 8 and (leaf == 0) == (skip > n + 1) and len(below)
    assert tree.skip[0] == len(tree.skip)
