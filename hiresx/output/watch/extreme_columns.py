"""Columns of a history for the extreme values of a quantity and their positions."""

import numpy as np

from hiresx.decomposition import Decomposition
from hiresx.output.watch.history import Column

PLACE = ("x", "y", "z", "block", "i", "j", "k")
# Ends of a range, and what they are.
ENDS = {"min": "least", "max": "largest"}


def extreme_names(name: str, end: str) -> list[str]:
    """Return the names of the columns of a history for an extreme value of the quantity `name` and its position, such
    as "p_max", "p_max_x", ..., "p_max_i", ... . `end`: "min" or "max"."""
    return [f"{name}_{end}", *(f"{name}_{end}_{part}" for part in PLACE)]


def extreme_columns(of: Column, end: str) -> list[Column]:
    """Return the descriptions of the columns of a history for an extreme value of a quantity and its position: value,
    x, y, z, block, i, j, k. `of`: the description of the quantity itself. `end`: "min" or "max"."""
    value, *place = extreme_names(of.name, end)
    what = f"{ENDS[end]} {of.long_name}"
    described = [
        Column(name, f"{part} of the {what}", "L" if part in "xyz" else "1")
        for name, part in zip(place, PLACE, strict=True)
    ]
    return [Column(value, what, of.units), *described]


def place_of(decomposition: Decomposition, node: np.ndarray) -> tuple[float, ...]:
    """Return the coordinates x, y, z of a node in units of the length scale L, the number of its block, and its indexes
    i, j, k. `node`: the number of the block and the indexes i, j, k."""
    b, *index = (int(n) for n in node)
    return (*decomposition.blocks[b].node(*index), b, *index)
