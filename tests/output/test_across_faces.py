"""Gradients of stored fields at the faces of blocks: made with the neighbour's nodes, not one-sided."""

import numpy as np
import pytest

from hiresx import grid, load
from hiresx.decomposition import decompose
from hiresx.output.fields import block_neighbours, derived, field_file
from hiresx.output.fields.field_file import FieldBlock


def field(x, y, z):
    """rho of a smooth flow that a coarse grid resolves badly, and its gradient's magnitude."""
    c, width = np.array([1.4, 0.35, 0.2]), 0.12
    away = [x - c[0], y - c[1], z - c[2]]
    bump = 0.3 * np.exp(-sum(a * a for a in away) / width)
    return 1 + bump, np.sqrt(sum((2 * a / width * bump) ** 2 for a in away))


def stored(path, case, connections, blocks, joined_by=True):
    made = []
    for b in blocks:
        rho, _ = field(b.x, b.y, b.z)
        zero = np.zeros_like(rho)
        state = {"rho": rho, "u": zero, "v": zero, "w": zero, "p": zero + 1}
        made.append(FieldBlock(b.name, *(np.asarray(c) for c in (b.x, b.y, b.z)), state))
    text = block_neighbours.encode_connections(connections) if joined_by else ""
    series = field_file.Series(made, case, ["rho", "u", "v", "w", "p"], "fp64", joined_by=text)
    series.write(path, made, 0.0, 0)
    return field_file.read(path, ["schlieren"]).blocks


@pytest.fixture(scope="module")
def jet():
    case = load("round-jet", "quick")
    whole = decompose(case, grid.build(case.grid, case.directory))
    return case.model_dump(mode="json"), whole


def test_the_seam_of_a_ring_is_like_any_other_ray(jet, tmp_path):
    """The ring closes at k = 0: with its own other end as neighbour the error there is what it is elsewhere; one-sided
    it is several times as large, as it is where the core begins."""
    case, whole = jet
    number = [b.name for b in whole.blocks].index("jet")
    block = whole.blocks[number]
    _, exact = field(block.x, block.y, block.z)
    errors = []
    for joined_by in (True, False):
        found = stored(tmp_path / "f.nc", case, whole.connections, whole.blocks, joined_by)[number].state["schlieren"]
        error = np.abs(found - exact)
        errors.append((error[:3].max(), error[3:8].max(), error[3:8, 3:].max()))
    (seam, rays, _), (seam_alone, rays_alone, outside_alone) = errors
    assert seam < 1.1 * rays, "the bump lies around k = 3"
    assert seam_alone > 3 * seam and rays_alone > 3 * outside_alone


def test_blocks_that_touch_give_what_one_block_gives(tmp_path):
    """A box cut in two with nodes on one side, closed on itself along j: inside as if it had not been cut."""
    case = load("taylor-green", overrides=["grid.n=[24, 16, 12]"])
    whole = decompose(case, grid.build(case.grid, case.directory))
    (block,) = whole.blocks
    told = case.model_dump(mode="json")
    (periodic,) = stored(tmp_path / "p.nc", told, whole.connections, whole.blocks)
    assert {(c.face) for c in whole.connections} == {"imin", "imax", "jmin", "jmax", "kmin", "kmax"}
    x, y, z = (np.asarray(c) for c in (block.x, block.y, block.z))
    wrapped = [np.pad(c, 3, mode="wrap") for c in (field(x, y, z)[0],)]
    h = [float(c.ravel()[step] - c.ravel()[0]) for c, step in ((x, 1), (y, 24), (z, 24 * 16))]
    total = 0.0
    for axis, spacing in zip((2, 1, 0), h, strict=True):
        take = lambda n, axis=axis: np.roll(wrapped[0], -n, axis)  # noqa: E731
        d = (45 * (take(1) - take(-1)) - 9 * (take(2) - take(-2)) + take(3) - take(-3)) / (60 * spacing)
        total = total + d[3:-3, 3:-3, 3:-3] ** 2
    np.testing.assert_allclose(periodic.state["schlieren"], np.sqrt(total), rtol=0, atol=1e-12)


def test_old_files_and_walls_stay_one_sided(jet, tmp_path):
    """A file that does not say what is joined, and a face that ends at a wall, are read as before."""
    case, whole = jet
    number = [b.name for b in whole.blocks].index("nozzle")
    block = whole.blocks[number]
    with_neighbours, before = (
        stored(tmp_path / "f.nc", case, whole.connections, whole.blocks, told)[number].state["schlieren"]
        for told in (True, False)
    )
    rho, _ = field(block.x, block.y, block.z)
    alone = derived.evaluate(
        ["schlieren"], derived.FlowState(*(np.asarray(c) for c in (block.x, block.y, block.z)), {"rho": rho}, 1.4)
    )["schlieren"]
    np.testing.assert_array_equal(before, alone)
    # far from the joined faces nothing has changed, at the wall (jmax) and the inlet (imin) included
    np.testing.assert_array_equal(with_neighbours[3:-3, 3:, :-3], alone[3:-3, 3:, :-3])
