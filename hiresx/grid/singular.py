"""Singular lines: faces on which every ring of nodes has collapsed to a point, and the face therefore to a line."""

import numpy as np

from hiresx.grid.blocks import Block, direction, face_range, slices

# Rings shorter than this share of the block's extent count as points: in single precision a ring closes to about 5e-8.
COLLAPSED = 1e-7
PAGE = "docs/grids.md says what a pole needs (singular lines)"


def collapsed_direction(block: Block, face: str) -> int | None:
    """Return the index direction (0: i, 1: j, 2: k) along which `face` of a block has collapsed, so that the face is a
    line: on each of its grid lines along this direction all nodes coincide. The result is None if there is no such
    direction, or more than one."""
    if len(block.active) < 3:
        return None
    extent = max(block.extents)
    part = block.at(slices(face_range(face, block.size)))
    found = []
    for d in block.active:
        if d != direction(face):
            size = np.ptp(part, axis=3 - d)
            if float(size.max()) <= COLLAPSED * extent:
                found.append(d)
    return found[0] if len(found) == 1 else None
