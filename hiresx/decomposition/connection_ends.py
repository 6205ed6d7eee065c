"""Lines of nodes at which a connection ends within a face beside a wall, such as the trailing edge of an airfoil in a
C-grid. These nodes are nodes of the wall."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from hiresx.base.arrays import Integers, Mask, Reals
from hiresx.decomposition.wall_seams import WALLS, PlacedCondition
from hiresx.grid.blocks import Block, Range, direction, directions_along, face_range, in_face, rectangles_of_face, side
from hiresx.grid.connections import Connection
from hiresx.grid.orientation import layout_of

# Distance of nodes that count as one, as a fraction of the shortest step to a connected node beside them.
SAME = 1e-3
Place = tuple[int, str]  # number of a block, face


class ConnectionEnds:
    """The nodes of block faces at which a connection ends inside a face: a cell of the face has connected nodes, and
    others that do not coincide with any node of the donor block. `blocks`, `connections`: those of the grid."""

    def __init__(self, blocks: Sequence[Block], connections: Sequence[Connection]):
        """Find the cells of faces at which a connection ends: some of their nodes are connected, others are not, and
        these do not coincide with the nodes to which the connection would join them."""
        self.blocks, self.connections = blocks, connections
        of_faces: dict[Place, list[int]] = defaultdict(list)
        for n, c in enumerate(connections):
            of_faces[c.block, c.face].append(n)
        self._holder = {place: self._held(place, numbers) for place, numbers in of_faces.items()}
        self._cells = {
            place: self._open_cells(place, numbers)
            for place, numbers in of_faces.items()
            if (self._holder[place] < 0).any()
        }

    def outside(self, b: int, face: str, range_: Range) -> list[Range]:
        """Return the nodes of the part `range_` of a block face that are not in a face cell at which a connection ends,
        as disjoint half-open index ranges (i, j, k). `b`: the number of the block. `face`: its face, such as "imin".
        `range_`: half-open index ranges."""
        free = np.ones(self._shape((b, face)), bool)
        if (b, face) in self._cells:
            cells, holder = self._cells[b, face], self._holder[b, face]
            free.flat[cells[holder.flat[cells] >= 0]] = False
        return rectangles_of_face(face, range_, free[in_face(face, range_)])

    def given_to_walls(self, placed: Sequence[PlacedCondition]) -> tuple[list[Connection], list[PlacedCondition]]:
        """Transfer nodes at which a connection ends beside a wall of the same face from the connection to the wall.
        Returns the connections without these nodes, and the conditions with them. A node stays with the connection if
        the connection also ends at the coincident node of the donor block, but not beside a wall. A node beside two
        walls is given to the first of them.

        `placed`: the conditions of the face nodes that are not connected, as (block number, face, half-open index
        ranges i, j, k, condition)."""
        owners = {place: self._owners(place, placed) for place in self._cells}
        owners = {place: np.where(self._agreed(place, owners), own, -1) for place, own in owners.items()}
        owners = {place: own for place, own in owners.items() if (own >= 0).any()}
        connections = list[Connection]()
        for c in self.connections:
            own = owners.get((c.block, c.face))
            if own is None:
                connections.append(c)
            else:
                connections += [replace(c, range=part) for part in self._parts(c.face, c.range, own < 0)]
        found = list[PlacedCondition]()
        for n, (b, face, _, condition) in enumerate(placed):
            own = owners.get((b, face))
            if own is None:
                found.append(placed[n])
                continue
            same = [m for m, one in enumerate(placed) if one[:2] == (b, face) and one[3] is condition]
            mask = np.isin(own, same)
            if not mask.any():
                found.append(placed[n])
            elif n == same[0]:
                for m in same:
                    mask[in_face(face, placed[m][2])] = True
                found += [(b, face, part, condition) for part in self._parts(face, self._whole(b, face), mask)]
        return connections, found

    def left(self, placed: Sequence[PlacedCondition]) -> Iterator[tuple[PlacedCondition, Integers]]:
        """Yield each wall beside which a connection ends, with the indexes i, j, k (3,) of the first connected node
        beside it. `placed`: the conditions of the face nodes that are not connected, as (block number, face, half-open
        index ranges, condition); the walls among them are yielded in this form."""
        for place in self._cells:
            own = self._owners(place, placed)
            for n in np.unique(own[own >= 0]):
                yield placed[n], self._index(place, np.flatnonzero(own == n)[:1])[:, 0]

    def _whole(self, b: int, face: str) -> Range:
        return face_range(face, self.blocks[b].size)

    def _shape(self, place: Place) -> list[int]:
        return [self.blocks[place[0]].size[e] for e in directions_along(place[1])]

    def _parts(self, face: str, range_: Range, mask: Mask) -> list[Range]:
        return rectangles_of_face(face, range_, mask[in_face(face, range_)])

    def _held(self, place: Place, numbers: Sequence[int]) -> Integers:
        """Return, for each node of a face, the number of its connection, or -1."""
        holder = np.full(self._shape(place), -1)
        for n in numbers:
            holder[in_face(place[1], self.connections[n].range)] = n
        return holder

    def _open_cells(self, place: Place, numbers: Sequence[int]) -> Integers:
        """Return the cells of a face at which connections end, as positions of their corners in the face (n, corners).
        A cell of a line of nodes has two corners."""
        holder = self._holder[place]
        cells = _cells_of(holder.shape)
        held = holder.flat[cells]
        cells = cells[(held < 0).any(axis=1) & (held >= 0).any(axis=1)]
        held = holder.flat[cells]
        is_open = np.ones(len(cells), bool)
        for n in numbers:
            c = self.connections[n]
            touched = np.flatnonzero((held == n).any(axis=1) & is_open)
            if layout_of(c, self.blocks) != "shared":
                is_open[touched] = False
            elif touched.size:
                is_open[touched] = ~self._joined(c, place, cells[touched], held[touched] == n)
        return cells[is_open]

    def _joined(self, c: Connection, place: Place, cells: Integers, connected: Mask) -> Mask:
        """Return the mask of the cells all corners of which coincide with the nodes to which the connection `c` would
        join them. `connected`: which corners it joins."""
        index = self._index(place, cells)
        own = self.blocks[c.block].node(*index)
        other = self._images(c, c.donors(index))
        steps = np.linalg.norm(own[:, :, :, None] - own[:, :, None], axis=0)
        step = np.where(connected[:, None], steps, np.inf).min(axis=2)
        joined = connected | (np.linalg.norm(own - other, axis=0) <= SAME * step)
        whole: Mask = joined.all(axis=1)
        return whole

    def _images(self, c: Connection, there: Integers) -> Reals:
        """Return the coordinates (3, ...) of the nodes of the donor of `c` with the indexes `there` (3, ...), moved by
        the connection. Nodes one spacing outside the donor are those of the block behind it, and NaN without one."""
        donor = self.blocks[c.donor]
        size = np.reshape(donor.size, (3, *[1] * (there.ndim - 1)))
        inside = ((there >= 0) & (there < size)).all(axis=0)
        found: Reals = np.where(inside, donor.node(*np.clip(there, 0, size - 1)), np.nan)
        for behind in self.connections:
            if behind.block != c.donor or inside.all():
                continue
            d = direction(behind.face)
            ghosts = list(behind.range)
            ghosts[d] = (-1, 0) if side(behind.face) < 0 else (donor.size[d], donor.size[d] + 1)
            at = np.all([(lo <= n) & (n < hi) for n, (lo, hi) in zip(there, ghosts, strict=True)], axis=0)
            if at.any():
                found[:, at] = behind.motion(self.blocks[behind.donor].node(*behind.donors(there[:, at])))
        return c.motion(found)

    def _index(self, place: Place, positions: Integers) -> Integers:
        """Return the indexes i, j, k (3, ...) of the nodes at some positions (...) in a face."""
        b, face = place
        first, second = directions_along(face)
        index = np.full((3, *positions.shape), self._whole(b, face)[direction(face)][0])
        index[first], index[second] = np.unravel_index(positions, self._shape(place))
        return index

    def _owners(self, place: Place, placed: Sequence[PlacedCondition]) -> Integers:
        """Return, for each node of a face, the position in `placed` of the wall beside which a connection ends there,
        or -1."""
        cells, holder = self._cells[place], self._holder[place]
        beside = np.full(holder.shape, -1)
        for n, (b, face, range_, condition) in enumerate(placed):
            if (b, face) == place and isinstance(condition, WALLS):
                beside[in_face(face, range_)] = n
        free = holder.flat[cells] < 0
        corners = beside.flat[cells]
        walls = ((corners >= 0) | ~free).all(axis=1)
        none = len(placed)
        first = np.where(free, corners, none).min(axis=1)
        found = np.full(holder.size, none)
        np.minimum.at(found, cells[walls], first[walls, None])
        return np.where((holder >= 0) & (found.reshape(holder.shape) < none), found.reshape(holder.shape), -1)

    def _agreed(self, place: Place, owners: dict[Place, Integers]) -> Mask:
        """Return the mask of the nodes of a face that may belong to a wall, as far as the other sides of their
        connections are concerned."""
        holder = self._holder[place]
        agreed = np.ones(holder.shape, bool)
        for n in np.unique(holder[owners[place] >= 0]):
            c = self.connections[n]
            other = c.donor, c.donor_face
            if other not in owners:
                continue
            at = np.flatnonzero((holder == n) & (owners[place] >= 0))
            there = c.donors(self._index(place, at))
            position = np.ravel_multi_index([there[e] for e in directions_along(c.donor_face)], self._shape(other))
            ends = self._cells[other]
            ends = ends[self._holder[other].flat[ends] >= 0]
            agreed.flat[at] = ~np.isin(position, ends) | (owners[other].flat[position] >= 0)
        return agreed


def _cells_of(shape: tuple[int, ...]) -> Integers:
    """Return the positions (n, corners) of the corners of all cells of a face with nodes of this shape."""
    positions = np.arange(np.prod(shape)).reshape(shape)
    sides = [((0, n - 1), (1, n)) if n > 1 else ((0, 1),) for n in shape]
    return np.stack([positions[slice(*a), slice(*b)].ravel() for a, b in product(*sides)], axis=1)
