"""The resolution of a case's grid: sound waves between the sponges, and the layers of the incoming flow."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.functions import evaluate_profile
from hiresx.decomposition import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.blocks import FACES, direction, slices
from hiresx.grid.stored_coordinates import slabs
from hiresx.rhs.layers import along, shares
from hiresx.rhs.prescribed_waves import InTime

# Points per wavelength at which a wave counts as resolved by default.
POINTS_PER_WAVE = 8.0
# Points per wavelength below which a grid cannot represent a wave. The highest frequency follows from the shortest
# edge.
HELD = 2.0
# Fraction of the largest speed at which a layer ends, and fraction below which a place counts as a wall.
EDGE, REST = 0.99, 1e-3
# Number of samples of an inflow that changes in time, their interval in L / c_ref, and the fraction of the power of the
# fluctuations below, and above, the reported band.
SAMPLES, APART, TAIL = 512, 0.05, 0.01


def largest_spacing(x: np.ndarray, y: np.ndarray, z: np.ndarray, directions: Sequence[int]) -> np.ndarray:
    """Return the largest distance from each node to a neighbouring node along `directions` (0: i, 1: j, 2: k), an array
    (nk, nj, ni). `x`, `y` and `z`: the coordinates of the nodes, arrays (nk, nj, ni). All lengths have the same
    unit."""
    found = np.zeros(x.shape)
    for d in directions:
        axis = 2 - d
        if x.shape[axis] < 2:
            continue
        edge = np.sqrt(sum(np.diff(c, axis=axis) ** 2 for c in (x, y, z)))
        before = [(0, 0)] * 3
        behind = [(0, 0)] * 3
        before[axis], behind[axis] = (1, 0), (0, 1)
        found = np.maximum(found, np.maximum(np.pad(edge, before), np.pad(edge, behind)))
    return found


def spacing_at(block: Block, index: Sequence[float]) -> float:
    """Return the length of the longest edge, in units of the length scale L, of the cell of `block` that contains a
    position. `index`: the position as real-valued node indexes (i, j, k)."""
    return max(_edges(block, index))


def shortest_edge(block: Block, index: Sequence[float]) -> float:
    """Return the length of the shortest edge, in units of the length scale L, of the cell of `block` that contains a
    position. `index`: the position as real-valued node indexes (i, j, k)."""
    return min(_edges(block, index))


def _edges(block: Block, index: Sequence[float]) -> Iterator[float]:
    """Return the lengths of the edges of a cell from its lowest node, along the directions that the block has."""
    first = [int(np.clip(np.floor(c), 0, max(n - 2, 0))) for c, n in zip(index, block.size, strict=True)]
    for d in block.active:
        last = [n + (e == d) for e, n in enumerate(first)]
        yield float(np.linalg.norm(np.subtract(block.node(*last), block.node(*first))))


def sound(case: Case, blocks: Sequence[Block], points: float = POINTS_PER_WAVE) -> list[dict[str, Any]]:
    """Return the range of sound frequencies that the grid resolves: for each block, outside the sponges, the least and
    the largest frequency (`cutoff` and `largest`), in c_ref / L, and the points at which they occur. Sound is resolved
    if there are `points` nodes per wavelength, in gas at rest: the frequency is c_ref / (points h), where h is the
    largest distance to a neighbouring node. `case`: the case with its sponges placed on the blocks, the result of
    `hiresx.rhs.layers.place_sponges`."""
    found = []
    for block in blocks:
        least: tuple[float, list[float]] | None = None
        largest: tuple[float, list[float]] | None = None
        overlap = 2 * int(2 in block.active)
        begin = 0
        for x, y, z in slabs(block.x, block.y, block.z, overlap=overlap):
            spacing = largest_spacing(x, y, z, block.active)
            outside = np.ones(x.shape, bool)
            if overlap:  # at cuts between slabs, one of the two slabs has both neighbours of a node
                outside[: begin > 0] = False
                outside[len(x) - (begin + len(x) < block.size[2]) :] = False
            begin += len(x) - overlap
            for spec in case.sponge:
                if spec.blocks is None or block.name in spec.blocks:
                    outside &= shares(spec, along(spec.axis, x, y, z)) == 0
            if not outside.any():
                continue
            for sign in (1, -1):
                at = np.unravel_index(int(np.argmax(np.where(outside, sign * spacing, -np.inf))), x.shape)
                entry = 1 / (points * float(spacing[at])), [float(c[at]) for c in (x, y, z)]
                if sign > 0 and (least is None or entry[0] < least[0]):
                    least = entry
                if sign < 0 and (largest is None or entry[0] > largest[0]):
                    largest = entry
        if least is not None and largest is not None:
            found.append(
                {"block": block.name, "cutoff": least[0], "at": least[1], "largest": largest[0],
                 "largest_at": largest[1]}
            )  # fmt: skip
    return found


def inflow_layers(case: Case, decomposition: Decomposition) -> list[dict[str, Any]]:
    """Return the boundary layers of inflows with a profile: one dictionary for each function of case.py whose velocity
    vanishes at an edge of the inflow. It has the thickness, from the edge to the point with 0.99 of the largest mean
    speed on a line across the inflow, and the number of cells in this layer. For a profile that changes in time it has
    two results more. `rms` (and `rms_uvw`, of u, v and w) are the largest root mean squares of the fluctuations divided
    by the largest mean speed. `band` is the band of frequencies with nearly all of their power, in c_ref / L. If finer
    levels reach such an edge, the cells of the finest level at this edge are counted."""
    levels, names = decomposition.levels, decomposition.names_of_grid
    found: list[dict[str, Any]] = []
    at: dict[tuple[Any, ...], int] = {}
    for patch in decomposition.patches:  # blocks of finer levels come last
        for layer in _layers(case, decomposition, patch):
            layer["block"] = names[patch.block]
            key = layer["block"], layer["face"], layer["wall"], id(patch.condition)
            if levels is not None and levels.tiles[patch.block].level and key in at:
                found[at[key]] = layer
            else:
                at[key] = len(found)
                found.append(layer)
    return found


def _layers(case: Case, decomposition: Decomposition, patch: Any) -> Iterator[dict[str, Any]]:
    function = getattr(patch.condition, "function", None)
    if patch.condition.type not in ("profile-inflow", "characteristic-inflow") or function is None:
        return
    block = decomposition.blocks[patch.block]
    x, y, z = (np.asarray(c[slices(patch.range)]) for c in (block.x, block.y, block.z))
    try:
        given = InTime(partial(evaluate_profile, case, function), (x, y, z), patch.condition.steady)
        samples = SAMPLES if _at_rest(given.values(0.0)) and not given.fixed else 1
        velocity = np.stack([given.values(APART * n)[1:4] for n in range(samples)])
    except HiresxError:
        return  # a function that was given in Python
    mean = velocity.mean(axis=0)
    speed = np.sqrt(np.sum(mean**2, axis=0))
    most = float(speed.max())
    for d in range(3):
        axis = 2 - d
        line = tuple(slice(None) if n == axis else size // 2 for n, size in enumerate(speed.shape))
        if d == direction(patch.face) or speed.shape[axis] < 3 or not speed[line].max() > 0:
            continue
        along = np.stack([c[line] for c in (x, y, z)])
        for side, order in enumerate((slice(None), slice(None, None, -1))):
            # Only the fluctuations on this line are used: those elsewhere on the face may be faster.
            values, nodes = speed[line][order] / speed[line].max(), along[:, order]
            if values[0] > REST or not (values >= EDGE).any():
                continue
            n = int(np.argmax(values >= EDGE))
            distance = np.linalg.norm(nodes - nodes[:, :1], axis=0)
            yield {
                "block": block.name, "face": patch.face, "wall": FACES[2 * d + side],
                "thickness": float(np.interp(EDGE, values[: n + 1], distance[: n + 1])),
                "points": int(np.count_nonzero(values[: n + 1] < EDGE)),
                "first_spacing": float(distance[1]), **_fluctuations(velocity - mean, axis, most),
            }  # fmt: skip


def _at_rest(flow: Sequence[np.ndarray]) -> bool:
    """True if a flow (rho, u, v, w, p) is at rest at some nodes: only then does it have a layer."""
    speed = np.sqrt(np.sum(np.square(flow[1:4]), axis=0))
    return bool(speed.min() <= REST * speed.max())


def _fluctuations(velocity: np.ndarray, axis: int, most: float) -> dict[str, Any]:
    """Return the measures of fluctuations (sample, 3, nk, nj, ni) that `inflow_layers` describes. `axis`: the axis of
    the arrays across the layer."""
    rows = np.moveaxis(velocity, 2 + axis, 0)
    square = np.mean(rows.reshape(*rows.shape[:3], -1) ** 2, axis=(1, 3))
    row = int(np.argmax(square.sum(axis=1)))
    if len(velocity) == 1 or not square[row].sum() > 0:
        return {"rms": 0.0, "rms_uvw": [0.0, 0.0, 0.0], "band": None}
    window = np.hanning(len(velocity))
    power = np.abs(np.fft.rfft(rows[row].reshape(len(velocity), -1) * window[:, None], axis=0)) ** 2
    share = np.cumsum(power.sum(axis=1)) / power.sum()
    frequency = np.fft.rfftfreq(len(velocity), APART)
    return {
        "rms": float(np.sqrt(square[row].sum())) / most, "rms_uvw": (np.sqrt(square[row]) / most).tolist(),
        "band": [float(frequency[np.searchsorted(share, part)]) for part in (TAIL, 1 - TAIL)],
    }  # fmt: skip
