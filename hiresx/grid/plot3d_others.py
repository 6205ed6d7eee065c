"""Plot3D files that hold no nodes: solution (Q) and function files, recognised by how they begin and how long they are.

A Q file has, behind the sizes, per block 4 reals of the flow and, of every node, the density, the components of the
momentum and the energy; OVERFLOW writes two integers behind the sizes, the first the number of variables, and more
reals of the flow. A function file has a number of variables behind the size of each block.
"""

from collections.abc import Callable, Collection, Iterator
from io import BufferedReader
from itertools import product
from pathlib import Path

import numpy as np

from hiresx.base.arrays import Integers, Reals
from hiresx.errors import HiresxError

# Largest number of bytes that are searched for the sizes of the blocks, and the largest number of reals of the flow
# that OVERFLOW writes.
HEAD = 1 << 16
MOST_REFERENCES = 64


def no_grid(path: Path, what: str) -> HiresxError:
    """Return the HiresxError for a Plot3D file that is not a grid. `what`: its kind, "solution (Q)" or "function"."""
    return HiresxError(f"{path}: a Plot3D {what} file, which holds no nodes", "name the grid file that belongs to it")


def kind_of(head: Integers | Reals, left: Callable[[int], Collection[int]]) -> str | None:
    """Return the kind of a Plot3D file that is not a grid, "solution (Q)" or "function"; None for any other file.
    `head`: the numbers at the beginning of the file. `left(n)`: a function that returns how many reals the bytes after
    the first n numbers can be: one possibility for each precision."""
    for many, dimensions in product((True, False), (3, 2)):
        count = int(head[0]) if many and len(head) else 1
        for extra in (0, 1):
            used = many + (dimensions + extra) * count
            if not 0 < used <= len(head) or count < 1 or not (head[int(many) : used] >= 1).all():
                continue
            rows = np.reshape(head[int(many) : used], (count, dimensions + extra))
            if rows[:, :2].min() < 2:  # the number of blocks, mistaken for a size
                continue
            nodes = np.prod(rows[:, :dimensions], axis=1, dtype=np.float64)
            if extra:
                if np.sum(nodes * rows[:, -1]) in left(used):
                    return "function"
                continue
            if np.sum(nodes) * (dimensions + 2) + 4 * count in left(used):
                return "solution (Q)"
            variables = int(head[used]) if len(head) > used + 1 else 0
            if variables >= dimensions + 2:
                for rest in (n - np.sum(nodes) * variables for n in left(used + 2)):
                    if rest % count == 0 and 4 <= rest // count <= MOST_REFERENCES:
                        return "solution (Q)"
    return None


def binary_kind(file: BufferedReader, size: int) -> str | None:
    """Return the kind of a binary Plot3D file that is not a grid, "solution (Q)" or "function"; None for any other
    file. `size`: the length of the file in bytes."""
    for order in "<>":
        for head, length in _contents(file, size, order):
            numbers = np.frombuffer(head, order + "i4", count=len(head) // 4)

            def coordinate_counts(n: int, length: int = length) -> list[int]:
                rest = length - 4 * n
                return [rest // real for real in (4, 8) if rest % real == 0]

            found = kind_of(numbers, coordinate_counts)
            if found:
                return found
    return None


def _contents(file: BufferedReader, size: int, order: str) -> Iterator[tuple[bytes, int]]:
    """Yield the content of a file, once as records without their markers and once as it is: (the first bytes, number of
    all bytes)."""
    head, length, at = b"", 0, 0
    while at + 8 <= size:
        file.seek(at)
        lead = abs(int(np.frombuffer(file.read(4), order + "i4")[0]))
        if at + 8 + lead > size:
            break
        if len(head) < HEAD:
            head += file.read(min(lead, HEAD - len(head)))
        file.seek(at + 4 + lead)
        if abs(int(np.frombuffer(file.read(4), order + "i4")[0])) != lead:
            break
        length, at = length + lead, at + 8 + lead
    if at == size:
        yield head, length
    file.seek(0)
    yield file.read(HEAD), size
