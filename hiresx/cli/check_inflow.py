"""Remarks of `hiresx check` on synthetic turbulence at inflows that the grid does not carry."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hiresx.decomposition.oblique_walls import inward_rows

if TYPE_CHECKING:
    from hiresx.decomposition import Decomposition


def notes_of_turbulence(decomposition: "Decomposition") -> Iterator[str]:
    """A note for each inflow whose synthetic turbulence has an integral length below the largest distance between
    neighbouring nodes there."""
    for patch in decomposition.patches:
        spec = getattr(patch.condition, "turbulence", None)
        if spec is None:
            continue
        block = decomposition.blocks[patch.block]
        nodes = np.stack([np.asarray(row) for row in inward_rows(block, patch.face, patch.range, 2)])
        apart = [
            np.linalg.norm(np.diff(nodes, axis=axis), axis=1).max()
            for axis in (0, 2, 3, 4)
            if axis < nodes.ndim and nodes.shape[axis] > 1
        ]
        least = min(np.atleast_1d(spec.length))
        if least < max(apart):
            yield (
                f"turbulence of {patch.condition.type} on face {patch.face} of block '{block.name}': its integral "
                f"length {least:.4g} is below the distance of nodes there, {max(apart):.4g}: the grid does not carry it"
            )
