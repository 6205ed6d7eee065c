"""Curved no-slip walls of given temperature. The polynomial that extrapolates the density to the ghosts behind them
differs from that of plane walls (kernels/boundary/no_slip.h)."""

from collections.abc import Iterator
from typing import cast

import numpy as np

from hiresx.case.boundaries import NoSlipWall
from hiresx.decomposition.oblique_walls import are_parallel, groups, is_broad, met_by, normal_of
from hiresx.decomposition.patches import Decomposition, Patch


def curved_walls(whole: Decomposition) -> frozenset[int]:
    """Return the numbers of the boundary patches that lie on curved no-slip walls of given temperature. `whole`: the
    blocks of the grid before they are divided among ranks, with their patches. Patches of one condition that continue
    each other, within a block or across connections, count as one wall, so that the result does not depend on how
    blocks are cut."""
    found = {
        place: patch
        for place, patch in enumerate(whole.patches)
        if patch.condition.kernel == "no_slip"
        and cast(NoSlipWall, patch.condition).temperature
        and len(whole.blocks[patch.block].active) > 1
    }
    curved: set[int] = set()
    for members in groups(whole, list(found)):
        # one node across lies on many planes
        broad = [found[n] for n in members if is_broad(whole.blocks[found[n].block], found[n])]
        if not are_parallel(whole, [(patch, normal) for patch in broad for normal in _normals(whole, patch)]):
            curved.update(members)
    return frozenset(curved)


def _normals(whole: Decomposition, patch: Patch) -> Iterator[np.ndarray | None]:
    """Return the normals of a patch and of its images in the planes of symmetry that it meets. So half of a flow has
    the results of the whole flow, where both halves are one wall."""
    block = whole.blocks[patch.block]
    own = normal_of(block, patch)
    yield own
    for plane, _ in met_by(whole, patch):
        across = normal_of(block, plane) if plane.condition.type == "symmetry" else None
        if own is not None and across is not None:
            yield own - 2 * (own @ across) * across
