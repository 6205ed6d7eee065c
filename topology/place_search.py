"""The best placement by one of two measures: the `seconds` of an exchange, or its total `cost` over all pairs.

Both are explained in `hiresx.topology.cost`.

Ranks are placed one after another, breadth first, with all partial placements in arrays. Both measures can only grow
when a rank is added, so a partial placement that costs more than the best known one is dropped. Up to EXHAUSTIVE ranks
the search is complete, unless there are too many different GPUs. For more ranks, swaps improve the best known
placements within a fixed number of evaluations.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.topology.cost import GIGA, Exchange, Model, Traffic
from hiresx.topology.gpu_slots import GpuSlots

EXHAUSTIVE = 8
# Number of operations for swaps; the search with few ranks has three times as many. Both take some tenths of a second.
MOST_WORK = 120_000_000
# Number of operations at a time, which limits the memory.
AT_A_TIME = 2_000_000
# Overhead of a call of NumPy, as a number of operations.
CALL = 20_000
KICKED = 3
# Placements whose values differ from the best by no more than this fraction count as equally good. Among them the other
# measure decides, then the order of the ranks.
SAME = 1e-9
# Weight of the norm of all links' times (exponent 2^3) beside the longest time. Most swaps do not change the longest
# time, but they change the norm.
SOFT, POWER = 0.05, 3


@dataclass(frozen=True)
class Optimum:
    """The result of a search. `placement`: the GPU of each rank. `bound`: a lower bound of the measure for all
    placements. `proven`: whether the placement is proven to be the best. `evaluations`: number of placements, or parts
    of placements, that were evaluated."""

    placement: list[int]
    proven: bool
    bound: float
    evaluations: int


class Objective(ABC):
    """A measure of placements that a search minimises: of the ranks whose traffic is `demand` on GPUs of `model`.
    `work`: number of operations to evaluate one placement. `most_swaps`: the largest number of swaps in one call of
    `swap_values`."""

    def __init__(self, model: Model, demand: Traffic):
        self.model, self.demand = model, demand
        self.work, self.most_swaps = demand.ranks**2, demand.ranks**3

    @abstractmethod
    def values(self, places: np.ndarray) -> np.ndarray:
        """Return the value that this class measures, in seconds, for each of n placements: (n,). A smaller value is
        better. `places` (n, ranks): the GPU of each rank, one placement in each row."""

    @abstractmethod
    def swap_values(self, place: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the value that the search minimises after each of n swaps, (n,), in seconds, and the number of
        arithmetic operations used. The value is that of `values`; a subclass may add a term that distinguishes equal
        values. `place` (ranks + free slots,): the GPU of each rank, then the GPU of each slot that is free for a
        further rank. A GPU occurs once for each of its ranks and free slots. Swap number m exchanges the entries
        `first[m]` and `second[m]` of `place`; each swap starts from the original `place`."""

    def of_part(self, ranks: Sequence[int]) -> "Objective":
        """Return this measure of placements for only the ranks in `ranks` and the messages between them."""
        demand = self.demand
        return type(self)(self.model, Traffic(demand.bytes[np.ix_(ranks, ranks)], demand.off_host[ranks]))


class PairSum(Objective):
    """Objective: the sum of the costs of all pairs of ranks (a quadratic assignment problem)."""

    def values(self, places: np.ndarray) -> np.ndarray:
        """Return the summed cost of the placements `places` (n, ranks) in seconds, (n,)."""
        return self.model.costs(self.demand, places)

    def swap_values(self, place: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the summed cost in seconds after each of n swaps, (n,), and the number of arithmetic operations.
        `place`: the GPU of each rank, then of each free slot. `first`, `second` (n,): the indexes into `place` that
        each swap exchanges."""
        ranks, size = self.demand.ranks, len(place)
        sent, model, pairs = self.demand.bytes > 0, self.model, np.ix_(place, place)
        # Cost of the traffic of each rank to other hosts, for each of its possible GPUs.
        change = np.zeros((size, size))
        change[:ranks] = np.outer(self.demand.off_host, model.nic_per_byte[place])
        change[:ranks] += np.outer(self.demand.off_host > 0, model.nic_latency[place])
        own = np.diag(change)
        change = change + change.T - own[:, None] - own[None, :]
        for amounts, price in ((self.demand.bytes, model.per_byte), (sent, model.latency)):
            padded = np.zeros((size, size))
            padded[:ranks, :ranks] = amounts
            change += swap_change(padded, price[pairs])
        return self.values(place[None, :ranks])[0] + change[first, second], 4 * CALL + 4 * size**2


class ExchangeTime(Objective):
    """Objective: the time of an exchange, in s. `model`: the links of the machine. `demand`: the bytes between the
    ranks."""

    def __init__(self, model: Model, demand: Traffic):
        super().__init__(model, demand)
        self._exchange = Exchange(model, demand)
        self.work = self._exchange.work
        self.most_swaps = max(16, AT_A_TIME // self.work)

    def values(self, places: np.ndarray) -> np.ndarray:
        """Return the exchange times of the placements `places` (n, ranks) in seconds, (n,)."""
        return self._exchange.times(places).seconds

    def guide(self, places: np.ndarray) -> np.ndarray:
        """Return the value that the search minimises for each of n placements: (n,), in seconds. It is the time of the
        exchange plus a small multiple of the norm of order 2^POWER of the times of all links, which distinguishes
        placements with equal times on their busiest links. `places` (n, ranks): the GPU of each rank, one placement in
        each row."""
        times = self._exchange.times(places)
        most = times.links.max(axis=1, initial=0.0)
        scaled = times.links / np.where(most > 0, most, 1.0)[:, None]
        for _ in range(POWER):
            np.square(scaled, out=scaled)
        guide: np.ndarray = times.seconds + SOFT * most * scaled.sum(axis=1) ** (0.5**POWER)
        return guide

    def swap_values(self, place: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the value of `guide`, in seconds, after each of n swaps, (n,), and the number of arithmetic
        operations. `place`: the GPU of each rank, then of each free slot. `first`, `second` (n,): the indexes into
        `place` that each swap exchanges."""
        tried = np.repeat(place[None], len(first), axis=0)
        row = np.arange(len(first))
        tried[row, first], tried[row, second] = place[second], place[first]
        return self.guide(tried[:, : self.demand.ranks]), len(first) * self.work


def swap_change(amount: np.ndarray, price: np.ndarray) -> np.ndarray:
    """Return by how much sum(amount * price) changes if rows and columns r and s of `price` are swapped, for all pairs
    (r, s): (n, n). `amount`, `price`: matrices (n, n)."""
    total = np.zeros_like(amount)
    for a, p in ((amount, price), (amount.T, price.T)):
        product = a @ p.T
        own = np.diag(product)
        total += product + product.T - own[:, None] - own[None, :]
        # The sums above include r and s themselves, which are subtracted here.
        ends = np.diag(p)
        total -= (0 - a.T) * (p.T - ends[:, None]) + a * (ends[None, :] - p)
    change: np.ndarray = total + amount * (price.T - price) + amount.T * (price - price.T)
    return change


def place_optimal(model: Model, demand: Traffic, gpus: list[int], starts: list[list[int]]) -> Optimum:
    """Search for the placement of the ranks on `gpus` with the shortest estimated exchange; among equally short ones,
    the placement with the lowest summed cost. `model`: the links of the machine. `demand`: the bytes between ranks.
    `gpus`: the indexes of the GPUs. `starts`: known placements, each the GPU of every rank; the result is no worse than
    any of them."""
    slots = GpuSlots(model, demand, gpus)
    search = Search(ExchangeTime(model, demand), PairSum(model, demand), gpus, slots)
    return search.run(starts, exchange_bound(model, demand, gpus, slots.most))


def place_pair_sum(model: Model, demand: Traffic, gpus: list[int], starts: list[list[int]]) -> Optimum:
    """Search for the placement of the ranks on `gpus` with the lowest cost summed over pairs of ranks; among equal
    ones, the placement with the shortest estimated exchange. `model`: the links of the machine. `demand`: the bytes
    between ranks. `gpus`: the indexes of the GPUs. `starts`: known placements, each the GPU of every rank; the result
    is no worse than any of them."""
    slots = GpuSlots(model, demand, gpus)
    return Search(PairSum(model, demand), ExchangeTime(model, demand), gpus, slots).run(starts, 0.0)


class Search:
    """A search for the best placement by an objective, and among equally good ones by a second objective. Internally,
    GPUs are indexes into `gpus`, those that may be used. `objective`, `other`: the two objectives. `slots`: the numbers
    of ranks on each GPU."""

    def __init__(self, objective: Objective, other: Objective, gpus: Sequence[int], slots: GpuSlots):
        self._objective, self._other, self._gpus, self._slots = objective, other, np.array(gpus), slots
        self.evaluations = self.work = 0

    def run(self, starts: Sequence[Sequence[int]], bound: float) -> Optimum:
        """Run the search and return the best placement found. `starts`: known placements from which the search starts,
        each the index of the GPU of every rank in the machine. `bound`: a known lower bound of the measure; nothing is
        searched if one of `starts` reaches it."""
        index = {int(gpu): n for n, gpu in enumerate(self._gpus)}
        known = np.unique([[index[gpu] for gpu in start] for start in starts], axis=0)
        proven = bool(self.values(known).min() <= bound * (1 + SAME))
        if not proven:
            few = self._objective.demand.ranks <= EXHAUSTIVE
            known = np.concatenate([known, self.improve(known, MOST_WORK // 50 if few else MOST_WORK)])
            every = self._every(self.values(known).min()) if few else None
            if every is not None:
                known, proven = np.concatenate([known, every]), True
            elif few:
                known = np.concatenate([known, self.improve(known[:1], MOST_WORK)])
        values = self.values(known)
        near = known[values <= values.min() * (1 + SAME)]
        others = self._other.values(self._gpus[near])
        chosen = min(zip(others.tolist(), near.tolist(), strict=True), key=lambda e: (float(f"{e[0]:.9g}"), e[1]))[1]
        bound = float(values.min()) if proven else bound
        return Optimum([int(self._gpus[n]) for n in chosen], proven, bound, self.evaluations)

    def values(self, places: np.ndarray, objective: Objective | None = None) -> np.ndarray:
        """Return the value of a measure for each of n placements, (n,), and count the work. `places` (n, ranks): the
        GPU of each rank as an index into the usable GPUs; the ranks may be only a part of all. `objective`: the
        measure, by default the first one of the search."""
        objective = objective or self._objective
        self.evaluations += len(places)
        self.work += CALL + len(places) * objective.work
        step = max(1, AT_A_TIME // objective.work)
        parts = [objective.values(self._gpus[places[n : n + step]]) for n in range(0, len(places), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _every(self, limit: float) -> np.ndarray | None:
        """Return all best placements (n, ranks), one of each set of placements that `are_alike` makes equivalent; None
        if the search takes too long. `limit`: a value that is known to be reached."""
        order, limit = self._slots.order, limit * (1 + SAME)
        places = np.zeros((1, 0), dtype=np.int64)
        used = np.zeros((1, self._slots.count), dtype=np.int64)
        allowed = self.work + 3 * MOST_WORK
        for n in range(len(order)):
            state, gpu = np.nonzero(self._slots.free(used))
            part = self._objective.of_part(order[: n + 1])
            if self.work + len(state) * part.work > allowed:
                return None
            places = np.concatenate([places[state], gpu[:, None]], axis=1)
            used = used[state]
            used[np.arange(len(state)), gpu] += 1
            keep = self.values(places, part) <= limit
            places, used = places[keep], used[keep]
        found = np.empty_like(places)
        found[:, order] = places
        values = self.values(found)
        best: np.ndarray = found[values <= values.min(initial=np.inf) * (1 + SAME)]
        return best

    def improve(self, known: np.ndarray, most: int) -> np.ndarray:
        """Improve placements by swaps of two ranks until no swap helps, and return the local minima found: (n, ranks),
        the GPU of each rank as an index into the usable GPUs. The swaps start from the placements `known` (m, ranks),
        of the same form, then from the best placement with a few ranks exchanged at random, and from random placements.
        The search ends after about `most` arithmetic operations."""
        draw = np.random.default_rng(0)
        ranks, allowed, slots = known.shape[1], self.work + most, self._slots
        found = [self._descend(place, draw, allowed) for place in known]
        best = min(found, key=lambda entry: entry[0])
        turn = 0
        while self.work < allowed and ranks > 1:
            turn += 1
            if turn % 2 == 0:
                taken = np.repeat(np.arange(slots.count), slots.most)
                start = slots.fill_up(taken[draw.permutation(len(taken))[:ranks]])
            else:
                taken = slots.slots(best[1])
                some = draw.permutation(len(taken))[: KICKED + turn % 3]
                taken[some] = taken[np.roll(some, 1)]
                start = slots.fill_up(taken[:ranks])
            entry = self._descend(start, draw, allowed)
            found.append(entry)
            if entry[0] < best[0] * (1 - SAME):
                best = entry
        return np.unique([place for _, place in found], axis=0)

    def _descend(self, place: np.ndarray, draw: np.random.Generator, allowed: int) -> tuple[float, np.ndarray]:
        """Improve a placement by swaps of two ranks and moves of one rank to a free slot. Returns (guide value,
        placement)."""
        ranks, slots = len(place), self._slots.slots(np.asarray(place))
        now, most = np.inf, self._objective.most_swaps
        while self.work < allowed:
            first, second = np.nonzero(self._slots.swaps(slots, ranks))
            if len(first) > most:
                some = draw.permutation(len(first))[:most]
                first, second = first[some], second[some]
            # The placement itself comes first: a swap of an entry with itself.
            first, second = np.append(0, first), np.append(0, second)
            guide, work = self._objective.swap_values(self._gpus[slots], first, second)
            self.evaluations += len(first)
            self.work += CALL + work
            best = int(guide.argmin())
            now = float(guide[best])
            if guide[best] >= guide[0] * (1 - SAME):
                break
            slots[[first[best], second[best]]] = slots[[second[best], first[best]]]
        return now, slots[:ranks].copy()


def exchange_bound(model: Model, demand: Traffic, gpus: list[int], share: int) -> float:
    """Return a lower bound, in seconds, of the duration of an exchange over all placements on the GPUs with the indexes
    `gpus` and at most `share` ranks on a GPU. `model`: the links of the machine. `demand`: the bytes between the ranks.
    Each rank is considered alone: it is placed on its best GPU, together with the `share` - 1 ranks with which it
    exchanges most. Its time is the larger of the time of the link that all its messages pass, and the time of its
    largest message. The bound is the largest time of a rank plus the largest sum of latencies of a rank."""
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
    """Return a lower bound (links, GPUs) of the seconds per byte for which bytes that leave (axis 2) or reach (1) a GPU
    occupy a link."""
    least: np.ndarray = np.where(apart[None], times, np.inf).min(axis=axis)
    return least
