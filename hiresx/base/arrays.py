"""Types of arrays, and of triples of numbers for the directions i, j and k."""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# Coordinates, and states on the host.
Reals = NDArray[np.float64]
# Numbers of nodes, blocks, ranks.
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
# A number for all nodes, or an array with one number for each node.
Values = Reals | float
# (ni, nj, nk)
Size = tuple[int, int, int]

_T = TypeVar("_T")


def triple(items: Iterable[_T]) -> tuple[_T, _T, _T]:
    """Return the three `items`, such as the numbers of nodes along i, j and k, as a tuple. Raises ValueError if there
    are not three."""
    a, b, c = items
    return a, b, c


def masked_place(given: Any) -> str:
    """Return the indexes of the first masked entry of the NumPy masked array `given` as text, such as "[0, 3, 2]".
    Return "" if no entry is masked, and for any other object."""
    mask = np.ma.getmask(given)
    return str([int(n) for n in np.argwhere(mask)[0]]) if np.any(mask) else ""


def check_reals(given: Any) -> np.ndarray:
    """Return `given`, a number, an array or a list of numbers, as a NumPy array without a change of its number type.
    Raises ValueError, with the reason, for masked entries, for rows of different lengths, and for anything but real
    numbers: complex numbers, texts, dates, objects."""
    if place := masked_place(given):
        raise ValueError(f"is masked at {place}")
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:  # a TypeError of arrays that lie on a GPU
        raise ValueError("has rows of different lengths" if isinstance(error, ValueError) else f"{error}") from None
    if array.dtype.kind not in "biuf":
        kind = f"is an array of type {array.dtype.name}, not of real numbers"
        raise ValueError(kind if array.ndim else f"= {given!r:.60} is not a real number")
    return array


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of the positive integer `number` in increasing order, with repetitions: [2, 2, 3] for
    12. The list is empty for 1."""
    found, p = [], 2
    while p * p <= number:
        while number % p == 0:
            found.append(p)
            number //= p
        p += 1
    return [*found, number] if number > 1 else found


def weighted_mean(values: np.ndarray, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted means (p,) of entries of `values` (n,): mean number q is the sum over m of weights[m, q]
    values[nodes[m, q]]. `nodes`: integer indexes into `values`, (count, p). `weights`: (count, p), with the sum 1 over
    the first axis. The terms are added in the order of m."""
    # The terms are added in a fixed order: the order of NumPy's own sum depends on the number of points.
    total = values[nodes[0]] * weights[0]
    for node, weight in zip(nodes[1:], weights[1:], strict=True):
        total += values[node] * weight
    return np.asarray(total)


def runs(line: np.ndarray) -> list[tuple[int, int]]:
    """Return the ranges of consecutive True entries in `line`, a boolean array (n,). Each range is a pair (first index,
    last index + 1)."""
    edges = np.flatnonzero(np.diff(line.astype(np.int8), prepend=0, append=0))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]
