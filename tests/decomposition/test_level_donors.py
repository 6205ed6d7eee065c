"""The ghosts of tiles as sums over nodes of the level before, against the interpolation of each ghost by itself."""

from itertools import product

import numpy as np
import pytest
from arrangements import saved
from multiblock import Arrangement

from hiresx.case import Case
from hiresx.decomposition import Part, domain, padded_shape
from hiresx.decomposition.level_donors import Cells, coincident_boxes, level_shares
from hiresx.decomposition.levels import stencils
from hiresx.decomposition.patched_donors import linear
from hiresx.decomposition.tile_ghosts import TileGhosts
from hiresx.grid import Block
from hiresx.grid.blocks import whole_box
from hiresx.grid.patched import PATCHED

REGIONS = {
    "inside, and at both ends of the period": [{"level": 2, "i": [0, 3], "j": [9, 14]}],
    "at the ends of a block": [{"level": 1, "i": [16, 23], "j": [16, 23]}],
}


def halves(whole):
    """Every block as two parts, if it has enough nodes."""
    for n, block in enumerate(whole.blocks):
        (_, end), *rest = whole_box(block.size)
        middle = end // 2 if end > 15 else end
        yield from (Part(n, ((lo, hi), *rest)) for lo, hi in ((0, middle), (middle, end)) if lo < hi)


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
    sums = interpolated(ground, ghosts, values)
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


def interpolated(ground, ghosts, values):
    """For each box of ghosts the sixth-order and the linear values at its nodes, the sums of all contributions.
    `values`: of each part the numbers at its nodes and ghosts."""
    shares, halo = level_shares(ground.whole, ground.cut, ghosts), ground.halo
    sums = [np.zeros((2, *size[::-1])) for size in ghosts.high - ghosts.low]
    for n, (p, box) in enumerate(zip(shares.part, shares.ghosts, strict=True)):
        of_part, size = ground.cut.blocks[p], shares.high[n] - shares.low[n]
        own = values[p].reshape(padded_shape(of_part, halo))
        nodes, weights = [], []
        for d, width in enumerate(shares.widths[n]):
            line, column = shares.lines[shares.line[n, d]], shares.columns[n, d] + np.arange(size[d])
            nodes.append((line.start[column][:, None] + np.arange(width)).ravel())
            weights.append(line.weights[:, :width, column])
        at = np.einsum("ed,dkji->ekji", shares.turn[n], np.stack(np.meshgrid(*nodes[::-1], indexing="ij")[::-1]))
        at += shares.corner[n][:, None, None, None]
        i, j, k = (m + halo * (n > 1) for m, n in zip(at, of_part.size, strict=True))
        flow = own[k, j, i].reshape(
            [m for a, b in zip(size[::-1], shares.widths[n][::-1], strict=True) for m in (a, b)]
        )
        some = (slice(lo, lo + m) for lo, m in zip(shares.low[n] - ghosts.low[box], size, strict=True))
        sums[box][(..., *reversed([*some]))] += np.einsum("zcybxa,wax,wby,wcz->wzyx", flow, *weights)
    return sums


def ghosts_of(ground):
    patches = [n for n, patch in enumerate(ground.whole.patches) if patch.condition.type == PATCHED]
    return TileGhosts.of(ground.whole, ground.cut, patches)


@pytest.mark.parametrize("seed", [1, 5, 6, 11])
@pytest.mark.parametrize("cut", [None, lambda whole: [*halves(whole)]], ids=["whole", "halves"])
def test_ghosts_near_connections_of_turned_blocks_use_the_nodes_behind_them(tmp_path, seed, cut):
    """Every stencil is centred, as in the block before it was cut into blocks whose indexes run in other directions."""
    size = 61
    x, y = np.meshgrid(np.linspace(0.0, 1.0, size), np.linspace(0.0, 1.0, size))
    of_grid = Arrangement(Block("whole", x[None], y[None], 0.0 * x[None]), 3, seed, shared=True)
    tables = {"blocks": [block.name for block in of_grid.blocks], "connection": of_grid.tables}
    case = Case.from_dict(
        {
            "grid": {"file": "none"},
            "boundary": [{"faces": "all", "type": "slip-wall"}],
            "refine": {"tile": 8, "region": [{"x": [0.3, 0.7], "y": [0.3, 0.7]}]},
            "initial": {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": 1.0}},
            "time": {"steps": 1, "cfl": 0.5},
        }
    )
    ground = domain(case, grid=saved(tmp_path, of_grid.blocks, tables), parts=cut)
    halo, ghosts, values = ground.halo, ghosts_of(ground), {}

    def flow(x, y):
        return np.sin(9.0 * x) + np.cos(8.0 * y) * np.exp(x)

    for p, block in enumerate(ground.cut.blocks):
        padded = np.full(padded_shape(block, halo), np.nan)
        ni, nj, _ = block.size
        padded[0, halo : halo + nj, halo : halo + ni] = flow(block.x, block.y)[0]
        values[p] = padded.ravel()
    checked = 0
    for n, found in enumerate(interpolated(ground, ghosts, values)):
        fine = np.meshgrid(*map(np.arange, ghosts.low[n], ghosts.high[n]), indexing="ij")
        turn, held = of_grid.turns[ghosts.base[n]], np.array(of_grid.held[ghosts.base[n]])
        first = (turn @ np.stack([held[:, 0], held[:, 1] - 1], axis=1)).min(axis=1)
        place = np.tensordot(turn.T, np.stack(fine) / 2 + first[:, None, None, None], axes=1)
        for at in np.ndindex(fine[0].shape):
            weights, nodes = [], []
            for xi in place[(slice(2), *at)]:
                (start,), of_node = stencils(np.array([xi]), 0, size)
                weights.append(of_node[0])
                nodes.append((start + np.arange(6)) / (size - 1))
            wanted = weights[1] @ flow(nodes[0], nodes[1][:, None]) @ weights[0]
            assert found[(0, *reversed(at))] == pytest.approx(wanted, abs=1e-13)
            checked += 1
    assert checked > 200


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
