"""Placements: the paper's own study, the optimum against brute force, any numbers of ranks and GPUs, busy GPUs.

HIRESX_BRUTE_INSTANCES sets the number of random instances compared with brute force (default 60; 500 before a release),
HIRESX_SHORTEST_INSTANCES that of sparse matrices on each of six machines (default 4; 200 before a release).
"""

import itertools
import os
from dataclasses import replace

import numpy as np
import pytest
from topology_recordings import BOX, MESH, RECORDINGS, RING, UNEVEN, hwloc_xml, level_matrix, smi

from hiresx.errors import HiresxError
from hiresx.topology import place_search
from hiresx.topology.cost import Exchange, Model, traffic
from hiresx.topology.groups import tree
from hiresx.topology.load import load, parse
from hiresx.topology.machine import MeasuredSpeeds
from hiresx.topology.parse_smi import parse_smi
from hiresx.topology.place import free_gpus, place, plan, to_json

INSTANCES = int(os.environ.get("HIRESX_BRUTE_INSTANCES", "60"))
SPARSE = int(os.environ.get("HIRESX_SHORTEST_INSTANCES", "4"))


def chain(ranks: int, weight: float = 1e6) -> np.ndarray:
    matrix = np.zeros((ranks, ranks))
    for n in range(ranks - 1):
        matrix[n, n + 1] = matrix[n + 1, n] = weight
    return matrix


# Two switches of five GPUs on one socket, as the paper's server (section 5.3).
TEN = parse_smi(smi(level_matrix(10, ("PIX", [range(5), range(5, 10)]), ("PHB", [range(10)])), ["0-11"] * 10, [0] * 10))
# Blocks 0 1 over 2 3: eight times as much up and down as left and right (Fig. 16a).
STUDY = np.zeros((4, 4))
for _a, _b, _w in ((0, 2, 8), (1, 3, 8), (0, 1, 1), (2, 3, 1)):
    STUDY[_a, _b] = STUDY[_b, _a] = _w * 1e6


def test_the_papers_study():
    demand = traffic(STUDY)
    made = plan(TEN, demand, gpus=[0, 1, 5, 6])
    for name in ("paper", "optimal"):
        side = [gpu < 5 for gpu in made.strategies[name].placement]
        assert side[0] == side[2] and side[1] == side[3] and side[0] != side[1], name
    whole = plan(TEN, demand).strategies["pair-sum"].placement
    assert len({gpu < 5 for gpu in whole}) == 1
    cases = {"I": (0, 1, 2, 3), "II": (5, 6, 7, 8), "III": (0, 1, 5, 6), "IV": (0, 5, 1, 6), "V": (0, 5, 6, 1)}
    model = Model(TEN)
    found = {name: model.estimate(demand, placement) for name, placement in cases.items()}
    seconds = {name: estimate.seconds for name, estimate in found.items()}
    assert max(seconds["I"], seconds["II"], seconds["IV"]) < seconds["III"] < seconds["V"]
    cost = {name: estimate.cost for name, estimate in found.items()}
    assert cost["I"] == pytest.approx(cost["II"]) and cost["II"] < cost["IV"] < cost["III"] < cost["V"]
    assert found["V"].busiest.startswith("uplink of PIX")
    explicit = plan(TEN, demand, gpu_map=cases["V"])
    assert explicit.best == "gpu-map" and explicit.strategies["gpu-map"].estimate.seconds == seconds["V"]
    assert explicit.strategies["gpu-map"].took == 0 < explicit.strategies["optimal"].took


def machines():
    found = [
        TEN,
        parse_smi(smi(UNEVEN, ["0-3"] * 4 + ["4-7"] * 3)),
        parse_smi(smi(RING)),
        parse(hwloc_xml(), "example"),
    ]
    if RECORDINGS.is_dir():
        found += [load(path) for path in sorted(RECORDINGS.rglob("*.txt")) if path.parent.name == "nvidia-smi"]
        found += [load(path) for path in sorted(RECORDINGS.rglob("*.xml"))]
    return [machine for machine in found if len(machine.gpus) > 1]


def brute_force(model: Model, demand, gpus) -> float:
    every = np.array(list(itertools.permutations(gpus, demand.ranks)))
    pairs = every[:, :, None], every[:, None, :]
    cost = (demand.bytes * model.per_byte[pairs] + (demand.bytes > 0) * model.latency[pairs]).sum(axis=(1, 2))
    cost += (demand.off_host * model.nic_per_byte[every] + (demand.off_host > 0) * model.nic_latency[every]).sum(axis=1)
    return cost.min()


@pytest.mark.slow
def test_pair_sum_is_brute_force():
    draw = np.random.default_rng(7)
    every = machines()
    models = [Model(machine) for machine in every]
    for _ in range(INSTANCES):
        which = int(draw.integers(len(every)))
        count = len(every[which].gpus)
        gpus = sorted(int(g) for g in draw.permutation(count)[: min(count, int(draw.integers(2, 9)))])
        ranks = int(draw.integers(1, len(gpus) + 1))
        matrix = (
            draw.random((ranks, ranks)) * 10.0 ** draw.integers(3, 8) * (draw.random((ranks, ranks)) < draw.random())
        )
        demand = traffic(matrix, draw.random(ranks) * 1e6 * (draw.random() < 0.4))
        made = plan(every[which], demand, gpus=gpus)
        best, paper = made.strategies["pair-sum"], made.strategies["paper"]
        least = brute_force(models[which], demand, gpus)
        assert best.least_sum and best.estimate.cost == pytest.approx(least, rel=1e-9)
        assert best.estimate.cost <= paper.estimate.cost * (1 + 1e-12)


EIGHT = {
    "mesh of NVLinks": parse_smi(smi(MESH, ["0-9"] * 4 + ["10-19"] * 4)),
    "four switches in two": parse_smi(smi(BOX)),
    "uneven switches": parse_smi(smi(UNEVEN, ["0-3"] * 4 + ["4-7"] * 3)),
    "two switches of five": replace(TEN, gpus=TEN.gpus),
    "host bridges": parse_smi(
        smi(level_matrix(8, ("PHB", [(n, n + 1) for n in range(0, 8, 2)]), ("NODE", [range(4), range(4, 8)])))
    ),
    "no peer access": replace(
        parse_smi(smi(BOX)), peer=tuple(tuple("X" if a == b else "CNS" for b in range(8)) for a in range(8))
    ),
}


@pytest.mark.parametrize("name", EIGHT)
def test_optimal_is_the_shortest_exchange(name):
    """Against all placements, on sparse matrices: there the least sum over pairs is far from it."""
    machine = EIGHT[name]
    model = Model(machine)
    draw = np.random.default_rng(len(name))
    count = len(machine.gpus)
    for instance in range(SPARSE):
        ranks = int(draw.integers(4, min(count, 8) + 1))
        matrix = draw.random((ranks, ranks)) * 1e6 * (draw.random((ranks, ranks)) < draw.choice([0.15, 0.3, 0.5]))
        demand = traffic(matrix, draw.random(ranks) * 1e6 * (draw.random() < 0.3))
        gpus = sorted(int(g) for g in draw.permutation(count)[: max(ranks, min(count, 8))])
        every = np.array(list(itertools.permutations(gpus, ranks)))
        exchange = Exchange(model, demand)
        shortest = min(exchange.times(every[n : n + 5000]).seconds.min() for n in range(0, len(every), 5000))
        made = plan(machine, demand, gpus=gpus)
        best = made.strategies["optimal"]
        assert best.shortest and best.estimate.seconds == pytest.approx(shortest, rel=1e-9)
        assert made.bound == pytest.approx(shortest, rel=1e-9) and made.strategies[made.best].estimate == best.estimate
        index = {gpu: n for n, gpu in enumerate(gpus)}
        low = place_search.exchange_bound(model, demand, gpus, 1)
        assert low <= shortest * (1 + 1e-9) and index.keys() >= set(best.placement)
        if instance == 0:  # swaps alone, as for more ranks than can be searched, come to within 1 %
            starts = [list(entry.placement) for entry in made.strategies.values() if entry is not best]
            seconds, cost = place_search.ExchangeTime(model, demand), place_search.PairSum(model, demand)
            search = place_search.Search(seconds, cost, gpus, place_search.GpuSlots(model, demand, gpus))
            known = np.array([[index[gpu] for gpu in start] for start in starts])
            assert search.values(search.improve(known, place_search.MOST_WORK)).min() <= shortest * 1.01


@pytest.mark.parametrize("gives", [True, False])
@pytest.mark.parametrize("name", list(EIGHT))
def test_the_bound_of_one_rank_with_all_others(name, gives):
    """From the routes: what the link that every way passes takes for the sum, the largest message on the best way of
    all, and a latency each; where all links are alike it is that of the best placement."""
    model, amounts, gpus = Model(EIGHT[name]), np.array([2e6, 2.5e6, 3e6]), range(5)
    matrix = np.zeros((4, 4))
    matrix[(0, slice(1, None)) if gives else (slice(1, None), 0)] = amounts
    times, pairs = [], []
    for a in gpus:
        ways = [(a, b) if gives else (b, a) for b in gpus if b != a]
        held = []
        for up, down, overhead, _ in (model.routes[way] for way in ways):
            held.append({link: overhead / (model.links[link].bandwidth * 1e9) for link in [*up, *down]})
        passed = set.intersection(*map(set, held))
        quickest = min(1 / (model.bandwidth[way] * 1e9) for way in ways)
        times.append(max([amounts.sum() * min(one[link] for one in held) for link in passed] + [3e6 * quickest]))
        pairs.append(min(model.latency[way] for way in ways))
    wanted = min(times) + (len(amounts) if gives else 1) * min(pairs)
    demand = traffic(matrix)
    bound = place_search.exchange_bound(model, demand, list(gpus), 1)
    assert bound == pytest.approx(wanted, rel=1e-12)
    if name == "two switches of five":
        every = np.array(list(itertools.permutations(gpus, 4)))
        assert bound == pytest.approx(Exchange(model, demand).times(every).seconds.min(), rel=1e-12)


def test_a_sum_over_pairs_is_not_the_exchange():
    """Two ranks that each send to one far away: the sum is indifferent to whether both use one uplink."""
    machine = EIGHT["four switches in two"]
    matrix = np.zeros((8, 8))
    for a, b, weight in ((0, 2, 9), (1, 3, 9), (2, 4, 3), (3, 5, 3), (4, 6, 9), (5, 7, 9), (6, 0, 3), (7, 1, 3)):
        matrix[a, b] = weight * 1e5
    made = plan(machine, traffic(matrix))
    assert made.strategies["optimal"].shortest and made.best == "optimal"
    assert to_json(made)["strategies"]["pair-sum"]["least_sum"]
    assert to_json(made)["bound_seconds"] == made.strategies["optimal"].estimate.seconds
    for entry in made.strategies.values():
        assert entry.estimate.seconds >= made.bound * (1 - 1e-9)


def test_many_placements_at_once_are_costed_as_one():
    draw = np.random.default_rng(4)
    for machine in EIGHT.values():
        count, ranks = len(machine.gpus), 11
        model = Model(machine)
        demand = traffic(draw.random((ranks, ranks)) * (draw.random((ranks, ranks)) < 0.4), draw.random(ranks))
        places = draw.integers(0, count, (20, ranks))
        times = Exchange(model, demand).times(places)
        for n, place_ in enumerate(places):
            # By the definition: bytes over every link of every route, then the longest link and the latencies.
            loads, waits = {}, np.zeros(ranks)
            for a, b in itertools.product(range(ranks), repeat=2):
                g, h = place_[a], place_[b]
                if demand.bytes[a, b] and g != h:
                    up, down, overhead, staged = model.routes[g, h]
                    for link in up:
                        loads.setdefault(link, [0.0, 0.0, 0.0])[1 if staged else 0] += demand.bytes[a, b] * overhead
                    for link in down:
                        loads.setdefault(link, [0.0, 0.0, 0.0])[2 if staged else 0] += demand.bytes[a, b] * overhead
                    waits[a] += model.latency[g, h]
            for rank in range(ranks):
                for link in (*model._out[place_[rank]], *model._in[place_[rank]]):
                    loads.setdefault(link, [0.0, 0.0, 0.0])[0] += demand.off_host[rank]
                waits[rank] += model.nic_latency[place_[rank]] * (demand.off_host[rank] > 0)
            speeds = {link: model.links[link].bandwidth * 1e9 for link in loads}
            together = max(sum(parts) / speeds[link] for link, parts in loads.items())
            phased = max((p[0] + p[1]) / speeds[link] for link, p in loads.items())
            phased += max(p[2] / speeds[link] for link, p in loads.items())
            slowest = (times.between[n] / (model.bandwidth.ravel() * 1e9)).max()
            expected = max(together, phased, slowest) + waits.max()
            assert times.seconds[n] == pytest.approx(expected, rel=1e-9)
            assert model.estimate(demand, place_).seconds == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("ranks", [8, 16, 48])
def test_a_plan_is_bounded(ranks):
    """Sixteen GPUs that differ: counted, not timed. 400 000 evaluations take a second on a slow core."""
    switches = [range(n, n + 2) for n in range(0, 16, 2)]
    machine = parse_smi(smi(level_matrix(16, ("PIX", switches), ("NODE", [range(8), range(8, 16)]))))
    draw = np.random.default_rng(ranks)
    demand = traffic(draw.random((ranks, ranks)) * 1e6 * (draw.random((ranks, ranks)) < 0.5))
    made = plan(machine, demand)
    best = made.strategies["optimal"]
    assert 0 < best.evaluations < 400_000
    assert all(best.estimate.seconds <= entry.estimate.seconds for entry in made.strategies.values())
    assert made.strategies["pair-sum"].estimate.cost <= made.strategies["paper"].estimate.cost
    assert 0 < made.bound <= best.estimate.seconds
    assert best.shortest == (made.bound == best.estimate.seconds)


def test_a_switch_above_a_switch_has_a_link_of_its_own():
    """PXB is dearer than PIX: what leaves a switch for another one shares the way between them."""
    model = Model(EIGHT["four switches in two"])
    pairs = np.zeros((4, 4))
    pairs[0, 2] = pairs[1, 3] = 1e6
    demand = traffic(pairs)
    near, far = model.estimate(demand, (0, 2, 1, 3)), model.estimate(demand, (0, 1, 2, 3))
    assert "uplink of PIX {0-1} out" in far.loads and far.loads["uplink of PIX {0-1} out"] == 2e6
    assert not any(name.startswith("uplink") for name in near.loads)
    assert far.seconds > 1.9 * near.seconds and far.cost > 1.5 * near.cost
    beyond = model.estimate(demand, (0, 1, 4, 5))
    assert beyond.loads["uplink of PXB {0-3} out"] == 2e6 and beyond.cost > far.cost


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 10, 11, 16, 25, 70])
def test_any_number_of_ranks(ranks):
    made = plan(TEN, traffic(chain(ranks)))
    for name, entry in made.strategies.items():
        used = np.bincount(entry.placement, minlength=10)
        assert len(entry.placement) == ranks and used.max() - used.min() <= 1, name
    for less, by in (("optimal", "seconds"), ("pair-sum", "cost")):
        values = {name: getattr(entry.estimate, by) for name, entry in made.strategies.items()}
        assert values[less] <= min(values.values()) * (1 + 1e-9)
    if ranks == 20:  # neighbours in pairs on one GPU
        assert made.strategies["optimal"].placement[0] == made.strategies["optimal"].placement[1]


def test_the_same_on_every_rank():
    matrix = np.random.default_rng(2).random((10, 10))
    assert len({place(TEN, traffic(matrix)) for _ in range(3)}) == 1
    assert place(TEN, traffic(np.zeros((3, 3)))) == (0, 1, 2)


def test_fewer_ranks_take_the_best_subset():
    machine = parse_smi(smi(level_matrix(5, ("PIX", [(3, 4)]), ("PHB", [range(5)]))))
    assert sorted(place(machine, traffic(chain(2)))) == [3, 4]
    assert sorted(place(machine, traffic(chain(2)), "paper")) == [3, 4]


def test_ranks_with_neighbours_elsewhere_are_near_the_adapter():
    levels = level_matrix(4, ("PIX", [(0, 1), (2, 3)]))
    machine = parse_smi(smi(levels, nics=["mlx5_0"], nic_levels=[["SYS"], ["SYS"], ["PIX"], ["PIX"]]))
    assert place(machine, traffic(chain(2), [1e8, 1e8])) == (2, 3)
    made = plan(machine, traffic(chain(4), [0, 0, 1e7, 1e7]))
    assert sorted(made.strategies["optimal"].placement[2:]) == [2, 3]
    assert made.strategies["optimal"].estimate.busiest.startswith("NIC mlx5_0")


def test_nvlink_counts_and_a_measured_matrix_counts_more():
    machine = parse_smi(smi(RING))
    model = Model(machine)
    assert model.bandwidth[0, 1] == 40 and model.bandwidth[0, 2] == 20 and model.bandwidth[0, 3] == 10 / 1.2
    assert set(place(machine, traffic(chain(2)))) in ({0, 1}, {2, 3})
    flat = [[None if a == b else 50.0 if {a, b} == {0, 3} else 5.0 for b in range(4)] for a in range(4)]
    measured = MeasuredSpeeds(tuple(map(tuple, flat)), ((None,) * 4,) * 4)
    model = Model(replace(machine, measured=measured))
    assert model.bandwidth[0, 3] == 50 and model.bandwidth[0, 1] == 5


def test_switched_nvlink_is_shared_by_all_peers():
    count = 8
    levels = [["X" if a == b else "NV18" for b in range(count)] for a in range(count)]
    machine = parse_smi(smi(levels))
    assert machine.gpus[0].links == 18
    matrix = np.zeros((3, 3))
    matrix[0, 1] = matrix[0, 2] = 1e6
    estimate = Model(machine).estimate(traffic(matrix), (0, 1, 2))
    assert estimate.busiest == "GPU 0 NVLink out" and estimate.busiest_bytes == 2e6
    assert tree(machine).children == ()


def test_without_peer_access_copies_are_staged():
    levels = level_matrix(4, ("PIX", [(0, 1), (2, 3)]), ("PHB", [range(4)]))
    machine = parse_smi(smi(levels))
    staged = replace(machine, peer=tuple(tuple("X" if a == b else "CNS" for b in range(4)) for a in range(4)))
    with_peers, without = Model(machine), Model(staged)
    assert without.bandwidth[0, 1] == with_peers.bandwidth[0, 1] / 2
    assert without.latency[0, 1] > with_peers.latency[0, 1]
    # Across switches the two copies up do not meet on one uplink.
    demand = traffic(chain(2))
    assert without.estimate(demand, (0, 2)).seconds < without.estimate(demand, (0, 1)).seconds
    assert {gpu // 2 for gpu in place(staged, demand)} == {0, 1}


def test_busy_gpus_are_left_out():
    busy = [replace(gpu, utilisation=90 if gpu.index == 0 else 0) for gpu in TEN.gpus]
    busy[1] = replace(busy[1], memory=16 * 2**30, memory_used=8 * 2**30)
    busy[2] = replace(busy[2], mig=True)
    machine = replace(TEN, gpus=tuple(busy))
    chosen, left_out = free_gpus(machine)
    assert chosen == (3, 4, 5, 6, 7, 8, 9) and left_out[0] == "busy: 90 % utilisation" and "50 %" in left_out[1]
    made = plan(machine, traffic(STUDY))
    assert set(made.strategies["optimal"].placement) <= {5, 6, 7, 8, 9} and to_json(made)["left_out"]["0"]
    assert free_gpus(machine, busy_utilisation=95, busy_memory=60)[0] == (0, 1, *chosen)
    assert plan(machine, traffic(STUDY), gpus=[0, 1, 2, 3]).gpus == (0, 1, 2, 3)
    with pytest.raises(HiresxError, match="all 10 GPUs are left out"):
        plan(replace(TEN, gpus=tuple(replace(gpu, utilisation=99) for gpu in TEN.gpus)), traffic(STUDY))


def test_ranks_stay_near_the_cpus_that_the_scheduler_gave():
    machine = replace(parse(hwloc_xml(), "example"), live=True, allowed=frozenset([5, 6]))
    made = plan(machine, traffic(chain(1)))
    assert made.gpus == (2,) and "nearest CPUs" in made.left_out[0]
    assert plan(machine, traffic(chain(2))).gpus == (0, 1, 2)  # there are not enough near
    assert plan(replace(machine, live=False), traffic(chain(1))).gpus == (0, 1, 2)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"gpus": [0, 10]}, "there is no GPU 10"),
        ({"gpus": []}, "no GPU is named"),
        ({"gpu_map": [0, 1]}, "2 GPUs for 4 ranks"),
        ({"gpu_map": [0, 1, 2, -1]}, "there is no GPU -1"),
        ({"strategies": ("best",)}, 'no placement strategy "best"'),
    ],
)
def test_faults_of_a_plan(arguments, expected):
    with pytest.raises(HiresxError, match=expected):
        plan(TEN, traffic(STUDY), **arguments)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[1, 2]], "not square"),
        ([], "not square"),
        ([[0, float("nan")], [1, 0]], "entry 0, 1"),
        ([[0, -1], [1, 0]], "-1.0 is no number of bytes"),
        ([[0, 1], [1]], "no matrix of numbers"),
        (np.zeros((513, 513)), "513 ranks"),
    ],
)
def test_faults_of_a_matrix(matrix, expected):
    with pytest.raises(HiresxError, match=expected):
        plan(TEN, traffic(matrix))


def test_swaps_change_the_cost_as_they_say():
    draw = np.random.default_rng(3)
    amount, price = draw.random((6, 6)), draw.random((6, 6))
    np.fill_diagonal(amount, 0)
    change = place_search.swap_change(amount, price)
    for r, s in itertools.product(range(6), repeat=2):
        order = np.arange(6)
        order[[r, s]] = s, r
        assert change[r, s] == pytest.approx((amount * (price[np.ix_(order, order)] - price)).sum(), abs=1e-12)


def test_swaps_of_ranks_and_free_slots_lead_to_what_they_say():
    """Five ranks with traffic to other hosts on eight GPUs, one of two adapters far from each."""
    levels = level_matrix(8, ("PIX", [(n, n + 1) for n in range(0, 8, 2)]), ("NODE", [range(4), range(4, 8)]))
    machine = parse_smi(smi(levels, nics=["mlx5_0"], nic_levels=[["PIX"]] * 2 + [["NODE"]] * 2 + [["SYS"]] * 4))
    draw = np.random.default_rng(6)
    demand = traffic(draw.random((5, 5)) * 1e6, [1e6, 0, 3e6, 0, 2e6])
    objective = place_search.PairSum(Model(machine), demand)
    slots = draw.permutation(8)
    first, second = np.nonzero(np.tri(8, k=-1))
    expected = []
    for r, s in zip(first, second, strict=True):
        tried = slots.copy()
        tried[[r, s]] = tried[[s, r]]
        expected.append(objective.values(tried[None, :5])[0])
    assert objective.swap_values(slots, first, second)[0] == pytest.approx(np.array(expected), rel=1e-12)
    assert np.ptp(expected) > 1e-4


def test_swaps_end_where_no_further_one_helps():
    """Ten ranks from six placements; the last way of a search may be cut off."""
    draw = np.random.default_rng(8)
    model, demand, gpus = Model(TEN), traffic(draw.random((10, 10)) * 1e6), list(range(10))
    cost, seconds = place_search.PairSum(model, demand), place_search.ExchangeTime(model, demand)
    search = place_search.Search(cost, seconds, gpus, place_search.GpuSlots(model, demand, gpus))
    found = search.improve(np.array([draw.permutation(10) for _ in range(6)]), 20_000_000)
    first, second = np.nonzero(np.tri(10, k=-1))
    row, cut_off = np.arange(len(first)), 0
    for one in found:
        swapped = np.repeat(one[None], len(first), axis=0)
        swapped[row, first], swapped[row, second] = one[second], one[first]
        cut_off += int(search.values(swapped).min() < search.values(one[None])[0] * (1 - 1e-9))
    assert len(found) > 6 and cut_off <= 1


def test_the_least_sum_is_that_of_scipy():
    """Twelve ranks, too many to prove: against the 2-opt of another library, from six starts."""
    optimize = pytest.importorskip("scipy.optimize")
    levels = level_matrix(12, ("PIX", [(n, n + 1) for n in range(0, 12, 2)]), ("NODE", [range(6), range(6, 12)]))
    machine = parse_smi(smi(levels))
    draw = np.random.default_rng(5)
    demand = traffic(draw.random((12, 12)) * 1e6)
    model = Model(machine)
    distance = model.per_byte * (1 - np.eye(12))
    found = [
        optimize.quadratic_assignment(demand.bytes, distance, "2opt", {"rng": np.random.default_rng(n)}).col_ind
        for n in range(6)
    ]
    best = model.costs(demand, np.array(found)).min()
    assert plan(machine, demand).strategies["pair-sum"].estimate.cost <= best * (1 + 1e-9)


def test_links_are_as_fast_as_was_measured():
    """Generation 5 on a recording that does not tell it: the links are not slower than what passed over them."""
    levels = level_matrix(4, ("PIX", [(0, 1), (2, 3)]), ("NODE", [range(4)]))
    device = [[None if a == b else 53.8 if a // 2 == b // 2 else 53.5 for b in range(4)] for a in range(4)]
    measured = MeasuredSpeeds(tuple(map(tuple, device)), ((None,) * 4,) * 4, (55.0,) * 4, (54.0,) * 4)
    machine = replace(parse_smi(smi(levels)), measured=measured)
    model = Model(machine)
    assert model.bandwidth[0, 1] == 53.8 and {link.bandwidth for link in model.links if "GPU" in link.name} == {55.0}
    one = model.estimate(traffic(chain(2)), (0, 2))
    assert one.seconds == pytest.approx(1e6 / 53.5e9 + model.latency[0, 2])
    assert (one.busiest, one.busiest_bytes) == ("GPU 0 to GPU 2", 1e6)  # slower than each of the links on its way
    assert {gpu // 2 for gpu in place(machine, traffic(chain(2)))} in ({0}, {1})  # no uplink that others use
