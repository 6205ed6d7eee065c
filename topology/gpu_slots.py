"""The GPUs that a search for placements may give to the next rank, for many partial placements at once.

The numbers of ranks on two GPUs differ by one at most. Of interchangeable GPUs only the first free one is tried."""

import numpy as np

from hiresx.topology.cost import Model, Traffic


class GpuSlots:
    """The number of ranks that each GPU may get, for a search of placements. A slot is room for one rank on a GPU. A
    GPU has between `least` and `most` ranks; `extra` GPUs have `least` + 1 ranks. `order`: the order in which ranks are
    placed. The next rank is always the one that exchanges most bytes with the ranks already placed. `gpus`: the GPUs
    that may be used. `model`: the links of the machine. `demand`: the bytes between the ranks."""

    def __init__(self, model: Model, demand: Traffic, gpus: list[int]):
        self.least, self.extra = divmod(demand.ranks, len(gpus))
        self.most = self.least + (self.extra > 0)
        self.count = len(gpus)
        self.order = _order(demand)
        self._model, self._gpus = model, gpus
        self._beyond = bool((demand.off_host > 0).any())
        self._alike: list[list[int]] | None = None

    def free(self, used: np.ndarray) -> np.ndarray:
        """Return a mask (n, GPUs) that is true where the next rank may be placed on the GPU, for n partial placements.
        The mask keeps the numbers of ranks on two GPUs within one of each other. Among interchangeable GPUs that have
        no rank yet, it is true for the first only. `used` (n, GPUs): the number of ranks that each GPU already has."""
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
        """Return the GPU of each rank, followed by one entry for each rank that could still be placed: the GPU with
        this free slot. A search treats free slots as ranks that send no messages. `place` (ranks,): the GPU of each
        rank."""
        return np.concatenate([place, np.repeat(np.arange(self.count), self.most - self.rank_counts(place))])

    def rank_counts(self, place: np.ndarray) -> np.ndarray:
        """Return the number of ranks on each GPU. `place` (ranks,): the GPU of each rank."""
        return np.bincount(place, minlength=self.count)

    def swaps(self, slots: np.ndarray, ranks: int) -> np.ndarray:
        """Return a mask (n, n) of the pairs of entries of `slots` that may be exchanged so that the numbers of ranks on
        two GPUs still differ by one at most. Only entries below the diagonal can be true. `slots` (n,): the GPU of each
        rank, followed by the GPUs with room for a further rank. `ranks`: the number of ranks."""
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
        """Return a placement in which every GPU has at least the number of ranks that an even distribution gives it.
        The last ranks of GPUs with more ranks are moved to GPUs with fewer. `place` (ranks,): the GPU of each rank; it
        is not changed."""
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
