"""CGNS grids: structured zones, 1-to-1 connections with sub-ranges, periodicity, boundary patches by name.

Conventions (CGNS SIDS, multizone interface connectivity and boundary conditions): indexes count from 1 and ranges
include both ends; arrays lie in Fortran order and are seen with their dimensions reversed: coordinates as [k, j, i], a
range of indexes as the rows begin and end. A node of a connection has the index T (index - begin) + begin_donor in
the donor, T the matrix of Transform.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, RawBlock, direction, largest, rounding_of
from hiresx.grid.cgns_file import open_tree
from hiresx.grid.cgns_patches import Omissions, Zone, abuts, conditions, on_face, patches
from hiresx.grid.cgns_tree import HINT, Node
from hiresx.grid.cgns_units import Units, conversion
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.connectivity_check import misfit
from hiresx.grid.face_ownership import FacePart, assign_nodes
from hiresx.grid.motions import IntMatrix, Motion, motion, rotation_about
from hiresx.grid.orientation import join, matrix_of
from hiresx.grid.stored_coordinates import Nodes, part_of

# An angle that equals a whole fraction of a full turn to single precision is replaced by the exact fraction, because
# angles are often stored in single precision.
OF_A_TURN = 1e-5


def read_cgns(
    path: Path, drop: Sequence[str] = (), broken: dict[str, str] | None = None
) -> tuple[Grid, bool, list[str]]:
    """Read a CGNS file, and return (grid, whether the file gives any connection of its zones, notes on the conversion
    of coordinates to metres). The blocks are the structured zones of the only base of the file, with their names and
    connections. Coordinates are float64. They are in metres if the file names their unit.

    Each boundary patch becomes a region (a named part of faces) with the name of its family, or with its own name if it
    has no family. A line of nodes that a wall shares with another patch belongs to the wall. A line that a patch shares
    with a connection belongs to the patch. Some programs write periodic motions in the sense opposite to the standard,
    or angles in degrees; the form with which the nodes match is used. `drop`: the names of boundary patches and
    connections that are left out, PATCH or ZONE/PATCH. `broken`: a dictionary that is filled with the boundary patches
    whose nodes cannot be found, as ZONE/PATCH, and the reasons. Without it such a patch is an error. Raises HiresxError
    for an invalid file, with the path of the invalid node in it, and if h5py is missing."""
    with open_tree(path) as root:
        return _grid(path, root, Omissions(path, tuple(drop), broken))


def kinds_of(path: Path) -> dict[str, str]:
    """Return the types of boundary condition (such as "BCWall") that a CGNS file gives to each boundary region, as a
    dictionary from the name of the region to the CGNS names, separated by commas. Regions are named after families, or
    after patches without a family."""
    with open_tree(path) as root:
        found: dict[str, dict[str, None]] = {}
        for base in root.children("CGNSBase_t"):
            for zone in base.children("Zone_t"):
                for _, name, kind in conditions(base, zone):
                    found.setdefault(name, {})[kind or "no kind"] = None
        return {name: ", ".join(kinds) for name, kinds in found.items()}


def describe_cgns(path: Path) -> str:
    """Return a description of the CGNS file `path`: its file format (HDF5 or ADF) and the precision of its
    coordinates."""
    with open_tree(path) as root:
        kinds = {
            array.kind
            for base in root.children("CGNSBase_t")
            for zone in base.children("Zone_t")
            for holder in zone.children("GridCoordinates_t")
            for array in holder.children("DataArray_t")
        }
        names = [{"float32": "single", "float64": "double"}.get(kind, kind) for kind in sorted(kinds)]
        return ", ".join([root.form, *([f"{' and '.join(names)} precision"] if names else [])])


def _grid(path: Path, root: Node, left: Omissions) -> tuple[Grid, bool, list[str]]:
    bases = root.children("CGNSBase_t")
    if len(bases) != 1:
        found = f"bases {', '.join(base.name for base in bases)}" if bases else "no base"
        raise HiresxError(f"{path}: {found} where one is expected", "keep one base in the file" if bases else HINT)
    (base,) = bases
    cells, physical = base.numbers((2,))
    if not (1 <= cells <= 3 and cells <= physical <= 3):
        raise base.error(f"has cells of {cells} dimensions in {physical}")
    units = Units().below(base)
    zones = [_zone(node, int(cells), int(physical), units) for node in base.children("Zone_t")]
    if not zones:
        raise base.error("has no zone")
    names = {zone.node.name: b for b, zone in enumerate(zones)}
    if len({zone.block.name for zone in zones}) != len(zones):
        raise base.error("two zones have the same name")
    blocks = [zone.block for zone in zones]
    parts, homes = patches(base, zones, left)
    connections = [c for b, zone in enumerate(zones) for c in _connections(base, zone, b, blocks, names, left)]
    left.check_all_found()
    parts += [FacePart(c.block, c.face, c.range, who) for c, who in connections]
    try:
        free = assign_nodes(blocks, parts)
    except HiresxError as error:
        key = '[grid] drop = ["ZONE/PATCH"] leaves one out'
        raise HiresxError(f"{path}: {error.message}", f"{error.hint}; {key}") from None
    for part, name, ranges in zip(parts, homes, free, strict=False):
        known = blocks[part.block].regions
        named = (*known.get(name, ()), *((part.face, range_) for range_ in ranges))
        blocks[part.block] = replace(blocks[part.block], regions={**known, name: named})
    kept = zip((c for c, _ in connections), free[len(homes) :], strict=True)
    words = list(dict.fromkeys(word for zone in zones for word in zone.words))
    grid = Grid(tuple(blocks), tuple(replace(c, range=range_) for c, ranges in kept for range_ in ranges))
    return grid, any(_gives_connections(zone.node) for zone in zones), words


# --- zones


def _zone(node: Node, cells: int, physical: int, units: Units) -> Zone:
    kind = node.child("ZoneType")
    if kind is not None and kind.text() != "Structured":
        raise node.error(f"is {kind.text().lower()}: HiResX computes on structured zones")
    size = node.numbers((3, cells))[0]
    if (size < 1).any() or size.max() > 2**31:
        raise node.error(f"has {' x '.join(map(str, size))} nodes")
    coordinates = next(iter(node.children("GridCoordinates_t")), None)
    if coordinates is None:
        raise node.error("has no GridCoordinates")
    units = units.below(node)
    nodes, words, rounding = list[Nodes](), [], 0.0
    for axis in "XYZ"[:physical]:
        array = coordinates.child(f"Coordinate{axis}")
        if array is None:
            others = ", ".join(other.name for other in coordinates.children("DataArray_t"))
            raise coordinates.error(f"has no Coordinate{axis}, but {others or 'nothing'}", "store x, y and z")
        own = units.below(coordinates).below(array)
        factor, offset = conversion(array, own)
        words.append(own.describe)
        stored = _inner(coordinates, array, size)
        rounding = max(rounding, factor * rounding_of(largest(stored), np.dtype(array.kind)))
        nodes.append(_in_metres(stored, factor, offset))
    nodes += [np.broadcast_to(np.zeros(()), nodes[0].shape)] * (3 - len(nodes))
    try:
        # Names of blocks become names of groups in files: "Zone   1" becomes "Zone_1".
        name = re.sub(r"[^A-Za-z0-9_.@+-]+", "_", node.name)
        block = RawBlock(name, *triple(nodes), rounding=rounding)
        return Zone(node, block, cells, units, tuple(word for word in words if word))
    except HiresxError as error:
        raise HiresxError(f"{node.path}: {error.message}", error.hint) from None


def _in_metres(values: Nodes, factor: float, offset: float) -> Nodes:
    if offset:
        return np.asarray(values) * factor + offset
    return values if factor == 1 else values * factor


def _inner(coordinates: Node, array: Node, size: np.ndarray) -> Nodes:
    """Return the coordinates (nk, nj, ni) without rind planes."""
    rind = np.zeros(2 * len(size), dtype=int)
    planes = next(iter(coordinates.children("Rind_t")), None)
    if planes is not None:
        rind = planes.numbers((2 * len(size),))
        if (rind < 0).any():
            raise planes.error("counts planes below 0")
    below, above = rind[::2], rind[1::2]
    flat = [0] * (3 - len(size))
    shape = [n + 1 for n in flat] + [int(n) for n in (size + below + above)[::-1]]
    first = flat + [int(b) for b in below[::-1]]
    count = [n + 1 for n in flat] + [int(n) for n in size[::-1]]
    inside = triple(slice(b, b + n) for b, n in zip(first, count, strict=True))
    return part_of(array.nodes(triple(shape)), inside)


# --- connections


def _gives_connections(zone: Node) -> bool:
    holders = list(zone.children("ZoneGridConnectivity_t"))
    kinds = ("GridConnectivity1to1_t", "GridConnectivity_t")
    return any(next(iter(holder.children(kind)), None) is not None for holder in holders for kind in kinds)


def _connections(
    base: Node, zone: Zone, b: int, blocks: Sequence[Block], names: dict[str, int], left: Omissions
) -> Iterator[tuple[Connection, str]]:
    """Yield the connections of a zone: (connection, its name in messages)."""
    for holder in zone.node.children("ZoneGridConnectivity_t"):
        for general in holder.children("GridConnectivity_t"):
            if abuts(general) or left.drops(zone.node, general):
                continue
            kind = general.child("GridConnectivityType")
            name = "overset" if kind is None else kind.text()
            with left.naming(zone.node, general):
                raise general.error(
                    f"is a connection of the kind {name}",
                    "HiResX joins zones node to node (GridConnectivity1to1) or by interpolation (Abutting)",
                )
        for node in holder.children("GridConnectivity1to1_t"):
            if left.drops(zone.node, node):
                continue
            donor = node.text().removeprefix(f"{base.name}/")
            with left.naming(zone.node, node):
                if donor not in names:
                    raise node.error(f'there is no zone "{donor}"', did_you_mean(donor, list(names), "zones"))
                connection = _connection(node, zone, b, names[donor], blocks)
            yield connection, f"connection {node.name} of zone {zone.node.name}"


def _connection(node: Node, zone: Zone, b: int, p: int, blocks: Sequence[Block]) -> Connection:
    shape = (2, zone.dimensions)
    own, other = node.require_child("PointRange"), node.require_child("PointRangeDonor")
    (begin, end), (donor_begin, donor_end) = own.numbers(shape), other.numbers(shape)
    face, range_ = on_face(zone, own, np.minimum(begin, end), np.maximum(begin, end))
    there = Zone(node, blocks[p], zone.dimensions)
    low, high = np.minimum(donor_begin, donor_end), np.maximum(donor_begin, donor_end)
    donor_face, donor_range = on_face(there, other, low, high)
    matrix = _matrix(node, zone.dimensions, face, donor_face)
    # `joined` takes the two rectangles as they are; the corresponding corners follow from the matrix, and must agree.
    m = np.array(matrix)[: zone.dimensions, : zone.dimensions]
    if (m @ (end - begin) != donor_end - donor_begin).any():
        raise node.error(
            f"under the transform the nodes {begin.tolist()} to {end.tolist()} become {donor_begin.tolist()} to "
            f"{(donor_begin + m @ (end - begin)).tolist()}, not to {donor_end.tolist()}",
            "correct PointRangeDonor or Transform",
        )
    where = f"{node.path}: {node.place}"
    trials = [
        join(where, (b, face, range_), (p, donor_face, donor_range), matrix, "shared", moved)
        for moved in _motions(node, zone.units)
    ]
    # A connection that fits no motion is not rejected here: the check of connections reports which nodes do not match.
    return min(trials, key=lambda c: _misfit(blocks, c))


def _misfit(blocks: Sequence[Block], c: Connection) -> int:
    with np.errstate(over="ignore", invalid="ignore"):
        return misfit(blocks, c, "shared")[0]


def _matrix(node: Node, dimensions: int, face: str, donor_face: str) -> IntMatrix:
    """Return the matrix of Transform. The sign of the entry normal to the face follows from the two faces, since files
    may have another one: the standard allows 0 there, and some programs write a positive number although the direction
    is reversed."""
    given = node.child("Transform")
    entries = list(range(1, dimensions + 1)) if given is None else given.numbers((dimensions,)).tolist()
    d, e = direction(face), direction(donor_face)
    if abs(entries[d]) in (0, e + 1):
        entries[d] = (e + 1) * (1 if face[1:] != donor_face[1:] else -1)
    entries += list(range(dimensions + 1, 4))
    try:
        return matrix_of(entries)
    except ValueError as error:
        raise (given or node).error(f"Transform: {error}", "each direction of the donor once, with a sign") from None


def _motions(node: Node, units: Units) -> list[Motion]:
    """Yield candidates for the motion that brings the donor's nodes to the zone, the most likely first."""
    holders = [p for q in node.children("GridConnectivityProperty_t") for p in q.children("Periodic_t")]
    if not holders:
        return [Motion()]
    periodic = holders[0]
    given = {}
    for name in ("RotationCenter", "RotationAngle", "Translation"):
        given[name] = np.zeros(3)
        child = periodic.child(name)
        if child is not None:
            values = child.vector(3)
            # a single angle is a rotation in the plane
            first = 2 if name == "RotationAngle" and len(values) == 1 else 0
            given[name][first : first + len(values)] = values
    metres = units.below(periodic).metres
    for name in ("RotationCenter", "Translation"):
        given[name] *= metres
    angles = given["RotationAngle"]
    found = []
    for degrees in (np.degrees(angles), angles) if angles.any() else (angles,):
        turned = np.eye(3)
        for axis, angle in zip(np.eye(3), degrees, strict=True):  # about x first, then y, then z
            turned = rotation_about(triple(axis), _round_turn(float(angle))) @ turned
        # The standard defines the motion from this zone to the donor; ghosts need the inverse.
        there = motion(turned, triple(given["RotationCenter"]), given["Translation"])
        found += [there.inverse, there]
    return found


def _round_turn(degrees: float) -> float:
    """Return the angle, or the whole fraction of a turn that it equals to single precision."""
    times = 360 / degrees if degrees else 0.0
    whole = round(times) if abs(times) < 1 / OF_A_TURN else 0
    return 360 / whole if whole and abs(times - whole) < OF_A_TURN * abs(times) else degrees
