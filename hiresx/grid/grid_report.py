"""The content of a grid file, and its conversion, reported before any computation."""

from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.case.grid_file import GridFile
from hiresx.errors import HiresxError
from hiresx.grid.blocks import (
    AXES,
    FACES,
    Block,
    Range,
    direction,
    directions_along,
    face_range,
    format_range,
    in_face,
    one_inside,
    rectangles_of_face,
    slices,
)
from hiresx.grid.connections import Grid, Touching
from hiresx.grid.doubled import doubled_line
from hiresx.grid.from_file import describe_form, file_kind, load_grid, read_raw
from hiresx.grid.quality import NotPositive, hands, not_positive
from hiresx.grid.singular import COLLAPSED, collapsed_direction
from hiresx.grid.stored_coordinates import slabs

# A face is closed, and has no mean normal, if the sum of its area vectors is below this fraction of its area.
CLOSED = 1e-6


def grid_report(path: Path, connectivity: Path | None = None) -> dict[str, Any]:
    """Return the report that `hiresx info` prints on a grid file, as JSON data. `connectivity`: the connectivity file
    of a Plot3D grid, or None.
    - "form": file format, byte order and precision.
    - "blocks": for each block its name, its numbers of nodes in the file, the directions in which it is "thin" (1 or 2
      nodes), "hands" ("right", "left" or "mixed"), "collapsed" faces, edges and lines, grid lines that occur twice, the
      smallest and the largest "spacing" along grid lines, and the largest "ratio" of neighbouring spacings.
    - "done": the changes to the grid that HiResX makes by itself, as text.
    - "points", "connections", "regions": numbers of the resulting grid. "left": rectangles of face nodes that belong to
      no connection and no region, with their centre and outward normal.
    - "meets": faces that lie on other blocks without being connected.
    - "jacobian": blocks in which the Jacobian is not positive, and why.
    - "broken": patches of a CGNS file whose nodes do not exist; they are left out.
    - "refused": the reason if the file gives no valid grid."""
    with np.errstate(all="ignore"):  # a file may contain any finite number
        return _report(path, connectivity)


def _report(path: Path, connectivity: Path | None) -> dict[str, Any]:
    broken: dict[str, str] = {}
    grid, _, _ = read_raw(path, connectivity, broken=broken)
    found: dict[str, Any] = {
        "kind": f"grid ({file_kind(path)})",
        "form": describe_form(path),
        "points": grid.points,
        "blocks": [_block(block) for block in grid.blocks],
    }
    if broken:
        found["broken"] = [{"patch": name, "why": why} for name, why in broken.items()]
    try:
        grid, words = load_grid(GridFile(file=str(path), drop=tuple(broken)), path, connectivity)
    except HiresxError as error:
        return found | {"refused": error.message}
    found |= {"points": grid.points, "connections": len(grid.connections)}
    if words:
        found["done"] = words
    tables = {
        "regions": _regions(path, grid),
        "meets": [_meeting(grid, t) for t in grid.touching if not _in_region(grid.blocks[t.block], t.face, t.range)],
        "left": unassigned_parts(grid),
        "jacobian": [_not_positive(bad) for bad in not_positive(grid, _lines(grid))],
    }
    return found | {key: rows for key, rows in tables.items() if rows}


def _lines(grid: Grid) -> list[tuple[int, Range]]:
    """Return faces that have collapsed to lines, which are reported as such."""
    return [
        (b, face_range(face, block.size))
        for b, block in enumerate(grid.blocks)
        for face in block.faces
        if collapsed_direction(block, face) is not None
    ]


def _regions(path: Path, grid: Grid) -> list[dict[str, Any]]:
    """Return the named parts of faces: region, block, face, nodes, and for a CGNS file the kind of its patches."""
    kinds: dict[str, str] | None = None
    if file_kind(path) == "CGNS":
        from hiresx.grid.cgns import kinds_of

        kinds = kinds_of(path)
    return [
        {"region": name, "block": block.name, "face": face, "nodes": format_range(range_)}
        | ({} if kinds is None else {"kind": kinds.get(name, "")})
        for block in grid.blocks
        for name, parts in block.regions.items()
        for face, range_ in parts
    ]


def _meeting(grid: Grid, contact: Touching) -> dict[str, Any]:
    over = contact.over or contact.other_face is None
    return {
        "block": grid.blocks[contact.block].name,
        "face": contact.face,
        "nodes": format_range(contact.range),
        "other": grid.blocks[contact.other].name,
        "face of it": contact.other_face or "inside",
        "cells": contact.cells,
        "how": "over it" if over else "one spacing apart" if contact.one_step else "on it",
    }


def _not_positive(bad: NotPositive) -> dict[str, Any]:
    return {
        "block": bad.block.name,
        "nodes": f"{bad.count} of {bad.block.points}",
        "worst 1/J": bad.worst,
        "at i, j, k": list(bad.node),
        "x, y, z": [_round(c) for c in bad.place],
        "why": bad.what,
    }


def unassigned_parts(grid: Grid) -> list[dict[str, Any]]:
    """Return the rectangles of face nodes that belong to no connection and no region, which still need a boundary
    condition. Each is a dictionary: "block" (the name), "face", "nodes" (half-open ranges of i, j, k as text, such as
    "0:33 16:17 0:1"), "centre" (x, y, z) and "normal". The normal is the mean outward unit vector, or zero if the
    rectangle is a closed surface. A whole face that has collapsed to a line also has the key "collapsed"."""
    found: list[dict[str, Any]] = []
    for b, block in enumerate(grid.blocks):
        held = [(c.face, c.range) for c in grid.connections if c.block == b]
        held += [part for parts in block.regions.values() for part in parts]
        for face in block.faces:
            across = directions_along(face)
            free = np.ones([block.size[e] for e in across], dtype=bool)
            for _, range_ in (part for part in held if part[0] == face):
                free[in_face(face, range_)] = False
            for patch in rectangles_of_face(face, face_range(face, block.size), free):
                # A line of free nodes beside a patch is not reported, because it belongs to the patch.
                if all(patch[e][1] - patch[e][0] > 1 for e in across if block.size[e] > 1):
                    centre, normal = _place(block, face, patch)
                    row = {
                        "block": block.name,
                        "face": face,
                        "nodes": format_range(patch),
                        "centre": centre,
                        "normal": normal,
                    }
                    if patch == face_range(face, block.size) and collapsed_direction(block, face) is not None:
                        row["collapsed"] = "to a line"
                    found.append(row)
    return found


def _in_region(block: Block, face: str, range_: Range) -> bool:
    """True if a region includes the middle of a range."""
    middle = [(lo + hi) // 2 for lo, hi in range_]
    return any(
        face == f and all(lo <= m < hi for m, (lo, hi) in zip(middle, part, strict=True))
        for parts in block.regions.values()
        for f, part in parts
    )


def _place(block: Block, face: str, range_: Range) -> tuple[list[float], list[float]]:
    nodes, behind = (block.at(slices(r)).reshape(3, -1).T for r in (range_, one_inside(face, range_)))
    across = [hi - lo for lo, hi in reversed(range_) if hi - lo > 1]
    areas = _areas(nodes.reshape(*across, 3), (nodes - behind).reshape(*across, 3))
    normal, whole = areas.sum(axis=0), np.linalg.norm(areas, axis=1).sum()
    size = float(np.linalg.norm(normal))
    if size <= CLOSED * whole:
        normal, size = np.zeros(3), 1.0
    return [_round(v) for v in nodes.mean(axis=0)], [_round(v / size, 3) for v in normal]


def _areas(nodes: np.ndarray, outward: np.ndarray) -> np.ndarray:
    """Return the outward area vectors (n, 3) of the cells of a face with the `nodes` (..., 3), a surface, a line or a
    point. `outward`: vectors from the nodes behind the face to those on it, which need not be normal to it."""
    if nodes.ndim == 3:
        areas = np.cross(nodes[1:, 1:] - nodes[:-1, :-1], nodes[1:, :-1] - nodes[:-1, 1:]).reshape(-1, 3) / 2
        middle = (outward[1:, 1:] + outward[:-1, :-1] + outward[1:, :-1] + outward[:-1, 1:]).reshape(-1, 3)
        return areas if (areas * middle).sum() > 0 else -areas
    if nodes.ndim == 2:
        along, middle = np.diff(nodes, axis=0), outward[1:] + outward[:-1]
        length = np.linalg.norm(along, axis=1, keepdims=True)
        unit = along / np.where(length > 0, length, 1.0)
        across = middle - (middle * unit).sum(axis=1, keepdims=True) * unit
        height = np.linalg.norm(across, axis=1, keepdims=True)
        return length * across / np.where(height > 0, height, 1.0)
    return outward.reshape(1, 3)


def _round(value: float, digits: int = 6) -> float:
    return float(f"{value:.{digits}g}") + 0.0


def _block(block: Block) -> dict[str, Any]:
    steps, ratio, twice = [], 1.0, doubled_line(block)
    for d in range(3):
        if block.size[d] > 2:
            for nodes in slabs(block.x, block.y, block.z, overlap=2):
                step = np.sqrt(sum(np.diff(c, axis=2 - d) ** 2 for c in nodes))
                if (step > 0).any():
                    steps += [float(step[step > 0].min()), float(step.max())]
                ahead, behind = (np.take(step, range(n, step.shape[2 - d] - 1 + n), axis=2 - d) for n in (1, 0))
                low, high = np.minimum(ahead, behind), np.maximum(ahead, behind)
                ratio = max(ratio, float(np.max(high[low > 0] / low[low > 0], initial=1.0)))
    return {
        "name": block.name,
        **dict(zip(("ni", "nj", "nk"), block.size, strict=True)),
        **{axis: [float(getattr(block, axis).min()), float(getattr(block, axis).max())] for axis in "xyz"},
        "thin": "".join(AXES[d] for d in range(3) if block.size[d] <= 2),
        "hands": hands(block),
        "collapsed": ", ".join([*_collapsed_faces(block), *([] if twice is None else [twice.describe()])]),
        "spacing": [0.0 if twice is not None else min(steps, default=0.0), max(steps, default=0.0)],
        "ratio": ratio,
    }


def _collapsed_faces(block: Block) -> list[str]:
    """Describe faces whose lines in one direction are points, edges that are points, and single such lines of faces."""
    lines = {}
    for face in (f for f in block.faces if block.size[direction(f)] > 2):
        part = block.at(slices(face_range(face, block.size)))
        for d in range(3):
            if d != direction(face) and block.size[d] > 2:
                length = np.linalg.norm(np.diff(part, axis=3 - d), axis=0).sum(axis=2 - d)
                lines[face, d] = np.ravel(length <= COLLAPSED * max(block.extents))
    whole = [f"{face} along {AXES[d]}" for (face, d), points in lines.items() if points.all()]
    edges, single = [], []
    for (face, d), points in lines.items():
        if points.all():
            continue
        (e,) = {0, 1, 2} - {direction(face), d}
        if block.size[e] <= 2:
            continue
        count = int(points[1:-1].sum())
        if count:
            single.append(f"{face} along {AXES[d]} on {plural(count, 'line')}")
        for other, is_point in zip(FACES[2 * e : 2 * e + 2], (points[0], points[-1]), strict=True):
            if is_point and not lines[other, d].all() and e > direction(face):
                edges.append(f"edge {face}, {other} along {AXES[d]}")
    return whole + edges + single
