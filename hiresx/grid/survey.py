"""What a grid file holds and what becomes of it, said before anything is computed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.arrays import triple
from hiresx.case.grids import GridFile
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Block, Range, direction, face_range, layer, rectangles, side, slices
from hiresx.grid.connections import Grid
from hiresx.grid.from_file import delivered, described, form, taken
from hiresx.grid.quality import hands
from hiresx.grid.stored_coordinates import slabs

# Lines shorter than this share of the block's extent have collapsed to a point.
COLLAPSED = 1e-9
# A face whose area vectors add up to less than this share of its area closes around something: it faces every way.
CLOSED = 1e-6


def survey(path: Path, connectivity: Path | None = None) -> dict[str, Any]:
    """What `hiresx info` tells of a grid file; all values are fit for JSON.

    "form": container, byte order and precision; "blocks": name, nodes as delivered, the directions in which they are
    "thin" (1 or 2 nodes), "hands" ("right", "left" or "mixed"), "collapsed" faces and lines, smallest and largest
    "spacing" along grid lines and their largest "ratio" beside each other; "done": what is made of it by itself, in
    words; "points", "connections", "regions" and the parts of faces that are "left" over of the grid that results, with
    their place and outward normal; "meets": faces that lie on other blocks without being joined. Where no grid results,
    "refused" says why."""
    with np.errstate(all="ignore"):  # a file may hold any finite number
        return _survey(path, connectivity)


def _survey(path: Path, connectivity: Path | None) -> dict[str, Any]:
    grid, _, _ = delivered(path, connectivity)
    found: dict[str, Any] = {
        "kind": f"grid ({form(path)})",
        "form": described(path),
        "points": grid.points,
        "blocks": [_block(block) for block in grid.blocks],
    }
    try:
        grid, words = taken(GridFile(file=str(path)), path, connectivity)
    except HiresxError as error:
        return found | {"refused": error.message}
    found |= {"points": grid.points, "connections": len(grid.connections)}
    if words:
        found["done"] = words
    regions = [
        {"region": name, "block": block.name, "face": face, "nodes": _nodes(range_)}
        for block in grid.blocks
        for name, parts in block.regions.items()
        for face, range_ in parts
    ]
    meets = [
        {
            "block": grid.blocks[t.block].name,
            "face": t.face,
            "nodes": _nodes(t.range),
            "other": grid.blocks[t.other].name,
            "face of it": t.other_face or "inside",
            "cells": t.cells,
        }
        for t in grid.touching
        if not _in_region(grid.blocks[t.block], t.face, t.range)
    ]
    tables = {"regions": regions, "meets": meets, "left": left_over(grid)}
    return found | {key: rows for key, rows in tables.items() if rows}


def left_over(grid: Grid) -> list[dict[str, Any]]:
    """The parts of faces that no connection and no region holds: "block", "face", "nodes", "centre" and the mean
    outward "normal", a unit vector; zero for a part that closes around something."""
    found = []
    for b, block in enumerate(grid.blocks):
        held = [(c.face, c.range) for c in grid.connections if c.block == b]
        held += [part for parts in block.regions.values() for part in parts]
        for face in block.faces:
            across = [e for e in (2, 1, 0) if e != direction(face)]
            free = np.ones([block.size[e] for e in across], dtype=bool)
            for _, range_ in (part for part in held if part[0] == face):
                free[tuple(slice(*range_[e]) for e in across)] = False
            for rectangle in rectangles(free):
                patch = [layer(face, block.size)] * 3
                for e, part in zip(across, rectangle, strict=True):
                    patch[e] = part
                # A line left beside a patch belongs to what lies there.
                if all(patch[e][1] - patch[e][0] > 1 for e in across if block.size[e] > 1):
                    centre, normal = _place(block, face, triple(patch))
                    found.append(
                        {"block": block.name, "face": face, "nodes": _nodes(patch), "centre": centre, "normal": normal}
                    )
    return found


def _in_region(block: Block, face: str, range_: Range) -> bool:
    """Whether regions hold the middle of a range: then it is said what lies there."""
    middle = [(lo + hi) // 2 for lo, hi in range_]
    return any(
        face == f and all(lo <= m < hi for m, (lo, hi) in zip(middle, part, strict=True))
        for parts in block.regions.values()
        for f, part in parts
    )


def _nodes(range_: Iterable[tuple[int, int]]) -> str:
    return " ".join(f"{lo}:{hi}" for lo, hi in range_)


def _place(block: Block, face: str, range_: Range) -> tuple[list[float], list[float]]:
    d = direction(face)
    inner = triple((lo - side(face), hi - side(face)) if e == d else (lo, hi) for e, (lo, hi) in enumerate(range_))
    nodes, behind = (
        np.stack([c[slices(r)] for c in (block.x, block.y, block.z)], axis=-1).reshape(-1, 3) for r in (range_, inner)
    )
    across = [hi - lo for lo, hi in reversed(range_) if hi - lo > 1]
    areas = _areas(nodes.reshape(*across, 3), (nodes - behind).reshape(*across, 3))
    normal, whole = areas.sum(axis=0), np.linalg.norm(areas, axis=1).sum()
    size = float(np.linalg.norm(normal))
    if size <= CLOSED * whole:
        normal, size = np.zeros(3), 1.0
    return [_rounded(v) for v in nodes.mean(axis=0)], [_rounded(v / size, 3) for v in normal]


def _areas(nodes: np.ndarray, outward: np.ndarray) -> np.ndarray:
    """Outward area vectors (n, 3) of the cells of a face with the `nodes` (..., 3), a surface, a line or a point;
    `outward`: from the nodes behind to those of the face, not at right angles to it."""
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


def _rounded(value: float, digits: int = 6) -> float:
    return float(f"{value:.{digits}g}") + 0.0


def _block(block: Block) -> dict[str, Any]:
    steps, ratio = [], 1.0
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
        "collapsed": ", ".join(_collapsed(block)),
        "spacing": [min(steps, default=0.0), max(steps, default=0.0)],
        "ratio": ratio,
    }


def _collapsed(block: Block) -> list[str]:
    """Faces whose lines in one direction are points, in words."""
    extent = max(block.extents)
    found = []
    for face in (f for f in block.faces if block.size[direction(f)] > 2):
        part = np.stack([c[slices(face_range(face, block.size))] for c in (block.x, block.y, block.z)])
        for d in range(3):
            if d != direction(face) and block.size[d] > 2:
                length = np.linalg.norm(np.diff(part, axis=3 - d), axis=0).sum(axis=2 - d)
                count = int(np.count_nonzero(length <= COLLAPSED * extent))
                if count == length.size:
                    found.append(f"{face} along {AXES[d]}")
                elif count:
                    found.append(f"{face} along {AXES[d]} on {count} line{'s' * (count > 1)}")
    return found
