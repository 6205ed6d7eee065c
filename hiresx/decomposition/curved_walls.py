"""Curved no-slip walls of given temperature. The polynomial that extrapolates the density to the ghosts behind them
differs from that of plane walls (kernels/boundary/no_slip.h)."""

from typing import cast

import numpy as np

from hiresx.case.boundaries import NoSlipWall
from hiresx.decomposition.oblique_walls import are_parallel, groups, inward_rows, is_broad, plane_of
from hiresx.decomposition.patches import Decomposition, Patch


def curved_walls(whole: Decomposition) -> frozenset[int]:
    """Return the numbers of the patches of the whole blocks that lie on curved no-slip walls of given temperature.
    Patches of one condition that continue each other, within a block or across connections, count as one wall. So the
    result does not depend on how blocks are cut."""
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
        if not are_parallel([_normal(whole, patch) for patch in broad]):
            curved.update(members)
    return frozenset(curved)


def _normal(whole: Decomposition, patch: Patch) -> np.ndarray | None:
    block = whole.blocks[patch.block]
    nodes = inward_rows(block, patch.face, patch.range, 1)[0, : len(block.active)]
    return plane_of(nodes.reshape(len(block.active), -1))[0]
