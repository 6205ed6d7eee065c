"""Grids around a lens: two arcs that meet at sharp edges, in one block or in two."""

import numpy as np

from hiresx.grid import Block, Connection, Grid, matched_connections
from hiresx.grid.blocks import face_range


def lens(m: int, first: int) -> tuple[np.ndarray, ...]:
    """x, y, z around two arcs of `m` cells that meet at sharp edges, from node number `first` of the lower one on; the
    node at the end is that at the beginning."""
    s = np.linspace(-1, 1, m + 1)
    arcs = np.concatenate([s[:-1], -s]), np.concatenate([-lower(s)[:-1], upper(-s)])
    angle = np.concatenate([np.pi + np.pi * (1 + s[:-1]) / 2, np.pi * (1 + s) / 2])
    out = np.linspace(0, 1, 13)[:, None]
    x, y = ((1 - out) * near + 3 * out * far for near, far in zip(arcs, (np.cos(angle), np.sin(angle)), strict=True))
    x, y = (np.concatenate([c[:, first:-1], c[:, : first + 1]], axis=1)[None, :, ::-1] for c in (x, y))
    return x, y, 0 * x


def upper(s):
    return 0.3 * (1 - s**2) * (1 + 0.3 * s)


def lower(s):
    return 0.2 * (1 - s**2) * (1 - 0.2 * s)


def lens_grid(m: int, kind: str) -> Grid:
    """The lens in one block that begins at an edge, or three nodes from one, with its first nodes doubled or not, or in
    two blocks."""
    x, y, z = lens(m, 0 if kind.startswith("edge") else 3)
    if kind == "two":
        blocks = [
            Block(name, *(c[..., part] for c in (x, y, z)))
            for name, part in (("a", np.s_[: m // 2 + 1]), ("b", np.s_[m // 2 :]))
        ]
        return Grid(blocks, matched_connections(blocks))
    if kind.endswith("doubled"):
        blocks = [Block("a", x, y, z)]
        return Grid(blocks, matched_connections(blocks))
    block = Block("a", *(c[..., :-1] for c in (x, y, z)))
    n = block.size[0]
    ends = [("imin", n), ("imax", -n)]
    return Grid([block], [Connection(0, face, face_range(face, block.size), 0, offset=(o, 0, 0)) for face, o in ends])
