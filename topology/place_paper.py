"""The placement of the paper (section 4.3.2). Ranks are partitioned over the groups of GPUs, the coarsest groups first,
so that the fewest bytes cross between groups. If all ranks fit into one group, that group is used."""

import numpy as np

from hiresx.topology.cost import Traffic
from hiresx.topology.groups import GpuGroup

# All subsets of this many ranks are tried; for more ranks a first division is improved by swaps.
MOST_SUBSETS = 16


def place_paper(demand: Traffic, groups: GpuGroup) -> list[int]:
    """Return the index of the GPU of each rank by the strategy of Ye et al. (2022), section 4.3.2: ranks that exchange
    most bytes are placed in one group of close GPUs. `demand`: the bytes between ranks. `groups`: the nested groups of
    GPUs (`groups.tree`). If there are more ranks than GPUs, the numbers of ranks on two GPUs differ by one at most."""
    weight = demand.bytes + demand.bytes.T
    placement = [0] * demand.ranks
    _split(list(range(demand.ranks)), groups, weight, placement)
    return placement


def _split(ranks: list[int], group: GpuGroup, weight: np.ndarray, placement: list[int]) -> None:
    if not ranks:
        return
    if not group.children:
        share = -(-len(ranks) // len(group.gpus))
        extra = len(ranks) - (share - 1) * len(group.gpus)
        start = 0
        for n, gpu in enumerate(group.gpus):
            size = share if n < extra else share - 1
            for rank in ranks[start : start + size]:
                placement[rank] = gpu
            start += size
        return
    holding = [child for child in group.children if len(child.gpus) >= len(ranks)]
    if holding:
        _split(ranks, min(holding, key=lambda child: len(child.gpus)), weight, placement)
        return
    if len(group.children) == 1:
        _split(ranks, group.children[0], weight, placement)
        return
    # The ranks are divided into two sides as evenly as the order of the groups permits, then each side again.
    half = max(1, len(group.children) // 2)
    sides = [
        GpuGroup(group.level, sum((c.gpus for c in part), ()), part)
        for part in (group.children[:half], group.children[half:])
    ]
    first = _cut(ranks, len(sides[0].gpus), len(sides[1].gpus), weight)
    chosen = set(first)
    _split(first, sides[0], weight, placement)
    _split([rank for rank in ranks if rank not in chosen], sides[1], weight, placement)


def _cut(ranks: list[int], here: int, there: int, weight: np.ndarray) -> list[int]:
    """Return the ranks of the first side: those with the fewest bytes to the other side; among equal ones the rank
    order decides."""
    count = len(ranks)
    least, spare = divmod(count, here + there)
    most = least + (spare > 0)
    low = max(least * here, count - most * there)
    high = min(most * here, count - least * there)
    inside = weight[np.ix_(ranks, ranks)]
    chosen = _best_subset(inside, low, high) if count <= MOST_SUBSETS else _improve(inside, low, high)
    return [rank for rank, taken in zip(ranks, chosen, strict=True) if taken]


def _best_subset(inside: np.ndarray, low: int, high: int) -> np.ndarray:
    count = len(inside)
    subsets = np.arange(2**count)
    # Bit 0 of the number stands for the first rank, so that among equal subsets the one with the first ranks is chosen.
    member = (subsets[:, None] >> np.arange(count)) & 1
    sizes = member.sum(axis=1)
    member = member[(sizes >= low) & (sizes <= high)].astype(float)
    crossing = ((member @ inside) * (1 - member)).sum(axis=1)
    near = np.flatnonzero(crossing <= crossing.min() * (1 + 1e-12))
    order = member[near] @ 2.0 ** -np.arange(count)
    chosen: np.ndarray = member[near[order.argmax()]] > 0
    return chosen


def _improve(inside: np.ndarray, low: int, high: int) -> np.ndarray:
    """Swap pairs of ranks, beginning with the first ranks of this side, as long as that reduces the bytes to the other
    side (the step of Kernighan and Lin)."""
    count = len(inside)
    member = np.arange(count) < min(high, max(low, count // 2))
    while True:
        side = np.where(member, 1.0, -1.0)
        # Bytes to the other side minus bytes within the own side, for each rank: the gain of moving it.
        gain = -side * (inside @ side)
        own, other = np.flatnonzero(member), np.flatnonzero(~member)
        if not len(own) or not len(other):
            return member
        pairs = gain[own][:, None] + gain[other][None, :] - 2 * inside[np.ix_(own, other)]
        best = int(pairs.argmax())
        if pairs.ravel()[best] <= 1e-12 * max(1.0, inside.sum()):
            return member
        member[own[best // len(other)]] = False
        member[other[best % len(other)]] = True
