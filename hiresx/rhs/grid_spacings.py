"""The grid spacings that detached-eddy models use (kernels/detached.h), computed once."""

from collections.abc import Iterator, Sequence

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Decomposition
from hiresx.device.interface import Backend
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.errors import HiresxError
from hiresx.rhs.wall_distance import WallSearch

FIELD = "grid_spacings"


def check(case: Case, whole: Decomposition) -> None:
    """Raise HiresxError if `case` uses a detached-eddy model and a block of the grid `whole` has fewer than three
    dimensions."""
    given = case.turbulence
    if given.spacings and any(n == 1 for block in whole.blocks for n in block.size):
        raise HiresxError(
            f'turbulence.detached_eddies = "{given.detached_eddies}" resolves eddies, which are three-dimensional, but '
            "the grid has one node along a direction",
            'take more nodes there, or detached_eddies = "none" for averaged flow',
        )


def fill(backend: Backend, state: BlockState, coordinates: Sequence[np.ndarray], walls: WallSearch) -> None:
    """Compute the grid spacings that detached-eddy models use, in units of the length scale L, and store them in the
    field `grid_spacings` of `state`, if the run has it. The first number of a node is the largest of the spacings along
    the grid lines, each averaged over both neighbours. The second number, if the model needs it, is the largest change
    of the distance to the wall from the node to a neighbour. `coordinates`: x, y, z, each (nk, nj, ni) with ghost
    layers in every direction, so that neighbours in other blocks and mirror images behind walls are included. `walls`:
    the search for the nearest wall."""
    if not state.layout.has(FIELD):
        return
    halo = max(state.halo)
    box = tuple(slice(halo - 1, halo + n + 1) for n in reversed(state.size))
    places = np.stack([c[box] for c in coordinates])
    largest = np.max([(np.linalg.norm(a, axis=0) + np.linalg.norm(b, axis=0)) / 2 for a, b in _steps(places)], axis=0)
    spacings = [largest]
    if state.layout.needed[FIELD] > 1:
        _, nk, nj, ni = places.shape
        distance = backend.empty((nk, nj, ni), state.storage.work)
        walls(places, distance, {"o": 0, "sj": ni, "sk": ni * nj})
        found = backend.to_host(distance).astype(float)
        spacings.append(np.max([abs(step) for both in _steps(found) for step in both], axis=0))
    field = state.array(FIELD)
    values = np.zeros(field.shape, state.storage.work)
    state.interior(values)[...] = np.stack(spacings)
    backend.copy(field, backend.to_device(values))


def _steps(values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, along each direction, the differences of `values` (..., nk, nj, ni) at inner nodes from those at the nodes
    before them, and of those at the nodes behind from them."""
    here = slice(1, -1)
    for axis in range(DIRECTIONS):
        before, behind = (
            values[(..., *(part if other == axis else here for other in range(DIRECTIONS)))]
            for part in (slice(None, -2), slice(2, None))
        )
        inner = values[..., here, here, here]
        yield inner - before, behind - inner
