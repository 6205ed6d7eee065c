"""The placement with the shortest exchange: the fewest `seconds` of `hiresx.topology.cost`.

Ranks are placed one after another, breadth first with all partial placements in arrays. What is placed takes no less
when more is added, so a partial placement that takes longer than the best known is dropped. Up to EXHAUSTIVE ranks
nothing is given up unless there are too many GPUs that all differ; beyond, swaps from the placements already known, of
which one is the least pair sum, look for the best within a fixed number of evaluations.
"""

from dataclasses import dataclass

import numpy as np

from hiresx.topology.cost import GIGA, Exchange, Model, Traffic
from hiresx.topology.rooms import Rooms

EXHAUSTIVE = 8
# Operations (`Exchange.work`) for swaps, three times as many for the search of few ranks, each some tenths of a second;
# and at a time, for memory.
MOST_WORK = 120_000_000
AT_A_TIME = 2_000_000
# What a call of NumPy costs besides, in the same measure.
CALL = 20_000
KICKED = 3
# Placements as quick as the quickest are the same within this; of them the least cost counts, then the rank order.
SAME = 1e-9
# Weight of all links' times (their norm of exponent 2^3, which the longest lead) beside the longest alone, which most
# swaps leave as it is.
SOFT, POWER = 0.05, 3


@dataclass(frozen=True)
class Optimum:
    """`placement`: GPU of each rank. `bound`: seconds that no placement goes below; `shortest`: it is proven to be the
    best. `evaluations`: placements and parts of such that were costed."""

    placement: list[int]
    shortest: bool
    bound: float
    evaluations: int


class _Costing:
    """Seconds of placements given as indexes into the usable GPUs, with the work counted."""

    def __init__(self, model: Model, demand: Traffic, gpus: list[int]):
        self.model, self.demand, self.gpus = model, demand, np.array(gpus)
        self.whole = Exchange(model, demand)
        self.evaluations = self.work = 0

    def of(self, places: np.ndarray, exchange: Exchange | None = None, soft: bool = False) -> np.ndarray:
        """Seconds (n,) of `places` (n, ranks); of part of the ranks by their own `exchange`."""
        exchange = exchange or self.whole
        self.evaluations += len(places)
        self.work += CALL + len(places) * exchange.work
        step = max(1, AT_A_TIME // exchange.work)
        found = np.empty(len(places))
        for n in range(0, len(places), step):
            times = exchange.times(self.gpus[places[n : n + step]])
            found[n : n + step] = times.seconds
            if soft:
                most = times.links.max(axis=1, initial=0.0)
                scaled = times.links / np.where(most > 0, most, 1.0)[:, None]
                for _ in range(POWER):
                    np.square(scaled, out=scaled)
                found[n : n + step] += SOFT * most * scaled.sum(axis=1) ** (0.5**POWER)
        return found

    def cost(self, place: np.ndarray) -> float:
        return self.model.cost(self.demand, self.gpus[place])


def place_optimal(model: Model, demand: Traffic, gpus: list[int], starts: list[list[int]]) -> Optimum:
    """The best placement found. `starts`: placements not to be worse than."""
    costing = _Costing(model, demand, gpus)
    rooms = Rooms(model, demand, gpus)
    index = {gpu: n for n, gpu in enumerate(gpus)}
    known = np.unique([[index[gpu] for gpu in start] for start in starts], axis=0)
    bound = _bound(model, demand, gpus, rooms.most)
    seconds = costing.of(known)
    shortest = bool(seconds.min() <= bound * (1 + SAME))
    if not shortest:
        few = demand.ranks <= EXHAUSTIVE
        improved = _improved(costing, rooms, known, MOST_WORK // 50 if few else MOST_WORK)
        known = np.concatenate([known, improved])
        limit = costing.of(known).min()
        every = _search(costing, rooms, limit) if few else None
        if every is not None:
            known, shortest = np.concatenate([known, every]), True
        elif few:
            known = np.concatenate([known, _improved(costing, rooms, known[:1], MOST_WORK)])
    seconds = costing.of(known)
    best = seconds.min()
    near = known[seconds <= best * (1 + SAME)]
    chosen = min(near, key=lambda place: (float(f"{costing.cost(place):.9g}"), tuple(place)))
    bound = best if shortest else bound
    return Optimum([gpus[n] for n in chosen], shortest, float(bound), costing.evaluations)


def _bound(model: Model, demand: Traffic, gpus: list[int], share: int) -> float:
    """Seconds that no placement goes below. Every rank alone, on the GPU that suits it best, with its `share` - 1
    heaviest neighbours on the same one: what the link that all its messages pass takes, and its largest message."""
    pick = np.ix_(gpus, gpus)
    count, n = len(gpus), len(model.machine.gpus)
    if count == 1 and not demand.off_host.any():
        return 0.0
    apart = ~np.eye(count, dtype=bool)
    flat = [a * n + b for a in gpus for b in gpus]
    times = (model._direct + model._staged_up + model._staged_down)[:, flat].reshape(-1, count, count)
    quick = 1 / (model.bandwidth[pick] * GIGA)
    latency = model.latency[pick][apart].min(initial=np.inf) if count > 1 else 0.0
    longest, waits = 0.0, 0.0
    for rank in range(demand.ranks):
        least = np.zeros(count)
        for amounts, least_time, least_pair in (
            (demand.bytes[rank], _least(times, apart, 2), np.where(apart, quick, np.inf).min(axis=1)),
            (demand.bytes[:, rank], _least(times, apart, 1), np.where(apart, quick, np.inf).min(axis=0)),
        ):
            heavy = np.sort(amounts[amounts > 0])[::-1][share - 1 :]
            if len(heavy):
                least = np.maximum(least, np.maximum(heavy.sum() * least_time.max(axis=0), heavy[0] * least_pair))
        beyond = demand.off_host[rank]
        if beyond:
            network = (model._network[:, gpus] / model._speed[:, None]).max(axis=0)
            least = np.maximum(least, beyond * network)
        longest = max(longest, float(least.min()))
        messages = max(0, int((demand.bytes[rank] > 0).sum()) - (share - 1))
        off = model.nic_latency[gpus].min() if beyond else 0.0
        waits = max(waits, float((messages * latency if messages else 0.0) + off))
    return longest + waits


def _least(times: np.ndarray, apart: np.ndarray, axis: int) -> np.ndarray:
    """(links, GPUs): seconds per byte that a link is held at least by what leaves (axis 2) or reaches (1) a GPU."""
    least: np.ndarray = np.where(apart[None], times, np.inf).min(axis=axis)
    return least


def _search(costing: _Costing, rooms: Rooms, limit: float) -> np.ndarray | None:
    """All placements (n, ranks) with no more seconds than any, but for those that are the same by `alike`; None when
    that takes too long. `limit`: seconds that are known to be reached."""
    demand, order = costing.demand, rooms.order
    limit *= 1 + SAME
    places = np.zeros((1, 0), dtype=np.int64)
    used = np.zeros((1, rooms.count), dtype=np.int64)
    allowed = costing.work + 3 * MOST_WORK
    for n in range(len(order)):
        state, gpu = np.nonzero(rooms.free(used))
        part = order[: n + 1]
        exchange = Exchange(costing.model, Traffic(demand.bytes[np.ix_(part, part)], demand.off_host[part]))
        if costing.work + len(state) * exchange.work > allowed:
            return None
        places = np.concatenate([places[state], gpu[:, None]], axis=1)
        used = used[state]
        used[np.arange(len(state)), gpu] += 1
        keep = costing.of(places, exchange) <= limit
        places, used = places[keep], used[keep]
    found = np.empty_like(places)
    found[:, order] = places
    seconds = costing.of(found)
    shortest: np.ndarray = found[seconds <= seconds.min(initial=np.inf) * (1 + SAME)]
    return shortest


def _improved(costing: _Costing, rooms: Rooms, known: np.ndarray, most: int) -> np.ndarray:
    """Local optima by swaps from the known placements, then from the best with a few ranks exchanged by chance and
    from chance alone, until `most` work is done."""
    draw = np.random.default_rng(0)
    ranks, allowed = known.shape[1], costing.work + most
    found = [_descended(costing, rooms, place, draw, allowed) for place in known]
    best = min(found, key=lambda entry: entry[0])
    turn = 0
    while costing.work < allowed and ranks > 1:
        turn += 1
        if turn % 4 == 0:
            slots = np.repeat(np.arange(rooms.count), rooms.most)
            start = rooms.evened(slots[draw.permutation(len(slots))[:ranks]])
        else:
            slots = rooms.slots(best[1])
            some = draw.permutation(len(slots))[: KICKED + turn % 3]
            slots[some] = slots[np.roll(some, 1)]
            start = rooms.evened(slots[:ranks])
        entry = _descended(costing, rooms, start, draw, allowed)
        found.append(entry)
        if entry[0] < best[0] * (1 - SAME):
            best = entry
    return np.unique([place for _, place in found], axis=0)


def _descended(
    costing: _Costing, rooms: Rooms, place: np.ndarray, draw: np.random.Generator, allowed: int
) -> tuple[float, np.ndarray]:
    """(its measure, the placement that swaps of two ranks, or moves of one to a room, lead to)."""
    ranks = len(place)
    slots = rooms.slots(np.asarray(place))
    now = costing.of(slots[None, :ranks], soft=True)[0]
    most = max(16, AT_A_TIME // costing.whole.work)
    while costing.work < allowed:
        first, second = np.nonzero(rooms.swaps(slots, ranks))
        if len(first) > most:
            some = draw.permutation(len(first))[:most]
            first, second = first[some], second[some]
        if not len(first):
            break
        tried = np.repeat(slots[None], len(first), axis=0)
        row = np.arange(len(first))
        tried[row, first], tried[row, second] = slots[second], slots[first]
        soft = costing.of(tried[:, :ranks], soft=True)
        best = int(soft.argmin())
        if soft[best] >= now * (1 - SAME):
            break
        slots, now = tried[best], soft[best]
    return float(now), slots[:ranks].copy()
