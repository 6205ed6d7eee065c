"""The connectivity file of a Plot3D grid: a TOML file that names blocks and regions and lists the connections."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from hiresx.base.arrays import triple
from hiresx.base.plural import plural
from hiresx.base.whole_files import write_text
from hiresx.case import toml
from hiresx.case.boundaries import Face, Interval
from hiresx.case.error_messages import Origin, describe_validation_error, did_you_mean
from hiresx.case.grid_file import Rotation
from hiresx.case.model import Listed, Table, Vector
from hiresx.equations.stencil import DIFFERENCE_REACH
from hiresx.errors import HiresxError
from hiresx.grid import foreign
from hiresx.grid.blocks import AXES, Block, Range, direction, format_size, layer
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.connectivity_check import misfit
from hiresx.grid.face_ownership import FacePart, assign_nodes
from hiresx.grid.matching import matched_connections
from hiresx.grid.motions import Motion, motion, rotation_about
from hiresx.grid.orientation import (
    LAYOUTS,
    donor_range,
    extents,
    join,
    layout_of,
    matrix_of,
    opposite,
    possible_matrices,
    transform_of,
)
from hiresx.grid.patched import PATCHED

HEAD = """\
# Connectivity of a Plot3D grid. Ranges are half-open, from 0: [first, last + 1]; a face without one is meant whole.

"""
Name = Annotated[str, Field(min_length=1)]
Nodes = dict[Literal["i", "j", "k"], Interval]


class ConnectionTable(Table):
    """A part of a face whose ghosts are nodes of a donor block. Unless `mutual` is false, the donor's ghosts are also
    nodes of this block."""

    block: Name = Field(description="name of the block")
    face: Face = Field(description="its face")
    range: Nodes = Field({}, description="nodes of the face, half-open [first, last + 1]; absent: all of it")
    donor: Name = Field(description="name of the block on the other side; it may be the same")
    donor_face: Face = Field(description="its face")
    donor_range: Nodes = Field({}, description="nodes of that face, half-open; absent: all of it")
    transform: Annotated[tuple[int, ...], Listed, Field(min_length=2, max_length=3)] | None = Field(
        None,
        description="[a, b, c]: i of the block runs along direction |a| of the donor (1: i, 2: j, 3: k), backwards "
        "when negative; j along |b|, k along |c|, as in CGNS; absent: the orientation in which the nodes match",
    )
    layout: Literal["shared", "offset", "patched"] = Field(
        "shared",
        description="shared: both sides contain the nodes of the face. offset: the donor's nodes begin one spacing"
        " behind them. patched: each side has its own nodes, and ghosts are interpolated (a patched"
        " interface)",
    )
    translation: Vector | None = Field(
        None,
        description="translation from the donor's nodes to those of the block, after the rotation if there is one: "
        "[x, y, z], in L",
    )
    rotation: Rotation | None = Field(
        None,
        description="rotation from the donor's nodes to those of the block: {axis, angle, centre}, angle in degrees",
    )
    mutual: bool = Field(True, description="false: the donor's face is described by another entry")


class RegionTable(Table):
    """A name for a part of a face, for the boundary conditions of a case; several may have one name."""

    name: Name = Field(description="name of the region")
    block: Name = Field(description="name of the block")
    face: Face = Field(description="its face")
    range: Nodes = Field({}, description="nodes of the face, half-open [first, last + 1]; absent: all of it")


class PeriodTable(Table):
    """A direction of a block that boundary conditions may make periodic."""

    block: Name | None = Field(None, description="name of the block; absent: every block")
    direction: Literal["i", "j", "k"] = Field(description="the direction")
    translation: Vector | None = Field(None, description="translation from the min to the max face: [x, y, z], in L")
    rotation: Rotation | None = Field(None, description="rotation from the min to the max face: {axis, angle, centre}")


class Connectivity(Table):
    """The tables of a connectivity file."""

    blocks: Annotated[tuple[Name, ...], Listed] = Field(
        (), description="names of the blocks, in the order of the grid file; absent: block-1, block-2, ..."
    )
    match: bool = Field(
        False, description="whether faces that this file does not name are connected if their nodes coincide"
    )
    connection: Annotated[tuple[ConnectionTable, ...], Listed] = Field((), description="connections")
    region: Annotated[tuple[RegionTable, ...], Listed] = Field((), description="named parts of faces")
    period: Annotated[tuple[PeriodTable, ...], Listed] = Field((), description="directions that may be periodic")


def read_connectivity(path: Path, blocks: Sequence[Block]) -> Grid:
    """Return the grid of `blocks` with the names, regions, connections and periods from a connectivity file of a Plot3D
    grid. The file `path` has the TOML format of HiResX or the format of another program (`hiresx.grid.foreign`).

    Where two entries name the same line of nodes, a region (a named part of a face) has priority over a connection, and
    an earlier connection over a later one. The nodes are not compared here: see `hiresx.grid.connectivity_check`.
    Raises HiresxError for an invalid entry, with the name of the file and the entry."""
    other = foreign.tables(path, blocks)
    data = toml.read(path) if other is None else other
    try:
        spec = Connectivity.model_validate(data)
    except ValidationError as error:
        raise describe_validation_error(error, Connectivity, Origin(str(path))) from None
    blocks = _name_blocks(path, spec.blocks, blocks)
    index = {block.name: b for b, block in enumerate(blocks)}
    regions = _regions(path, spec.region, blocks, index, settle=other is not None)
    connections, parts = [], []
    for n, table in enumerate(spec.connection):
        where = f"{path}: connection.{n}"
        if table.layout == PATCHED:
            regions += _patched_sides(where, table, blocks, index)
    for n, table in enumerate(spec.connection):
        where = f"{path}: connection.{n}"
        if table.layout == PATCHED:
            continue
        found = _connection(where, table, blocks, index)
        back = opposite(found, blocks)
        for c in (found,) if not table.mutual or _key(back) == _key(found) else (found, back):
            connections.append(c)
            parts.append(FacePart(c.block, c.face, c.range, f"connection.{n}"))
    try:
        free = assign_nodes(blocks, parts, owned=regions)
    except HiresxError as error:
        raise HiresxError(f"{path}: {error.message}", error.hint) from None
    connections = [replace(c, range=range_) for c, ranges in zip(connections, free, strict=True) for range_ in ranges]
    if spec.match:
        connections += _match_free_nodes(blocks, regions, connections)
    return Grid(tuple(blocks), tuple(connections), _periods(path, spec.period, blocks, index))


def _name_blocks(path: Path, names: Sequence[str], blocks: Sequence[Block]) -> list[Block]:
    if names and len(names) != len(blocks):
        raise HiresxError(
            f"{path}: blocks: {plural(len(names), 'name')} for a grid of {plural(len(blocks), 'block')}",
            "give one name for every block",
        )
    return [replace(block, name=name) for block, name in zip(blocks, names or [b.name for b in blocks], strict=True)]


def _block(where: str, name: str, index: Mapping[str, int]) -> int:
    if name not in index:
        raise HiresxError(f'{where} = "{name}": there is no such block', did_you_mean(name, list(index), "blocks"))
    return index[name]


def _nodes(where: str, block: Block, face: str, nodes: Nodes) -> Range:
    """Return the range of some nodes of a face; negative indexes count from the end."""
    if face not in block.faces:
        raise HiresxError(
            f"{where}: block '{block.name}' of {format_size(block.size)} nodes has no face {face}",
            f"its faces are {', '.join(block.faces)}",
        )
    result = []
    for d, (axis, n) in enumerate(zip(AXES, block.size, strict=True)):
        if d == direction(face):
            if axis in nodes:
                raise HiresxError(f"{where}.{axis}: {axis} does not run along face {face}", f"leave {axis} out")
            result.append(layer(face, block.size))
            continue
        lo, hi = nodes.get(axis, (0, n))
        first, last = (lo + n if lo < 0 else lo), (n if hi == "end" else hi + n if hi < 0 else hi)
        if not 0 <= first < last <= n:
            shown = f'"{hi}"' if isinstance(hi, str) else hi
            raise HiresxError(
                f"{where}.{axis} = [{lo}, {shown}] is empty or leaves the {n} nodes of block '{block.name}' there",
                f"first and last + 1 must lie within 0 and {n}",
            )
        result.append((first, last))
    return triple(result)


def _regions(
    path: Path, tables: Sequence[RegionTable], blocks: list[Block], index: Mapping[str, int], settle: bool
) -> list[FacePart]:
    """Return the regions as parts of faces, and add them to `blocks`. `settle`: whether one of two regions that share
    nodes, as neighbours in files of other programs do, owns these: a wall, or else the first."""
    parts, names = [], []
    for n, table in enumerate(tables):
        where = f"{path}: region.{n}"
        b = _block(f"{where}.block", table.block, index)
        range_ = _nodes(f"{where}.range", blocks[b], table.face, table.range)
        parts.append(FacePart(b, table.face, range_, f"region.{n} ('{table.name}')"))
        names.append(table.name)
    ranges = [[part.range] for part in parts]
    if settle:
        order = sorted(range(len(parts)), key=lambda n: not foreign.is_wall(names[n]))
        for n, free in zip(order, assign_nodes(blocks, [parts[n] for n in order], strict=False), strict=True):
            ranges[n] = free
    for part, name, own in zip(parts, names, ranges, strict=True):
        for range_ in own:
            _add_region(blocks, part.block, name, part.face, range_)
    return parts


def _add_region(blocks: list[Block], b: int, name: str, face: str, range_: Range) -> None:
    known = blocks[b].regions
    blocks[b] = replace(blocks[b], regions={**known, name: (*known.get(name, ()), (face, range_))})


def _patched_sides(where: str, table: ConnectionTable, blocks: list[Block], index: Mapping[str, int]) -> list[FacePart]:
    """Return the sides of a patched connection as parts of faces. They become regions, which `decompose` recognises."""
    given = [key for key in ("transform", "translation", "rotation") if getattr(table, key) is not None]
    if given:
        raise HiresxError(
            f'{where}: {given[0]} with layout = "{PATCHED}"',
            "leave it out: where each side continues is found from the nodes, and the two sides lie in one place",
        )
    parts = []
    sides = [
        ("block", table.block, table.face, table.range),
        ("donor", table.donor, table.donor_face, table.donor_range),
    ]
    for key, name, face, nodes in sides[: 1 + table.mutual]:
        b = _block(f"{where}.{key}", name, index)
        range_ = _nodes(f"{where}.{'range' if key == 'block' else 'donor_range'}", blocks[b], face, nodes)
        _add_region(blocks, b, PATCHED, face, range_)
        parts.append(FacePart(b, face, range_, where))
    return parts


def motion_of(rotation: Rotation | None, translation: Sequence[float] | None = None) -> Motion:
    """Return the rigid motion that consists of the `rotation` and the `translation` given in a table of a case or
    connectivity file, of which each may be None. A translation within `rotation` is added to `translation`."""
    shift = np.zeros(3) if translation is None else np.array(translation, dtype=float)
    if rotation is None:
        return motion(translation=shift)
    matrix = rotation_about(rotation.axis, rotation.angle)
    return motion(matrix, rotation.centre, np.array(rotation.translation) + shift)


def _connection(where: str, table: ConnectionTable, blocks: list[Block], index: Mapping[str, int]) -> Connection:
    b, p = _block(f"{where}.block", table.block, index), _block(f"{where}.donor", table.donor, index)
    own = (b, table.face, _nodes(f"{where}.range", blocks[b], table.face, table.range))
    donor = (p, table.donor_face, _nodes(f"{where}.donor_range", blocks[p], table.donor_face, table.donor_range))
    moved = motion_of(table.rotation, table.translation)
    if table.transform is not None:
        try:
            matrix = matrix_of(table.transform)
        except ValueError as error:
            raise HiresxError(
                f"{where}.transform: {error}", "each direction of the donor once: for instance [1, 2, 3] or [-2, 1, 3]"
            ) from None
        return join(where, own, donor, matrix, table.layout, moved)
    trials = [join(where, own, donor, matrix, table.layout, moved) for matrix in possible_matrices(blocks, own, donor)]
    if not trials:
        mine, theirs = (format_size(extents(range_)) for _, _, range_ in (own, donor))
        raise HiresxError(
            f"{where}: {mine} nodes of block '{blocks[b].name}' do not meet {theirs} of block '{blocks[p].name}'",
            "correct range or donor_range",
        )
    # Among the orientations that keep the handedness, the one whose nodes match best. If they do not match, the check
    # of connections reports it.
    return min(trials, key=lambda c: (*_misfit(blocks, c, table.layout), -np.linalg.det(c.matrix)))


def _misfit(blocks: Sequence[Block], c: Connection, layout: str) -> tuple[int, float]:
    index = c.donors(c.ghosts(DIFFERENCE_REACH, blocks[c.block].size)).reshape(3, -1)
    size = np.array(blocks[c.donor].size)[:, None]
    inside = (index >= 0).all() and (index < size).all()
    return misfit(blocks, c, layout) if inside else (np.iinfo(int).max, np.inf)


def _match_free_nodes(
    blocks: Sequence[Block], regions: Sequence[FacePart], connections: Sequence[Connection]
) -> list[Connection]:
    """Return connections at coincident nodes that belong to nothing else."""
    held = [*regions, *(FacePart(c.block, c.face, c.range, "") for c in connections)]
    found = matched_connections(blocks)
    free = assign_nodes(blocks, [FacePart(c.block, c.face, c.range, "") for c in found], held, strict=False)
    return [replace(c, range=range_) for c, ranges in zip(found, free, strict=True) for range_ in ranges]


def _periods(
    path: Path, tables: Sequence[PeriodTable], blocks: Sequence[Block], index: Mapping[str, int]
) -> tuple[dict[str, Vector | Motion], ...]:
    periods: list[dict[str, Vector | Motion]] = [{} for _ in blocks]
    for n, table in enumerate(tables):
        where = f"{path}: period.{n}"
        moved = motion_of(table.rotation, table.translation)
        if moved.still:
            raise HiresxError(f"{where}: nothing moves", "give a translation or a rotation")
        for b in range(len(blocks)) if table.block is None else [_block(f"{where}.block", table.block, index)]:
            periods[b][table.direction] = moved if moved.rotation else moved.translation
    return tuple(periods)


# --- writing


def write_connectivity(path: str | Path, grid: Grid) -> None:
    """Write a connectivity file: the block names, regions, connections and periods of `grid`, which a Plot3D file
    cannot store. Reading this file and the file by `write_plot3d` gives the same grid. Raises HiresxError for
    connections that the format cannot represent, and if the file cannot be written."""
    path = Path(path)
    blocks = grid.blocks
    document: dict[str, Any] = {"blocks": [block.name for block in blocks]}
    document["connection"] = [_table_of(c, blocks, mutual) for c, mutual in _pairs(grid)]
    document["region"] = [
        {"name": name, "block": block.name, "face": face, "range": _nodes_of(face, range_, block)}
        for block in blocks
        for name, parts in block.regions.items()
        for face, range_ in parts
    ]
    alike = all(periods == grid.period[0] for periods in grid.period)
    document["period"] = [
        {"block": None if alike else block.name, "direction": axis, **_motion_table(period)}
        for block, periods in list(zip(blocks, grid.period, strict=True))[: 1 if alike else None]
        for axis, period in periods.items()
    ]
    write_text(path, HEAD + toml.dumps(document))


def _pairs(grid: Grid) -> list[tuple[Connection, bool]]:
    """Yield each connection, and whether its inverse follows from it. The inverse is then left out."""
    found: list[tuple[Connection, bool]] = []
    done: set[int] = set()
    number = {_key(c): n for n, c in enumerate(grid.connections)}
    for n, c in enumerate(grid.connections):
        if n in done:
            continue
        back = number.get(_key(opposite(c, grid.blocks)))
        mutual = back is not None and back > n and _inverse(c, grid.connections[back])
        found.append((c, mutual))
        done.add(n)
        if back is not None and mutual:
            done.add(back)
    return found


def _key(c: Connection) -> tuple[object, ...]:
    return (c.block, c.face, c.range, c.donor, c.matrix, c.offset)


def _inverse(c: Connection, other: Connection) -> bool:
    back = c.motion.inverse
    if (back.rotation is None) != (other.rotation is None):
        return False
    one, two = (np.append(m.translation, m.rotation or ()) for m in (back, other.motion))
    return bool(np.allclose(one, two, rtol=1e-14, atol=1e-14 * (1 + np.abs(one).max())))


def _table_of(c: Connection, blocks: Sequence[Block], mutual: bool) -> dict[str, Any]:
    block, donor, layout = blocks[c.block], blocks[c.donor], layout_of(c, blocks)
    if layout not in LAYOUTS:
        raise HiresxError(
            f"the connection of block '{block.name}', face {c.face}, to block '{donor.name}' begins inside the donor",
            "write grids whose blocks share the nodes of their faces or lie one spacing apart",
        )
    return {
        "block": block.name,
        "face": c.face,
        "range": _nodes_of(c.face, c.range, block),
        "donor": donor.name,
        "donor_face": c.donor_face,
        "donor_range": _nodes_of(c.donor_face, donor_range(c, blocks), donor),
        "transform": transform_of(c.matrix),
        "layout": layout,
        **_motion_table(c.motion),
        "mutual": None if mutual else False,
    }


def _nodes_of(face: str, range_: Range, block: Block) -> dict[Literal["i", "j", "k"], list[int]] | None:
    nodes = {
        AXES[d]: list(range_[d]) for d in range(3) if d != direction(face) and tuple(range_[d]) != (0, block.size[d])
    }
    return nodes or None


def _motion_table(moved: Vector | Motion) -> dict[str, Any]:
    if not isinstance(moved, Motion):
        moved = motion(translation=moved)
    if moved.rotation is None:
        return {} if moved.still else {"translation": list(moved.translation)}
    axis, angle = moved.axis_and_angle
    # with the centre 0 the translation contains the whole displacement
    table = {"axis": list(axis), "angle": angle, "translation": list(moved.translation)}
    return {"rotation": table}
