"""Columns of a history for extreme values and their positions."""

import numpy as np

from hiresx.decomposition import Decomposition
from hiresx.output.watch.history import Column

PLACE = ("x", "y", "z", "block", "i", "j", "k")
# Ends of a range, and what they are.
ENDS = {"min": "least", "max": "largest"}


def extreme_names(name: str, end: str) -> list[str]:
    """Return the names of the columns of an extreme value of the quantity `name` and of its place. `end`: "min" or
    "max"."""
    return [f"{name}_{end}", *(f"{name}_{end}_{part}" for part in PLACE)]


def extreme_columns(of: Column, end: str) -> list[Column]:
    """Return the columns of an extreme value (`end`: "min" or "max") of the quantity with the column `of`, and of its
    place."""
    value, *place = extreme_names(of.name, end)
    what = f"{ENDS[end]} {of.long_name}"
    described = [
        Column(name, f"{part} of the {what}", "L" if part in "xyz" else "1")
        for name, part in zip(place, PLACE, strict=True)
    ]
    return [Column(value, what, of.units), *described]


def place_of(decomposition: Decomposition, node: np.ndarray) -> tuple[float, ...]:
    """Return the values of the columns `PLACE` for a node (block, i, j, k): its coordinates, its block and its
    indexes."""
    b, *index = (int(n) for n in node)
    return (*decomposition.blocks[b].node(*index), b, *index)
