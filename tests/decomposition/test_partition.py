"""Blocks cut into parts for ranks: every node once, even shares, little exchange, the same on every rank; its plan."""

import json
import os
import subprocess
import sys
import time
from itertools import product
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT

from hiresx import cli
from hiresx.case import load
from hiresx.decomposition import Decomposition, Part, decompose, split
from hiresx.decomposition.contacts import Contacts, Neighbourhood, boxes
from hiresx.decomposition.halo_bytes import halo_bytes
from hiresx.decomposition.partition import best_partition, partition
from hiresx.decomposition.partition_refinement import Refinement
from hiresx.decomposition.rank_cost import CONTACT, EXCHANGE, IMBALANCE, capacity, costs, excess, work
from hiresx.decomposition.sections import CLOSED, _exchange_cost, _inner
from hiresx.device.fields import Layout
from hiresx.equations import GAS
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.estimate import estimate_ranks
from hiresx.grid import Block, Connection, build
from hiresx.grid.blocks import FACES, MINIMUM_NODES, face_range, whole_box
from hiresx.verify.turned_blocks import random_parts, turn_blocks


def joined(sizes, connections=()) -> Decomposition:
    """Blocks of `sizes` without a shape, and what connects them."""
    blocks = tuple(Block(f"b{n}", *(np.zeros(size[::-1]),) * 3) for n, size in enumerate(sizes))
    parts = tuple(Part(n, whole_box(size)) for n, size in enumerate(sizes))
    return Decomposition(blocks, tuple(connections), (), parts)


def lattice(*lengths, periodic=()) -> Decomposition:
    """Blocks side by side in three directions; `lengths`: per direction the nodes of the blocks along it."""
    places = list(product(*(range(len(line)) for line in lengths)))
    number = {place: n for n, place in enumerate(places)}
    sizes = [tuple(line[m] for line, m in zip(lengths, place, strict=True)) for place in places]
    connections = []
    for n, (place, size) in enumerate(zip(places, sizes, strict=True)):
        for d, step in product([d for d in range(3) if size[d] > 1], (-1, 1)):
            beyond = list(place)
            beyond[d] += step
            if d in periodic:
                beyond[d] %= len(lengths[d])
            donor = number.get(tuple(beyond))
            if donor is not None:
                shift = sizes[donor][d] if step < 0 else -size[d]
                face = FACES[2 * d + (step > 0)]
                offset = tuple(shift * (e == d) for e in range(3))
                connections.append(Connection(n, face, face_range(face, size), donor, offset=offset))
    return joined(sizes, connections)


def box(*size, periodic=()) -> Decomposition:
    return lattice(*([n] for n in size), periodic=periodic)


def shares(decomposition, parts, ranks, weights=None) -> np.ndarray:
    """Nodes of each rank over those that are due to it."""
    points = np.bincount([part.rank for part in parts], [part.points for part in parts], ranks)
    due = np.ones(ranks) if weights is None else np.array(weights)
    return points / decomposition.points * due.sum() / due


def exchanged(decomposition, parts) -> int:
    """Face nodes with ghosts from another rank."""
    rank = np.array([part.rank for part in parts])
    found = Neighbourhood(decomposition).contacts(boxes(parts))
    return int(found.nodes[rank[found.to] != rank[found.source]].sum())


def check_cover(decomposition, parts, ranks) -> None:
    covered = [np.zeros(block.x.shape, int) for block in decomposition.blocks]
    for part in parts:
        covered[part.whole][part.slices] += 1
        size = decomposition.blocks[part.whole].size
        assert all(n >= MINIMUM_NODES or m == 1 for n, m in zip(part.size, size, strict=True))
    assert all((nodes == 1).all() for nodes in covered)
    assert {part.rank for part in parts} == set(range(ranks))
    assert list(parts) == sorted(parts, key=lambda part: part.rank)


# --- every node once


@st.composite
def grids(draw):
    dimensions = draw(st.integers(1, 3))
    lines = [draw(st.lists(st.integers(7, 24), min_size=1, max_size=3)) for _ in range(dimensions)]
    periodic = draw(st.sets(st.integers(0, dimensions - 1)))
    return lattice(*lines, *([[1]] * (3 - dimensions)), periodic=periodic)


@settings(max_examples=25, deadline=None)
@given(grid=grids(), data=st.data())
@pytest.mark.slow
def test_every_node_once_and_parts_thick_enough(grid, data):
    most = sum(capacity(block.size, MINIMUM_NODES) for block in grid.blocks)
    ranks = data.draw(st.one_of(st.integers(1, min(most, 9)), st.integers(max(1, min(most, 40) - 3), min(most, 40))))
    weights = data.draw(st.none() | st.lists(st.sampled_from([1.0, 2.5, 10.0]), min_size=ranks, max_size=ranks))
    found = best_partition(grid, ranks, weights)
    check_cover(grid, found.parts, ranks)
    cut = split(grid, found.parts)
    sent = halo_bytes(cut, 72)
    assert sent.sum() == exchanged(grid, found.parts) * cut.stencil.halo * (GAS.variables + len(GAS.gradients)) * 8
    assert (sent == sent.T).all()  # offset blocks: as many ghosts on either side


def test_as_many_ranks_as_parts():
    for grid in (box(22, 15, 8), box(50, 1, 1), lattice([9, 20], [30, 7], [1])):
        most = sum(capacity(block.size, MINIMUM_NODES) for block in grid.blocks)
        for ranks in (most - 1, most):
            check_cover(grid, partition(grid, ranks), ranks)


@pytest.mark.parametrize("ranks", [2, 5, 9])
def test_blocks_turned_any_way(ranks):
    case = load("taylor-green", overrides=["grid.n=[24,24,24]"])
    whole = decompose(case, build(case.grid, case.directory))
    new = turn_blocks(case, whole, 6, np.random.default_rng(ranks))
    turned = decompose(new.case, new.grid)
    for parts in (partition(turned, ranks), random_parts(turned, 4, np.random.default_rng(1))):
        cut = split(turned, parts)
        nodes = np.zeros((len(parts), len(parts)), int)
        for c in cut.connections:
            nodes[c.block, c.donor] += prod(hi - lo for lo, hi in c.range)
        found = Neighbourhood(turned).contacts(boxes(parts))
        seen = np.zeros_like(nodes)
        np.add.at(seen, (found.to, found.source), found.nodes)
        assert (seen == nodes).all() and (found.nodes > 0).all()


def test_boxes_that_meet_along_an_edge_do_not_touch():
    """Four quarters of a box: each touches two others, over as many nodes as the cut has."""
    quarters = [Part(0, (i, j, (0, 9))) for i in ((0, 20), (20, 40)) for j in ((0, 10), (10, 24))]
    found = Neighbourhood(box(40, 24, 9)).contacts(boxes(quarters))
    pairs = dict(zip(zip(found.to.tolist(), found.source.tolist(), strict=True), found.nodes.tolist(), strict=True))
    across_i, across_j = {(0, 2): 10 * 9, (1, 3): 14 * 9}, {(0, 1): 20 * 9, (2, 3): 20 * 9}
    one_way = across_i | across_j
    assert pairs == one_way | {(b, a): nodes for (a, b), nodes in one_way.items()}


def test_one_rank_has_the_blocks_whole():
    grid = lattice([9, 20], [30], [1])
    assert partition(grid, 1) == partition(grid, 1, [3.0]) == grid.parts


# --- even shares


@pytest.mark.parametrize(
    ("grid", "ranks"),
    [
        (box(64, 64, 64), 7),
        (box(64, 64, 64), 11),
        (box(100, 50, 30), 13),
        (box(200, 150, 1), 17),
        (box(300, 1, 1), 9),
        (box(97, 65, 1), 6),
        (box(200, 100, 100), 48),
        (lattice([40] * 3, [40], [40]), 4),
        (lattice([30, 50], [20, 70], [24]), 5),
        (lattice([17] * 5, [23] * 5, [1]), 7),
        (lattice([16] * 4, [16] * 4, [16] * 4), 7),
        (lattice([100] * 5, [50] * 4, [50]), 100),
    ],
    ids=lambda value: str(getattr(value, "points", value)),
)
def test_even(grid, ranks):
    assert shares(grid, partition(grid, ranks), ranks).max() <= 1.05


@pytest.mark.parametrize("grid", [box(96, 60, 60), lattice([40, 33, 26], [30, 25], [28])], ids=["one", "six"])
@pytest.mark.parametrize("weights", [(1, 3), (3, 1), (1, 1, 4), (1, 4, 1, 2, 2), (0.1, 0.1, 0.1)])
def test_by_speed(grid, weights):
    found = shares(grid, partition(grid, len(weights), weights), len(weights), weights)
    assert found.max() <= 1.05 and found.min() > 0.8


# --- little exchange


def sizes_of(parts) -> list:
    return sorted({part.size for part in parts})


@pytest.mark.parametrize(
    ("grid", "ranks", "sizes"),
    [
        (box(64, 64, 64), 2, [(64, 64, 32)]),  # the lines along i stay long
        (box(68, 64, 64), 2, [(68, 64, 32)]),  # although less would be exchanged if they were cut
        (box(64, 64, 64), 4, [(64, 32, 32)]),
        (box(64, 64, 64), 8, [(32, 32, 32)]),
        (box(64, 64, 64), 64, [(16, 16, 16)]),
        (box(128, 32, 32), 4, [(32, 32, 32)]),
        (box(32, 128, 32), 4, [(32, 32, 32)]),
        (box(300, 300, 1), 9, [(100, 100, 1)]),
        (box(90, 60, 1), 6, [(30, 30, 1)]),
        (box(80, 80, 1), 2, [(80, 40, 1)]),
        (box(80, 80, 1, periodic=[1]), 2, [(40, 80, 1)]),  # a cut across j would part the seam too
        (box(140, 1, 1), 5, [(28, 1, 1)]),
    ],
    ids=lambda value: "-".join(map(str, value.blocks[0].size)) if isinstance(value, Decomposition) else str(value),
)
def test_shape_of_parts(grid, ranks, sizes):
    assert sizes_of(partition(grid, ranks)) == sizes


def test_what_a_rank_pays():
    """At its own speed for its nodes, its lines, its parts and what it has too much; for exchange at no speed."""
    sizes = [(20, 9, 8), (30, 9, 8), (20, 7, 8), (30, 7, 8)]
    grid = lattice([20, 30], [9, 7], [8])
    held = boxes(grid.parts)
    assert sorted(block.size for block in grid.blocks) == sorted(sizes)
    rank, speed = np.array([0, 1, 1, 2]), np.array([0.5, 1.0, 1.5])
    found = costs(held, Neighbourhood(grid).contacts(held), rank, speed)
    ideal = grid.points / 3
    for r in range(3):
        own = [grid.blocks[n].size for n in np.flatnonzero(rank == r)]
        paid = sum(map(work, own)) + excess(sum(map(prod, own)), ideal * speed[r])
        sent = [c for c in grid.connections if rank[c.block] == r != rank[c.donor]]
        exchange = sum(prod(hi - lo for lo, hi in c.range) + CONTACT for c in sent)
        assert found[r] == pytest.approx(paid / speed[r] + EXCHANGE * exchange, rel=1e-12)


def test_short_lines_cost_more():
    """Most along i, where a vector runs along the line; a direction with one node has no lines."""
    along = [work(size) for size in ((64, 8, 8), (8, 64, 8), (8, 8, 64))]
    assert along[0] < along[1] == along[2]
    assert work((64, 64, 64)) < 8 * work((32, 32, 32)) and work((64, 64, 1)) < work((32, 128, 1))
    assert work((64, 1, 1)) - work((63, 1, 1)) == 1


def cheapest(size, sides, ranks, ideal) -> float:
    """Cost of the dearest rank, over all ways to cut a box in two again and again, anywhere."""
    if ranks == 1:
        return work(size) + excess(prod(size), ideal) + EXCHANGE * _exchange_cost(size, sides)
    best = np.inf
    for d, first in product(range(3), range(1, ranks)):
        for at in range(MINIMUM_NODES, size[d] - MINIMUM_NODES + 1):
            if abs(at / size[d] - first / ranks) > 0.1:
                continue
            ends = [tuple(m if e == d else n for e, n in enumerate(size)) for m in (at, size[d] - at)]
            low = cheapest(ends[0], _inner(sides, d, 0, 2), first, ideal)
            if low < best:
                best = min(best, max(low, cheapest(ends[1], _inner(sides, d, 1, 2), ranks - first, ideal)))
    return best


@pytest.mark.parametrize(
    ("size", "ranks"),
    [((30, 22, 1), 3), ((40, 31, 1), 4), ((30, 30, 1), 4), ((16, 15, 22), 2), ((16, 15, 22), 3), ((45, 1, 1), 4),
     ((24, 36, 1), 5)],
)  # fmt: skip
def test_as_good_as_every_way_to_cut_a_box(size, ranks):
    found = best_partition(box(*size), ranks).costs.max()
    assert found <= 1.04 * cheapest(size, CLOSED, ranks, prod(size) / ranks)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    "grid",
    [
        lattice([20, 20, 20], [20, 20], [13]),
        lattice([10, 20, 10], [15, 15], [1]),
        lattice([9, 11, 10, 10], [10, 10], [1]),
    ],
    ids=["equal", "unequal", "small"],
)
def test_as_good_as_every_way_to_spread_whole_blocks(grid, ranks):
    whole = boxes(grid.parts)
    contacts = Neighbourhood(grid).contacts(whole)
    ways = product(range(ranks), repeat=len(grid.blocks))
    best = min(costs(whole, contacts, np.array(way), np.ones(ranks)).max() for way in ways if len(set(way)) == ranks)
    assert best_partition(grid, ranks).costs.max() <= 1.06 * best


def test_neighbours_come_together():
    grid = lattice([12] * 6, [12] * 6, [1])
    parts = partition(grid, 4)
    assert len(parts) == 36 and shares(grid, parts, 4).max() == 1.0
    # Quarters of the square; dealt out one after the other, three times as much would pass.
    assert exchanged(grid, parts) == 4 * 36 * 2


def test_blocks_that_suit_the_ranks_stay_whole():
    grid = lattice([30, 30, 30], [30, 30], [1])
    assert len(partition(grid, 6)) == len(partition(grid, 3)) == 6
    # 12 ranks: two for every block, though 12 are halved into 6 and 3.
    assert len(partition(grid, 12)) == 12


def test_wake_of_a_c_grid_is_near():
    """Behind the body of a C-grid a face goes on in itself: the parts on both sides of the wake exchange with each
    other, and those that do are counted."""
    case = load("naca0012", "quick")
    whole = decompose(case, build(case.grid, case.directory))
    parts = partition(whole, 6)
    check_cover(whole, parts, 6)
    assert shares(whole, parts, 6).max() <= 1.05
    assert (halo_bytes(split(whole, parts), 72) > 0).sum() > 2 * 5


# --- the same everywhere, in time


@pytest.mark.slow
def test_the_same_in_another_process():
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/decomposition']\n"
        "from test_partition import box, lattice, partition\n"
        "print(partition(lattice([17, 30, 9], [23] * 5, [12]), 7, [1, 2, 1, 1, 3, 1, 1]))\n"
        "print(partition(box(60, 50, 40), 13))"
    )
    root = str(ROOT)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1 and "Part(" in outputs.pop()


@pytest.mark.slow
def test_a_thousand_blocks_on_256_ranks():
    chance = np.random.default_rng(1)
    grid = lattice(*(chance.integers(8, 60, 10).tolist() for _ in range(3)))
    began = time.process_time()
    parts = partition(grid, 256)
    assert time.process_time() - began < 30  # 3 s on a core of 2024
    assert shares(grid, parts, 256).max() <= 1.06


@pytest.mark.slow
def test_one_block_on_many_ranks():
    began = time.process_time()
    partition(box(256, 200, 180), 64)
    partition(box(256, 200, 180), 360)
    assert time.process_time() - began < 10  # 0.1 s and 0.5 s


# --- faults


@pytest.mark.parametrize(
    ("grid", "ranks", "weights", "expected"),
    [
        (box(30, 16, 1), 9, None, "9 ranks are too many: the grid can be cut into 8 parts. Each has 7 nodes or more in "
         "every direction, so block 'b0' of 30 x 16 x 1 nodes makes 4 x 2"),
        (lattice([9] * 5, [20], [1]), 11, None, "into 10 parts"),
        (box(30, 1, 1), 0, None, "0 ranks"),
        (box(30, 1, 1), 2, [1.0], "not a positive number for each of 2 ranks"),
        (box(30, 1, 1), 2, [1.0, 0.0], "weights 1, 0"),
        (box(30, 1, 1), 2, [1.0, np.nan], "not a positive number"),
    ],
)  # fmt: skip
def test_what_cannot_be(grid, ranks, weights, expected):
    with pytest.raises(HiresxError) as fault:
        partition(grid, ranks, weights)
    assert expected in str(fault.value)


def test_bytes_of_a_stage():
    grid = lattice([10, 10], [12], [1])
    cut = split(grid, partition(grid, 2))
    fp32, fp64 = Layout(STORAGE["fp32"]), Layout(STORAGE["fp64"], needed={"work": 16})
    assert halo_bytes(cut, fp32.exchanged_bytes(viscous=False)).tolist() == [[0, 12 * 3 * 5 * 4], [12 * 3 * 5 * 4, 0]]
    assert halo_bytes(cut, fp64.exchanged_bytes(viscous=True)).sum() == 2 * 12 * 3 * 9 * 8
    assert halo_bytes(grid, 72).tolist() == [[0]]


# --- the plan


def test_check_prints_the_plan(capsys):
    assert cli.execute(["check", "taylor-green", "--set", "grid.n=[40,30,20]", "--ranks", "4", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["ranks"]
    rows = plan["per_rank"]
    assert [row["rank"] for row in rows] == [0, 1, 2, 3] and sum(row["points"] for row in rows) == 40 * 30 * 20
    assert plan["method"] == "grid" and plan["imbalance"] <= IMBALANCE + 0.01
    assert plan["imbalance"] == max(row["points"] for row in rows) / (10 * 30 * 20) - 1
    matrix = np.array(plan["bytes"])
    assert matrix.sum() == plan["bytes_per_step"] and matrix.sum(axis=1).tolist() == [r["bytes_per_step"] for r in rows]
    assert rows[0]["neighbours"] == np.flatnonzero(matrix[0]).tolist()
    assert sum(row["memory_bytes"] for row in rows) > 40 * 30 * 20 * 37 * 8

    assert cli.execute(["check", "planar-jet", "--preset", "quick", "--weights", "1,1,4"]) == 0
    out = capsys.readouterr().out
    assert "3 ranks" in out and "by graph growing" in out and "MB/step, from row to column" in out
    assert cli.execute(["check", "sod", "--ranks", "99"]) == 2 and "99 ranks are too many" in capsys.readouterr().err
    assert cli.execute(["check", "sod", "--weights", "1,fast"]) == 2 and "--weights" in capsys.readouterr().err


def test_the_imbalance_is_that_of_the_rank_with_most():
    case = load("taylor-green", overrides=["grid.n=[23,17,16]"])
    whole = decompose(case, build(case.grid, case.directory))
    plan = estimate_ranks(case, whole, 3, [1.0, 2.0, 1.5])
    due = [whole.points * weight / 4.5 for weight in (1.0, 2.0, 1.5)]
    ratios = [row["points"] / share for row, share in zip(plan["per_rank"], due, strict=True)]
    assert plan["imbalance"] == pytest.approx(max(ratios) - 1) and max(ratios) > min(ratios)


def test_alone_the_plan_is_that_of_the_case(capsys):
    assert cli.execute(["check", "planar-jet", "--preset", "quick", "--ranks", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ranks"]["per_rank"][0]["memory_bytes"] == report["plan"]["memory_bytes"]


@pytest.mark.parametrize("seed", range(4))
def test_what_a_refinement_knows_is_what_its_ranks_say(seed):
    """Costs, and what is drawn from every rank, after moves and exchanges as if the ranks had been given."""
    rng, n, m = np.random.default_rng(seed), 24, 60
    sizes = SimpleNamespace(sizes=rng.integers(4, 20, (n, 3)))
    touching = Contacts(rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(0, 6, m), rng.integers(10, 400, m))
    speed = [0.5, 1.0, 1.0, 1.5]
    first = rng.integers(0, 4, n)
    refined = Refinement(sizes, touching, first, speed)
    dearest = max(refined._cost)
    rank = refined.run()
    assert (rank != first).any() and max(refined._cost) <= dearest
    again = Refinement(sizes, touching, rank, speed)
    assert refined._held == again._held and refined._nodes == again._nodes
    for name in ("_cost", "_load", "_remote"):
        assert getattr(refined, name) == pytest.approx(getattr(again, name)), name
    assert all(a == pytest.approx(b) for a, b in zip(refined._drawn, again._drawn, strict=True))


def test_a_move_that_gains_nothing_is_not_made():
    boxes, none = SimpleNamespace(sizes=np.full((3, 3), 8)), np.zeros(0, int)
    refined = Refinement(boxes, Contacts(none, none, none, none), np.array([0, 0, 1]), [1.0, 1.0])
    assert refined.run().tolist() == [0, 0, 1]


def test_blocks_in_hundreds_are_given_to_ranks():
    """So many that fewer than a dozen of the ways found are refined."""
    grid = lattice([8] * 20, [8] * 20, [1])
    check_cover(grid, partition(grid, 3), 3)
