"""Storage of arrays over the nodes of whole blocks that are distributed over ranks, as one box of nodes for each part,
and reading of any box of them.

In a file (`container`) the box of nodes 0..63, 0..31, 0..6 of the array `name` is called "name[0:64,0:32,0:7]". A
reader returns any box of nodes, however the array was divided."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.held_arrays import LazyArray, Piece, label, sizes
from hiresx.grid.blocks import Range, intersection, slices
from hiresx.grid.cutting import within
from hiresx.output.saved.container import Container

# At most nine digits: more than any direction of a block needs, and safe for arithmetic.
_LABEL = re.compile(r"(.*)\[{0},{0},{0}\]".replace("{0}", r"(\d{1,9}):(\d{1,9})"), re.DOTALL)


def parse_label(text: str) -> tuple[str, Range] | None:
    """Return what a label such as "name[0:64,0:32,0:7]" says: the name of a distributed array, and a box of its nodes
    as half-open index ranges along i, j and k. Returns None for any other text."""
    found = _LABEL.fullmatch(text)
    if found is None:
        return None
    ends = [int(n) for n in found.groups()[1:]]
    return found[1], ((ends[0], ends[1]), (ends[2], ends[3]), (ends[4], ends[5]))


def label_pieces(prefix: str, pieces: Iterable[Piece]) -> Iterator[tuple[str, np.ndarray | LazyArray]]:
    """Yield a pair (label, array) for each of `pieces`, the boxes of nodes of distributed arrays, for
    `container.write`. A label consists of the text `prefix`, the name of the array and the half-open index ranges of
    the box along i, j and k, such as "name[0:64,0:32,0:7]" without a prefix."""
    for piece in pieces:
        yield prefix + label(piece.name, piece.box), piece.array


def check_whole(labels: Iterable[str]) -> None:
    """Raise ValueError unless the stored boxes of each distributed array contain as many nodes as the whole array.
    `labels`: the labels of the boxes of all ranks, such as "name[0:64,0:32,0:7]"."""
    boxes: dict[str, list[Range]] = {}
    for name, box in filter(None, map(parse_label, labels)):
        boxes.setdefault(name, []).append(box)
    for name, found in boxes.items():
        held = sum(math.prod(sizes(box)) for box in found)
        if held != math.prod(_ends(found)):
            raise ValueError(f"the {len(found)} pieces of {name} do not make up a whole: {label(name, found[0])}, ...")


def _ends(boxes: Iterable[Range]) -> tuple[int, ...]:
    return tuple(max(ends) for ends in zip(*([last for _, last in box] for box in boxes), strict=True))


class Reader:
    """Reader of stored arrays that are divided into boxes of nodes. reader(name, box) returns the nodes of an array in
    the half-open index ranges `box` (i, j, k) as (..., nk, nj, ni). Only the stored boxes that overlap `box` are read,
    a few planes at a time.

    `stored`: the stored boxes of each array, by its name. `fault`: a function that makes an exception from a text. This
    exception is raised if there is no such array, if the boxes of an array have different types, or if a node lies in
    no box or in two. `pieces`: the boxes in memory, if the arrays were not read from a file."""

    def __init__(
        self,
        stored: Mapping[str, Sequence["_StoredPiece"]],
        fault: Callable[[str], Exception],
        pieces: Sequence[Piece] | None = None,
    ):
        self._stored, self._fault, self.pieces = stored, fault, pieces
        for name, some in stored.items():
            kinds = {(piece.shape[:-3], piece.dtype) for piece in some}
            if len(kinds) > 1 or any(piece.shape[-3:] != sizes(piece.box) or 0 in piece.shape for piece in some):
                raise fault(f"the pieces of {name} do not fit together")

    @property
    def names(self) -> list[str]:
        """Names of the arrays that can be read."""
        return list(self._stored)

    def whole(self, name: str) -> Range:
        """Return the range of nodes of the whole array `name`, ((0, ni), (0, nj), (0, nk))."""
        return triple((0, last) for last in _ends(piece.box for piece in self._pieces(name)))

    def __call__(self, name: str, box: Range) -> np.ndarray:
        met = [(piece, common) for piece in self._pieces(name) if (common := intersection(piece.box, box)) is not None]
        self._check(name, box, [common for _, common in met])
        # Only now is memory allocated: the pieces contain all requested nodes, so the array is no larger than they are.
        first = self._pieces(name)[0]
        array = np.empty((*first.shape[:-3], *sizes(box)), first.dtype)
        for piece, common in met:
            piece.copy(common, array[(..., *slices(within(box, common)))])
        return array

    def _pieces(self, name: str) -> Sequence["_StoredPiece"]:
        if name not in self._stored:
            raise self._fault(f"there is no array {name}")
        return self._stored[name]

    def _check(self, name: str, box: Range, parts: Sequence[Range]) -> None:
        ends = np.array(parts, np.int64).reshape(-1, 3, 2)
        for n, (low, high) in enumerate(zip(ends[:, :, 0], ends[:, :, 1], strict=True)):
            twice = np.all((np.maximum(low, ends[:n, :, 0]) < np.minimum(high, ends[:n, :, 1])), axis=1)
            if twice.any():
                raise self._fault(f"two pieces of {name} hold nodes of {label('', parts[n])}")
        if sum(math.prod(sizes(part)) for part in parts) != math.prod(sizes(box)):
            raise self._fault(f"nodes of {label(name, box)} are in no piece")


class _StoredPiece:
    """A piece that can be read: `planes` gives (number, planes (n, nj, ni)) of the array viewed as one row of planes
    of constant k, a few at a time."""

    def __init__(
        self, box: Range, shape: Sequence[int], dtype: np.dtype, planes: Callable[[], Iterator[tuple[int, np.ndarray]]]
    ):
        self.box, self.shape, self.dtype, self._planes = box, tuple(shape), dtype, planes

    def copy(self, box: Range, target: np.ndarray) -> None:
        """Put the nodes `box` into `target`, shaped so."""
        own = within(self.box, box)
        (low, high), (_, rows, columns) = own[2], slices(own)
        nk = self.shape[-3]
        for first, planes in self._planes():
            for level in range(first // nk, (first + len(planes) - 1) // nk + 1):
                start, stop = max(low, first - level * nk), min(high, first + len(planes) - level * nk)
                if start < stop:
                    at = level * nk - first
                    part = target[np.unravel_index(level, target.shape[:-3])]
                    part[start - low : stop - low] = planes[at + start : at + stop, rows, columns]


def read_from_file(container: Container, prefix: str = "") -> Reader:
    """Return a reader of the distributed arrays in the opened checkpoint file `container` whose names begin with
    `prefix`. Each stored box of nodes is verified when it is read. Raises DamagedCheckpoint if nodes are missing, occur
    twice, or have changed."""
    stored: dict[str, list[_StoredPiece]] = {}
    for key in container.names:
        if key.startswith(prefix) and (found := parse_label(key[len(prefix) :])) is not None:
            name, box = found
            piece = _StoredPiece(box, container.shape(key), container.dtype(key), partial(container.planes, key))
            stored.setdefault(name, []).append(piece)
    return Reader(stored, container.damage_error)


def read_from_memory(pieces: Iterable[Piece]) -> Reader:
    """Return a reader of distributed arrays from memory. `pieces`: the boxes of nodes of the arrays. Arrays that are
    still to be computed or copied from a device are evaluated at once. The reader raises LookupError if nodes are
    missing or occur twice."""
    stored: dict[str, list[_StoredPiece]] = {}
    made = [Piece(piece.name, piece.box, np.asarray(piece.array)) for piece in pieces]
    for piece in made:
        array = np.asarray(piece.array)
        planes = partial(iter, [(0, array.reshape(-1, *array.shape[-2:]))])
        stored.setdefault(piece.name, []).append(_StoredPiece(piece.box, array.shape, array.dtype, planes))
    return Reader(stored, LookupError, made)
