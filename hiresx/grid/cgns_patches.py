"""Boundary patches of CGNS files: their faces, their nodes and their kinds, and the patches that are left out.

A patch is given by a range of nodes, or of faces between nodes, or by a list of them (CGNS SIDS, boundary conditions):
a list is taken that holds every node, or every face, of one rectangle of a face of its zone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range
from hiresx.grid.cgns_tree import Node
from hiresx.grid.cgns_units import Units
from hiresx.grid.face_ownership import FacePart
from hiresx.grid.orientation import faces_of
from hiresx.grid.patched import PATCHED

# Types of boundaries in order of priority: the first keeps a line of nodes that it shares with another patch of its
# face.
FIRST = ("BCWallViscous", "BCWall", "BCDegenerate", "BCSymmetry")
RANGES, LISTS = ("PointRange", "ElementRange"), ("PointList", "ElementList")
NO_UNITS = Units()


@dataclass(frozen=True)
class Zone:
    """A zone of a CGNS file. `node`: the node of the zone. `block`: the block that was read from it. `dimensions`:
    number of dimensions of the zone. `units`: the units of its coordinates. `words`: descriptions of the changes of the
    coordinates."""

    node: Node
    block: Block
    dimensions: int
    units: Units = NO_UNITS
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Omissions:
    """The boundary patches and connections that are left out when the file `path` is read. `names`: the names in the
    key `grid.drop` of the case, as PATCH or ZONE/PATCH. `broken`: if it is a dictionary, patches without valid nodes
    are left out and added to it with the reason. `seen`: the names of all patches and connections that were read.
    `met`: the names in `names` that the file has."""

    path: Path
    names: tuple[str, ...] = ()
    broken: dict[str, str] | None = None
    seen: dict[str, None] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def drops(self, zone: Node, node: Node) -> bool:
        """Return whether the user asked to leave out the boundary patch or connection `node` of `zone`. The method also
        records the name of `node`, which `check_all_found` compares with the names that the user gave."""
        both = {node.name, f"{zone.name}/{node.name}"}
        self.seen[f"{zone.name}/{node.name}"] = None
        self.met.update(both.intersection(self.names))
        return bool(both.intersection(self.names))

    @contextmanager
    def naming(self, zone: Node, node: Node) -> Iterator[None]:
        """Return a context manager for reading the patch `node` of `zone`. A HiresxError in it gets a longer hint,
        which also says which key of the case leaves this patch out."""
        try:
            yield
        except HiresxError as error:
            key = f'[grid] drop = ["{zone.name}/{node.name}"] leaves it out'
            raise HiresxError(error.message, f"{error.hint}; {key}") from None

    def check_all_found(self) -> None:
        """Raise HiresxError if the key `grid.drop` of the case names a patch or connection that the CGNS file does not
        have."""
        for name in self.names:
            if name not in self.met:
                hint = did_you_mean(name, list(self.seen), "patches and connections")
                raise HiresxError(f"{self.path}: grid.drop: there is no patch or connection '{name}'", hint)


def conditions(base: Node, zone: Node) -> Iterator[tuple[Node, str, str]]:
    """Yield the boundary patches of `zone` in `base`, each as (CGNS node, region name, type of boundary condition). The
    region has the name of the patch's family or, without a family, of the patch. The type, such as "BCWall", is the
    type of the family if the patch refers to it, and "" if the file has none."""
    families = {family.name: family for family in base.children("Family_t")}
    for patch in (patch for holder in zone.children("ZoneBC_t") for patch in holder.children("BC_t")):
        kind = patch.text() if patch.has_data else ""
        family = patch.child("FamilyName")
        name = "" if family is None else family.text().rsplit("/", 1)[-1]
        if kind == "FamilySpecified":
            held = families[name].children("FamilyBC_t") if name in families else []
            kind = next((node.text() for node in held if node.has_data), "")
        yield patch, name or patch.name, kind


def patches(base: Node, zones: Sequence[Zone], left: Omissions) -> tuple[list[FacePart], list[str]]:
    """Return two lists with one entry for each boundary patch of a CGNS file: its face nodes, and the name of the
    region to which it belongs. Walls come first. Connections whose faces have no common nodes (`abuts`) come last, in
    the region "patched". `base`: the base of the file. `zones`: its zones, one for each block. `left`: the patches that
    the user leaves out. Raises HiresxError for a patch whose nodes are not on a face; if `left.broken` is a dictionary,
    such patches are added to it instead."""
    found = []
    for b, zone in enumerate(zones):
        for patch, name, kind in conditions(base, zone.node):
            if left.drops(zone.node, patch):
                continue
            try:
                with left.naming(zone.node, patch):
                    face, range_ = _patch(zone, patch)
            except HiresxError as error:
                if left.broken is None:
                    raise
                why = error.message.rpartition(patch.place)[2]
                left.broken[f"{zone.node.name}/{patch.name}"] = why.strip("/: ")
                continue
            rank = next((n for n, first in enumerate(FIRST) if kind.startswith(first)), len(FIRST))
            part = FacePart(b, face, range_, f"boundary patch {patch.name} of zone {zone.node.name}")
            found.append((rank, part, name))
        for general in zone.node.children("ZoneGridConnectivity_t"):
            for node in filter(abuts, general.children("GridConnectivity_t")):
                if left.drops(zone.node, node):
                    continue
                with left.naming(zone.node, node):
                    part = FacePart(b, *_patch(zone, node), f"connection {node.name} of zone {zone.node.name}")
                found.append((len(FIRST) + 1, part, PATCHED))
    found.sort(key=lambda entry: entry[0])
    return [part for _, part, _ in found], [name for _, _, name in found]


def abuts(general: Node) -> bool:
    """Return whether a general CGNS connectivity node has the type `Abutting`: two faces that lie on each other without
    common nodes."""
    kind = general.child("GridConnectivityType")
    return kind is not None and kind.text() == "Abutting"


def _patch(zone: Zone, patch: Node) -> tuple[str, Range]:
    """Return face and nodes of a boundary patch."""
    ranges = [child for child in patch.children("IndexRange_t") if child.name in RANGES]
    lists = [child for child in patch.children("IndexArray_t") if child.name in LISTS]
    if len(ranges) + len(lists) != 1:
        raise patch.error("is not given by one PointRange or PointList", "write it as a range of nodes of one face")
    (node,) = ranges or lists
    if ranges:
        begin, end = node.numbers((2, zone.dimensions))
        low, high = np.minimum(begin, end), np.maximum(begin, end)
    else:
        points = np.unique(node.integer_rows(zone.dimensions), axis=0)
        low, high = points.min(axis=0), points.max(axis=0)
        if len(points) != np.prod(high - low + 1, dtype=float):
            raise node.error(
                f"its {len(points)} nodes, within {low.tolist()} to {high.tolist()}, are no rectangle of a face",
                "write it as a range of nodes of one face",
            )
    place = patch.child("GridLocation")
    location = place.text() if place is not None else "Vertex"
    size = np.array(zone.block.size[: zone.dimensions])
    if location != "Vertex" or node.name.startswith("Element"):
        low, high = _of_faces(node, location, low, high, size)
    return on_face(zone, node, low, high)


def _of_faces(
    node: Node, location: str, low: np.ndarray, high: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last nodes of a range of faces. Along their normal, faces between nodes count from 1 to the
    number of nodes; in the other directions they count like cells."""
    flat = [d for d in range(len(size)) if location[:5] in (f"{'IJK'[d]}Face", f"{'IJK'[d]}Edge")]
    if not flat:
        flat = [d for d in range(len(size)) if low[d] == high[d] and low[d] in (1, size[d] - 1, size[d])][:1]
    if len(flat) != 1:
        raise node.error(f"{location}: the range is on no face", "write it as a range of nodes of one face")
    (d,) = flat
    low, high = low.copy(), high + 1
    high[d] = low[d] = size[d] if low[d] > 1 else 1
    return low, high


def on_face(zone: Zone, node: Node, low: np.ndarray, high: np.ndarray) -> tuple[str, Range]:
    """Return the block face that contains all nodes from `low` to `high`, and their half-open index range from 0.
    `low`, `high`: (i, j, k) counted from 1, as in CGNS. `zone`: the zone of the block. Raises HiresxError, with the
    path of `node` in the file, if the nodes lie on no face or on an edge."""
    block = zone.block
    size = block.size[: zone.dimensions]
    shown = f"{low.tolist()} to {high.tolist()}"
    if (low < 1).any() or (high > np.array(size)).any():
        raise node.error(f"{shown} leaves the zone of {' x '.join(map(str, size))} nodes", "correct the range")
    range_ = triple([(int(a) - 1, int(b)) for a, b in zip(low, high, strict=True)] + [(0, 1)] * (3 - len(size)))
    faces = faces_of(block.size, range_, block.faces)
    if not faces:
        raise node.error(f"{shown} lies on no face of the zone", "correct the range")
    if len(faces) > 1:
        raise node.error(f"{shown} is an edge, on the faces {' and '.join(faces)}", "correct the range")
    return faces[0], range_
