"""Coordinates beyond the faces of the blocks, where metrics are needed.

The metrics in symmetric-conservative form keep a uniform flow to round-off wherever metrics and flux derivatives are
the same central differences of one single-valued array of coordinates, as deep as the halo, edges and corners included.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from hiresx.base.threads import map_all, planes
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.oblique_walls import groups, inward_rows, mirrored_places, mirrors
from hiresx.decomposition.open_faces import open_degrees
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.grid.blocks import FACES, Block, Range, direction
from hiresx.grid.connections import Connection
from hiresx.grid.motions import Motion
from hiresx.grid.orientation import layout_of
from hiresx.grid.patched import HIGHEST, PATCHED, degree_of, extrapolate

# The motion that maps nodes to their images behind the axis of axisymmetric flow.
AXIS = Motion(((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)))
# Distance of two positions, as a share of the largest coordinate, up to which they count as the same.
SAME_NODE = 1e-13


def extended_coordinates(decomposition: Decomposition) -> list[tuple[np.ndarray, np.ndarray, np.ndarray] | GhostLayers]:
    """Return the coordinates x, y, z of every block including its ghost nodes: float64 arrays (nk + 2 halo, nj + 2
    halo, ni + 2 halo), in units of the length scale L. All three directions have ghosts, also those with a single node;
    `halo` is the number of ghost layers of the decomposition.

    Where a ghost node lies:
    - behind a connection: at the position of its donor node, moved by the motion of the connection;
    - behind the axis of axisymmetric flow, if lines meet it at right angles: at the mirror image (x, -y, z) of the node
      before it;
    - behind a plane of symmetry in which a pole lies (a line to which a block face has collapsed), or which bent grid
      lines meet at right angles: at its mirror image;
    - behind a patched face (which touches other blocks without common nodes), a no-slip wall, an open face
      (`hiresx.decomposition.open_faces`), and a wall whose ghosts take the flow at their mirror images instead of nodes
      (`hiresx.decomposition.oblique_walls`), where polynomials are safe: on a polynomial through the nodes before it
      (`hiresx.grid.patched`);
    - behind any other physical boundary: at the point reflection x_{-m} = 2 x_0 - x_m.

    Singleton directions are extruded by unit steps along their axis (j along y, k along z). The ghosts of edges and
    corners are nodes behind a connection if there is one. Therefore a block that is cut has the same ghosts as the
    whole block. Several connections may lead to different nodes (at an edge where 3 or 5 blocks meet, or at the end of
    a C-grid's cut). Then a connection whose two sides do not share nodes has priority, because it is a cut through one
    block. Among the others the ghost is the mean of the nodes, so that it does not depend on the index directions. A
    block whose coordinates are left in the grid file has `GhostLayers` instead of arrays."""
    blocks, halo = decomposition.blocks, decomposition.stencil.halo
    # Singleton directions have no ghosts before the extrusion at the end.
    depth = [np.array([halo if n > 1 else 0 for n in block.size]) for block in blocks]
    nodes: list[np.ndarray | GhostLayers] = []
    for block, h in zip(blocks, depth, strict=True):
        if block.is_stored:
            nodes.append(GhostLayers(block, halo))
            continue
        nodes.append(_with_ghost_room(block, h))

    connections: list[list[tuple[Connection, bool]]] = [[] for _ in blocks]
    for c in decomposition.connections:
        connections[c.block].append((c, layout_of(c, blocks) == "offset"))
    lines: list[list[tuple[str, Range, int]]] = [[] for _ in blocks]
    images: list[list[tuple[Patch, Motion]]] = [[] for _ in blocks]
    mirrored = mirrored_places(decomposition)
    degrees = open_degrees(decomposition) | _wall_degrees(decomposition)
    for n, patch in enumerate(decomposition.patches):
        if patch.condition.type == PATCHED:
            lines[patch.block].append(
                (patch.face, patch.range, _degree(blocks[patch.block], patch.face, patch.range, halo))
            )
        elif n in mirrored and mirrored[n].smooth:
            lines[patch.block].append((patch.face, patch.range, HIGHEST))
        elif degrees.get(n, 1) > 1:
            lines[patch.block].append((patch.face, patch.range, degrees[n]))
        elif patch.condition.type == "axis" and n not in mirrored:
            images[patch.block].append((patch, AXIS))
        elif patch.condition.kernel == "reflect":
            images[patch.block] += [(patch, plane) for plane in mirrors(decomposition, patch)]
    # Faces come before edges, and edges before corners, because each uses values that are outside in one direction
    # less.
    for outside in (1, 2, 3):
        places = [
            (b, place)
            for b in range(len(blocks))
            for place in product((0, -1, 1), (0, -1, 1), (0, -1, 1))
            if sum(map(abs, place)) == outside and all(depth[b][d] for d in range(3) if place[d])
        ]

        def fill(at: tuple[int, tuple[int, int, int]]) -> None:
            b, place = at
            _fill(nodes, depth, blocks[b], b, place, connections[b], lines[b], images[b])

        if outside == 1 and not any(isinstance(own, GhostLayers) for own in nodes):
            map_all(fill, places)  # computed from nodes inside only
        else:
            for at in places:
                fill(at)
    return [
        extended if isinstance(extended, GhostLayers) else _extrude(extended, block, halo)
        for extended, block in zip(nodes, blocks, strict=True)
    ]


def _with_ghost_room(block: Block, depth: np.ndarray) -> np.ndarray:
    """Return x, y, z of a block in arrays with space for ghosts, which are NaN."""
    shape = [n + 2 * int(m) for n, m in zip(block.size[::-1], depth[::-1], strict=True)]
    extended = np.empty((3, *shape))
    hi, hj, hk = (int(m) for m in depth)
    ni, nj, nk = block.size

    def fill(rows: slice) -> None:
        extended[:, rows] = np.nan
        first, last = max(rows.start - hk, 0), min(rows.stop - hk, nk)
        for to, coordinate in zip(extended, (block.x, block.y, block.z), strict=True):
            if first < last:
                to[first + hk : last + hk, hj : hj + nj, hi : hi + ni] = coordinate[first:last]

    map_all(fill, planes(shape[0], shape[1] * shape[2]))
    return extended


def _wall_degrees(whole: Decomposition) -> dict[int, int]:
    """Return the degree of the polynomials behind each no-slip wall, as a dictionary from the number of the patch. The
    degree is at most 3. Walls that continue each other have one degree, so that it does not depend on how blocks are
    cut."""
    places = [n for n, patch in enumerate(whole.patches) if patch.condition.kernel == "no_slip"]
    found: dict[int, int] = {}
    for members in groups(whole, places, lambda condition: "wall"):
        patches = [whole.patches[n] for n in members]
        degrees = (_degree(whole.blocks[p.block], p.face, p.range, whole.stencil.halo) for p in patches)
        found.update(dict.fromkeys(members, min(3, *degrees)))
    return found


def _degree(block: Block, face: str, range_: Range, halo: int) -> int:
    """Return the degree of the polynomials that continue the grid lines behind a part of a face."""
    return degree_of(inward_rows(block, face, range_, HIGHEST + 1), halo)


def _fill(
    nodes: Sequence[np.ndarray | GhostLayers],
    depth: Sequence[np.ndarray],
    block: Block,
    b: int,
    place: tuple[int, int, int],
    connections: list[tuple[Connection, bool]],
    lines: list[tuple[str, Range, int]],
    images: list[tuple[Patch, Motion]],
) -> None:
    """Fill the ghost nodes of one face, edge or corner. `place`: for each direction -1 below, 0 inside, 1 above.
    `connections`: those of the block, each with whether its two sides share no nodes. `lines`: the parts of its faces
    behind which grid lines are continued by polynomials, each with the degree. `images`: its patches behind which the
    grid is mirrored."""
    own = nodes[b]
    axes = [
        np.arange(-depth[b][d], 0) if s < 0 else np.arange(n, n + depth[b][d]) if s > 0 else np.arange(n)
        for d, (s, n) in enumerate(zip(place, block.size, strict=True))
    ]
    index = np.stack(np.meshgrid(*axes, indexing="ij"))
    normals = [d for d in range(3) if place[d]]

    # Point reflection in the first direction that is outside; in the other directions the two nodes used have the same
    # position.
    d = normals[0]
    edge = 0 if place[d] < 0 else block.size[d] - 1
    boundary, mirror = index.copy(), index.copy()
    boundary[d] = edge
    mirror[d] = 2 * edge - index[d]
    value = 2 * _at(own, boundary, depth[b]) - _at(own, mirror, depth[b])

    nearest = np.stack([np.clip(index[e], 0, block.size[e] - 1) for e in range(3)])
    for patch, plane in images:
        if direction(patch.face) == d and patch.range[d][0] == edge:
            behind = _within(nearest, patch.range, d)
            value[:, behind] = plane(_at(own, mirror[:, behind], depth[b]))
    faces = {FACES[2 * d + (place[d] > 0)]: d for d in normals}
    for face, range_, degree in lines:
        if face not in faces:
            continue
        d = faces[face]
        edge, inwards = (0, 1) if place[d] < 0 else (block.size[d] - 1, -1)
        # from the first ghost on, as `continued` gives them
        rows = [np.take(index, [0], axis=d + 1).copy() for _ in range(degree + 1)]
        for step, row in enumerate(rows):
            row[d] = edge + inwards * step
        ghosts = extrapolate(np.stack([_at(own, row, depth[b]) for row in rows]), degree, int(depth[b][d]))
        ghosts = np.concatenate(list(ghosts[::-1] if place[d] < 0 else ghosts), axis=d + 1)
        behind = _within(nearest, range_, d)
        value[:, behind] = ghosts[:, behind]
    for of_cuts in (False, True):  # cuts have priority, so they write last
        leading = [c for c, is_cut in connections if is_cut == of_cuts and c.face in faces]
        several = len(normals) > 1  # behind one face, ranges do not overlap
        first = value.copy() if several else value
        total, sources = np.zeros(value.shape if several else 0), np.zeros(value.shape[1:] if several else 0)
        for connection in sorted(leading, key=lambda c: -faces[c.face]):
            behind = _within(nearest, connection.range, faces[connection.face])
            donor = connection.donors(index[:, behind])
            first[:, behind] = connection.motion(_at(nodes[connection.donor], donor, depth[connection.donor]))
            if several:
                total[:, behind] += first[:, behind]
                sources[behind] += 1
        if not several:
            continue
        mean = total / np.maximum(sources, 1)
        # Nodes that differ by round-off alone are one node: its bits keep the areas of Cartesian grids exact.
        apart = np.abs(mean - first).max(axis=0) > SAME_NODE * np.abs(first).max(initial=0)
        value = np.where(apart & (sources > 0), mean, first)
    i, j, k = (m + h for m, h in zip(index, depth[b], strict=True))
    own[:, k, j, i] = value


def _within(nearest: np.ndarray, range_: Range, normal: int) -> np.ndarray:
    """Return the mask of the nodes (3, ...) that lie in a range of a face, without the face's own direction."""
    inside = np.ones(nearest.shape[1:], dtype=bool)
    for e in range(3):
        if e != normal:
            inside &= (nearest[e] >= range_[e][0]) & (nearest[e] < range_[e][1])
    return inside


def _at(extended: np.ndarray | GhostLayers, index: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Return the coordinates (3, ...) at index triples (3, ...)."""
    i, j, k = (m + h for m, h in zip(index, depth, strict=True))
    return extended[:, k, j, i]


def _extrude(extended: np.ndarray, block: Block, halo: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Extrude every singleton direction by unit steps along its axis."""
    for d, n in enumerate(block.size):
        if n == 1:
            steps = np.arange(-halo, halo + 1, dtype=float)
            extended = np.repeat(extended, 2 * halo + 1, axis=3 - d)
            extended[d] += steps.reshape([-1 if axis == 2 - d else 1 for axis in range(3)])
    return tuple(extended)
