"""Grids for manufactured solutions that no generator makes: blocks that touch without common nodes, and a grid with a
pole."""

import numpy as np

from hiresx.grid import Block, Grid, matched_connections

# Largest displacement of nodes from straight lines.
WAVES = 0.03


def patched_box(cells: int) -> Grid:
    """Return a grid of the unit square in two blocks, "left" and "right", which touch without common nodes: they have
    `cells` and 5/4 `cells` cells along y. Their common face is curved."""
    blocks = []
    for name, start, across in (("left", 0.0, cells), ("right", 0.5, cells * 5 // 4)):
        x, y = np.linspace(start, start + 0.5, cells // 2 + 1), np.linspace(0, 1, across + 1)
        z, y, x = np.meshgrid(np.zeros(1), y, x, indexing="ij")
        along = WAVES * np.sin(np.pi * x) * np.sin(2 * np.pi * y)
        blocks.append(Block(name, x + along, y + WAVES * np.sin(2 * np.pi * x) * np.sin(2 * np.pi * y), z))
    return Grid(tuple(blocks), ())


def drum(cells: int) -> Grid:
    """Return a grid of a cylinder of radius 1 and height 1 in one block. Its axis is the z axis, to which the face imin
    has collapsed. It has `cells` cells along the radius, twice as many around the axis, and half as many along it."""
    angle = np.linspace(0, 2 * np.pi, 2 * cells + 1)
    angle[-1] = 0.0  # so that the last nodes around equal the first ones to the last bit
    z, angle, r = np.meshgrid(np.linspace(0, 1, cells // 2 + 1), angle, np.linspace(0, 1, cells + 1), indexing="ij")
    block = Block("drum", r * np.cos(angle), r * np.sin(angle), z)
    return Grid((block,), tuple(matched_connections([block])))
