"""The placement of least total cost, a sum over pairs: exact by branch and bound while that is quick, else the best of
several starts. It is not the shortest exchange (`place_optimal`), which the most loaded link decides, but near it.

A placement is a quadratic assignment. Ranks are placed one after another, breadth first with all partial placements in
arrays; a partial placement is dropped when its cost and the least the rest can add exceed the best known. GPUs that
can change places without a difference (`Model.alike`) are tried once. Among placements of equal cost the one with the
fewest `seconds` counts, then the first in rank order.
"""

import numpy as np

from hiresx.topology.cost import Model, Traffic
from hiresx.topology.rooms import Rooms

# Numbers held for partial placements (one per rank left and GPU each) at a time, and in all: some tenths of a second.
MOST_AT_A_TIME = 4_000_000
MOST_IN_ALL = 12_000_000
MOST_TIES = 256
# Starts from chance, with as many kicks of the best; fewer beyond this many ranks and rooms, in their third power.
STARTS = 40
MOST_AT_LENGTH = 24
KICKED = 4
MOST_STEPS = 200
# GPUs beyond which no search is exact in time.
MOST_GPUS_EXACT = 20
TINY = 1e-12


class _Problem:
    """Costs in arrays: `pair[r, s]` bytes and messages, on usable GPUs only."""

    def __init__(self, model: Model, demand: Traffic, gpus: list[int]):
        self.model, self.demand, self.gpus = model, demand, gpus
        pick = np.ix_(gpus, gpus)
        self.per_byte, self.latency = model.per_byte[pick], model.latency[pick]
        self.bytes, self.sends = demand.bytes, (demand.bytes > 0).astype(float)
        self.alone = demand.off_host[:, None] * model.nic_per_byte[gpus] + np.outer(
            demand.off_host > 0, model.nic_latency[gpus]
        )
        self.rooms = Rooms(model, demand, gpus)

    def cost(self, places: np.ndarray) -> np.ndarray:
        """Costs of placements (s, ranks), as indexes into the usable GPUs."""
        total: np.ndarray = self.alone[np.arange(places.shape[1]), places].sum(axis=1)
        pairs = places[:, :, None], places[:, None, :]
        total = total + (self.bytes * self.per_byte[pairs] + self.sends * self.latency[pairs]).sum(axis=(1, 2))
        return total

    def between(self, r: int, s: int) -> np.ndarray:
        """Cost (g, h) of the messages between rank r on GPU g and rank s on GPU h, both ways."""
        cost: np.ndarray = (
            self.bytes[r, s] * self.per_byte
            + self.bytes[s, r] * self.per_byte.T
            + self.sends[r, s] * self.latency
            + self.sends[s, r] * self.latency.T
        )
        return cost


def place_pair_sum(model: Model, demand: Traffic, gpus: list[int], starts: list[list[int]]) -> tuple[list[int], bool]:
    """(GPU of each rank, whether that is proven to be the least cost). `starts`: placements not to be worse than."""
    problem = _Problem(model, demand, gpus)
    index = {gpu: n for n, gpu in enumerate(gpus)}
    known = [np.array([index[gpu] for gpu in start]) for start in starts]
    known = [_improved(problem, start) for start in known]
    best = min(known, key=lambda place: (problem.cost(place[None])[0], tuple(place)))
    found = _search(problem, problem.cost(best[None])[0])
    proven = found is not None
    candidates = known + (_starts(problem) if found is None else list(found))
    costs = problem.cost(np.array(candidates))
    near = [place for place, cost in zip(candidates, costs, strict=True) if cost <= costs.min() * (1 + TINY)]
    ties = sorted({tuple(int(n) for n in place) for place in near})
    ties = ties[:: -(-len(ties) // MOST_TIES)]
    chosen = min(ties, key=lambda place: (round(_seconds(problem, place), 15), place))
    return [gpus[n] for n in chosen], proven


def _seconds(problem: _Problem, place: tuple[int, ...]) -> float:
    return problem.model.estimate(problem.demand, [problem.gpus[n] for n in place]).seconds


def _search(problem: _Problem, bound: float) -> np.ndarray | None:
    """All placements (n, ranks) of least cost, but for those that are the same by `alike`; None when it takes too long.

    `bound`: a cost that is known to be reached.
    """
    ranks, count = problem.demand.ranks, len(problem.gpus)
    if count > MOST_GPUS_EXACT or ranks > 2 * MOST_GPUS_EXACT:
        return None
    rooms = problem.rooms
    order = rooms.order
    pair = {(r, s): problem.between(r, s) for n, r in enumerate(order) for s in order[n + 1 :]}
    apart = ~np.eye(count, dtype=bool)
    # The least that two ranks yet to place can add; on one GPU only where GPUs are shared.
    least_pair = {
        key: value.min() if rooms.most > 1 else value[apart].min(initial=np.inf) for key, value in pair.items()
    }
    rest = [sum(least_pair[r, s] for m, r in enumerate(order[n:], n) for s in order[m + 1 :]) for n in range(ranks + 1)]

    places = np.zeros((1, 0), dtype=np.int16)
    used = np.zeros((1, count), dtype=np.int16)
    cost = np.zeros(1)
    ahead = problem.alone[order][None].copy()  # (states, ranks left, GPUs): what placing each would add
    limit = bound * (1 + TINY)
    total = 0
    for n, rank in enumerate(order):
        value = cost[:, None] + ahead[:, 0, :]
        state, gpu = np.nonzero(rooms.free(used) & (value + rest[n] <= limit))
        total += len(state) * (ranks - n) * count
        if len(state) * (ranks - n) * count > MOST_AT_A_TIME or total > MOST_IN_ALL:
            return None
        cost = value[state, gpu]
        used = used[state]
        used[np.arange(len(state)), gpu] += 1
        ahead = ahead[state, 1:, :]
        for m, other in enumerate(order[n + 1 :]):
            ahead[:, m, :] += pair[rank, other][gpu]
        if ahead.shape[1]:
            room = np.where((used < rooms.most)[:, None, :], ahead, np.inf)
            least = cost + room.min(axis=2).sum(axis=1) + rest[n + 1]
            keep = least <= limit
            state, gpu, cost, used, ahead = state[keep], gpu[keep], cost[keep], used[keep], ahead[keep]
        places = np.concatenate([places[state], gpu[:, None].astype(np.int16)], axis=1)
    found = np.empty((len(places), ranks), dtype=int)
    found[:, order] = places
    cheapest: np.ndarray = found[cost <= cost.min(initial=np.inf) * (1 + TINY)]
    return cheapest


def _improved(problem: _Problem, place: np.ndarray) -> np.ndarray:
    """The best swap of two ranks, or move of one to a GPU with room, again and again while the cost falls.

    Room is a rank that sends nothing; no GPU takes two of them, so that the shares stay even.
    """
    ranks, count = len(place), len(problem.gpus)
    at = problem.rooms.slots(place)
    size = len(at)
    flows = []
    for amount, price in ((problem.bytes, problem.per_byte), (problem.sends, problem.latency)):
        padded = np.zeros((size, size))
        padded[:ranks, :ranks] = amount
        flows.append((padded, price))
    alone = np.zeros((size, count))
    alone[:ranks] = problem.alone
    cost = problem.cost(at[None, :ranks])[0]
    for _ in range(MOST_STEPS):
        change = alone[:, at] + alone[:, at].T
        change = change - np.diag(alone[:, at])[:, None] - np.diag(alone[:, at])[None, :]
        for amount, price in flows:
            change += _swap_change(amount, price[np.ix_(at, at)])
        allowed = problem.rooms.swaps(at, ranks)
        change = np.where(allowed, change, 0.0)
        best = int(change.argmin())
        if change.ravel()[best] > -TINY * cost:
            break
        r, s = divmod(best, size)
        at[r], at[s] = at[s], at[r]
        cost += change.ravel()[best]
    return at[:ranks]


def _swap_change(amount: np.ndarray, price: np.ndarray) -> np.ndarray:
    """By how much sum(amount * price) changes when the places of r and s are swapped, for all r, s at once."""
    total = np.zeros_like(amount)
    for a, p in ((amount, price), (amount.T, price.T)):
        product = a @ p.T
        own = np.diag(product)
        total += product + product.T - own[:, None] - own[None, :]
        # The sums above run over all others and over r and s themselves; those two are taken out again.
        ends = np.diag(p)
        total -= (0 - a.T) * (p.T - ends[:, None]) + a * (ends[None, :] - p)
    change: np.ndarray = total + amount * (price.T - price) + amount.T * (price - price.T)
    return change


def _starts(problem: _Problem) -> list[np.ndarray]:
    """Local optima by swaps from chance, and from the best of them with a few ranks exchanged."""
    ranks = problem.demand.ranks
    slots = np.repeat(np.arange(len(problem.gpus)), problem.rooms.most)
    draw = np.random.default_rng(0)
    tries = max(1, int(STARTS * min(1.0, (MOST_AT_LENGTH / len(slots)) ** 3)))
    found = [
        _improved(problem, problem.rooms.evened(slots[draw.permutation(len(slots))[:ranks]])) for _ in range(tries)
    ]
    # From the best, a few ranks change places and the swaps begin again; what is better is kept.
    costs = problem.cost(np.array(found))
    best, cost = found[int(costs.argmin())], costs.min()
    for _ in range(tries):
        kicked = best.copy()
        some = draw.permutation(ranks)[:KICKED]
        kicked[some] = kicked[np.roll(some, 1)]
        kicked = _improved(problem, kicked)
        found.append(kicked)
        if problem.cost(kicked[None])[0] < cost * (1 - TINY):
            best, cost = kicked, problem.cost(kicked[None])[0]
    return found
