"""The GPUs that the next rank may take, for many partial placements at once.

The numbers of ranks on two GPUs differ by one at most. Of interchangeable GPUs only the first free one is tried.
"""

import numpy as np

from hiresx.topology.cost import Model, Traffic


class GpuSlots:
    """The number of ranks that each GPU gets. It is between `least` and `most`; `extra` GPUs have `least` + 1 ranks.
    `order`: the order in which ranks are placed. The next rank is always the one that exchanges most bytes with the
    ranks already placed. `gpus`: the GPUs that may be used. `model`: the links of the machine. `demand`: the bytes
    between the ranks."""

    def __init__(self, model: Model, demand: Traffic, gpus: list[int]):
        self.least, self.extra = divmod(demand.ranks, len(gpus))
        self.most = self.least + (self.extra > 0)
        self.count = len(gpus)
        self.order = _order(demand)
        self._model, self._gpus = model, gpus
        self._beyond = bool((demand.off_host > 0).any())
        self._alike: list[list[int]] | None = None

    def free(self, used: np.ndarray) -> np.ndarray:
        """Return the mask (states, GPUs) of the GPUs with free slots. `used` (states, GPUs): the number of ranks that
        each GPU has already."""
        if self._alike is None:
            self._alike = [
                [b for b in range(a) if self._model.are_alike(self._gpus[a], self._gpus[b], self._beyond)]
                for a in range(self.count)
            ]
        free = used < self.most
        if self.extra:
            full = (used == self.most).sum(axis=1) >= self.extra
            free &= ~(full[:, None] & (used >= self.least))
        for g in range(self.count):
            for h in self._alike[g]:
                free[:, g] &= ~((used[:, g] == 0) & (used[:, h] == 0))
        return free

    def slots(self, place: np.ndarray) -> np.ndarray:
        """Return the GPU of each rank, `place` (ranks,), followed by the GPUs of the free slots. Free slots are treated
        as ranks that send no messages."""
        return np.concatenate([place, np.repeat(np.arange(self.count), self.most - self.rank_counts(place))])

    def rank_counts(self, place: np.ndarray) -> np.ndarray:
        """Return the number of ranks on each GPU. `place` (ranks,): the GPU of each rank."""
        return np.bincount(place, minlength=self.count)

    def swaps(self, slots: np.ndarray, ranks: int) -> np.ndarray:
        """Return a mask (size, size), true below the diagonal for pairs of entries of `slots` that may be exchanged
        such that the numbers of ranks per GPU remain even. `ranks`: the number of ranks."""
        empty = np.arange(len(slots)) >= ranks
        below = np.tri(len(slots), k=-1, dtype=bool)
        has_free = np.bincount(slots[empty], minlength=self.count) > 0
        # When a rank is exchanged with a free slot on another GPU, its own slot becomes free; no GPU has two free
        # slots.
        barred = empty[:, None] & has_free[slots][None, :] & ~empty[None, :]
        both = empty[:, None] & empty[None, :]
        swaps: np.ndarray = below & (slots[:, None] != slots[None, :]) & ~barred & ~barred.T & ~both
        return swaps

    def fill_up(self, place: np.ndarray) -> np.ndarray:
        """Return `place` (ranks,), the GPU of each rank, after a change: the last ranks of GPUs with more than `least`
        ranks are moved to GPUs with fewer."""
        place = place.copy()
        while len(short := np.flatnonzero(self.rank_counts(place) < self.least)):
            full = np.flatnonzero(self.rank_counts(place) > self.least)
            place[np.flatnonzero(place == full[-1])[-1]] = short[0]
        return place


def _order(demand: Traffic) -> list[int]:
    weight = demand.bytes + demand.bytes.T
    left = list(range(demand.ranks))
    heavy = weight.sum(axis=1) + demand.off_host
    order = [max(left, key=lambda r: (heavy[r], -r))]
    left.remove(order[0])
    reach = weight[:, order[0]].copy()
    while left:
        order.append(max(left, key=lambda r: (reach[r], heavy[r], -r)))
        left.remove(order[-1])
        reach += weight[:, order[-1]]
    return order
