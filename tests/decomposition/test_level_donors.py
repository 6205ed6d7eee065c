"""The ghosts of tiles as sums over nodes of the level before, against the interpolation of each ghost by itself."""

from itertools import product

import numpy as np
import pytest

from hiresx.case import Case
from hiresx.decomposition import Part, domain, padded_shape
from hiresx.decomposition.level_donors import Cells, coincident_boxes, level_shares
from hiresx.decomposition.levels import stencils
from hiresx.decomposition.patched_donors import linear
from hiresx.decomposition.tile_ghosts import TileGhosts
from hiresx.grid.blocks import whole_box
from hiresx.grid.patched import PATCHED

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
    ghosts = ghosts_of(ground)
    values = {}  # of each part of a level with ghosts, its numbers of the whole level
    for p, part in enumerate(ground.cut.parts):
        tile = whole.levels.tiles[part.whole]
        n = whole.levels.spaces[tile.level, tile.base].size[0]
        i, j = (np.arange(lo, hi) + first for (lo, hi), (first, _) in zip(part.box[:2], tile.box[:2], strict=True))
        padded = np.full(padded_shape(ground.cut.blocks[p], halo), np.nan)
        padded[0, halo : halo + len(j), halo : halo + len(i)] = np.sin(i % n) + np.cos(2.0 * j)[:, None]
        values[p] = padded.ravel()
    shares = level_shares(whole, ground.cut, ghosts)
    sums = [np.zeros((2, *size[::-1])) for size in ghosts.high - ghosts.low]
    for n, (p, box) in enumerate(zip(shares.part, shares.ghosts, strict=True)):
        of_part, size = ground.cut.blocks[p], shares.high[n] - shares.low[n]
        own = values[p].reshape(padded_shape(of_part, halo))
        nodes, weights = [], []
        for d, width in enumerate(shares.widths[n]):
            line, column = shares.lines[shares.line[n, d]], shares.columns[n, d] + np.arange(size[d])
            nodes.append(line.start[column][:, None] + np.arange(width) + (halo if of_part.size[d] > 1 else 0))
            weights.append(line.weights[:, :width, column])
        flow = own[nodes[2][:, None, None, :, None, None], nodes[1][:, None, None, :, None], nodes[0][:, None, None, :]]
        at = (slice(lo, lo + n) for lo, n in zip(shares.low[n] - ghosts.low[box], size, strict=True))
        sums[box][(..., *reversed([*at]))] += np.einsum("zyxcba,wax,wby,wcz->wzyx", flow, *weights)
    assert len(sums)
    for level, base, low, found in zip(ghosts.level, ghosts.base, ghosts.low, sums, strict=True):
        space = whole.levels.spaces[level - 1, base]
        for place in np.ndindex(found.shape[1:]):
            xi = [(n + lo) / 2 for n, lo in zip(place[:0:-1], low, strict=False)]
            weights, nodes = [], []
            for d, n in enumerate(space.size[:2]):
                wrapped = space.wrapped[d] is not None and space.wrapped[d].step == n
                first, sixth = stencils(np.array([xi[d]]), *((-halo, n + halo) if wrapped else (0, n)))
                second = linear(np.array([[xi[d]]]), first[:, None])[:, 0]
                nodes.append(first[0] + np.arange(6))
                weights.append(np.concatenate([sixth, second]))
            flow = np.sin(nodes[0] % space.size[0]) + np.cos(2.0 * nodes[1])[:, None]
            wanted = np.einsum("wi,wj,ji->w", *weights, flow)
            assert found[(slice(None), *place)] == pytest.approx(wanted, abs=1e-13)


def ghosts_of(ground):
    patches = [n for n, patch in enumerate(ground.whole.patches) if patch.condition.type == PATCHED]
    return TileGhosts.of(ground.whole, ground.cut, patches)


@pytest.mark.parametrize("parts", [None, lambda whole: [*halves(whole)]], ids=["whole", "halves"])
def test_every_ghost_is_in_one_cell_with_all_contributions_to_it(parts):
    ground = made(REGIONS["inside, and at both ends of the period"], True, parts)
    ghosts = ghosts_of(ground)
    shares = level_shares(ground.whole, ground.cut, ghosts)
    chosen = np.arange(0, len(ghosts.part), 2)  # as if the others were those of another rank
    cells = Cells.of(ghosts, shares, chosen)
    order = ghosts.part[cells.ghosts] * 3 + ghosts.direction[cells.ghosts]
    assert (np.diff(order) >= 0).all() and cells.contributions.max() > 1
    ends = np.cumsum(cells.contributions)[:-1]
    seen = {box: np.zeros(ghosts.high[box] - ghosts.low[box], int) for box in chosen.tolist()}
    for box, low, high, own in zip(cells.ghosts, cells.low, cells.high, np.split(cells.share, ends), strict=True):
        seen[box][tuple(map(slice, low - ghosts.low[box], high - ghosts.low[box]))] += 1
        for share in np.flatnonzero(shares.ghosts == box):
            inside = (shares.low[share] <= low).all() and (high <= shares.high[share]).all()
            apart = (shares.high[share] <= low).any() or (high <= shares.low[share]).any()
            assert inside == (share in own) != apart
        assert (np.diff(own) > 0).all()
    assert all((of == 1).all() for of in seen.values())


@pytest.mark.parametrize("parts", [None, lambda whole: [*halves(whole)]], ids=["whole", "halves"])
def test_every_node_under_finer_levels_takes_one_value(parts):
    """Level 2 lies over a part of the nodes that level 1 covers."""
    ground = made(REGIONS["inside, and at both ends of the period"], True, parts)
    levels, cut = ground.whole.levels, ground.cut
    places = {p: [] for p in range(len(cut.parts))}
    for e in coincident_boxes(ground.whole, cut).injections():
        assert e.pairs.count == len(e.to) == len(e.source)
        places[e.block] += e.to.tolist()
        assert len({*e.source.tolist()}) == len(e.source)
    finer = {}
    for tile in levels.tiles:
        for n in range(1, tile.level + 1):  # the nodes of coarser levels under the tile
            step = 2**n
            nodes = (range(-(-lo // step), (hi - 1) // step + 1) for lo, hi in tile.box[:2])
            finer.setdefault(tile.level - n, set()).update(product(*nodes))
    for p, part in enumerate(cut.parts):
        tile = levels.tiles[part.whole]
        own = {
            *product(
                *(
                    range(lo + first, hi + first)
                    for (lo, hi), (first, _) in zip(part.box[:2], tile.box[:2], strict=True)
                )
            )
        }
        assert len({*places[p]}) == len(places[p]) == len(own & finer.get(tile.level, set()))
    assert any(places.values())
