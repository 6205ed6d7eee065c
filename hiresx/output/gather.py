"""Some nodes of the flow on the host, wherever the blocks lie."""

import numpy as np

from hiresx.rhs.gas import primitive


class Gather:
    """The state at nodes given by `blocks` (n,) and their `places` (n,) in the padded arrays of these. Only these nodes
    are copied from the device, every one once."""

    def __init__(self, solver, blocks: np.ndarray, places: np.ndarray):
        self._backend, self._gamma = solver.backend, solver.case.gas.gamma
        self._parts = []
        self._order = np.empty(len(blocks), dtype=np.int64)
        start = 0
        for b in np.unique(blocks):
            here = blocks == b
            unique, inverse = np.unique(places[here], return_inverse=True)
            q = solver.states[b].q
            self._parts.append((q.reshape(q.shape[0], -1), self._backend.to_device(unique.astype(np.int64))))
            self._order[here] = start + inverse
            start += len(unique)

    def __call__(self) -> dict[str, np.ndarray]:
        """rho, u, v, w, p of the nodes, float64 (n,), in the order they were given."""
        parts = [self._backend.to_host(q.take(places, axis=1)) for q, places in self._parts]
        q = np.concatenate(parts, axis=1).astype(np.float64, copy=False)
        return {name: values[self._order] for name, values in primitive(self._gamma, q).items()}
