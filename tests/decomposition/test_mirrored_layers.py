"""Ghosts behind a plane of symmetry that a swept wall meets take the flow in their own layer before the wall."""

import numpy as np
import pytest
from oblique_grids import case

from hiresx.decomposition.domain import domain
from hiresx.decomposition.mirror_points import find_mirror_sources
from hiresx.decomposition.mirrored_layers import FAR
from hiresx.grid import Block, Connection, Grid

# Grid lines along k lean by 45 degrees over cells 0.1 wide, and the wall is an arc: the image of a ghost at the wall
# lies up to 0.2 off it, which is many of its layers.
CHORD, SPAN, LAYERS = 21, 7, 24


def wing(first, cut=None):
    """An arc of radius 1, swept by 45 degrees: i along it, j outwards with the first distance `first`, k along the
    span; `cut`: the i at which the second of two blocks begins, which has the axes (j, k, i)."""
    j, k = np.arange(LAYERS), np.arange(SPAN)
    height = first * (1.3**j - 1) / 0.3
    along = np.linspace(-1, 1, CHORD)
    z, h, s = np.meshgrid(0.1 * k, height, along, indexing="ij")
    x, y = s - z, np.sqrt(2 - s * s) + h
    if cut is None:
        return Grid((Block("wing", x, y, z),))
    ahead, behind = (slice(0, cut + 1), slice(cut, CHORD))
    turned = [np.ascontiguousarray(c[:, :, behind].transpose(2, 0, 1)) for c in (x, y, z)]
    blocks = (Block("ahead", *(c[:, :, ahead] for c in (x, y, z))), Block("behind", *turned))
    whole = ((0, LAYERS), (0, SPAN))
    there = Connection(0, "imax", ((cut, cut + 1), *whole), 1, ((0, 1, 0), (0, 0, 1), (1, 0, 0)), (0, 0, -cut))
    back = Connection(1, "kmin", (*whole, (0, 1)), 0, ((0, 0, 1), (1, 0, 0), (0, 1, 0)), (cut, 0, 0))
    return Grid(blocks, (there, back))


def plate(growth, rise=0.0):
    """Cells 0.1 long and wide and 0.01 high at k = 0 above a plane wall. Layers grow by `growth` of this from cell to
    cell along k, and the wall rises by `rise` times z: its image behind z = 0 turns."""
    z, j, s = np.meshgrid(0.1 * np.arange(SPAN), np.arange(LAYERS), np.linspace(-1, 1, CHORD), indexing="ij")
    return Grid((Block("plate", s - z, 0.01 * j * (1 + growth * 10 * z) + rise * z, z),))


def airfoil(cut):
    """The arc of `wing` above and below of a sheet, which is a wall ahead of i = `cut` in the upper block."""
    (upper,) = wing(1e-4).blocks
    surface = upper.y[:, :1]
    lower = Block("lower", upper.x[..., ::-1], (2 * surface - upper.y)[..., ::-1], upper.z[..., ::-1])
    turn, offset = ((-1, 0, 0), (0, -1, 0), (0, 0, 1)), (CHORD - 1, 0, 0)
    ends = ((cut, CHORD), (0, CHORD - cut))
    return Grid(
        (upper, lower),
        tuple(Connection(n, "jmin", (ends[n], (0, 1), (0, SPAN)), 1 - n, turn, offset) for n in (0, 1)),
    )


def places(grid, wall, faces=("jmin",), plane=("kmin",), donors=False, ahead=None):
    """The ghosts (n, 3) behind the plane, in the block `ahead`, and the places from which they take the flow, with the
    layer first; `ahead`: the i at which walls end; `donors`: with the blocks of the places, all of the same axes."""
    conditions = [
        {"block": block.name, "faces": [face], "type": kind}
        | ({} if kind == "symmetry" or ahead is None else {"range": {"i": [0, ahead]}})
        for kind, of_blocks in ((wall, faces), ("symmetry", plane))
        for block, face in zip(grid.blocks, of_blocks, strict=True)
        if face is not None
    ]
    conditions.append({"faces": "all", "type": "far-field", "state": {"rho": 1.0, "p": 0.7}})
    of = domain(case(conditions, {"local": True, "steps": 1}, gas={"reynolds": 1e6}), grid=grid)
    found = [s for s in find_mirror_sources(of.whole, of.extended) if of.whole.patches[s.place].face in plane]
    (sources,) = [s for s in found if of.whole.patches[s.place].block == 0]
    assert sources.per == 1
    layer = np.where((sources.donor == 0) | donors, sources.xi[:, 1], sources.xi[:, 0])
    return (sources.index.T, layer, sources.donor) if donors else (sources.index.T, layer)


def test_ghosts_in_thin_layers_take_the_flow_of_their_own_layer():
    index, layer = places(wing(1e-4), "no-slip-wall")
    near = (index[:, 2] == -1) & (index[:, 0] < CHORD - 3) & (index[:, 1] < 6)
    assert near.sum() == 6 * (CHORD - 3)
    assert layer[near] == pytest.approx(index[near, 1], abs=1e-9)
    # before a wall without friction there are no layers: the images, some of which lie behind the wall, are taken
    _, image = places(wing(1e-4), "slip-wall")
    assert np.abs(image[near] - index[near, 1]).max() > 2 * FAR


def test_where_cells_are_wide_the_image_is_taken():
    """In all ghost layers."""
    (index, layer), (_, image) = (places(wing(0.1), wall) for wall in ("no-slip-wall", "slip-wall"))
    inside = (index[:, 0] < CHORD - 8) & (image > 0)
    assert np.abs(image - index[:, 1])[inside].max() > 2.5
    assert layer[inside] == pytest.approx(image[inside], abs=1e-9)


def test_layers_go_on_in_a_block_of_other_axes():
    index, layer = places(wing(1e-4, cut=8), "no-slip-wall", ("jmin", "imin"), ("kmin", "jmin"))
    near = (index[:, 2] == -1) & (index[:, 0] < CHORD - 3) & (index[:, 1] < 6)
    assert layer[near] == pytest.approx(index[near, 1], abs=1e-9)


@pytest.mark.parametrize("growth", [0.02, 0.1, 0.3])
def test_before_a_wall_that_is_its_own_image_a_shear_is_kept(growth):
    """Layers that grow along the span are as inclined as these of `wing`, but all images lie in the flow."""
    (index, layer), (_, image) = (places(plate(growth), wall) for wall in ("no-slip-wall", "slip-wall"))
    assert np.abs(image - index[:, 1]).max() > 2 * growth
    assert np.array_equal(layer, image)


def test_far_from_the_wall_the_image_is_taken():
    """The image of the wall lies 0.06 l, six layers, beside the ghosts of layer l that continue it."""
    (index, layer), (_, image) = (places(plate(0.0, rise=0.3), wall) for wall in ("no-slip-wall", "slip-wall"))
    first = (index[:, 2] == -1) & (index[:, 0] < CHORD - 3)
    near, far = first & (index[:, 1] <= 11), first & (index[:, 1] >= 23)
    assert layer[near] == pytest.approx(index[near, 1], abs=1e-9)
    assert np.array_equal(layer[far], image[far]) and np.abs(image[far] - index[far, 1]).min() > 5.9


def test_layers_go_on_in_a_block_without_a_wall():
    index, layer = places(wing(1e-4, cut=8), "no-slip-wall", (None, "imin"), ("kmin", "jmin"))
    near = (index[:, 2] == -1) & (index[:, 0] < CHORD - 3) & (index[:, 1] < 6)
    assert layer[near] == pytest.approx(index[near, 1], abs=1e-9)


def test_layers_across_a_wake_stay_on_the_side_of_their_ghosts():
    walls = ("jmin", None), ("kmin", "kmin")
    index, layer, donor = places(airfoil(6), "no-slip-wall", *walls, donors=True, ahead=6)
    near = (index[:, 2] == -1) & (index[:, 0] < CHORD - 3) & (index[:, 1] < 6)
    assert (donor[near] == 0).all() and layer[near] == pytest.approx(index[near, 1], abs=1e-9)
