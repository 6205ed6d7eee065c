"""The sponges of a case on its grid: their positions and strengths, and checks of their tables."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.error_messages import did_you_mean
from hiresx.case.positions import Position
from hiresx.case.schema import Sponge
from hiresx.decomposition import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.blocks import face_range, slices
from hiresx.grid.stored_coordinates import slabs

# Fraction of the grid's extent within which the nodes of a region must have one coordinate.
FLAT = 1e-6
# Fraction of its full depth that a sponge should reach, and fraction of its thickness by which the grid may continue
# behind it.
REACH, BEHIND = 0.9, 0.5


def place_sponges(case: Case, blocks: Sequence[Block]) -> Case:
    """Return `case` with coordinates for the start and the end of every sponge (along its axis, in L), where the case
    names a region of nodes or a face instead. `blocks`: the blocks of the grid. Raises HiresxError for a region or face
    that does not exist in the grid, or whose nodes differ in the coordinate along the axis."""
    if not any(isinstance(end, Position) for spec in case.sponge for end in (spec.start, spec.end)):
        return case
    sponges = []
    for n, spec in enumerate(case.sponge):
        ends = {
            key: _coordinate(f"sponge.{n}.{key}", end, spec.axis, blocks)
            for key, end in (("start", spec.start), ("end", spec.end))
            if isinstance(end, Position)
        }
        made = spec.model_copy(update=ends)
        if made.start == made.end:
            raise HiresxError(
                f"sponge.{n}: start and end both come to {spec.axis} = {made.start:g}", "give one of them an offset"
            )
        _check_sense(n, made, blocks)
        sponges.append(made)
    return case.model_copy(update={"sponge": tuple(sponges)})


def with_tiles(case: Case, whole: Decomposition) -> Case:
    """Return `case` with sponges whose lists of block names also contain the tiles (boxes of refined grid) inside these
    blocks. `whole`: the blocks of the grid and all tiles."""
    if whole.levels is None or not any(spec.blocks for spec in case.sponge):
        return case
    names = [*zip((block.name for block in whole.blocks), whole.names_of_grid, strict=True)]
    sponges = (
        spec.model_copy(update={"blocks": tuple(name for name, own in names if own in spec.blocks)})
        if spec.blocks
        else spec
        for spec in case.sponge
    )
    return case.model_copy(update={"sponge": tuple(sponges)})


def _coordinate(key: str, position: Position, axis: str, blocks: Sequence[Block]) -> float:
    found = []
    for block in blocks:
        if position.block not in (None, block.name):
            continue
        faces = [(position.face, face_range(position.face, block.size))] if position.face else ()
        for _, box in block.regions.get(position.region or "", ()) or faces:
            values = along(axis, *(c[slices(box)] for c in (block.x, block.y, block.z)))
            found.append((float(np.min(values)), float(np.max(values))))
    if not found:
        names = [block.name for block in blocks]
        if position.block is not None and position.block not in names:
            raise HiresxError(f'{key}: no block "{position.block}"', did_you_mean(position.block, names, "blocks"))
        there = sorted({name for block in blocks for name in block.regions})
        raise HiresxError(f'{key}: no region "{position.region}"', did_you_mean(str(position.region), there, "regions"))
    low, high = min(lo for lo, _ in found), max(hi for _, hi in found)
    ends = _extent(blocks, axis)
    if position.side is None and high - low > FLAT * (ends[1] - ends[0]):
        what = f'region "{position.region}"' if position.region else f"the face {position.face}"
        raise HiresxError(
            f"{key}: {what} reaches from {axis} = {low:g} to {high:g}",
            'choose an end: side = "least" or "largest", or one block',
        )
    return (low if position.side == "least" else high) + position.offset


def _check_sense(n: int, spec: Sponge, blocks: Sequence[Block]) -> None:
    """Raises HiresxError for a sponge with the wrong sense: one that damps more nodes behind its end than it leaves
    undamped before its start."""
    start, end = ends(spec)
    low, high = _extent(_within(spec, blocks) or blocks, spec.axis)
    before, behind = (start - low, high - end) if end > start else (high - start, end - low)
    if behind > max(before, BEHIND * abs(end - start)):
        raise HiresxError(
            f"sponge.{n}: its start comes to {spec.axis} = {start:g} and its end to {end:g}: turned round, it damps "
            f"all of the grid from there to {high if end > start else low:g}",
            "give both ends by the same part of the grid, the start with an offset: they then move together",
        )


def check(case: Case, blocks: Sequence[Block]) -> None:
    """Raise HiresxError for a sponge that names an unknown block, contains no node, has no node between its start and
    its end, contains the whole grid, or is thicker than the blocks in which it lies. `case`: the result of
    `place_sponges`."""
    names = [block.name for block in blocks]
    for n, spec in enumerate(case.sponge):
        for name in spec.blocks or ():
            if name not in names:
                raise HiresxError(f'sponge.{n}.blocks: no block "{name}"', did_you_mean(name, names, "blocks"))
        low, high = _extent(_within(spec, blocks), spec.axis)
        start, end = ends(spec)
        where = f"sponge.{n} from {spec.axis} = {start:g} to {end:g}"
        lies = f"{'its blocks reach' if spec.blocks else 'the grid reaches'} from {low:g} to {high:g}"
        if _outermost(spec, low, high) == 0:
            raise HiresxError(f"{where} holds no node: {lies}", "move it to where the grid is, or leave it out")
        if abs(end - start) > (high - low) * (1 + FLAT):
            raise HiresxError(
                f"{where} is {abs(end - start):g} thick, thicker than the domain: {lies}",
                "give a thinner sponge, or a larger grid",
            )
        all_low, all_high = _extent(blocks, spec.axis)
        outside = (all_low - start) if end > start else (start - all_high)
        if outside > FLAT * (all_high - all_low):
            raise HiresxError(
                f"{where} covers every node: it starts outside of the grid, which reaches from {all_low:g} to "
                f"{all_high:g}",
                "let it start within the grid",
            )
        if not any(_grows_in(spec, block) for block in _within(spec, blocks)):
            raise HiresxError(
                f"{where} has no node between its start and its end: it would be a step from nothing to full strength",
                "give a thicker sponge: ten nodes or more across it",
            )


def ends(spec: Sponge) -> tuple[float, float]:
    """Return the coordinates at which a sponge starts and ends, in units of the length scale L. `spec`: the table of
    the sponge in a case that `place_sponges` returned."""
    assert not isinstance(spec.start, Position) and not isinstance(spec.end, Position)
    return spec.start, spec.end


def along(axis: str, x: Any, y: Any, z: Any) -> Any:
    """Return the coordinate along which a sponge grows at points with the coordinates x, y, z (numbers or arrays): x, y
    or z as `axis` says, or for "r" the distance from the x axis."""
    return np.hypot(y, z) if axis == "r" else {"x": x, "y": y, "z": z}[axis]


def shares(spec: Sponge, coordinate: Any) -> Any:
    """Return the depth of points in the sponge `spec` as a fraction of its thickness, limited to the range from 0 at
    its start to 1 at its end. `coordinate`: the coordinate of the points along the axis of the sponge (`along`), in
    L."""
    start, end = ends(spec)
    return np.clip((np.asarray(coordinate) - start) / (end - start), 0, 1)


def facts(case: Case, blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return a dictionary for every sponge of `case`, a result of `place_sponges`:

    - `axis`, `start`, `end`, `thickness`, `strength`, `power`: as in the table of the sponge, the lengths in L.
    - `draws_to`: the origin of the state towards which it forces the flow, the name of a function or "state".
    - `blocks`: the names of the blocks with nodes in it. `nodes`: the number of nodes in it.
    - `points`: the number of nodes across it, the least among the blocks in which its strength grows.
    - `reach`: the largest relative depth (0 at its start, 1 at its end) that the grid contains.
    - `damping`: the factor of the amplitude of a sound wave that crosses it, as far as the grid contains it, in gas at
      rest. `damping_db`: the same in dB.
    - `behind`: the length of the grid behind its end at full strength.

    The source -sigma (Q - Q_state) damps all variables of a wave equally: d ln A/dx = -sigma/c, c = 1.
    """
    found = []
    for spec in case.sponge:
        start, end = ends(spec)
        thickness = abs(end - start)
        inside = [(block, *_count(spec, block)) for block in _within(spec, blocks)]
        held = [(block.name, nodes, points) for block, nodes, points in inside if nodes]
        reach, behind = _reach(spec, blocks)
        exponent = spec.strength * thickness * reach ** (spec.power + 1) / (spec.power + 1)
        found.append(
            {
                "axis": spec.axis, "start": start, "end": end, "thickness": thickness,
                "strength": spec.strength, "power": spec.power,
                "draws_to": spec.function or "state",
                "blocks": [name for name, _, _ in held], "nodes": sum(nodes for _, nodes, _ in held),
                "points": min((points for _, _, points in held if points), default=0),
                "reach": reach, "damping": math.exp(-exponent), "damping_db": 20 * exponent / math.log(10),
                "behind": behind,
            }
        )  # fmt: skip
    return found


def notes(case: Case, blocks: Sequence[Block]) -> Iterator[str]:
    """Yield a warning, as a sentence, for each sponge that the end of the grid cuts off before it reaches its full
    strength, and for each that continues far behind its end. `case`: the result of `place_sponges`."""
    for n, spec in enumerate(case.sponge):
        start, end = ends(spec)
        where = f"sponge.{n} ({spec.axis} = {start:g} to {end:g})"
        reach, behind = _reach(spec, blocks)
        if reach < REACH:
            yield (
                f"{where} is cut off by the end of the grid at {reach:.0%} of its depth, where it has "
                f"{reach**spec.power:.0%} of its strength"
            )
        if behind > BEHIND * abs(end - start):
            yield f"{where} goes on at full strength for {behind:g} behind its end: all of that is damped"


def _reach(spec: Sponge, blocks: Sequence[Block]) -> tuple[float, float]:
    """Return the largest fraction of its depth that the grid contains, and the length by which the grid continues
    behind its end."""
    start, end = ends(spec)
    low, high = _extent(_within(spec, blocks), spec.axis)
    return _outermost(spec, low, high), max((high - end) if end > start else (end - low), 0.0)


def _within(spec: Sponge, blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if spec.blocks is None or block.name in spec.blocks]


def _outermost(spec: Sponge, low: float, high: float) -> float:
    return float(np.max(shares(spec, [low, high])))


def _grows_in(spec: Sponge, block: Block) -> bool:
    """Return whether a block has a node behind the start of a sponge and not behind its end."""
    slab = (along(spec.axis, *coordinates) for coordinates in slabs(block.x, block.y, block.z))
    return any(bool(_growing(spec, values).any()) for values in slab)


def _growing(spec: Sponge, values: np.ndarray) -> np.ndarray:
    """Return where coordinates lie behind the start and not behind the end; the end itself counts."""
    start, end = ends(spec)
    within: np.ndarray = np.abs(values - start) <= abs(end - start) * (1 + FLAT)
    return within & (shares(spec, values) > 0)


def _count(spec: Sponge, block: Block) -> tuple[int, int]:
    """Return the number of nodes of a block in the sponge, and the largest number on one of its lines before the
    sponge's end, along the direction in which the coordinate changes most."""
    nodes, most = 0, 0
    directions = list(block.active)
    for coordinates in slabs(block.x, block.y, block.z):
        values = along(spec.axis, *coordinates)
        share = shares(spec, values)
        nodes += int(np.count_nonzero(share > 0))
        if not nodes:
            continue
        change = {d: float(np.abs(np.diff(values, axis=2 - d)).mean()) if values.shape[2 - d] > 1 else 0.0
                  for d in directions}  # fmt: skip
        across = max(directions, key=lambda d: change[d])
        most = max(most, int(_growing(spec, values).sum(axis=2 - across).max()))
    return nodes, most


def _extent(blocks: Sequence[Block], axis: str) -> tuple[float, float]:
    """Return the least and the largest coordinate of blocks."""
    if axis != "r":
        found = [getattr(block, axis) for block in blocks]
    else:
        found = [along(axis, *slab) for block in blocks for slab in slabs(block.x, block.y, block.z)]
    return min(float(c.min()) for c in found), max(float(c.max()) for c in found)
