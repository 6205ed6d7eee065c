"""The ghosts of tiles as sums over nodes of the level before, against the interpolation of each ghost by itself."""

import numpy as np
import pytest

from hiresx.case import Case
from hiresx.decomposition import Part, domain, padded_shape
from hiresx.decomposition.level_donors import GhostBox, level_rows
from hiresx.decomposition.levels import stencils
from hiresx.decomposition.patched_donors import linear
from hiresx.decomposition.tile_ghosts import find_level_donors
from hiresx.grid.blocks import whole_box

REGIONS = {
    "inside, and at both ends of the period": [{"level": 2, "i": [0, 3], "j": [9, 14]}],
    "at the ends of a block": [{"level": 1, "i": [16, 23], "j": [16, 23]}],
}


def halves(whole):
    """Every block as two parts."""
    for n, block in enumerate(whole.blocks):
        (_, end), *rest = whole_box(block.size)
        yield from (Part(n, ((lo, hi), *rest)) for lo, hi in ((0, end // 2), (end // 2, end)))


def made(region, periodic, parts, n=(24, 24, 1)):
    return domain(
        Case.from_dict(
            {
                "grid": {
                    "generator": "box",
                    "n": [24, 24, 1],
                    "lower": [0.0, 0.0, 0.0],
                    "upper": [1.0, 1.0, 0.0],
                    "periodic": ["x"] if periodic else [],
                },
                "boundary": [
                    *([{"faces": ["imin", "imax"], "type": "periodic"}] if periodic else []),
                    {"faces": "all", "type": "slip-wall"},
                ],
                "refine": {"tile": 16, "region": region},
                "initial": {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": 1.0}},
                "time": {"steps": 1, "cfl": 0.5},
            }
        ),
        parts=parts,
    )


@pytest.mark.parametrize("parts", [None, lambda whole: [*halves(whole)]], ids=["whole", "halves"])
@pytest.mark.parametrize(("region", "periodic"), [*zip(REGIONS.values(), (True, False), strict=True)], ids=REGIONS)
def test_shares_add_up_to_the_interpolation_of_every_ghost(region, periodic, parts):
    ground = made(region, periodic, parts)
    whole, halo = ground.whole, ground.halo
    found = find_level_donors(whole)
    values = {}  # of each part of a level with ghosts, its numbers of the whole level
    for p, part in enumerate(ground.cut.parts):
        tile = whole.levels.tiles[part.whole]
        n = whole.levels.spaces[tile.level, tile.base].size[0]
        i, j = (np.arange(lo, hi) + first for (lo, hi), (first, _) in zip(part.box[:2], tile.box[:2], strict=True))
        padded = np.full(padded_shape(ground.cut.blocks[p], halo), np.nan)
        padded[0, halo : halo + len(j), halo : halo + len(i)] = np.sin(i % n) + np.cos(2.0 * j)[:, None]
        values[p] = padded.ravel()
    cut_blocks = ground.cut.blocks
    sums = np.zeros((2, sum(f.index.shape[1] for f in found)))
    for rows in level_rows(whole, ground.cut, found):
        of_part, seen = cut_blocks[rows.part], 0
        own = values[rows.part].reshape(padded_shape(of_part, halo))
        for box, places in rows.boxes_of(np.arange(len(rows.ghost))):
            nodes, weights = [], []
            for line, column, width, n in zip(rows.lines, box.columns, rows.widths, of_part.size, strict=True):
                nodes.append(line.start[column][:, None] + np.arange(width) + (halo if n > 1 else 0))
                weights.append(line.weights[:, :width, column])
            flow = own[
                nodes[2][:, None, None, :, None, None], nodes[1][:, None, None, :, None], nodes[0][:, None, None, :]
            ]
            found_there = np.einsum("zyxcba,wax,wby,wcz->wzyx", flow, *weights)
            layers_first = np.moveaxis(found_there, 3 - box.normal, 1)
            sums[:, rows.ghost[places]] += layers_first.reshape(2, -1)
            seen += len(places)
        assert seen == len(rows.ghost)
    number = 0
    assert found
    for entry in found:
        tile = whole.levels.tiles[whole.patches[entry.place].block]
        space = whole.levels.spaces[tile.level - 1, tile.base]
        for at in entry.index.T:
            xi = [(n + lo) / 2 for n, (lo, _) in zip(at[:2], tile.box[:2], strict=True)]
            weights, nodes = [], []
            for d, n in enumerate(space.size[:2]):
                wrapped = space.wrapped[d] is not None and space.wrapped[d].step == n
                first, sixth = stencils(np.array([xi[d]]), *((-halo, n + halo) if wrapped else (0, n)))
                second = linear(np.array([[xi[d]]]), first[:, None])[:, 0]
                nodes.append(first[0] + np.arange(6))
                weights.append(np.concatenate([sixth, second]))
            flow = np.sin(nodes[0] % space.size[0]) + np.cos(2.0 * nodes[1])[:, None]
            wanted = np.einsum("wi,wj,ji->w", *weights, flow)
            assert sums[:, number] == pytest.approx(wanted, abs=1e-13)
            number += 1


def test_some_ghosts_of_a_box_are_boxes():
    """As where parts of a tile belong to several ranks: an angle of ghosts in each of two layers."""
    box = GhostBox(1, (np.arange(10, 15), np.array([3, 2]), np.arange(20, 24)))
    assert box.shape == (2, 4, 5)
    chosen = np.zeros(box.shape, bool)
    chosen[:, 1:, :2] = chosen[:, 2, :] = True
    numbers = np.flatnonzero(chosen)
    layer, k, i = np.nonzero(chosen)
    found = [*box.boxes_of(numbers)]
    assert len(found) > 1
    assert sorted(np.concatenate([places for _, places in found])) == [*range(len(numbers))]
    for own, places in found:
        columns = np.stack(np.meshgrid(own.columns[1], own.columns[2], own.columns[0], indexing="ij")).reshape(3, -1)
        wanted = box.columns[1][layer[places]], box.columns[2][k[places]], box.columns[0][i[places]]
        np.testing.assert_array_equal(columns, wanted)
